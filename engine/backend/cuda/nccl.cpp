// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/nccl.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "engine/cluster/communicator.h"

namespace pointsman::cuda {

namespace {

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

std::optional<Nccl> open(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);  // stays
  Nccl nccl{};
  const bool has_all =
      library != nullptr && find(library, "ncclGetVersion", nccl.version) &&
      find(library, "ncclGetUniqueId", nccl.get_id) && find(library, "ncclCommInitRank", nccl.join) &&
      find(library, "ncclAllGather", nccl.all_gather) &&
      find(library, "ncclCommGetAsyncError", nccl.later_error) &&
      find(library, "ncclCommDestroy", nccl.leave) && find(library, "ncclCommAbort", nccl.abort) &&
      find(library, "ncclGetErrorString", nccl.error_text);
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

}  // namespace

const Nccl* find_nccl() {
  static const std::optional<Nccl> nccl = load();
  return nccl ? &*nccl : nullptr;
}

}  // namespace pointsman::cuda
