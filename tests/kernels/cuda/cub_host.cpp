// SPDX-License-Identifier: Apache-2.0
// CUB's own host code, as nvcc compiled it into best_of.cu, over a CUDA runtime that only notes launches: how
// much scratch it wants and what it starts. Needs nvcc but no GPU.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_operations.h"

namespace {

struct Noted {
  dim3 grid, block;
  size_t shared_bytes;
};
std::vector<Noted> launches;
Noted pushed;
int failures = 0;

void expect(bool held, const std::string& what) {
  if (held) return;
  std::printf("cub_host.cpp: %s\n", what.c_str());
  ++failures;
}

}  // namespace

// ------------------------------------------------------------------------------ the runtime

extern "C" {
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "an error"; }
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaFuncGetName(const char**, const void*) { return cudaErrorInvalidValue; }
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  std::memset(attributes, 0, sizeof *attributes);
  attributes->ptxVersion = attributes->binaryVersion = 90;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int, size_t,
                                                                   unsigned) {
  *blocks = 1;
  return cudaSuccess;
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void*, void**) {
  launches.push_back({config->gridDim, config->blockDim, config->dynamicSmemBytes});
  return cudaSuccess;
}
// What nvcc's host code calls.
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3 grid, dim3 block, void**, size_t shared_bytes,
                               cudaStream_t) {
  launches.push_back({grid, block, shared_bytes});
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void*) {
  *kernel = nullptr;
  return cudaSuccess;
}
char __cudaInitModule(void**) { return 1; }
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t) {
  pushed = {grid, block, shared_bytes};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void*) {
  *grid = pushed.grid, *block = pushed.block, *shared_bytes = pushed.shared_bytes;
  return cudaSuccess;
}
void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
void __cudaUnregisterFatBinary(void**) {}
}

// ------------------------------------------------------------------------------ what is asked of it

// The emulation's CUB wants one byte of scratch and launches nothing that depends on its place.
int main() {
  using namespace pointsman::cuda;
  constexpr int64_t kBestRow = 16, kUnit = 256;  // a row's number and its cost; what scratch is cut into
  for (const int sequences : {1, 7, 4000, 70000}) {
    launches.clear();
    const int64_t bytes = best_of_scratch(sequences);
    const std::string all = std::to_string(sequences) + " sequences: ";
    expect(launches.empty(), all + "asking for the scratch launched a kernel");
    const int64_t wanted =
        (kBestRow * sequences + kUnit - 1) / kUnit * kUnit + kUnit;  // CUB's byte is the last unit
    expect(bytes == wanted,
           all + std::to_string(bytes) + " bytes of scratch, " + std::to_string(wanted) + " expected");
    std::vector<std::byte> scratch(static_cast<size_t>(bytes));
    BestOfArgs args{};
    args.sequences = sequences;
    args.steps = 5;
    args.scratch = scratch.data();
    best_of(args, nullptr);
    expect(launches.size() == 2, all + std::to_string(launches.size()) + " launches, 2 expected");
    if (launches.size() != 2) continue;
    const Noted& reduce = launches[0];
    expect(reduce.grid.x == static_cast<unsigned>(sequences) && reduce.grid.y == 1 &&
               reduce.block.x <= 1024 && reduce.shared_bytes == 0,
           all + "CUB started " + std::to_string(reduce.grid.x) + " blocks of " +
               std::to_string(reduce.block.x) + " threads with " + std::to_string(reduce.shared_bytes) +
               " bytes, a block a sequence expected");
  }
  if (failures == 0) std::printf("CUB's scratch and launches are as the emulation has them\n");
  return failures == 0 ? 0 : 1;
}
