// SPDX-License-Identifier: Apache-2.0
#include "bench/search/make_instances.h"
#include "engine/problem/generate.h"
#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device_buffer.h"

namespace pointsman::bench {

std::vector<float> make_instances(const std::string& device, int n, uint64_t seed, int count) {
  std::vector<float> features(size_t{2} * n * count);
  if (!device.starts_with("cuda")) {
    generate_features(n, seed, 0, count, features.data());
    return features;
  }
  cuda::require(cudaSetDevice(device.size() > 5 ? std::stoi(device.substr(5)) : 0), "device");
  cuda::DeviceBuffer buffer;
  const size_t bytes = features.size() * sizeof(float);
  auto* const made = reinterpret_cast<float*>(buffer.reserve(bytes));
  cuda::generate_features({seed, 0, n, count, made}, nullptr);
  cuda::require(cudaMemcpy(features.data(), made, bytes, cudaMemcpyDeviceToHost), "download");
  return features;
}

}  // namespace pointsman::bench
