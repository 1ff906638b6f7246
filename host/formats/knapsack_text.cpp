// SPDX-License-Identifier: Apache-2.0
// KnapSack text, in the layouts of docs/file-formats.md. (Instance keeps weight first, as the paper does.)
#include "host/formats/knapsack_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "models/tools/atomic_file.h"
#include "models/tools/json_text.h"

namespace pointsman {
namespace {

using Layout = KnapsackLayout;

bool is_in_range(double value) { return value >= 0.0 && value <= kLargestNumber; }

// The two numbers of a line, both from 0 to 1e100.
std::array<double, 2> two_numbers(std::string_view line, const std::string& expected,
                                  const TextReader& lines) {
  std::array<std::string_view, 3> words;
  std::array<double, 2> values{};
  const bool well_formed =
      split_words(line, words) == 2 && parse_number(words[0], values[0]) && parse_number(words[1], values[1]);
  if (!well_formed || !std::ranges::all_of(values, is_in_range))
    lines.fail("expected \"" + expected + "\"" + (well_formed ? ", both from 0 to 1e100" : "") + ", found " +
               shown(trim(line)));
  for (size_t i = 0; i < values.size(); ++i) {
    if (const std::string lost = lost_digits(words[i], values[i]); !lost.empty()) lines.fail(lost);
  }
  return values;
}

size_t count_words(std::string_view line) {
  size_t count = 0;
  while (!take_word(line).empty()) ++count;
  return count;
}

// "n = 3 items"
std::string counted(double n, const std::string& what) { return "n = " + number_text(n) + " " + what; }

// The layouts with a line "profit weight" for each item. kAuto: n and capacity on one line or on two, and
// perhaps a solution behind the items.
class TableReader {
 public:
  TableReader(std::string_view text, Instance instance, const std::string& file, Layout layout)
      : file_(file), layout_(layout), lines_(text, file), instance_(std::move(instance)) {}

  InstanceFile read() {
    read_head();
    while (instance_.n() != n_) read_item();
    if (layout_ == Layout::kCapacityLast) {
      read_last_capacity();
    } else {
      read_tail();
    }
    return lines_.finish({std::move(instance_)});
  }

 private:
  void read_head() {
    if (!lines_.next_row(line_)) throw InputError(file_, 1, "expected \"n capacity\", found an empty file");
    head_ = trim(line_);
    const bool may_be_two_lines = layout_ == Layout::kAuto || layout_ == Layout::kSolution;
    if (layout_ == Layout::kPairs || (may_be_two_lines && count_words(line_) != 1)) {
      const auto [n, capacity] = two_numbers(line_, "n capacity", lines_);
      check_item_count(n, lines_);
      n_ = n;
      instance_.capacity = capacity;
      return;
    }
    n_ = one_number("n");
    check_item_count(n_, lines_);
    if (layout_ == Layout::kCapacityLast) return;
    if (!lines_.next_row(line_)) lines_.fail("expected \"n capacity\", found " + shown(head_));
    instance_.capacity = one_number("the capacity");
  }

  double one_number(const std::string& what) const {
    if (count_words(line_) != 1) lines_.fail("expected " + what + " alone, found " + shown(trim(line_)));
    return knapsack_number(trim(line_), what, lines_);
  }

  void read_item() {
    const std::string expected = "expected " + counted(n_, "items");
    if (!lines_.next_row(line_)) {
      if (layout_ == Layout::kCapacityLast) fail_without_capacity();
      lines_.fail(expected + ", found " + std::to_string(instance_.n()) + order_hint(instance_.n()));
    }
    if (layout_ == Layout::kCapacityLast && count_words(line_) == 1)
      lines_.fail(expected + " before the capacity, found " + std::to_string(instance_.n()));
    const auto [profit, weight] = two_numbers(line_, "profit weight", lines_);
    instance_.values.push_back(weight);
    instance_.values.push_back(profit);
  }

  void read_last_capacity() {
    if (!lines_.next_row(line_)) fail_without_capacity();
    instance_.capacity = one_number("the capacity");
    if (lines_.next_row(line_))
      lines_.fail("expected the end after the capacity, found " + shown(trim(line_)));
  }

  [[noreturn]] void fail_without_capacity() const {
    throw InputError(file_, 1,
                     "expected \"n capacity\", found " + shown(head_) + ", and no capacity in the last line");
  }

  // What follows the items: nothing, or the solution of whoever made the file, which is read over.
  void read_tail() {
    const bool has_more = lines_.next_row(line_);
    if (layout_ != Layout::kSolution && !has_more) return;
    if (layout_ == Layout::kSolution || (layout_ == Layout::kAuto && is_selection(line_))) {
      read_selection(has_more);
      return;
    }
    const int64_t number = lines_.number();
    const std::string message =
        "expected the end after " + counted(n_, "items") + ", found " + shown(trim(line_));
    double rows = n_ + 1.0;
    while (lines_.next_row(line_)) ++rows;
    throw InputError(file_, number, message + order_hint(rows));
  }

  static bool is_selection(std::string_view line) {
    std::string_view word;
    while ((word = take_word(line)) == "0" || word == "1") {
    }
    return word.empty();
  }

  void read_selection(bool has_more) {
    const std::string all = counted(n_, "zeros and ones");
    double count = 0;
    for (; has_more; has_more = lines_.next_row(line_)) {
      if (!is_selection(line_)) lines_.fail("expected zeros and ones, found " + shown(trim(line_)));
      count += static_cast<double>(count_words(line_));
      if (count > n_) lines_.fail("expected the end after " + all + ", found " + shown(trim(line_)));
    }
    if (count != n_) lines_.fail("expected " + all + ", found " + number_text(count));
  }

