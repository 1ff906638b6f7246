// SPDX-License-Identifier: Apache-2.0
// TSPs with time windows as text: a table with coordinates as Solomon's, in which the instances of Dumas et
// al. (1995) and Gendreau et al. (1998) are published, or a matrix with windows behind it.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "engine/problem/metric.h"
#include "engine/problem/timed_places.h"
#include "host/formats/formats.h"
#include "models/tools/json_text.h"

namespace pointsman {
namespace {

constexpr std::string_view kTableHead = "CUST NO.", kNote = "!!";
constexpr std::string_view kEnd = "999";  // in place of a row's number
constexpr size_t kTableColumns = 7;       // number, x, y, demand, ready time, due date, service time

class TimedText {
 public:
  TimedText(std::string_view text, const std::string& file, const ReadOptions& options)
      : lines_(text, file),
        has_metric_(options.metric.has_value()),
        instance_(unnamed_instance(file, ItemFields::kCoordinatesAndWindows, options)) {}

  InstanceFile read() {
    if (!next_line()) lines_.fail("expected \"CUST NO.\" or the number of places, found an empty file");
    if (line_.starts_with(kNote)) {
      std::string_view rest = line_.substr(kNote.size());
      const std::string_view name = take_word(rest);
      if (!name.empty()) instance_.id = printable(name);
      if (!next_line()) lines_.fail("expected \"CUST NO.\", found the end");
    }
    return is_digit(line_.front()) ? read_matrix() : read_table();
  }

 private:
  bool next_line() {
    if (!lines_.next_row(line_)) return false;
    line_ = trim(line_);
    return true;
  }
  [[noreturn]] void fail_expected(const std::string& expected) {
    lines_.fail("expected " + expected + ", found " + shown(line_));
  }

  // The rows up to 999 or the end.
  InstanceFile read_table() {
    if (!begins_timed_text(line_)) fail_expected("\"CUST NO. ..\" or the number of places");
    bool is_ended = false;
    while (!is_ended && next_line()) {
      std::array<std::string_view, kTableColumns + 1> words;
      const size_t count = split_words(line_, words);
      is_ended = words[0] == kEnd && (count == 1 || is_row_of_zeros(std::span(words).first(count)));
      if (!is_ended) read_row(std::span(words).first(count));
    }
    if (instance_.values.empty()) lines_.fail("expected at least one place, found none");
    if (is_ended && next_line()) fail_expected("the end after " + std::string(kEnd));
    instance_.first_id = 1;
    instance_.metric = Metric::kFloor2d;
    instance_.is_metric_chosen = true;  // what it does is said below
    InstanceFile out = finish(is_ended);
    if (!has_metric_) {
      out.warnings.push_back(lines_.warning(
          "distances are rounded down, as the published optima take them; --metric euclidean does not round, "
          "--metric floor_2d says that this is meant"));
    }
    return out;
  }

  static bool is_row_of_zeros(std::span<const std::string_view> words) {
    double number = 0.0;
    return std::ranges::all_of(
        words.subspan(1), [&](std::string_view word) { return parse_number(word, number) && number == 0.0; });
  }

  void read_row(std::span<const std::string_view> words) {
    std::array<double, kTableColumns> row{};
    bool is_row = words.size() == kTableColumns;
    for (size_t i = 0; is_row && i < kTableColumns; ++i)
      is_row = parse_number(words[i], row[i]) && std::fabs(row[i]) <= kLargestNumber;
    if (!is_row || row[6] < 0.0)
      fail_expected("\"number x y demand ready due service\", the last of at least 0");
    instance_.values.insert(instance_.values.end(), {row[1], row[2], row[4], row[5], row[6]});
    check_times();
  }

  void check_times() {
    const std::string wrong = wrong_times(instance_, instance_.values.size() / instance_.width() - 1);
    if (!wrong.empty()) fail_expected(wrong);
  }

  // n, the ways from each place to each, and when each opens and closes.
  InstanceFile read_matrix() {
    int64_t n = 0;
    if (!parse_integer(line_, n) || n < 1 || n > kLargestSize)
      fail_expected("a number of places from 1 to " + std::to_string(kLargestSize));
    line_ = {};
    MatrixBuilder builder(static_cast<int>(n), lines_.rest().size() / 2);
    for (int i = 0; i < builder.n(); ++i) {
      for (int j = 0; j < builder.n(); ++j) {
        const double way = number("way " + std::to_string(j + 1) + " of place " + std::to_string(i + 1));
        if (!builder.add(i, j, way)) lines_.fail(MatrixBuilder::refusal(way));
      }
    }
    std::string note;
    set_matrix(instance_, builder.finish(), note);
    for (int i = 0; i < builder.n(); ++i) {
      const double opens = number("when place " + std::to_string(i + 1) + " opens");
      const double closes = number("when place " + std::to_string(i + 1) + " closes");
      instance_.values.insert(instance_.values.end(), {0.0, 0.0, opens, closes, 0.0});
      check_times();
    }
    line_ = trim(line_);
    if (!line_.empty() || next_line()) fail_expected("the end behind the windows");
    InstanceFile out = finish(false);
    if (!note.empty()) out.warnings.push_back(lines_.warning(note));
    return out;
  }

  // The next one, on this line or on a later one.
  double number(const std::string& what) {
    std::string_view word;
    while ((word = take_word(line_)).empty()) {
      if (!next_line()) lines_.fail("expected " + what + ", found the end");
    }
    double value = 0.0;
    if (!parse_number(word, value) || std::fabs(value) > kLargestNumber)
      lines_.fail("expected " + what + ", found " + shown(word));
    return value;
  }

  InstanceFile finish(bool is_ended) {
    InstanceBatch batch;
    batch.push_back(std::move(instance_));
    return is_ended ? InstanceFile{std::move(batch), {}} : lines_.finish(std::move(batch));
  }

  TextReader lines_;
  const bool has_metric_;
  std::string_view line_;  // or what is left of it
  Instance instance_;
};

}  // namespace

bool begins_timed_text(std::string_view line) {
  return line.starts_with(kNote) || upper_case(line.substr(0, kTableHead.size())) == kTableHead;
}

InstanceFile parse_timed_text(InputFile& file, const ReadOptions& options) {
  return TimedText(file.read_rest(), file.name(), options).read();
}

}  // namespace pointsman
