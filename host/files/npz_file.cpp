// SPDX-License-Identifier: Apache-2.0
#include "host/files/npz_file.h"

#include "host/files/input_error.h"
#include "host/files/text_scan.h"

namespace pointsman {

NpzFile::NpzFile(std::string_view bytes, std::string file) : file_(std::move(file)), archive_(bytes, file_) {}

bool NpzFile::has(const std::string& name) const { return archive_.find(name + ".npy") != nullptr; }

std::string NpzFile::names() const {
  std::string names;
  for (const ZipEntry& entry : archive_.entries()) {
    if (names.size() > 100) return names + ", ..";
    names += (names.empty() ? "" : ", ") + shown(entry.name);
  }
  return names.empty() ? "no arrays" : names;
}

std::string NpzFile::read(const std::string& name) const {
  const ZipEntry* const entry = archive_.find(name + ".npy");
  if (entry == nullptr) throw InputError(file_, 0, "expected an array `" + name + "`, found " + names());
  const std::string start = archive_.read_start(*entry, kNpyPrefix + kLargestNpyHeader);
  const NpyHeader header = parse_npy_header(start, file_, name + ": ");
  if (header.data_offset + header.data_size != entry->size) {
    throw InputError(file_, 0,
                     name + ": shape " + header.shape_text() + " of " + header.type_text() + ": expected " +
                         std::to_string(header.data_size) + " bytes of data, found " +
                         std::to_string(static_cast<int64_t>(entry->size - header.data_offset)));
  }
  return archive_.read(*entry);
}

NpyArray NpzFile::array(std::string_view bytes, const std::string& name) const {
  return NpyArray(bytes, file_, name + ": ");
}

}  // namespace pointsman
