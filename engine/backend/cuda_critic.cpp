// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda_critic.h"

#include <algorithm>

#include "engine/backend/cuda_gradient.h"

namespace pointsman::cuda {

namespace {

constexpr int kProcessSteps = 3;

// A chunk's arrays after its inputs; a chunk's rows are its sequences.
struct CriticArrays {
  CriticArrays(Placement& placement, int n, int sequences, bool backward) {
    const size_t s = sequences, b = backward ? s : 0, slots = n + 1;
    values = placement.take<float>(s);
    states = placement.take<float>(s * (kProcessSteps + 1) * kHidden);
    queries = placement.take<float>(s * kProcessSteps * kHidden);
    references = placement.take<float>(s * n * kHidden);
    bounds = placement.take<float>(s);
    hidden = placement.take<float>(s * kHidden);
    h = placement.take<float>(s * slots * kHidden);
    c = placement.take<float>(b * slots * kHidden);
    tape = placement.take<float>(b * n * kLstmTape);
    dvalues = placement.take<float>(b);
    dfc2 = placement.take<float>(b * kHidden);
    dhidden = placement.take<float>(b * kHidden);
    dqueries = placement.take<float>(b * kProcessSteps * kHidden);
    dv = placement.take<float>(b * kHidden);
    dreferences = placement.take<float>(b * slots * kHidden);
    dh = placement.take<float>(b * slots * kHidden);
    dgates = placement.take<float>(b * slots * kGates);
    sums = placement.take<float>(backward ? input_gradient_scratch(sequences, sequences) : 0);
  }

  float* values;   // [sequences]
  float* states;   // [sequences][4][H]
  float* queries;  // [sequences][3][H]
  float *references, *bounds, *hidden;
  float *h, *c, *tape;
  float *dvalues, *dfc2, *dhidden, *dqueries, *dv, *dreferences, *dh;
  float* dgates;  // [sequences][n + 1][4H]
  float* sums;    // scratch of input_gradient
};

class Critic {
 public:
  Critic(CudaContext& context, const SequenceBatch& batch, const float* targets, float weight)
      : context_(context),
        parameters_(*context.parameters),
        critic_(context.layout->critic),
        batch_(batch),
        targets_(targets),
        weight_(weight) {}

  void run(std::span<float> values) {
    const auto measure = [this](int sequences, int rows) { return need(sequences, rows); };
    const auto chunks = cut_into_chunks(context_, batch_, nullptr, measure);
    for (const CudaChunk& chunk : chunks) run(chunk, values.data() + chunk.first_sequence);
  }

 private:
  ChunkShape shape() const {
    ChunkShape shape;
    shape.weights = targets_ != nullptr;  // the rows' weights hold the targets
    return shape;
  }

  ChunkNeed need(int sequences, int rows) const {
    ChunkShape most = at_most(shape(), batch_, sequences, rows);
    most.tiles = 0;
    Placement uploads, work;
    ChunkArrays(uploads, most);
    work.take<std::byte>(uploads.bytes());
    CriticArrays(work, batch_.n, sequences, targets_ != nullptr);
    return {work.bytes(), uploads.bytes(), sequences * sizeof(float)};
  }

  void run(const CudaChunk& chunk, float* values) {
    Placement work(context_.memory.work(need(chunk.sequences, chunk.rows).device));
    const UploadedChunk uploaded =
        upload(context_, batch_, chunk, shape(), {}, work, [&](const ChunkArrays& to) {
          if (targets_ != nullptr) std::copy_n(targets_ + chunk.first_sequence, chunk.rows, to.weights);
        });
    const CriticArrays arrays(work, batch_.n, chunk.sequences, targets_ != nullptr);
    const CriticArgs args = forward(uploaded, arrays);
    if (targets_ != nullptr) backward(uploaded, args, arrays);
    const size_t bytes = chunk.sequences * sizeof(float);
    std::byte* const host = context_.downloads.reserve(bytes);
    require(cudaMemcpyAsync(host, arrays.values, bytes, cudaMemcpyDeviceToHost, context_.stream.get()),
            "download");
    context_.stream.synchronize();
    std::copy_n(reinterpret_cast<const float*>(host), chunk.sequences, values);
  }

