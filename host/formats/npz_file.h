// SPDX-License-Identifier: Apache-2.0
// NumPy's .npz format: .npy arrays in a zip archive, stored or deflated.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/formats/npy_array.h"

struct zip;  // of libzip

namespace pointsman {

inline constexpr std::string_view kZipMagic = "PK";

// Arrays by name: the entries "<name>.npy" of an archive.
class NpzFile {
 public:
  // Keeps no copy: `bytes` must outlive it. Throws InputError.
  NpzFile(std::string_view bytes, std::string file);

  bool has(const std::string& name) const;
  std::string names() const;  // for messages
  bool is_packed() const;     // not all of it is stored as it is

  // Throws InputError when it is not there or damaged, or not as long as its header says, and InputTooLarge
  // before anything of it is held. Its elements must
  // be asked for in order, while this is there.
  NpyArray array(const std::string& name) const;

 private:
  class Entry;

  [[noreturn]] void fail(const std::string& message) const;

  std::string file_;
  std::unique_ptr<zip, void (*)(zip*)> archive_;
};

// An archive of stored entries (name, bytes), dated 1980-01-01 so that equal contents are equal files.
// Throws OutputRefused from 4 GiB on.
std::string zip_stored(const std::vector<std::pair<std::string, std::string>>& entries);

}  // namespace pointsman
