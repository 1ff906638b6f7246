// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "engine/backend/cuda/calls.h"

namespace pointsman::cuda {
namespace {

// Gradients of a chunk's activations. The pointer gradient's scratch is done with before the recurrences
// begin, and the decoder's before the encoder's: they lie in the same memory.
struct BackwardArrays {
  BackwardArrays(Placement& placement, const ModelConfig& config, const ChunkShape& shape) {
    const size_t s = shape.sequences, r = shape.rows, states = shape.n + 1, most = std::max(s, r);
    const bool lstm = config.encoder == Encoder::kLstm;
    const int projections = projections_of(config.glimpses).count;
    dqueries = placement.take<float>(r * states * kHidden);
    dreferences = placement.take<float>(s * states * projections * kHidden);
    dv = placement.take<float>(s * 2 * kHidden);
    dprior = placement.take<float>(s * priors_of(config));
    dh_start = placement.take<float>(r * kHidden);
    dc_start = placement.take<float>(r * kHidden);
    dc_last = placement.take<float>(s * kHidden);
    sums = placement.take<float>(
        std::max(input_gradient_scratch(shape.sequences, shape.sequences),
                 input_gradient_scratch(shape.rows, std::min(shape.sequences, shape.rows))));
    Placement recurrences(placement.next());
    dh = recurrences.take<float>(most * states * kHidden);
    Placement layers = recurrences;
    dgates = recurrences.take<float>((lstm ? most : r) * states * kGates);
    if (!lstm) attention = AttentionGradients(layers, config, shape);
    const auto scratch =
        static_cast<size_t>(pointer_gradient_scratch(shape.rows, shape.sequences, shape.n, config.glimpses));
    shared = placement.take<std::byte>(std::max({recurrences.bytes(), layers.bytes(), scratch}));
  }

  float* dqueries;             // [rows][n + 1][H]
  float* dreferences;          // [sequences][n + 1][projections * H]
  float* dv;                   // [sequences][2][H]
  float* dprior;               // [sequences][priors]
  float *dh_start, *dc_start;  // [rows][H]
  float* dc_last;              // [sequences][H]
  float* sums;                 // scratch of input_gradient
  std::byte* shared;           // scratch of pointer_gradient, or
  float *dh, *dgates;          // [rows or sequences][n + 1][H], [..][4H], or, behind dh,
  AttentionGradients attention;
};

// A chunk's device memory beside its activations.
struct BackwardWork {
  BackwardWork(Placement& placement, const ModelConfig& config, const ChunkShape& shape)
      : inputs(placement, shape), backward(placement, config, shape) {}
  ChunkArrays inputs;
  BackwardArrays backward;
};

// Of a gradient without a tape: the forced decode writes results that nobody reads.
struct GradientWork {
  GradientWork(Placement& placement, const ModelConfig& config, const ChunkShape& shape)
      : activations(placement, config, shape, true),
        rest(placement, config, shape),
        unread(placement, shape.n, shape.rows, shape.tiles) {}
  Activations activations;
  BackwardWork rest;
  RolloutArrays unread;
};

ChunkShape shape() {
  ChunkShape shape;
  shape.orders = shape.weights = true;
  return shape;
}

ChunkNeed need(const MainStream& main, const SequenceBatch& batch, int sequences, int rows) {
  Placement counted;
  const GradientWork work(counted, main.device.config, at_most(shape(), batch, sequences, rows));
  return {counted.bytes(), work.rest.inputs.bytes, 0};
}

class Gradient : public TapeGradient {
 public:
  Gradient(MainStream& main, const GradientRequest& request)
      : main_(main),
        parameters_(*main.device.parameters),
        layout_(*main.device.layout),
        request_(request),
        batch_(request.sequences) {
    main.make_cublas();
  }

  void run() {
    const bool taped = main_.memory.holds() && main_.tape_head.use(request_);
    if (!taped || !run_from_tape()) run_chunks();
  }

