// SPDX-License-Identifier: Apache-2.0
// CUDA's runtime and cuBLAS over host memory, but for streams.
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <set>

#include "tests/cuda_emulation/emulation.h"
#include "tests/cuda_emulation/fiber.h"
#include "tests/cuda_emulation/shadow/kernels/cuda/device.cuh"

struct cublasContext {
  cudaStream_t stream = nullptr;
};

namespace pointsman::emulation {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kRedZone = 2048;  // at both ends of an allocation, without AddressSanitizer
constexpr size_t kSharedBytesWithoutConsent = 48 * 1024, kMaxParameterBytes = 4096;
constexpr unsigned kMostPortableCluster = 8;

// What differs between the families that the kernels are compiled for.
struct Family {
  const char *architecture, *name;
  int major, multiprocessors;
  size_t most_shared_bytes;  // of a block; the multiprocessor has 1 KiB more
};
constexpr Family kFamilies[] = {{"sm_80", "emulated A100", 8, 108, 163 * 1024},
                                {"sm_90", "emulated H200", 9, 132, 227 * 1024}};

const Family& family() {
  static const Family& chosen = [&]() -> const Family& {
    const char* text = std::getenv("POINTSMAN_EMULATION_DEVICE");
    for (const Family& each : kFamilies) {
      if (std::string(text ? text : "sm_90") == each.architecture) return each;
    }
    std::fprintf(stderr, "cuda emulation: POINTSMAN_EMULATION_DEVICE is neither sm_80 nor sm_90\n");
    std::abort();
  }();
  return chosen;
}

size_t from_environment(const char* variable, size_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// All devices.
struct Device {
  std::mutex mutex;
  size_t total = from_environment("POINTSMAN_EMULATION_MEMORY", size_t{1} << 30), used = 0;
  std::map<uintptr_t, size_t> allocations;
  std::map<uintptr_t, size_t> pinned;
  int count = static_cast<int>(from_environment("POINTSMAN_EMULATION_DEVICES", 1));
  std::set<cublasHandle_t> handles;
  std::map<const void*, size_t> shared_consent;
  std::atomic<int> complaints{0};
  Calls calls;
};

thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;

void report_leaks();

Device& device() {
  static Device* const instance = [] {
    std::atexit(report_leaks);
    return new Device;  // never destroyed: arrays may be freed at the end of the program
  }();
  return *instance;
}

void report_leaks() {
  const Device& d = device();
  if (!d.allocations.empty() || !d.pinned.empty()) {
    std::fprintf(stderr, "cuda emulation: %zu allocations with %zu bytes were never freed\n",
                 d.allocations.size() + d.pinned.size(), d.used);
  }
}

cudaError_t error(cudaError_t code, const std::string& what) {
  complain(what);
  last_error = code;
  return code;
}

size_t red_zone() { return has_address_sanitizer() ? 0 : kRedZone; }

bool intact(uintptr_t data, size_t bytes) {
  const auto* begin = reinterpret_cast<const unsigned char*>(data);
  return red_zone_intact(begin - red_zone(), red_zone()) && red_zone_intact(begin + bytes, red_zone());
}

uint32_t red_word(const unsigned char* address) {
  return 0xFFC00000u | (static_cast<uint32_t>(reinterpret_cast<uintptr_t>(address) * 0x9E3779B1u) >> 10);
}

// Does the range touch an allocation at all?
bool touches_device(const void* pointer, size_t bytes) {
  Device& d = device();
  const std::lock_guard lock(d.mutex);
  const auto begin = reinterpret_cast<uintptr_t>(pointer);
  auto next = d.allocations.lower_bound(begin + std::max<size_t>(bytes, 1));
  return next != d.allocations.begin() && (--next)->first + next->second > begin;
}

std::string text(const void* pointer, size_t bytes) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%zu bytes at %p", bytes, pointer);
  return buffer;
}

bool is_pinned(const void* pointer, size_t bytes) {
  Device& d = device();
  const std::lock_guard lock(d.mutex);
  const auto begin = reinterpret_cast<uintptr_t>(pointer);
  auto next = d.pinned.upper_bound(begin);
  return next != d.pinned.begin() && (--next)->first + next->second >= begin + bytes;
}

// Is the memory on the side that the copy's kind says?
bool side_is(bool on_device, const void* pointer, size_t bytes, const char* what) {
  if (on_device ? is_device_range(pointer, bytes) : !touches_device(pointer, bytes)) return true;
  complain(std::string(what) + ": " + text(pointer, bytes) +
           (on_device ? " are not in one allocation of device memory" : " are device memory"));
  return false;
}

size_t consented_bytes(const void* kernel) {
  const std::lock_guard lock(device().mutex);
  const auto consent = device().shared_consent.find(kernel);
  return consent == device().shared_consent.end() ? kSharedBytesWithoutConsent : consent->second;
}

}  // namespace

