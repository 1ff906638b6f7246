// SPDX-License-Identifier: Apache-2.0
// CSV (RFC 4180) of one instance: a line for each city or item, or a matrix of distances. Fields are
// separated by commas, semicolons or tabs and may be quoted; the first line may name the columns.
// Or Pisinger's blocks of KnapSacks.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "engine/problem/metric.h"
#include "host/formats/formats.h"
#include "host/formats/knapsack_text.h"

namespace pointsman {
namespace {

using Fields = std::vector<std::string_view>;
using Names = std::initializer_list<std::string_view>;

// The field without surrounding blanks and quotes.
std::string_view content(std::string_view field) {
  if (!field.empty() && field.front() > '"' && field.back() > '"') return field;  // most: neither
  field = trim(field);
  const bool is_quoted = field.size() >= 2 && field.front() == '"' && field.back() == '"';
  return is_quoted ? trim(field.substr(1, field.size() - 2)) : field;
}

// A tab or semicolon where the line has one outside quotes, else the comma.
char separator_of(std::string_view line) {
  bool is_quoted = false;
  char found = ',';
  for (const char c : line) {
    if (c == '"') is_quoted = !is_quoted;
    if (!is_quoted && (c == '\t' || (c == ';' && found == ','))) found = c;
  }
  return found;
}

void split(std::string_view line, char separator, Fields& fields) {
  fields.clear();
  bool is_quoted = false;  // there a separator is part of the field
  size_t begin = 0;
  for (size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '"') is_quoted = !is_quoted;
    if (line[at] != separator || is_quoted) continue;
    fields.push_back(content(line.substr(begin, at - begin)));
    begin = at + 1;
  }
  fields.push_back(content(line.substr(begin)));
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

class CsvReader {
 public:
  CsvReader(std::string_view bytes, const std::string& file, const ReadOptions& options)
      : lines_(bytes, file), file_(file), options_(options) {}

  InstanceFile read() {
    if (!lines_.next_row(line_)) throw InputError(file_, 0, "expected at least one line \"x,y\", found none");
    separator_ = separator_of(line_);
    split(line_, separator_, fields_);
    width_ = fields_.size();
    if (width_ == 1) lines_.fail("expected \"x,y\" or the columns' names, found " + shown(trim(line_)));
    read_header();
    choose_columns();
    if (!has_header_ || lines_.next_row(line_)) read_rows();
    Instance instance = unnamed_instance(file_, fields(), options_);
    if (is_matrix_) {
      set_matrix(instance, matrix(), note_);
    } else {
      fill(instance);
    }
    if (!names_.empty()) instance.names = std::make_shared<const std::vector<std::string>>(std::move(names_));
    if (!note_.empty()) warn(note_);
    InstanceFile out = lines_.finish({std::move(instance)});
    out.warnings.insert(out.warnings.begin(), warnings_.begin(), warnings_.end());
    return out;
  }

 private:
  static constexpr int kNone = -1;

  void warn(const std::string& text) { warnings_.push_back(lines_.warning(text)); }
  bool is_knapsack() const {
    return options_.problem && problem_of(*options_.problem).fields == ItemFields::kWeightAndValue;
  }
  ItemFields fields() const {
    if (is_knapsack_ || is_knapsack()) return ItemFields::kWeightAndValue;
    return is_matrix_ && options_.problem && problem_of(*options_.problem).fields == ItemFields::kDistances
               ? ItemFields::kDistances
               : ItemFields::kCoordinates;
  }

  int column(Names names) const {
    for (const std::string_view name : names) {
      const auto found = std::ranges::find(header_, name);
      if (found != header_.end()) return static_cast<int>(found - header_.begin());
    }
    return kNone;
  }

  // Whether the first line names the columns: none of its fields is a number, or it has the names that
  // --columns wants.
  void read_header() {
    for (const std::string_view field : fields_) header_.push_back(lower_case(field));
    wanted_ = wanted_columns();
    if (options_.columns == "none") return;
    const auto is_there = [&](const std::string& name) { return column({name}) != kNone; };
    const auto is_name = [](std::string_view field) { return field.empty() || is_column_name(field); };
    has_header_ = (!wanted_.empty() && std::ranges::all_of(wanted_, is_there)) ||
                  (std::ranges::all_of(fields_, is_name) && std::ranges::any_of(fields_, is_column_name));
    if (has_header_ || !wanted_.empty()) return;
    for (size_t i = 0; i < width_; ++i) {
      if (fields_[i] != std::to_string(i)) return;
    }
    if (width_ > 1)
      warn(
          "column numbers as pandas writes them? They are read as numbers: --columns 0,1 leaves them out, "
          "--columns none says that they are a row");
  }