  // Takes the memory for a gradient of the whole batch, whose activations memory holds.
  void place() {
    chunk_ = whole_batch(batch_, request_.counts);
    plan_.emplace(batch_, chunk_, shape());
    work_.emplace(main_.memory.place<BackwardWork>(main_.device.config, plan_->shape));
  }
  // And for its stage(), with no copy under way from what may go.
  void place_staging() {
    if (work_->inputs.bytes > main_.uploads.bytes()) main_.synchronize();
    main_.uploads.reserve(work_->inputs.bytes);
  }
  void stage() override { cuda::stage(main_, *plan_, work_->inputs.bytes, fill_of(chunk_)); }
  void enqueue() const override {
    upload_staged(main_, work_->inputs);
    backward_from_held();
  }

 private:
  // Returns false when memory had to grow, and lost what it held.
  bool run_from_tape() {
    place();
    if (!main_.memory.holds()) return false;
    upload(*plan_, work_->inputs);
    backward_from_held();
    return true;
  }

  void run_chunks() {
    main_.memory.let_go();
    const auto measure = [this](int sequences, int rows) { return need(main_, batch_, sequences, rows); };
    const auto chunks = cut_into_chunks(main_.memory, batch_, request_.counts, measure);
    if (chunks.empty()) return;
    const int first_set = batch_.set_of(0), sets = batch_.set_of(batch_.count - 1) - first_set + 1;
    parameters_.clear_folds(first_set, sets);
    for (const CudaChunk& chunk : chunks) {
      request_.stop.check();
      if (chunk.rows > 0) run(chunk);
    }
    unfold(first_set, sets);
  }

  void run(const CudaChunk& chunk) {
    const TileShape tiles = tile_shape(main_.device, batch_.n, decode_load(batch_, chunk), Precision::kFp32);
    const ChunkPlan plan(batch_, chunk, shape(), cut_into_tiles(batch_, chunk, tiles));
    const auto work = main_.memory.place<GradientWork>(main_.device.config, plan.shape);
    upload(plan, work.rest.inputs);
    RolloutRequest forced;
    forced.sequences = batch_;
    forced.decode = Decode::kForced;
    forced.policy = request_.policy;
    encode(main_, plan.shape, work.rest.inputs, work.activations, Precision::kFp32);
    decode(main_, forced, plan, work.rest.inputs, work.activations, Precision::kFp32, work.unread);
    backward(plan, work.activations, work.rest);
  }

  void upload(const ChunkPlan& plan, const ChunkArrays& inputs) {
    cuda::upload(main_, plan, inputs, fill_of(plan.chunk));
  }

  // Writes the chunk's orders and weights.
  std::function<void(const ChunkArrays&)> fill_of(const CudaChunk& chunk) const {
    return [this, &chunk](const ChunkArrays& to) {
      std::copy_n(request_.orders + chunk.first_result * batch_.n, static_cast<size_t>(chunk.rows) * batch_.n,
                  to.orders);
      std::copy_n(request_.weights + chunk.first_result, chunk.rows, to.weights);
    };
  }

  // Of the whole batch, whose inputs are there.
  void backward_from_held() const {
    Placement held(main_.memory.held());
    const Activations activations(held, main_.device.config, plan_->shape, true);
    parameters_.clear_folds(plan_->first_set(), plan_->sets());
    backward(*plan_, activations, *work_);
    unfold(plan_->first_set(), plan_->sets());
  }

  void backward(const ChunkPlan& plan, const Activations& activations, const BackwardWork& work) const {
    attention(plan.shape, work.inputs, activations, work.backward);
    projections(plan, activations, work.backward);
    if (request_.learned == Learned::kAttention) return;
    decoder(plan, work.inputs, activations, work.backward);
    encoder(plan, work.inputs, activations, work.backward);
  }

