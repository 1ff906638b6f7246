// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "host/files/npy_array.h"
#include "host/files/zip_archive.h"

namespace pointsman {

// Arrays by name: the entries "<name>.npy" of a zip archive. Keeps no copy of the bytes.
class NpzFile {
 public:
  NpzFile(std::string_view bytes, std::string file);

  bool has(const std::string& name) const;
  std::string names() const;  // for messages

  // The bytes of an array that is there or else an InputError. Its header is checked before it is unpacked as
  // a whole.
  std::string read(const std::string& name) const;
  // An array over those bytes, which must outlive it.
  NpyArray array(std::string_view bytes, const std::string& name) const;

 private:
  std::string file_;
  ZipArchive archive_;
};

}  // namespace pointsman
