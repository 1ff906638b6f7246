// SPDX-License-Identifier: Apache-2.0
// The encoder's LSTM, forward and backward, beside cuDNN. Both read two numbers a step and return the outputs
// of all steps; "keep" is the forward pass that the backward pass needs, "backward" gives the gradients of
// all weights.
#include "bench/operations/device_batch.h"
#include "bench/operations/lstm_peer.h"

namespace pointsman::bench {

namespace {

constexpr int kBatches[] = {16, 128, 1024, 4096, 65536};
constexpr int kSteps[] = {20, 50, 100};
constexpr int kCheckedBatch = 128, kCheckedSteps = 20;
constexpr double kBound = 1e-4, kTf32Bound = 1e-2;  // of relative_error
constexpr double kLongestMs = 250.0;                // a variant expected to take longer is left out
constexpr double kPeerSeconds = 0.05;               // of each of its many rows

// ||a - b|| / ||b||; NaN where either has one.
double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0.0, norm = 0.0;
  for (size_t k = 0; k < b.size(); ++k) {
    const double delta = static_cast<double>(a[k]) - static_cast<double>(b[k]);
    difference += delta * delta;
    norm += static_cast<double>(b[k]) * static_cast<double>(b[k]);
  }
  return std::sqrt(difference / norm);
}

std::vector<float> transposed(const std::vector<float>& matrix, int rows, int columns) {
  std::vector<float> result(matrix.size());
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) result[j * rows + i] = matrix[i * columns + j];
  }
  return result;
}

// [batch][slots][width], from slot `first` on -> [slots - first][batch][width].
std::vector<float> time_major(const std::vector<float>& rows, int batch, int slots, int first, int width) {
  std::vector<float> result;
  for (int t = first; t < slots; ++t) {
    for (int row = 0; row < batch; ++row) {
      const auto from = rows.begin() + (int64_t{row} * slots + t) * width;
      result.insert(result.end(), from, from + width);
    }
  }
  return result;
}

cuda::SetArray weight_hh(const DeviceNetwork& network) {
  return network.tensor(network.parameters->encoder.offsets.weight_hh);
}

// Our arrays of one shape and what runs on them.
struct Ours {
  Ours(const DeviceNetwork& net, int batch, int steps)
      : network(net),
        stream(net.get()),
        sequences(batch),
        n(steps),
        features(size_t{2} * batch * steps),
        h(size_t{kHidden} * batch * (steps + 1)),
        c(h.size()),
        c_last(size_t{kHidden} * batch),
        cells(size_t{kLstmCell} * batch * steps),
        dh(h.size()),
        dgates(4 * h.size()),
        scratch(cuda::input_gradient_scratch(batch, 1)),
        recurrent(kGates * kHidden),
        fold(2 * kGates),
        bias(kGates),
        ranges(std::vector<cuda::SetRange>{{0, 0, batch}}) {
    fill_random(features, 1.0f, 4);
    fill_random(dh, 1.0f, 5);
  }

  void forward(bool keep) {
    const cuda::PreparedLstm& lstm = network.parameters->encoder.prepared;
    cuda::lstm_forward(
        {lstm.recurrent, lstm.fold, lstm.bias, features.data(), h.data(), c_last.data(),
         keep ? c.data() : nullptr, keep ? cells.data() : nullptr, ranges.data(), 1, sequences, n},
        stream);
  }

  void backward_data() {
    cuda::lstm_backward({weight_hh(network), cells.data(), c.data(), dh.data(), nullptr, nullptr,
                         dgates.data(), nullptr, nullptr, ranges.data(), 1, sequences, n},
                        stream);
  }

  // recurrent [4H][H] += dgates^T h over all rows.
  void recurrent_gradient() {
    const cuda::SetRange all{0, 0, sequences};
    network.cublas->accumulate_outer(
        {dgates.data(), kGates, h.data(), kHidden, {recurrent.data(), 0}, kGates, kHidden, n + 1}, {&all, 1});
  }

  void input_gradient() {
    cuda::input_gradient({dgates.data(),
                          features.data(),
                          nullptr,
                          nullptr,
                          {bias.data(), 0},
                          {fold.data(), 0},
                          {},
                          scratch.data(),
                          ranges.data(),
                          1,
                          sequences,
                          n},
                         stream);
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
    dgates.fill_bytes(0xFF);
    forward(true);
    backward();
    cuda::require(cudaStreamSynchronize(stream), "our LSTM");
    return {time_major(download(h), sequences, n + 1, 1, kHidden), download(recurrent),
            transposed(download(fold), 2, kGates), download(bias)};
  }

  const DeviceNetwork& network;
  const cudaStream_t stream;
  const int sequences, n;
  DeviceArray<float> features, h, c, c_last, cells, dh, dgates, scratch;
  DeviceArray<float> recurrent, fold, bias;  // gradients
  const DeviceArray<cuda::SetRange> ranges;  // all rows of the one set
};

