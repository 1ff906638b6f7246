// SPDX-License-Identifier: Apache-2.0
// A TSP model with a critic on the device, as the kernels read it, and what they make of random instances.
#pragma once

#include <numeric>

#include "bench/operations/device.h"
#include "engine/backend/cuda_parameters.h"
#include "kernels/cuda/cuda_operations.h"
#include "models/parameter_layout.h"

namespace pointsman::bench {

struct DeviceNetwork {
  explicit DeviceNetwork(cudaStream_t stream) : parameters(config, layout, 1, stream) {
    parameters.allocate();
    const std::vector<float> fresh = initial_parameters(config, config.seed);
    cuda::require(cudaMemcpyAsync(parameters.parameters(), fresh.data(), fresh.size() * sizeof(float),
                                  cudaMemcpyHostToDevice, stream),
                  "parameters");
    parameters.prepare(0, 1);
    cuda::require(cudaStreamSynchronize(stream), "parameters");
  }

  cuda::SetArray tensor(size_t offset) const { return parameters.tensor(offset); }
  cuda::AttentionWeights attention() const {
    return {tensor(layout.glimpse.v), tensor(layout.pointer.v), 1, true, static_cast<float>(config.clip)};
  }

  const ModelConfig config = {};  // of one glimpse, with a critic
  const ParameterLayout layout{config};
  const Projections projections = projections_of(config.glimpses);
  cuda::CudaParameters parameters;
};

// The encoder's pass over random instances of n items. Without `keep_`, no pass with `keep`.
struct Encoder {
  Encoder(const DeviceNetwork& net, int count, int size, bool keep_ = false,
          Precision precision_ = Precision::kFp32)
      : network(net),
        precision(precision_),
        sequences(count),
        n(size),
        features(size_t{2} * count * size),
        h(size_t{kHidden} * count * (size + 1)),
        c_last(size_t{kHidden} * count),
        c(keep_ ? h.size() : 0),
        cells(keep_ ? size_t{kLstmCell} * count * size : 0),
        ranges(std::vector<cuda::SetRange>{{0, 0, count}}) {
    fill_random(features, 0.5f, 6);  // a shifted unit square is as good
  }

  void encode(cudaStream_t stream, bool keep = false) {
    const cuda::PreparedLstm& lstm = network.parameters.encoder.prepared;
    cuda::lstm_forward({lstm.recurrent, lstm.fold, lstm.bias, features.data(), h.data(), c_last.data(),
                        keep ? c.data() : nullptr, keep ? cells.data() : nullptr, set_ranges(), n, precision,
                        network.tensor(network.layout.encoder.weight_hh)},
                       stream);
  }

  cuda::SetRanges set_ranges() const { return {ranges.data(), 1, sequences}; }

  const DeviceNetwork& network;
  const Precision precision;
  const int sequences, n;
  DeviceArray<float> features, h, c_last, c, cells;
  DeviceArray<cuda::SetRange> ranges;  // all rows of the one set
};

// With the projected references that decoding reads.
struct EncodedInstances : Encoder {
  EncodedInstances(const DeviceNetwork& net, int count, int size, Precision precision_ = Precision::kFp32)
      : Encoder(net, count, size, false, precision_),
        references(size_t{kHidden} * net.projections.count * count * size),
        bounds(size_t{2} * count) {}

  void project(cudaStream_t stream) {
    cuda::project_references({network.parameters.references, network.projections, h.data(),
                              references.data(), bounds.data(), set_ranges(), n},
                             stream);
  }

  DeviceArray<float> references, bounds;
};

template <typename T>
std::vector<T> count_up(size_t count) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), T{0});
  return values;
}

// Rollouts of encoded instances: `samples` of each; tiles as the decode kernel takes them.
struct Rollouts {
  Rollouts(const EncodedInstances& encoded, int samples, Decode mode_, bool keep_)
      : instances(encoded),
        count(encoded.sequences * samples),
        mode(mode_),
        keep(keep_),
        tile_rows(rows_of_tile(encoded.n, count)),
        orders(size_t(count) * encoded.n),
        costs(count),
        log_probs(count),
        tiles(make_tiles(encoded.sequences, samples, tile_rows)),
        keys(count_up<uint64_t>(encoded.sequences)),
        statistics(tiles.size()),
        h(kept(kHidden * (encoded.n + 1))),
        c(kept(kHidden * (encoded.n + 1))),
        cells(kept(kLstmCell * encoded.n)),
        queries(kept(kHidden * encoded.n)),
        row_steps(kept(1)) {}

