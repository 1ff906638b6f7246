// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/rank_sum.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <thread>

#include "engine/backend/backend.h"
#include "engine/cluster/message.h"
#include "kernels/cuda/cuda_operations.h"

namespace pointsman::cuda {
namespace {

std::optional<Nccl> open(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);  // stays
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    return function != nullptr;
  };
  Nccl nccl{};
  const bool has_all =
      library != nullptr && find("ncclGetVersion", nccl.version) && find("ncclGetUniqueId", nccl.get_id) &&
      find("ncclCommInitRank", nccl.join) && find("ncclAllGather", nccl.all_gather) &&
      find("ncclCommGetAsyncError", nccl.later_error) && find("ncclCommDestroy", nccl.leave) &&
      find("ncclCommAbort", nccl.abort) && find("ncclGetErrorString", nccl.error_text);
  return has_all ? std::optional(nccl) : std::nullopt;
}

std::optional<Nccl> load() {
  const char* const named = std::getenv("POINTSMAN_NCCL");
  if (named == nullptr || *named == '\0') return open("libnccl.so.2");
  if (std::strcmp(named, "off") == 0) return {};
  const std::optional<Nccl> nccl = open(named);
  if (nccl) return nccl;
  const char* const error = dlerror();
  throw ClusterError("POINTSMAN_NCCL=" + std::string(named) + ": " + (error == nullptr ? "no NCCL" : error));
}

// Whether all ranks go through NCCL, as one group of this number.
struct Choice {
  bool nccl = false;
  NcclId id{};
};

void require_nccl(NcclResult result, const char* call) {
  if (result != kNcclSuccess)
    throw ClusterError(std::string(call) + ": " + find_nccl()->error_text(result) +
                       " (POINTSMAN_NCCL=off in the environment goes through the hosts' memory)");
}

// The same on every rank: NCCL if all have the same and a device of their own.
Choice choose(Communicator& ranks, const CudaDevice& device) {
  int version = 0;  // none
  if (const Nccl* const nccl = find_nccl()) nccl->version(&version);
  const std::string identity = identity_of(device.properties);
  Choice choice;
  if (ranks.rank() > 0) {
    ranks.send(0, MessageWriter().put(version).put(identity).bytes());
  } else {
    choice.nccl = version != 0 && ranks.size() > 1;
    std::set<std::string> devices{identity};
    for (int rank = 1; rank < ranks.size(); ++rank) {
      const Communicator::Received received = ranks.receive(rank);
      MessageReader theirs(received.bytes);
      if (theirs.next<int>() != version) choice.nccl = false;
      if (!devices.insert(theirs.next<std::string>()).second) choice.nccl = false;
    }
    choice.nccl = choice.nccl && find_nccl()->get_id(&choice.id) == kNcclSuccess;
  }
  ranks.broadcast(0, {reinterpret_cast<char*>(&choice), sizeof choice});
  return choice;
}

}  // namespace

const Nccl* find_nccl() {
  static const std::optional<Nccl> nccl = load();
  return nccl ? &*nccl : nullptr;
}

std::string identity_of(const cudaDeviceProp& device) {
  std::string machine;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> machine;
  return machine + ":" + std::to_string(device.pciDomainID) + ":" + std::to_string(device.pciBusID) + ":" +
         std::to_string(device.pciDeviceID);
}

RankSum::RankSum(Communicator& ranks, const DeviceStream& stream) : ranks_(ranks), stream_(stream) {
  const Choice choice = choose(ranks, stream.device);
  if (!choice.nccl) return;
  nccl_ = find_nccl();
  require_nccl(nccl_->join(&communicator_, ranks.size(), choice.id, ranks.rank()), "ncclCommInitRank");
}

// After a failure the others do not leave, and the process ends soon: nobody may wait for them here. But work
// that waits for them must end before its memory can be freed.
RankSum::~RankSum() {
  if (communicator_ == nullptr) return;
  if (!ranks_.is_broken()) {
    nccl_->leave(communicator_);
  } else if (cudaStreamQuery(stream_.get()) == cudaErrorNotReady) {
    nccl_->abort(communicator_);
  }
}

void RankSum::add_up(float* array, size_t size) {
  if (nccl_ == nullptr) return add_on_hosts(array, size);
  const size_t bytes = size * ranks_.size() * sizeof(float);
  float* rows = nullptr;
  try {
    rows = reinterpret_cast<float*>(gathered_.reserve(bytes));
  } catch (const std::bad_alloc&) {
    throw DeviceError("CUDA: the gradients of " + std::to_string(ranks_.size()) + " ranks need " +
                      mebibytes(bytes) + " of device memory");
  }
  require_nccl(nccl_->all_gather(array, rows, size, kNcclFloat, communicator_, stream_.get()),
               "ncclAllGather");
  // A rank that is gone, or a network, would keep the stream from ever being done.
  while (!stream_.is_done()) {
    NcclResult error = kNcclSuccess;
    require_nccl(nccl_->later_error(communicator_, &error), "ncclCommGetAsyncError");
    require_nccl(error, "ncclAllGather");
    std::this_thread::yield();
  }
  add_rows({rows, ranks_.size(), static_cast<int64_t>(size), array}, stream_.get());
}

void RankSum::add_on_hosts(float* array, size_t size) {
  own_.resize(size);
  sum_.resize(size);
  stream_.download(own_.data(), array, size * sizeof(float));
  stream_.synchronize();
  const float* const addend = own_.data();
  sum_in_rank_order(ranks_, {&addend, 1}, sum_);
  stream_.upload(array, sum_.data(), size * sizeof(float));
  stream_.synchronize();
}

}  // namespace pointsman::cuda
