// SPDX-License-Identifier: Apache-2.0
// The parts of a training step, by device time: decoding with kept activations, attention's backward pass,
// the critic, clip and Adam for one network and for many.
#include "bench/operations/benches.h"
#include "bench/operations/device_network.h"

namespace pointsman::bench {

namespace {

constexpr int kSizes[] = {20, 50, 100};
constexpr int kBatches[] = {128, 1024};
constexpr int kNetworks[] = {1, 132, 1024};

// Arrays of attention's backward pass for one sampled tour of each instance.
struct AttentionGradient {
  explicit AttentionGradient(const Rollouts& made)
      : rollouts(made),
        sequences(made.instances.sequences),
        n(made.instances.n),
        weights(sequences),
        first_row(count_up(sequences + 1)),
        sequence_of(count_up(sequences)),
        ranges(std::vector<cuda::SetRange>{{0, 0, sequences}}),
        scratch(cuda::pointer_gradient_scratch(sequences, sequences, n, 1)),
        dqueries(size_t{kHidden} * sequences * (n + 1)),
        dreferences(size_t{kHidden} * DeviceNetwork::kSlices * sequences * (n + 1)),
        dv(size_t{2} * kHidden * sequences) {
    fill_random(weights, 1.0f, 7);
  }

  void run(cudaStream_t stream) {
    const EncodedInstances& encoded = rollouts.instances;
    cuda::PointerGradientArgs args{};
    args.problem = ProblemKind::kTsp;
    args.attention = encoded.network.attention();
    args.projections = projections_of(1);
    args.references = encoded.references.data();
    args.bounds = encoded.bounds.data();
    args.queries = rollouts.queries.data();
    args.orders = rollouts.orders.data();
    args.row_steps = rollouts.row_steps.data();
    args.weights = weights.data();
    args.first_row = first_row.data();
    args.sequence_of = sequence_of.data();
    args.ranges = ranges.data();
    args.range_count = 1;
    args.rows = sequences;
    args.sequences = sequences;
    args.n = n;
    args.scratch = scratch.data();
    args.dqueries = dqueries.data();
    args.dreferences = dreferences.data();
    args.dv = dv.data();
    cuda::pointer_gradient(args, stream);
  }

  static std::vector<int32_t> count_up(int count) {
    std::vector<int32_t> values(count);
    for (int k = 0; k < count; ++k) values[k] = k;
    return values;
  }

  const Rollouts& rollouts;
  int sequences, n;
  DeviceArray<float> weights;
  DeviceArray<int32_t> first_row, sequence_of;
  DeviceArray<cuda::SetRange> ranges;
  DeviceArray<char> scratch;
  DeviceArray<float> dqueries, dreferences, dv;
};

void bench_attention_gradient(const Context& context, const DeviceNetwork& network, int n, int batch) {
  EncodedInstances instances(network, batch, n);
  instances.encode(context.stream);
  instances.project(context.stream);
  Rollouts rollouts(instances, 1, Decode::kSample, true);
  const auto decode = [&] { rollouts.decode(context.stream); };
  print_timing(row_of("decode_keep", "ours", n, batch), time_on_device(context.stream, decode),
               decode_work(batch, n, true), context.peaks);
  AttentionGradient gradient(rollouts);
  print_timing(row_of("pointer_gradient", "ours", n, batch),
               time_on_device(context.stream, [&] { gradient.run(context.stream); }),
               pointer_gradient_work(batch, batch, n), context.peaks);
}

// The critic but its encoder, on the actor's encoder states: as good as its own for timing.
struct Critic {
  explicit Critic(EncodedInstances& encoded)
      : instances(encoded),
        states(size_t{4} * kHidden * encoded.sequences),
        queries(size_t{3} * kHidden * encoded.sequences),
        references(size_t{kHidden} * encoded.sequences * encoded.n),
        bounds(encoded.sequences),
        hidden(size_t{kHidden} * encoded.sequences),
        values(encoded.sequences),
        ranges(std::vector<cuda::SetRange>{{0, 0, encoded.sequences}}),
        targets(encoded.sequences),
        dvalues(encoded.sequences),
        dfc2(hidden.size()),
        dhidden(hidden.size()),
        dqueries(queries.size()),
        dv(hidden.size()),
        dreferences(encoded.h.size()),
        dh(encoded.h.size()) {
    fill_random(targets, 1.0f, 8);
  }

