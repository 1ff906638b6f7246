// SPDX-License-Identifier: Apache-2.0
// Fresh parameters of a TSP model with a critic on the device, as the kernels read them.
#pragma once

#include "bench/operations/device_timing.h"
#include "kernels/cuda/cuda_operations.h"
#include "models/parameter_layout.h"

namespace pointsman::bench {

struct DeviceLstm {
  LstmOffsets offsets;
  DeviceArray<float> recurrent{kHidden * kGates}, fold{2 * kGates}, bias{kGates}, start_bias{kGates};

  cuda::PreparedLstm prepared() const {
    cuda::PreparedLstm lstm{{recurrent.data(), 0}, {fold.data(), 0}, {bias.data(), 0}, {}};
    if (offsets.start >= 0) lstm.start_bias = {start_bias.data(), 0};
    return lstm;
  }
};

class DeviceNetwork {
 public:
  explicit DeviceNetwork(cudaStream_t stream)
      : layout(config()),
        parameters(initial_parameters(config(), 1234)),
        encoder{layout.encoder},
        decoder{layout.decoder},
        critic_encoder{layout.critic.encoder} {
    for (const DeviceLstm* lstm : {&encoder, &decoder, &critic_encoder}) {
      cuda::prepare_lstm(all(), lstm->offsets, lstm->prepared(), 1, stream);
    }
    square(layout.glimpse.w_q, query, stream);
    square(layout.critic.process.w_ref, critic_reference, stream);
    square(layout.critic.process.w_q, critic_query, stream);
    square(layout.critic.fc1_weight, critic_fc1, stream);
    const size_t slices[] = {layout.glimpse.w_ref, layout.pointer.w_ref, layout.pointer.w_q};
    for (int slice = 0; slice < kSlices; ++slice) {
      cuda::prepare_square(all(), static_cast<int64_t>(slices[slice]), {projections.data(), 0},
                           slice * kHidden, kSlices * kHidden, 1, stream);
    }
    cuda::require(cudaStreamSynchronize(stream), "prepare");
  }

  static ModelConfig config() { return {}; }  // of one glimpse, with a critic
  static constexpr int kSlices = 3;

  cuda::SetArray all() const { return {parameters.data(), 0}; }
  cuda::SetArray tensor(size_t offset) const { return {parameters.data() + offset, 0}; }
  cuda::AttentionWeights attention() const {
    return {tensor(layout.glimpse.v), tensor(layout.pointer.v), 1, true, static_cast<float>(config().clip)};
  }

  ParameterLayout layout;
  DeviceArray<float> parameters;
  DeviceLstm encoder, decoder, critic_encoder;
  DeviceArray<float> query{kSquare}, projections{kSlices * kSquare};
  DeviceArray<float> critic_reference{kSquare}, critic_query{kSquare}, critic_fc1{kSquare};

 private:
  void square(size_t offset, const DeviceArray<float>& to, cudaStream_t stream) {
    cuda::prepare_square(all(), static_cast<int64_t>(offset), {to.data(), 0}, 0, kHidden, 1, stream);
  }
};

// Random instances in the unit square with their encoder's states and projected references.
class EncodedInstances {
 public:
  EncodedInstances(const DeviceNetwork& net, int count, int size, Precision precision_ = Precision::kFp32)
      : network(net),
        precision(precision_),
        sequences(count),
        n(size),
        features(size_t{2} * count * size),
        h(size_t{kHidden} * count * (size + 1)),
        c_last(size_t{kHidden} * count),
        references(size_t{kHidden} * DeviceNetwork::kSlices * count * size),
        bounds(size_t{2} * count),
        ranges_(std::vector<cuda::SetRange>{{0, 0, count}}) {
    fill_random(features, 0.5f, 6);  // a shifted unit square is as good
  }

  void encode(cudaStream_t stream) {
    cuda::LstmForwardArgs args{};
    const cuda::PreparedLstm lstm = network.encoder.prepared();
    args.recurrent = {lstm.recurrent.data, 0};
    args.fold = {lstm.fold.data, 0};
    args.bias = {lstm.bias.data, 0};
    args.inputs = features.data();
    args.h = h.data();
    args.c_last = c_last.data();
    args.ranges = ranges_.data();
    args.range_count = 1;
    args.rows = sequences;
    args.steps = n;
    args.precision = precision;
    args.weight_hh = network.tensor(network.layout.encoder.weight_hh);
    cuda::lstm_forward(args, stream);
  }

  void project(cudaStream_t stream) {
    cuda::project_references({{network.projections.data(), 0},
                              projections_of(1),
                              h.data(),
                              references.data(),
                              bounds.data(),
                              ranges_.data(),
                              1,
                              sequences,
                              n},
                             stream);
  }

  const DeviceNetwork& network;
  Precision precision;
  int sequences, n;
  DeviceArray<float> features, h, c_last, references, bounds;

