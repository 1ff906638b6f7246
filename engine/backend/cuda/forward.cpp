// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/forward.h"

#include <algorithm>

namespace pointsman::cuda {

Activations::Activations(Placement& placement, const ModelConfig& config, const ChunkShape& shape,
                         bool record) {
  const size_t s = shape.sequences, r = shape.rows, n = shape.n, states = n + 1;
  const auto recorded = [&](size_t count) { return record ? placement.take<float>(count) : nullptr; };
  references = placement.take<float>(s * projections_of(config.glimpses).count * n * kHidden);
  bounds = placement.take<float>(s * 2);
  encoder_h = placement.take<float>(s * states * kHidden);
  if (config.encoder == Encoder::kLstm) {
    start_h = encoder_h == nullptr ? nullptr : encoder_h + n * kHidden;
    start_stride = static_cast<int64_t>(states) * kHidden;
    start_c = placement.take<float>(s * kHidden);
    encoder_c = recorded(s * states * kHidden);
    encoder_cells = recorded(s * n * kLstmCell);
  } else {
    attention = AttentionStates(placement, config, shape, record);
    start_h = attention.start_h;
    start_stride = kHidden;
    start_c = attention.start_c;
  }
  decoder.h = recorded(r * states * kHidden);
  decoder.c = recorded(r * states * kHidden);
  decoder.cells = recorded(r * n * kLstmCell);
  decoder.queries = recorded(r * n * kHidden);
  decoder.row_steps = record ? placement.take<int32_t>(r) : nullptr;
}

RolloutArrays::RolloutArrays(Placement& placement, int steps, int rows, int tiles, bool best) {
  block = placement.next();
  Placement packed(block, 1);  // the widest numbers first
  costs = packed.take<double>(rows);
  log_probs = packed.take<double>(rows);
  statistics = packed.take<PolicyStatistics>(tiles);
  orders = packed.take<int32_t>(static_cast<size_t>(rows) * steps);
  winners = packed.take<int32_t>(best ? rows : 0);
  bytes = packed.bytes();
  placement.take<std::byte>(bytes);
}

TileShape tile_shape(const CudaDevice& device, int n, const DecodeLoad& load, Precision wanted,
                     int most_samples) {
  const bool plain = is_plain(device.config.problem);
  const Precision precision = plain ? wanted : Precision::kFp32;
  const int samples = plain && most_samples >= 2 ? std::min(most_samples, kMostTreeSamples) : 0;
  const DecodeKind kind{device.config.problem, precision, projections_of(device.config.glimpses).count};
  const DecodeTiling tiling = decode_tiling(n, load, kind, precision == Precision::kFp32 && samples == 0);
  if (tiling.rows == 0) {
    throw DeviceError("CUDA: " + std::to_string(n) + " items are too many for the shared memory of " +
                      device.properties.name);
  }
  return {tiling, decode_blocks(tiling.rows), samples, precision};
}

AttentionWeights attention_weights(const CudaDevice& device, const Policy& policy) {
  return attention_of(device.config, *device.layout, policy,
                      [&](size_t offset) { return device.parameters->tensor(offset); });
}

PriorWeights prior_weights(const CudaDevice& device, const Policy& policy) {
  if (device.layout->priors == 0) return {};
  return {device.parameters->tensor(device.layout->prior), 1.0f / policy.temperature};
}

void encode(const DeviceStream& stream, const ChunkPlan& plan, const ChunkArrays& inputs,
            const Activations& to) {
  const Precision precision = plan.tile_shape.precision;
  const int n = plan.shape.n;
  const CudaParameters& parameters = *stream.device.parameters;
  if (stream.device.config.encoder == Encoder::kLstm) {
    const PreparedLstm& lstm = parameters.encoder.prepared;
    lstm_forward({lstm.recurrent, lstm.fold, lstm.bias, inputs.features, to.encoder_h, to.start_c,
                  to.encoder_c, to.encoder_cells, inputs.sequence_ranges, n, precision,
                  parameters.tensor(parameters.encoder.offsets.weight_hh), plan.shape.width},
                 stream.get());
  } else {
    encode_by_attention(stream, plan.shape, inputs, to.attention, to.encoder_h);
  }
  project_references({parameters.references, parameters.projections, to.encoder_h, to.references, to.bounds,
                      inputs.sequence_ranges, n, packs_references(precision)},
                     stream.get());
}

void decode(const DeviceStream& stream, const RolloutRequest& request, const ChunkPlan& plan,
            const ChunkArrays& inputs, const Activations& activations, const DecodeResults& to) {
  const CudaParameters& parameters = *stream.device.parameters;
  const PreparedLstm& lstm = parameters.decoder.prepared;
  DecodeArgs args{};
  args.problem = request.sequences.problem;
  args.mode = request.decode;
  args.recurrent = lstm.recurrent;
  args.fold = lstm.fold;
  args.bias = lstm.bias;
  args.start_bias = lstm.start_bias;
  args.query = parameters.query;
  args.attention = attention_weights(stream.device, request.policy);
  args.prior = prior_weights(stream.device, request.policy);
  args.projections = parameters.projections;
  args.references = activations.references;
  args.bounds = activations.bounds;
  args.start_h = activations.start_h;
  args.start_stride = activations.start_stride;
  args.start_c = activations.start_c;
  args.features = inputs.features;
  args.rules = {inputs.item_weights,
                inputs.capacities,
                request.policy.stop_at_first_misfit,
                is_open(request.sequences.problem),
                request.policy.masks,
                request.policy.penalty};
  args.instance_keys = inputs.keys;
  args.first_samples = inputs.first_samples;
  args.sample_stride = request.sample_stride;
  args.seed = request.seed;
  args.forced = inputs.orders;
  args.want_entropy = request.wants_entropy();
  args.tiles = inputs.tiles;
  args.tile_count = plan.shape.tiles;
  args.tiling = plan.tile_shape.tiling;
  args.tree = activations.tree;
  args.tree_samples = std::min(plan.tile_shape.samples, plan.shape.rows);
  args.n = plan.shape.n;
  args.results = to;
  args.record = activations.decoder;
  args.stop = inputs.stop;
  args.precision = plan.tile_shape.precision;
  args.weight_hh = parameters.tensor(parameters.decoder.offsets.weight_hh);
  args.query_weight = parameters.tensor(stream.device.layout->query);
  decode(args, stream.get());
}

}  // namespace pointsman::cuda
