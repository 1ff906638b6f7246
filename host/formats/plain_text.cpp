// SPDX-License-Identifier: Apache-2.0
// Plain text of one instance. CSV (RFC 4180): lines "x,y", with or without a header. KnapSack text: "n c",
// then n lines "profit weight". (Instance keeps weight first, as the paper does.)
#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "host/formats/formats.h"
#include "models/tools/atomic_file.h"
#include "models/tools/json_text.h"

namespace pointsman {
namespace {

// An instance that is named after the file.
Instance unnamed_instance(const std::string& file, ItemFields fields, const ReadOptions& options) {
  Instance instance;
  instance.id = file_stem(file);
  instance.problem = problem_with(fields, options);
  return instance;
}

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // as spreadsheets write it

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

// The two numbers of a line, both from 0 to 1e100.
std::array<double, 2> two_numbers(std::string_view line, const std::string& expected,
                                  const TextReader& lines) {
  std::array<std::string_view, 3> words;
  std::array<double, 2> values{};
  const bool well_formed =
      split_words(line, words) == 2 && parse_number(words[0], values[0]) && parse_number(words[1], values[1]);
  const bool in_range =
      std::ranges::all_of(values, [](double value) { return value >= 0.0 && value <= kLargestNumber; });
  if (!well_formed || !in_range)
    lines.fail("expected \"" + expected + "\"" + (well_formed ? ", both from 0 to 1e100" : "") + ", found " +
               shown(trim(line)));
  for (size_t i = 0; i < values.size(); ++i) {
    if (const std::string lost = lost_digits(words[i], values[i]); !lost.empty()) lines.fail(lost);
  }
  return values;
}

}  // namespace

InstanceFile parse_csv(InputFile& file, const ReadOptions& options) {
  std::string_view bytes = file.read_rest();
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
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
  return lines.finish(std::move(instance));
}

InstanceFile parse_knapsack_text(InputFile& file, const ReadOptions& options) {
  Instance instance = unnamed_instance(file.name(), ItemFields::kWeightAndValue, options);
  TextReader lines(file.read_rest(), file.name());
  std::string_view line;
  if (!lines.next_row(line)) throw InputError(file.name(), 1, "expected \"n capacity\", found an empty file");
  const auto [n, capacity] = two_numbers(line, "n capacity", lines);
  if (n < 1.0 || n != std::floor(n) || n > static_cast<double>(kLargestSize))
    lines.fail("expected n, an integer of at least 1, found " + number_text(n));
  instance.capacity = capacity;
  while (lines.next_row(line)) {
    if (instance.n() == n)
      lines.fail("expected the end after n = " + number_text(n) + " items, found " + shown(trim(line)));
    const auto [profit, weight] = two_numbers(line, "profit weight", lines);
    instance.values.push_back(weight);
    instance.values.push_back(profit);
  }
  if (instance.n() != n)
    lines.fail("expected n = " + number_text(n) + " items, found " + std::to_string(instance.n()));
  return lines.finish(std::move(instance));
}

std::string write_knapsack_text(const InstanceBatch& instances) {
  if (instances.size() != 1 || problem_of(instances[0]).fields != ItemFields::kWeightAndValue)
    throw OutputRefused("a KnapSack text holds one KnapSack instance; use npz, json or ndjson");
  const Instance& instance = instances[0];
  std::string out = std::to_string(instance.n()) + " " + number_text(instance.capacity) + "\n";
  for (int i = 0; i < instance.n(); ++i)
    out += number_text(instance.second(i)) + " " + number_text(instance.first(i)) + "\n";
  return out;
}

}  // namespace pointsman
