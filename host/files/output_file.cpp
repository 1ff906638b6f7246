// SPDX-License-Identifier: Apache-2.0
#include "host/files/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

namespace pointsman {
namespace {

[[noreturn]] void fail(const std::string& path) {
  throw std::system_error(errno, std::generic_category(), path);
}

[[noreturn]] void refuse_replacing(const std::string& path) {
  throw OutputRefused(path + ": is there already; --force replaces it");
}

}  // namespace

OutputFile::OutputFile(const std::string& path, bool force) : path_(path), force_(force) {
  if (path.empty() || path == "-" || path == "/dev/stdout") {
    path_ = "standard output";
    through_ = STDOUT_FILENO;
    return;
  }
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status)) throw OutputRefused(path + ": is a directory");
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    through_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (through_ < 0) fail(path);
    return;
  }
  if (std::filesystem::exists(status) && !force) refuse_replacing(path);
  file_.emplace(path);
}

OutputFile::~OutputFile() {
  if (through_ > STDERR_FILENO) ::close(through_);
}

void OutputFile::write(std::string_view bytes) {
  if (file_) {
    file_->write(bytes);
  } else {
    write_all(through_, bytes, path_);
  }
}

void OutputFile::commit() {
  if (file_ && !file_->commit(force_)) refuse_replacing(file_->target().string());
  if (through_ > STDERR_FILENO && ::close(std::exchange(through_, -1)) != 0) fail(path_);
}

}  // namespace pointsman
