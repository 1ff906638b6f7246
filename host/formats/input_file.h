// SPDX-License-Identifier: Apache-2.0
// Reads a file, a pipe or standard input, and unpacks gzip. A reader never blocks past a time limit or a
// signal, and packed input never takes more memory than --max-input.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "host/formats/input_error.h"

struct z_stream_s;  // of zlib

namespace pointsman {

// The default of --max-input.
inline constexpr const char* kDefaultMaxInput = "1G";

// Parses a positive number of bytes with an optional unit K, M, G or T (powers of 1024): "512M".
std::optional<uint64_t> parse_size(std::string_view text);

// Sets the memory limit of packed input (gzip, .npz) for the whole process. Until then the limit is
// POINTSMAN_MAX_INPUT of the environment, else the default.
void set_input_limit(uint64_t bytes);
// Throws std::invalid_argument if the environment variable is no size.
uint64_t input_limit();

// Throws InputTooLarge if `bytes` exceeds the limit. `what` starts the message: "locs: (9, 2) takes".
void check_input_size(uint64_t bytes, const std::string& file, const std::string& what);

// A time limit or a signal ended the run while input was awaited or parsed.
class InputStopped : public InputError {
 public:
  using InputError::InputError;
};

// Sets, for the whole process, the tests for the end of the run: `waiting` is called while no input arrives,
// `loading` while a document is read and parsed. Call it before the first InputFile is made.
void set_run_stop(std::function<bool()> waiting, std::function<bool()> loading);

// Ends the parsing of a long document when the run is over.
class LoadingWatch {
 public:
  // `file`, the name in messages, must outlive the watch.
  explicit LoadingWatch(const std::string& file) : file_(file) {}

  // Call it after every `work` numbers or bytes. Throws InputStopped when the run is over.
  void after(size_t work) {
    work_ += work;
    if (work_ < kWorkPerLook) return;
    work_ = 0;
    look();
  }
  void look() const;

 private:
  static constexpr size_t kWorkPerLook = 1 << 14;  // about 0.2 ms
  const std::string& file_;
  size_t work_ = 0;
};

// Unpacks gzip (RFC 1952) piece by piece.
class GzipUnpacker {
 public:
  // `file` is the name in messages.
  explicit GzipUnpacker(std::string file);

  // Appends the unpacked bytes to `out`. Throws InputError, and InputTooLarge beyond the limit, which counts
  // the unpacked bytes and, in text, 24 bytes for each value.
  void unpack(std::string_view packed, std::string& out);
  // The caller has released everything unpacked so far: the limit counts from here on.
  void forget() { held_bytes_ = 0; }
  // Call it at the end of the file. Throws InputError if the packed data is incomplete.
  void end() const;

 private:
  [[noreturn]] void fail(const std::string& message) const;
  void inflate_some(std::string& out);
  void count(std::string_view bytes);

  std::string file_;
  std::unique_ptr<z_stream_s, void (*)(z_stream_s*)> stream_;
  std::string head_;  // the first unpacked bytes, which tell arrays from text
  uint64_t held_bytes_ = 0;
  bool is_between_ = true;  // between two members, where the file may end
};

// All reading functions throw InputStopped, InputError for damaged gzip, InputTooLarge, and std::system_error
// when the disk fails. The end of the run interrupts waiting for input, lines beyond a megabyte, and
// documents beyond a megabyte.
class InputFile {
 public:
  // path "-" is standard input. `stop` may be empty; it is called about 50 times a second while no input
  // arrives. Throws InputError if the file cannot be opened.
  InputFile(const std::string& path, std::function<bool()> stop);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& name() const { return name_; }         // in messages
  bool is_packed() const { return unpacker_.has_value(); }  // valid after the first read
  // The caller has released all lines so far: the limit on packed input counts from here on.
  void forget_lines() {
    if (unpacker_) unpacker_->forget();
  }

  // The next bytes, which stay unread; fewer if the first line or the file is shorter.
  std::string_view peek(size_t bytes);
  bool read_line(std::string& line);  // with its newline; false at the end
  std::string read_piece();           // as much as has arrived; empty at the end
  std::string read_rest();

 private:
  bool begin();                      // reads the bytes that identify gzip; false at the end
  bool fill();                       // false at the end
  bool read_block(std::string& to);  // appends raw bytes of the file; false at the end
  void watch_loading() const;

  std::string name_;
  std::function<bool()> stop_;
  int descriptor_ = 0;
  std::string buffer_;  // unread from start_ on
  size_t start_ = 0;
  size_t read_bytes_ = 0;
  bool has_begun_ = false;
  std::optional<GzipUnpacker> unpacker_;
};

}  // namespace pointsman
