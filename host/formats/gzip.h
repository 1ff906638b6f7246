// SPDX-License-Identifier: Apache-2.0
// Unpacks gzip (RFC 1952) as it comes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct z_stream_s;  // of zlib

namespace pointsman {

inline constexpr std::string_view kGzipMagic = "\x1f\x8b";

class GzipUnpacker {
 public:
  // `file` is its name in messages.
  explicit GzipUnpacker(std::string file);

  // Appends what the next bytes of the file unpack to. Throws InputError, and InputTooLarge beyond the limit
  // (input_limit.h): for text its bytes and kBytesPerValue more for each value, for .npy and .npz its bytes.
  void unpack(std::string_view packed, std::string& out);
  // What was unpacked until now is held no more, and counts no more.
  void forget() { held_bytes_ = 0; }
  // The file ends here. Throws InputError when something is missing.
  void end() const;

 private:
  [[noreturn]] void fail(const std::string& message) const;
  void inflate_some(std::string& out);
  void count(std::string_view bytes);

  std::string file_;
  std::unique_ptr<z_stream_s, void (*)(z_stream_s*)> stream_;
  std::string head_;         // the first bytes, as far as they came: they tell arrays from text
  uint64_t held_bytes_ = 0;  // of memory
  bool is_between_ = true;   // two members: the file may end
};

}  // namespace pointsman