void complain(const std::string& what) {
  ++device().complaints;
  std::fprintf(stderr, "cuda emulation: %s\n", what.c_str());
}
int complaints() { return device().complaints; }

void count_call(Call call) {
  Calls& calls = device().calls;
  const std::lock_guard lock(device().mutex);
  int64_t* const counts[] = {&calls.launches, &calls.copies, &calls.waits,
                             &calls.graphs,   &calls.nodes,  &calls.instantiations};
  ++*counts[static_cast<int>(call)];
}
Calls calls() {
  const std::lock_guard lock(device().mutex);
  return device().calls;
}

void fill_poison(unsigned char* data, size_t bytes) {
  const uint64_t two_words = kPoison * 0x1'0000'0001u;
  size_t done = 0;
  for (; done + 8 <= bytes; done += 8) std::memcpy(data + done, &two_words, 8);  // one store each
  std::memcpy(data + done, &two_words, bytes - done);
}
void fill_red_zone(unsigned char* zone, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 4) {
    const uint32_t word = red_word(zone + i);
    std::memcpy(zone + i, &word, 4);
  }
}
bool red_zone_intact(const unsigned char* zone, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 4) {
    const uint32_t word = red_word(zone + i);
    if (std::memcmp(zone + i, &word, 4) != 0) return false;
  }
  return true;
}

void set_device_count(int count) { device().count = count; }
void set_device_memory(size_t total_bytes) { device().total = total_bytes; }
size_t allocated_bytes() { return device().used; }
const char* architecture() { return family().architecture; }

bool is_device_range(const void* pointer, size_t bytes) {
  Device& d = device();
  const std::lock_guard lock(d.mutex);
  const auto begin = reinterpret_cast<uintptr_t>(pointer);
  auto next = d.allocations.upper_bound(begin);
  if (next == d.allocations.begin()) return false;
  --next;
  return begin - next->first <= next->second && bytes <= next->second - (begin - next->first);
}

void check_red_zones(const std::string& kernel) {
  Device& d = device();
  const std::lock_guard lock(d.mutex);
  for (const auto& [data, bytes] : d.allocations) {
    if (intact(data, bytes)) continue;
    auto* begin = reinterpret_cast<unsigned char*>(data);
    fill_red_zone(begin - red_zone(), red_zone());  // blame one launch only
    fill_red_zone(begin + bytes, red_zone());
    throw Error(kernel + ": wrote outside an allocation of device memory of " + std::to_string(bytes) +
                " bytes");
  }
}

cudaError_t launch_kernel(const cudaLaunchConfig_t& config, const void* kernel, size_t parameter_bytes,
                          std::function<void()> body) {
  const dim3 grid = config.gridDim, block = config.blockDim;
  const std::string name = kernel_name(kernel);
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  if (threads < 1 || threads > 1024 || block.z > 64) {
    return error(cudaErrorInvalidConfiguration,
                 name + ": a block of " + std::to_string(threads) + " threads");
  }
  if (grid.x < 1 || grid.y < 1 || grid.z < 1 || grid.x > 0x7FFFFFFFu || grid.y > 65535 || grid.z > 65535) {
    return error(cudaErrorInvalidConfiguration, name + ": a grid of " + std::to_string(grid.x) + " x " +
                                                    std::to_string(grid.y) + " x " + std::to_string(grid.z));
  }
  unsigned cluster = 1;
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const auto size = config.attrs[i].val.clusterDim;
    if (config.attrs[i].id != cudaLaunchAttributeClusterDimension || family().major < 9 || size.x < 1 ||
        size.x > kMostPortableCluster || size.y != 1 || size.z != 1 || grid.x % size.x != 0) {
      return error(cudaErrorInvalidConfiguration, name + ": a cluster of " + std::to_string(size.x) +
                                                      " blocks in a grid of " + std::to_string(grid.x));
    }
    cluster = size.x;
  }
  const size_t most = consented_bytes(kernel);
  if (config.dynamicSmemBytes > std::max(most, kSharedBytesWithoutConsent)) {
    return error(cudaErrorInvalidValue, name + ": " + std::to_string(config.dynamicSmemBytes) +
                                            " bytes of shared memory, " + std::to_string(most) + " allowed");
  }
  if (parameter_bytes > kMaxParameterBytes) {
    return error(cudaErrorInvalidValue,
                 name + ": " + std::to_string(parameter_bytes) + " bytes of parameters");
  }
  if (!is_stream(config.stream) || (config.stream != nullptr && device_of(config.stream) != current_device))
    return error(cudaErrorInvalidResourceHandle, name + ": a stream of another device, or none");
  count_work(config.stream, Call::kLaunch);
  auto run = [=, body = std::move(body)]() mutable {
    run_grid(
        kernel, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, static_cast<int>(cluster),
        config.dynamicSmemBytes, [](void* thread) { (*static_cast<std::function<void()>*>(thread))(); },
        &body);
  };
  enqueue(config.stream, std::move(run), kernel);
  return cudaSuccess;
}

}  // namespace pointsman::emulation

