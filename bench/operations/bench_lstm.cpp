// SPDX-License-Identifier: Apache-2.0
// The encoder's LSTM, forward and backward, beside cuDNN. Both read two numbers a step and return the outputs
// of all steps; "keep" is the forward pass that the backward pass needs, "backward" gives the gradients of
// all weights.
#include "bench/operations/benches.h"
#include "bench/operations/device_timing.h"
#include "bench/operations/lstm_peer.h"
#include "kernels/cuda/cublas_multiply.h"
#include "kernels/cuda/cuda_operations.h"

namespace pointsman::bench {

namespace {

constexpr int kBatches[] = {16, 128, 1024, 8192, 65536};
constexpr int kSteps[] = {20, 50, 100};
constexpr int kCheckedBatch = 128, kCheckedSteps = 20;
constexpr double kBound = 1e-4, kTf32Bound = 1e-2;  // of relative_error
constexpr double kLongestMs = 250.0;                // a variant expected to take longer is left out

std::vector<float> transposed(const std::vector<float>& matrix, int rows, int columns) {
  std::vector<float> result(matrix.size());
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) result[j * rows + i] = matrix[i * columns + j];
  }
  return result;
}

struct Weights {
  Weights() : stored(kGates * kHidden), input(kGates * 2), bias(kGates) {
    fill_random(stored, 0.08f, 1);
    fill_random(input, 0.5f, 2);
    fill_random(bias, 0.08f, 3);
    recurrent = std::make_unique<DeviceArray<float>>(transposed(stored.download(), kGates, kHidden));
    fold = std::make_unique<DeviceArray<float>>(transposed(input.download(), kGates, 2));
  }

  DeviceArray<float> stored, input, bias;               // [4H][H], [4H][2], [4H]
  std::unique_ptr<DeviceArray<float>> recurrent, fold;  // transposed
};

// Our arrays of one shape and what runs on them. Rows are [batch][steps + 1].
class Ours {
 public:
  Ours(const Weights& weights, int batch, int steps, const cuda::Cublas& blas, cudaStream_t stream)
      : weights_(weights),
        batch_(batch),
        steps_(steps),
        blas_(blas),
        stream_(stream),
        x(size_t{2} * batch * steps),
        h(rows() * kHidden),
        dh(rows() * kHidden),
        c_(rows() * kHidden),
        c_last_(size_t{kHidden} * batch),
        cells_(size_t{kLstmCell} * batch * steps),
        dgates_(rows() * kGates),
        ranges_(std::vector<cuda::SetRange>{{0, 0, batch}}),
        scratch_(cuda::input_gradient_scratch(batch, 1)),
        recurrent(kGates * kHidden),
        fold(2 * kGates),
        bias(kGates) {
    fill_random(x, 1.0f, 4);
    fill_random(dh, 1.0f, 5);
  }

  void infer() { forward(false); }
  void keep() { forward(true); }

  void backward_data() {
    cuda::LstmBackwardArgs args{};
    args.weight_hh = {weights_.stored.data(), 0};
    args.cells = cells_.data();
    args.c = c_.data();
    args.dh = dh.data();
    args.dgates = dgates_.data();
    args.ranges = ranges_.data();
    args.range_count = 1;
    args.rows = batch_;
    args.steps = steps_;
    cuda::lstm_backward(args, stream_);
  }

  // recurrent [4H][H] += dgates^T h over all rows.
  void recurrent_gradient() {
    const cuda::SetRange all{0, 0, batch_};
    blas_.accumulate_outer(
        {dgates_.data(), kGates, h.data(), kHidden, {recurrent.data(), 0}, kGates, kHidden, steps_ + 1},
        {&all, 1});
  }

  void input_gradient() {
    cuda::InputGradientArgs args{};
    args.dgates = dgates_.data();
    args.features = x.data();
    args.bias = {bias.data(), 0};
    args.fold = {fold.data(), 0};
    args.scratch = scratch_.data();
    args.ranges = ranges_.data();
    args.range_count = 1;
    args.rows = batch_;
    args.steps = steps_;
    cuda::input_gradient(args, stream_);
  }

  void backward() {
    backward_data();
    recurrent_gradient();
    input_gradient();
  }