  void decode(cudaStream_t stream) {
    const DeviceNetwork& network = instances.network;
    const cuda::PreparedLstm& lstm = network.parameters.decoder.prepared;
    cuda::DecodeArgs args{};
    args.problem = ProblemKind::kTsp;
    args.mode = mode;
    args.recurrent = lstm.recurrent;
    args.fold = lstm.fold;
    args.bias = lstm.bias;
    args.start_bias = lstm.start_bias;
    args.query = network.parameters.query;
    args.attention = network.attention();
    args.projections = network.projections;
    args.references = instances.references.data();
    args.bounds = instances.bounds.data();
    args.encoder_h = instances.h.data();
    args.encoder_c = instances.c_last.data();
    args.features = instances.features.data();
    args.instance_keys = keys.data();
    args.sample_stride = 1;
    args.seed = 1234;
    args.tiles = tiles.data();
    args.tile_count = static_cast<int>(tiles.size());
    args.tile_rows = tile_rows;
    args.n = instances.n;
    args.precision = instances.precision;
    args.weight_hh = network.tensor(network.layout.decoder.weight_hh);
    args.query_weight = network.tensor(network.layout.glimpse.w_q);
    args.results = {orders.data(), costs.data(), log_probs.data(), statistics.data()};
    if (keep) args.record = {h.data(), c.data(), cells.data(), queries.data(), row_steps.data()};
    cuda::decode(args, stream);
  }

  // Every order a permutation and every log p a number below 0.
  bool sound() const {
    const std::vector<int32_t> tours = orders.download();
    for (size_t row = 0; row < tours.size(); row += instances.n) {
      std::vector<bool> seen(instances.n);
      for (int t = 0; t < instances.n; ++t) {
        const int32_t city = tours[row + t];
        if (city < 0 || city >= instances.n || seen[city]) return false;
        seen[city] = true;
      }
    }
    const std::vector<double> logs = log_probs.download();
    return std::all_of(logs.begin(), logs.end(), [](double value) { return value < 0.0; });
  }

  const EncodedInstances& instances;
  const int count;
  const Decode mode;
  const bool keep;
  const int tile_rows;
  DeviceArray<int32_t> orders;
  DeviceArray<double> costs, log_probs;
  DeviceArray<cuda::DecodeTile> tiles;
  DeviceArray<uint64_t> keys;
  DeviceArray<PolicyStatistics> statistics;
  DeviceArray<float> h, c, cells, queries;  // only with keep
  DeviceArray<int32_t> row_steps;

 private:
  size_t kept(int64_t each) const { return keep ? static_cast<size_t>(each) * count : 0; }

  // Fewer rows a block when blocks of the most rows would leave multiprocessors idle.
  static int rows_of_tile(int n, int rollouts) {
    int multiprocessors = 0;
    cuda::require(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0), "attribute");
    const int most = cuda::decode_tile_rows(n, false);
    if (most == 0) throw std::runtime_error("n is too large for this device's shared memory");
    return rollouts < most * multiprocessors ? cuda::decode_tile_rows(n, true) : most;
  }

  // Samples of one instance, or neighbouring instances of one rollout each.
  static std::vector<cuda::DecodeTile> make_tiles(int sequences, int samples, int most) {
    const bool neighbours = samples == 1;
    const int rows = neighbours ? sequences : samples;
    std::vector<cuda::DecodeTile> tiles;
    for (int sequence = 0; sequence < (neighbours ? 1 : sequences); ++sequence) {
      for (int first = 0; first < rows; first += most) {
        const int64_t result = int64_t{sequence} * samples + first;
        tiles.push_back({0, neighbours ? first : sequence, neighbours, neighbours ? 0 : first,
                         std::min(most, rows - first), result});
      }
    }
    return tiles;
  }
};

}  // namespace pointsman::bench
