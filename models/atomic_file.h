// SPDX-License-Identifier: Apache-2.0
// Files that are whole or absent: model files, checkpoints and answers.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

namespace pointsman {

// The output cannot be written as asked: it is there already, or the format cannot hold it. A usage error,
// exit code 2.
class OutputRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Where a result goes. A regular file appears whole or not at all: written beside its place, synced, renamed,
// and the directory synced; symbolic links are followed, and an older file keeps its permissions. "-" and ""
// are standard output; what is not a regular file (FIFO, device) is written through. Disk errors are
// std::system_error, naming the file; an older file of that name then stays intact.
class OutputFile {
 public:
  // Throws OutputRefused when the file is there already and force is not set, and std::system_error when its
  // folder cannot be written, so call it before the work. Leaves nothing behind until write().
  OutputFile(const std::string& path, bool force);
  ~OutputFile();  // without commit() the temporary file is removed
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);  // unbuffered
  void commit();

 private:
  void open_temporary();

  std::string target_;     // where the file will appear; symbolic links followed
  std::string temporary_;  // empty when written through, and once it has become the target
  int descriptor_ = -1;
  bool force_ = false;
  unsigned mode_ = 0;   // permissions of the file to be replaced; 0 when there is none
  bool owned_ = false;  // the descriptor is ours to close
};

// Makes or replaces a regular file. std::system_error also where the path is anything else.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

}  // namespace pointsman