namespace emulation = pointsman::emulation;
using emulation::device;
using emulation::error;
using emulation::last_error;

// ------------------------------------------------------------------------------ errors and devices

const char* cudaGetErrorName(cudaError_t code) {
  switch (code) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorGraphExecUpdateFailure:
      return "cudaErrorGraphExecUpdateFailure";
  }
  return "unrecognized error code";
}
const char* cudaGetErrorString(cudaError_t code) {
  switch (code) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorGraphExecUpdateFailure:
      return "the graph update was not performed because it included changes which violated constraints";
  }
  return "unrecognized error code";
}
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = device().count;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* number) {
  *number = emulation::current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int number) {
  if (number < 0 || number >= device().count)
    return error(cudaErrorInvalidDevice, "cudaSetDevice: no such device");
  emulation::current_device = number;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int number) {
  if (number < 0 || number >= device().count)
    return error(cudaErrorInvalidDevice, "cudaGetDeviceProperties: no such device");
  *properties = {};
  const emulation::Family& family = emulation::family();
  std::snprintf(properties->name, sizeof properties->name, "%s", family.name);
  properties->pciBusID = number + 1;
  properties->totalGlobalMem = device().total;
  properties->sharedMemPerBlock = emulation::kSharedBytesWithoutConsent;
  properties->sharedMemPerBlockOptin = family.most_shared_bytes;
  properties->sharedMemPerMultiprocessor = family.most_shared_bytes + 1024;
  properties->reservedSharedMemPerBlock = 1024;
  properties->major = family.major;
  properties->minor = 0;
  properties->multiProcessorCount = family.multiprocessors;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->regsPerBlock = properties->regsPerMultiprocessor = 65536;
  properties->l2CacheSize = 50 * 1024 * 1024;
  properties->memoryBusWidth = 6144;
  properties->maxGridSize[0] = 0x7FFFFFFF;
  properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int number) {
  cudaDeviceProp properties;
  const cudaError_t status = cudaGetDeviceProperties(&properties, number);
  if (status != cudaSuccess) return status;
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = properties.multiProcessorCount;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = properties.major;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = properties.minor;
      break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = static_cast<int>(properties.sharedMemPerMultiprocessor);
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(properties.sharedMemPerBlockOptin);
      break;
    default:
      return error(cudaErrorInvalidValue, "cudaDeviceGetAttribute: not emulated");
  }
  return cudaSuccess;
}

// ------------------------------------------------------------------------------ memory

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  *total_bytes = device().total;
  *free_bytes = device().total - std::min(device().total, device().used);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  emulation::forbid_in_capture("cudaMalloc");
  auto& d = device();
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  const std::lock_guard lock(d.mutex);
  if (bytes > d.total - std::min(d.total, d.used)) return last_error = cudaErrorMemoryAllocation;
  const size_t zone = emulation::red_zone();
  void* storage = nullptr;
  if (posix_memalign(&storage, emulation::kAlignment, bytes + 2 * zone) != 0) {
    return last_error = cudaErrorMemoryAllocation;
  }
  auto* const data = static_cast<unsigned char*>(storage) + zone;
  emulation::fill_red_zone(data - zone, zone);
  emulation::fill_poison(data, bytes);
  emulation::fill_red_zone(data + bytes, zone);
  *pointer = data;
  d.allocations[reinterpret_cast<uintptr_t>(*pointer)] = bytes;
  d.used += bytes;
  return cudaSuccess;
}

