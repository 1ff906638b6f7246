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

#include "models/tools/atomic_file.h"

struct z_stream_s;  // of zlib

namespace pointsman {

// A malformed input file; exit code 3. what() is one of
//   berlin52.tsp:11: NODE_COORD_SECTION: expected "id x y", found "4 17.0"
//   batch.json:3:14: instances[2].id: expected a string, found 7
//   set.npz: expected ..
class InputError : public FileError {
 public:
  // line and column (in bytes) count from 1; 0: unknown, or the format has none.
  InputError(const std::string& file, int64_t line, const std::string& message, int64_t column = 0)
      : FileError(file, message,
                  (line > 0 ? ":" + std::to_string(line) : "") +
                      (line > 0 && column > 0 ? ":" + std::to_string(column) : "")),
        line_(line) {}

  int64_t line() const { return line_; }

 private:
  int64_t line_;
};

// A time limit or a signal ended the run while input was awaited or parsed.
struct InputStopped : InputError {
  using InputError::InputError;
};

// Packed input needs more memory than --max-input allows; exit code 4.
struct InputTooLarge : FileError {
  using FileError::FileError;
};

// The default of --max-input.
inline constexpr const char* kDefaultMaxInput = "1G";

// Parses a positive number of bytes with an optional unit K, M, G or T (powers of 1024): "512M".
std::optional<uint64_t> parse_size(std::string_view text);

// Sets the memory limit of packed input (gzip, .npz) for the whole process. Until then the limit is
// POINTSMAN_MAX_INPUT of the environment, else the default.
void set_input_limit(uint64_t bytes);
// Throws InputTooLarge if `bytes` exceeds the limit, and std::invalid_argument if the environment variable is
// no size. `what` starts the message: "locs: (9, 2) takes".
void check_input_size(uint64_t bytes, const std::string& file, const std::string& what);

// Sets, for the whole process, the tests for the end of the run: `waiting` is called while no input arrives,
// `loading` while a document is read and parsed. Call it before the first InputFile is made.
void set_run_stop(std::function<bool()> waiting, std::function<bool()> loading);

// Ends the parsing of a long document when the run is over.
class LoadingWatch {
 public:
  explicit LoadingWatch(const std::string& file) : file_(file) {}  // the name in messages must outlive it

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
  explicit GzipUnpacker(std::string file);  // its name in messages

  // Appends the unpacked bytes to `out`. Throws InputError, and InputTooLarge beyond the limit, which counts
  // the unpacked bytes and, in text, 24 bytes for each value.
  void unpack(std::string_view packed, std::string& out);
  void forget() { held_bytes_ = 0; }  // the caller has released everything: the limit counts from here on
  void end() const;                   // of the file; throws InputError if the packed data is incomplete

 private:
  [[noreturn]] void fail(const std::string& message) const;
  void count(std::string_view bytes);

  std::string file_;
  std::unique_ptr<z_stream_s, void (*)(z_stream_s*)> stream_;
  std::string head_;  // the first unpacked bytes, which tell arrays from text
  uint64_t held_bytes_ = 0;
  bool is_between_ = true;  // between two members, where the file may end
};

// A file, pipe or standard input, or bytes in memory, without the byte order mark of UTF-8. All reading
// functions throw InputStopped, InputError for damaged gzip and for UTF-16, InputTooLarge, and
// std::system_error when the disk fails. The end of the run interrupts waiting for input, lines beyond a
// megabyte, and documents beyond a megabyte.
class InputFile {
 public:
  // path "-" is standard input. `stop` may be empty; it is called about 50 times a second while no input
  // arrives. Throws InputError if the file cannot be opened.
  explicit InputFile(const std::string& path, std::function<bool()> stop = {});
  // The bytes, which must outlive it, are not unpacked.
  InputFile(std::string_view bytes, const std::string& name) : name_(name), descriptor_(-1), memory_(bytes) {}
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& name() const { return name_; }         // in messages
  bool is_packed() const { return unpacker_.has_value(); }  // valid after the first read
  int64_t line() const { return line_; }                    // of read_line(), from 1
  void forget_lines() {                                     // the caller has released all lines so far
    if (unpacker_) unpacker_->forget();
  }

  // The next line with its newline, which stays unread; may be cut behind `enough` bytes.
  std::string_view peek_line(size_t enough = std::string_view::npos);
  bool read_line(std::string& line);  // the next that is not blank, without its newline; false at the end
  std::string read_piece();           // as much as has arrived; empty at the end
  std::string_view read_rest();       // valid as long as the file

 private:
  bool fill();                       // false at the end
  void begin();                      // called before all reading
  bool read_block(std::string& to);  // appends raw bytes of the file; false at the end
  void watch_loading() const;
  std::string_view unread() const {
    return (descriptor_ < 0 ? memory_ : std::string_view(buffer_)).substr(start_);
  }

  std::string name_;
  std::function<bool()> stop_;
  int descriptor_ = 0;  // negative: reads memory_
  std::string_view memory_;
  std::string buffer_;
  size_t start_ = 0;  // what is before it was read
  bool has_begun_ = false;
  size_t read_bytes_ = 0;
  int64_t line_ = 0;
  std::optional<GzipUnpacker> unpacker_;
};

}  // namespace pointsman
