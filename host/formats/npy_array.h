// SPDX-License-Identifier: Apache-2.0
// NumPy's formats: .npy (versions 1.0 to 3.0, numbers and strings in either byte order and in C or Fortran
// order) and .npz (a zip archive of .npy arrays, stored or deflated).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct zip;  // of libzip

namespace pointsman {

class InputFile;

// Appends or reads values as little-endian bytes.
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

struct NpyHeader {
  char kind = 'f';          // f float, i signed, u unsigned, b boolean, U UTF-32 string, S byte string
  size_t item_size = 8;     // bytes
  bool is_swapped = false;  // big-endian
  bool is_fortran = false;  // the first axis runs fastest
  std::vector<int64_t> shape;
  size_t count = 0;        // elements
  size_t data_offset = 0;  // where the elements start
  size_t data_size = 0;    // bytes they take

  bool is_float() const { return kind == 'f'; }
  bool is_integer() const { return kind == 'i' || kind == 'u'; }
  bool is_text() const { return kind == 'U' || kind == 'S'; }
  std::string shape_text() const;  // "(16, 50, 2)"
  std::string type_text() const;   // "<f8"
  // The message if there are not data_size but `found` bytes.
  std::string wrong_size(size_t found) const;
};

// An array. Its functions throw InputError.
class NpyArray {
 public:
  // From a whole .npy file, which must outlive the array.
  explicit NpyArray(InputFile& file);
  // From elements that come in pieces and must be read in order. next_piece() is empty at the end.
  NpyArray(NpyHeader header, std::function<std::string()> next_piece, std::string file, std::string place,
           bool is_packed);
  // From elements in memory, in C order, which must outlive the array. Messages start with `name`.
  NpyArray(NpyHeader header, std::string_view elements, std::string name);
  NpyArray(const NpyArray&) = delete;
  NpyArray& operator=(const NpyArray&) = delete;

  const std::string& file() const { return file_; }
  const NpyHeader& header() const { return header_; }
  const std::vector<int64_t>& shape() const { return header_.shape; }
  bool is_packed() const { return is_packed_; }  // check_input_size() limits what is made of it, too

  double number(size_t i) const;      // of an f, i, u or b array; always finite
  double any_number(size_t i) const;  // as it stands
  void numbers(size_t first, std::span<double> to) const;
  int64_t integer(size_t i) const;   // of an i, u or b array
  std::string text(size_t i) const;  // of a U or S array, as UTF-8

  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void fail_header(const std::string& message) const;        // about type or shape
  [[noreturn]] void fail_at(size_t i, const std::string& message) const;  // about an element
  std::string index_text(size_t i) const;                                 // "[3, 0, 1]", for messages

 private:
  std::string_view element(size_t i) const;
  // Turns elements in another order into little-endian ones in C order.
  void reorder();

  std::string file_, place_;
  NpyHeader header_;
  bool is_file_ = true, is_packed_ = false;
  std::function<std::string()> next_piece_;  // empty if data_ holds all elements
  mutable std::string_view data_;
  mutable size_t data_start_ = 0;  // bytes of elements before data_
  mutable std::string pieces_;     // owns data_ if it comes in pieces
};

// The header that numpy.save writes for a C-ordered array: version 1.0, padded to 64 bytes.
std::string npy_header(const std::string& type, const std::vector<size_t>& shape);

inline constexpr std::string_view kZipMagic = "PK";

// The arrays of an .npz by name: the entries "<name>.npy" of an archive.
class NpzFile {
 public:
  // The file must outlive the archive. Throws InputError.
  explicit NpzFile(InputFile& file);

  bool has(const std::string& name) const;
  std::vector<std::string> keys() const;  // the arrays, without ".npy"
  std::string names() const;              // for messages

  // The archive must outlive the array, whose elements must be read in order. Throws InputError if the array
  // is missing, damaged or of another size than its header says, and InputTooLarge, before it takes memory.
  NpyArray array(const std::string& name) const;

 private:
  // Reads the unpacked bytes of an entry; fewer than `most` only at the end.
  std::function<std::string(size_t most)> open(uint64_t index, const std::string& entry) const;
  [[noreturn]] void fail(const std::string& message) const;

  std::string file_;
  std::unique_ptr<zip, void (*)(zip*)> archive_;
  bool is_packed_ = false;  // the file, or any entry
};

// An archive of stored entries (name, bytes), dated 1980-01-01 so that equal contents give equal files.
// Throws OutputRefused from 4 GiB on.
std::string zip_stored(const std::vector<std::pair<std::string, std::string>>& entries);

}  // namespace pointsman
