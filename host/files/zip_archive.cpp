// SPDX-License-Identifier: Apache-2.0
#include "host/files/zip_archive.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>

#include "host/files/input_error.h"
#include "host/files/text_scan.h"
#include "models/atomic_file.h"

namespace pointsman {
namespace {

constexpr uint32_t kLocalMagic = 0x04034b50, kEntryMagic = 0x02014b50, kEndMagic = 0x06054b50;
constexpr uint32_t kZip64EndMagic = 0x06064b50, kZip64LocatorMagic = 0x07064b50;
constexpr size_t kLocalSize = 30, kEntrySize = 46, kEndSize = 22, kZip64EndSize = 56, kZip64LocatorSize = 20;
constexpr uint32_t kIn64Bits = 0xFFFFFFFFu;  // the true number is in a ZIP64 field
constexpr size_t kMostEntries = 256;
constexpr uint64_t kBestDeflate = 1032;  // no deflate stream unpacks to more than this times its size

// True when `size` bytes fit at `at`, without overflow.
bool fits(std::string_view bytes, uint64_t at, uint64_t size) {
  return at <= bytes.size() && size <= bytes.size() - at;
}

uint32_t crc_of(std::string_view bytes) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// Unpacks until the stream's end or `limit` bytes, growing with what really comes. False when the stream is
// damaged.
bool inflate_bytes(std::string_view packed, uint64_t limit, std::string& out, bool& ended) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> owner(&stream, inflateEnd);
  std::array<char, 64 * 1024> buffer;
  int status = Z_OK;
  while (status == Z_OK && out.size() < limit) {
    if (stream.avail_in == 0) {
      const size_t part = std::min<size_t>(packed.size(), 1u << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
      stream.avail_in = static_cast<uInt>(part);
      packed.remove_prefix(part);
    }
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(std::min<uint64_t>(buffer.size(), limit - out.size()));
    const size_t room = stream.avail_out;
    status = inflate(&stream, Z_NO_FLUSH);
    out.append(buffer.data(), room - stream.avail_out);
  }
  ended = status == Z_STREAM_END && stream.avail_in == 0 && packed.empty();
  return status == Z_OK || status == Z_STREAM_END;
}

}  // namespace

void ZipArchive::fail(const std::string& message) const { throw InputError(file_, 0, "zip: " + message); }

ZipArchive::ZipArchive(std::string_view bytes, std::string file) : bytes_(bytes), file_(std::move(file)) {
  const Directory directory = find_directory();
  if (!fits(bytes_, directory.offset, directory.size)) fail("the central directory lies outside the file");
  if (directory.count > kMostEntries) {
    fail("expected at most " + std::to_string(kMostEntries) + " entries, found " +
         std::to_string(directory.count));
  }
  size_t at = directory.offset;
  const size_t end = directory.offset + directory.size;
  for (uint64_t i = 0; i < directory.count; ++i) at = read_entry(at, end);
  if (at != end) fail("the central directory is longer than its entries");
}

ZipArchive::Directory ZipArchive::find_directory() const {
  if (bytes_.size() < kEndSize) fail("the file is too short");
  const size_t last = bytes_.size() - kEndSize;
  const size_t first = last > 65535 ? last - 65535 : 0;
  for (size_t at = last + 1; at-- > first;) {
    if (load_bytes<uint32_t>(bytes_, at) != kEndMagic) continue;
    if (load_bytes<uint16_t>(bytes_, at + 20) != bytes_.size() - at - kEndSize)
      continue;  // its comment ends the file
    const Directory directory{load_bytes<uint32_t>(bytes_, at + 16), load_bytes<uint32_t>(bytes_, at + 12),
                              load_bytes<uint16_t>(bytes_, at + 10)};
    if (directory.offset == kIn64Bits || directory.size == kIn64Bits || directory.count == 0xFFFF) {
      return read_zip64_directory(at);
    }
    return directory;
  }
  fail("expected its end record, found none; was the file cut short?");
}

ZipArchive::Directory ZipArchive::read_zip64_directory(size_t end_record) const {
  if (end_record < kZip64LocatorSize ||
      load_bytes<uint32_t>(bytes_, end_record - kZip64LocatorSize) != kZip64LocatorMagic) {
    fail("expected a ZIP64 locator, found none");
  }
  const auto at = load_bytes<uint64_t>(bytes_, end_record - kZip64LocatorSize + 8);
  if (!fits(bytes_, at, kZip64EndSize) || load_bytes<uint32_t>(bytes_, at) != kZip64EndMagic) {
    fail("expected the ZIP64 end record, found none");
  }
  return {load_bytes<uint64_t>(bytes_, at + 48), load_bytes<uint64_t>(bytes_, at + 40),
          load_bytes<uint64_t>(bytes_, at + 32)};
}

size_t ZipArchive::read_entry(size_t at, size_t end) {
  if (end - at < kEntrySize || load_bytes<uint32_t>(bytes_, at) != kEntryMagic) {
    fail("expected a central directory entry, found none");
  }
  const size_t name_size = load_bytes<uint16_t>(bytes_, at + 28),
               extra_size = load_bytes<uint16_t>(bytes_, at + 30),
               comment_size = load_bytes<uint16_t>(bytes_, at + 32);
  const size_t next = at + kEntrySize + name_size + extra_size + comment_size;
  if (next > end) fail("the central directory ends within an entry");
  ZipEntry entry;
  entry.name = bytes_.substr(at + kEntrySize, name_size);
  const auto flags = load_bytes<uint16_t>(bytes_, at + 8);
  const auto method = load_bytes<uint16_t>(bytes_, at + 10);
  if (flags & 1) fail(shown(entry.name) + ": is encrypted");
  if (method != 0 && method != 8) {
    fail(shown(entry.name) + ": expected it stored or deflated, found method " + std::to_string(method));
  }
  entry.deflated = method == 8;
  entry.crc = load_bytes<uint32_t>(bytes_, at + 16);
  entry.packed_size = load_bytes<uint32_t>(bytes_, at + 20);
  entry.size = load_bytes<uint32_t>(bytes_, at + 24);
  uint64_t header_offset = load_bytes<uint32_t>(bytes_, at + 42);
  read_zip64_sizes(bytes_.substr(at + kEntrySize + name_size, extra_size), entry, header_offset);
  find_data(entry, header_offset);
  if (find(entry.name) != nullptr) fail(shown(entry.name) + ": is there twice");
  entries_.push_back(std::move(entry));
  return next;
}

void ZipArchive::read_zip64_sizes(std::string_view extra, ZipEntry& entry, uint64_t& header_offset) const {
  std::string_view field;
  while (extra.size() >= 4) {
    const size_t size = load_bytes<uint16_t>(extra, 2);
    if (size > extra.size() - 4) fail(shown(entry.name) + ": the extra field is cut short");
    if (load_bytes<uint16_t>(extra, 0) == 1) field = extra.substr(4, size);
    extra.remove_prefix(4 + size);
  }
  for (uint64_t* number : {&entry.size, &entry.packed_size, &header_offset}) {
    if (*number != kIn64Bits) continue;
    if (field.size() < 8) fail(shown(entry.name) + ": expected a ZIP64 size, found none");
    *number = load_bytes<uint64_t>(field, 0);
    field.remove_prefix(8);
  }
}

void ZipArchive::find_data(ZipEntry& entry, uint64_t header_offset) const {
  if (!fits(bytes_, header_offset, kLocalSize) ||
      load_bytes<uint32_t>(bytes_, header_offset) != kLocalMagic) {
    fail(shown(entry.name) + ": expected a local header, found none");
  }
  const size_t name_size = load_bytes<uint16_t>(bytes_, header_offset + 26),
               extra_size = load_bytes<uint16_t>(bytes_, header_offset + 28);
  if (!fits(bytes_, header_offset + kLocalSize, name_size) ||
      bytes_.substr(header_offset + kLocalSize, name_size) != entry.name) {
    fail(shown(entry.name) + ": the local header has another name");
  }
  entry.data_offset = header_offset + kLocalSize + name_size + extra_size;
  if (!fits(bytes_, entry.data_offset, entry.packed_size))
    fail(shown(entry.name) + ": lies outside the file");
  if (!entry.deflated && entry.size != entry.packed_size) {
    fail(shown(entry.name) + ": is stored, but its two sizes differ");
  }
  if (entry.deflated && entry.size / kBestDeflate > entry.packed_size) {
    fail(shown(entry.name) + ": claims to unpack to " + std::to_string(entry.size) + " bytes, found " +
         std::to_string(entry.packed_size));
  }
}

const ZipEntry* ZipArchive::find(std::string_view name) const {
  for (const ZipEntry& entry : entries_) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

std::string ZipArchive::read_start(const ZipEntry& entry, size_t limit) const {
  const std::string_view packed = bytes_.substr(entry.data_offset, entry.packed_size);
  if (!entry.deflated) return std::string(packed.substr(0, limit));
  std::string out;
  bool ended = false;
  if (!inflate_bytes(packed, limit, out, ended)) fail(shown(entry.name) + ": is damaged (deflate)");
  return out;
}

std::string ZipArchive::read(const ZipEntry& entry) const {
  const std::string_view packed = bytes_.substr(entry.data_offset, entry.packed_size);
  std::string out;
  if (entry.deflated) {
    bool ended = false;
    // One byte more than it claims: an end later than that is seen.
    if (!inflate_bytes(packed, entry.size + 1, out, ended) || !ended || out.size() != entry.size) {
      fail(shown(entry.name) + ": is damaged (deflate)");
    }
  } else {
    out = packed;
  }
  if (crc_of(out) != entry.crc) fail(shown(entry.name) + ": is damaged (CRC)");
  return out;
}

std::string zip_stored(const std::vector<std::pair<std::string, std::string>>& entries) {
  constexpr uint16_t kVersion = 20, kDate = 0x21;  // 1980-01-01
  constexpr uint16_t kZero = 0;                    // flags, method, time, length of comments
  std::string out, directory;
  const auto append_common = [&](std::string& to, const std::string& name, const std::string& bytes) {
    const auto size = static_cast<uint32_t>(bytes.size());
    append_bytes(to, kVersion, kZero, kZero, kZero, kDate, crc_of(bytes), size, size,
                 static_cast<uint16_t>(name.size()), kZero);
  };
  for (const auto& [name, bytes] : entries) {
    const size_t offset = out.size();
    if (offset + bytes.size() > kIn64Bits - 65536u) {
      throw OutputRefused("an .npz of 4 GiB or more cannot be written; use npy or ndjson");
    }
    append_bytes(out, kLocalMagic);
    append_common(out, name, bytes);
    out += name + bytes;
    append_bytes(directory, kEntryMagic, kVersion);
    append_common(directory, name, bytes);
    append_bytes(directory, kZero, kZero, kZero, uint32_t{0}, static_cast<uint32_t>(offset));
    directory += name;
  }
  const auto start = static_cast<uint32_t>(out.size()), size = static_cast<uint32_t>(directory.size());
  const auto count = static_cast<uint16_t>(entries.size());
  out += directory;
  append_bytes(out, kEndMagic, uint32_t{0}, count, count, size, start, kZero);
  return out;
}

}  // namespace pointsman
