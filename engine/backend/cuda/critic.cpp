// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/backend/cuda/forward.h"

namespace pointsman::cuda {
namespace {

// A chunk's device memory; its rows are its sequences.
struct CriticWork {
  CriticWork(Placement& placement, const ChunkShape& shape) : inputs(placement, shape) {
    const size_t s = shape.sequences, n = shape.n, states = n + 1;
    const auto take = [&](size_t count) { return placement.take<float>(count); };
    forward.states = take(s * (kProcessSteps + 1) * kHidden);
    forward.queries = take(s * kProcessSteps * kHidden);
    forward.references = take(s * n * kHidden);
    forward.bounds = take(2 * s);
    forward.hidden = take(s * kHidden);
    forward.values = take(s);
    h = take(s * states * kHidden);
    c = take(s * states * kHidden);
    cells = take(s * n * kLstmCell);
    gradient.dvalues = take(s);
    gradient.dfc2 = take(s * kHidden);
    gradient.dhidden = take(s * kHidden);
    gradient.dqueries = take(s * kProcessSteps * kHidden);
    gradient.dv = take(s * kHidden);
    gradient.dreferences = take(s * states * kHidden);
    gradient.dh = take(s * states * kHidden);
    dgates = take(s * states * kGates);
    sums = take(input_gradient_scratch(shape.sequences, shape.sequences));
  }

  ChunkArrays inputs;
  CriticArgs forward{};
  CriticGradientArgs gradient{};
  float *h, *c, *cells;  // as lstm_forward() writes them
  float* dgates;         // [sequences][n + 1][4H]
  float* sums;           // scratch of input_gradient
};

struct Critic {
  MainStream& main;
  const SequenceBatch& batch;
  const std::span<const float> targets;
  const float weight;
  const CudaParameters& parameters = *main.device.parameters;
  const ParameterLayout::Critic& critic = main.device.layout->critic;
  const ChunkShape flags{.weights = true};  // the rows' weights hold the targets

  void run(std::span<float> values, const StopToken& stop) {
    const auto measure = [this](int sequences, int rows) {
      Placement counted;
      const CriticWork work(counted, at_most(flags, batch, sequences, rows));
      return ChunkNeed{counted.bytes(), work.inputs.bytes, sequences * sizeof(float)};
    };
    const auto chunks = cut_into_chunks(main.memory, batch, nullptr, measure);
    for (const CudaChunk& chunk : chunks) {
      stop.check();
      run(chunk, values.data() + chunk.first_sequence);
    }
  }

  void run(const CudaChunk& chunk, float* values) {
    const ChunkPlan plan(batch, chunk, flags);
    auto work = main.memory.place<CriticWork>(plan.shape);
    upload(main, plan, work.inputs, [&](const ChunkArrays& to) {
      std::copy_n(targets.begin() + chunk.first_sequence, chunk.rows, to.weights);
    });
    forward(plan.shape, work);
    backward(plan, work);
    const size_t bytes = chunk.sequences * sizeof(float);
    std::byte* const host = main.downloads.reserve(bytes);
    main.download(host, work.forward.values, bytes);
    main.synchronize();
    std::copy_n(reinterpret_cast<const float*>(host), chunk.sequences, values);
  }

  void forward(const ChunkShape& shape, CriticWork& work) const {
    const PreparedLstm& lstm = parameters.critic_encoder.prepared;
    lstm_forward({lstm.recurrent, lstm.fold, lstm.bias, work.inputs.features, work.h, nullptr, work.c,
                  work.cells, work.inputs.sequence_ranges, shape.n},
                 main.get());
    CriticArgs& args = work.forward;
    args.reference = parameters.critic_reference;
    args.query = parameters.critic_query;
    args.v = parameters.tensor(critic.process.v);
    args.fc1_weight = parameters.critic_fc1;
    args.fc1_bias = parameters.tensor(critic.fc1_bias);
    args.fc2_weight = parameters.tensor(critic.fc2_weight);
    args.fc2_bias = parameters.tensor(critic.fc2_bias);
    args.h = work.h;
    args.ranges = work.inputs.sequence_ranges;
    args.n = shape.n;
    critic_forward(args, main.get());
  }

  void backward(const ChunkPlan& plan, CriticWork& work) const {
    const AttentionOffsets& process = critic.process;
    CriticGradientArgs& args = work.gradient;
    args.forward = work.forward;
    args.query_weight = parameters.tensor(process.w_q);
    args.fc1_stored = parameters.tensor(critic.fc1_weight);
    args.targets = work.inputs.weights;
    args.weight = weight;
    parameters.clear_folds(plan.first_set(), plan.sets());
    critic_gradient(args, main.get());
    const auto sum = [&](const float* rows, int width, size_t offset) {
      sum_rows({rows, width, width, parameters.gradient_tensor(offset), work.inputs.sequence_ranges},
               main.get());
    };
    sum(args.dvalues, 1, critic.fc2_bias);
    sum(args.dfc2, kHidden, critic.fc2_weight);
    sum(args.dhidden, kHidden, critic.fc1_bias);
    sum(args.dv, kHidden, process.v);
    products(plan, args, work.h);
    const CudaParameters::Lstm& encoder = parameters.critic_encoder;
    add_lstm_gradient(
        main,
        {parameters.tensor(encoder.offsets.weight_hh), work.cells, work.c, args.dh, nullptr, nullptr,
         work.dgates, nullptr, nullptr, work.inputs.sequence_ranges, plan.shape.n},
        {encoder, work.h, work.inputs.features, nullptr, nullptr, plan.sequence_ranges, work.sums});
    parameters.unfold(encoder, plan.first_set(), plan.sets());
  }

  // Gradients of the matrices, and what the references send back to the encoder.
  void products(const ChunkPlan& plan, const CriticGradientArgs& args, const float* h) const {
    constexpr int kStates = (kProcessSteps + 1) * kHidden, kQueries = kProcessSteps * kHidden;
    const auto outer = [&](const float* x, int64_t ldx, const float* y, int64_t ldy, int states,
                           size_t offset) {
      main.cublas->accumulate_outer(
          {x, ldx, y, ldy, parameters.gradient_tensor(offset), kHidden, kHidden, states},
          plan.sequence_ranges);
    };
    const int states = plan.shape.n + 1;
    const float* process_states = args.forward.states;
    outer(args.dhidden, kHidden, process_states + kProcessSteps * kHidden, kStates, 1, critic.fc1_weight);
    for (int step = 0; step < kProcessSteps; ++step) {
      outer(args.dqueries + step * kHidden, kQueries, process_states + step * kHidden, kStates, 1,
            critic.process.w_q);
    }
    outer(args.dreferences, kHidden, h, kHidden, states, critic.process.w_ref);
    main.cublas->multiply({args.dreferences, kHidden, parameters.tensor(critic.process.w_ref), args.dh,
                           kHidden, kHidden, states, true},
                          plan.sequence_ranges);
  }
};

}  // namespace

void run_critic(MainStream& main, const SequenceBatch& batch, std::span<const float> targets, float weight,
                std::span<float> values, const StopToken& stop) {
  if (!main.device.config.has_critic) throw std::invalid_argument("the model has no critic");
  main.make_cublas();
  Critic{main, batch, targets, weight}.run(values, stop);
}

}  // namespace pointsman::cuda
