// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy format, versions 1.0 to 3.0: little-endian numbers and strings in C order, nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
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
  // For a message, where other than data_size bytes were found.
  std::string wrong_size(size_t found) const;
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
  // The elements come piece by piece, as many as the header says: they must be asked for in order.
  // next_piece() is empty at their end.
  NpyArray(NpyHeader header, std::function<std::string()> next_piece, std::string file, std::string place);
  // Of memory that is no file: `elements` lie in C order and outlive it. Messages begin with `name`.
  NpyArray(NpyHeader header, std::string_view elements, std::string name);
  NpyArray(const NpyArray&) = delete;
  NpyArray& operator=(const NpyArray&) = delete;

  const std::string& file() const { return file_; }
  const NpyHeader& header() const { return header_; }
  const std::vector<int64_t>& shape() const { return header_.shape; }

  double number(
      size_t i) const;  // of an f, i, u, b array; finite, else an InputError with the element's index
  void numbers(size_t first, std::span<double> to) const;  // the same of several
  int64_t integer(size_t i) const;   // of an i, u, b array; an InputError when it does not fit
  std::string text(size_t i) const;  // of a U, S array, as UTF-8; an InputError when it is none

  // Throws InputError(file, place + message).
  [[noreturn]] void fail(const std::string& message) const;
  // The same of what a file's header says.
  [[noreturn]] void fail_header(const std::string& message) const;
  // "[3, 0, 1]", for messages.
  std::string index_text(size_t i) const;

 private:
  std::string_view element(size_t i) const;

  std::string file_, place_;
  NpyHeader header_;
  bool is_file_ = true;
  std::function<std::string()> next_piece_;  // empty: all elements are at hand
  mutable std::string_view data_;            // the elements at hand
  mutable size_t data_start_ = 0;            // bytes of elements before these
  mutable std::string pieces_;               // data_, where it comes in pieces
};

// The bytes that numpy.save puts in front of a C-ordered array: version 1.0, padded to 64.
std::string npy_header(const std::string& type, const std::vector<size_t>& shape);

}  // namespace pointsman
