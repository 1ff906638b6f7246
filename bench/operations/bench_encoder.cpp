// SPDX-License-Identifier: Apache-2.0
// bench_encoder: times the attention encoder's operations on the first CUDA device: its linear layers in
// every precision and tile, beside cuBLAS's product alone (no bias, base or function) and cuBLASLt's with its
// bias, and its self-attention in every precision. Outputs must agree before anything is timed.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "bench/operations/cublaslt_peer.h"
#include "bench/operations/lstm_peer.h"

namespace pointsman::bench {

namespace {

constexpr Precision kPrecisions[] = {Precision::kFp32, Precision::kTf32, Precision::kTf32x3,
                                     Precision::kBf16};
constexpr int kHeads = 8, kSequences = 10000;

// Arrays of one layer, and what runs on them.
struct Layer {
  const DeviceNetwork& network;
  int rows, depth, columns;
  DeviceArray<float> x, plain, in_fours, bias, y;
  DeviceArray<cuda::SetRange> ranges;

  Layer(const DeviceNetwork& net, int row_count, int inputs, int outputs)
      : network(net),
        rows(row_count),
        depth(inputs),
        columns(outputs),
        x(static_cast<size_t>(row_count) * inputs),
        plain(static_cast<size_t>(inputs) * outputs),
        in_fours(plain.size()),
        bias(outputs),
        y(static_cast<size_t>(row_count) * outputs),
        ranges(std::vector<cuda::SetRange>{{0, 0, row_count}}) {
    fill_random(x, 1);
    fill_random(plain, 2);
    fill_random(bias, 3);
    const std::vector<float> matrix = download(plain);
    std::vector<float> fours(matrix.size());
    for (int k = 0; k < depth; ++k) {
      for (int j = 0; j < columns; ++j) fours[cuda::index_in_fours(k, j, columns)] = matrix[k * columns + j];
    }
    in_fours.upload(fours);
  }

  void ours(Precision precision, int tile_rows) const {
    cuda::linear({{in_fours.data(), 0},
                  {bias.data(), 0},
                  x.data(),
                  nullptr,
                  y.data(),
                  depth,
                  columns,
                  cuda::LinearArgs::Function::kNone,
                  false,
                  {ranges.data(), 1, rows},
                  1,
                  precision,
                  tile_rows},
                 network.get());
  }

  void cublas(Precision precision) const {
    const cuda::SetRange all{0, 0, rows};
    network.cublas->multiply(
        {x.data(), depth, {plain.data(), 0}, y.data(), depth, columns, 1, false, precision}, {&all, 1});
  }