cudaError_t cudaFree(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  emulation::forbid_in_capture("cudaFree");
  emulation::count_call(emulation::Call::kWait);
  emulation::finish_all_streams();
  auto& d = device();
  const std::lock_guard lock(d.mutex);
  const auto found = d.allocations.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == d.allocations.end())
    return error(cudaErrorInvalidValue, "cudaFree: not allocated, or freed before");
  d.used -= found->second;
  d.allocations.erase(found);
  std::free(static_cast<char*>(pointer) - emulation::red_zone());
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  emulation::forbid_in_capture("cudaMallocHost");
  auto& d = device();
  const std::lock_guard lock(d.mutex);
  *pointer = std::malloc(bytes);
  if (*pointer == nullptr) return last_error = cudaErrorMemoryAllocation;
  d.pinned[reinterpret_cast<uintptr_t>(*pointer)] = bytes;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  emulation::forbid_in_capture("cudaFreeHost");
  emulation::count_call(emulation::Call::kWait);
  emulation::finish_all_streams();
  auto& d = device();
  const std::lock_guard lock(d.mutex);
  if (d.pinned.erase(reinterpret_cast<uintptr_t>(pointer)) == 0)
    return error(cudaErrorInvalidValue, "cudaFreeHost: not allocated, or freed before");
  std::free(pointer);
  return cudaSuccess;
}

namespace {

// Copies that a copy's kind allows.
cudaError_t check_copy(const void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (!emulation::side_is(to_device, to, bytes, "cudaMemcpy to") ||
      !emulation::side_is(from_device, from, bytes, "cudaMemcpy from")) {
    return last_error = cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

// What compute-sanitizer's initcheck reports.
void check_written(const void* from, size_t bytes) {
  size_t unwritten = 0;
  for (size_t at = 0; at + sizeof emulation::kPoison <= bytes; at += sizeof emulation::kPoison)
    unwritten +=
        std::memcmp(static_cast<const char*>(from) + at, &emulation::kPoison, sizeof emulation::kPoison) == 0;
  if (unwritten > 0) {
    emulation::complain("cudaMemcpyAsync to the host: " + std::to_string(unwritten) +
                        " words that nobody wrote");
  }
}

cudaError_t require_stream(cudaStream_t stream) {
  return emulation::is_stream(stream) ? cudaSuccess
                                      : error(cudaErrorInvalidResourceHandle, "stream: not a live handle");
}

}  // namespace

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0) return cudaSuccess;
  const cudaError_t status = check_copy(to, from, bytes, kind);
  emulation::forbid_in_capture("cudaMemcpy");
  emulation::count_call(emulation::Call::kWait);
  if (status == cudaSuccess) emulation::enqueue(nullptr, [=] { std::memcpy(to, from, bytes); });
  return status;
}

// Page-locked memory is read and written when the copy's turn comes; other host memory before the call
// returns.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  cudaError_t status = require_stream(stream);
  if (status == cudaSuccess && bytes > 0) status = check_copy(to, from, bytes, kind);
  if (status != cudaSuccess || bytes == 0) return status;
  emulation::count_work(stream, emulation::Call::kCopy);
  const bool is_staged = kind == cudaMemcpyHostToDevice && !emulation::is_pinned(from, bytes);
  const bool is_awaited = kind == cudaMemcpyDeviceToHost && !emulation::is_pinned(to, bytes);
  if (is_staged || is_awaited) {  // CUDA may wait to stage it
    emulation::forbid_in_capture("cudaMemcpyAsync of memory that is not page-locked", stream);
    emulation::count_call(emulation::Call::kWait);
  }
  if (is_staged) {
    const auto* const begin = static_cast<const unsigned char*>(from);
    emulation::enqueue(stream, [to, staged = std::vector<unsigned char>(begin, begin + bytes)] {
      std::memcpy(to, staged.data(), staged.size());
    });
    return cudaSuccess;
  }
  emulation::enqueue(stream, [=] {
    if (kind == cudaMemcpyDeviceToHost) check_written(from, bytes);
    std::memcpy(to, from, bytes);
  });
  if (is_awaited) emulation::finish_stream(stream);
  return cudaSuccess;
}

