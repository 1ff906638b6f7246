// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda_forward.h"

namespace pointsman::cuda {

namespace {}  // namespace

Activations::Activations(Placement& placement, int slices, int n, int sequences, int rows, bool keep) {
  const size_t s = sequences, r = keep ? rows : 0, kept = keep ? sequences : 0, slots = n + 1;
  references = placement.take<float>(s * slices * n * kHidden);
  bounds = placement.take<float>(s * 2);
  encoder_h = placement.take<float>(s * slots * kHidden);
  encoder_last = placement.take<float>(s * kHidden);
  encoder_c = placement.take<float>(kept * slots * kHidden);
  encoder_tape = placement.take<float>(kept * n * kLstmTape);
  h = placement.take<float>(r * slots * kHidden);
  c = placement.take<float>(r * slots * kHidden);
  tape = placement.take<float>(r * n * kLstmTape);
  queries = placement.take<float>(r * n * kHidden);
  row_steps = placement.take<int32_t>(r);
}

RolloutArrays::RolloutArrays(Placement& placement, int n, int rows, int tiles, bool best)
    : orders(placement.take<int32_t>(static_cast<size_t>(rows) * n)),
      costs(placement.take<double>(rows)),
      log_probs(placement.take<double>(rows)),
      statistics(placement.take<DecodeStatistics>(tiles)),
      winners(placement.take<int32_t>(best ? rows : 0)) {}

int tile_rows(const CudaContext& context, int n, int64_t rollouts) {
  const int most = decode_tile_rows(n, false);
  if (most == 0) {
    throw DeviceError("CUDA: " + std::to_string(n) + " items are too many for the shared memory of " +
                      context.properties.name);
  }
  return rollouts < int64_t{most} * context.properties.multiProcessorCount ? decode_tile_rows(n, true) : most;
}

AttentionParameters attention_parameters(const CudaContext& context, const Policy& policy) {
  const ModelConfig& config = context.config;
  return {context.parameters->tensor(context.layout->glimpse.v),
          context.parameters->tensor(context.layout->pointer.v), config.glimpses, config.centre_logits,
          policy.scale(config.clip)};
}

void encode(const CudaContext& context, const UploadedChunk& chunk, const Activations& to, bool keep,
            Precision precision) {
  const PreparedLstm& lstm = context.parameters->encoder.prepared;
  const int ranges = static_cast<int>(chunk.ranges.sequences.size());
  lstm_forward({lstm.recurrent, lstm.fold, lstm.bias, chunk.arrays.features, to.encoder_h, to.encoder_last,
                keep ? to.encoder_c : nullptr, keep ? to.encoder_tape : nullptr, chunk.arrays.sequence_ranges,
                ranges, chunk.shape.sequences, chunk.shape.n, precision,
                context.parameters->tensor(context.layout->encoder.weight_hh)},
               context.stream.get());
  project_references(
      {context.parameters->projections, reference_slices(context.config), to.encoder_h, to.references,
       to.bounds, chunk.arrays.sequence_ranges, ranges, chunk.shape.sequences, chunk.shape.n},
      context.stream.get());
}

void decode(const CudaContext& context, const DecodeSettings& settings, const UploadedChunk& chunk,
            const Activations& activations, bool keep, const RolloutArrays& to) {
  const CudaParameters& parameters = *context.parameters;
  const PreparedLstm& lstm = parameters.decoder.prepared;
  DecodeArgs args{};
  args.problem = settings.problem;
  args.mode = settings.mode;
  args.recurrent = lstm.recurrent;
  args.fold = lstm.fold;
  args.bias = lstm.bias;
  args.start_bias = lstm.start_bias;
  args.query = parameters.query;
  args.attention = attention_parameters(context, settings.policy);
  args.slices = reference_slices(context.config);
  args.references = activations.references;
  args.bounds = activations.bounds;
  args.encoder_h = activations.encoder_h;
  args.encoder_c = activations.encoder_last;
  args.features = chunk.arrays.features;
  args.item_weights = chunk.arrays.item_weights;
  args.capacities = chunk.arrays.capacities;
  args.stop_at_first_misfit = settings.policy.stop_at_first_misfit;
  args.instance_keys = chunk.arrays.keys;
  args.first_samples = chunk.shape.sampling ? chunk.arrays.first_samples : nullptr;
  args.sample_stride = settings.sample_stride;
  args.seed = settings.seed;
  args.forced = chunk.arrays.orders;
  args.want_entropy = settings.mode == DecodeMode::kSample;
  args.tiles = chunk.arrays.tiles;
  args.tile_count = chunk.shape.tiles;
  args.tile_rows = chunk.tile_rows;
  args.n = chunk.shape.n;
  args.orders = to.orders;
  args.costs = to.costs;
  args.log_probs = to.log_probs;
  args.precision = settings.precision;
  args.weight_hh = parameters.tensor(context.layout->decoder.weight_hh);
  args.query_weight = parameters.tensor(parameters.query_offset);
  args.statistics = to.statistics;
  if (keep) {
    args.h = activations.h;
    args.c = activations.c;
    args.tape = activations.tape;
    args.queries = activations.queries;
    args.row_steps = activations.row_steps;
  }
  decode(args, context.stream.get());
}

}  // namespace pointsman::cuda
