// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy format, versions 1.0 to 3.0: little-endian numbers and strings in C order, nothing else. And
// .npz, zip archives of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "host/files/zip_archive.h"

namespace pointsman {

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";
inline constexpr size_t kLargestNpyHeader = 64 * 1024;  // bytes of the header's text
inline constexpr size_t kNpyPrefix = 12;                // at most, before that text

struct NpyHeader {
  char kind = 'f';       // f float, i signed, u unsigned, b boolean, U UTF-32 string, S byte string
  size_t item_size = 8;  // bytes
  std::vector<int64_t> shape;
  size_t count = 0;        // elements
  size_t data_offset = 0;  // where the elements start
  size_t data_size = 0;    // bytes they take

  bool is_float() const { return kind == 'f'; }
  bool is_integer() const { return kind == 'i' || kind == 'u'; }
  bool is_text() const { return kind == 'U' || kind == 'S'; }
  std::string shape_text() const;  // "(16, 50, 2)"
  std::string type_text() const;   // "<f8"
};

// `bytes` is the file or its first kNpyPrefix + kLargestNpyHeader bytes. `place` goes in front of messages
// (an array of an .npz: "locs: "). Throws InputError.
NpyHeader parse_npy_header(std::string_view bytes, const std::string& file, const std::string& place = "");

// A whole array.
class NpyArray {
 public:
  // Keeps no copy: `bytes` must outlive it. Throws InputError, also when the elements do not end exactly
  // where the bytes do.
  NpyArray(std::string_view bytes, std::string file, std::string place = "");
  // Keeps the bytes.
  NpyArray(std::string&& bytes, std::string file, std::string place);
  NpyArray(const NpyArray&) = delete;
  NpyArray& operator=(const NpyArray&) = delete;

  const NpyHeader& header() const { return header_; }
  const std::vector<int64_t>& shape() const { return header_.shape; }

  double number(
      size_t i) const;  // of an f, i, u, b array; finite, else an InputError with the element's index
  int64_t integer(size_t i) const;   // of an i, u, b array; an InputError when it does not fit
  std::string text(size_t i) const;  // of a U, S array, as UTF-8; an InputError when it is none

  // Throws InputError(file, place + message).
  [[noreturn]] void fail(const std::string& message) const;
  // "[3, 0, 1]", for messages.
  std::string index_text(size_t i) const;

 private:
  void take(std::string_view bytes);

  std::string owned_, file_, place_;
  NpyHeader header_;
  std::string_view data_;
};

// Arrays by name: the entries "<name>.npy" of a zip archive. Keeps no copy of the bytes.
class NpzFile {
 public:
  NpzFile(std::string_view bytes, std::string file);

  bool has(const std::string& name) const;
  std::string names() const;  // for messages

  // Throws InputError when it is not there. Its header is checked before it is unpacked as a whole.
  NpyArray array(const std::string& name) const;

 private:
  std::string file_;
  ZipArchive archive_;
};

// The bytes that numpy.save puts in front of a C-ordered array: version 1.0, padded to 64.
std::string npy_header(const std::string& type, const std::vector<size_t>& shape);

}  // namespace pointsman
