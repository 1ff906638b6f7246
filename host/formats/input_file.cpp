// SPDX-License-Identifier: Apache-2.0
#include "host/formats/input_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace pointsman {
namespace {

constexpr size_t kBlockBytes = 64 * 1024;
constexpr int kPatience = 20;  // milliseconds

constexpr size_t kSmall = 1 << 20;  // bytes, whose end is not far

std::function<bool()> waiting_stop, loading_stop;

[[noreturn]] void fail_stopped(const std::string& file) {
  throw InputStopped(file, 0, "the run was stopped before the end of the input came");
}

}  // namespace

void set_run_stop(std::function<bool()> waiting, std::function<bool()> loading) {
  waiting_stop = std::move(waiting);
  loading_stop = std::move(loading);
}

void LoadingWatch::look() const {
  if (loading_stop && loading_stop()) fail_stopped(file_);
}

InputFile::InputFile(const std::string& path, std::function<bool()> stop)
    : name_(path == "-" ? "stdin" : path), stop_(std::move(stop)) {
  if (path == "-") return;
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    throw InputError(path, 0, "expected a file, found a directory");
  // Without O_NONBLOCK a FIFO would be waited for here until it has a writer.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) throw InputError(path, 0, std::string("cannot be opened: ") + std::strerror(errno));
}

InputFile::~InputFile() {
  if (descriptor_ > 0) ::close(descriptor_);
}

bool InputFile::read_block(std::string& to) {
  for (;;) {
    pollfd ready = {descriptor_, POLLIN, 0};
    const int count = ::poll(&ready, 1, kPatience);
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

bool InputFile::begin() {
  std::string first;
  while (first.size() < kGzipMagic.size() && kGzipMagic.starts_with(first) && read_block(first)) {
  }
  if (first.empty()) return false;
  has_begun_ = true;
  if (first.starts_with(kGzipMagic)) {
    unpacker_.emplace(name_).unpack(first, buffer_);
  } else {
    buffer_ += first;
  }
  return true;
}

bool InputFile::fill() {
  buffer_.erase(0, std::exchange(start_, 0));
  const size_t held = buffer_.size();
  if (!has_begun_ && !begin()) return false;
  std::string packed;
  while (buffer_.size() == held) {  // a block may unpack to nothing
    packed.clear();
    if (!read_block(unpacker_ ? packed : buffer_)) {
      if (unpacker_) unpacker_->end();
      return false;
    }
    if (unpacker_) unpacker_->unpack(packed, buffer_);
  }
  return true;
}

std::string_view InputFile::peek(size_t bytes) {
  const auto next = [&] { return std::string_view(buffer_).substr(start_, bytes); };
  while (next().size() < bytes && next().find('\n') == std::string_view::npos && fill()) {
  }
  return next();
}

bool InputFile::read_line(std::string& line) {
  size_t searched = start_, end;
  while ((end = buffer_.find('\n', searched)) == std::string::npos) {
    const size_t unread = buffer_.size() - start_;
    if (unread >= kSmall) LoadingWatch(name_).look();
    if (fill()) {
      searched = start_ + unread;
      continue;
    }
    line = buffer_.substr(start_);
    start_ = buffer_.size();
    return !line.empty();
  }
  line = buffer_.substr(start_, end + 1 - start_);
  start_ = end + 1;
  return true;
}

void InputFile::watch_loading() const {
  if (read_bytes_ >= kSmall) LoadingWatch(name_).look();
}

std::string InputFile::read_piece() {
  watch_loading();
  if (start_ == buffer_.size() && !fill()) return {};
  return buffer_.substr(std::exchange(start_, buffer_.size()));
}

std::string InputFile::read_rest() {
  // A buffer that grew by and by would be copied, and its pages made, twice over.
  struct stat status {};
  if (::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode))
    buffer_.reserve(static_cast<size_t>(status.st_size) + kBlockBytes);
  while (fill()) watch_loading();
  buffer_.erase(0, std::exchange(start_, 0));
  return std::move(buffer_);
}

}  // namespace pointsman
