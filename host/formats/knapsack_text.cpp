// SPDX-License-Identifier: Apache-2.0
// KnapSack text: "n c", then n lines "profit weight". (Instance keeps weight first, as the paper does.)
#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "host/formats/formats.h"
#include "models/tools/atomic_file.h"
#include "models/tools/json_text.h"

namespace pointsman {
namespace {

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
