// SPDX-License-Identifier: Apache-2.0
// KnapSack text: "n c", then n lines "profit weight". (Instance keeps weight first, as the paper does.)
#include <cmath>

#include "host/formats/formats.h"
#include "models/tools/atomic_file.h"
#include "models/tools/json_text.h"

namespace pointsman {
namespace {

// The two numbers of a line, both within 0 .. 1e100.
std::array<double, 2> two_numbers(std::string_view line, const char* expected, const std::string& file,
                                  int64_t number) {
  std::array<std::string_view, 3> words;
  std::array<double, 2> values{};
  const bool well_formed =
      split_words(line, words) == 2 && parse_number(words[0], values[0]) && parse_number(words[1], values[1]);
  const bool in_range = std::all_of(values.begin(), values.end(),
                                    [](double value) { return value >= 0.0 && value <= kLargestNumber; });
  for (size_t i = 0; well_formed && in_range && i < values.size(); ++i) {
    if (const std::string lost = lost_digits(words[i], values[i]); !lost.empty())
      throw InputError(file, number, lost);
  }
  if (well_formed && in_range) return values;
  throw InputError(file, number,
                   "expected \"" + std::string(expected) + "\"" +
                       (well_formed ? ", both from 0 to 1e100" : "") + ", found " + shown(trim(line)));
}

}  // namespace

InstanceFile parse_knapsack_text(std::string_view bytes, const std::string& file,
                                 const ReadOptions& options) {
  InstanceFile out;
  Instance instance;
  instance.id = file_stem(file);
  instance.problem = problem_with(ItemFields::kWeightAndValue, options);
  double n = 0.0;  // 0 until the first line is read
  LoadingWatch watch(file);
  LineScanner lines(bytes);
  std::string_view line;
  while (lines.next_filled(line)) {
    watch.after(1);
    if (n == 0.0) {
      const auto [size, capacity] = two_numbers(line, "n capacity", file, lines.number());
      if (size < 1.0 || size != std::floor(size) || size > static_cast<double>(kLargestSize)) {
        throw InputError(file, lines.number(),
                         "expected n, an integer of at least 1, found " + number_text(size));
      }
      n = size;
      instance.capacity = capacity;
      continue;
    }
    if (instance.n() == n) {
      throw InputError(file, lines.number(),
                       "expected the end after n = " + number_text(n) + " items, found " + shown(trim(line)));
    }
    const auto [profit, weight] = two_numbers(line, "profit weight", file, lines.number());
    instance.values.push_back(weight);
    instance.values.push_back(profit);
  }
  if (n == 0.0) throw InputError(file, 1, "expected \"n capacity\", found an empty file");
  if (instance.n() != n) {
    throw InputError(file, lines.number(),
                     "expected n = " + number_text(n) + " items, found " + std::to_string(instance.n()));
  }
  if (!lines.last_line_whole()) {
    out.warnings.push_back(file + ":" + std::to_string(lines.number()) +
                           ": the last line has no newline; was the file cut short?");
  }
  out.instances.push_back(std::move(instance));
  return out;
}

std::string write_knapsack_text(const InstanceBatch& instances) {
  if (instances.size() != 1 || problem_of(instances[0]).fields != ItemFields::kWeightAndValue) {
    throw OutputRefused("a KnapSack text holds one KnapSack instance; use npz, json or ndjson");
  }
  const Instance& instance = instances[0];
  std::string out = std::to_string(instance.n()) + " " + number_text(instance.capacity) + "\n";
  for (int i = 0; i < instance.n(); ++i) {
    out += number_text(instance.second(i)) + " " + number_text(instance.first(i)) + "\n";
  }
  return out;
}

}  // namespace pointsman
