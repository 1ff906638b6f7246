// SPDX-License-Identifier: Apache-2.0
// Where an installation of this program or library may lie.
#pragma once

#include <filesystem>
#include <vector>

namespace pointsman {

// Where this code is part of a shared library, which another program may have loaded, that of the library and
// the folder it lies in, which is a Python package's own prefix; then that of the running program. They need
// not exist.
std::vector<std::filesystem::path> install_prefixes();

// Whether this code lies in the tree that it was built in. Elsewhere (installed, in a wheel, in another
// program) the paths of that tree are somebody else's.
bool is_in_build_tree();

}  // namespace pointsman
