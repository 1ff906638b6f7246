// SPDX-License-Identifier: Apache-2.0
#include "host/formats/input_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "host/formats/text_scan.h"

namespace pointsman {
namespace {

constexpr size_t kBlockBytes = 64 * 1024;
constexpr int kPollMilliseconds = 20;
constexpr size_t kSmall = 1 << 20;  // bytes that are read whatever the time

constexpr std::string_view kGzipMagic = "\x1f\x8b";
constexpr int kGzipWindow = 15 + 16;  // the largest window, with gzip's header
constexpr size_t kHeadBytes = 4;
constexpr std::string_view kArrays[] = {"\x93NUM", "PK\x03\x04"};  // the first bytes of .npy and .npz
constexpr uint64_t kBytesPerValue = 24;  // at most, of a parsed value of a text format beside its text

// The byte order marks of UTF-8, as spreadsheets and editors write it, and of UTF-16.
constexpr std::string_view kMark = "\xEF\xBB\xBF", kLittleMark = "\xFF\xFE", kBigMark = "\xFE\xFF";

std::atomic<uint64_t> limit{0};  // 0: not set
std::function<bool()> waiting_stop, loading_stop;

// In every text format at least one of these separates two values.
bool is_separator(char c) {
  return c == ' ' || c == '\n' || c == ',' || c == '\t' || c == ':' || c == '[' || c == '{' || c == '"';
}

[[noreturn]] void fail_stopped(const std::string& file) {
  throw InputStopped(file, 0, "the run was stopped before the end of the input came");
}

}  // namespace

std::optional<uint64_t> parse_size(std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  uint64_t size = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), size);
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  if (wrong != std::errc() || size == 0 || unit.size() > 1) return std::nullopt;
  if (unit.empty()) return size;
  const size_t power = kUnits.find(unit[0]);
  if (power == std::string_view::npos) return std::nullopt;
  const size_t bits = 10 * (power + 1);
  if (size > std::numeric_limits<uint64_t>::max() >> bits) return std::nullopt;
  return size << bits;
}

void set_input_limit(uint64_t bytes) { limit = bytes; }

void check_input_size(uint64_t bytes, const std::string& file, const std::string& what) {
  uint64_t most = limit;
  if (most == 0) {
    const char* const text = std::getenv("POINTSMAN_MAX_INPUT");
    const auto size = parse_size(text != nullptr && *text != '\0' ? text : kDefaultMaxInput);
    if (!size)
      throw std::invalid_argument("POINTSMAN_MAX_INPUT: expected a size such as 4G, found " + shown(text));
    most = *size;
  }
  if (bytes <= most) return;
  throw InputTooLarge(file, what + " " + std::to_string(bytes) + " bytes; expected at most " +
                                std::to_string(most) + ", --max-input SIZE or POINTSMAN_MAX_INPUT raises it");
}

void set_run_stop(std::function<bool()> waiting, std::function<bool()> loading) {
  waiting_stop = std::move(waiting);
  loading_stop = std::move(loading);
}

void LoadingWatch::look() const {
  if (loading_stop && loading_stop()) fail_stopped(file_);
}

GzipUnpacker::GzipUnpacker(std::string file)
    : file_(std::move(file)), stream_(new z_stream(), [](z_stream* stream) {
        inflateEnd(stream);
        delete stream;
      }) {
  if (inflateInit2(stream_.get(), kGzipWindow) != Z_OK) throw std::bad_alloc();
}

void GzipUnpacker::fail(const std::string& message) const { throw InputError(file_, 0, "gzip: " + message); }

void GzipUnpacker::unpack(std::string_view packed, std::string& out) {
  stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));  // zlib only reads it
  stream_->avail_in = static_cast<uInt>(packed.size());
  while (stream_->avail_in > 0) {
    if (is_between_) inflateReset(stream_.get());
    const size_t held = out.size();
    out.resize(held + kBlockBytes);
    stream_->next_out = reinterpret_cast<Bytef*>(out.data() + held);
    stream_->avail_out = kBlockBytes;
    const int status = inflate(stream_.get(), Z_SYNC_FLUSH);
    out.resize(held + kBlockBytes - stream_->avail_out);
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
      fail(std::string("is damaged (") + (stream_->msg != nullptr ? stream_->msg : "no gzip") + ")");
    count(std::string_view(out).substr(held));
    is_between_ = status == Z_STREAM_END;
  }
}

