// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda_rank_sum.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "engine/cluster/message.h"
#include "kernels/cuda/cuda_operations.h"

namespace pointsman::cuda {

namespace {

// What rank 0 must know of each rank to choose the way.
struct Candidate {
  bool has_nccl = false;
  char device[16] = {};  // its unique number
};

// What it answers.
struct Choice {
  bool nccl = false;
  NcclId id{};
};

Candidate own_candidate() {
  int device = 0;
  require(cudaGetDevice(&device), "current device");
  cudaDeviceProp properties{};
  require(cudaGetDeviceProperties(&properties, device), "device");
  Candidate own{find_nccl() != nullptr};
  static_assert(sizeof own.device == sizeof properties.uuid);
  std::memcpy(own.device, &properties.uuid, sizeof own.device);
  return own;
}

bool all_may(const std::vector<Candidate>& ranks) {
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (!ranks[i].has_nccl) return false;
    for (size_t j = 0; j < i; ++j) {
      if (std::memcmp(ranks[i].device, ranks[j].device, sizeof ranks[i].device) == 0) return false;
    }
  }
  return true;
}

void require_nccl(NcclResult result, const char* call) {
  if (result != kNcclSuccess)
    throw ClusterError(std::string(call) + ": " + find_nccl()->error_text(result) +
                       " (POINTSMAN_NCCL=off in the environment goes through the hosts' memory)");
}

// The same on every rank.
Choice choose(Communicator& ranks) {
  Choice choice;
  if (ranks.rank() > 0) {
    ranks.send(0, MessageWriter().put(own_candidate()).bytes());
  } else {
    std::vector<Candidate> all{own_candidate()};
    for (int rank = 1; rank < ranks.size(); ++rank)
      all.push_back(MessageReader(ranks.receive(rank).bytes).next<Candidate>());
    choice.nccl = all.size() > 1 && all_may(all);
    if (choice.nccl) require_nccl(find_nccl()->get_id(&choice.id), "ncclGetUniqueId");
  }
  ranks.broadcast(0, {reinterpret_cast<char*>(&choice), sizeof choice});
  return choice;
}

}  // namespace

RankSum::RankSum(Communicator& ranks, const Stream& stream) : ranks_(ranks), stream_(stream) {
  const Choice choice = choose(ranks);
  if (!choice.nccl) return;
  nccl_ = find_nccl();
  require_nccl(nccl_->join(&communicator_, ranks.size(), choice.id, ranks.rank()), "ncclCommInitRank");
  const SetRange all_rows{0, 0, ranks.size()};
  require(cudaMemcpyAsync(all_rows_.reserve(sizeof all_rows), &all_rows, sizeof all_rows,
                          cudaMemcpyHostToDevice, stream.get()),
          "upload");
}

// After a failure here the others do not leave, but wait for this rank.
RankSum::~RankSum() {
  if (communicator_ == nullptr) return;
  const bool has_failed = ranks_.is_broken() || std::uncaught_exceptions() > 0;
  (has_failed ? nccl_->abort : nccl_->leave)(communicator_);
}

void RankSum::add_up(float* array, size_t size) {
  if (nccl_ != nullptr) {
    gather_and_add(array, size);
  } else {
    add_on_hosts(array, size);
  }
}

void RankSum::gather_and_add(float* array, size_t size) {
  constexpr size_t kColumns = size_t{1} << 18;  // of a launch, which has room for some 2^21
  const auto ld = static_cast<int64_t>(size);
  auto* const rows = reinterpret_cast<float*>(gathered_.reserve(size * ranks_.size() * sizeof(float)));
  require_nccl(nccl_->all_gather(array, rows, size, kNcclFloat, communicator_, stream_.get()),
               "ncclAllGather");
  require(cudaMemsetAsync(array, 0, size * sizeof(float), stream_.get()), "clearing");
  const SetRanges all_rows{reinterpret_cast<SetRange*>(all_rows_.data()), 1, ranks_.size()};
  for (size_t first = 0; first < size; first += kColumns) {
    const int width = static_cast<int>(std::min(kColumns, size - first));
    sum_rows({rows + first, ld, width, {array + first, 0}, all_rows}, stream_.get());
  }
}

void RankSum::add_on_hosts(float* array, size_t size) {
  std::vector<float> own(size), sum(size);
  require(cudaMemcpyAsync(own.data(), array, size * sizeof(float), cudaMemcpyDeviceToHost, stream_.get()),
          "download");
  stream_.synchronize();
  const float* const addend = own.data();
  sum_in_rank_order(ranks_, {&addend, 1}, sum);
  require(cudaMemcpyAsync(array, sum.data(), size * sizeof(float), cudaMemcpyHostToDevice, stream_.get()),
          "upload");
  stream_.synchronize();
}

}  // namespace pointsman::cuda
