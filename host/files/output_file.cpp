// SPDX-License-Identifier: Apache-2.0
#include "host/files/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace pointsman {

namespace {

[[noreturn]] void fail(const std::string& path) {
  throw std::system_error(errno, std::generic_category(), path.empty() ? "standard output" : path);
}

// Some file systems know no sync; that is not a lost result.
bool cannot_sync(int error) { return error == EINVAL || error == ENOTSUP || error == EROFS; }

void sync(int descriptor, const std::string& path) {
  if (::fsync(descriptor) != 0 && !cannot_sync(errno)) fail(path);
}

void sync_folder(const std::string& file) {
  const std::string folder = std::filesystem::path(file).parent_path().string();
  const int directory = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;  // a folder that may be written but not read
  const int failed = ::fsync(directory);
  const int error = errno;
  ::close(directory);
  errno = error;
  if (failed != 0 && !cannot_sync(error)) fail(file);
}

// The file that a chain of symbolic links ends at, also when it is not there yet.
std::string follow_links(const std::string& path) {
  std::filesystem::path at = path;
  for (int hops = 0; hops < 40 && std::filesystem::is_symlink(std::filesystem::symlink_status(at)); ++hops) {
    const std::filesystem::path link = std::filesystem::read_symlink(at);
    at = link.is_absolute() ? link : at.parent_path() / link;
  }
  return at.string();
}

}  // namespace

OutputFile::OutputFile(const std::string& path, bool force) : force_(force) {
  if (path.empty() || path == "-" || path == "/dev/stdout") {
    descriptor_ = STDOUT_FILENO;
    return;
  }
  owned_ = true;
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) throw OutputRefused(path + ": is a directory");
  if (exists && !S_ISREG(status.st_mode)) {
    target_ = path;
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor_ < 0) fail(path);
    return;
  }
  if (exists && !force) throw OutputRefused(path + ": is there already; --force replaces it");
  if (exists) mode_ = status.st_mode & 0777;
  target_ = follow_links(path);
  const std::filesystem::path whole = target_;
  const std::string folder = whole.has_parent_path() ? whole.parent_path().string() : ".";
  if (::access(folder.c_str(), W_OK | X_OK) != 0) fail(path);
  static std::atomic<int> files_opened{0};
  std::string name(1, '.');
  name += whole.filename().string() + "." + std::to_string(::getpid()) + "." +
          std::to_string(files_opened++) + ".tmp";
  temporary_ = (whole.parent_path() / name).string();
}

void OutputFile::open_temporary() {
  ::unlink(temporary_.c_str());  // of a killed process that had our number
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail(target_);
  if (mode_ != 0 && ::fchmod(descriptor_, mode_) != 0) fail(target_);
}

OutputFile::~OutputFile() {
  if (!owned_ || descriptor_ < 0) return;
  ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void OutputFile::write(std::string_view bytes) {
  if (descriptor_ < 0) open_temporary();
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      fail(target_);
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void OutputFile::commit() {
  if (!owned_) return;
  if (temporary_.empty()) {
    const int descriptor = descriptor_;
    descriptor_ = -1;
    if (::close(descriptor) != 0) fail(target_);
    return;
  }
  if (descriptor_ < 0) open_temporary();
  sync(descriptor_, target_);
  // Without force a hard link, which does not replace a file that came in the meantime; a rename would.
  const bool linked = !force_ && ::link(temporary_.c_str(), target_.c_str()) == 0;
  if (!force_ && !linked && errno == EEXIST) {
    throw OutputRefused(target_ + ": is there already; --force replaces it");
  }
  if (!linked && ::rename(temporary_.c_str(), target_.c_str()) != 0) fail(target_);
  if (linked) ::unlink(temporary_.c_str());
  temporary_.clear();
  sync_folder(target_);
  const int descriptor = descriptor_;
  descriptor_ = -1;
  if (::close(descriptor) != 0) fail(target_);
}

}  // namespace pointsman
