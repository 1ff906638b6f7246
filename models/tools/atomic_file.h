// SPDX-License-Identifier: Apache-2.0
// Output files: whole or absent (models, checkpoints, documents), or growing by whole lines (streams).
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
  // place: of the error in the file, for example ":3:14".
  FileError(const std::string& file, const std::string& why, const std::string& place = "")
      : std::runtime_error(file + place + ": " + why), file_(file) {}

  const std::string& file() const { return file_; }  // may be empty

 private:
  std::string file_;
};

// The output cannot be written as requested: the file exists, or the format cannot hold the data. A usage
// error, exit code 2.
struct OutputRefused : FileError {
  using FileError::FileError;
};

// A system call on a file failed. what() is "file: doing: the system's message".
class DiskError : public std::system_error {
 public:
  DiskError(const std::string& file, int error, const std::string& doing = "")
      : std::system_error(error, std::generic_category(), file + (doing.empty() ? "" : ": " + doing)),
        file_(file) {}

  const std::string& file() const { return file_; }

 private:
  std::string file_;
};

// The run ended while the reader of a pipe took no data, or before there was a reader.
struct OutputStopped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Sets, for the whole process, the test for the end of the run, which is called while the reader of a pipe
// takes no data. Call it before the first output.
void set_output_stop(std::function<bool()> is_over);

// Waits until a pipe or terminal takes up to PIPE_BUF bytes at once. False if the run is over and no data was
// taken for 0.15 s.
bool reader_takes(int descriptor) noexcept;

enum class Appearance { kWhole, kGrowing };

// Writes a result to a file or to standard output ("-" or ""). Disk errors are std::system_error and name the
// file, whose older version then stays intact.
//
// A whole file is written as ".NAME.tmp" beside its place, synced and renamed. Symbolic links are followed,
// and a replaced file keeps its permissions. The temporary file is always new and locked, so that a file has
// one writer at a time; the next writer removes one that a killed process left. A symbolic link under the
// temporary name is refused.
//
// A growing file is written in place and has the same lock. It is locked itself too, since it may have other
// names (hard links). An older version stays until the first write.
//
// FIFOs and devices are written in place. Writing to them throws OutputStopped if reader_takes() is false.
class OutputFile {
 public:
  // Makes the temporary file, so call it before the work. Throws OutputRefused if the file exists and force
  // is not set, and std::system_error if its folder is not writable or (EBUSY) it has another writer.
  OutputFile(const std::string& path, bool force, Appearance appearance = Appearance::kWhole);
  ~OutputFile();  // without commit() removes the temporary file, and a growing file that is new and empty
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);  // unbuffered
  bool is_terminal() const;
  void commit();

  // Keeps the first bytes of an older growing file. Call it before the first write.
  void keep(uint64_t bytes) { kept_ = bytes; }

  // Writes and publishes the whole file. May be called repeatedly, also after a failed call; this object
  // stays the file's writer.
  void save(std::string_view bytes);

 private:
  void open_temporary();
  [[noreturn]] void fail_leftover();
  void open_growing();
  void cut();
  void close_written();

  std::string target_;     // with symbolic links followed; empty: standard output, which stays open
  std::string temporary_;  // empty if the target is written in place
  int descriptor_ = -1;
  bool force_ = false;
  unsigned mode_ = 0;  // permissions of the file to be replaced; 0 if there is none

  // For a growing file.
  int lock_ = -1;        // the temporary file
  bool is_new_ = false;  // did not exist before
  bool is_begun_ = false;
  uint64_t kept_ = 0;
};

// Makes or replaces a regular file. Throws std::system_error if the path is anything else.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

}  // namespace pointsman
