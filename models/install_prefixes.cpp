// SPDX-License-Identifier: Apache-2.0
#include "models/install_prefixes.h"

#include <dlfcn.h>

#include <system_error>

namespace pointsman {

namespace fs = std::filesystem;

std::vector<fs::path> install_prefixes() {
  std::vector<fs::path> prefixes;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) prefixes.push_back(program.parent_path().parent_path());
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&install_prefixes), &info) == 0 || info.dli_fname == nullptr)
    return prefixes;
  const fs::path self = fs::canonical(info.dli_fname, error);
  if (error || self == program) return prefixes;
  const fs::path folder = self.parent_path();
  const fs::path prefix = (folder / POINTSMAN_LIBRARY_TO_PREFIX).lexically_normal();
  if (prefixes.empty() || prefix != prefixes.front()) prefixes.push_back(prefix);
  prefixes.push_back(folder);
  return prefixes;
}

}  // namespace pointsman
