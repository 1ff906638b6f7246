// SPDX-License-Identifier: Apache-2.0
#include <cudnn.h>

#include <stdexcept>

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

constexpr double kBound = 1e-4, kTf32Bound = 1e-2;  // of relative_error
constexpr double kSeconds = 0.05;                   // of each of the many rows

struct Variant {
  std::string name;
  int algorithm;
  bool tf32, padded;
};

// The network's encoder in cuDNN's layout, with random inputs and gradients.
class CudnnLstm {
 public:
  // Throws std::runtime_error with cuDNN's own words when it does not offer this.
  CudnnLstm(const Variant& variant, const DeviceNetwork& network, int batch, int steps)
      : batch_(batch),
        steps_(steps),
        lengths_(std::vector<int32_t>(batch, steps)),
        x_(size_t{2} * batch * steps),
        dx_(x_.size()),
        y_(size_t{kHidden} * batch * steps),
        dy_(y_.size()) {
    fill_random(x_, 4);
    fill_random(dy_, 5);
    require_cudnn(cudnnSetStream(library_, network.get()));
    describe(variant);
    size_t weight_bytes = 0;
    require_cudnn(cudnnGetRNNWeightSpaceSize(library_, rnn_, &weight_bytes));
    weights_ = std::make_unique<DeviceArray<char>>(weight_bytes);
    gradients_ = std::make_unique<DeviceArray<char>>(weight_bytes);
    upload_weights(network);
    size_t infer_bytes = 0, keep_bytes = 0, reserve_bytes = 0;
    require_cudnn(
        cudnnGetRNNTempSpaceSizes(library_, rnn_, CUDNN_FWD_MODE_INFERENCE, x_data_, &infer_bytes, nullptr));
    require_cudnn(cudnnGetRNNTempSpaceSizes(library_, rnn_, CUDNN_FWD_MODE_TRAINING, x_data_, &keep_bytes,
                                            &reserve_bytes));
    work_ = std::make_unique<DeviceArray<char>>(std::max(infer_bytes, keep_bytes));
    reserve_ = std::make_unique<DeviceArray<char>>(reserve_bytes);
  }

  void infer() { forward(CUDNN_FWD_MODE_INFERENCE, 0, nullptr); }
  void keep() { forward(CUDNN_FWD_MODE_TRAINING, reserve_->size(), reserve_->data()); }

  void backward() {  // after keep()
    require_cudnn(cudnnRNNBackwardData_v8(library_, rnn_, lengths_.data(), y_data_, y_.data(), dy_.data(),
                                          x_data_, dx_.data(), state_, nullptr, nullptr, nullptr, state_,
                                          nullptr, nullptr, nullptr, weights_->size(), weights_->data(),
                                          work_->size(), work_->data(), reserve_->size(), reserve_->data()));
    require_cudnn(cudnnRNNBackwardWeights_v8(library_, rnn_, CUDNN_WGRAD_MODE_ADD, lengths_.data(), x_data_,
                                             x_.data(), state_, nullptr, y_data_, y_.data(),
                                             gradients_->size(), gradients_->data(), work_->size(),
                                             work_->data(), reserve_->size(), reserve_->data()));
  }

  // To the input and the gradient of the output that `ours` has.
  LstmAnswer answer_to(const LstmAnswer& ours) {
    x_.upload(ours.x);
    dy_.upload(ours.dy);
    gradients_->fill_bytes(0);
    keep();
    backward();
    cuda::require(cudaDeviceSynchronize(), "cuDNN");
    LstmAnswer result{batch_, steps_, {}, {}, download(y_), {}, {}, {}};
    const auto append = [](std::vector<float>& all, const float* from, size_t count) {
      const std::vector<float> values = download(from, count);
      all.insert(all.end(), values.begin(), values.end());
    };
    for (int k = 0; k < 4; ++k) {
      const Gate gate = gate_of(*gradients_, k);
      append(result.recurrent, gate.recurrent, kHidden * kHidden);
      append(result.input, gate.input, kHidden * 2);
      append(result.bias, gate.bias, kHidden);
    }
    return result;
  }

 private:
  struct Gate {
    float *input, *recurrent, *bias;
  };

  void describe(const Variant& variant) {
    require_cudnn(cudnnSetDropoutDescriptor(dropout_, library_, 0.0f, nullptr, 0, 0));
    require_cudnn(cudnnSetRNNDescriptor_v8(
        rnn_, static_cast<cudnnRNNAlgo_t>(variant.algorithm), CUDNN_LSTM, CUDNN_RNN_SINGLE_INP_BIAS,
        CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT,
        variant.tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH, 2, kHidden, kHidden, 1, dropout_,
        variant.padded ? CUDNN_RNN_PADDED_IO_ENABLED : CUDNN_RNN_PADDED_IO_DISABLED));
    if (variant.algorithm == CUDNN_RNN_ALGO_PERSIST_DYNAMIC) {
      require_cudnn(cudnnBuildRNNDynamic(library_, rnn_, batch_));
    }
    const cudnnRNNDataLayout_t layout =
        variant.padded ? CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED : CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
    const std::vector<int> lengths(batch_, steps_);
    float padding = 0.0f;
    require_cudnn(cudnnSetRNNDataDescriptor(x_data_, CUDNN_DATA_FLOAT, layout, steps_, batch_, 2,
                                            lengths.data(), &padding));
    require_cudnn(cudnnSetRNNDataDescriptor(y_data_, CUDNN_DATA_FLOAT, layout, steps_, batch_, kHidden,
                                            lengths.data(), &padding));
    const int sizes[3] = {1, batch_, kHidden}, strides[3] = {batch_ * kHidden, kHidden, 1};
    require_cudnn(cudnnSetTensorNdDescriptor(state_, CUDNN_DATA_FLOAT, 3, sizes, strides));
  }