  // As the peer gives it.
  LstmAnswer answer() {
    for (DeviceArray<float>* sum : {&recurrent, &fold, &bias}) sum->fill_bytes(0);
    h.fill_bytes(0xFF);
    dgates_.fill_bytes(0xFF);
    keep();
    backward();
    cuda::require(cudaStreamSynchronize(stream_), "our LSTM");
    return {time_major(h.download()), recurrent.download(), transposed(fold.download(), 2, kGates),
            bias.download()};
  }

  // [batch][steps + 1][H] without slot 0 -> [steps][batch][H].
  std::vector<float> time_major(const std::vector<float>& slots) const {
    std::vector<float> result(size_t{kHidden} * batch_ * steps_);
    for (int row = 0; row < batch_; ++row) {
      for (int t = 0; t < steps_; ++t) {
        std::copy_n(&slots[(size_t(row) * (steps_ + 1) + t + 1) * kHidden], kHidden,
                    &result[(size_t(t) * batch_ + row) * kHidden]);
      }
    }
    return result;
  }

 private:
  size_t rows() const { return size_t(batch_) * (steps_ + 1); }

  void forward(bool keep) {
    cuda::LstmForwardArgs args{};
    args.recurrent = {weights_.recurrent->data(), 0};
    args.fold = {weights_.fold->data(), 0};
    args.bias = {weights_.bias.data(), 0};
    args.inputs = x.data();
    args.h = h.data();
    args.c_last = c_last_.data();
    args.c = keep ? c_.data() : nullptr;
    args.cells = keep ? cells_.data() : nullptr;
    args.ranges = ranges_.data();
    args.range_count = 1;
    args.rows = batch_;
    args.steps = steps_;
    cuda::lstm_forward(args, stream_);
  }

  const Weights& weights_;
  int batch_, steps_;
  const cuda::Cublas& blas_;
  cudaStream_t stream_;

 public:
  DeviceArray<float> x, h, dh;

 private:
  DeviceArray<float> c_, c_last_, cells_, dgates_;
  DeviceArray<cuda::SetRange> ranges_;
  DeviceArray<float> scratch_;

 public:
  DeviceArray<float> recurrent, fold, bias;  // gradients
};

void time_ours(const Context& context, Ours& ours, int batch, int steps) {
  const auto row = [&](const char* name, const char* variant) { return row_of(name, variant, steps, batch); };
  const auto time = [&](auto&& run) { return time_on_device(context.stream, run); };
  print_timing(row("lstm_infer", "ours"), time([&] { ours.infer(); }), lstm_forward_work(batch, steps, false),
               context.peaks);
  print_timing(row("lstm_keep", "ours"), time([&] { ours.keep(); }), lstm_forward_work(batch, steps, true),
               context.peaks);
  const Work data = lstm_backward_work(batch, steps), recurrent = recurrent_gradient_work(batch, steps),
             input = input_gradient_work(batch, steps);
  print_timing(row("lstm_backward", "ours"), time([&] { ours.backward(); }), data + recurrent + input,
               context.peaks);
  print_timing(row("lstm_backward_data", "ours"), time([&] { ours.backward_data(); }), data, context.peaks);
  print_timing(row("recurrent_gradient", "cublas"), time([&] { ours.recurrent_gradient(); }), recurrent,
               context.peaks);
  print_timing(row("input_gradient", "ours"), time([&] { ours.input_gradient(); }), input, context.peaks);
}

// The same numbers in the peer's layout.
struct PeerInputs {
  PeerInputs(const Weights& weights, int batch, int steps)
      : x(size_t{2} * batch * steps), dy(size_t{kHidden} * batch * steps) {
    fill_random(x, 1.0f, 4);
    fill_random(dy, 1.0f, 5);
    problem = {batch,    steps,    weights.stored.data(), weights.input.data(), weights.bias.data(),
               x.data(), dy.data()};
  }
  PeerInputs(const Weights& weights, const Ours& ours, int batch, int steps)
      : PeerInputs(weights, batch, steps) {
    const std::vector<float> rows = ours.x.download(), outer = ours.time_major(ours.dh.download());
    std::vector<float> inputs(rows.size());
    for (int row = 0; row < batch; ++row) {
      for (int t = 0; t < steps; ++t) {
        std::copy_n(&rows[(size_t(row) * steps + t) * 2], 2, &inputs[(size_t(t) * batch + row) * 2]);
      }
    }
    cuda::require(cudaMemcpy(x.data(), inputs.data(), inputs.size() * sizeof(float), cudaMemcpyHostToDevice),
                  "x");
    cuda::require(cudaMemcpy(dy.data(), outer.data(), outer.size() * sizeof(float), cudaMemcpyHostToDevice),
                  "dy");
  }