void time_ours(const Context& context, int batch, int steps) {
  Ours ours(context.network, batch, steps);
  const auto row = [&](const char* name, const char* variant = "ours") {
    return row_of(name, variant, steps, batch);
  };
  const Work data = lstm_backward_work(batch, steps), recurrent = recurrent_gradient_work(batch, steps),
             input = input_gradient_work(batch, steps);
  context.time(row("lstm_infer"), lstm_forward_work(batch, steps, false), [&] { ours.forward(false); });
  context.time(row("lstm_keep"), lstm_forward_work(batch, steps, true), [&] { ours.forward(true); });
  context.time(row("lstm_backward"), data + recurrent + input, [&] { ours.backward(); });
  context.time(row("lstm_backward_data"), data, [&] { ours.backward_data(); });
  context.time(row("recurrent_gradient", "cublas"), recurrent, [&] { ours.recurrent_gradient(); });
  context.time(row("input_gradient"), input, [&] { ours.input_gradient(); });
}

// The network's encoder in the peer's layout, with random inputs and gradients.
struct PeerInputs {
  PeerInputs(const DeviceNetwork& network, int batch, int steps)
      : input(kGates * 2), x(size_t{2} * batch * steps), dy(size_t{kHidden} * batch * steps) {
    const cuda::PreparedLstm& lstm = network.parameters->encoder.prepared;
    input.upload(transposed(download(lstm.fold.data, input.size()), 2, kGates));
    fill_random(x, 1.0f, 4);
    fill_random(dy, 1.0f, 5);
    problem = {batch, steps, weight_hh(network).data, input.data(), lstm.bias.data, x.data(), dy.data()};
  }

  DeviceArray<float> input, x, dy;
  LstmProblem problem;
};

// Is the peer's answer ours? Prints the row of the check. A variant that is not offered is skipped.
bool agrees(const Context& context, const PeerVariant& variant, const Ours& ours, const LstmAnswer& answer) {
  Json row = row_of("lstm_equal", variant.name, kCheckedSteps, kCheckedBatch);
  bool equal = false;
  attempt(print_row, row, [&] {
    PeerInputs inputs(ours.network, kCheckedBatch, kCheckedSteps);
    inputs.x.upload(time_major(download(ours.features), kCheckedBatch, kCheckedSteps, 0, 2));
    inputs.dy.upload(time_major(download(ours.dh), kCheckedBatch, kCheckedSteps + 1, 1, kHidden));
    const LstmAnswer theirs = make_lstm_peer(variant, inputs.problem, context.stream)->answer();
    Worst error;
    error.show(relative_error(answer.y, theirs.y));
    error.show(relative_error(answer.recurrent, theirs.recurrent));
    error.show(relative_error(answer.input, theirs.input));
    error.show(relative_error(answer.bias, theirs.bias));
    equal = error.value <= (variant.tf32 ? kTf32Bound : kBound);
    row.update(Json{{"error", error.value}, {"pass", equal}});
    print_row(row);
  });
  return equal;
}

// Times one variant at one shape; returns the milliseconds of its longest part.
double time_peer(const Context& context, const PeerVariant& variant, int batch, int steps) {
  const PeerInputs inputs(context.network, batch, steps);
  const auto peer = make_lstm_peer(variant, inputs.problem, context.stream);
  const auto keep = [&] { peer->keep(); };
  double longest = 0.0;
  const auto time = [&](const char* name, const auto& run, const auto& prepare) {
    const Statistics ms = time_on_device(context.stream, run, kPeerSeconds, prepare);
    print_row(timed(row_of(name, variant.name, steps, batch), ms));
    longest = std::max(longest, ms.median);
  };
  time(
      "lstm_infer", [&] { peer->infer(); }, [] {});
  time("lstm_keep", keep, [] {});
  time(
      "lstm_backward", [&] { peer->backward(); }, keep);
  return longest;
}

// All batches of one length, upward, until one would take too long.
void time_peer_batches(const Context& context, const PeerVariant& variant, int steps) {
  double row_ms = 0.0;  // of the last batch
  for (const int batch : kBatches) {
    attempt(print_row, row_of("lstm_keep", variant.name, steps, batch), [&] {
      if (row_ms * batch > kLongestMs)
        throw std::runtime_error("slow: " + std::to_string(row_ms) + " ms a row");
      row_ms = time_peer(context, variant, batch, steps) / batch;
    });
  }
}

}  // namespace

void bench_lstm(const Context& context) {
  for (const int steps : kSteps) {
    for (const int batch : kBatches) {
      attempt(print_row, row_of("lstm_keep", "ours", steps, batch),
              [&] { time_ours(context, batch, steps); });
    }
  }
  const std::vector<PeerVariant> variants = peer_variants();
  attempt(print_row, row_of("lstm_keep", "cudnn", 0, 0), [&] {
    if (variants.empty()) throw std::runtime_error("no cuDNN where this was built");
  });
  Ours checked(context.network, kCheckedBatch, kCheckedSteps);
  const LstmAnswer answer = checked.answer();
  for (const PeerVariant& variant : variants) {
    if (!agrees(context, variant, checked, answer)) continue;
    for (const int steps : kSteps) time_peer_batches(context, variant, steps);
  }
}

}  // namespace pointsman::bench
