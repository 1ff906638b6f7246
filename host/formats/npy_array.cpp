// SPDX-License-Identifier: Apache-2.0
#include "host/formats/npy_array.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "host/formats/input_file.h"
#include "host/formats/json_document.h"
#include "host/formats/text_scan.h"

namespace pointsman {

static_assert(std::endian::native == std::endian::little, "elements are copied without conversion");

namespace {

constexpr size_t kMostAxes = 8;

// The header's text is a Python dictionary: {'descr': '<f8', 'fortran_order': False, 'shape': (16, 50, 2), }
// Returns it as JSON, with every character in its place.
std::string json_of(std::string_view dictionary) {
  std::string json(dictionary);
  for (char& c : json) c = c == '\'' ? '"' : c == '(' ? '[' : c == ')' ? ']' : c;
  for (const char* word : {"True", "False"}) {
    if (const size_t at = json.find(word); at != std::string::npos) json[at] |= 0x20;
  }
  for (size_t comma = 0; (comma = json.find(',', comma)) != std::string::npos; ++comma) {
    const size_t next = json.find_first_not_of(" \n", comma + 1);
    if (next != std::string::npos && (json[next] == ']' || json[next] == '}')) json[comma] = ' ';
  }
  return json;
}

void parse_type(const JsonValue& descr, NpyHeader& header) {
  if (descr.is_array()) descr.fail("structured types are not supported");
  const std::string_view type = descr.text();
  if (type.size() < 2) descr.fail_expected("a type such as \"<f8\"");
  if (type[0] == '>') descr.fail_expected("little-endian numbers");
  if (type[1] == 'O') descr.fail("Python objects are not supported");
  int64_t size = 0;
  const char kind = type[1];
  if (std::string_view("<|=").find(type[0]) == std::string_view::npos ||
      std::string_view("fiubUS").find(kind) == std::string_view::npos ||
      !parse_integer(type.substr(2), size) || size < 1 || size > 65536)
    descr.fail_expected("numbers or strings");
  const bool is_number = kind != 'U' && kind != 'S';
  const int64_t least = kind == 'f' ? 4 : 1, most = kind == 'b' ? 1 : 8;
  if (is_number && (size < least || size > most || !std::has_single_bit(static_cast<uint64_t>(size))))
    descr.fail_expected("floats of 4 or 8 bytes or integers of 1 to 8");
  header.kind = kind;
  header.item_size = static_cast<size_t>(kind == 'U' ? 4 * size : size);
}

NpyHeader parse_dictionary(std::string_view text) {
  constexpr double kLargestExact = 0x1p53;
  const std::string json = json_of(text);
  const JsonDocument document(json, "npy header");
  const JsonValue root = document.root(), shape = root.get("shape"), order = root.get("fortran_order");
  NpyHeader header;
  parse_type(root.get("descr"), header);
  if (order.boolean()) order.fail("expected False (C order), found True");
  for (const JsonValue& size : shape.elements()) {
    const double value = size.number();
    if (value < 0.0 || value > kLargestExact || value != std::floor(value))
      size.fail_expected("an integer from 0 to 2^53");
    header.shape.push_back(static_cast<int64_t>(value));
  }
  if (header.shape.size() > kMostAxes) shape.fail("more than " + std::to_string(kMostAxes) + " axes");
  return header;
}

std::string as_utf8(uint32_t code) {
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;  // bytes of six bits after the first
  std::string out(1, static_cast<char>(0xFF00 >> (more + 1) | code >> 6 * more));
  for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | (code >> 6 * i & 63));
  return out;
}

template <typename Size>
std::string tuple_text(const std::vector<Size>& sizes) {
  const std::string text = joined(sizes, ", ", [](Size size) { return std::to_string(size); });
  return "(" + text + (sizes.size() == 1 ? ",)" : ")");
}

}  // namespace

std::string NpyHeader::shape_text() const { return tuple_text(shape); }

std::string NpyHeader::type_text() const {
  std::string text(item_size == 1 || kind == 'S' ? "|" : "<");
  text += kind;
  return text + std::to_string(kind == 'U' ? item_size / 4 : item_size);
}

std::string NpyHeader::wrong_size(size_t found) const {
  return "shape " + shape_text() + " of " + type_text() + ": expected " + std::to_string(data_size) +
         " bytes of data, found " + std::to_string(static_cast<int64_t>(found));
}

NpyHeader parse_npy_header(std::string_view bytes, const std::string& file, const std::string& place) {
  const auto fail = [&](const std::string& message) { throw InputError(file, 0, place + message); };
  if (!bytes.starts_with(kNpyMagic))
    fail("expected an .npy file (\"\\x93NUMPY\"), found " + shown(bytes.substr(0, kNpyMagic.size())));
  constexpr const char* kCut = "npy header: the file ends within it";
  if (bytes.size() < 10) fail(kCut);
  const int major = static_cast<unsigned char>(bytes[6]), minor = static_cast<unsigned char>(bytes[7]);
  if (major < 1 || major > 3 || minor != 0)
    fail("expected npy version 1.0, 2.0 or 3.0, found " + std::to_string(major) + "." +
         std::to_string(minor));
  const size_t text_offset = major == 1 ? 10 : 12;
  if (bytes.size() < text_offset) fail(kCut);
  const size_t text_size = major == 1 ? load_bytes<uint16_t>(bytes, 8) : load_bytes<uint32_t>(bytes, 8);
  if (text_size > kLargestNpyHeader)
    fail("npy header: expected at most " + std::to_string(kLargestNpyHeader) + " bytes, found " +
         std::to_string(text_size));
  if (text_size > bytes.size() - text_offset) fail(kCut);
  NpyHeader header;
  try {
    header = parse_dictionary(bytes.substr(text_offset, text_size));
  } catch (const InputStopped&) {
    throw;
  } catch (const InputError& error) {
    fail(error.what());
  }
  int64_t count = 1, size = 0;
  bool overflow = false;
  for (const int64_t axis : header.shape) overflow |= __builtin_mul_overflow(count, axis, &count);
  overflow |= __builtin_mul_overflow(count, static_cast<int64_t>(header.item_size), &size);
  if (overflow) fail("npy header: shape: " + header.shape_text() + " overflows");
  header.count = static_cast<size_t>(count);
  header.data_size = static_cast<size_t>(size);
  header.data_offset = text_offset + text_size;
  return header;
}