  cuda::CriticArgs forward() const {
    const DeviceNetwork& network = instances.network;
    const ParameterLayout::Critic& layout = network.layout.critic;
    cuda::CriticArgs args{};
    args.reference = {network.critic_reference.data(), 0};
    args.query = {network.critic_query.data(), 0};
    args.v = network.tensor(layout.process.v);
    args.fc1_weight = {network.critic_fc1.data(), 0};
    args.fc1_bias = network.tensor(layout.fc1_bias);
    args.fc2_weight = network.tensor(layout.fc2_weight);
    args.fc2_bias = network.tensor(layout.fc2_bias);
    args.h = instances.h.data();
    args.states = states.data();
    args.queries = queries.data();
    args.references = references.data();
    args.bounds = bounds.data();
    args.hidden = hidden.data();
    args.values = values.data();
    args.ranges = ranges.data();
    args.range_count = 1;
    args.sequences = instances.sequences;
    args.n = instances.n;
    return args;
  }

  cuda::CriticGradientArgs backward() const {
    const DeviceNetwork& network = instances.network;
    const ParameterLayout::Critic& layout = network.layout.critic;
    cuda::CriticGradientArgs args{};
    args.forward = forward();
    args.query_weight = network.tensor(layout.process.w_q);
    args.fc1_stored = network.tensor(layout.fc1_weight);
    args.targets = targets.data();
    args.weight = 1.0f / static_cast<float>(instances.sequences);
    args.dvalues = dvalues.data();
    args.dfc2 = dfc2.data();
    args.dhidden = dhidden.data();
    args.dqueries = dqueries.data();
    args.dv = dv.data();
    args.dreferences = dreferences.data();
    args.dh = dh.data();
    return args;
  }

  EncodedInstances& instances;
  DeviceArray<float> states, queries, references, bounds, hidden, values;
  DeviceArray<cuda::SetRange> ranges;
  DeviceArray<float> targets, dvalues, dfc2, dhidden, dqueries, dv, dreferences, dh;
};

void bench_critic(const Context& context, const DeviceNetwork& network, int n, int batch) {
  EncodedInstances instances(network, batch, n);
  instances.encode(context.stream);
  Critic critic(instances);
  const Timing forward =
      time_on_device(context.stream, [&] { cuda::critic_forward(critic.forward(), context.stream); });
  print_timing(row_of("critic_forward", "ours", n, batch), forward, critic_forward_work(batch, n),
               context.peaks);
  const Timing backward =
      time_on_device(context.stream, [&] { cuda::critic_gradient(critic.backward(), context.stream); });
  print_timing(row_of("critic_gradient", "ours", n, batch), backward, critic_gradient_work(batch, n),
               context.peaks);
}

void bench_adam(const Context& context, const DeviceNetwork& network, int sets) {
  const int64_t count = static_cast<int64_t>(network.layout.actor_size), stride = (count + 3) / 4 * 4;
  const size_t size = static_cast<size_t>(stride) * sets;
  DeviceArray<float> parameters(size), first(size), second(size), gradient(size), fresh(size);
  fill_random(parameters, 0.08f, 9);
  fill_random(fresh, 1.0f, 10);
  first.fill_bytes(0);
  second.fill_bytes(0);
  DeviceArray<int64_t> steps(std::vector<int64_t>(sets, 1));
  DeviceArray<double> norms(sets), scratch(cuda::adam_update_scratch(count, sets));
  cuda::AdamUpdateArgs args{};
  args.parameters = {parameters.data(), stride};
  args.first_moment = {first.data(), stride};
  args.second_moment = {second.data(), stride};
  args.gradient = {gradient.data(), stride};
  args.count = count;
  args.sets = sets;
  args.max_norm = 1.0f;
  args.learning_rate = 1e-3f;
  args.beta1 = 0.9f;
  args.beta2 = 0.999f;
  args.epsilon = 1e-8f;
  args.steps = steps.data();
  args.norms = norms.data();
  args.scratch = scratch.data();
  const auto refill = [&] {  // the update leaves zeros
    cuda::require(cudaMemcpyAsync(gradient.data(), fresh.data(), size * sizeof(float),
                                  cudaMemcpyDeviceToDevice, context.stream),
                  "gradient");
  };
  const Timing timing =
      time_on_device(context.stream, refill, [&] { cuda::adam_update(args, context.stream); });
  print_timing(row_of("adam_update", "ours", 0, sets), timing,
               adam_update_work(static_cast<double>(count) * sets), context.peaks);
}

template <typename Bench>
void skip_failures(const char* name, int n, int batch, Bench&& bench) {
  try {
    bench();
  } catch (const std::exception& failure) {
    print_skipped(row_of(name, "ours", n, batch), failure.what());
  }
}

}  // namespace

void bench_training(const Context& context) {
  const DeviceNetwork network(context.stream);
  for (const int n : kSizes) {
    for (const int batch : kBatches) {
      skip_failures("pointer_gradient", n, batch,
                    [&] { bench_attention_gradient(context, network, n, batch); });
      skip_failures("critic_forward", n, batch, [&] { bench_critic(context, network, n, batch); });
    }
  }
  for (const int sets : kNetworks) {
    skip_failures("adam_update", 0, sets, [&] { bench_adam(context, network, sets); });
  }
}

}  // namespace pointsman::bench