void GzipUnpacker::count(std::string_view bytes) {
  if (head_.size() < kHeadBytes) head_ += bytes.substr(0, kHeadBytes - head_.size());
  held_bytes_ += bytes.size();
  if (std::ranges::find(kArrays, head_) == std::end(kArrays))
    held_bytes_ += kBytesPerValue * static_cast<uint64_t>(std::ranges::count_if(bytes, is_separator));
  check_input_size(held_bytes_, file_, "gzip: what it unpacks to takes at least");
}

void GzipUnpacker::end() const {
  if (!is_between_) fail("the file ends within it; was it cut short?");
}

InputFile::InputFile(const std::string& path, std::function<bool()> stop)
    : name_(path == "-" ? "stdin" : path), stop_(std::move(stop)) {
  if (path == "-") return;
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    throw InputError(path, 0, "expected a file, found a directory");
  // O_NONBLOCK: open() must not wait for a FIFO's writer.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) throw InputError(path, 0, std::string("cannot be opened: ") + std::strerror(errno));
}

InputFile::~InputFile() {
  if (descriptor_ > 0) ::close(descriptor_);
}

bool InputFile::read_block(std::string& to) {
  for (;;) {
    pollfd ready = {descriptor_, POLLIN, 0};
    const int count = ::poll(&ready, 1, kPollMilliseconds);
    if (count <= 0) {
      if (count < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), name_);
      if ((stop_ && stop_()) || (waiting_stop && waiting_stop())) fail_stopped(name_);
      continue;
    }
    const size_t held = to.size();
    to.resize(held + kBlockBytes);
    const ssize_t got = ::read(descriptor_, to.data() + held, kBlockBytes);
    const int error = errno;
    to.resize(held + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    read_bytes_ += to.size() - held;
    if (got >= 0) return got > 0;
    if (error != EINTR && error != EAGAIN) throw std::system_error(error, std::generic_category(), name_);
  }
}

bool InputFile::fill() {
  if (descriptor_ < 0) return false;
  buffer_.erase(0, std::exchange(start_, 0));
  const size_t held = buffer_.size();
  std::string packed;
  if (read_bytes_ == 0) {
    while (packed.size() < kGzipMagic.size() && kGzipMagic.starts_with(packed) && read_block(packed)) {
    }
    if (packed.empty()) return false;
    if (packed.starts_with(kGzipMagic)) {
      unpacker_.emplace(name_);
    } else {
      buffer_ += packed;
    }
  }
  for (;;) {
    if (unpacker_) unpacker_->unpack(packed, buffer_);
    if (buffer_.size() > held) return true;  // a block may unpack to nothing
    packed.clear();
    if (read_block(unpacker_ ? packed : buffer_)) continue;
    if (unpacker_) unpacker_->end();
    return false;
  }
}

// No format begins with one of the marks: arrays and archives have first bytes of their own.
void InputFile::begin() {
  if (std::exchange(has_begun_, true)) return;
  const auto may_become = [&](std::string_view mark) {
    return unread().size() < mark.size() && mark.starts_with(unread());
  };
  while ((may_become(kMark) || may_become(kLittleMark) || may_become(kBigMark)) && fill()) {
  }
  if (unread().starts_with(kMark)) start_ += kMark.size();
  if (unread().starts_with(kLittleMark) || unread().starts_with(kBigMark))
    throw InputError(name_, 1, "expected UTF-8, found UTF-16; save it as UTF-8");
}

std::string_view InputFile::peek_line(size_t enough) {
  begin();
  size_t searched = 0, end;
  while ((end = unread().find('\n', searched)) == std::string_view::npos) {
    searched = unread().size();
    if (searched >= kSmall) LoadingWatch(name_).look();
    if (searched >= enough || !fill()) return unread();
  }
  return unread().substr(0, end + 1);
}

bool InputFile::read_line(std::string& line) {
  do {
    line = peek_line();
    if (line.empty()) return false;
    start_ += line.size();
    ++line_;
  } while (trim(line).empty());
  if (line.back() == '\n') line.pop_back();
  return true;
}

void InputFile::watch_loading() const {
  if (read_bytes_ >= kSmall) LoadingWatch(name_).look();
}

std::string InputFile::read_piece() {
  begin();
  watch_loading();
  if (unread().empty() && !fill()) return {};
  std::string piece(unread());
  start_ += piece.size();
  return piece;
}

std::string_view InputFile::read_rest() {
  // A buffer that grew by and by would be copied, and its pages made, twice over.
  struct stat status {};
  if (descriptor_ >= 0 && ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode))
    buffer_.reserve(static_cast<size_t>(status.st_size) + kBlockBytes);
  begin();
  while (fill()) watch_loading();
  const std::string_view rest = unread();
  start_ += rest.size();
  return rest;
}

}  // namespace pointsman
