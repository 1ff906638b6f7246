// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda_gradient.h"

#include <algorithm>

namespace pointsman::cuda {

namespace {

// Gradients of a chunk's activations. The pointer gradient's scratch is done with before the recurrences
// begin, and the decoder's before the encoder's: they lie in the same memory.
struct BackwardArrays {
  BackwardArrays(Placement& placement, int slices, int glimpses, int n, int sequences, int rows) {
    const size_t s = sequences, r = rows, slots = n + 1, most = std::max(s, r);
    dqueries = placement.take<float>(r * slots * kHidden);
    dreferences = placement.take<float>(s * slots * slices * kHidden);
    dv = placement.take<float>(s * 2 * kHidden);
    dh_start = placement.take<float>(r * kHidden);
    dc_start = placement.take<float>(r * kHidden);
    dc_last = placement.take<float>(s * kHidden);
    sums = placement.take<float>(std::max(input_gradient_scratch(sequences, sequences),
                                          input_gradient_scratch(rows, std::min(sequences, rows))));
    const size_t dh_floats = most * slots * kHidden, dgate_floats = most * slots * kGates;
    Placement recurrences;
    recurrences.take<float>(dh_floats);
    recurrences.take<float>(dgate_floats);
    const auto scratch_bytes = static_cast<size_t>(pointer_gradient_scratch(rows, sequences, n, glimpses));
    shared = placement.take<std::byte>(std::max(recurrences.bytes(), scratch_bytes));
    Placement placed(shared);
    dh = placed.take<float>(dh_floats);
    dgates = placed.take<float>(dgate_floats);
  }

  float* dqueries;             // [rows][n + 1][H]
  float* dreferences;          // [sequences][n + 1][slices * H]
  float* dv;                   // [sequences][2][H]
  float *dh_start, *dc_start;  // [rows][H]
  float* dc_last;              // [sequences][H]
  float* sums;                 // scratch of input_gradient
  std::byte* shared;           // scratch of pointer_gradient, or
  float *dh, *dgates;          // [rows or sequences][n + 1][H], [..][4H]
};

// What the forced decode writes and nobody reads, then the gradients.
struct Work {
  Work(Placement& placement, const CudaContext& context, int n, int sequences, int rows, int tiles)
      : results(placement, n, rows, tiles),
        backward(placement, reference_slices(context.config).count, context.config.glimpses, n, sequences,
                 rows) {}
  RolloutArrays results;
  BackwardArrays backward;
};

ChunkShape shape() {
  ChunkShape shape;
  shape.orders = shape.weights = true;
  return shape;
}

ChunkNeed need(const CudaContext& context, const SequenceBatch& batch, int sequences, int rows) {
  const ChunkShape most = at_most(shape(), batch, sequences, rows);
  Placement uploads, work;
  ChunkArrays(uploads, most);
  work.take<std::byte>(uploads.bytes());
  Activations(work, reference_slices(context.config).count, batch.n, sequences, rows, true);
  Work(work, context, batch.n, sequences, rows, most.tiles);
  return {work.bytes(), uploads.bytes(), 0};
}

class Gradient {
 public:
  Gradient(CudaContext& context, const GradientRequest& request)
      : context_(context),
        parameters_(*context.parameters),
        layout_(*context.layout),
        request_(request),
        batch_(request.sequences),
        slices_(reference_slices(context.config)) {}

  void run() {
    const bool taped = context_.memory.holds() && context_.tape_head.use(request_);
    if (!taped || !run_from_tape()) run_chunks();
  }

 private:
  // Returns false when memory had to grow, and lost what it held.
  bool run_from_tape() {
    const int count = batch_.count;
    Placement counted;
    Activations(counted, slices_.count, batch_.n, count, count, true);
    std::byte* const block =
        context_.memory.work(need(context_, batch_, count, count).device - counted.bytes());
    if (!context_.memory.holds()) return false;
    Placement activations(context_.memory.held()), work(block);
    const UploadedChunk uploaded = upload_chunk(whole_batch(batch_), {}, work);
    parameters_.clear_folds(uploaded.ranges.first_set(), uploaded.ranges.sets());
    run(uploaded, Activations(activations, slices_.count, batch_.n, count, count, true),
        Work(work, context_, batch_.n, count, count, 0).backward);
    unfold(uploaded.ranges.first_set(), uploaded.ranges.sets());
    return true;
  }