cudaError_t cudaMemset(void* pointer, int value, size_t bytes) {
  return cudaMemsetAsync(pointer, value, bytes, nullptr);
}
cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t stream) {
  const cudaError_t status = require_stream(stream);
  if (status != cudaSuccess || bytes == 0) return status;
  if (!emulation::side_is(true, pointer, bytes, "cudaMemset")) return last_error = cudaErrorInvalidValue;
  emulation::count_work(stream, emulation::Call::kCopy);
  emulation::enqueue(stream, [=] { std::memset(pointer, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
      static_cast<size_t>(value) > emulation::family().most_shared_bytes) {
    return error(cudaErrorInvalidValue, "cudaFuncSetAttribute: " + std::to_string(value) +
                                            " bytes of shared memory; a block can have " +
                                            std::to_string(emulation::family().most_shared_bytes));
  }
  const std::lock_guard lock(device().mutex);
  device().shared_consent[kernel] = static_cast<size_t>(value);
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel, int threads,
                                                          size_t shared_bytes) {
  constexpr int kMostThreads = 2048, kMostBlocks = 32, kRegisters = 65536, kRegistersOfThread = 128;
  const size_t most = std::max(emulation::consented_bytes(kernel), emulation::kSharedBytesWithoutConsent);
  if (shared_bytes > most) {
    return error(cudaErrorInvalidValue, "occupancy with " + std::to_string(shared_bytes) +
                                            " bytes of shared memory, " + std::to_string(most) + " allowed");
  }
  const size_t shared = (emulation::family().most_shared_bytes + 1024) / (shared_bytes + 1024);
  *blocks = static_cast<int>(std::min<size_t>(
      {shared, size_t{kMostBlocks},
       static_cast<size_t>(std::min(kMostThreads, kRegisters / kRegistersOfThread) / threads)}));
  return cudaSuccess;
}

// GPCs are of unequal size, as on many devices: 31 clusters of four blocks, not 33.
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* kernel,
                                           const cudaLaunchConfig_t* config) {
  constexpr int kGpcs[] = {18, 18, 18, 16, 16, 16, 16, 14};
  static_assert(std::accumulate(std::begin(kGpcs), std::end(kGpcs), 0) ==
                emulation::kFamilies[1].multiprocessors);
  if (emulation::family().major < 9 || config->numAttrs != 1 ||
      config->attrs[0].id != cudaLaunchAttributeClusterDimension)
    return error(cudaErrorInvalidConfiguration, "cudaOccupancyMaxActiveClusters: no clusters");
  int blocks = 0;
  const cudaError_t status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks, kernel, static_cast<int>(config->blockDim.x), config->dynamicSmemBytes);
  *clusters = 0;
  for (const int multiprocessors : kGpcs) {
    *clusters += multiprocessors * blocks / static_cast<int>(config->attrs[0].val.clusterDim.x);
  }
  return status;
}

// ------------------------------------------------------------------------------ cuBLAS

namespace {

// A column-major matrix as stored, a batch of them.
struct StoredMatrix {
  const float* data;
  int rows, columns, ld;
  long long stride;

  bool valid(const char* name, int batch_count) const {
    if (ld < std::max(1, rows)) {
      emulation::complain(std::string("cublas: leading dimension of ") + name + " is less than its rows");
      return false;
    }
    if (rows == 0 || columns == 0) return true;
    // Negative strides would be valid, too; nothing here uses them.
    const long long last = stride * (batch_count - 1) + static_cast<long long>(columns - 1) * ld + rows;
    if (stride >= 0 && emulation::is_device_range(data, static_cast<size_t>(last) * sizeof(float)))
      return true;
    emulation::complain(std::string("cublas: ") + name + " is not in one allocation of device memory");
    return false;
  }
};

struct Product {
  bool transpose_a, transpose_b;
  int m, n, k;
  float alpha, beta;
  int lda, ldb, ldc;
  cublasComputeType_t compute;

