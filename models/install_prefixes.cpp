// SPDX-License-Identifier: Apache-2.0
#include "models/install_prefixes.h"

#include <dlfcn.h>

#include <algorithm>
#include <system_error>

namespace pointsman {

namespace fs = std::filesystem;

std::vector<fs::path> install_prefixes() {
  std::vector<fs::path> prefixes;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&install_prefixes), &info) != 0 && info.dli_fname != nullptr) {
    const fs::path self = fs::canonical(info.dli_fname, error);
    if (!error && self != program) {
      prefixes.push_back((self.parent_path() / POINTSMAN_LIBRARY_TO_PREFIX).lexically_normal());
      prefixes.push_back(self.parent_path());
    }
  }
  const fs::path prefix = program.parent_path().parent_path();
  if (!program.empty() && std::find(prefixes.begin(), prefixes.end(), prefix) == prefixes.end())
    prefixes.push_back(prefix);
  return prefixes;
}

}  // namespace pointsman
