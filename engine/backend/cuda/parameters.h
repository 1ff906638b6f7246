// SPDX-License-Identifier: Apache-2.0
// All parameter sets on the device: flat vectors, moments and gradients as [sets][stride], and beside them
// each set's matrices as the kernels read them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/backend/network.h"
#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/tools/placement.h"

namespace pointsman::cuda {

class CudaParameters {
 public:
  // config and layout must outlive it. No memory is taken before allocate(), which makes all sets zero.
  CudaParameters(const ModelConfig& config, const ParameterLayout& layout, int sets, cudaStream_t stream);

  size_t bytes() const { return bytes_; }  // of device memory
  void allocate();                         // throws std::bad_alloc

  // Must be called after the parameters of these sets changed.
  void prepare(int first_set, int count);

  const Projections projections;

  int sets() const { return sets_; }
  // A tensor in all sets, by its offset in the layout.
  SetArray tensor(size_t offset) const { return {parameters_ + offset, stride_}; }
  MutableSetArray gradient_tensor(size_t offset) const { return {gradient_ + offset, stride_}; }
  MutableSetArray all(float* array) const { return {array, stride_}; }

  float* set(float* array, int s) const { return array + s * stride_; }
  float* parameters() const { return parameters_; }
  float* first_moment() const { return first_moment_; }
  float* second_moment() const { return second_moment_; }
  float* gradient() const { return gradient_; }
  int64_t stride() const { return stride_; }

  // One LSTM: what lstm_forward reads, where its gradients go and what unfold_input needs.
  struct Lstm {
    LstmOffsets offsets;
    PreparedLstm prepared;
    MutableSetArray fold_gradient;   // [2][4H]
    MutableSetArray start_gradient;  // [4H]; data null without a start
  };
  Lstm encoder{}, decoder{}, critic_encoder{};  // encoder: of Encoder::kLstm
  // All matrices from here on are transposed, in fours (index_in_fours).
  EncoderProducts<MutableSetArray> products;                   // of Encoder::kAttention
  MutableSetArray query, references;                           // actor
  MutableSetArray critic_reference, critic_query, critic_fc1;  // critic

  // The gradients of folded inputs of sets first .. first + count - 1 become zero; they are added to the
  // gradient by unfold(). Between the two, input_gradient adds to them.
  void clear_folds(int first_set, int count) const;
  void unfold(const Lstm& lstm, int first_set, int count) const;

  std::vector<int64_t> actor_steps, critic_steps;  // Adam steps made, by set

 private:
  // A matrix [H][H] of the layout, and where it lies transposed: as one of `places` side by side.
  struct Square {
    size_t offset;
    MutableSetArray to;
    int place = 0, places = 1;
  };

  // Places all arrays; with a placement that only counts, they stay null.
  void place(Placement placement);

  const ModelConfig& config_;
  const ParameterLayout& layout_;
  const int sets_;
  const cudaStream_t stream_;
  const int64_t stride_;
  std::vector<Square> squares_;
  DeviceBuffer block_;
  size_t bytes_ = 0;
  float *parameters_ = nullptr, *first_moment_ = nullptr, *second_moment_ = nullptr, *gradient_ = nullptr;
  float* folds_ = nullptr;  // [sets][kFolds]
};

}  // namespace pointsman::cuda
