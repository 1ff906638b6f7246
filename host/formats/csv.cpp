// SPDX-License-Identifier: Apache-2.0
// CSV (RFC 4180): lines "x,y", with or without a header; or Pisinger's blocks of KnapSacks.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "host/formats/knapsack_text.h"

namespace pointsman {
namespace {

// The field without surrounding blanks and quotes.
std::string_view content(std::string_view field) {
  field = trim(field);
  const bool is_quoted = field.size() >= 2 && field.front() == '"' && field.back() == '"';
  return is_quoted ? trim(field.substr(1, field.size() - 2)) : field;
}

// The two fields of a line; false when there are more or fewer.
bool split_fields(std::string_view line, std::array<std::string_view, 2>& fields) {
  const size_t comma = line.find(',');
  if (comma == std::string_view::npos || line.find(',', comma + 1) != std::string_view::npos) return false;
  fields = {content(line.substr(0, comma)), content(line.substr(comma + 1))};
  return true;
}

// Whether a field is a column's name. A number in any spelling (0x10, 1e400, "0;5", -nan) or a word for a
// missing number is none: taking a city for the header would lose it.
bool is_column_name(std::string_view field) {
  const auto first = std::ranges::find_if(field, [](char c) { return is_letter(c) || is_digit(c); });
  if (first == field.end()) return !field.empty() && static_cast<unsigned char>(field.front()) >= 0x80;
  if (is_digit(*first)) return false;
  const std::string word = lower_case({first, std::find(first, field.end(), '(')});
  static constexpr std::string_view kMissing[] = {"nan", "inf", "infinity", "na", "n/a", "null", "none"};
  return std::find(std::begin(kMissing), std::end(kMissing), word) == std::end(kMissing);
}

}  // namespace

InstanceFile parse_csv(InputFile& file, const ReadOptions& options) {
  const std::string_view bytes = file.read_rest();
  if (options.layout == KnapsackLayout::kPisinger || is_pisinger(bytes))
    return parse_pisinger(bytes, file.name(), options);
  Instance instance = unnamed_instance(file.name(), ItemFields::kCoordinates, options);
  TextReader lines(bytes, file.name());
  std::string_view line;
  std::array<std::string_view, 2> fields;
  for (bool is_first = true; lines.next_row(line); is_first = false) {
    std::array<double, 2> point{};
    const bool is_pair = split_fields(line, fields);
    if (is_first && is_pair && std::all_of(fields.begin(), fields.end(), is_column_name)) continue;
    if (!is_pair || !parse_number(fields[0], point[0]) || !parse_number(fields[1], point[1]))
      lines.fail(std::string("expected \"x,y\"") + (is_first ? " or the columns' names" : "") + ", found " +
                 shown(trim(line)));
    if (std::fabs(point[0]) > kLargestNumber || std::fabs(point[1]) > kLargestNumber)
      lines.fail("expected coordinates within +-1e100, found " + shown(trim(line)));
    if (instance.n() == kLargestSize) lines.fail("more than " + std::to_string(kLargestSize) + " cities");
    instance.values.insert(instance.values.end(), point.begin(), point.end());
  }
  if (instance.n() == 0) throw InputError(file.name(), 0, "expected at least one line \"x,y\", found none");
  return lines.finish({std::move(instance)});
}

}  // namespace pointsman
