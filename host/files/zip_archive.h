// SPDX-License-Identifier: Apache-2.0
// The part of the ZIP format that .npz files use: stored and deflated entries, ZIP64. Reading goes by the
// central directory, since numpy.savez leaves the sizes in the local headers to ZIP64 fields.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pointsman {

// As they lie in little-endian memory: values appended, and one read.
template <typename... T>
void append_bytes(std::string& out, const T&... values) {
  (out.append(reinterpret_cast<const char*>(&values), sizeof(T)), ...);
}
template <typename T>
T load_bytes(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

inline constexpr std::string_view kZipMagic = "PK";

struct ZipEntry {
  std::string name;
  bool deflated = false;
  uint32_t crc = 0;
  uint64_t packed_size = 0;  // bytes in the file
  uint64_t size = 0;         // bytes when unpacked
  uint64_t data_offset = 0;
};

class ZipArchive {
 public:
  // Keeps no copy: `bytes` must outlive it. Throws InputError.
  ZipArchive(std::string_view bytes, std::string file);

  const std::vector<ZipEntry>& entries() const { return entries_; }
  const ZipEntry* find(std::string_view name) const;  // null when there is none

  // The first bytes of an entry, at most `limit`.
  std::string read_start(const ZipEntry& entry, size_t limit) const;
  // The whole entry, its size and CRC checked.
  std::string read(const ZipEntry& entry) const;

 private:
  struct Directory {
    uint64_t offset, size, count;
  };
  [[noreturn]] void fail(const std::string& message) const;
  Directory find_directory() const;
  Directory read_zip64_directory(size_t end_record) const;
  size_t read_entry(size_t at, size_t end);  // returns where the next one starts
  void read_zip64_sizes(std::string_view extra, ZipEntry& entry, uint64_t& header_offset) const;
  void find_data(ZipEntry& entry, uint64_t header_offset) const;

  std::string_view bytes_;
  std::string file_;
  std::vector<ZipEntry> entries_;
};

// An archive of stored entries (name, bytes), dated 1980-01-01 so that equal contents are equal files.
// Throws OutputRefused from 4 GiB on.
std::string zip_stored(const std::vector<std::pair<std::string, std::string>>& entries);

}  // namespace pointsman