  void run_chunks() {
    context_.memory.let_go();
    const auto measure = [this](int sequences, int rows) { return need(context_, batch_, sequences, rows); };
    const auto chunks = cut_into_chunks(context_, batch_, request_.counts, measure);
    if (chunks.empty()) return;
    const int first_set = batch_.set_of(0), sets = batch_.set_of(batch_.count - 1) - first_set + 1;
    parameters_.clear_folds(first_set, sets);
    for (const CudaChunk& chunk : chunks) {
      if (chunk.rows > 0) run(chunk);
    }
    unfold(first_set, sets);
  }

  void run(const CudaChunk& chunk) {
    Placement work(context_.memory.work(need(context_, batch_, chunk.sequences, chunk.rows).device));
    const int rows = tile_rows(context_, batch_.n, chunk.rows);
    const UploadedChunk uploaded = upload_chunk(chunk, cut_into_tiles(batch_, chunk, rows), work);
    const Activations activations(work, slices_.count, batch_.n, chunk.sequences, chunk.rows, true);
    const Work placed(work, context_, batch_.n, chunk.sequences, chunk.rows, uploaded.shape.tiles);
    DecodeSettings settings;
    settings.problem = batch_.problem;
    settings.policy = request_.policy;
    encode(context_, uploaded, activations, true, settings.precision);
    decode(context_, settings, uploaded, activations, true, placed.results);
    run(uploaded, activations, placed.backward);
  }

  UploadedChunk upload_chunk(const CudaChunk& chunk, const DecodeTiles& tiles, Placement& work) {
    return upload(context_, batch_, chunk, shape(), tiles, work, [&](const ChunkArrays& to) {
      std::copy_n(request_.orders + chunk.first_result * batch_.n, static_cast<size_t>(chunk.rows) * batch_.n,
                  to.orders);
      std::copy_n(request_.weights + chunk.first_result, chunk.rows, to.weights);
    });
  }

  void run(const UploadedChunk& chunk, const Activations& activations, const BackwardArrays& arrays) const {
    attention(chunk, activations, arrays);
    decoder(chunk, activations, arrays);
    encoder(chunk, activations, arrays);
  }

  void attention(const UploadedChunk& chunk, const Activations& activations, const BackwardArrays& to) const {
    const ChunkArrays& in = chunk.arrays;
    PointerGradientArgs args{};
    args.problem = batch_.problem;
    args.attention = attention_parameters(context_, request_.policy);
    args.slices = slices_;
    args.references = activations.references;
    args.bounds = activations.bounds;
    args.queries = activations.queries;
    args.orders = in.orders;
    args.row_steps = activations.row_steps;
    args.weights = in.weights;
    args.item_weights = in.item_weights;
    args.capacities = in.capacities;
    args.stop_at_first_misfit = request_.policy.stop_at_first_misfit;
    args.first_row = in.first_row;
    args.sequence_of = in.sequence_of;
    args.ranges = in.row_ranges;
    args.range_count = chunk.shape.row_ranges;
    args.rows = chunk.shape.rows;
    args.sequences = chunk.shape.sequences;
    args.n = batch_.n;
    args.scratch = to.shared;
    args.dqueries = to.dqueries;
    args.dreferences = to.dreferences;
    args.dv = to.dv;
    pointer_gradient(args, context_.stream.get());
    const auto sum = [&](const float* in_rows, size_t offset) {
      sum_rows({in_rows, 2 * kHidden, kHidden, parameters_.gradient_tensor(offset), in.sequence_ranges,
                chunk.shape.sequence_ranges},
               context_.stream.get());
    };
    if (context_.config.glimpses > 0) sum(to.dv, layout_.glimpse.v);
    sum(to.dv + kHidden, layout_.pointer.v);
  }