NpyArray::NpyArray(std::string_view bytes, std::string file, std::string place)
    : file_(std::move(file)), place_(std::move(place)), header_(parse_npy_header(bytes, file_, place_)) {
  data_ = bytes.substr(header_.data_offset);
  if (data_.size() != header_.data_size) fail(header_.wrong_size(data_.size()));
}

NpyArray::NpyArray(NpyHeader header, std::function<std::string()> next_piece, std::string file,
                   std::string place)
    : file_(std::move(file)),
      place_(std::move(place)),
      header_(std::move(header)),
      next_piece_(std::move(next_piece)) {}

NpyArray::NpyArray(NpyHeader header, std::string_view elements, std::string name)
    : file_(std::move(name)), header_(std::move(header)), is_file_(false), data_(elements) {}

std::string_view NpyArray::element(size_t i) const {
  const size_t size = header_.item_size, at = i * size;
  while (at + size > data_start_ + data_.size()) {
    const std::string piece = next_piece_();
    if (piece.empty()) fail(header_.wrong_size(data_start_ + data_.size()));
    const size_t gone = std::min(at - data_start_, pieces_.size());
    pieces_.erase(0, gone);
    pieces_ += piece;
    data_start_ += gone;
    data_ = pieces_;
  }
  return data_.substr(at - data_start_, size);
}

void NpyArray::fail(const std::string& message) const { throw InputError(file_, 0, place_ + message); }

void NpyArray::fail_header(const std::string& message) const {
  fail((is_file_ ? "npy header: " : "") + message);
}

std::string NpyArray::index_text(size_t i) const {
  std::string text;
  for (size_t axis = header_.shape.size(); axis-- > 0;) {
    const auto size = static_cast<size_t>(header_.shape[axis]);
    text = std::to_string(i % size) + (text.empty() ? "" : ", ") + text;
    i /= size;
  }
  return "[" + text + "]";
}

double NpyArray::number(size_t i) const {
  if (!header_.is_float()) return static_cast<double>(integer(i));
  const std::string_view bytes = element(i);
  const double value = header_.item_size == 8 ? load_bytes<double>(bytes, 0)
                                              : static_cast<double>(load_bytes<float>(bytes, 0));
  if (!std::isfinite(value))
    fail(index_text(i) + ": expected a finite number, found " + (std::isnan(value) ? "nan" : "inf"));
  return value;
}

void NpyArray::numbers(size_t first, std::span<double> to) const {
  bool finite = header_.kind == 'f' && header_.item_size == sizeof(double) && next_piece_ == nullptr;
  if (finite) {  // the usual layout of large files
    std::memcpy(to.data(), data_.data() + first * sizeof(double), to.size_bytes());
    for (const double value : to) finite &= std::isfinite(value);
  }
  for (size_t i = 0; !finite && i < to.size(); ++i) to[i] = number(first + i);
}

int64_t NpyArray::integer(size_t i) const {
  uint64_t bits = 0;
  std::memcpy(&bits, element(i).data(), header_.item_size);
  const size_t unused = 64 - 8 * header_.item_size;
  const auto value = static_cast<int64_t>(bits << unused);
  if (header_.kind == 'i') return value >> unused;
  if (unused == 0 && value < 0) fail(index_text(i) + ": does not fit a signed integer of 64 bits");
  return static_cast<int64_t>(bits);
}

std::string NpyArray::text(size_t i) const {
  const std::string_view item = element(i);
  std::string out;
  if (header_.kind == 'S') {
    out = item.substr(0, item.find_last_not_of('\0') + 1);
    if (!is_utf8(out)) fail(index_text(i) + ": expected UTF-8, found " + shown(out));
    return out;
  }
  size_t length = item.size() / 4;
  while (length > 0 && load_bytes<uint32_t>(item, 4 * (length - 1)) == 0) --length;
  for (size_t k = 0; k < length; ++k) {
    const auto code = load_bytes<uint32_t>(item, 4 * k);
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
      fail(index_text(i) + ": expected Unicode, found code " + std::to_string(code));
    out += as_utf8(code);
  }
  return out;
}

std::string npy_header(const std::string& type, const std::vector<size_t>& shape) {
  // numpy leaves room for a first axis of 21 digits, then pads to 64 bytes.
  constexpr size_t kGrowthDigits = 21, kAlignment = 64, kPrefix = 10;
  std::string text =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + tuple_text(shape) + ", }";
  if (!shape.empty()) text.append(kGrowthDigits - std::to_string(shape[0]).size(), ' ');
  text.append(kAlignment - (kPrefix + text.size() + 1) % kAlignment, ' ');
  text += '\n';
  std::string out(kNpyMagic);
  append_bytes(out, '\x01', '\0', static_cast<uint16_t>(text.size()));
  return out + text;
}

}  // namespace pointsman
