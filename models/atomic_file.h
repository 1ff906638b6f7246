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

// Where a result goes. A regular file appears whole or not at all: written beside its place as ".NAME.tmp",
// synced, renamed, and the directory synced; symbolic links are followed, and an older file keeps its
// permissions. The temporary file is locked: one writer has it, and what a killed one left is removed by the
// next. "-" and "" are standard output; what is not a regular file (FIFO, device) is written through. Disk
// errors are std::system_error, naming the file; an older file of that name then stays intact.
class OutputFile {
 public:
  // Makes the temporary file, so call it before the work. Throws OutputRefused when the file is there already
  // and force is not set; std::system_error when its folder cannot be written, and EBUSY while another writer
  // has it.
  OutputFile(const std::string& path, bool force);
  ~OutputFile();  // without commit() the temporary file is removed
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);  // unbuffered
  bool is_terminal() const;
  void commit();

  // All of a file that is written several times over: each time it is whole on the disk, and this stays its
  // writer. What an earlier save that failed left behind does not matter.
  void save(std::string_view bytes);

 private:
  void open_temporary();
  void publish();
  void close_written();

  std::string target_;     // where the file will appear; symbolic links followed
  std::string temporary_;  // empty when written through
  int descriptor_ = -1;
  bool force_ = false;
  unsigned mode_ = 0;   // permissions of the file to be replaced; 0 when there is none
  bool owned_ = false;  // the descriptor is ours to close
};

// Makes or replaces a regular file. std::system_error also where the path is anything else.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

}  // namespace pointsman
