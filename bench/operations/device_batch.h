// SPDX-License-Identifier: Apache-2.0
// A TSP model with a critic on the device, and batches of random instances, laid out and launched as the
// engine does it.
#pragma once

#include <cstdio>
#include <numeric>
#include <random>

#include "bench/operations/device.h"
#include "engine/backend/cuda/forward.h"

namespace pointsman::bench {

struct DeviceNetwork : cuda::CudaDevice, cuda::MainStream {
  DeviceNetwork() : CudaDevice(0, Precision::kFp32), MainStream(static_cast<CudaDevice&>(*this)) {
    layout.emplace(config);  // of one glimpse, with a critic
    parameters.emplace(config, *layout, 1, get());
    parameters->allocate();
    const std::vector<float> fresh = initial_parameters(config, config.seed);
    upload(parameters->parameters(), fresh.data(), fresh.size() * sizeof(float));
    parameters->prepare(0, 1);
    synchronize();
    make_cublas();
  }

  cuda::SetArray tensor(size_t offset) const { return parameters->tensor(offset); }
};

// What is on the device of a batch.
struct BatchArrays {
  BatchArrays(Placement& placement, const ModelConfig& config, const cuda::ChunkShape& shape)
      : inputs(placement, shape),
        activations(placement, config, shape, false),
        results(placement, shape.n, shape.rows, shape.tiles) {}

  cuda::ChunkArrays inputs;
  cuda::Activations activations;
  cuda::RolloutArrays results;
};

// `samples` rollouts of each of `count` random instances.
class DeviceBatch {
 public:
  DeviceBatch(DeviceNetwork& network, int n, int count, int samples, Decode mode, Precision precision)
      : network_(network),
        precision_(precision),
        features_(size_t{2} * n * count),
        batch_{.problem = ProblemKind::kTsp, .n = n, .count = count, .features = features_.data()},
        chunk_(chunk_of(count, samples)),
        plan_(batch_, chunk_, {.sampling = mode == Decode::kSample},
              cut_into_tiles(batch_, chunk_,
                             cuda::tile_shape(network, n, cuda::decode_load(batch_, chunk_), precision))),
        arrays(place()) {
    request_.decode = mode;
    std::minstd_rand random;
    for (float& feature : features_) feature = std::generate_canonical<float, 24>(random);
    cuda::upload(network_, plan_, arrays.inputs, [&](const cuda::ChunkArrays& to) {
      if (!plan_.shape.sampling) return;
      std::iota(to.keys, to.keys + count, uint64_t{0});
      std::fill_n(to.first_samples, count, 0u);
    });
  }

  void encode() { cuda::encode(network_, plan_.shape, arrays.inputs, arrays.activations, precision_); }
  void decode() {
    cuda::decode(network_, request_, plan_, arrays.inputs, arrays.activations, precision_, arrays.results);
  }

  // Every order a permutation and every log p a number below 0.
  bool sound() const {
    const size_t rows = plan_.shape.rows, n = plan_.shape.n;
    std::vector<int32_t> tours = download(arrays.results.orders, rows * n);
    for (auto tour = tours.begin(); tour != tours.end(); tour += n) {
      std::sort(tour, tour + n);
      for (size_t i = 0; i < n; ++i) {
        if (tour[i] != static_cast<int32_t>(i)) return false;
      }
    }
    const std::vector<double> logs = download(arrays.results.log_probs, rows);
    return std::all_of(logs.begin(), logs.end(), [](double value) { return value < 0.0; });
  }

 private:
  static cuda::CudaChunk chunk_of(int count, int samples) {
    cuda::CudaChunk chunk;
    chunk.sequences = count;
    chunk.rows = count * samples;
    for (int s = 1; s <= count; ++s) chunk.first_row.push_back(s * samples);
    return chunk;
  }

  BatchArrays place() {
    Placement counted;
    BatchArrays(counted, network_.config, plan_.shape);
    Placement placed(block_.reserve(counted.bytes()));
    return {placed, network_.config, plan_.shape};
  }

  DeviceNetwork& network_;
  const Precision precision_;
  RolloutRequest request_;
  std::vector<float> features_;
  const SequenceBatch batch_;
  const cuda::CudaChunk chunk_;
  const cuda::ChunkPlan plan_;
  cuda::DeviceBuffer block_;

 public:
  const BatchArrays arrays;
};

inline void print_row(const Json& row) {
  std::printf("%s\n", row.dump().c_str());
  std::fflush(stdout);
}

// What a bench works with.
struct Context {
  DeviceNetwork& network;
  cudaStream_t stream;  // the network's
  Peaks peaks;

  // Times `run` and prints the row.
  template <typename Run>
  void time(const Json& row, Work work, Run&& run, double seconds = 0.2) const {
    print_row(timed(row, time_on_device(stream, run, seconds), work, peaks));
  }
};

void bench_lstm(const Context& context);    // forward and backward, beside cuDNN
void bench_decode(const Context& context);  // encoder and decode: of one instance, 128 and 10,000

}  // namespace pointsman::bench
