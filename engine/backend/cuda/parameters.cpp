// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/parameters.h"

namespace pointsman::cuda {
namespace {

// Of one set: encoder, decoder and critic's encoder [2][4H] each, then the decoder's start [4H]. Problems
// with more inputs have no gradients here.
constexpr int64_t kFolds = 7 * kGates;

// Whole lines of 128 bytes, so that every tensor of every set begins as aligned as in the layout.
int64_t padded(size_t floats) { return static_cast<int64_t>((floats + 31) / 32 * 32); }

}  // namespace

CudaParameters::CudaParameters(const ModelConfig& config, const ParameterLayout& layout, int sets,
                               cudaStream_t stream)
    : projections(projections_of(config.glimpses)),
      products(config, layout),
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
  for (float** array : {&parameters_, &first_moment_, &second_moment_, &gradient_})
    *array = placement.take<float>(sets_ * stride_);
  folds_ = placement.take<float>(sets_ * kFolds);
  squares_.clear();
  const auto matrix = [&](int64_t size) {
    return MutableSetArray{placement.take<float>(sets_ * size), size};
  };
  const auto square = [&](size_t offset) {
    return squares_.emplace_back(Square{offset, matrix(kSquare)}).to;
  };
  const auto fold = [&](int offset) {
    return MutableSetArray{folds_ == nullptr ? nullptr : folds_ + offset, kFolds};
  };
  const auto lstm = [&](const LstmOffsets& offsets, int fold_offset) {
    const PreparedLstm prepared{matrix(kRecurrent), matrix(offsets.inputs() * kGates), matrix(kGates), {}};
    return Lstm{offsets, prepared, fold(fold_offset), {}};
  };
  if (config_.encoder == Encoder::kLstm) encoder = lstm(layout_.encoder, 0);
  products.for_each([&](auto& linear) { linear.matrix = matrix(int64_t{linear.columns} * linear.depth); });
  decoder = lstm(layout_.decoder, 2 * kGates);
  decoder.prepared.start_bias = matrix(kGates);
  decoder.start_gradient = fold(6 * kGates);
  query = square(layout_.query);
  references = matrix(projections.count * kSquare);
  const auto tensors = projection_tensors(layout_, projections);
  for (int i = 0; i < projections.count; ++i)
    squares_.push_back({tensors[i], references, i, projections.count});
  if (config_.has_critic) {
    critic_encoder = lstm(layout_.critic.encoder, 4 * kGates);
    critic_reference = square(layout_.critic.process.w_ref);
    critic_query = square(layout_.critic.process.w_q);
    critic_fc1 = square(layout_.critic.fc1_weight);
  }
  bytes_ = placement.bytes();
}

void CudaParameters::prepare(int first_set, int count) {
  const SetArray parameters{set(parameters_, first_set), stride_};
  const auto from_first = [&](const MutableSetArray& array) {
    return MutableSetArray{array.data == nullptr ? nullptr : array.of(first_set), array.stride};
  };
  for (const Lstm* lstm : {&encoder, &decoder, &critic_encoder}) {
    const auto& [recurrent, fold, bias, start_bias] = lstm->prepared;
    if (bias.data == nullptr) continue;
    prepare_lstm(parameters, lstm->offsets,
                 {from_first(recurrent), from_first(fold), from_first(bias), from_first(start_bias)}, count,
                 stream_);
  }
  products.for_each([&](const auto& linear) {
    prepare_matrix(parameters, static_cast<int64_t>(linear.weight), linear.columns, linear.depth,
                   from_first(linear.matrix), count, stream_);
  });
  for (const Square& square : squares_) {
    prepare_square(parameters, static_cast<int64_t>(square.offset), from_first(square.to),
                   square.place * kHidden, square.places * kHidden, count, stream_);
  }
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
