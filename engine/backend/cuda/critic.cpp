// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/backend/cuda/calls.h"

namespace pointsman::cuda {

namespace {

// A chunk's device memory; its rows are its sequences.
struct CriticWork {
  CriticWork(Placement& placement, const ChunkShape& shape) : inputs(placement, shape) {
    const bool backward = shape.weights;
    const size_t s = shape.sequences, b = backward ? s : 0, n = shape.n, states = n + 1;
    const auto take = [&](size_t count) { return placement.take<float>(count); };
    forward.states = take(s * (kProcessSteps + 1) * kHidden);
    forward.queries = take(s * kProcessSteps * kHidden);
    forward.references = take(s * n * kHidden);
    forward.bounds = take(2 * s);
    forward.hidden = take(s * kHidden);
    forward.values = take(s);
    h = take(s * states * kHidden);
    c = backward ? take(s * states * kHidden) : nullptr;
    cells = backward ? take(s * n * kLstmCell) : nullptr;
    gradient.dvalues = take(b);
    gradient.dfc2 = take(b * kHidden);
    gradient.dhidden = take(b * kHidden);
    gradient.dqueries = take(b * kProcessSteps * kHidden);
    gradient.dv = take(b * kHidden);
    gradient.dreferences = take(b * states * kHidden);
    gradient.dh = take(b * states * kHidden);
    dgates = take(b * states * kGates);
    sums = take(backward ? input_gradient_scratch(shape.sequences, shape.sequences) : 0);
  }

  ChunkArrays inputs;
  CriticArgs forward{};
  CriticGradientArgs gradient{};
  float *h, *c, *cells;  // as lstm_forward() writes them
  float* dgates;         // [sequences][n + 1][4H]
  float* sums;           // scratch of input_gradient
};

class Critic {
 public:
  Critic(CudaContext& context, const SequenceBatch& batch, const float* targets, float weight)
      : context_(context),
        parameters_(*context.parameters),
        critic_(context.layout->critic),
        batch_(batch),
        targets_(targets),
        weight_(weight) {
    shape_.weights = targets_ != nullptr;  // the rows' weights hold the targets
    if (targets_ != nullptr) context.make_cublas();
  }

  void run(std::span<float> values, const StopToken& stop) {
    const auto measure = [this](int sequences, int rows) {
      ChunkShape most = at_most(shape_, batch_, sequences, rows);
      most.tiles = 0;
      Placement counted;
      const CriticWork work(counted, most);
      return ChunkNeed{counted.bytes(), work.inputs.bytes, sequences * sizeof(float)};
    };
    const auto chunks = cut_into_chunks(context_.memory, batch_, nullptr, measure);
    for (const CudaChunk& chunk : chunks) {
      stop.check();
      run(chunk, values.data() + chunk.first_sequence);
    }
  }

 private:
  void run(const CudaChunk& chunk, float* values) {
    const ChunkPlan plan(batch_, chunk, shape_);
    auto work = context_.memory.place<CriticWork>(plan.shape);
    upload(context_, plan, work.inputs, [&](const ChunkArrays& to) {
      if (targets_ != nullptr) std::copy_n(targets_ + chunk.first_sequence, chunk.rows, to.weights);
    });
    forward(plan.shape, work);
    if (targets_ != nullptr) backward(plan, work);
    const size_t bytes = chunk.sequences * sizeof(float);
    std::byte* const host = context_.downloads.reserve(bytes);
    require(cudaMemcpyAsync(host, work.forward.values, bytes, cudaMemcpyDeviceToHost, context_.stream.get()),
            "download");
    context_.synchronize();
    std::copy_n(reinterpret_cast<const float*>(host), chunk.sequences, values);
  }

