// SPDX-License-Identifier: Apache-2.0
#include "host/formats/tsplib_file.h"

#include <algorithm>
#include <optional>

#include "host/formats/formats.h"

namespace pointsman {
namespace {

constexpr std::string_view kKeys[] = {"NAME",
                                      "TYPE",
                                      "COMMENT",
                                      "DIMENSION",
                                      "EDGE_WEIGHT_TYPE",
                                      "EDGE_WEIGHT_FORMAT",
                                      "NODE_COORD_TYPE",
                                      "CAPACITY",
                                      "DISTANCE",
                                      "SERVICE_TIME",
                                      "EDGE_DATA_FORMAT",
                                      "DISPLAY_DATA_TYPE",
                                      "EOF"};

bool is_section(std::string_view key) {
  return key.size() > 8 && key.ends_with("_SECTION") &&
         std::ranges::all_of(key, [](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
}

// The keyword of a line without blanks around it. Rows of a section may begin with a name, so that only known
// keywords end it.
std::optional<TsplibFile::Keyword> keyword_of(std::string_view line, bool is_row, int64_t number) {
  if (!is_letter(line.front())) return std::nullopt;
  const size_t colon = std::min(line.find(':'), line.size());
  std::string_view rest = line;
  const std::string first = upper_case(trim(take_word(rest).substr(0, colon)));
  if (std::ranges::find(kKeys, first) != std::end(kKeys) || is_section(first)) {
    const std::string_view behind = trim(line.substr(first.size()));
    return TsplibFile::Keyword{first, trim(behind.substr(behind.starts_with(':'))), number};
  }
  if (is_row || colon == line.size()) return std::nullopt;
  return TsplibFile::Keyword{upper_case(trim(line.substr(0, colon))), trim(line.substr(colon + 1)), number};
}

}  // namespace

bool begins_tsplib(std::string_view line) {
  const std::string word = upper_case(take_word(line));
  return word == "NAME" || word == "TYPE" || word == "COMMENT" || word == "DIMENSION";
}

const TsplibFile::Section* TsplibFile::find(std::string_view name) const {
  const auto found = std::ranges::find(sections, name, &Section::name);
  return found == sections.end() ? nullptr : &*found;
}

TsplibFile split_tsplib(std::string_view text, const std::string& file) {
  TsplibFile out;
  TextReader lines(text, file);
  std::string_view line;
  bool is_in_section = false;
  const auto end_section = [&](std::string_view at) {
    if (!is_in_section) return;
    std::string_view& rows = out.sections.back().rows;
    rows = rows.substr(0, static_cast<size_t>(at.data() - rows.data()));
    is_in_section = false;
  };
  while (!out.has_end && lines.next_row(line)) {
    const std::optional<TsplibFile::Keyword> keyword = keyword_of(trim(line), is_in_section, lines.number());
    if (!keyword && is_in_section) continue;
    if (!keyword) lines.fail("expected \"KEY: value\", found " + shown(trim(line)));
    end_section(line);
    if (keyword->key == "EOF") {
      out.has_end = true;
    } else if (is_section(keyword->key)) {
      if (!keyword->value.empty())
        lines.fail(keyword->key + ": expected the end of the line, found " + shown(keyword->value));
      if (out.find(keyword->key)) lines.fail(keyword->key + ": given twice");
      out.sections.push_back({keyword->key, lines.number(), lines.rest()});
      is_in_section = true;
    } else {
      out.keywords.push_back(*keyword);
    }
  }
  out.last_line = lines.number();
  if (out.has_end && lines.next_filled(line))
    lines.fail("expected nothing after EOF, found " + shown(trim(line)));
  return out;
}

}  // namespace pointsman
