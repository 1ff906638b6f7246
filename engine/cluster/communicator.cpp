// SPDX-License-Identifier: Apache-2.0
// Which ranks there are: whether an MPI launcher started this process, and the module behind it.
#include "engine/cluster/communicator.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "models/tools/install_prefixes.h"

namespace pointsman {
namespace {

class OneProcess final : public Communicator {
 public:
  void send(int, std::span<const char>) override { alone(); }
  Received receive(int) override { alone(); }
  void receive_into(int, std::span<char>) override { alone(); }
  void broadcast(int, std::span<char>) override {}
  std::unique_ptr<SharedMemory> share_memory(size_t) override { alone(); }
  int share_signal(int) override { return 0; }
  [[noreturn]] void abort(int code) override { std::_Exit(code); }
  void finish() override {}

 private:
  [[noreturn]] static void alone() { throw std::logic_error("a message to or from nobody"); }
};

// Null: not set, or empty.
const char* variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

// What tells that an MPI launcher of several ranks started this process; null: none did.
const char* launcher_variable() {
  const char* const off = variable("POINTSMAN_MPI");
  if (off != nullptr && std::strcmp(off, "off") == 0) return nullptr;
  for (const char* size : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* const ranks = variable(size);
    if (ranks != nullptr) return std::strcmp(ranks, "1") == 0 ? nullptr : size;
  }
  return variable("PMIX_RANK") != nullptr ? "PMIX_RANK" : nullptr;
}

std::string last_error() {
  const char* const error = dlerror();
  return error == nullptr ? "unknown error" : error;
}

const MpiModule& open_module(const std::string& launched) {
  const std::string path = find_mpi_module();
  if (path.empty()) {
    throw ClusterError(launched +
                       ", and this build has no MPI module (POINTSMAN_MPI=off in the environment runs this "
                       "process alone)");
  }
  // Global: what MPI loads in its turn looks its symbols up there.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) throw ClusterError(launched + ": the MPI module cannot be loaded: " + last_error());
  using Entry = const MpiModule* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, kMpiModuleEntry));
  if (entry == nullptr) throw ClusterError(path + " is no MPI module of this program");
  const MpiModule& module = *entry();
  if (std::strcmp(module.version, kMpiModuleVersion) != 0) {
    throw ClusterError("the MPI module is of version " + std::string(module.version) + ", this program of " +
                       kMpiModuleVersion);
  }
  return module;
}

}  // namespace

Communicator& one_process() {
  static OneProcess alone;
  return alone;
}

bool is_launched() {
  return variable("OMPI_COMM_WORLD_SIZE") != nullptr || variable("PMI_SIZE") != nullptr ||
         variable("PMIX_RANK") != nullptr;
}

std::string find_mpi_module() {
  if (const char* const named = variable("POINTSMAN_MPI_MODULE")) return named;
  std::error_code error;
  for (const std::filesystem::path& prefix : install_prefixes()) {
    const auto path = prefix / "lib/pointsman/libpointsman_mpi.so";
    if (std::filesystem::exists(path, error)) return path.string();
  }
  return {};
}

std::unique_ptr<Communicator> join_ranks() {
  const char* const told_by = launcher_variable();
  if (told_by == nullptr) return nullptr;
  return open_module("an MPI launcher started this process (" + std::string(told_by) + "=" +
                     variable(told_by) + ")")
      .join();
}

void sum_in_rank_order(Communicator& ranks, std::span<const float* const> addends, std::span<float> sum) {
  // So that a rank adds one slice while the next is under way.
  constexpr size_t kSlice = 65536;
  const int last = ranks.size() - 1;
  if (ranks.rank() == 0 && addends.empty()) throw std::logic_error("sum_in_rank_order: rank 0 adds nothing");
  for (size_t begin = 0; begin < sum.size(); begin += kSlice) {
    const std::span<float> slice = sum.subspan(begin, std::min(kSlice, sum.size() - begin));
    const std::span<char> bytes(reinterpret_cast<char*>(slice.data()), slice.size_bytes());
    const bool begins = ranks.rank() == 0;
    if (begins) {
      std::copy_n(addends[0] + begin, slice.size(), slice.begin());
    } else {
      ranks.receive_into(ranks.rank() - 1, bytes);
    }
    for (const float* const addend : addends.subspan(begins ? 1 : 0)) {
      for (size_t i = 0; i < slice.size(); ++i) slice[i] += addend[begin + i];
    }
    if (ranks.rank() < last) ranks.send(ranks.rank() + 1, bytes);
  }
  if (last > 0) ranks.broadcast(last, {reinterpret_cast<char*>(sum.data()), sum.size_bytes()});
}

}  // namespace pointsman
