// SPDX-License-Identifier: Apache-2.0
#include "models/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

namespace pointsman {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, int error = errno) {
  throw std::system_error(error, std::generic_category(), path);
}

// Some file systems know no sync; that is not a lost result.
bool synced(int descriptor) {
  return ::fsync(descriptor) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS;
}

fs::path folder_of(const fs::path& file) { return file.has_parent_path() ? file.parent_path() : "."; }

void sync_folder(const fs::path& file) {
  const int folder = ::open(folder_of(file).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;  // a folder that may be written but not read
  const int error = synced(folder) ? 0 : errno;
  ::close(folder);
  if (error != 0) fail(file.string(), error);
}

// The file that a chain of symbolic links ends at, also when it is not there yet.
fs::path follow_links(fs::path path) {
  for (int hops = 0; hops < 40 && fs::is_symlink(fs::symlink_status(path)); ++hops) {
    const fs::path link = fs::read_symlink(path);
    path = link.is_absolute() ? link : path.parent_path() / link;
  }
  return path;
}

}  // namespace

void write_all(int descriptor, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

AtomicFile::AtomicFile(const fs::path& path) : target_(follow_links(path)) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    // A rename over a device or a directory would destroy it.
    if (!S_ISREG(status.st_mode)) fail(path.string() + ": not a regular file", EINVAL);
    mode_ = status.st_mode & 0777;
  }
  if (::access(folder_of(target_).c_str(), W_OK | X_OK) != 0) fail(path.string());
  static std::atomic<int> files_opened{0};
  temporary_ = target_.parent_path() / ("." + target_.filename().string() + "." + std::to_string(::getpid()) +
                                        "." + std::to_string(files_opened++) + ".tmp");
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::open() {
  ::unlink(temporary_.c_str());  // of a killed process that had our number
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0 || (mode_ != 0 && ::fchmod(descriptor_, mode_) != 0)) fail(target_.string());
}

void AtomicFile::write(std::string_view bytes) {
  if (descriptor_ < 0) open();
  write_all(descriptor_, bytes, target_.string());
}

bool AtomicFile::commit(bool replace) {
  if (descriptor_ < 0) open();
  if (!synced(descriptor_)) fail(target_.string());
  // A hard link does not replace a file that came in the meantime; a rename would.
  const bool linked = !replace && ::link(temporary_.c_str(), target_.c_str()) == 0;
  if (!replace && !linked && errno == EEXIST) return false;
  if (!linked && ::rename(temporary_.c_str(), target_.c_str()) != 0) fail(target_.string());
  if (linked) ::unlink(temporary_.c_str());
  temporary_.clear();
  sync_folder(target_);
  if (::close(std::exchange(descriptor_, -1)) != 0) fail(target_.string());
  return true;
}

void write_file_atomically(const fs::path& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit(true);
}

}  // namespace pointsman
