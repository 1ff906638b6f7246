// SPDX-License-Identifier: Apache-2.0
// Files that are whole or absent: model files, checkpoints and answers.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace pointsman {

// Writes all of it. Throws std::system_error, naming `path`, when the system refuses.
void write_all(int descriptor, std::string_view bytes, const std::string& path);

// A regular file, made or replaced: written beside its place, synced, renamed, and the directory synced.
// Symbolic links are followed; an older file keeps its permissions. Throws std::system_error, naming the
// file, when the system refuses; an older file then stays as it was.
class AtomicFile {
 public:
  // Throws when `path` is something other than a regular file, and when its folder cannot be written. Leaves
  // nothing behind until write().
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();  // without commit() the temporary file is removed
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);  // unbuffered
  // False where a file is there that may not be replaced.
  bool commit(bool replace);

  const std::filesystem::path& target() const { return target_; }

 private:
  void open();

  std::filesystem::path target_;     // where the file will appear
  std::filesystem::path temporary_;  // empty once it has become the target
  unsigned mode_ = 0;                // permissions of the file to be replaced; 0 when there is none
  int descriptor_ = -1;
};

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

}  // namespace pointsman