  CriticArgs forward(const UploadedChunk& chunk, const CriticArrays& arrays) const {
    const PreparedLstm& lstm = parameters_.critic_encoder.prepared;
    const int ranges = chunk.shape.sequence_ranges, n = batch_.n;
    lstm_forward({lstm.recurrent, lstm.fold, lstm.bias, chunk.arrays.features, arrays.h, nullptr,
                  targets_ != nullptr ? arrays.c : nullptr, targets_ != nullptr ? arrays.tape : nullptr,
                  chunk.arrays.sequence_ranges, ranges, chunk.shape.sequences, n},
                 context_.stream.get());
    CriticArgs args{};
    args.reference = parameters_.critic_reference;
    args.query = parameters_.critic_query;
    args.v = parameters_.tensor(critic_.process.v);
    args.fc1_weight = parameters_.critic_fc1;
    args.fc1_bias = parameters_.tensor(critic_.fc1_bias);
    args.fc2_weight = parameters_.tensor(critic_.fc2_weight);
    args.fc2_bias = parameters_.tensor(critic_.fc2_bias);
    args.h = arrays.h;
    args.states = arrays.states;
    args.queries = arrays.queries;
    args.references = arrays.references;
    args.bounds = arrays.bounds;
    args.hidden = arrays.hidden;
    args.values = arrays.values;
    args.ranges = chunk.arrays.sequence_ranges;
    args.range_count = ranges;
    args.sequences = chunk.shape.sequences;
    args.n = n;
    critic_forward(args, context_.stream.get());
    return args;
  }

  void backward(const UploadedChunk& chunk, const CriticArgs& forward, const CriticArrays& arrays) const {
    parameters_.clear_folds(chunk.ranges.first_set(), chunk.ranges.sets());
    const AttentionSlots& process = critic_.process;
    critic_gradient({forward, parameters_.tensor(process.w_q), parameters_.tensor(critic_.fc1_weight),
                     chunk.arrays.weights, weight_, arrays.dvalues, arrays.dfc2, arrays.dhidden,
                     arrays.dqueries, arrays.dv, arrays.dreferences, arrays.dh},
                    context_.stream.get());
    sum(chunk, arrays.dvalues, 1, critic_.fc2_bias);
    sum(chunk, arrays.dfc2, kHidden, critic_.fc2_weight);
    sum(chunk, arrays.dhidden, kHidden, critic_.fc1_bias);
    sum(chunk, arrays.dv, kHidden, process.v);
    constexpr int kStates = (kProcessSteps + 1) * kHidden, kQueries = kProcessSteps * kHidden;
    outer(chunk, arrays.dhidden, kHidden, arrays.states + kProcessSteps * kHidden, kStates, 1,
          critic_.fc1_weight);
    for (int step = 0; step < kProcessSteps; ++step) {
      outer(chunk, arrays.dqueries + step * kHidden, kQueries, arrays.states + step * kHidden, kStates, 1,
            process.w_q);
    }
    const int slots = batch_.n + 1;
    outer(chunk, arrays.dreferences, kHidden, arrays.h, kHidden, slots, process.w_ref);
    context_.cublas.multiply({arrays.dreferences, parameters_.tensor(process.w_ref), true, arrays.dh, kHidden,
                              kHidden, slots, true},
                             chunk.ranges.sequences);
    encoder(chunk, arrays);
  }

  void encoder(const UploadedChunk& chunk, const CriticArrays& arrays) const {
    const CudaParameters::Lstm& lstm = parameters_.critic_encoder;
    lstm_backward({parameters_.tensor(lstm.offsets.weight_hh), arrays.tape, arrays.c, arrays.dh, nullptr,
                   nullptr, arrays.dgates, nullptr, nullptr, chunk.arrays.sequence_ranges,
                   chunk.shape.sequence_ranges, chunk.shape.sequences, batch_.n},
                  context_.stream.get());
    add_lstm_gradient(context_, chunk,
                      {lstm, arrays.h, arrays.dgates, nullptr, nullptr, chunk.ranges.sequences,
                       chunk.arrays.sequence_ranges, chunk.shape.sequences},
                      arrays.sums);
    parameters_.unfold(lstm, chunk.ranges.first_set(), chunk.ranges.sets());
  }

  void sum(const UploadedChunk& chunk, const float* rows, int width, size_t offset) const {
    sum_rows({rows, width, width, parameters_.gradient_tensor(offset), chunk.arrays.sequence_ranges,
              chunk.shape.sequence_ranges},
             context_.stream.get());
  }

  void outer(const UploadedChunk& chunk, const float* x, int64_t ldx, const float* y, int64_t ldy, int slots,
             size_t offset) const {
    context_.cublas.accumulate_outer(
        {x, ldx, y, ldy, parameters_.gradient_tensor(offset), kHidden, kHidden, slots},
        chunk.ranges.sequences);
  }

  CudaContext& context_;
  const CudaParameters& parameters_;
  const ParameterLayout::Critic& critic_;
  const SequenceBatch& batch_;
  const float* const targets_;
  const float weight_;
};

}  // namespace

void run_critic(CudaContext& context, const SequenceBatch& batch, const float* targets, float weight,
                std::span<float> values) {
  if (!context.config.has_critic) throw std::invalid_argument("the model has no critic");
  Critic(context, batch, targets, weight).run(values);
}

}  // namespace pointsman::cuda