  DeviceArray<float> x, dy;
  LstmProblem problem;
};

// Is the peer's answer ours? Prints the row of the check. A variant that is not offered is skipped.
bool agrees(const Context& context, const Weights& weights, const PeerVariant& variant, Ours& ours,
            const LstmAnswer& answer) {
  Json row = row_of("lstm_equal", variant.name, kCheckedSteps, kCheckedBatch);
  try {
    const PeerInputs inputs(weights, ours, kCheckedBatch, kCheckedSteps);
    const LstmAnswer theirs = make_lstm_peer(variant, inputs.problem, context.stream)->answer();
    const double error =
        std::max({relative_error(answer.y, theirs.y), relative_error(answer.recurrent, theirs.recurrent),
                  relative_error(answer.input, theirs.input), relative_error(answer.bias, theirs.bias)});
    const bool equal = error <= (variant.tf32 ? kTf32Bound : kBound);
    row.update(Json{{"error", std::isfinite(error) ? Json(error) : Json("not a number")}, {"pass", equal}});
    print_row(row);
    return equal;
  } catch (const std::exception& failure) {
    print_skipped(row, failure.what());
    return false;
  }
}

// Times one variant at one shape; returns the milliseconds of its longest part.
double time_peer(const Context& context, const Weights& weights, const PeerVariant& variant, int batch,
                 int steps) {
  const PeerInputs inputs(weights, batch, steps);
  const auto peer = make_lstm_peer(variant, inputs.problem, context.stream);
  const Timing infer = time_on_device(
      context.stream, [&] { peer->infer(); }, 0.05);
  const Timing keep = time_on_device(
      context.stream, [&] { peer->keep(); }, 0.05);
  const Timing backward = time_on_device(
      context.stream, [&] { peer->keep(); }, [&] { peer->backward(); }, 0.05);
  print_timing(row_of("lstm_infer", variant.name, steps, batch), infer);
  print_timing(row_of("lstm_keep", variant.name, steps, batch), keep);
  print_timing(row_of("lstm_backward", variant.name, steps, batch), backward);
  return std::max({infer.median_ms, keep.median_ms, backward.median_ms});
}

// All batches of one length, upward, until one would take too long.
void time_peer_batches(const Context& context, const Weights& weights, const PeerVariant& variant,
                       int steps) {
  double last_ms = 0.0;
  int last_batch = kBatches[0];
  for (const int batch : kBatches) {
    const Json row = row_of("lstm_keep", variant.name, steps, batch);
    if (last_ms * batch / last_batch > kLongestMs) {
      print_skipped(row, "slow: " + std::to_string(last_ms) + " ms at batch " + std::to_string(last_batch));
      return;
    }
    try {
      last_ms = time_peer(context, weights, variant, batch, steps);
      last_batch = batch;
    } catch (const std::exception& failure) {
      print_skipped(row, failure.what());
    }
  }
}

}  // namespace

void bench_lstm(const Context& context) {
  const cuda::Cublas blas(context.stream);
  const Weights weights;
  for (const int steps : kSteps) {
    for (const int batch : kBatches) {
      try {
        Ours ours(weights, batch, steps, blas, context.stream);
        time_ours(context, ours, batch, steps);
      } catch (const std::exception& failure) {
        print_skipped(row_of("lstm_keep", "ours", steps, batch), failure.what());
      }
    }
  }
  if (!missing_peer().empty()) print_skipped(row_of("lstm_keep", "cudnn", 0, 0), missing_peer());
  Ours checked(weights, kCheckedBatch, kCheckedSteps, blas, context.stream);
  const LstmAnswer answer = checked.answer();
  for (const PeerVariant& variant : peer_variants()) {
    if (!agrees(context, weights, variant, checked, answer)) continue;
    for (const int steps : kSteps) time_peer_batches(context, weights, variant, steps);
  }
}

}  // namespace pointsman::bench