  void forward(const ChunkShape& shape, CriticWork& work) const {
    const PreparedLstm& lstm = parameters_.critic_encoder.prepared;
    lstm_forward({lstm.recurrent, lstm.fold, lstm.bias, work.inputs.features, work.h, nullptr, work.c,
                  work.cells, work.inputs.sequence_ranges, shape.n},
                 context_.stream.get());
    CriticArgs& args = work.forward;
    args.reference = parameters_.critic_reference;
    args.query = parameters_.critic_query;
    args.v = parameters_.tensor(critic_.process.v);
    args.fc1_weight = parameters_.critic_fc1;
    args.fc1_bias = parameters_.tensor(critic_.fc1_bias);
    args.fc2_weight = parameters_.tensor(critic_.fc2_weight);
    args.fc2_bias = parameters_.tensor(critic_.fc2_bias);
    args.h = work.h;
    args.ranges = work.inputs.sequence_ranges;
    args.n = shape.n;
    critic_forward(args, context_.stream.get());
  }

  void backward(const ChunkPlan& plan, CriticWork& work) const {
    const ChunkShape& shape = plan.shape;
    const AttentionOffsets& process = critic_.process;
    CriticGradientArgs& args = work.gradient;
    args.forward = work.forward;
    args.query_weight = parameters_.tensor(process.w_q);
    args.fc1_stored = parameters_.tensor(critic_.fc1_weight);
    args.targets = work.inputs.weights;
    args.weight = weight_;
    parameters_.clear_folds(plan.first_set(), plan.sets());
    critic_gradient(args, context_.stream.get());
    const auto sum = [&](const float* rows, int width, size_t offset) {
      sum_rows({rows, width, width, parameters_.gradient_tensor(offset), work.inputs.sequence_ranges},
               context_.stream.get());
    };
    sum(args.dvalues, 1, critic_.fc2_bias);
    sum(args.dfc2, kHidden, critic_.fc2_weight);
    sum(args.dhidden, kHidden, critic_.fc1_bias);
    sum(args.dv, kHidden, process.v);
    products(plan, args, work.h);
    const CudaParameters::Lstm& encoder = parameters_.critic_encoder;
    add_lstm_gradient(context_,
                      {encoder,
                       {parameters_.tensor(encoder.offsets.weight_hh), work.cells, work.c, args.dh, nullptr,
                        nullptr, work.dgates, nullptr, nullptr, work.inputs.sequence_ranges, shape.n},
                       work.h,
                       work.inputs.features,
                       nullptr,
                       nullptr,
                       plan.sequence_ranges,
                       work.sums});
    parameters_.unfold(encoder, plan.first_set(), plan.sets());
  }

  // Gradients of the matrices, and what the references send back to the encoder.
  void products(const ChunkPlan& plan, const CriticGradientArgs& args, const float* h) const {
    constexpr int kStates = (kProcessSteps + 1) * kHidden, kQueries = kProcessSteps * kHidden;
    const auto outer = [&](const float* x, int64_t ldx, const float* y, int64_t ldy, int states,
                           size_t offset) {
      context_.cublas->accumulate_outer(
          {x, ldx, y, ldy, parameters_.gradient_tensor(offset), kHidden, kHidden, states},
          plan.sequence_ranges);
    };
    const int states = plan.shape.n + 1;
    const float* process_states = args.forward.states;
    outer(args.dhidden, kHidden, process_states + kProcessSteps * kHidden, kStates, 1, critic_.fc1_weight);
    for (int step = 0; step < kProcessSteps; ++step) {
      outer(args.dqueries + step * kHidden, kQueries, process_states + step * kHidden, kStates, 1,
            critic_.process.w_q);
    }
    outer(args.dreferences, kHidden, h, kHidden, states, critic_.process.w_ref);
    context_.cublas->multiply({args.dreferences, parameters_.tensor(critic_.process.w_ref), true, args.dh,
                               kHidden, kHidden, states, true},
                              plan.sequence_ranges);
  }

  CudaContext& context_;
  const CudaParameters& parameters_;
  const ParameterLayout::Critic& critic_;
  const SequenceBatch& batch_;
  const float* const targets_;
  const float weight_;
  ChunkShape shape_;
};

}  // namespace

void run_critic(CudaContext& context, const SequenceBatch& batch, const float* targets, float weight,
                std::span<float> values, const StopToken& stop) {
  if (!context.config.has_critic) throw std::invalid_argument("the model has no critic");
  Critic(context, batch, targets, weight).run(values, stop);
}

}  // namespace pointsman::cuda
