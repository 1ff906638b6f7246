// SPDX-License-Identifier: Apache-2.0
#include "models/tools/install_prefixes.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <system_error>

namespace pointsman {

namespace fs = std::filesystem;

namespace {

fs::path running_program() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

// The shared library that this code is part of; empty if it is part of the program. dladdr() alone would
// return the program's argv[0], which may name another file in the working directory.
fs::path own_library() {
  Dl_info info{};
  link_map* map = nullptr;
  void** const map_out = reinterpret_cast<void**>(&map);
  if (dladdr1(reinterpret_cast<const void*>(&install_prefixes), &info, map_out, RTLD_DL_LINKMAP) == 0)
    return {};
  if (map == nullptr || map->l_name == nullptr || map->l_name[0] == '\0') return {};
  std::error_code error;
  const fs::path self = fs::canonical(map->l_name, error);
  return error ? fs::path() : self;
}

}  // namespace

std::vector<fs::path> install_prefixes() {
  std::vector<fs::path> prefixes;
  if (const fs::path self = own_library(); !self.empty()) {
    prefixes.push_back((self.parent_path() / POINTSMAN_LIBRARY_TO_PREFIX).lexically_normal());
    prefixes.push_back(self.parent_path());
  }
  const fs::path program = running_program(), prefix = program.parent_path().parent_path();
  if (!program.empty() && std::find(prefixes.begin(), prefixes.end(), prefix) == prefixes.end())
    prefixes.push_back(prefix);
  return prefixes;
}

bool is_in_build_tree() {
  const fs::path library = own_library(), self = library.empty() ? running_program() : library;
  std::error_code error;
  const fs::path tree = fs::canonical(POINTSMAN_BUILD_TREE, error);
  return !error && std::mismatch(tree.begin(), tree.end(), self.begin(), self.end()).first == tree.end();
}

}  // namespace pointsman
