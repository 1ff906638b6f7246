// SPDX-License-Identifier: Apache-2.0
// Stands in for NCCL where ranks are threads of one process: what engine/backend/cuda/nccl.h loads.
#include <cuda_runtime.h>

#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "engine/backend/cuda/nccl.h"

using pointsman::cuda::kNcclFloat;
using pointsman::cuda::kNcclSuccess;
using pointsman::cuda::NcclId;

namespace {

constexpr int kInvalidArgument = 4, kInvalidUsage = 5, kRemoteError = 6;

struct Group {
  std::mutex mutex;
  std::condition_variable changed;
  size_t waiting = 0, rounds = 0;
  std::vector<const void*> sent;  // by rank
  std::vector<int> devices;       // by rank

  // Returns when as many have come as there are ranks.
  void meet() {
    std::unique_lock lock(mutex);
    const size_t round = rounds;
    if (++waiting == sent.size()) {
      waiting = 0;
      ++rounds;
      changed.notify_all();
    }
    changed.wait(lock, [&] { return rounds != round; });
  }
};

struct Member {
  Group& group;
  int rank;
  int gathers = 0;
};

std::mutex mutex;  // of what follows
std::map<int, Group> groups;
int members = 0, gathers = 0, failing_gather = -1;

int number_of(const NcclId& id) {
  int number = 0;
  std::memcpy(&number, id.bytes, sizeof number);
  return number;
}

int end(Member* member) {
  const std::lock_guard lock(mutex);
  --members;
  delete member;
  return kNcclSuccess;
}

bool fails(const Member& member) {
  const std::lock_guard lock(mutex);
  return failing_gather >= 0 && member.gathers >= failing_gather;
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  *version = 22809;
  return kNcclSuccess;
}

int ncclGetUniqueId(NcclId* id) {
  static int last = 0;
  const std::lock_guard lock(mutex);
  ++last;
  std::memcpy(id->bytes, &last, sizeof last);
  return kNcclSuccess;
}

int ncclCommInitRank(Member** member, int ranks, NcclId id, int rank) {
  Group* group = nullptr;
  {
    const std::lock_guard lock(mutex);
    group = &groups[number_of(id)];
    group->sent.resize(static_cast<size_t>(ranks));
    group->devices.resize(static_cast<size_t>(ranks));
    ++members;
  }
  cudaGetDevice(&group->devices.at(static_cast<size_t>(rank)));
  group->meet();
  *member = new Member{*group, rank};
  for (int other = 0; other < ranks; ++other) {
    if (other != rank &&
        group->devices[static_cast<size_t>(other)] == group->devices[static_cast<size_t>(rank)])
      return kInvalidUsage;
  }
  return kNcclSuccess;
}

// At once, where NCCL enqueues it.
int ncclAllGather(const void* sent, void* received, size_t count, int type, Member* member,
                  cudaStream_t stream) {
  if (fails(*member)) return kRemoteError;
  if (type != kNcclFloat || cudaStreamSynchronize(stream) != cudaSuccess) return kInvalidArgument;
  Group& group = member->group;
  group.sent[static_cast<size_t>(member->rank)] = sent;
  group.meet();
  auto* to = static_cast<float*>(received);
  for (const void* const from : group.sent) {
    cudaMemcpyAsync(to, from, count * sizeof(float), cudaMemcpyDeviceToDevice, stream);
    to += count;
  }
  cudaStreamSynchronize(stream);
  group.meet();
  const std::lock_guard lock(mutex);
  ++gathers;
  ++member->gathers;
  return kNcclSuccess;
}

int ncclCommGetAsyncError(Member*, int* error) {
  *error = kNcclSuccess;
  return kNcclSuccess;
}

// As NCCL's may, it waits for the others.
int ncclCommDestroy(Member* member) {
  member->group.meet();
  return end(member);
}
int ncclCommAbort(Member* member) { return end(member); }
const char* ncclGetErrorString(int) { return "the stand-in refuses it"; }

// Each rank's gather of this number, from 0 on, and those behind it fail; -1: none does. Returns 0.
int fake_nccl_fail_from(int number) {
  const std::lock_guard lock(mutex);
  failing_gather = number;
  return 0;
}

// What a test asks: how many have joined and not left, and gathers made.
int fake_nccl_members() {
  const std::lock_guard lock(mutex);
  return members;
}
int fake_nccl_gathers() {
  const std::lock_guard lock(mutex);
  return gathers;
}

}  // extern "C"
