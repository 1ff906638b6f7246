// SPDX-License-Identifier: Apache-2.0
// What a reader of instances says of a text that is wrong.
#pragma once

#include <string>

#include "host/formats/read_files.h"
#include "tests/catch.h"

namespace pointsman {

// "" where the text is read.
inline std::string error_of(const std::string& bytes, const std::string& name) {
  try {
    parse_instances(bytes, name);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// `text` with `from` replaced is refused like this.
inline void says(std::string text, const std::string& name, const std::string& from, const std::string& to,
                 const std::string& expected) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  INFO(error_of(text, name));
  CHECK(error_of(text, name).find(expected) != std::string::npos);
}

}  // namespace pointsman