  void decoder(const UploadedChunk& chunk, const Activations& activations,
               const BackwardArrays& arrays) const {
    const int n = batch_.n, slots = n + 1;
    context_.cublas.accumulate_outer(
        {arrays.dqueries, kHidden, activations.h, kHidden,
         parameters_.gradient_tensor(parameters_.query_offset), kHidden, kHidden, slots},
        chunk.ranges.rows);
    context_.cublas.multiply({arrays.dqueries, parameters_.tensor(parameters_.query_offset), true, arrays.dh,
                              kHidden, kHidden, slots, false},
                             chunk.ranges.rows);
    const CudaParameters::Lstm& lstm = parameters_.decoder;
    lstm_backward({parameters_.tensor(lstm.offsets.weight_hh), activations.tape, activations.c, arrays.dh,
                   nullptr, activations.row_steps, arrays.dgates, arrays.dh_start, arrays.dc_start,
                   chunk.arrays.row_ranges, chunk.shape.row_ranges, chunk.shape.rows, n},
                  context_.stream.get());
    add_lstm_gradient(context_, chunk,
                      {lstm, activations.h, arrays.dgates, chunk.arrays.orders, chunk.arrays.sequence_of,
                       chunk.ranges.rows, chunk.arrays.row_ranges, chunk.shape.rows},
                      arrays.sums);
  }

  void encoder(const UploadedChunk& chunk, const Activations& activations,
               const BackwardArrays& arrays) const {
    const int n = batch_.n, slots = n + 1, width = slices_.count * kHidden;
    const auto slice = [&](int index, size_t offset) {
      if (index < 0) return;
      context_.cublas.accumulate_outer(
          {arrays.dreferences + index * kHidden, width, activations.encoder_h, kHidden,
           parameters_.gradient_tensor(offset), kHidden, kHidden, slots},
          chunk.ranges.sequences);
    };
    slice(slices_.glimpse, layout_.glimpse.w_ref);
    slice(slices_.pointer, layout_.pointer.w_ref);
    slice(slices_.values, layout_.pointer.w_q);
    slice(slices_.requeries, layout_.glimpse.w_q);
    context_.cublas.multiply(
        {arrays.dreferences, parameters_.projections, false, arrays.dh, width, kHidden, slots, false},
        chunk.ranges.sequences);
    start_gradient({arrays.dh_start, arrays.dc_start, chunk.arrays.first_row, arrays.dh, arrays.dc_last,
                    chunk.shape.sequences, n},
                   context_.stream.get());
    const CudaParameters::Lstm& lstm = parameters_.encoder;
    lstm_backward({parameters_.tensor(lstm.offsets.weight_hh), activations.encoder_tape,
                   activations.encoder_c, arrays.dh, arrays.dc_last, nullptr, arrays.dgates, nullptr, nullptr,
                   chunk.arrays.sequence_ranges, chunk.shape.sequence_ranges, chunk.shape.sequences, n},
                  context_.stream.get());
    add_lstm_gradient(context_, chunk,
                      {lstm, activations.encoder_h, arrays.dgates, nullptr, nullptr, chunk.ranges.sequences,
                       chunk.arrays.sequence_ranges, chunk.shape.sequences},
                      arrays.sums);
  }

  void unfold(int first_set, int sets) const {
    parameters_.unfold(parameters_.encoder, first_set, sets);
    parameters_.unfold(parameters_.decoder, first_set, sets);
  }

  CudaContext& context_;
  const CudaParameters& parameters_;
  const ParameterLayout& layout_;
  const GradientRequest& request_;
  const SequenceBatch& batch_;
  const ReferenceSlices slices_;
};

}  // namespace

size_t gradient_bytes(const CudaContext& context, const SequenceBatch& batch, int sequences, int rows) {
  return need(context, batch, sequences, rows).device;
}

void add_gradient(CudaContext& context, const GradientRequest& request) {
  if (request.sequences.n < 2) return;  // nothing was chosen
  Gradient(context, request).run();
}

void add_lstm_gradient(const CudaContext& context, const UploadedChunk& chunk, const LstmGradientArgs& args,
                       float* scratch) {
  const CudaParameters& parameters = *context.parameters;
  const int n = chunk.shape.n;
  context.cublas.accumulate_outer(
      {args.dgates, kGates, args.h, kHidden, parameters.gradient_tensor(args.lstm.offsets.weight_hh), kGates,
       kHidden, n + 1},
      args.ranges);
  const bool decoder = args.orders != nullptr;
  input_gradient({args.dgates, chunk.arrays.features, args.orders, args.sequence_of,
                  parameters.gradient_tensor(args.lstm.offsets.bias), args.lstm.fold_gradient,
                  decoder ? args.lstm.start_gradient : MutableSetArray{}, scratch, args.device_ranges,
                  static_cast<int>(args.ranges.size()), args.rows, n},
                 context.stream.get());
}

}  // namespace pointsman::cuda