  // What `run` makes of the first rows is cuBLAS's fp32 product and the bias.
  template <typename Run>
  void require_agreement(const char* who, Precision precision, Run&& run) {
    const size_t count = static_cast<size_t>(std::min(rows, 256)) * columns;
    cublas(Precision::kFp32);
    const std::vector<float> product = download(y.data(), count), added = download(bias);
    y.fill_bytes(0xff);  // NaN
    run();
    const std::vector<float> found = download(y.data(), count);
    Worst worst;
    for (size_t i = 0; i < count; ++i) {
      worst.show(double{found[i]} - (double{product[i]} + double{added[i % columns]}));
    }
    // Factors are below 1, so that bf16 loses at most 2^-7 a product; those errors have both signs.
    const bool rounds = precision == Precision::kTf32 || precision == Precision::kBf16;
    if (!(worst.value <= (rounds ? 0x1p-7 * std::sqrt(depth) : 1e-3)))
      throw std::runtime_error(std::string(who) + " and cuBLAS disagree");
  }
};

// The fastest of cuBLASLt's algorithms.
Statistics time_cublaslt(Layer& layer, Precision precision) {
  const LinearProblem problem = {layer.x.data(), layer.plain.data(), layer.bias.data(), layer.y.data(),
                                 layer.rows,     layer.depth,        layer.columns};
  Statistics best;
  for (const auto& run : cublaslt_algorithms(problem, precision, layer.network.get())) {
    layer.require_agreement("cuBLASLt", precision, run);
    const Statistics ms = time_on_device(layer.network.get(), run, 0.05);
    if (best.runs == 0 || ms.median < best.median) best = ms;
  }
  return best;
}

void time_linear(const DeviceNetwork& network, Peaks peaks, int rows, int depth, int columns) {
  Layer layer(network, rows, depth, columns);
  const double terms = static_cast<double>(depth) * columns;
  const Work work = {rows * terms, 0.0, 4.0 * (rows * (static_cast<double>(depth) + columns) + terms)};
  const std::string name = "linear_" + std::to_string(depth) + "_" + std::to_string(columns);
  const auto row = [&](const std::string& variant, Precision precision) {
    return row_of(name, variant + " " + name_of(precision), 0, rows);
  };
  for (const Precision precision : kPrecisions) {
    for (const int tile_rows : {32, 128}) {
      const auto run = [&] { layer.ours(precision, tile_rows); };
      layer.require_agreement("linear", precision, run);
      print_row(timed(row("ours, tiles of " + std::to_string(tile_rows) + " rows,", precision),
                      time_on_device(network.get(), run), work, peaks));
    }
    if (precision == Precision::kTf32x3) continue;  // cuBLAS has it not
    print_row(timed(row("cuBLAS", precision), time_on_device(network.get(), [&] { layer.cublas(precision); }),
                    work, peaks));
    attempt(print_row, row("cuBLASLt", precision), [&] {
      print_row(timed(row("cuBLASLt", precision), time_cublaslt(layer, precision), work, peaks));
    });
  }
}

void time_self_attention(const DeviceNetwork& network, Peaks peaks, int n) {
  const size_t rows = static_cast<size_t>(kSequences) * n;
  DeviceArray<float> qkv(rows * 3 * kHidden), out(rows * kHidden);
  fill_random(qkv, 3);
  const double pairs = static_cast<double>(rows) * n;
  const Work work = {pairs * (3.0 * kHidden + 20.0 * kHeads), 0.0, 16.0 * kHidden * rows};
  std::vector<float> expected;
  for (const Precision precision : kPrecisions) {
    const auto run = [&] {
      cuda::self_attention({qkv.data(), out.data(), nullptr, kSequences, n, kHeads, precision},
                           network.get());
    };
    run();
    const std::vector<float> found = download(out.data(), size_t{256} * kHidden);
    if (expected.empty()) expected = found;
    Worst worst;
    for (size_t i = 0; i < found.size(); ++i) worst.show(double{found[i]} - double{expected[i]});
    if (!(worst.value <= 0x1p-4)) throw std::runtime_error("self_attention disagrees with fp32");
    print_row(timed(row_of("self_attention", name_of(precision), n, kSequences),
                    time_on_device(network.get(), run), work, peaks));
  }
}

void bench_encoder() {
  const DeviceNetwork network;
  const Peaks peaks = cuda_peaks(0);
  print_row(peaks_row(peaks));
  constexpr std::pair<int, int> kLayers[] = {
      {kHidden, 3 * kHidden}, {kHidden, kHidden}, {kHidden, 512}, {512, kHidden}};
  for (const int rows : {2560, 20480, 500000}) {
    for (const auto& [depth, columns] : kLayers) {
      attempt(print_row, row_of("linear", "ours", 0, rows),
              [&, inputs = depth, outputs = columns] { time_linear(network, peaks, rows, inputs, outputs); });
    }
  }
  for (const int n : {20, 50, 100}) {
    attempt(print_row, row_of("self_attention", "ours", n, kSequences),
            [&] { time_self_attention(network, peaks, n); });
  }
}

}  // namespace

}  // namespace pointsman::bench

int main() {
  try {
    pointsman::bench::bench_encoder();
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "bench_encoder: %s\n", failure.what());
    return 1;
  }
}
