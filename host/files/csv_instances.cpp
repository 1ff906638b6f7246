// SPDX-License-Identifier: Apache-2.0
// CSV (RFC 4180) of one instance: "x,y" lines, the first of which may name the columns.
#include <array>
#include <cmath>

#include "host/files/formats.h"

namespace pointsman {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // as spreadsheets write it

// The two fields of a line; false when there are more or fewer.
bool split_fields(std::string_view line, std::array<std::string_view, 2>& fields) {
  const size_t comma = line.find(',');
  if (comma == std::string_view::npos || line.find(',', comma + 1) != std::string_view::npos) return false;
  fields = {trim(line.substr(0, comma)), trim(line.substr(comma + 1))};
  return true;
}

bool is_header(const std::array<std::string_view, 2>& fields) {
  double number = 0.0;
  return std::none_of(fields.begin(), fields.end(),
                      [&](std::string_view field) { return field.empty() || parse_number(field, number); });
}

}  // namespace

InstanceFile parse_csv(std::string_view bytes, const std::string& file, const ReadOptions& options) {
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  Instance instance;
  instance.id = file_stem(file);
  instance.problem = problem_with(ItemFields::kCoordinates, options);
  LoadingWatch watch(file);
  LineScanner lines(bytes);
  std::string_view line;
  std::array<std::string_view, 2> fields;
  for (bool is_first = true; lines.next_filled(line); is_first = false) {
    watch.after(1);
    std::array<double, 2> point{};
    const bool is_pair = split_fields(line, fields);
    if (is_first && is_pair && is_header(fields)) continue;
    if (!is_pair || !parse_number(fields[0], point[0]) || !parse_number(fields[1], point[1]))
      throw InputError(file, lines.number(), "expected \"x,y\", found " + shown(trim(line)));
    if (std::fabs(point[0]) > kLargestNumber || std::fabs(point[1]) > kLargestNumber)
      throw InputError(file, lines.number(),
                       "expected coordinates within +-1e100, found " + shown(trim(line)));
    if (instance.n() == kLargestSize)
      throw InputError(file, lines.number(), "more than " + std::to_string(kLargestSize) + " cities");
    instance.values.insert(instance.values.end(), point.begin(), point.end());
  }
  if (instance.n() == 0) throw InputError(file, 0, "expected at least one line \"x,y\", found none");
  InstanceFile out{{std::move(instance)}, {}};
  if (!lines.last_line_whole()) {
    out.warnings.push_back(file + ":" + std::to_string(lines.number()) +
                           ": the last line has no newline; was the file cut short?");
  }
  return out;
}

}  // namespace pointsman
