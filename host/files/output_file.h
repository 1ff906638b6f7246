// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "models/atomic_file.h"

namespace pointsman {

// The output cannot be written as asked: it is there already, or the format cannot hold it. A usage error,
// exit code 2.
class OutputRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Where a result goes. A regular file appears whole or not at all (AtomicFile). "-" and "" are standard
// output; what is not a regular file (FIFO, device) is written through. Disk errors are std::system_error.
class OutputFile {
 public:
  // Throws OutputRefused when the file is there already and force is not set, and std::system_error when its
  // folder cannot be written, so call it before the work. Leaves nothing behind until write().
  OutputFile(const std::string& path, bool force);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);  // unbuffered
  void commit();                       // without it a regular file does not appear

 private:
  std::string path_;
  bool force_;
  std::optional<AtomicFile> file_;  // none: written through
  int through_ = -1;
};

}  // namespace pointsman
