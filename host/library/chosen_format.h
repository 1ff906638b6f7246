// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

#include "host/formats/formats.h"
#include "host/options/did_you_mean.h"

namespace pointsman {

// The format of this name, which may be null, else by the suffix of the path. Throws std::invalid_argument
// where that is none that `can` holds of (&Format::write: one that can be written).
template <typename Format, typename Can>
const Format& chosen_format(std::span<const Format> formats, const char* name, const std::string& path,
                            Can can) {
  const Format* const chosen =
      name != nullptr ? format_named(formats, name) : format_by_suffix(formats, path);
  if (chosen != nullptr && chosen->*can) return *chosen;
  std::vector<std::string> known;
  for (const Format& format : formats) {
    if (format.*can) known.emplace_back(format.name);
  }
  const std::string found = name != nullptr ? name : file_suffix(path);
  throw std::invalid_argument("format: expected one of " + joined(known, ", ") + ", found " +
                              (found.empty() ? "none" : shown(found)) +
                              did_you_mean(found.substr(found.starts_with('.')), known));
}

// Writes a file, whole or not at all; bytes() is called once the file can be written. Throws as OutputFile.
template <typename Bytes>
void write_output(const std::string& path, bool replace, Bytes bytes) {
  if (path.empty()) throw std::invalid_argument("path: expected one, found \"\"");
  OutputFile file(path, replace);
  file.write(bytes());
  file.commit();
}

}  // namespace pointsman
