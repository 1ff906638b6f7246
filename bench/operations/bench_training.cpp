// SPDX-License-Identifier: Apache-2.0
// The parts of a training step, by device time: decoding with kept activations, attention's backward pass,
// the critic, clip and Adam for one network and for many.
#include "bench/operations/device_batch.h"

namespace pointsman::bench {

namespace {

constexpr int kSizes[] = {20, 50, 100};
constexpr int kBatches[] = {128, 1024};
constexpr int kNetworks[] = {1, 132, 1024};

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

// The critic but its encoder, on the actor's encoder states: as good as its own for timing.
void bench_critic(const Context& context, int n, int count) {
  DeviceBatch batch(context.network, n, count, 1, Decode::kGreedy);
  batch.encode();
  const DeviceNetwork& network = context.network;
  const ParameterLayout::Critic& layout = network.layout->critic;
  const cuda::CudaParameters& parameters = *network.parameters;
  const size_t wide = size_t{kHidden} * count;
  DeviceArray<float> states(4 * wide), queries(3 * wide), references(wide * n), bounds(size_t{2} * count),
      hidden(wide), values(count), targets(count), dvalues(count), dfc2(wide), dhidden(wide),
      dqueries(3 * wide), dv(wide), dreferences(wide * (n + 1)), dh(wide * (n + 1));
  fill_random(targets, 1.0f, 8);
  const cuda::CriticArgs forward = {.reference = parameters.critic_reference,
                                    .query = parameters.critic_query,
                                    .v = network.tensor(layout.process.v),
                                    .fc1_weight = parameters.critic_fc1,
                                    .fc1_bias = network.tensor(layout.fc1_bias),
                                    .fc2_weight = network.tensor(layout.fc2_weight),
                                    .fc2_bias = network.tensor(layout.fc2_bias),
                                    .h = batch.arrays.activations.encoder_h,
                                    .states = states.data(),
                                    .queries = queries.data(),
                                    .references = references.data(),
                                    .bounds = bounds.data(),
                                    .hidden = hidden.data(),
                                    .values = values.data(),
                                    .ranges = batch.arrays.inputs.sequence_ranges,
                                    .n = n};
  const cuda::CriticGradientArgs backward = {.forward = forward,
                                             .query_weight = network.tensor(layout.process.w_q),
                                             .fc1_stored = network.tensor(layout.fc1_weight),
                                             .targets = targets.data(),
                                             .weight = 1.0f / static_cast<float>(count),
                                             .dvalues = dvalues.data(),
                                             .dfc2 = dfc2.data(),
                                             .dhidden = dhidden.data(),
                                             .dqueries = dqueries.data(),
                                             .dv = dv.data(),
                                             .dreferences = dreferences.data(),
                                             .dh = dh.data()};
  context.time(row_of("critic_forward", "ours", n, count), critic_forward_work(count, n),
               [&] { cuda::critic_forward(forward, context.stream); });
  context.time(row_of("critic_gradient", "ours", n, count), critic_gradient_work(count, n),
               [&] { cuda::critic_gradient(backward, context.stream); });
}

void bench_adam(const Context& context, int sets) {
  const auto count = static_cast<int64_t>(context.network.layout->actor_size), stride = (count + 3) / 4 * 4;
  const size_t size = static_cast<size_t>(stride) * sets;
  DeviceArray<float> parameters(size), first(size), second(size), gradient(size), fresh(size);
  fill_random(parameters, 0.08f, 9);
  fill_random(fresh, 1.0f, 10);
  first.fill_bytes(0);
  second.fill_bytes(0);
  const DeviceArray<int64_t> steps(std::vector<int64_t>(sets, 1));
  const DeviceArray<double> norms(sets), scratch(cuda::adam_update_scratch(count, sets));
  const cuda::AdamUpdateArgs args = {.parameters = {parameters.data(), stride},
                                     .first_moment = {first.data(), stride},
                                     .second_moment = {second.data(), stride},
                                     .gradient = {gradient.data(), stride},
                                     .offset = 0,
                                     .count = count,
                                     .first_set = 0,
                                     .sets = sets,
                                     .max_norm = 1.0f,
                                     .learning_rate = 1e-3f,
                                     .beta1 = 0.9f,
                                     .beta2 = 0.999f,
                                     .epsilon = 1e-8f,
                                     .steps = steps.data(),
                                     .norms = norms.data(),
                                     .scratch = scratch.data()};
  const auto refill = [&] {  // the update leaves zeros
    cuda::require(cudaMemcpyAsync(gradient.data(), fresh.data(), gradient.bytes(), cudaMemcpyDeviceToDevice,
                                  context.stream),
                  "gradient");
  };
  const Statistics ms = time_on_device(
      context.stream, [&] { cuda::adam_update(args, context.stream); }, 0.2, refill);
  print_row(timed(row_of("adam_update", "ours", 0, sets), ms,
                  adam_update_work(static_cast<double>(count) * sets), context.peaks));
}

}  // namespace

void bench_training(const Context& context) {
  for (const int n : kSizes) {
    for (const int batch : kBatches) {
      attempt(print_row, row_of("pointer_gradient", "ours", n, batch),
              [&] { bench_attention_gradient(context, n, batch); });
      attempt(print_row, row_of("critic_forward", "ours", n, batch),
              [&] { bench_critic(context, n, batch); });
    }
  }
  for (const int sets : kNetworks) {
    attempt(print_row, row_of("adam_update", "ours", 0, sets), [&] { bench_adam(context, sets); });
  }
}

}  // namespace pointsman::bench