  // A factor as the tensor cores read it.
  float rounded(float x) const {
    using pointsman::cuda::to_bf16_pair, pointsman::cuda::to_tf32;
    if (compute == CUBLAS_COMPUTE_32F_FAST_TF32) return std::bit_cast<float>(to_tf32(x));
    if (compute == CUBLAS_COMPUTE_32F_FAST_16BF) return std::bit_cast<float>(to_bf16_pair(0.0f, x));
    return x;
  }
};

void multiply(const Product& p, const float* a, const float* b, float* c) {
  std::vector<float> sums(static_cast<size_t>(p.m));
  for (int64_t j = 0; j < p.n; ++j) {
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (int64_t l = 0; l < p.k; ++l) {
      const float factor = p.rounded(p.transpose_b ? b[l * p.ldb + j] : b[j * p.ldb + l]);
      for (int64_t i = 0; i < p.m; ++i)
        sums[i] += factor * p.rounded(p.transpose_a ? a[i * p.lda + l] : a[l * p.lda + i]);
    }
    for (int64_t i = 0; i < p.m; ++i) {  // beta 0: c is not read
      c[j * p.ldc + i] = p.beta == 0.0f ? p.alpha * sums[i] : p.alpha * sums[i] + p.beta * c[j * p.ldc + i];
    }
  }
}

cublasStatus_t require_handle(cublasHandle_t handle) {
  {
    const std::lock_guard lock(device().mutex);
    if (device().handles.count(handle) > 0) return CUBLAS_STATUS_SUCCESS;
  }
  emulation::complain("cuBLAS: not a live handle");
  return CUBLAS_STATUS_NOT_INITIALIZED;
}

}  // namespace

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  const std::lock_guard lock(device().mutex);
  *handle = *device().handles.insert(new cublasContext).first;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  const cublasStatus_t status = require_handle(handle);
  const std::lock_guard lock(device().mutex);
  if (device().handles.erase(handle) > 0) delete handle;
  return status;
}
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  if (require_stream(stream) != cudaSuccess) return CUBLAS_STATUS_INVALID_VALUE;
  const cublasStatus_t status = require_handle(handle);
  if (status == CUBLAS_STATUS_SUCCESS) handle->stream = stream;
  return status;
}
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, size_t bytes) {
  if (!emulation::is_device_range(workspace, bytes)) return CUBLAS_STATUS_INVALID_VALUE;
  return require_handle(handle);
}
const char* cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
  }
  return "unknown";
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transpose_a,
                                          cublasOperation_t transpose_b, int m, int n, int k,
                                          const void* alpha, const void* a, cudaDataType, int lda,
                                          long long stride_a, const void* b, cudaDataType, int ldb,
                                          long long stride_b, const void* beta, void* c, cudaDataType,
                                          int ldc, long long stride_c, int batch_count,
                                          cublasComputeType_t compute, cublasGemmAlgo_t) {
  if (require_handle(handle) != CUBLAS_STATUS_SUCCESS) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (m < 0 || n < 0 || k < 0 || batch_count < 0) {
    emulation::complain("cublas: a negative size");
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (m == 0 || n == 0 || batch_count == 0) return CUBLAS_STATUS_SUCCESS;
  emulation::count_work(handle->stream, emulation::Call::kLaunch);
  const bool ta = transpose_a == CUBLAS_OP_T, tb = transpose_b == CUBLAS_OP_T;
  const auto *x = static_cast<const float*>(a), *y = static_cast<const float*>(b);
  const auto z = static_cast<float*>(c);
  const StoredMatrix stored_a{x, ta ? k : m, ta ? m : k, lda, stride_a};
  const StoredMatrix stored_b{y, tb ? n : k, tb ? k : n, ldb, stride_b};
  const StoredMatrix stored_c{z, m, n, ldc, stride_c};
  if (!stored_a.valid("A", batch_count) || !stored_b.valid("B", batch_count) ||
      !stored_c.valid("C", batch_count)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const auto number = [](const void* from) { return *static_cast<const float*>(from); };
  const Product product{ta, tb, m, n, k, number(alpha), number(beta), lda, ldb, ldc, compute};
  emulation::enqueue(handle->stream, [=] {
    for (int i = 0; i < batch_count; ++i)
      multiply(product, x + i * stride_a, y + i * stride_b, z + i * stride_c);
  });
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transpose_a,
                            cublasOperation_t transpose_b, int m, int n, int k, const void* alpha,
                            const void* a, cudaDataType a_type, int lda, const void* b, cudaDataType b_type,
                            int ldb, const void* beta, void* c, cudaDataType c_type, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  return cublasGemmStridedBatchedEx(handle, transpose_a, transpose_b, m, n, k, alpha, a, a_type, lda, 0, b,
                                    b_type, ldb, 0, beta, c, c_type, ldc, 0, 1, compute, algorithm);
}
