// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/parameters.h"

namespace pointsman::cuda {
namespace {

// Of one set: encoder, decoder and critic's encoder [2][4H] each, then the decoder's start [4H].
constexpr int64_t kFolds = 7 * kGates;

// Whole lines of 128 bytes, so that every tensor of every set begins as aligned as in the layout.
int64_t padded(size_t floats) { return static_cast<int64_t>((floats + 31) / 32 * 32); }

}  // namespace

CudaParameters::CudaParameters(const ModelConfig& config, const ParameterLayout& layout, int sets,
                               cudaStream_t stream)
    : projections(projections_of(config.glimpses)),
      actor_steps(sets, 0),
      critic_steps(sets, 0),
      config_(config),
      layout_(layout),
      sets_(sets),
      stream_(stream),
      stride_(padded(layout.size)) {
  place(Placement());
}

void CudaParameters::allocate() {
  place(Placement(block_.reserve(bytes_)));
  require(cudaMemsetAsync(block_.data(), 0, bytes_, stream_), "clearing parameters");
  prepare(0, sets_);
}

void CudaParameters::place(Placement placement) {
  for (float** array : {&parameters_, &first_moment_, &second_moment_, &gradient_}) {
    *array = placement.take<float>(sets_ * stride_);
  }
  folds_ = placement.take<float>(sets_ * kFolds);
  const auto matrix = [&](int64_t size) {
    return MutableSetArray{placement.take<float>(sets_ * size), size};
  };
  if (config_.encoder == Encoder::kLstm) {
    encoder = place_lstm(placement, layout_.encoder, 0);
  } else {
    place_attention_encoder(placement);
  }
  decoder = place_lstm(placement, layout_.decoder, 2 * kGates);
  decoder.prepared.start_bias = matrix(kGates);
  decoder.start_gradient = {fold_at(6 * kGates), kFolds};
  query = matrix(kSquare);
  references = matrix(projections.count * kSquare);
  if (config_.has_critic) {
    critic_encoder = place_lstm(placement, layout_.critic.encoder, 4 * kGates);
    for (MutableSetArray* array : {&critic_reference, &critic_query, &critic_fc1}) *array = matrix(kSquare);
  }
  bytes_ = placement.bytes();
}

CudaParameters::Lstm CudaParameters::place_lstm(Placement& placement, const LstmOffsets& offsets,
                                                int fold_offset) const {
  const auto matrix = [&](int64_t size) {
    return MutableSetArray{placement.take<float>(sets_ * size), size};
  };
  Lstm lstm{};
  lstm.offsets = offsets;
  lstm.prepared.recurrent = matrix(kRecurrent);
  lstm.prepared.fold = matrix(2 * kGates);
  lstm.prepared.bias = matrix(kGates);
  lstm.fold_gradient = {fold_at(fold_offset), kFolds};
  return lstm;
}

void CudaParameters::place_attention_encoder(Placement& placement) {
  const auto linear = [&](size_t weight, size_t bias, int columns, int depth) {
    const int64_t size = static_cast<int64_t>(columns) * depth;
    return Linear{weight, bias, columns, depth, {placement.take<float>(sets_ * size), size}};
  };
  layers.clear();
  for (const EncoderLayerOffsets& at : layout_.layers) {
    const int wide = config_.feed_forward;
    layers.push_back({linear(at.in_weight, at.in_bias, 3 * kHidden, kHidden),
                      linear(at.out_weight, at.out_bias, kHidden, kHidden),
                      linear(at.linear1_weight, at.linear1_bias, wide, kHidden),
                      linear(at.linear2_weight, at.linear2_bias, kHidden, wide)});
  }
  start_h = linear(layout_.start.h_weight, layout_.start.h_bias, kHidden, kHidden);
  start_c = linear(layout_.start.c_weight, layout_.start.c_bias, kHidden, kHidden);
}

namespace {

MutableSetArray from_set(MutableSetArray array, int first) {
  if (array.data != nullptr) array.data += first * array.stride;
  return array;
}

PreparedLstm from_set(const PreparedLstm& lstm, int first) {
  return {from_set(lstm.recurrent, first), from_set(lstm.fold, first), from_set(lstm.bias, first),
          from_set(lstm.start_bias, first)};
}

}  // namespace

void CudaParameters::prepare(int first_set, int count) {
  const SetArray parameters{set(parameters_, first_set), stride_};
  const auto lstm = [&](const Lstm& l) {
    prepare_lstm(parameters, l.offsets, from_set(l.prepared, first_set), count, stream_);
  };
  const auto square = [&](size_t offset, MutableSetArray to, int place = 0, int places = 1) {
    prepare_square(parameters, static_cast<int64_t>(offset), from_set(to, first_set), place * kHidden,
                   places * kHidden, count, stream_);
  };
  const auto linear = [&](const Linear& l) {
    prepare_matrix(parameters, static_cast<int64_t>(l.weight), l.columns, l.depth,
                   from_set(l.prepared, first_set), count, stream_);
  };
  if (config_.encoder == Encoder::kLstm) {
    lstm(encoder);
  } else {
    for (const EncoderLayer& layer : layers) {
      for (const Linear* l : {&layer.in, &layer.out, &layer.linear1, &layer.linear2}) linear(*l);
    }
    linear(start_h);
    linear(start_c);
  }
  lstm(decoder);
  square(layout_.query, query);
  const auto tensors = projection_tensors(layout_, projections);
  for (int i = 0; i < projections.count; ++i) square(tensors[i], references, i, projections.count);
  if (!config_.has_critic) return;
  lstm(critic_encoder);
  square(layout_.critic.process.w_ref, critic_reference);
  square(layout_.critic.process.w_q, critic_query);
  square(layout_.critic.fc1_weight, critic_fc1);
}

void CudaParameters::clear_folds(int first_set, int count) const {
  require(cudaMemsetAsync(folds_ + first_set * kFolds, 0, sizeof(float) * count * kFolds, stream_),
          "clearing sums");
}

void CudaParameters::unfold(const Lstm& lstm, int first_set, int count) const {
  unfold_input({tensor(0), gradient_tensor(0), lstm.offsets, lstm.fold_gradient, lstm.start_gradient,
                first_set, count},
               stream_);
}

}  // namespace pointsman::cuda
