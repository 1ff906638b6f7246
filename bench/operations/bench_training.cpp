// SPDX-License-Identifier: Apache-2.0
// Of a training step, by device time: decoding with kept activations, and attention's backward pass.
#include "bench/operations/device_batch.h"

namespace pointsman::bench {

namespace {

constexpr int kSizes[] = {20, 50, 100};
constexpr int kBatches[] = {128, 1024};

void bench_attention_gradient(const Context& context, int n, int count) {
  DeviceBatch batch(context.network, n, count, 1, Decode::kSample, Precision::kFp32, true);
  batch.encode();
  context.time(row_of("decode_keep", "ours", n, count), decode_work(count, n, true), [&] { batch.decode(); });

  const Projections& projections = context.network.parameters->projections;
  const auto& [inputs, activations, results] = batch.arrays;
  const size_t states = size_t(count) * (n + 1);
  DeviceArray<float> weights(count), dqueries(kHidden * states),
      dreferences(kHidden * projections.count * states), dv(size_t{2} * kHidden * count);
  const DeviceArray<char> scratch(cuda::pointer_gradient_scratch(count, count, n, 1));
  fill_random(weights, 1.0f, 7);
  cuda::PointerGradientArgs args{};
  args.problem = ProblemKind::kTsp;
  args.attention = cuda::attention_weights(context.network, {});
  args.projections = projections;
  args.references = activations.references;
  args.bounds = activations.bounds;
  args.queries = activations.decoder.queries;
  args.orders = results.orders;
  args.row_steps = activations.decoder.row_steps;
  args.weights = weights.data();
  args.first_row = inputs.first_row;
  args.sequence_of = inputs.sequence_of;
  args.ranges = inputs.row_ranges;
  args.sequences = count;
  args.n = n;
  args.scratch = scratch.data();
  args.dqueries = dqueries.data();
  args.dreferences = dreferences.data();
  args.dv = dv.data();
  context.time(row_of("pointer_gradient", "ours", n, count), pointer_gradient_work(count, count, n),
               [&] { cuda::pointer_gradient(args, context.stream); });
}

}  // namespace

void bench_training(const Context& context) {
  for (const int n : kSizes) {
    for (const int batch : kBatches) {
      attempt(print_row, row_of("pointer_gradient", "ours", n, batch),
              [&] { bench_attention_gradient(context, n, batch); });
    }
  }
}

}  // namespace pointsman::bench
