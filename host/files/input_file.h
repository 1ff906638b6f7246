// SPDX-License-Identifier: Apache-2.0
// The bytes of a file, a pipe or standard input, for readers that must not wait for ever. What gzip has
// packed is unpacked.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "host/files/gzip.h"
#include "host/files/input_error.h"

namespace pointsman {

// A limit or a signal came while the input was waited for.
class InputStopped : public InputError {
 public:
  using InputError::InputError;
};

// Whether the run is over, for every InputFile of the process. Set it before the first one.
void set_run_stop(std::function<bool()> stop);

class InputFile {
 public:
  // path "-" is standard input, descriptor 0. `stop` may be empty; beside the run's it is asked only while
  // nothing comes, some 50 times a second. Throws InputError when the file cannot be opened.
  InputFile(const std::string& path, std::function<bool()> stop);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& name() const { return name_; }  // in messages

  // All throw InputStopped, InputError for damaged gzip, and std::system_error when the disk fails.
  std::string_view peek(
      size_t bytes);  // so many that come next, fewer where the first line or all ends; not taken
  bool read_line(std::string& line);  // up to and with the next newline; false at the end
  std::string read_piece();           // what has come; empty at the end
  std::string read_rest();

 private:
  bool fill();                       // false at the end
  bool read_block(std::string& to);  // as they lie in the file, appended; false at the end
  bool begin();                      // with the bytes that tell gzip; false at the end

  std::string name_;
  std::function<bool()> stop_;
  int descriptor_ = 0;
  std::string buffer_;  // read and not yet taken: from start_ on
  size_t start_ = 0;
  bool has_begun_ = false;
  std::optional<GzipUnpacker> unpacker_;
};

}  // namespace pointsman
