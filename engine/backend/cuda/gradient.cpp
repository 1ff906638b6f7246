// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "engine/backend/cuda/forward.h"

namespace pointsman::cuda {
namespace {

// A chunk's inputs and the gradients of its activations. The pointer gradient's scratch is done with before
// the recurrences begin, and the decoder's before the encoder's: they lie in the same memory.
struct BackwardArrays {
  BackwardArrays(Placement& placement, const ModelConfig& config, const ChunkShape& shape)
      : inputs(placement, shape) {
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

  ChunkArrays inputs;
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

// Of a gradient without a tape: the forced decode writes results that nobody reads.
struct GradientWork {
  GradientWork(Placement& placement, const ModelConfig& config, const ChunkShape& shape)
      : activations(placement, config, shape, true),
        rest(placement, config, shape),
        unread(placement, shape.n, shape.rows, shape.tiles) {}
  Activations activations;
  BackwardArrays rest;
  RolloutArrays unread;
};

constexpr ChunkShape kInputs{.orders = true, .weights = true, .decode = true};

ChunkNeed need(const MainStream& main, const SequenceBatch& batch, int sequences, int rows) {
  Placement counted;
  const GradientWork work(counted, main.device.config, at_most(kInputs, batch, sequences, rows));
  return {counted.bytes(), work.rest.inputs.bytes, 0};
}

// Of a chunk whose inputs and activations are there.
struct Backward {
  const MainStream& main;
  const GradientRequest& request;
  const ChunkPlan& plan;
  const Activations& activations;
  const BackwardArrays& to;
  const ChunkArrays& in = to.inputs;
  const DecodeRecord& record = activations.decoder;
  const CudaParameters& parameters = *main.device.parameters;
  const ParameterLayout& layout = *main.device.layout;
  const Projections& stacked = parameters.projections;
  const int n = plan.shape.n, sequences = plan.shape.sequences, width = stacked.count * kHidden;

  void run() const {
    attention();
    projections();
    if (request.learned == Learned::kAttention) return;
    decoder();
    references();
    if (main.device.config.encoder == Encoder::kLstm) {
      lstm_encoder();
    } else {
      attention_encoder();
    }
  }

  void attention() const {
    PointerGradientArgs args{};
    args.problem = request.sequences.problem;
    args.attention = attention_weights(main.device, request.policy);
    args.projections = stacked;
    args.references = activations.references;
    args.bounds = activations.bounds;
    args.queries = record.queries;
    args.orders = in.orders;
    args.row_steps = record.row_steps;
    args.weights = in.weights;
    args.features = in.features;
    args.prior = prior_weights(main.device, request.policy);
    args.rules = {in.item_weights, in.capacities, request.policy.stop_at_first_misfit};
    args.first_row = in.first_row;
    args.sequence_of = in.sequence_of;
    args.ranges = in.row_ranges;
    args.sequences = sequences;
    args.n = n;
    args.scratch = to.shared;
    args.dqueries = to.dqueries;
    args.dreferences = to.dreferences;
    args.dv = to.dv;
    args.dprior = to.dprior;
    pointer_gradient(args, main.get());
    const auto sum = [&](const float* rows, int ld, int columns, size_t offset) {
      sum_rows({rows, ld, columns, parameters.gradient_tensor(offset), in.sequence_ranges}, main.get());
    };
    if (main.device.config.glimpses > 0) sum(to.dv, 2 * kHidden, kHidden, layout.glimpse.v);
    sum(to.dv + kHidden, 2 * kHidden, kHidden, layout.pointer.v);
    if (layout.priors > 0) sum(to.dprior, layout.priors, layout.priors, layout.prior);
  }

  // The matrices that queries and references were made with.
  void projections() const {
    const auto outer = [&](const float* x, int64_t ldx, const float* y, size_t offset,
                           const std::vector<SetRange>& ranges) {
      main.cublas->accumulate_outer(
          {x, ldx, y, kHidden, parameters.gradient_tensor(offset), kHidden, kHidden, n + 1}, ranges);
    };
    outer(to.dqueries, kHidden, record.h, layout.query, plan.row_ranges);
    const auto tensors = projection_tensors(layout, stacked);
    for (int i = 0; i < stacked.count; ++i) {
      outer(to.dreferences + i * kHidden, width, activations.encoder_h, tensors[i], plan.sequence_ranges);
    }
  }

  // What the references send back to the encoder, into dh.
  void references() const {
    const auto tensors = projection_tensors(layout, stacked);
    for (int i = 0; i < stacked.count; ++i) {
      main.cublas->multiply({to.dreferences + i * kHidden, width, parameters.tensor(tensors[i]), to.dh,
                             kHidden, kHidden, n + 1, i > 0},
                            plan.sequence_ranges);
    }
  }

  void decoder() const {
    main.cublas->multiply(
        {to.dqueries, kHidden, parameters.tensor(layout.query), to.dh, kHidden, kHidden, n + 1, false},
        plan.row_ranges);
    const CudaParameters::Lstm& lstm = parameters.decoder;
    add_lstm_gradient(main,
                      {parameters.tensor(lstm.offsets.weight_hh), record.cells, record.c, to.dh, nullptr,
                       record.row_steps, to.dgates, to.dh_start, to.dc_start, in.row_ranges, n},
                      {lstm, record.h, in.features, in.orders, in.sequence_of, plan.row_ranges, to.sums});
  }

  void start(float* h, int64_t h_stride, float* c) const {
    start_gradient({to.dh_start, to.dc_start, in.first_row, h, h_stride, c, sequences}, main.get());
  }

  void attention_encoder() const {
    const AttentionGradients& own = to.attention;
    require(cudaMemsetAsync(own.dstart_h, 0, sizeof(float) * sequences * kHidden, main.get()),
            "clearing sums");
    start(own.dstart_h, kHidden, own.dstart_c);
    attention_encoder_gradient(main, plan, in, activations.attention, to.dh, own);
  }

  void lstm_encoder() const {
    start(to.dh + int64_t{n} * kHidden, int64_t{n + 1} * kHidden, to.dc_last);
    const CudaParameters::Lstm& lstm = parameters.encoder;
    add_lstm_gradient(
        main,
        {parameters.tensor(lstm.offsets.weight_hh), activations.encoder_cells, activations.encoder_c, to.dh,
         to.dc_last, nullptr, to.dgates, nullptr, nullptr, in.sequence_ranges, n},
        {lstm, activations.encoder_h, in.features, nullptr, nullptr, plan.sequence_ranges, to.sums});
  }
};

class Gradient : public TapeGradient {
 public:
  Gradient(MainStream& main, const GradientRequest& request)
      : main_(main), parameters_(*main.device.parameters), request_(request), batch_(request.sequences) {
    main.make_cublas();
  }

  void run() {
    const bool taped = main_.memory.holds() && main_.tape_head.use(request_);
    if (taped) place();
    if (taped && main_.memory.holds()) {
      upload(main_, *plan_, work_->inputs, fill_of(chunk_));
      backward_from_held();
    } else {  // nothing was held, or memory had to grow and lost it
      run_chunks();
    }
  }

  // Takes the memory for a gradient of the whole batch, whose activations memory holds.
  void place() {
    chunk_ = whole_batch(batch_, request_.counts);
    plan_.emplace(batch_, chunk_, kInputs);
    work_.emplace(main_.memory.place<BackwardArrays>(main_.device.config, plan_->shape));
  }
  // And for its stage(), with no copy under way from what may go.
  void place_staging() {
    if (work_->inputs.bytes > main_.uploads.bytes()) main_.synchronize();
    main_.uploads.reserve(work_->inputs.bytes);
  }
  void stage() override { cuda::stage(main_, *plan_, work_->inputs.bytes, fill_of(chunk_)); }
  void enqueue() const override {
    main_.upload(work_->inputs.block, main_.uploads.data(), work_->inputs.bytes);
    backward_from_held();
  }

 private:
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
    const ChunkPlan plan(batch_, chunk, kInputs, tiles);
    const auto work = main_.memory.place<GradientWork>(main_.device.config, plan.shape);
    const ChunkArrays& inputs = work.rest.inputs;
    upload(main_, plan, inputs, fill_of(chunk));
    encode(main_, plan, inputs, work.activations);
    decode(main_, forced_rollouts(request_), plan, inputs, work.activations, work.unread);
    Backward{main_, request_, plan, work.activations, work.rest}.run();
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
    Backward{main_, request_, *plan_, activations, *work_}.run();
    unfold(plan_->first_set(), plan_->sets());
  }

  void unfold(int first_set, int sets) const {
    if (main_.device.config.encoder == Encoder::kLstm)
      parameters_.unfold(parameters_.encoder, first_set, sets);
    parameters_.unfold(parameters_.decoder, first_set, sets);
  }

  MainStream& main_;
  const CudaParameters& parameters_;
  const GradientRequest& request_;
  const SequenceBatch& batch_;
  CudaChunk chunk_;  // place(): all of it
  std::optional<ChunkPlan> plan_;
  std::optional<BackwardArrays> work_;
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

void add_lstm_gradient(const MainStream& main, const LstmBackwardArgs& back, const LstmGradientArgs& args) {
  const CudaParameters& parameters = *main.device.parameters;
  const CudaParameters::Lstm& lstm = args.lstm;
  lstm_backward(back, main.get());
  main.cublas->accumulate_outer(
      {back.dgates, kGates, args.h, kHidden, parameters.gradient_tensor(lstm.offsets.weight_hh), kGates,
       kHidden, back.steps + 1},
      args.ranges);
  input_gradient({back.dgates, args.features, args.orders, args.sequence_of,
                  parameters.gradient_tensor(lstm.offsets.bias), lstm.fold_gradient, lstm.start_gradient,
                  args.scratch, back.ranges, back.steps},
                 main.get());
}

}  // namespace pointsman::cuda
