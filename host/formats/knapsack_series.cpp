// SPDX-License-Identifier: Apache-2.0
// The layouts of KnapSack text that hold several instances: Pisinger's blocks, and one instance a line.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "host/formats/knapsack_text.h"

namespace pointsman {
namespace {

// Splits the first field off a line of comma-separated ones.
std::string_view take_field(std::string_view& line) {
  const size_t end = std::min(line.find(','), line.size());
  const std::string_view field = trim(line.substr(0, end));
  line.remove_prefix(std::min(end + 1, line.size()));
  return field;
}

Instance named_instance(std::string_view id, const std::string& file, const ReadOptions& options) {
  Instance instance = unnamed_instance(file, ItemFields::kWeightAndValue, options);
  instance.id = printable(id);  // an id must be UTF-8
  instance.has_id = true;
  return instance;
}

class PisingerReader {
 public:
  PisingerReader(std::string_view text, const std::string& file, const ReadOptions& options)
      : file_(file), options_(options), lines_(text, file) {}

  InstanceFile read() {
    InstanceBatch instances;
    while (lines_.next_row(line_)) instances.push_back(read_block());
    if (instances.empty()) throw InputError(file_, 1, "expected an instance's name, found an empty file");
    return lines_.finish(std::move(instances));
  }

 private:
  Instance read_block() {
    Instance instance = named_instance(trim(line_), file_, options_);
    const double n = read_value("n");
    check_item_count(n, lines_);
    instance.capacity = read_value("c");
    read_value("z");  // the best value known, and the time to find it: neither is read
    read_value("time");
    while (instance.n() != n) read_item(instance);
    if (lines_.next_row(line_) && trim(line_).find_first_not_of('-') != std::string_view::npos)
      lines_.fail("expected \"-----\" after n = " + number_text(n) + " items, found " + shown(trim(line_)));
    return instance;
  }

  void next_line(const std::string& expected) {
    if (!lines_.next_row(line_)) lines_.fail("expected " + expected + ", found the end of the file");
  }

  double read_value(const std::string& key) {
    next_line("\"" + key + "\" and a number");
    std::array<std::string_view, 3> words;
    if (split_words(line_, words) != 2 || words[0] != key)
      lines_.fail("expected \"" + key + "\" and a number, found " + shown(trim(line_)));
    return knapsack_number(words[1], key, lines_);
  }

  void read_item(Instance& instance) {
    const std::string expected = "\"" + std::to_string(instance.n() + 1) + ",profit,weight,taken\"";
    next_line(expected);
    std::string_view rest = line_;
    int64_t index = 0;
    const bool is_next = parse_integer(take_field(rest), index) && index == instance.n() + 1;
    const std::string_view profit = take_field(rest), weight = take_field(rest), taken = take_field(rest);
    if (!is_next || (taken != "0" && taken != "1") || std::ranges::count(line_, ',') != 3)
      lines_.fail("expected " + expected + ", taken 0 or 1, found " + shown(trim(line_)));
    instance.values.push_back(knapsack_number(weight, "a weight", lines_));
    instance.values.push_back(knapsack_number(profit, "a profit", lines_));
  }

  const std::string& file_;
  const ReadOptions& options_;
  TextReader lines_;
  std::string_view line_;
};

}  // namespace

bool is_pisinger(std::string_view text) {
  LineScanner lines(text);
  std::string_view name, size;
  std::array<std::string_view, 3> words;
  return lines.next_filled(name) && lines.next_filled(size) && name.find(',') == std::string_view::npos &&
         split_words(size, words) == 2 && words[0] == "n";
}

InstanceFile parse_pisinger(std::string_view text, const std::string& file, const ReadOptions& options) {
  return PisingerReader(text, file, options).read();
}

InstanceFile parse_knapsack_rows(std::string_view text, const std::string& file, const ReadOptions& options) {
  TextReader lines(text, file);
  InstanceBatch instances;
  for (std::string_view line; lines.next_row(line);) {
    std::string_view rest = line, word;
    const std::string_view id = take_word(rest), size = take_word(rest), capacity = take_word(rest);
    int64_t number = 0;
    if (capacity.empty() || !parse_integer(id, number) || number < 0)
      lines.fail("expected \"id n capacity\", then n times \"weight profit\", found " + shown(trim(line)));
    Instance instance = named_instance(id, file, options);
    const double n = knapsack_number(size, "n", lines);
    check_item_count(n, lines);
    instance.capacity = knapsack_number(capacity, "a capacity", lines);
    while (!(word = take_word(rest)).empty()) {
      const char* const what = instance.values.size() % 2 == 0 ? "a weight" : "a profit";
      instance.values.push_back(knapsack_number(word, what, lines));
    }
    if (static_cast<double>(instance.values.size()) != 2.0 * n)
      lines.fail("expected n = " + number_text(n) + " times \"weight profit\", found " +
                 std::to_string(instance.values.size()) + " numbers");
    instances.push_back(std::move(instance));
  }
  if (instances.empty()) throw InputError(file, 1, "expected \"id n capacity ..\", found an empty file");
  return lines.finish(std::move(instances));
}

}  // namespace pointsman
