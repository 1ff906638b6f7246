// SPDX-License-Identifier: Apache-2.0
// bench_lstm: times the encoder's LSTM on the first CUDA device, forward and backward, beside cuDNN. Both
// read two numbers a step and return the outputs of all steps; "keep" is the forward pass that the backward
// pass needs, "backward" gives the gradients of all weights.
#include "bench/operations/lstm_peer.h"

namespace pointsman::bench {

namespace {

constexpr int kCheckedBatch = 128, kCheckedSteps = 20;

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

// Our arrays of one shape and what runs on them.
struct Ours {
  Ours(const DeviceNetwork& net, int batch, int steps)
      : network(net),
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
    fill_random(features, 4);
    fill_random(dh, 5);
  }

  void forward(bool keep) {
    const cuda::PreparedLstm& lstm = network.parameters->encoder.prepared;
    cuda::lstm_forward(
        {lstm.recurrent, lstm.fold, lstm.bias, features.data(), h.data(), c_last.data(),
         keep ? c.data() : nullptr, keep ? cells.data() : nullptr, ranges.data(), 1, sequences, n},
        network.get());
  }

  void backward() {
    cuda::lstm_backward({weight_hh(network), cells.data(), c.data(), dh.data(), nullptr, nullptr,
                         dgates.data(), nullptr, nullptr, ranges.data(), 1, sequences, n},
                        network.get());
    // recurrent [4H][H] += dgates^T h over all rows.
    const cuda::SetRange all{0, 0, sequences};
    network.cublas->accumulate_outer(
        {dgates.data(), kGates, h.data(), kHidden, {recurrent.data(), 0}, kGates, kHidden, n + 1}, {&all, 1});
    cuda::InputGradientArgs args{};
    args.dgates = dgates.data();
    args.features = features.data();
    args.bias = {bias.data(), 0};
    args.fold = {fold.data(), 0};
    args.scratch = scratch.data();
    args.ranges = {ranges.data(), 1, sequences};
    args.steps = n;
    cuda::input_gradient(args, network.get());
  }

  LstmAnswer answer() {
    for (DeviceArray<float>* sum : {&recurrent, &fold, &bias}) sum->fill_bytes(0);
    h.fill_bytes(0xFF);
    dgates.fill_bytes(0xFF);
    forward(true);
    backward();
    cuda::require(cudaStreamSynchronize(network.get()), "our LSTM");
    return {sequences,
            n,
            time_major(download(features), sequences, n, 0, 2),
            time_major(download(dh), sequences, n + 1, 1, kHidden),
            time_major(download(h), sequences, n + 1, 1, kHidden),
            download(recurrent),
            transposed(download(fold), 2, kGates),
            download(bias)};
  }

  const DeviceNetwork& network;
  const int sequences, n;
  DeviceArray<float> features, h, c, c_last, cells, dh, dgates, scratch;
  DeviceArray<float> recurrent, fold, bias;  // gradients
  const DeviceArray<cuda::SetRange> ranges;  // all rows of the one set
};

void time_ours(const DeviceNetwork& network, Peaks peaks, int batch, int steps) {
  Ours ours(network, batch, steps);
  const auto time = [&](const char* name, Work work, auto&& run) {
    print_row(timed(row_of(name, "ours", steps, batch), time_on_device(network.get(), run), work, peaks));
  };
  time("lstm_infer", lstm_forward_work(batch, steps, false), [&] { ours.forward(false); });
  time("lstm_keep", lstm_forward_work(batch, steps, true), [&] { ours.forward(true); });
  time("lstm_backward",
       lstm_backward_work(batch, steps) + recurrent_gradient_work(batch, steps) +
           input_gradient_work(batch, steps),
       [&] { ours.backward(); });
}

void bench_lstm() {
  const DeviceNetwork network;
  const Peaks peaks = cuda_peaks(0);
  print_row(peaks_row(peaks));
  for_each_lstm_shape("ours", [&](int batch, int steps) { time_ours(network, peaks, batch, steps); });
  bench_lstm_peers(network, Ours(network, kCheckedBatch, kCheckedSteps).answer());
}

}  // namespace

}  // namespace pointsman::bench

int main() {
  try {
    pointsman::bench::bench_lstm();
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "bench_lstm: %s\n", failure.what());
    return 1;
  }
}