 private:
  DeviceArray<cuda::SetRange> ranges_;
};

// Rollouts of encoded instances: `samples` of each; tiles as the decode kernel takes them.
class Rollouts {
 public:
  Rollouts(const EncodedInstances& encoded, int samples, Decode mode, bool keep)
      : instances(encoded),
        count(encoded.sequences * samples),
        orders(size_t(count) * encoded.n),
        costs(count),
        log_probs(count),
        mode_(mode),
        keep_(keep),
        tile_rows_(rows_of_tile(encoded.n, count)),
        tiles_(make_tiles(encoded.sequences, samples, tile_rows_)),
        keys_(make_keys(encoded.sequences)),
        statistics_(tiles_.size()),
        h(kept(kHidden * (encoded.n + 1))),
        c(kept(kHidden * (encoded.n + 1))),
        cells(kept(kLstmCell * encoded.n)),
        queries(kept(kHidden * encoded.n)),
        row_steps(kept(1)) {}

  void decode(cudaStream_t stream) {
    const DeviceNetwork& network = instances.network;
    const cuda::PreparedLstm lstm = network.decoder.prepared();
    cuda::DecodeArgs args{};
    args.problem = ProblemKind::kTsp;
    args.mode = mode_;
    args.recurrent = {lstm.recurrent.data, 0};
    args.fold = {lstm.fold.data, 0};
    args.bias = {lstm.bias.data, 0};
    args.start_bias = {lstm.start_bias.data, 0};
    args.query = {network.query.data(), 0};
    args.attention = network.attention();
    args.projections = projections_of(1);
    args.references = instances.references.data();
    args.bounds = instances.bounds.data();
    args.encoder_h = instances.h.data();
    args.encoder_c = instances.c_last.data();
    args.features = instances.features.data();
    args.instance_keys = keys_.data();
    args.sample_stride = 1;
    args.seed = 1234;
    args.tiles = tiles_.data();
    args.tile_count = static_cast<int>(tiles_.size());
    args.tile_rows = tile_rows_;
    args.n = instances.n;
    args.precision = instances.precision;
    args.weight_hh = network.tensor(network.layout.decoder.weight_hh);
    args.query_weight = network.tensor(network.layout.glimpse.w_q);
    args.results = {orders.data(), costs.data(), log_probs.data(), statistics_.data()};
    if (keep_) args.record = {h.data(), c.data(), cells.data(), queries.data(), row_steps.data()};
    cuda::decode(args, stream);
  }

  // Every order a permutation and every log p a number below 0.
  bool sound() const {
    const std::vector<int32_t> tours = orders.download();
    std::vector<bool> seen(instances.n);
    for (int row = 0; row < count; ++row) {
      seen.assign(instances.n, false);
      for (int t = 0; t < instances.n; ++t) {
        const int32_t city = tours[size_t(row) * instances.n + t];
        if (city < 0 || city >= instances.n || seen[city]) return false;
        seen[city] = true;
      }
    }
    const std::vector<double> logs = log_probs.download();
    return std::all_of(logs.begin(), logs.end(), [](double value) { return value < 0.0; });
  }

  const EncodedInstances& instances;
  int count;
  DeviceArray<int32_t> orders;
  DeviceArray<double> costs, log_probs;

 private:
  size_t kept(int64_t each) const { return keep_ ? static_cast<size_t>(each) * count : 0; }

  // Fewer rows a block when blocks of the most rows would leave multiprocessors idle.
  static int rows_of_tile(int n, int rollouts) {
    int multiprocessors = 0, device = 0;
    cuda::require(cudaGetDevice(&device), "device");
    cuda::require(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
                  "attribute");
    const int most = cuda::decode_tile_rows(n, false);
    if (most == 0) throw std::runtime_error("n is too large for this device's shared memory");
    return rollouts < most * multiprocessors ? cuda::decode_tile_rows(n, true) : most;
  }

  // Samples of one instance, or neighbouring instances of one rollout each.
  static std::vector<cuda::DecodeTile> make_tiles(int sequences, int samples, int most) {
    std::vector<cuda::DecodeTile> tiles;
    if (samples == 1) {
      for (int first = 0; first < sequences; first += most) {
        tiles.push_back({0, first, 1, 0, std::min(most, sequences - first), first});
      }
      return tiles;
    }
    for (int sequence = 0; sequence < sequences; ++sequence) {
      for (int first = 0; first < samples; first += most) {
        const int64_t result = int64_t{sequence} * samples + first;
        tiles.push_back({0, sequence, 0, first, std::min(most, samples - first), result});
      }
    }
    return tiles;
  }

  static std::vector<uint64_t> make_keys(int sequences) {
    std::vector<uint64_t> keys(sequences);
    for (int s = 0; s < sequences; ++s) keys[s] = static_cast<uint64_t>(s);
    return keys;
  }

  Decode mode_;
  bool keep_;
  int tile_rows_;
  DeviceArray<cuda::DecodeTile> tiles_;
  DeviceArray<uint64_t> keys_;
  DeviceArray<PolicyStatistics> statistics_;

 public:
  DeviceArray<float> h, c, cells, queries;  // only with keep
  DeviceArray<int32_t> row_steps;
};

}  // namespace pointsman::bench
