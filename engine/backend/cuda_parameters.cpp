// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda_parameters.h"

namespace pointsman::cuda {

static_assert(kHidden == kHiddenSize);

namespace {

constexpr int64_t kSquare = int64_t{kHidden} * kHidden;
constexpr int64_t kRecurrent = int64_t{kGates} * kHidden;
// Of one set: encoder, decoder and critic's encoder [2][4H] each, then the decoder's start [4H].
constexpr int64_t kFolds = 7 * kGates;

// Whole lines of 128 bytes, so that every tensor of every set begins as aligned as in the layout.
int64_t padded(size_t floats) { return static_cast<int64_t>((floats + 31) / 32 * 32); }

}  // namespace

ReferenceSlices reference_slices(const ModelConfig& config) {
  ReferenceSlices slices{-1, -1, -1, -1, 0};
  if (config.glimpses > 0) slices.glimpse = slices.count++;
  slices.pointer = slices.count++;
  if (config.glimpses > 0) slices.values = slices.count++;
  if (config.glimpses > 1) slices.requeries = slices.count++;
  return slices;
}

CudaParameters::CudaParameters(const ModelConfig& config, const ParameterLayout& layout, int sets,
                               cudaStream_t stream)
    : query_offset(config.glimpses > 0 ? layout.glimpse.w_q : layout.pointer.w_q),
      actor_steps(sets, 0),
      critic_steps(sets, 0),
      config_(config),
      layout_(layout),
      sets_(sets),
      stream_(stream),
      slices_(reference_slices(config)),
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
  encoder = place_lstm(placement, layout_.encoder, layout_.embedding, -1, 0);
  decoder = place_lstm(placement, layout_.decoder, layout_.embedding,
                       static_cast<int64_t>(layout_.decoder_start), 2 * kGates);
  decoder.prepared.start_bias = matrix(kGates);
  decoder.start_gradient = {fold_at(6 * kGates), kFolds};
  query = matrix(kSquare);
  projections = matrix(slices_.count * kSquare);
  if (config_.has_critic) {
    critic_encoder = place_lstm(placement, layout_.critic.encoder, layout_.critic.embedding, -1, 4 * kGates);
    for (MutableSetArray* array : {&critic_reference, &critic_query, &critic_fc1}) *array = matrix(kSquare);
  }
  bytes_ = placement.bytes();
}

CudaParameters::Lstm CudaParameters::place_lstm(Placement& placement, const LstmSlots& slots,
                                                size_t embedding, int64_t start, int fold_offset) const {
  const auto matrix = [&](int64_t size) {
    return MutableSetArray{placement.take<float>(sets_ * size), size};
  };
  Lstm lstm{};
  lstm.offsets = {static_cast<int64_t>(embedding), static_cast<int64_t>(slots.weight_ih),
                  static_cast<int64_t>(slots.weight_hh), static_cast<int64_t>(slots.bias), start};
  lstm.prepared.recurrent = matrix(kRecurrent);
  lstm.prepared.fold = matrix(2 * kGates);
  lstm.prepared.bias = matrix(kGates);
  lstm.fold_gradient = {fold_at(fold_offset), kFolds};
  return lstm;
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
  const auto square = [&](size_t offset, MutableSetArray to, int slice, int slices) {
    if (slice < 0) return;
    prepare_square(parameters, static_cast<int64_t>(offset), from_set(to, first_set), slice * kHidden,
                   slices * kHidden, count, stream_);
  };
  lstm(encoder);
  lstm(decoder);
  square(query_offset, query, 0, 1);
  square(layout_.glimpse.w_ref, projections, slices_.glimpse, slices_.count);
  square(layout_.pointer.w_ref, projections, slices_.pointer, slices_.count);
  square(layout_.pointer.w_q, projections, slices_.values, slices_.count);
  square(layout_.glimpse.w_q, projections, slices_.requeries, slices_.count);
  if (!config_.has_critic) return;
  lstm(critic_encoder);
  square(layout_.critic.process.w_ref, critic_reference, 0, 1);
  square(layout_.critic.process.w_q, critic_query, 0, 1);
  square(layout_.critic.fc1_weight, critic_fc1, 0, 1);
}

void CudaParameters::clear_folds(int first_set, int count) const {
  require(cudaMemsetAsync(folds_ + first_set * kFolds, 0, sizeof(float) * count * kFolds, stream_),
          "clearing sums");
}

void CudaParameters::unfold(const Lstm& lstm, int first_set, int count) const {
  unfold_input({tensor(0),
                gradient_tensor(0),
                lstm.offsets,
                {lstm.fold_gradient.data, lstm.fold_gradient.stride},
                {lstm.start_gradient.data, lstm.start_gradient.stride},
                first_set,
                count},
               stream_);
}

}  // namespace pointsman::cuda
