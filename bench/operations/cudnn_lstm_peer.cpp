// SPDX-License-Identifier: Apache-2.0
#include <cudnn.h>

#include <stdexcept>

#include "bench/operations/device.h"
#include "bench/operations/lstm_peer.h"

namespace pointsman::bench {

namespace {

void require_cudnn(cudnnStatus_t status) {
  if (status != CUDNN_STATUS_SUCCESS) throw std::runtime_error(cudnnGetErrorString(status));
}

// A cuDNN object, made by one function and ended by another.
template <typename Handle, cudnnStatus_t (*create)(Handle*), cudnnStatus_t (*destroy)(Handle)>
struct Object {
  Object() { require_cudnn(create(&handle)); }
  ~Object() { destroy(handle); }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  operator Handle() const { return handle; }

  Handle handle{};
};
using Library = Object<cudnnHandle_t, cudnnCreate, cudnnDestroy>;
using Rnn = Object<cudnnRNNDescriptor_t, cudnnCreateRNNDescriptor, cudnnDestroyRNNDescriptor>;
using Dropout = Object<cudnnDropoutDescriptor_t, cudnnCreateDropoutDescriptor, cudnnDestroyDropoutDescriptor>;
using Data = Object<cudnnRNNDataDescriptor_t, cudnnCreateRNNDataDescriptor, cudnnDestroyRNNDataDescriptor>;
using Tensor = Object<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;

class CudnnLstm : public LstmPeer {
 public:
  CudnnLstm(const PeerVariant& variant, const LstmProblem& problem, cudaStream_t stream)
      : problem_(problem),
        lengths_(std::vector<int32_t>(problem.batch, problem.steps)),
        y_(outputs()),
        dx_(size_t{2} * problem.batch * problem.steps) {
    require_cudnn(cudnnSetStream(library_, stream));
    describe(variant);
    size_t weight_bytes = 0;
    require_cudnn(cudnnGetRNNWeightSpaceSize(library_, rnn_, &weight_bytes));
    weights_ = std::make_unique<DeviceArray<char>>(weight_bytes);
    gradients_ = std::make_unique<DeviceArray<char>>(weight_bytes);
    for (int gate = 0; gate < 4; ++gate) upload_gate(gate);
    size_t infer_bytes = 0, keep_bytes = 0, reserve_bytes = 0;
    require_cudnn(
        cudnnGetRNNTempSpaceSizes(library_, rnn_, CUDNN_FWD_MODE_INFERENCE, x_data_, &infer_bytes, nullptr));
    require_cudnn(cudnnGetRNNTempSpaceSizes(library_, rnn_, CUDNN_FWD_MODE_TRAINING, x_data_, &keep_bytes,
                                            &reserve_bytes));
    work_ = std::make_unique<DeviceArray<char>>(std::max(infer_bytes, keep_bytes));
    reserve_ = std::make_unique<DeviceArray<char>>(reserve_bytes);
  }

  void infer() override { forward(CUDNN_FWD_MODE_INFERENCE, 0, nullptr); }
  void keep() override { forward(CUDNN_FWD_MODE_TRAINING, reserve_->size(), reserve_->data()); }

  void backward() override {
    require_cudnn(cudnnRNNBackwardData_v8(library_, rnn_, lengths_.data(), y_data_, y_.data(), problem_.dy,
                                          x_data_, dx_.data(), state_, nullptr, nullptr, nullptr, state_,
                                          nullptr, nullptr, nullptr, weights_->size(), weights_->data(),
                                          work_->size(), work_->data(), reserve_->size(), reserve_->data()));
    require_cudnn(cudnnRNNBackwardWeights_v8(library_, rnn_, CUDNN_WGRAD_MODE_ADD, lengths_.data(), x_data_,
                                             problem_.x, state_, nullptr, y_data_, y_.data(),
                                             gradients_->size(), gradients_->data(), work_->size(),
                                             work_->data(), reserve_->size(), reserve_->data()));
  }

  LstmAnswer answer() override {
    gradients_->fill_bytes(0);
    keep();
    backward();
    cuda::require(cudaDeviceSynchronize(), "cuDNN");
    LstmAnswer result;
    result.y = download(y_);
    for (int gate = 0; gate < 4; ++gate) {
      const Gate recurrent = gate_of(*gradients_, 4 + gate), input = gate_of(*gradients_, gate);
      append(result.recurrent, recurrent.matrix, kHidden * kHidden);
      append(result.input, input.matrix, kHidden * 2);
      append(result.bias, bias_of(input, recurrent), kHidden);
    }
    return result;
  }

 private:
  struct Gate {
    float* matrix;
    float* bias;  // null: this half has none
  };

  size_t outputs() const { return size_t{kHidden} * problem_.batch * problem_.steps; }

