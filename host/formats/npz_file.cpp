// SPDX-License-Identifier: Apache-2.0
#include <zip.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "host/formats/input_error.h"
#include "host/formats/input_file.h"
#include "host/formats/npy_array.h"
#include "host/formats/text_scan.h"
#include "models/tools/atomic_file.h"

namespace pointsman {
namespace {

constexpr zip_int64_t kMostEntries = 256;
constexpr size_t kPieceBytes = 64 * 1024;
constexpr size_t kLargest = 0xFFFEFFFF;  // bytes of entries written without ZIP64 fields

}  // namespace

// libzip reports a lack of memory by many codes, some of which also mean a damaged archive. Callers set errno
// to 0 before its functions, so that ENOMEM is reliable.
void NpzFile::fail(const std::string& message) const {
  if (errno == ENOMEM) throw std::bad_alloc();
  throw InputError(file_, 0, "zip: " + message);
}

NpzFile::NpzFile(std::string_view bytes, std::string file)
    : file_(std::move(file)), archive_(nullptr, zip_discard) {
  errno = 0;
  zip_error_t error;
  zip_error_init(&error);
  const std::unique_ptr<zip_error_t, void (*)(zip_error_t*)> owner(&error, zip_error_fini);
  zip_source_t* const source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  if (source != nullptr) archive_.reset(zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error));
  if (archive_ == nullptr) {
    zip_source_free(source);
    fail(std::string(zip_error_strerror(&error)) + "; was the file cut short?");
  }
  const zip_int64_t count = zip_get_num_entries(archive_.get(), 0);
  if (count > kMostEntries)
    fail("expected at most " + std::to_string(kMostEntries) + " entries, found " + std::to_string(count));
}

bool NpzFile::has(const std::string& name) const {
  errno = 0;
  const bool is_there = zip_name_locate(archive_.get(), (name + ".npy").c_str(), 0) >= 0;
  if (!is_there && errno == ENOMEM) throw std::bad_alloc();
  return is_there;
}

bool NpzFile::is_packed() const {
  for (zip_int64_t i = 0; i < zip_get_num_entries(archive_.get(), 0); ++i) {
    zip_stat_t stat;
    if (zip_stat_index(archive_.get(), i, 0, &stat) == 0 && stat.comp_method != ZIP_CM_STORE) return true;
  }
  return false;
}

std::string NpzFile::names() const {
  std::string names;
  for (zip_int64_t i = 0; i < zip_get_num_entries(archive_.get(), 0); ++i) {
    if (names.size() > 100) return names + ", ..";
    names += (names.empty() ? "" : ", ") + shown(zip_get_name(archive_.get(), i, ZIP_FL_ENC_RAW));
  }
  return names.empty() ? "no arrays" : names;
}

// Reads the unpacked bytes of an entry.
class NpzFile::Entry {
 public:
  Entry(const NpzFile& npz, uint64_t index, std::string name)
      : npz_(npz), name_(std::move(name)), from_(zip_fopen_index(npz.archive_.get(), index, 0), zip_fclose) {
    if (from_ == nullptr) npz.fail(shown(name_) + ": " + zip_strerror(npz.archive_.get()));
  }

  // Fewer bytes than `most` only at the end.
  std::string read(size_t most) {
    std::string bytes(most, '\0');
    size_t size = 0;
    for (zip_int64_t count = 1; size < most && count > 0; size += static_cast<size_t>(count)) {
      count = zip_fread(from_.get(), bytes.data() + size, most - size);
      if (count < 0) npz_.fail(shown(name_) + ": is damaged (" + zip_file_strerror(from_.get()) + ")");
    }
    bytes.resize(size);
    watch_.after(size / sizeof(double));
    return bytes;
  }

 private:
  const NpzFile& npz_;
  LoadingWatch watch_{npz_.file_};
  std::string name_;
  std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> from_;
};

NpyArray NpzFile::array(const std::string& name) const {
  const std::string entry = name + ".npy";
  errno = 0;
  zip_stat_t stat;
  if (zip_stat(archive_.get(), entry.c_str(), 0, &stat) != 0) {
    if (errno == ENOMEM) throw std::bad_alloc();
    throw InputError(file_, 0, "expected an array `" + name + "`, found " + names());
  }
  // The decoders of other methods may allocate memory that the archive only claims to need.
  if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE)
    fail(shown(entry) + ": expected it stored or deflated, found method " + std::to_string(stat.comp_method));
  // Reads the entry twice: first to check its size and CRC before memory is allocated for the elements.
  Entry trial(*this, stat.index, entry);
  std::string piece = trial.read(kNpyPrefix + kLargestNpyHeader);
  const NpyHeader header = parse_npy_header(piece, file_, name + ": ");
  if (stat.comp_method == ZIP_CM_DEFLATE) {
    const size_t element = header.is_text() ? header.item_size : sizeof(double);
    check_input_size(header.count * element, file_, name + ": " + header.shape_text() + " takes");
  }
  uint64_t size = stat.size;
  if (header.data_offset + header.data_size == size) {
    for (size = 0; !piece.empty() && size <= stat.size; piece = trial.read(kPieceBytes)) size += piece.size();
  }
  if (header.data_offset + header.data_size != size)
    throw InputError(file_, 0, name + ": " + header.wrong_size(size - header.data_offset));
  const auto elements = std::make_shared<Entry>(*this, stat.index, entry);
  elements->read(header.data_offset);
  return NpyArray(
      header, [elements] { return elements->read(kPieceBytes); }, file_, name + ": ");
}

std::string zip_stored(const std::vector<std::pair<std::string, std::string>>& entries) {
  constexpr uint16_t kVersion = 20, kDate = 0x21;  // 1980-01-01
  constexpr uint32_t kLocalMagic = 0x04034b50, kEntryMagic = 0x02014b50, kEndMagic = 0x06054b50;
  constexpr uint16_t kZero = 0;  // flags, method, time, length of comments
  std::string out, directory;
  const auto append_common = [&](std::string& to, const std::string& name, const std::string& bytes) {
    const auto size = static_cast<uint32_t>(bytes.size());
    const uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
    append_bytes(to, kVersion, kZero, kZero, kZero, kDate, static_cast<uint32_t>(crc), size, size,
                 static_cast<uint16_t>(name.size()), kZero);
  };
  for (const auto& [name, bytes] : entries) {
    const size_t offset = out.size();
    if (offset + bytes.size() > kLargest) {
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
