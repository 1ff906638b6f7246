// SPDX-License-Identifier: Apache-2.0
#include "host/formats/npy_array.h"

#include <zip.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <limits>
#include <new>
#include <utility>

#include "host/formats/input_file.h"
#include "host/formats/json_document.h"
#include "host/formats/text_scan.h"
#include "models/tools/atomic_file.h"

namespace pointsman {

static_assert(std::endian::native == std::endian::little, "elements are copied without conversion");

namespace {

constexpr size_t kMostAxes = 8;
constexpr size_t kLargestHeader = 64 * 1024;  // bytes of an .npy header's text
constexpr size_t kLongestPrefix = 12;         // the most bytes before that text
constexpr zip_int64_t kMostEntries = 256;
constexpr size_t kPieceBytes = 64 * 1024;
constexpr size_t kLargest = 0xFFFEFFFF;  // bytes of entries written without ZIP64 fields

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
  if (type[1] == 'O')
    descr.fail(
        "Python objects are not read; np.stack makes one array of instances of one size, and NDJSON holds "
        "several sizes");
  int64_t size = 0;
  const char kind = type[1];
  if (std::string_view("<|=>").find(type[0]) == std::string_view::npos ||
      std::string_view("fiubUS").find(kind) == std::string_view::npos ||
      !parse_integer(type.substr(2), size) || size < 1 || size > 65536)
    descr.fail_expected("numbers or strings");
  const bool is_number = kind != 'U' && kind != 'S';
  const int64_t least = kind == 'f' ? 2 : 1, most = kind == 'b' ? 1 : 8;
  if (is_number && (size < least || size > most || !std::has_single_bit(static_cast<uint64_t>(size))))
    descr.fail_expected("floats of 2, 4 or 8 bytes or integers of 1 to 8");
  header.is_swapped = type[0] == '>' && kind != 'S' && (kind == 'U' || size > 1);
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
  for (const JsonValue& size : shape.elements()) {
    const double value = size.number();
    if (value < 0.0 || value > kLargestExact || value != std::floor(value))
      size.fail_expected("an integer from 0 to 2^53");
    header.shape.push_back(static_cast<int64_t>(value));
  }
  header.is_fortran = order.boolean() && header.shape.size() > 1;
  if (header.shape.size() > kMostAxes) shape.fail("more than " + std::to_string(kMostAxes) + " axes");
  return header;
}

// IEEE 754's 16 bits: sign, 5 of the exponent, 10 of the fraction.
double half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double value = std::ldexp(fraction + (exponent > 0 ? 1024 : 0), std::max(exponent, 1) - 25);
  if (exponent == 31)
    value =
        fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  return bits >> 15 ? -value : value;
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

// `bytes` is the file or its first kLongestPrefix + kLargestHeader bytes. Messages start with the file and
// `place`, for example the array of an .npz ("locs: ").
NpyHeader parse_npy_header(std::string_view bytes, const std::string& file, const std::string& place = "") {
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
  if (text_size > kLargestHeader)
    fail("npy header: expected at most " + std::to_string(kLargestHeader) + " bytes, found " +
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

NpyArray::NpyArray(InputFile& file) : file_(file.name()) {
  const std::string_view bytes = file.read_rest();
  is_packed_ = file.is_packed();
  header_ = parse_npy_header(bytes, file_);
  data_ = bytes.substr(header_.data_offset);
  if (data_.size() != header_.data_size) fail(header_.wrong_size(data_.size()));
  if (header_.is_swapped || header_.is_fortran) reorder();
}

NpyArray::NpyArray(NpyHeader header, std::function<std::string()> next_piece, std::string file,
                   std::string place, bool is_packed)
    : file_(std::move(file)),
      place_(std::move(place)),
      header_(std::move(header)),
      is_packed_(is_packed),
      next_piece_(std::move(next_piece)) {
  if (!header_.is_swapped && !header_.is_fortran) return;
  for (std::string piece; !(piece = next_piece_()).empty();) pieces_ += piece;
  if (pieces_.size() != header_.data_size) fail(header_.wrong_size(pieces_.size()));
  data_ = pieces_;
  reorder();
}

NpyArray::NpyArray(NpyHeader header, std::string_view elements, std::string name)
    : file_(std::move(name)), header_(std::move(header)), is_file_(false), data_(elements) {}

void NpyArray::reorder() {
  const size_t size = header_.item_size, unit = header_.kind == 'U' ? 4 : size;
  if (is_packed_) check_input_size(2 * header_.data_size, file_, place_ + header_.shape_text() + " takes");
  std::vector<size_t> steps, place(header_.shape.size(), 0);  // of each axis, in elements; in C order
  size_t step = 1;
  for (const int64_t axis : header_.shape)
    steps.push_back(std::exchange(step, step * static_cast<size_t>(axis)));
  std::string ordered;
  ordered.reserve(header_.data_size);
  LoadingWatch watch(file_);
  for (size_t i = 0, from = 0; i < header_.count; ++i) {
    watch.after(1);
    ordered.append(data_, (header_.is_fortran ? from : i) * size, size);
    for (size_t at = ordered.size() - size; header_.is_swapped && at < ordered.size(); at += unit)
      std::reverse(ordered.begin() + static_cast<int64_t>(at),
                   ordered.begin() + static_cast<int64_t>(at + unit));
    for (size_t axis = place.size(); axis-- > 0; place[axis] = 0) {
      from += steps[axis];
      if (++place[axis] < static_cast<size_t>(header_.shape[axis])) break;
      from -= steps[axis] * place[axis];
    }
  }
  pieces_ = std::move(ordered);
  data_ = pieces_;
  next_piece_ = nullptr;
  header_.is_swapped = header_.is_fortran = false;
}

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

void NpyArray::fail_at(size_t i, const std::string& message) const { fail(index_text(i) + ": " + message); }

std::string NpyArray::index_text(size_t i) const {
  std::string text;
  for (size_t axis = header_.shape.size(); axis-- > 0;) {
    const auto size = static_cast<size_t>(header_.shape[axis]);
    text = std::to_string(i % size) + (text.empty() ? "" : ", ") + text;
    i /= size;
  }
  return "[" + text + "]";
}

double NpyArray::any_number(size_t i) const {
  if (!header_.is_float()) return static_cast<double>(integer(i));
  const std::string_view bytes = element(i);
  if (header_.item_size == 2) return half(load_bytes<uint16_t>(bytes, 0));
  return header_.item_size == 8 ? load_bytes<double>(bytes, 0)
                                : static_cast<double>(load_bytes<float>(bytes, 0));
}

double NpyArray::number(size_t i) const {
  const double value = any_number(i);
  if (!std::isfinite(value))
    fail_at(i, std::string("expected a finite number, found ") + (std::isnan(value) ? "nan" : "inf"));
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
  if (unused == 0 && value < 0) fail_at(i, "does not fit a signed integer of 64 bits");
  return static_cast<int64_t>(bits);
}

std::string NpyArray::text(size_t i) const {
  const std::string_view item = element(i);
  std::string out;
  if (header_.kind == 'S') {
    out = item.substr(0, item.find_last_not_of('\0') + 1);
    if (!is_utf8(out)) fail_at(i, "expected UTF-8, found " + shown(out));
    return out;
  }
  size_t length = item.size() / 4;
  while (length > 0 && load_bytes<uint32_t>(item, 4 * (length - 1)) == 0) --length;
  for (size_t k = 0; k < length; ++k) {
    const auto code = load_bytes<uint32_t>(item, 4 * k);
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
      fail_at(i, "expected Unicode, found code " + std::to_string(code));
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

// libzip reports a lack of memory by many codes, some of which also mean a damaged archive. Callers set errno
// to 0 before its functions, so that ENOMEM is reliable.
void NpzFile::fail(const std::string& message) const {
  if (errno == ENOMEM) throw std::bad_alloc();
  throw InputError(file_, 0, "zip: " + message);
}

NpzFile::NpzFile(InputFile& file) : file_(file.name()), archive_(nullptr, zip_discard) {
  const std::string_view bytes = file.read_rest();
  is_packed_ = file.is_packed();
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
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    is_packed_ |= zip_stat_index(archive_.get(), i, 0, &stat) == 0 && stat.comp_method != ZIP_CM_STORE;
  }
}

bool NpzFile::has(const std::string& name) const {
  errno = 0;
  const bool is_there = zip_name_locate(archive_.get(), (name + ".npy").c_str(), 0) >= 0;
  if (!is_there && errno == ENOMEM) throw std::bad_alloc();
  return is_there;
}

std::vector<std::string> NpzFile::keys() const {
  std::vector<std::string> keys;
  for (zip_int64_t i = 0; i < zip_get_num_entries(archive_.get(), 0); ++i) {
    const std::string name = zip_get_name(archive_.get(), static_cast<zip_uint64_t>(i), ZIP_FL_ENC_RAW);
    if (name.ends_with(".npy")) keys.push_back(name.substr(0, name.size() - 4));
  }
  return keys;
}

std::string NpzFile::names() const {
  std::string names;
  for (zip_int64_t i = 0; i < zip_get_num_entries(archive_.get(), 0); ++i) {
    if (names.size() > 100) return names + ", ..";
    names += (names.empty() ? "" : ", ") + shown(zip_get_name(archive_.get(), i, ZIP_FL_ENC_RAW));
  }
  return names.empty() ? "no arrays" : names;
}

std::function<std::string(size_t)> NpzFile::open(uint64_t index, const std::string& entry) const {
  zip_file_t* const file = zip_fopen_index(archive_.get(), index, 0);
  if (file == nullptr) fail(shown(entry) + ": " + zip_strerror(archive_.get()));
  const std::shared_ptr<zip_file_t> from(file, zip_fclose);
  return [this, from, entry, watch = LoadingWatch(file_)](size_t most) mutable {
    std::string bytes(most, '\0');
    size_t size = 0;
    for (zip_int64_t count = 1; size < most && count > 0; size += static_cast<size_t>(count)) {
      count = zip_fread(from.get(), bytes.data() + size, most - size);
      if (count < 0) fail(shown(entry) + ": is damaged (" + zip_file_strerror(from.get()) + ")");
    }
    bytes.resize(size);
    watch.after(size / sizeof(double));
    return bytes;
  };
}

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
  const auto trial = open(stat.index, entry);
  std::string piece = trial(kLongestPrefix + kLargestHeader);
  const NpyHeader header = parse_npy_header(piece, file_, name + ": ");
  if (stat.comp_method == ZIP_CM_DEFLATE) {
    const size_t element = header.is_text() ? header.item_size : sizeof(double);
    check_input_size(header.count * element, file_, name + ": " + header.shape_text() + " takes");
  }
  uint64_t size = stat.size;
  if (header.data_offset + header.data_size == size) {
    for (size = 0; !piece.empty() && size <= stat.size; piece = trial(kPieceBytes)) size += piece.size();
  }
  if (header.data_offset + header.data_size != size)
    throw InputError(file_, 0, name + ": " + header.wrong_size(size - header.data_offset));
  const auto elements = open(stat.index, entry);
  elements(header.data_offset);
  return NpyArray(
      header, [elements] { return elements(kPieceBytes); }, file_, name + ": ", is_packed_);
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
    if (offset + bytes.size() > kLargest)
      throw OutputRefused("an .npz of 4 GiB or more cannot be written; use npy or ndjson");
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
