// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

namespace pointsman {

// The places where this program or library may be installed, which need not exist: if this code is part of a
// shared library, the library's prefix and its folder (which is the prefix of a Python package); then the
// prefix of the running program.
std::vector<std::filesystem::path> install_prefixes();

// Whether this code runs in the tree that it was built in. Anywhere else the paths of that tree may belong to
// somebody else.
bool is_in_build_tree();

}  // namespace pointsman
