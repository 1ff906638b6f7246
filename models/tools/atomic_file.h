// SPDX-License-Identifier: Apache-2.0
// Output files: whole or absent (model files, checkpoints, documents), or growing by whole lines (streams).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace pointsman {

// An error in a file.
class FileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  FileError(const std::string& file, const std::string& why)
      : std::runtime_error(file + ": " + why), file_(file) {}

  const std::string& file() const { return file_; }  // empty: it is about none

 private:
  std::string file_;
};

// The output cannot be written as asked: it exists already, or the format cannot hold it. A usage error, exit
// code 2.
struct OutputRefused : FileError {
  using FileError::FileError;
};

// The disk refuses. what() is "file: doing: the system's words".
class DiskError : public std::system_error {
 public:
  DiskError(const std::string& file, int error, const std::string& doing = "")
      : std::system_error(error, std::generic_category(), file + (doing.empty() ? "" : ": " + doing)),
        file_(file) {}

  const std::string& file() const { return file_; }

 private:
  std::string file_;
};

// The run was over before the output was whole: the reader of a pipe took nothing, or there was none yet.
class OutputStopped : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Whether the run is over, checked while the reader of a pipe takes nothing. Set it before the first output.
void set_output_stop(std::function<bool()> is_over);

// Waits until a pipe or terminal takes up to PIPE_BUF bytes at once. False when the run is over and nothing
// was taken for 0.15 s.
bool reader_takes(int descriptor) noexcept;

// How a regular file comes to hold what is written.
enum class Appearance { kWhole, kGrowing };

// An output file. A regular file appears whole or not at all: written as ".NAME.tmp", synced, renamed, and
// the directory synced; symbolic links are followed, and an older file keeps its permissions. The temporary
// file is always new and locked: it has one writer, and the next one removes what a killed one left. A
// symbolic link under its name is refused. "-" and "" are standard output; what is not a regular file (FIFO,
// device) is written directly, and writing throws OutputStopped if reader_takes() is false. Disk errors are
// std::system_error, naming the file; an older file then stays intact.
//
// A growing file is written in its place and has the same lock; it is locked itself too, since it may have
// other names (hard links). An older one stays as it is until the first write; what was written stays.
class OutputFile {
 public:
  // Makes the temporary file, so call it before the work. Throws OutputRefused if the file exists and force
  // is not set; std::system_error if its folder cannot be written, with EBUSY while another writer has it.
  OutputFile(const std::string& path, bool force, Appearance appearance = Appearance::kWhole);
  ~OutputFile();  // without commit() the temporary file is removed, and a growing one that is new and empty
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);  // unbuffered
  bool is_terminal() const;
  void commit();

  // Before the first write to a growing file: how many bytes of an older one stay. What is written comes
  // behind them.
  void keep(uint64_t bytes) { kept_ = bytes; }

  // Replaces the whole file, again and again; this stays its writer. A failed save does no harm.
  void save(std::string_view bytes);

 private:
  void open_temporary();
  [[noreturn]] void fail_leftover();
  void open_growing();
  void cut();
  void publish();
  void finish_growing();
  void close_written();

  std::string target_;     // where the file will appear; symbolic links followed
  std::string temporary_;  // empty when written through
  int descriptor_ = -1;
  bool force_ = false;
  unsigned mode_ = 0;   // permissions of the file to be replaced; 0 when there is none
  bool owned_ = false;  // the descriptor is ours to close

  // Of a growing file.
  int lock_ = -1;        // the temporary file
  bool is_new_ = false;  // was not there before
  bool is_begun_ = false;
  uint64_t kept_ = 0;
};

// Makes or replaces a regular file. std::system_error also where the path is anything else.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

}  // namespace pointsman
