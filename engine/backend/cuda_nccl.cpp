// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda_nccl.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <optional>

namespace pointsman::cuda {

namespace {

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

std::optional<Nccl> load() {
  const char* const named = std::getenv("POINTSMAN_NCCL");
  const char* const path = named != nullptr && *named != '\0' ? named : "libnccl.so.2";
  if (std::strcmp(path, "off") == 0) return {};
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);  // stays
  Nccl nccl{};
  if (library != nullptr && find(library, "ncclGetUniqueId", nccl.get_id) &&
      find(library, "ncclCommInitRank", nccl.join) && find(library, "ncclAllGather", nccl.all_gather) &&
      find(library, "ncclCommDestroy", nccl.leave) && find(library, "ncclCommAbort", nccl.abort) &&
      find(library, "ncclGetErrorString", nccl.error_text))
    return nccl;
  return {};
}

}  // namespace

const Nccl* find_nccl() {
  static const std::optional<Nccl> nccl = load();
  return nccl ? &*nccl : nullptr;
}

}  // namespace pointsman::cuda