  std::vector<std::string> wanted_columns() const {
    Fields names;
    if (!options_.columns.empty() && options_.columns != "none") split(options_.columns, ',', names);
    std::vector<std::string> wanted;
    for (const std::string_view name : names) wanted.push_back(lower_case(name));
    return wanted;
  }

  // Sets the two columns to read, or that the file is a matrix.
  void choose_columns() {
    if (!wanted_.empty()) return take_wanted();
    if (has_header_) take_named();
    if (first_ == kNone && width_ == 2) first_ = 0, second_ = 1;
    is_matrix_ = first_ == kNone;
    if (is_matrix_) return;
    if (has_header_ && first_ != 0 && second_ != 0) name_ = 0;
  }

  void take_wanted() {
    const auto place = [&](const std::string& name) {
      double number = 0.0;
      if (const int named = has_header_ ? column({name}) : kNone; named != kNone) return named;
      if (parse_number(name, number) && number >= 0.0 && number < static_cast<double>(width_))
        return static_cast<int>(number);
      lines_.fail("--columns: expected names of the first line, or numbers from 0 to " +
                  std::to_string(width_ - 1) + ", found " + shown(name));
    };
    if (wanted_.size() != 2) lines_.fail("--columns: expected two columns, found " + shown(options_.columns));
    first_ = place(wanted_[0]);
    second_ = place(wanted_[1]);
    if (has_header_ && first_ != 0 && second_ != 0) name_ = 0;
  }

  void take_named() {
    const std::array weight_and_value = {column({"weight", "weights"}),
                                         column({"value", "values", "profit", "profits"})};
    const std::array degrees = {column({"lat", "latitude"}), column({"lon", "lng", "long", "longitude"})};
    const std::array plane = {column({"x"}), column({"y"})};
    const auto take = [&](const std::array<int, 2>& columns) {
      if (columns[0] == kNone || columns[1] == kNone) return false;
      first_ = columns[0], second_ = columns[1];
      return true;
    };
    if ((!options_.problem || is_knapsack()) && take(weight_and_value)) {
      is_knapsack_ = true;
      if (!options_.problem)
        lines_.fail(
            "columns weight and value: pass --problem knapsack --capacity W to read a KnapSack, or "
            "--problem tsp to read points");
    } else if (!take(plane) && take(degrees)) {
      if (!options_.metric) warn(kDegreesWarning);
      if (!options_.metric || !is_on_sphere(*options_.metric))  // x and y as they come
        std::tie(first_, second_) = std::minmax(degrees[0], degrees[1]);
    }
  }

  // A number of a field; with semicolons the comma may be the decimal point.
  bool parse_field(std::string_view field, double& number) const {
    if (parse_number(field, number)) return true;
    const size_t comma = separator_ == ',' ? std::string_view::npos : field.find(',');
    if (comma == std::string_view::npos || field.find('.') != std::string_view::npos) return false;
    std::string text(field);
    text[comma] = '.';
    return parse_number(text, number);
  }

  void read_rows() {
    std::array<double, 2> pair{};
    if (!is_matrix_)
      numbers_.reserve(2 * (lines_.rest().size() / (line_.size() + 1) + 1));  // as long as this one
    do {
      split(line_, separator_, fields_);
      if (fields_.size() != width_) lines_.fail("expected " + expected() + ", found " + shown(trim(line_)));
      if (is_matrix_) {
        read_matrix_row();
        continue;
      }
      const std::string_view texts[] = {fields_[first_], fields_[second_]};
      for (size_t i = 0; i < 2; ++i) {
        if (!parse_field(texts[i], pair[i]))
          lines_.fail("expected " + expected() + ", found " + shown(trim(line_)));
        check_number(texts[i], pair[i]);
      }
      if (numbers_.size() / 2 == kLargestSize)
        lines_.fail("more than " + std::to_string(kLargestSize) + " rows");
      numbers_.insert(numbers_.end(), pair.begin(), pair.end());
      if (name_ != kNone) names_.push_back(printable(fields_[name_]));
    } while (lines_.next_row(line_));
  }

