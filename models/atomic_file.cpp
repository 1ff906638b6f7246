// SPDX-License-Identifier: Apache-2.0
#include "models/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace pointsman {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const char* doing, int error = errno) {
  throw std::system_error(error, std::generic_category(), path.string() + ": " + doing);
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int close() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

// Removes the temporary file unless it has become the real one.
struct Temporary {
  std::filesystem::path path;
  bool kept = false;
  ~Temporary() {
    if (!kept) ::unlink(path.c_str());
  }
};

// The file that is really meant. Renaming over a device or a directory would destroy it.
std::filesystem::path resolve(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) return path;
  if (!std::filesystem::is_regular_file(status)) fail(path, "not a regular file", EINVAL);
  return std::filesystem::canonical(path);
}

int open_temporary(const std::filesystem::path& target, std::filesystem::path& temporary) {
  static std::atomic<unsigned> counter{0};
  for (;;) {
    temporary = target;
    temporary += ".tmp" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) return fd;
    if (errno != EEXIST) fail(target, "creating");
  }
}

void write_all(int fd, std::string_view bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path, "writing");
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void sync_directory(const std::filesystem::path& target) {
  const std::filesystem::path folder = target.has_parent_path() ? target.parent_path() : ".";
  Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) fail(target, "opening its directory");
  // Some file systems have nothing to synchronise for a directory and say EINVAL.
  if (::fsync(directory.get()) != 0 && errno != EINVAL) fail(target, "synchronising its directory");
}

}  // namespace

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  const std::filesystem::path target = resolve(path);
  std::filesystem::path name;
  Descriptor file(open_temporary(target, name));
  Temporary temporary{name};
  write_all(file.get(), bytes, target);
  if (::fsync(file.get()) != 0) fail(target, "synchronising");
  if (file.close() != 0) fail(target, "closing");
  if (::rename(name.c_str(), target.c_str()) != 0) fail(target, "renaming");
  temporary.kept = true;
  sync_directory(target);
}

}  // namespace pointsman