  void attention(const ChunkShape& shape, const ChunkArrays& in, const Activations& activations,
                 const BackwardArrays& to) const {
    PointerGradientArgs args{};
    args.problem = batch_.problem;
    args.attention = attention_weights(main_.device, request_.policy);
    args.projections = parameters_.projections;
    args.references = activations.references;
    args.bounds = activations.bounds;
    args.queries = activations.decoder.queries;
    args.orders = in.orders;
    args.row_steps = activations.decoder.row_steps;
    args.weights = in.weights;
    args.features = in.features;
    args.prior = prior_weights(main_.device, request_.policy);
    args.rules = {in.item_weights, in.capacities, request_.policy.stop_at_first_misfit};
    args.first_row = in.first_row;
    args.sequence_of = in.sequence_of;
    args.ranges = in.row_ranges;
    args.sequences = shape.sequences;
    args.n = shape.n;
    args.scratch = to.shared;
    args.dqueries = to.dqueries;
    args.dreferences = to.dreferences;
    args.dv = to.dv;
    args.dprior = to.dprior;
    pointer_gradient(args, main_.get());
    const auto sum = [&](const float* rows, int ld, int width, size_t offset) {
      sum_rows({rows, ld, width, parameters_.gradient_tensor(offset), in.sequence_ranges}, main_.get());
    };
    if (main_.device.config.glimpses > 0) sum(to.dv, 2 * kHidden, kHidden, layout_.glimpse.v);
    sum(to.dv + kHidden, 2 * kHidden, kHidden, layout_.pointer.v);
    if (layout_.priors > 0) sum(to.dprior, layout_.priors, layout_.priors, layout_.prior);
  }

  // The matrices that queries and references were made with.
  void projections(const ChunkPlan& plan, const Activations& activations,
                   const BackwardArrays& arrays) const {
    const int states = plan.shape.n + 1, width = parameters_.projections.count * kHidden;
    main_.cublas->accumulate_outer({arrays.dqueries, kHidden, activations.decoder.h, kHidden,
                                    parameters_.gradient_tensor(layout_.query), kHidden, kHidden, states},
                                   plan.row_ranges);
    const auto tensors = projection_tensors(layout_, parameters_.projections);
    for (int i = 0; i < parameters_.projections.count; ++i) {
      main_.cublas->accumulate_outer({arrays.dreferences + i * kHidden, width, activations.encoder_h, kHidden,
                                      parameters_.gradient_tensor(tensors[i]), kHidden, kHidden, states},
                                     plan.sequence_ranges);
    }
  }

  void decoder(const ChunkPlan& plan, const ChunkArrays& in, const Activations& activations,
               const BackwardArrays& arrays) const {
    const ChunkShape& shape = plan.shape;
    const DecodeRecord& record = activations.decoder;
    main_.cublas->multiply({arrays.dqueries, parameters_.tensor(layout_.query), true, arrays.dh, kHidden,
                            kHidden, shape.n + 1, false},
                           plan.row_ranges);
    const CudaParameters::Lstm& lstm = parameters_.decoder;
    add_lstm_gradient(
        main_, {lstm,
                {parameters_.tensor(lstm.offsets.weight_hh), record.cells, record.c, arrays.dh, nullptr,
                 record.row_steps, arrays.dgates, arrays.dh_start, arrays.dc_start, in.row_ranges, shape.n},
                record.h,
                in.features,
                in.orders,
                in.sequence_of,
                plan.row_ranges,
                arrays.sums});
  }

  void encoder(const ChunkPlan& plan, const ChunkArrays& in, const Activations& activations,
               const BackwardArrays& arrays) const {
    const int width = parameters_.projections.count * kHidden;
    main_.cublas->multiply({arrays.dreferences, parameters_.references, false, arrays.dh, width, kHidden,
                            plan.shape.n + 1, false},
                           plan.sequence_ranges);
    if (main_.device.config.encoder == Encoder::kLstm) {
      lstm_encoder(plan, in, activations, arrays);
    } else {
      attention_encoder(plan, in, activations, arrays);
    }
  }

