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

// A file of any size must not unpack to memory without bounds: at most so many bytes for each packed one,
// beside kGzipHead.
inline constexpr uint64_t kGzipRatio = 256, kGzipHead = 1 << 20;

class GzipUnpacker {
 public:
  // `file` is its name in messages.
  explicit GzipUnpacker(std::string file);

  // Appends what the next bytes of the file unpack to. Throws InputError.
  void unpack(std::string_view packed, std::string& out);
  // The file ends here. Throws InputError when something is missing.
  void end() const;

 private:
  [[noreturn]] void fail(const std::string& message) const;
  void inflate_some(std::string& out);

  std::string file_;
  std::unique_ptr<z_stream_s, void (*)(z_stream_s*)> stream_;
  uint64_t packed_bytes_ = 0, unpacked_bytes_ = 0;
  bool is_between_ = true;  // two members: the file may end
};

}  // namespace pointsman
