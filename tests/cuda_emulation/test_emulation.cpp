// SPDX-License-Identifier: Apache-2.0
// The emulation itself. What it finds in faulty kernels is shown by mutants/.
#include <cublas_v2.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "kernels/cuda/device.cuh"
#include "tests/catch.h"
#include "tests/kernels/cuda/device_test.h"

namespace {

using pointsman::cuda::DeviceArray;
using pointsman::cuda::launch;
using pointsman::cuda::launch_clusters;
using pointsman::emulation::Schedule;

constexpr unsigned kAllLanes = 0xFFFFFFFFu;

struct WithSchedule {
  explicit WithSchedule(Schedule schedule) { pointsman::emulation::set_schedule(schedule); }
  ~WithSchedule() { pointsman::emulation::set_schedule(before); }
  Schedule before = pointsman::emulation::current_schedule();
};

const std::vector<Schedule> kSchedules = {
    {Schedule::kForward, 0}, {Schedule::kReverse, 0}, {Schedule::kGreedy, 1}, {Schedule::kGreedy, 2}};

// The message of the launch's error; empty: none.
template <typename Kernel, typename... Arguments>
std::string error_of_clusters(Kernel kernel, unsigned cluster, dim3 grid, dim3 block, size_t shared_bytes,
                              Arguments... arguments) {
  try {
    launch_clusters(kernel, cluster, grid, block, shared_bytes, nullptr, arguments...);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

template <typename Kernel, typename... Arguments>
std::string error_of(Kernel kernel, dim3 grid, dim3 block, size_t shared_bytes, Arguments... arguments) {
  return error_of_clusters(kernel, 1, grid, block, shared_bytes, arguments...);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// ------------------------------------------------------------------------------ threads that meet

__global__ void warp_kernel(int* out, int width) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  int* const row = out + 9 * threadIdx.x;
  row[0] = __shfl_sync(kAllLanes, lane, 5, width);
  row[1] = __shfl_up_sync(kAllLanes, lane, 3, width);
  row[2] = __shfl_down_sync(kAllLanes, lane, 3, width);
  row[3] = __shfl_xor_sync(kAllLanes, lane, 6, width);
  row[4] = static_cast<int>(__ballot_sync(kAllLanes, lane % 3 == 0));
  row[5] = __any_sync(kAllLanes, lane == 7);
  row[6] = __all_sync(kAllLanes, lane != 7);
  row[7] = __reduce_max_sync(kAllLanes, lane - 40);
  row[8] = __reduce_add_sync(0xFFFFu << (lane & 16), lane);
}

TEST_CASE("warp operations") {
  const int width = GENERATE(8, 16, 32);
  const WithSchedule schedule(GENERATE(from_range(kSchedules)));
  DeviceArray<int> out(9 * 64);
  launch(warp_kernel, dim3(1), dim3(64), 0, nullptr, out.data(), width);
  const std::vector<int> rows = out.download();
  unsigned thirds = 0;
  for (int lane = 0; lane < 32; lane += 3) thirds |= 1u << lane;
  for (int thread = 0; thread < 64; ++thread) {
    const int lane = thread % 32, segment = lane / width * width;
    const int* row = rows.data() + 9 * thread;
    CHECK(row[0] == segment + 5);
    CHECK(row[1] == (lane - 3 < segment ? lane : lane - 3));
    CHECK(row[2] == (lane + 3 >= segment + width ? lane : lane + 3));
    CHECK(row[3] == (lane ^ 6));
    CHECK(static_cast<unsigned>(row[4]) == thirds);
    CHECK(row[5] == 1);
    CHECK(row[6] == 0);
    CHECK(row[7] == -9);
    CHECK(row[8] == (lane < 16 ? 120 : 376));
  }
}

__global__ void wide_values_kernel(double* numbers, unsigned long long* words) {
  numbers[threadIdx.x] = __shfl_xor_sync(kAllLanes, 1.0 / (1 + threadIdx.x), 1);
  words[threadIdx.x] = __shfl_sync(kAllLanes, 0x123456789ull << threadIdx.x % 8, 4);
}

TEST_CASE("shuffles of eight bytes") {
  DeviceArray<double> numbers(32);
  DeviceArray<unsigned long long> words(32);
  launch(wide_values_kernel, dim3(1), dim3(32), 0, nullptr, numbers.data(), words.data());
  CHECK(numbers.download()[6] == 1.0 / 8);
  CHECK(words.download()[31] == 0x1234567890ull);
}

__global__ void vote_kernel(int* out) {
  out[3 * threadIdx.x] = __syncthreads_count(threadIdx.x < 50);
  out[3 * threadIdx.x + 1] = __syncthreads_and(threadIdx.x < 100);
  out[3 * threadIdx.x + 2] = __syncthreads_or(threadIdx.x == 50);
}

TEST_CASE("votes of a block") {
  DeviceArray<int> out(300);
  launch(vote_kernel, dim3(1), dim3(100), 0, nullptr, out.data());
  const std::vector<int> votes = out.download();
  for (size_t i = 0; i < votes.size(); i += 3) {
    CHECK(votes[i] == 50);
    CHECK(votes[i + 1] == 1);
    CHECK(votes[i + 2] == 1);
  }
}

__global__ void indices_kernel(unsigned* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = 1000 * block + thread;
}

TEST_CASE("three dimensions") {
  const WithSchedule schedule(GENERATE(from_range(kSchedules)));
  DeviceArray<unsigned> out(2 * 3 * 4 * 3 * 5 * 2);
  launch(indices_kernel, dim3(2, 3, 4), dim3(3, 5, 2), 0, nullptr, out.data());
  const std::vector<unsigned> values = out.download();
  for (unsigned i = 0; i < values.size(); ++i) CHECK(values[i] == 1000 * (i / 30) + i % 30);
}

// ------------------------------------------------------------------------------ clusters

// Of each block the number in its cluster, and what the last block of the cluster made of its index.
__global__ void cluster_kernel(int* out) {
  POINTSMAN_DYNAMIC_SHARED(int, words);
  words[threadIdx.x] = static_cast<int>(1000 * blockIdx.x + threadIdx.x);
  pointsman::cuda::cluster_arrive();
  const int rank = pointsman::cuda::cluster_rank();
  __syncthreads();  // a block's own barrier between the halves of the cluster's
  pointsman::cuda::cluster_wait();
  int* const row = out + 2 * (blockIdx.x * blockDim.x + threadIdx.x);
  row[0] = rank;
  row[1] = pointsman::cuda::in_block_of_cluster(words, 3)[threadIdx.x];
  pointsman::cuda::cluster_arrive();
  pointsman::cuda::cluster_wait();
}

TEST_CASE("blocks of a cluster read each other's shared memory") {
  const WithSchedule schedule(GENERATE(from_range(kSchedules)));
  constexpr int kThreads = 40;  // not whole warps
  DeviceArray<int> out(2 * 8 * kThreads);
  launch_clusters(cluster_kernel, 4, dim3(8), dim3(kThreads), kThreads * sizeof(int), nullptr, out.data());
  const std::vector<int> rows = out.download();
  for (int i = 0; i < 8 * kThreads; ++i) {
    const int block = i / kThreads;
    CHECK(rows[2 * i] == block % 4);
    CHECK(rows[2 * i + 1] == 1000 * (block / 4 * 4 + 3) + i % kThreads);
  }
}

enum class Misuse { kArriveTwice, kWaitOnly, kOtherMemory, kNoSuchBlock, kEndEarly, kEndLate };

__global__ void misused_cluster_kernel(Misuse misuse, int* out) {
  POINTSMAN_DYNAMIC_SHARED(int, words);
  if (misuse == Misuse::kEndEarly && blockIdx.x == 1) return;
  if (misuse == Misuse::kEndLate && blockIdx.x == 1) {
    for (int i = 0; i < 4; ++i) __syncthreads();
    return;
  }
  if (misuse != Misuse::kWaitOnly) pointsman::cuda::cluster_arrive();
  if (misuse == Misuse::kArriveTwice) pointsman::cuda::cluster_arrive();
  pointsman::cuda::cluster_wait();
  int* const own = misuse == Misuse::kOtherMemory ? out : words;
  *pointsman::cuda::in_block_of_cluster(own, misuse == Misuse::kNoSuchBlock ? 2 : 1) = 0;
}

TEST_CASE("clusters that are misused") {
  DeviceArray<int> out(1);
  const auto error = [&](Misuse misuse) {
    return error_of_clusters(misused_cluster_kernel, 2, 2, 1, sizeof(int), misuse, out.data());
  };
  CHECK_THAT(error(Misuse::kArriveTwice), has_text("twice, without a wait between [block 0 thread 0]"));
  CHECK_THAT(error(Misuse::kWaitOnly), has_text("by a thread that has not arrived [block 0 thread 0]"));
  CHECK_THAT(error(Misuse::kOtherMemory), has_text("not the block's shared memory [block 0 thread 0]"));
  CHECK_THAT(error(Misuse::kNoSuchBlock), has_text("block 2 of a cluster of 2 [block 0 thread 0]"));
  CHECK_THAT(error(Misuse::kEndEarly), has_text("after a thread of it has ended [block 0 thread 0]"));
  CHECK_THAT(error(Misuse::kEndLate), has_text("ends while [block 0 thread 0] is at the cluster's barrier"));
}

__global__ void incomplete_cluster_kernel() {
  if (blockIdx.x == 1 && threadIdx.x < 31) __syncthreads();
  pointsman::cuda::cluster_arrive();
  pointsman::cuda::cluster_wait();
}

TEST_CASE("a cluster that waits for threads that do not come") {
  const std::string error = error_of_clusters(incomplete_cluster_kernel, 2, 2, 32, 0);
  CHECK_THAT(error, has_text("32 threads wait in cluster_wait at test_emulation.cpp"));
  CHECK_THAT(error, has_text("31 threads wait in __syncthreads at test_emulation.cpp"));
}

// ------------------------------------------------------------------------------ masks that are wrong

__global__ void other_mask_kernel() { __syncwarp(threadIdx.x == 3 ? 0xFF00u : kAllLanes); }
__global__ void full_mask_kernel() { __syncwarp(); }
__global__ void ended_lane_kernel() {
  if (threadIdx.x == 0) return;
  __syncwarp();
}
__global__ void two_masks_kernel() { __syncwarp(threadIdx.x < 8 ? 0xFFu : kAllLanes); }
__global__ void two_operations_kernel() {
  if (threadIdx.x < 8) {
    __syncwarp();
  } else {
    __any_sync(kAllLanes, 1);
  }
}

TEST_CASE("masks are checked") {
  const std::string other_mask = error_of(other_mask_kernel, 1, 32, 0);
  CHECK(contains(other_mask, "other_mask_kernel: __syncwarp at test_emulation.cpp:"));
  CHECK(contains(other_mask, "mask 0x0000FF00 does not name the calling lane 3 [block 0 thread 3]"));
  CHECK(contains(error_of(full_mask_kernel, 1, 48, 0), "names lanes that the block does not have"));
  CHECK(contains(error_of(ended_lane_kernel, 1, 32, 0), "names lane 0, which has ended"));
  CHECK(contains(error_of(two_masks_kernel, 1, 32, 0), "deadlock: 24 threads wait in __syncwarp at"));
  const std::string two_operations = error_of(two_operations_kernel, 1, 32, 0);
  CHECK(contains(two_operations, "__any_sync at test_emulation.cpp:"));
  CHECK(contains(two_operations, "meets lane 0 in __syncwarp at"));
  // After an error the next launch is as good as the first.
  CHECK(error_of(full_mask_kernel, 3, 64, 0) == "");
}

// ------------------------------------------------------------------------------ schedules

__global__ void order_kernel(int* next, int* order) {
  order[atomicAdd(next, 1)] = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  __syncthreads();
  order[atomicAdd(next, 1)] = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

std::vector<int> thread_order(Schedule schedule) {
  const WithSchedule with(schedule);
  DeviceArray<int> next(std::vector<int>{0}), order(2 * 3 * 128);
  launch(order_kernel, dim3(3), dim3(128), 0, nullptr, next.data(), order.data());
  return order.download();
}

TEST_CASE("schedules") {
  const std::vector<int> forward = thread_order({Schedule::kForward, 0});
  for (int i = 0; i < 768; ++i) CHECK(forward[i] == i / 256 * 128 + i % 128);
  const std::vector<int> reverse = thread_order({Schedule::kReverse, 0});
  CHECK(reverse[0] == 383);
  CHECK(reverse[1] == 382);
  CHECK(reverse[767] == 0);
  CHECK(thread_order({Schedule::kGreedy, 5}) == thread_order({Schedule::kGreedy, 5}));
  CHECK(thread_order({Schedule::kGreedy, 5}) != thread_order({Schedule::kGreedy, 6}));
}

// ------------------------------------------------------------------------------ memory

__global__ void poison_kernel(unsigned* out) {
  POINTSMAN_DYNAMIC_SHARED(unsigned, words);
  out[threadIdx.x] = words[threadIdx.x];
  words[threadIdx.x] = 0;
}

TEST_CASE("every block finds its shared memory poisoned") {
  DeviceArray<unsigned> out(32);
  launch(poison_kernel, dim3(4), dim3(32), 32 * sizeof(unsigned), nullptr, out.data());
  for (unsigned word : out.download()) CHECK(word == pointsman::emulation::kPoison);
}

TEST_CASE("device arrays") {
  const std::vector<int> values = {3, 1, 2};
  DeviceArray<int> array(values);
  CHECK(array.size() == 3);
  CHECK(array.download() == values);
  array.upload({4, 5, 6});
  DeviceArray<int> moved = std::move(array);
  CHECK(moved.download() == std::vector<int>{4, 5, 6});
  const auto poison = static_cast<int>(pointsman::emulation::kPoison);
  CHECK(DeviceArray<int>(2).download() == std::vector<int>{poison, poison});
  CHECK(DeviceArray<int>(0).download().empty());
  CHECK_THROWS_AS(moved.upload({1}), std::invalid_argument);
}

TEST_CASE("a copy to the host of what nobody wrote is a complaint") {
  const pointsman::cuda::Stream stream;
  DeviceArray<int> array(3);
  int host[3];
  const auto complaints_of_copy = [&] {
    const int before = pointsman::emulation::complaints();
    cudaMemcpyAsync(host, array.data(), sizeof host, cudaMemcpyDeviceToHost, stream.get());
    stream.synchronize();
    return pointsman::emulation::complaints() - before;
  };
  cudaMemsetAsync(array.data(), 0, 2 * sizeof(int), stream.get());
  CHECK(complaints_of_copy() == 1);
  cudaMemsetAsync(array.data() + 2, 0, sizeof(int), stream.get());
  CHECK(complaints_of_copy() == 0);
}

TEST_CASE("memory runs out where the test says") {
  size_t free_before = 0, total_before = 0, free_bytes = 0, total = 0;
  cudaMemGetInfo(&free_before, &total_before);
  pointsman::emulation::set_device_memory(1000);
  {
    const DeviceArray<char> some(600);
    cudaMemGetInfo(&free_bytes, &total);
    CHECK(total == 1000);
    CHECK(free_bytes == 400);
    char* more = nullptr;
    CHECK(cudaMalloc(&more, 401) == cudaErrorMemoryAllocation);
    CHECK(more == nullptr);
    CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
    CHECK(cudaGetLastError() == cudaSuccess);
  }
  CHECK(pointsman::emulation::allocated_bytes() == 0);
  pointsman::emulation::set_device_memory(total_before);
}

// Does the call complain, and with which error?
template <typename Call>
void check_complaint(Call call, int error) {
  const int before = pointsman::emulation::complaints();
  CHECK(static_cast<int>(call()) == error);
  CHECK(pointsman::emulation::complaints() == before + 1);
}

TEST_CASE("a launch that fails names its kernel") {
  CHECK(contains(error_of(two_masks_kernel, 1, 2048, 0),
                 "launch of (anonymous namespace)::two_masks_kernel()"));
}

TEST_CASE("misuse of memory") {
  DeviceArray<int> array(4);
  int host[8] = {};
  const auto to = cudaMemcpyHostToDevice, from = cudaMemcpyDeviceToHost;
  check_complaint([&] { return cudaMemcpy(array.data(), host, 20, to); }, cudaErrorInvalidValue);
  check_complaint([&] { return cudaMemcpy(array.data() - 1, host, 4, to); }, cudaErrorInvalidValue);
  check_complaint([&] { return cudaMemcpy(host, host + 4, 4, from); }, cudaErrorInvalidValue);
  check_complaint([&] { return cudaMemcpy(array.data(), host, 4, from); }, cudaErrorInvalidValue);
  check_complaint([&] { return cudaMemset(array.data() + 3, 0, 8); }, cudaErrorInvalidValue);
  check_complaint([&] { return cudaFree(array.data() + 1); }, cudaErrorInvalidValue);
  check_complaint([&] { return cudaFreeHost(host); }, cudaErrorInvalidValue);
  int* freed = nullptr;
  REQUIRE(cudaMalloc(&freed, 16) == cudaSuccess);
  CHECK(cudaFree(freed) == cudaSuccess);
  check_complaint([&] { return cudaFree(freed); }, cudaErrorInvalidValue);
  check_complaint([&] { return cudaMemcpy(freed, host, 4, to); }, cudaErrorInvalidValue);
  cudaGetLastError();
}

TEST_CASE("streams and events") {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  DeviceArray<int> array(1);
  const int value = 7;
  CHECK(cudaMemcpyAsync(array.data(), &value, 4, cudaMemcpyHostToDevice, stream) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(array.download()[0] == 7);
  cudaEvent_t start = nullptr, end = nullptr;
  REQUIRE(cudaEventCreate(&start) == cudaSuccess);
  REQUIRE(cudaEventCreate(&end) == cudaSuccess);
  float milliseconds = -1.0f;
  check_complaint([&] { return cudaEventElapsedTime(&milliseconds, start, end); },
                  cudaErrorInvalidResourceHandle);
  CHECK(cudaEventRecord(start, stream) == cudaSuccess);
  CHECK(cudaEventRecord(end, stream) == cudaSuccess);
  CHECK(cudaEventSynchronize(end) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&milliseconds, start, end) == cudaSuccess);
  CHECK(milliseconds >= 0.0f);
  CHECK(cudaEventDestroy(start) == cudaSuccess);
  CHECK(cudaEventDestroy(end) == cudaSuccess);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
  check_complaint([&] { return cudaStreamSynchronize(stream); }, cudaErrorInvalidResourceHandle);
  cudaGetLastError();
}

// Two streams, an event and a word of page-locked memory.
struct Streams {
  cudaStream_t first = nullptr, second = nullptr;
  cudaEvent_t event = nullptr;
  int* word = nullptr;

  Streams() {
    REQUIRE(cudaStreamCreate(&first) == cudaSuccess);
    REQUIRE(cudaStreamCreate(&second) == cudaSuccess);
    REQUIRE(cudaEventCreate(&event) == cudaSuccess);
    REQUIRE(cudaMallocHost(&word, sizeof *word) == cudaSuccess);
  }
  ~Streams() {
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
    cudaEventDestroy(event);
    cudaFreeHost(word);
  }
  void upload(DeviceArray<int>& to, cudaStream_t stream) const {
    CHECK(cudaMemcpyAsync(to.data(), word, 4, cudaMemcpyHostToDevice, stream) == cudaSuccess);
  }
  int download(const DeviceArray<int>& from, cudaStream_t stream) const {
    CHECK(cudaMemcpyAsync(word, from.data(), 4, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    return *word;
  }
};

__global__ void double_kernel(int* word) { *word *= 2; }

TEST_CASE("what a stream has to do waits for somebody who waits for it") {
  const WithSchedule forward({Schedule::kForward, 0});
  const Streams s;
  DeviceArray<int> array(1);
  *s.word = 3;
  s.upload(array, s.first);
  *s.word = 4;  // too early: the copy has not read the word
  launch(double_kernel, dim3(1), dim3(1), 0, s.first, array.data());
  *s.word = 5;
  CHECK(cudaStreamQuery(s.first) == cudaErrorNotReady);  // the copy is made
  *s.word = 6;
  CHECK(s.download(array, s.first) == 10);
  CHECK(cudaStreamQuery(s.first) == cudaSuccess);
  int value = 7;  // ordinary memory is read at once
  CHECK(cudaMemcpyAsync(array.data(), &value, 4, cudaMemcpyHostToDevice, s.first) == cudaSuccess);
  value = 8;
  CHECK(s.download(array, s.first) == 7);
}

TEST_CASE("the order of two streams is the events', and else anything") {
  for (const Schedule schedule : kSchedules) {
    const WithSchedule set(schedule);
    const Streams s;
    DeviceArray<int> array(1);
    *s.word = 3;
    s.upload(array, s.first);
    CHECK(cudaEventRecord(s.event, s.first) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(s.second, s.event) == cudaSuccess);
    launch(double_kernel, dim3(1), dim3(1), 0, s.second, array.data());
    CHECK(s.download(array, s.second) == 6);
  }
  const WithSchedule forward({Schedule::kForward, 0});
  const Streams s;
  DeviceArray<int> array(std::vector<int>{1});
  *s.word = 3;
  s.upload(array, s.first);
  launch(double_kernel, dim3(1), dim3(1), 0, s.second, array.data());  // waits for nothing
  CHECK(cudaStreamSynchronize(s.second) == cudaSuccess);
  CHECK(array.download()[0] == 3);
}

TEST_CASE("a graph does what its stream was given, with the arguments of the last time") {
  const WithSchedule forward({Schedule::kForward, 0});
  pointsman::cuda::Stream stream;
  pointsman::cuda::Graph graph;
  DeviceArray<int> one(std::vector<int>{1}), ten(std::vector<int>{10});
  int* host = nullptr;
  REQUIRE(cudaMallocHost(&host, sizeof(int)) == cudaSuccess);
  std::vector<int> seen;
  pointsman::cuda::HostCall call([&] { seen.push_back(*host); });
  const auto record = [&](DeviceArray<int>& array, int times) {
    for (int i = 0; i < times; ++i) launch(double_kernel, dim3(1), dim3(1), 0, stream.get(), array.data());
    cudaMemcpyAsync(host, array.data(), sizeof(int), cudaMemcpyDeviceToHost, stream.get());
    call.enqueue(stream);
  };
  const auto run = [&](DeviceArray<int>& array, int times) {
    const pointsman::emulation::Calls start = pointsman::emulation::calls();
    graph.launch(stream, [&] { record(array, times); });
    const pointsman::emulation::Calls calls = pointsman::emulation::calls() - start;
    CHECK(calls.graphs == 1);
    CHECK(calls.launches == 0);
    CHECK(calls.nodes == times);
    stream.synchronize();
    return calls.instantiations;
  };
  CHECK(run(one, 1) == 1);
  CHECK(run(ten, 1) == 0);
  CHECK(run(ten, 2) == 1);  // another graph
  CHECK(seen == std::vector<int>{2, 20, 80});
  CHECK_THROWS_AS(graph.launch(stream,
                               [&] {
                                 record(one, 1);
                                 throw std::domain_error("recording");
                               }),
                  std::domain_error);
  stream.synchronize();
  CHECK(one.download()[0] == 2);  // what was recorded until then is not done
  CHECK(run(one, 2) == 0);
  cudaFreeHost(host);
}

TEST_CASE("what a captured stream and a call of the host forbid") {
  pointsman::cuda::Stream stream;
  DeviceArray<int> array(std::vector<int>{1});
  const auto in_capture = [&](auto call) {
    const int before = pointsman::emulation::complaints();
    cudaGraph_t graph = nullptr;
    cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal);
    call();
    cudaStreamEndCapture(stream.get(), &graph);
    cudaGraphDestroy(graph);
    return pointsman::emulation::complaints() - before;
  };
  int* pointer = nullptr;
  int host = 0;
  CHECK(in_capture([] {}) == 0);
  CHECK(in_capture([&] { cudaStreamSynchronize(stream.get()); }) == 1);
  CHECK(in_capture([&] { cudaStreamQuery(stream.get()); }) == 1);
  CHECK(in_capture([&] { cudaDeviceSynchronize(); }) == 1);
  CHECK(in_capture([&] { cudaMalloc(&pointer, 4); }) == 1);
  CHECK(in_capture([&] { cudaFree(pointer); }) == 1);
  CHECK(in_capture([&] {
          cudaMemcpyAsync(array.data(), &host, sizeof host, cudaMemcpyHostToDevice, stream.get());
        }) == 1);
  CHECK(in_capture([&] { cudaMemcpy(array.data(), &host, sizeof host, cudaMemcpyHostToDevice); }) == 1);
  const int before = pointsman::emulation::complaints();
  pointsman::cuda::HostCall call([&] { cudaMemsetAsync(array.data(), 0, sizeof(int), stream.get()); });
  call.enqueue(stream);
  stream.synchronize();
  CHECK(pointsman::emulation::complaints() == before + 1);
  cudaGraph_t none = nullptr;
  CHECK(cudaStreamEndCapture(stream.get(), &none) == cudaErrorInvalidResourceHandle);
  cudaGetLastError();
}

TEST_CASE("a second device has streams of its own") {
  check_complaint([] { return cudaSetDevice(1); }, cudaErrorInvalidDevice);
  pointsman::emulation::set_device_count(2);
  int count = 0;
  CHECK(cudaGetDeviceCount(&count) == cudaSuccess);
  CHECK(count == 2);
  const Streams s;
  DeviceArray<int> array(std::vector<int>{1});
  CHECK(cudaSetDevice(1) == cudaSuccess);
  const int before = pointsman::emulation::complaints();
  CHECK_THROWS(launch(double_kernel, dim3(1), dim3(1), 0, s.first, array.data()));
  CHECK(pointsman::emulation::complaints() == before + 1);
  CHECK(cudaSetDevice(0) == cudaSuccess);
  launch(double_kernel, dim3(1), dim3(1), 0, s.first, array.data());
  CHECK(array.download()[0] == 2);
  pointsman::emulation::set_device_count(1);
  cudaGetLastError();
}

// ------------------------------------------------------------------------------ launches

struct Large {
  char bytes[4097];
};
__global__ void empty_kernel() {}
__global__ void large_kernel(Large) {}
template <int kNumber>
__global__ void named_kernel(int* out) {
  *out = kNumber;
}

TEST_CASE("launches outside the limits") {
  check_complaint([] { return error_of(empty_kernel, 1, 1025, 0).empty(); }, 0);
  check_complaint([] { return error_of(empty_kernel, dim3(1, 0), 32, 0).empty(); }, 0);
  check_complaint([] { return error_of(empty_kernel, dim3(1, 65536), 32, 0).empty(); }, 0);
  check_complaint([] { return error_of(empty_kernel, 1, 32, 227 * 1024 + 1).empty(); }, 0);
  check_complaint([] { return error_of(large_kernel, 1, 32, 0, Large{}).empty(); }, 0);
  check_complaint([] { return error_of_clusters(empty_kernel, 2, 3, 32, 0).empty(); }, 0);
  check_complaint([] { return error_of_clusters(empty_kernel, 16, 16, 32, 0).empty(); }, 0);
  CHECK(error_of(empty_kernel, 0, 32, 0) == "");  // nothing is launched
  CHECK(error_of(empty_kernel, dim3(1, 65535), 1, 0) == "");
  cudaLaunchConfig_t config{};
  config.blockDim = 32;
  config.dynamicSmemBytes = 48 * 1024 + 1;
  int* const none = nullptr;  // of a kernel that was not launched with more before
  check_complaint([&] { return cudaLaunchKernelEx(&config, named_kernel<9>, none); }, cudaErrorInvalidValue);
  CHECK(error_of(empty_kernel, 1, 1024, 227 * 1024) == "");
  cudaGetLastError();
}

TEST_CASE("kernels have names") {
  DeviceArray<int> out(1);
  launch(named_kernel<3>, dim3(1), dim3(1), 0, nullptr, out.data());
  CHECK(out.download()[0] == 3);
  const std::vector<std::string> names = pointsman::emulation::launched_kernels();
  CHECK(std::count(names.begin(), names.end(), "(anonymous namespace)::named_kernel<3>") == 1);
}

__global__ void atomics_kernel(int* out) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  atomicAdd(out, i);
  atomicMax(out + 1, i);
  atomicMin(out + 2, i);
  atomicOr(out + 3, 1 << i % 8);
  atomicCAS(out + 4, 0, 9);
}

TEST_CASE("atomics") {
  DeviceArray<int> out(std::vector<int>{0, -5, 5, 0, 0});
  launch(atomics_kernel, dim3(3), dim3(40), 0, nullptr, out.data());
  CHECK(out.download() == std::vector<int>{120 * 119 / 2, 119, 0, 255, 9});
}

// ------------------------------------------------------------------------------ products

TEST_CASE("numbers as the tensor cores read them") {
  using pointsman::cuda::to_tf32;
  CHECK(to_tf32(1.0f) == 0x3F800000u);
  CHECK(to_tf32(__uint_as_float(0x3F800FFFu)) == 0x3F800000u);
  CHECK(to_tf32(__uint_as_float(0x3F801001u)) == 0x3F802000u);
  CHECK(to_tf32(__uint_as_float(0x3F801000u)) == 0x3F800000u);  // a tie, to even
  CHECK(to_tf32(__uint_as_float(0xBF803000u)) == 0xBF804000u);
  CHECK(to_tf32(__uint_as_float(0x3FFFF000u)) == 0x40000000u);
}

std::vector<float> random_numbers(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<float> numbers(count);
  for (float& number : numbers) number = uniform(random);
  return numbers;
}

TEST_CASE("matrix products") {
  const bool ta = GENERATE(false, true), tb = GENERATE(false, true);
  const float beta = GENERATE(0.0f, 0.5f), alpha = 1.5f;
  constexpr int m = 5, n = 7, k = 9, lda = 11, ldb = 12, ldc = 6, batch = 3;
  constexpr int stride_a = 130, stride_b = 0, stride_c = 50;
  const std::vector<float> a = random_numbers(3 * 130, 1), b = random_numbers(130, 2),
                           c = random_numbers(150, 3);
  const DeviceArray<float> device_a(a), device_b(b);
  DeviceArray<float> device_c =
      beta == 0.0f ? DeviceArray<float>(150) : DeviceArray<float>(c);  // NaN is not read
  cublasHandle_t handle = nullptr;
  REQUIRE(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasGemmStridedBatchedEx(handle, ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb ? CUBLAS_OP_T : CUBLAS_OP_N,
                                     m, n, k, &alpha, device_a.data(), CUDA_R_32F, lda, stride_a,
                                     device_b.data(), CUDA_R_32F, ldb, stride_b, &beta, device_c.data(),
                                     CUDA_R_32F, ldc, stride_c, batch, CUBLAS_COMPUTE_32F_PEDANTIC,
                                     CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS);
  const std::vector<float> result = device_c.download();
  for (int s = 0; s < batch; ++s) {
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        double sum = 0.0;
        for (int l = 0; l < k; ++l) {
          sum += static_cast<double>(a[s * stride_a + (ta ? l + i * lda : i + l * lda)]) *
                 b[tb ? j + l * ldb : l + j * ldb];
        }
        const int at = s * stride_c + i + j * ldc;
        CHECK(result[at] == Approx(alpha * sum + (beta == 0.0f ? 0.0 : beta * c[at])).margin(1e-5));
      }
    }
  }
  if (beta != 0.0f) CHECK(result[m] == c[m]);  // between the columns nothing changes
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
}

TEST_CASE("products of rounded factors") {
  cublasHandle_t handle = nullptr;
  REQUIRE(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  const float factor = 1.0f + 0x1p-5f + 0x1p-9f + 0x1p-20f, one = 1.0f, none = 0.0f;
  const DeviceArray<float> a(std::vector<float>{factor}), b(std::vector<float>{one});
  const auto product = [&](cublasComputeType_t type) {
    DeviceArray<float> c(1);
    REQUIRE(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a.data(), CUDA_R_32F, 1, b.data(),
                         CUDA_R_32F, 1, &none, c.data(), CUDA_R_32F, 1, type,
                         CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS);
    return c.download()[0];
  };
  CHECK(product(CUBLAS_COMPUTE_32F_PEDANTIC) == factor);
  CHECK(product(CUBLAS_COMPUTE_32F_FAST_TF32) == 1.0f + 0x1p-5f + 0x1p-9f);
  CHECK(product(CUBLAS_COMPUTE_32F_FAST_16BF) == 1.0f + 0x1p-5f);
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
}

TEST_CASE("products that cuBLAS would refuse") {
  cublasHandle_t handle = nullptr;
  REQUIRE(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  const DeviceArray<float> a(12), b(12);
  DeviceArray<float> c(9);
  const float one = 1.0f;
  const auto product = [&](int m, int lda, int ldc) {
    return cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, 3, 4, &one, a.data(), CUDA_R_32F, lda, b.data(),
                        CUDA_R_32F, 4, &one, c.data(), CUDA_R_32F, ldc, CUBLAS_COMPUTE_32F_PEDANTIC,
                        CUBLAS_GEMM_DEFAULT);
  };
  CHECK(product(3, 3, 3) == CUBLAS_STATUS_SUCCESS);
  check_complaint([&] { return product(3, 2, 3); }, CUBLAS_STATUS_INVALID_VALUE);
  check_complaint([&] { return product(3, 3, 2); }, CUBLAS_STATUS_INVALID_VALUE);
  check_complaint([&] { return product(4, 4, 4); }, CUBLAS_STATUS_INVALID_VALUE);  // past the end of A
  check_complaint([&] { return product(-1, 3, 3); }, CUBLAS_STATUS_INVALID_VALUE);
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
  check_complaint([&] { return product(3, 3, 3); }, CUBLAS_STATUS_NOT_INITIALIZED);
}

}  // namespace
