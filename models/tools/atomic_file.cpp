// SPDX-License-Identifier: Apache-2.0
#include "models/tools/atomic_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <optional>
#include <utility>

namespace pointsman {
namespace {

constexpr int kPollMilliseconds = 20;
constexpr auto kPatience = std::chrono::milliseconds(150);  // with a reader, once the run is over
constexpr const char* kExists = "is there already; --force replaces it";

std::function<bool()> run_is_over;
std::atomic<bool> has_lost_patience{false};

[[noreturn]] void fail(const std::string& path, int error = errno) {
  if (path.empty()) throw std::system_error(error, std::generic_category(), "standard output");
  throw DiskError(path, error);
}

[[noreturn]] void fail_busy(const std::string& path) {
  throw DiskError(path, EBUSY, "another process is writing it");
}

// Some file systems do not support fsync, which loses nothing.
bool synced(int descriptor) {
  return ::fsync(descriptor) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS;
}

void sync_folder(const std::filesystem::path& file) {
  const std::filesystem::path path = file.has_parent_path() ? file.parent_path() : ".";
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;  // the folder may be writable but not readable
  const int error = synced(folder) ? 0 : errno;
  ::close(folder);
  if (error != 0) fail(file, error);
}

// The end of a chain of symbolic links, which need not exist.
std::string follow_links(const std::string& path) {
  std::filesystem::path at = path;
  for (int hops = 0; hops < 40 && std::filesystem::is_symlink(std::filesystem::symlink_status(at)); ++hops) {
    const std::filesystem::path link = std::filesystem::read_symlink(at);
    at = link.is_absolute() ? link : at.parent_path() / link;
  }
  return at.string();
}

// Otherwise takes the lock. On file systems without locks other writers go unnoticed.
bool is_locked_by_another(int descriptor) {
  return ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace

void set_output_stop(std::function<bool()> is_over) { run_is_over = std::move(is_over); }

bool reader_takes(int descriptor) noexcept {
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> last;
  for (;;) {
    pollfd reader{descriptor, POLLOUT, 0};
    if (::poll(&reader, 1, kPollMilliseconds) > 0) return true;
    if (!run_is_over || !run_is_over()) continue;
    if (has_lost_patience) return false;
    if (!last) last = Clock::now() + kPatience;
    if (Clock::now() >= *last) has_lost_patience = true;
  }
}

OutputFile::OutputFile(const std::string& path, bool force, Appearance appearance) : force_(force) {
  if (path.empty() || path == "-" || path == "/dev/stdout") {
    descriptor_ = STDOUT_FILENO;
    return;
  }
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) throw OutputRefused(path, "is a directory");
  if (exists && !S_ISREG(status.st_mode)) {
    target_ = path;
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor_ < 0) fail(path);
    return;
  }
  if (exists && !force) throw OutputRefused(path, kExists);
  if (exists) mode_ = status.st_mode & 0777;
  target_ = follow_links(path);
  const std::filesystem::path whole = target_;
  temporary_ = whole.parent_path() / ("." + whole.filename().string() + ".tmp");
  open_temporary();
  is_new_ = !exists;
  if (appearance == Appearance::kGrowing) open_growing();
}

// The lock on the temporary file keeps other writers of this name away, the lock on the file itself those of
// its other names (hard links).
void OutputFile::open_growing() {
  lock_ = descriptor_;
  descriptor_ =
      ::open(target_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (is_new_ && !force_ ? O_EXCL : 0), 0666);
  const int error = errno;
  const bool is_open = descriptor_ >= 0, is_locked = is_open && is_locked_by_another(descriptor_);
  if (is_open && !is_locked) return;
  if (is_open) ::close(descriptor_);
  ::unlink(temporary_.c_str());
  ::close(lock_);
  if (is_locked) fail_busy(target_);
  if (error == EEXIST) throw OutputRefused(target_, kExists);
  fail(target_, error);
}

// Writes only to a file that this call makes, never to a link or a file that another process has open. An
// existing file is removed once its lock is taken, since its writer is gone. If the name does not belong to
// the locked file any more, another process was faster: then start again.
void OutputFile::open_temporary() {
  constexpr int kFlags = O_WRONLY | O_CLOEXEC | O_NOFOLLOW;
  for (;;) {
    descriptor_ = ::open(temporary_.c_str(), kFlags | O_CREAT | O_EXCL, 0666);
    const bool is_own = descriptor_ >= 0;
    if (!is_own && errno != EEXIST) fail(target_);
    if (!is_own) descriptor_ = ::open(temporary_.c_str(), kFlags | O_NONBLOCK);  // a FIFO must not wait
    if (descriptor_ < 0 && errno == ENOENT) continue;
    if (descriptor_ < 0) fail_leftover();
    if (is_locked_by_another(descriptor_)) {
      ::close(std::exchange(descriptor_, -1));
      fail_busy(target_);
    }
    struct stat own = {}, named = {};
    const bool is_named = ::fstat(descriptor_, &own) == 0 && ::lstat(temporary_.c_str(), &named) == 0 &&
                          own.st_dev == named.st_dev && own.st_ino == named.st_ino;
    if (is_named && is_own) break;
    if (is_named && ::unlink(temporary_.c_str()) != 0 && errno != ENOENT) fail_leftover();
    ::close(std::exchange(descriptor_, -1));
  }
  if (mode_ != 0) ::fchmod(descriptor_, mode_);  // may fail on file systems without permissions
}

// The temporary file's name belongs to something that no writer left behind.
void OutputFile::fail_leftover() {
  const int error = errno;
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  throw DiskError(target_, error, "cannot replace what lies at " + temporary_ + "; remove it");
}

OutputFile::~OutputFile() {
  if (target_.empty() || descriptor_ < 0) return;
  if (lock_ >= 0 && is_new_ && !is_begun_) ::unlink(target_.c_str());
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  ::close(descriptor_);
  if (lock_ >= 0) ::close(lock_);
}

bool OutputFile::is_terminal() const { return ::isatty(descriptor_) != 0; }

// Removes all but the kept bytes of an older file.
void OutputFile::cut() {
  is_begun_ = true;
  const auto end = static_cast<off_t>(kept_);
  if (::ftruncate(descriptor_, end) != 0 || ::lseek(descriptor_, end, SEEK_SET) != end) fail(target_);
}

void OutputFile::write(std::string_view bytes) {
  if (lock_ >= 0 && !is_begun_) cut();
  struct stat status {};
  const bool has_reader = ::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode);
  const size_t most = has_reader ? PIPE_BUF : bytes.size();
  while (!bytes.empty()) {
    if (has_reader && !reader_takes(descriptor_))
      throw OutputStopped((target_.empty() ? "standard output" : target_) +
                          ": the run is over and the reader takes no data; the output is incomplete");
    const ssize_t written = ::write(descriptor_, bytes.data(), std::min(bytes.size(), most));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(target_);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void OutputFile::close_written() {
  if (::close(std::exchange(descriptor_, -1)) != 0) fail(target_);
}

void OutputFile::commit() {
  if (target_.empty()) return;
  if (temporary_.empty()) return close_written();
  const bool is_growing = lock_ >= 0;
  if (is_growing && !is_begun_) cut();
  if (!synced(descriptor_)) fail(target_);
  // Without force, a hard link: unlike a rename it does not replace a file made in the meantime.
  const bool is_linked = !is_growing && !force_ && ::link(temporary_.c_str(), target_.c_str()) == 0;
  if (!is_growing && !is_linked) {
    if (!force_ && errno == EEXIST) throw OutputRefused(target_, kExists);
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail(target_);
  }
  if (is_linked) ::unlink(temporary_.c_str());
  close_written();
  if (is_growing) {
    ::unlink(temporary_.c_str());
    ::close(std::exchange(lock_, -1));
  }
  sync_folder(target_);
}

void OutputFile::save(std::string_view bytes) {
  if (descriptor_ < 0) open_temporary();
  if (::ftruncate(descriptor_, 0) != 0 || ::lseek(descriptor_, 0, SEEK_SET) != 0) fail(target_);
  write(bytes);
  commit();
  force_ = true;  // the existing file is ours now
  open_temporary();
}

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  const std::string name = path.string();
  struct stat status {};
  if (::stat(name.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    fail(name + ": not a regular file", EINVAL);
  OutputFile file(name.empty() || name == "-" ? "./" + name : name, true);  // never standard output
  file.write(bytes);
  file.commit();
}

}  // namespace pointsman
