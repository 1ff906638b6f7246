// SPDX-License-Identifier: Apache-2.0
// The rival of the LSTM kernels: cuDNN, one variant for each algorithm and math type that it offers.
#pragma once

#include <cstdio>

#include "bench/operations/device.h"
#include "engine/backend/cuda/device.h"
#include "engine/backend/cuda/parameters.h"
#include "kernels/cuda/cuda_operations.h"

namespace pointsman::bench {

// A TSP model with a critic on the device.
struct DeviceNetwork : cuda::CudaDevice, cuda::MainStream {
  DeviceNetwork() : CudaDevice(0, Precision::kFp32), MainStream(static_cast<CudaDevice&>(*this)) {
    layout.emplace(config);  // of one glimpse, with a critic
    parameters.emplace(config, *layout, 1, get());
    parameters->allocate();
    const std::vector<float> fresh = initial_parameters(config, config.seed);
    upload(parameters->parameters(), fresh.data(), fresh.size() * sizeof(float));
    parameters->prepare(0, 1);
    synchronize();
    make_cublas();
  }
};

inline void print_row(const Json& row) {
  std::printf("%s\n", row.dump().c_str());
  std::fflush(stdout);
}

// In host memory: an LSTM's input and the gradient of its output, and what it gives for them.
struct LstmAnswer {
  int batch, steps;
  std::vector<float> x;          // [steps][batch][2]
  std::vector<float> dy;         // [steps][batch][H]
  std::vector<float> y;          // [steps][batch][H]
  std::vector<float> recurrent;  // gradients: [4H][H]
  std::vector<float> input;      // [4H][2]
  std::vector<float> bias;       // [4H]
};

// [rows][columns] -> [columns][rows]
inline std::vector<float> transposed(const std::vector<float>& matrix, int rows, int columns) {
  std::vector<float> result(matrix.size());
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) result[j * rows + i] = matrix[i * columns + j];
  }
  return result;
}

inline cuda::SetArray weight_hh(const DeviceNetwork& network) {
  return network.parameters->tensor(network.parameters->encoder.offsets.weight_hh);
}

// Calls `run` for each batch and number of steps; a shape that fails leaves a row that says why.
template <typename Run>
void for_each_lstm_shape(const std::string& variant, Run&& run) {
  for (const int steps : {20, 50, 100}) {
    for (const int batch : {16, 128, 1024, 4096, 65536}) {
      attempt(print_row, row_of("lstm_keep", variant, steps, batch), [&] { run(batch, steps); });
    }
  }
}

// Times each variant whose answer is ours, on the network's encoder. Built without cuDNN, prints a row that
// says so.
void bench_lstm_peers(const DeviceNetwork& network, const LstmAnswer& ours);

}  // namespace pointsman::bench