  // A file that has as many lines as the number it gives as its capacity names that number of items second.
  std::string order_hint(double rows) const {
    if (rows != instance_.capacity) return "";
    return "; " + number_text(rows) + (rows == 1.0 ? " line follows" : " lines follow") +
           ": is it capacity n?";
  }

  const std::string& file_;
  const Layout layout_;
  TextReader lines_;
  std::string_view line_, head_;
  Instance instance_;
  double n_ = 0.0;
};

// "n capacity", then the n weights, then the n profits, each list from a new line on.
InstanceFile parse_lists(std::string_view text, Instance instance, const std::string& file) {
  TextReader lines(text, file);
  std::string_view line, word;
  if (!lines.next_row(line)) throw InputError(file, 1, "expected \"n capacity\", found an empty file");
  const auto [n, capacity] = two_numbers(line, "n capacity", lines);
  check_item_count(n, lines);
  instance.capacity = capacity;
  for (const char* const what : {"weights", "profits"}) {
    const bool are_weights = instance.values.empty();
    size_t count = 0;
    while (static_cast<double>(count) != n) {
      if (!lines.next_row(line))
        lines.fail("expected " + counted(n, what) + ", found " + std::to_string(count));
      for (; !(word = take_word(line)).empty(); ++count) {
        if (static_cast<double>(count) == n)
          lines.fail("expected the end of the line after " + counted(n, what) + ", found " + shown(word));
        const double number = knapsack_number(word, are_weights ? "a weight" : "a profit", lines);
        if (are_weights) instance.values.insert(instance.values.end(), {number, 0.0});
        if (!are_weights) instance.values[2 * count + 1] = number;
      }
    }
  }
  if (lines.next_row(line))
    lines.fail("expected the end after " + counted(n, "profits") + ", found " + shown(trim(line)));
  return lines.finish({std::move(instance)});
}

// Whether 2n numbers follow the first line.
bool has_two_lists(std::string_view text, const std::string& file, double n) {
  TextReader lines(text, file);
  std::string_view line;
  lines.next_row(line);
  double count = 0;
  while (count <= 2 * n && lines.next_row(line)) count += static_cast<double>(count_words(line));
  return count == 2 * n;
}

// The layout, by how many numbers the lines have. kAuto: a table whose capacity is not last. kPairs: pairs
// that could also be lists, or no layout at all.
//
// Behind a first line of two numbers, pairs have two numbers in each of n lines, lists have n numbers in each
// half. Both fit only where n is 2, but for lists that are wrapped after two numbers, which nobody publishes:
// they are taken for pairs. With a solution there are 3n numbers instead of 2n. All other layouts begin with
// a line of one number, of five or more, or with a name.
Layout layout_of(std::string_view text, const std::string& file) {
  if (is_pisinger(text)) return Layout::kPisinger;
  TextReader lines(text, file);
  std::string_view head, line;
  const bool has_lines = lines.next_row(head) && lines.next_row(line);
  const size_t first = count_words(head), second = has_lines ? count_words(line) : 0;
  double n = 0.0;
  if (!parse_number(take_word(head), n)) return Layout::kPairs;
  if (first >= 5) return Layout::kRows;
  if (first == 1 && second > 1) return Layout::kCapacityLast;
  if (first != 2 || n < 1.0) return Layout::kAuto;
  if (second == 2) return n == 2.0 && has_two_lists(text, file, n) ? Layout::kPairs : Layout::kAuto;
  const bool are_lists = static_cast<double>(second) == n || (second != 2 && has_two_lists(text, file, n));
  return are_lists ? Layout::kLists : Layout::kAuto;
}

}  // namespace

std::span<const LayoutName> knapsack_layouts() {
  static constexpr LayoutName layouts[] = {{Layout::kAuto, "auto"},
                                           {Layout::kPairs, "pairs"},
                                           {Layout::kTwoLines, "two-lines"},
                                           {Layout::kSolution, "solution"},
                                           {Layout::kCapacityLast, "capacity-last"},
                                           {Layout::kLists, "lists"},
                                           {Layout::kPisinger, "pisinger"},
                                           {Layout::kRows, "rows"}};
  return layouts;
}

double knapsack_number(std::string_view word, const std::string& what, const TextReader& lines) {
  double value = 0.0;
  if (!parse_number(word, value) || !is_in_range(value))
    lines.fail("expected " + what + ", a number from 0 to 1e100, found " + shown(word));
  if (const std::string lost = lost_digits(word, value); !lost.empty()) lines.fail(lost);
  return value;
}

void check_item_count(double n, const TextReader& lines) {
  if (n < 1.0 || n != std::floor(n) || n > static_cast<double>(kLargestSize))
    lines.fail("expected n, an integer of at least 1, found " + number_text(n));
}

InstanceFile parse_knapsack_text(InputFile& file, const ReadOptions& options) {
  const std::string_view text = file.read_rest();
  const std::string& name = file.name();
  Layout layout = options.layout;
  if (layout == Layout::kAuto) layout = layout_of(text, name);
  if (layout == Layout::kPisinger) return parse_pisinger(text, name, options);
  if (layout == Layout::kRows) return parse_knapsack_rows(text, name, options);
  const Instance unnamed = unnamed_instance(name, ItemFields::kWeightAndValue, options);
  if (layout == Layout::kLists) return parse_lists(text, unnamed, name);
  InstanceFile table = TableReader(text, unnamed, name, layout).read();
  const bool fits_lists = layout == Layout::kPairs && options.layout == Layout::kAuto;
  if (fits_lists && parse_lists(text, unnamed, name).instances[0].values != table.instances[0].values) {
    table.warnings.push_back(
        name +
        ":2: two layouts fit, pairs (\"profit weight\" on each line) and lists (the weights, then the "
        "profits); pairs are read: --layout pairs says so, --layout lists reads the other");
  }
  return table;
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