  std::string expected() const {
    if (is_matrix_) return std::to_string(width_) + " columns";
    if (width_ == 2)
      return "\"x,y\"" + std::string(numbers_.empty() && !has_header_ ? " or the columns' names" : "");
    return std::to_string(width_) + " columns, numbers in columns " + std::to_string(first_) + " and " +
           std::to_string(second_);
  }

  void check_number(std::string_view text, double number) const {
    const bool may_be_negative = !is_knapsack_ && !is_knapsack();
    if (std::fabs(number) > kLargestNumber || (number < 0.0 && !may_be_negative))
      lines_.fail(std::string(may_be_negative ? "expected coordinates within +-1e100"
                                              : "expected numbers from 0 to 1e100") +
                  ", found " + shown(trim(line_)));
    if (may_be_negative) return;
    if (const std::string lost = lost_digits(text, number); !lost.empty()) lines_.fail(lost);
  }

  // A missing number is a way that is not there. Rows have names where the columns have the same, or where
  // theirs has none.
  void read_matrix_row() {
    if (numbers_.empty() && has_header_)
      has_row_names_ = header_[0].empty() || lower_case(fields_[0]) == header_[1];
    if (has_row_names_) names_.push_back(printable(fields_[0]));
    for (size_t i = has_row_names_; i < width_; ++i) {
      double number = MatrixBuilder::kNoWay;
      if (is_distance(fields_[i]) && !parse_field(fields_[i], number)) number = MatrixBuilder::kNoWay;
      if (!is_distance(fields_[i]))
        lines_.fail("column " + std::to_string(i) + ": expected a number, found " + shown(fields_[i]) +
                    (has_header_ ? "; --columns NAME,NAME chooses the columns of coordinates" : ""));
      numbers_.push_back(number);
    }
  }
  bool is_distance(std::string_view field) const {
    double number = 0.0;
    return field.empty() || parse_field(field, number) || !is_column_name(field);
  }

  std::shared_ptr<const DistanceMatrix> matrix() {
    const size_t n = width_ - has_row_names_;
    if (numbers_.size() != n * n) {
      lines_.fail("expected 2 columns, \"x,y\", or as many columns as rows, a matrix; found " +
                  std::to_string(n) + " columns and " + std::to_string(n == 0 ? 0 : numbers_.size() / n) +
                  " rows; --columns chooses two, by names or by numbers from 0");
    }
    MatrixBuilder builder(static_cast<int>(n), numbers_.size());
    for (size_t i = 0; i < numbers_.size(); ++i) {
      const int row = static_cast<int>(i / n), to = static_cast<int>(i % n);
      if (!builder.add(row, to, numbers_[i]))
        lines_.fail("row " + std::to_string(row) + ", column " + std::to_string(to) + ": " +
                    MatrixBuilder::refusal(numbers_[i]));
    }
    return builder.finish();
  }

  void fill(Instance& instance) {
    if (numbers_.empty()) throw InputError(file_, 0, "expected at least one line \"x,y\", found none");
    const Problem& problem = problem_of(instance);
    if (problem.has_capacity) {
      if (!options_.capacity) lines_.fail(std::string("a CSV of a ") + problem.title + " needs --capacity W");
      instance.capacity = *options_.capacity;
    }
    instance.values = std::move(numbers_);
  }

  TextReader lines_;
  const std::string& file_;
  const ReadOptions& options_;
  std::string_view line_;
  char separator_ = ',';
  size_t width_ = 0;
  Fields fields_;                    // of the line
  std::vector<std::string> header_;  // the first line in lower case
  std::vector<std::string> wanted_;  // --columns
  bool has_header_ = false, is_matrix_ = false, is_knapsack_ = false, has_row_names_ = false;
  int first_ = kNone, second_ = kNone, name_ = kNone;  // columns
  std::vector<double> numbers_;
  std::vector<std::string> names_, warnings_;
  std::string note_;
};

}  // namespace

InstanceFile parse_csv(InputFile& file, const ReadOptions& options) {
  const std::string_view bytes = file.read_rest();
  if (options.layout == KnapsackLayout::kPisinger || is_pisinger(bytes))
    return parse_pisinger(bytes, file.name(), options);
  return CsvReader(bytes, file.name(), options).read();
}

}  // namespace pointsman
