// SPDX-License-Identifier: Apache-2.0
// Files that are whole or absent: what model files and checkpoints are written with.
#pragma once

#include <filesystem>
#include <string_view>

namespace pointsman {

// Replaces or makes the file: temporary file in the same directory, fsync, rename, fsync of the directory. A
// symbolic link is followed. Throws std::system_error, naming the file, when the system refuses or the path
// is something other than a regular file; an older file then stays as it was and the temporary one is
// removed.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

}  // namespace pointsman
