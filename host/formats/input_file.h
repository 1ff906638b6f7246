// SPDX-License-Identifier: Apache-2.0
// The bytes of a file, a pipe or standard input, for readers that must not wait for ever. What gzip has
// packed is unpacked.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "host/formats/gzip.h"
#include "host/formats/input_error.h"

namespace pointsman {

// A limit or a signal came while the input was waited for or a document was read.
class InputStopped : public InputError {
 public:
  using InputError::InputError;
};

// Whether the run is over, for all input of the process: asked while nothing comes, and while a document is
// read and parsed. Set it before the first InputFile.
void set_run_stop(std::function<bool()> waiting, std::function<bool()> loading);

// Of a document, for its reader and its parser.
class LoadingWatch {
 public:
  // `file` is its name in messages, and must outlive it.
  explicit LoadingWatch(const std::string& file) : file_(file) {}

  // So many numbers or bytes more. Throws InputStopped when the run is over.
  void after(size_t work) {
    work_ += work;
    if (work_ < kWorkPerLook) return;
    work_ = 0;
    look();
  }
  void look() const;

 private:
  static constexpr size_t kWorkPerLook = 1 << 14;  // some 0.2 ms
  const std::string& file_;
  size_t work_ = 0;
};

class InputFile {
 public:
  // path "-" is standard input, descriptor 0. `stop` may be empty; it is asked only while nothing comes, some
  // 50 times a second. Throws InputError when the file cannot be opened.
  InputFile(const std::string& path, std::function<bool()> stop);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& name() const { return name_; }  // in messages

  bool is_packed() const { return unpacker_.has_value(); }  // known once something was read
  // The lines read so far are held no more: only what comes counts for the limit on packed input.
  void forget_lines() {
    if (unpacker_) unpacker_->forget();
  }

  // All throw InputStopped, InputError for damaged gzip, InputTooLarge for packed input that takes more
  // memory than the limit, and std::system_error when the disk fails. A line is a part of a stream, which
  // ends only where it is waited for; one beyond a megabyte is a document, and a document up to a megabyte is
  // read whatever the time.
  std::string_view peek(
      size_t bytes);  // so many that come next, fewer where the first line or all ends; not taken
  bool read_line(std::string& line);  // up to and with the next newline; false at the end
  std::string read_piece();           // what has come; empty at the end
  std::string read_rest();

 private:
  bool fill();                       // false at the end
  bool read_block(std::string& to);  // as they lie in the file, appended; false at the end
  void watch_loading() const;
  bool begin();  // with the bytes that tell gzip; false at the end

  std::string name_;
  std::function<bool()> stop_;
  int descriptor_ = 0;
  std::string buffer_;  // read and not yet taken: from start_ on
  size_t start_ = 0;
  size_t read_bytes_ = 0;
  bool has_begun_ = false;
  std::optional<GzipUnpacker> unpacker_;
};

}  // namespace pointsman