  void start(const ChunkShape& shape, const ChunkArrays& in, const BackwardArrays& arrays, float* h,
             int64_t h_stride, float* c) const {
    start_gradient({arrays.dh_start, arrays.dc_start, in.first_row, h, h_stride, c, shape.sequences},
                   main_.get());
  }

  void attention_encoder(const ChunkPlan& plan, const ChunkArrays& in, const Activations& activations,
                         const BackwardArrays& arrays) const {
    const AttentionGradients& to = arrays.attention;
    require(cudaMemsetAsync(to.dstart_h, 0, sizeof(float) * plan.shape.sequences * kHidden, main_.get()),
            "clearing sums");
    start(plan.shape, in, arrays, to.dstart_h, kHidden, to.dstart_c);
    attention_encoder_gradient(main_, plan, in, activations.attention, arrays.dh, to);
  }

  void lstm_encoder(const ChunkPlan& plan, const ChunkArrays& in, const Activations& activations,
                    const BackwardArrays& arrays) const {
    const ChunkShape& shape = plan.shape;
    start(shape, in, arrays, arrays.dh + static_cast<int64_t>(shape.n) * kHidden,
          static_cast<int64_t>(shape.n + 1) * kHidden, arrays.dc_last);
    const CudaParameters::Lstm& lstm = parameters_.encoder;
    add_lstm_gradient(main_, {lstm,
                              {parameters_.tensor(lstm.offsets.weight_hh), activations.encoder_cells,
                               activations.encoder_c, arrays.dh, arrays.dc_last, nullptr, arrays.dgates,
                               nullptr, nullptr, in.sequence_ranges, shape.n},
                              activations.encoder_h,
                              in.features,
                              nullptr,
                              nullptr,
                              plan.sequence_ranges,
                              arrays.sums});
  }

  void unfold(int first_set, int sets) const {
    if (main_.device.config.encoder == Encoder::kLstm)
      parameters_.unfold(parameters_.encoder, first_set, sets);
    parameters_.unfold(parameters_.decoder, first_set, sets);
  }

  MainStream& main_;
  const CudaParameters& parameters_;
  const ParameterLayout& layout_;
  const GradientRequest& request_;
  const SequenceBatch& batch_;
  CudaChunk chunk_;  // place(): all of it
  std::optional<ChunkPlan> plan_;
  std::optional<BackwardWork> work_;
};

}  // namespace

size_t gradient_bytes(const MainStream& main, const SequenceBatch& batch, int sequences, int rows) {
  return need(main, batch, sequences, rows).device;
}

void add_gradient(MainStream& main, const GradientRequest& request) {
  if (request.sequences.n < 2) return;  // nothing was chosen
  Gradient(main, request).run();
}

std::unique_ptr<TapeGradient> gradient_from_tape(MainStream& main, const GradientRequest& request) {
  auto gradient = std::make_unique<Gradient>(main, request);
  gradient->place();
  gradient->place_staging();
  return gradient;
}

void add_lstm_gradient(const MainStream& main, const LstmGradientArgs& args) {
  const CudaParameters& parameters = *main.device.parameters;
  const LstmBackwardArgs& back = args.back;
  lstm_backward(back, main.get());
  main.cublas->accumulate_outer(
      {back.dgates, kGates, args.h, kHidden, parameters.gradient_tensor(args.lstm.offsets.weight_hh), kGates,
       kHidden, back.steps + 1},
      args.ranges);
  input_gradient({back.dgates, args.features, args.orders, args.sequence_of,
                  parameters.gradient_tensor(args.lstm.offsets.bias), args.lstm.fold_gradient,
                  args.lstm.start_gradient, args.scratch, back.ranges, back.steps},
                 main.get());
}

}  // namespace pointsman::cuda