  // i, f, g or o. cuDNN numbers the halves of a gate: 0 .. 3 read the input, 4 .. 7 the state. One has the
  // bias.
  Gate gate_of(const DeviceArray<char>& space, int gate) const {
    Tensor matrix, bias;
    void *matrices[2] = {}, *biases[2] = {};
    for (const int half : {0, 1}) {
      require_cudnn(cudnnGetRNNWeightParams(library_, rnn_, 0, space.size(), space.data(), gate + 4 * half,
                                            matrix, &matrices[half], bias, &biases[half]));
    }
    return {static_cast<float*>(matrices[0]), static_cast<float*>(matrices[1]),
            static_cast<float*>(biases[0] != nullptr ? biases[0] : biases[1])};
  }

  void upload_weights(const DeviceNetwork& network) {
    const cuda::PreparedLstm& lstm = network.parameters->encoder.prepared;
    const DeviceArray<float> input(transposed(download(lstm.fold.data, kGates * 2), 2, kGates));
    const auto copy = [](float* to, const float* from, size_t count) {
      cuda::require(cudaMemcpy(to, from, count * sizeof(float), cudaMemcpyDeviceToDevice), "weights");
      finish_device();
    };
    for (int k = 0; k < 4; ++k) {
      const Gate gate = gate_of(*weights_, k);
      copy(gate.input, input.data() + k * kHidden * 2, kHidden * 2);
      copy(gate.recurrent, weight_hh(network).data + k * kHidden * kHidden, kHidden * kHidden);
      copy(gate.bias, lstm.bias.data + k * kHidden, kHidden);
    }
  }

  void forward(cudnnForwardMode_t mode, size_t reserve_bytes, void* reserve) {
    require_cudnn(cudnnRNNForward(library_, rnn_, mode, lengths_.data(), x_data_, x_.data(), y_data_,
                                  y_.data(), state_, nullptr, nullptr, state_, nullptr, nullptr,
                                  weights_->size(), weights_->data(), work_->size(), work_->data(),
                                  reserve_bytes, reserve));
  }

  int batch_, steps_;
  Library library_;
  Rnn rnn_;
  Dropout dropout_;
  Data x_data_, y_data_;
  Tensor state_;
  DeviceArray<int32_t> lengths_;
  DeviceArray<float> x_, dx_, y_, dy_;
  std::unique_ptr<DeviceArray<char>> weights_, gradients_, work_, reserve_;
};

constexpr std::pair<const char*, int> kAlgorithms[] = {
    {"standard", CUDNN_RNN_ALGO_STANDARD},
    {"persist_static", CUDNN_RNN_ALGO_PERSIST_STATIC},
    {"persist_dynamic", CUDNN_RNN_ALGO_PERSIST_DYNAMIC},
    {"persist_static_small_h", CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H},
};

// ||a - b|| / ||b||; NaN where either has one.
double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0.0, norm = 0.0;
  for (size_t k = 0; k < b.size(); ++k) {
    const double delta = static_cast<double>(a[k]) - static_cast<double>(b[k]);
    difference += delta * delta;
    norm += static_cast<double>(b[k]) * static_cast<double>(b[k]);
  }
  return std::sqrt(difference / norm);
}

// Is the variant's answer ours? Prints the row of the check. A variant that is not offered is skipped.
bool agrees(const DeviceNetwork& network, const Variant& variant, const LstmAnswer& ours) {
  Json row = row_of("lstm_equal", variant.name, ours.steps, ours.batch);
  bool equal = false;
  attempt(print_row, row, [&] {
    const LstmAnswer theirs = CudnnLstm(variant, network, ours.batch, ours.steps).answer_to(ours);
    Worst error;
    for (const auto part : {&LstmAnswer::y, &LstmAnswer::recurrent, &LstmAnswer::input, &LstmAnswer::bias}) {
      error.show(relative_error(ours.*part, theirs.*part));
    }
    equal = error.value <= (variant.tf32 ? kTf32Bound : kBound);
    row.update(Json{{"error", error.value}, {"pass", equal}});
    print_row(row);
  });
  return equal;
}

// Times one variant at one shape.
void time_variant(const DeviceNetwork& network, const Variant& variant, int batch, int steps) {
  CudnnLstm lstm(variant, network, batch, steps);
  const auto time = [&](const char* name, void (CudnnLstm::*run)(), auto&& prepare) {
    const Statistics ms = time_on_device(
        network.get(), [&] { (lstm.*run)(); }, kSeconds, prepare);
    print_row(timed(row_of(name, variant.name, steps, batch), ms));
  };
  time("lstm_infer", &CudnnLstm::infer, [] {});
  time("lstm_keep", &CudnnLstm::keep, [] {});
  time("lstm_backward", &CudnnLstm::backward, [&] { lstm.keep(); });
}

}  // namespace

void bench_lstm_peers(const DeviceNetwork& network, const LstmAnswer& ours) {
  for (const bool tf32 : {false, true}) {
    for (const auto& [name, algorithm] : kAlgorithms) {
      for (const bool padded : {false, true}) {
        const Variant variant = {
            std::string("cudnn_") + name + (tf32 ? "_tf32" : "_fp32") + (padded ? "_padded" : ""), algorithm,
            tf32, padded};
        if (!agrees(network, variant, ours)) continue;
        for_each_lstm_shape(variant.name,
                            [&](int batch, int steps) { time_variant(network, variant, batch, steps); });
      }
    }
  }
}

}  // namespace pointsman::bench
