// SPDX-License-Identifier: Apache-2.0
// The parts of a training step, by device time: decoding with kept activations, attention's backward pass,
// the critic, clip and Adam for one network and for many.
#include "bench/operations/device_network.h"

namespace pointsman::bench {

namespace {

constexpr int kSizes[] = {20, 50, 100};
constexpr int kBatches[] = {128, 1024};
constexpr int kNetworks[] = {1, 132, 1024};

void bench_attention_gradient(const Context& context, const DeviceNetwork& network, int n, int batch) {
  EncodedInstances encoded(network, batch, n);
  encoded.encode(context.stream);
  encoded.project(context.stream);
  Rollouts rollouts(encoded, 1, Decode::kSample, true);
  context.time(row_of("decode_keep", "ours", n, batch), decode_work(batch, n, true),
               [&] { rollouts.decode(context.stream); });

  const size_t slots = size_t(batch) * (n + 1);
  DeviceArray<float> weights(batch), dqueries(kHidden * slots),
      dreferences(kHidden * network.projections.count * slots), dv(size_t{2} * kHidden * batch);
  const DeviceArray<int32_t> first_row(count_up<int32_t>(batch + 1)), sequence_of(count_up<int32_t>(batch));
  const DeviceArray<char> scratch(cuda::pointer_gradient_scratch(batch, batch, n, 1));
  fill_random(weights, 1.0f, 7);
  cuda::PointerGradientArgs args{};
  args.problem = ProblemKind::kTsp;
  args.attention = network.attention();
  args.projections = network.projections;
  args.references = encoded.references.data();
  args.bounds = encoded.bounds.data();
  args.queries = rollouts.queries.data();
  args.orders = rollouts.orders.data();
  args.row_steps = rollouts.row_steps.data();
  args.weights = weights.data();
  args.first_row = first_row.data();
  args.sequence_of = sequence_of.data();
  args.ranges = encoded.set_ranges();
  args.sequences = batch;
  args.n = n;
  args.scratch = scratch.data();
  args.dqueries = dqueries.data();
  args.dreferences = dreferences.data();
  args.dv = dv.data();
  context.time(row_of("pointer_gradient", "ours", n, batch), pointer_gradient_work(batch, batch, n),
               [&] { cuda::pointer_gradient(args, context.stream); });
}

// The critic but its encoder, on the actor's encoder states: as good as its own for timing.
void bench_critic(const Context& context, const DeviceNetwork& network, int n, int batch) {
  Encoder encoder(network, batch, n);
  encoder.encode(context.stream);
  const ParameterLayout::Critic& layout = network.layout.critic;
  const cuda::CudaParameters& parameters = network.parameters;
  const size_t wide = size_t{kHidden} * batch;
  DeviceArray<float> states(4 * wide), queries(3 * wide), references(wide * n), bounds(2 * batch),
      hidden(wide), values(batch), targets(batch), dvalues(batch), dfc2(wide), dhidden(wide),
      dqueries(3 * wide), dv(wide), dreferences(encoder.h.size()), dh(encoder.h.size());
  fill_random(targets, 1.0f, 8);
  const cuda::CriticArgs forward = {.reference = parameters.critic_reference,
                                    .query = parameters.critic_query,
                                    .v = network.tensor(layout.process.v),
                                    .fc1_weight = parameters.critic_fc1,
                                    .fc1_bias = network.tensor(layout.fc1_bias),
                                    .fc2_weight = network.tensor(layout.fc2_weight),
                                    .fc2_bias = network.tensor(layout.fc2_bias),
                                    .h = encoder.h.data(),
                                    .states = states.data(),
                                    .queries = queries.data(),
                                    .references = references.data(),
                                    .bounds = bounds.data(),
                                    .hidden = hidden.data(),
                                    .values = values.data(),
                                    .ranges = encoder.set_ranges(),
                                    .n = n};
  const cuda::CriticGradientArgs backward = {.forward = forward,
                                             .query_weight = network.tensor(layout.process.w_q),
                                             .fc1_stored = network.tensor(layout.fc1_weight),
                                             .targets = targets.data(),
                                             .weight = 1.0f / static_cast<float>(batch),
                                             .dvalues = dvalues.data(),
                                             .dfc2 = dfc2.data(),
                                             .dhidden = dhidden.data(),
                                             .dqueries = dqueries.data(),
                                             .dv = dv.data(),
                                             .dreferences = dreferences.data(),
                                             .dh = dh.data()};
  context.time(row_of("critic_forward", "ours", n, batch), critic_forward_work(batch, n),
               [&] { cuda::critic_forward(forward, context.stream); });
  context.time(row_of("critic_gradient", "ours", n, batch), critic_gradient_work(batch, n),
               [&] { cuda::critic_gradient(backward, context.stream); });
}

void bench_adam(const Context& context, const DeviceNetwork& network, int sets) {
  const auto count = static_cast<int64_t>(network.layout.actor_size), stride = (count + 3) / 4 * 4;
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
  const DeviceNetwork network(context.stream);
  for (const int n : kSizes) {
    for (const int batch : kBatches) {
      attempt(print_row, row_of("pointer_gradient", "ours", n, batch),
              [&] { bench_attention_gradient(context, network, n, batch); });
      attempt(print_row, row_of("critic_forward", "ours", n, batch),
              [&] { bench_critic(context, network, n, batch); });
    }
  }
  for (const int sets : kNetworks) {
    attempt(print_row, row_of("adam_update", "ours", 0, sets), [&] { bench_adam(context, network, sets); });
  }
}

}  // namespace pointsman::bench
