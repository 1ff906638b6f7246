// SPDX-License-Identifier: Apache-2.0
// A TSPLIB file cut into its specification and its sections (G. Reinelt, "TSPLIB 95", section 1), in whatever
// order they stand. Keywords are upper or lower case, with or without the colon.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pointsman {

struct TsplibFile {
  struct Keyword {
    std::string key;  // in upper case
    std::string_view value;
    int64_t line = 0;
  };
  struct Section {
    std::string name;       // in upper case
    int64_t line = 0;       // of its name
    std::string_view rows;  // the lines below it
  };
  std::vector<Keyword> keywords;  // in file order
  std::vector<Section> sections;
  int64_t last_line = 0;
  bool has_end = false;  // EOF

  const Section* find(std::string_view name) const;  // null: none
};

// Whether a line without blanks before it begins with one of the keywords that files begin with.
bool begins_tsplib(std::string_view line);

// The parts point into `text`. Throws InputError for a line that is neither.
TsplibFile split_tsplib(std::string_view text, const std::string& file);

}  // namespace pointsman