  void describe(const PeerVariant& variant) {
    require_cudnn(cudnnSetDropoutDescriptor(dropout_, library_, 0.0f, nullptr, 0, 0));
    require_cudnn(cudnnSetRNNDescriptor_v8(
        rnn_, static_cast<cudnnRNNAlgo_t>(variant.algorithm), CUDNN_LSTM, CUDNN_RNN_SINGLE_INP_BIAS,
        CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT,
        variant.tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH, 2, kHidden, kHidden, 1, dropout_,
        variant.padded ? CUDNN_RNN_PADDED_IO_ENABLED : CUDNN_RNN_PADDED_IO_DISABLED));
    if (variant.algorithm == CUDNN_RNN_ALGO_PERSIST_DYNAMIC) {
      require_cudnn(cudnnBuildRNNDynamic(library_, rnn_, problem_.batch));
    }
    const cudnnRNNDataLayout_t layout =
        variant.padded ? CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED : CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
    const std::vector<int> lengths(problem_.batch, problem_.steps);
    float padding = 0.0f;
    require_cudnn(cudnnSetRNNDataDescriptor(x_data_, CUDNN_DATA_FLOAT, layout, problem_.steps, problem_.batch,
                                            2, lengths.data(), &padding));
    require_cudnn(cudnnSetRNNDataDescriptor(y_data_, CUDNN_DATA_FLOAT, layout, problem_.steps, problem_.batch,
                                            kHidden, lengths.data(), &padding));
    const int sizes[3] = {1, problem_.batch, kHidden}, strides[3] = {problem_.batch * kHidden, kHidden, 1};
    require_cudnn(cudnnSetTensorNdDescriptor(state_, CUDNN_DATA_FLOAT, 3, sizes, strides));
  }

  // Half of a gate: 0 .. 3 read the input, 4 .. 7 the state; i, f, g, o in each.
  Gate gate_of(const DeviceArray<char>& space, int half) const {
    Tensor matrix, bias;
    void *matrix_data = nullptr, *bias_data = nullptr;
    require_cudnn(cudnnGetRNNWeightParams(library_, rnn_, 0, space.size(), space.data(), half, matrix,
                                          &matrix_data, bias, &bias_data));
    return {static_cast<float*>(matrix_data), static_cast<float*>(bias_data)};
  }

  static float* bias_of(const Gate& input, const Gate& recurrent) {
    return input.bias != nullptr ? input.bias : recurrent.bias;
  }

  void upload_gate(int gate) {
    const Gate input = gate_of(*weights_, gate), recurrent = gate_of(*weights_, 4 + gate);
    const auto copy = [](float* to, const float* from, size_t count) {
      cuda::require(cudaMemcpy(to, from, count * sizeof(float), cudaMemcpyDeviceToDevice), "weights");
      finish_device();
    };
    copy(input.matrix, problem_.input + gate * kHidden * 2, kHidden * 2);
    copy(recurrent.matrix, problem_.recurrent + gate * kHidden * kHidden, kHidden * kHidden);
    copy(bias_of(input, recurrent), problem_.bias + gate * kHidden, kHidden);
  }

  static void append(std::vector<float>& values, const float* from, size_t count) {
    values.resize(values.size() + count);
    finish_device();
    cuda::require(cudaMemcpy(values.data() + values.size() - count, from, count * sizeof(float),
                             cudaMemcpyDeviceToHost),
                  "gradient");
  }

  void forward(cudnnForwardMode_t mode, size_t reserve_bytes, void* reserve) {
    require_cudnn(cudnnRNNForward(library_, rnn_, mode, lengths_.data(), x_data_, problem_.x, y_data_,
                                  y_.data(), state_, nullptr, nullptr, state_, nullptr, nullptr,
                                  weights_->size(), weights_->data(), work_->size(), work_->data(),
                                  reserve_bytes, reserve));
  }

  LstmProblem problem_;
  Library library_;
  Rnn rnn_;
  Dropout dropout_;
  Data x_data_, y_data_;
  Tensor state_;
  DeviceArray<int32_t> lengths_;
  DeviceArray<float> y_, dx_;
  std::unique_ptr<DeviceArray<char>> weights_, gradients_, work_, reserve_;
};

}  // namespace

std::vector<PeerVariant> peer_variants() {
  const std::pair<const char*, int> algorithms[] = {
      {"standard", CUDNN_RNN_ALGO_STANDARD},
      {"persist_static", CUDNN_RNN_ALGO_PERSIST_STATIC},
      {"persist_dynamic", CUDNN_RNN_ALGO_PERSIST_DYNAMIC},
      {"persist_static_small_h", CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H},
  };
  std::vector<PeerVariant> variants;
  for (const bool tf32 : {false, true}) {
    for (const auto& [name, algorithm] : algorithms) {
      for (const bool padded : {false, true}) {
        variants.push_back(
            {std::string("cudnn_") + name + (tf32 ? "_tf32" : "_fp32") + (padded ? "_padded" : ""), algorithm,
             tf32, padded});
      }
    }
  }
  return variants;
}

std::unique_ptr<LstmPeer> make_lstm_peer(const PeerVariant& variant, const LstmProblem& problem,
                                         cudaStream_t stream) {
  return std::make_unique<CudnnLstm>(variant, problem, stream);
}

}  // namespace pointsman::bench
