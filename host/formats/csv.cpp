// SPDX-License-Identifier: Apache-2.0
// CSV (RFC 4180) of one instance: a line for each city or item, or a matrix of distances. Fields are
// separated by commas, semicolons or tabs and may be quoted; the first line may name the columns.
// Or Pisinger's blocks of KnapSacks.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/problem/metric.h"
#include "host/formats/formats.h"
#include "host/formats/knapsack_text.h"
#include "models/tools/json_text.h"

namespace pointsman {
namespace {

using Fields = std::vector<std::string_view>;
using NameList = std::span<const std::string_view>;

// The field without surrounding blanks and quotes.
std::string_view content(std::string_view field) {
  if (!field.empty() && field.front() > '"' && field.back() > '"') return field;  // most: neither
  field = trim(field);
  const bool is_quoted = field.size() >= 2 && field.front() == '"' && field.back() == '"';
  return is_quoted ? trim(field.substr(1, field.size() - 2)) : field;
}

// As a name: a quote stands there twice.
std::string name_of(std::string_view field) {
  if (field.find('"') == std::string_view::npos) return printable(field);
  std::string name(field);
  for (size_t at = 0; (at = name.find("\"\"", at)) != std::string::npos; ++at) name.erase(at, 1);
  return printable(name);
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

// A word for a missing number, or nothing.
bool is_missing(std::string_view field) {
  std::string word = lower_case(field);
  word.erase(0, word.find_first_not_of("+-#"));
  static constexpr std::string_view kMissing[] = {"", "nan", "inf", "infinity", "na", "n/a", "null", "none"};
  return std::ranges::find(kMissing, std::string_view(word).substr(0, word.find('('))) != std::end(kMissing);
}

// Whether a field is a column's name. A number in any spelling (0x10, 1e400, "0;5") or a missing one is none:
// taking a city for the header would lose it.
bool is_column_name(std::string_view field) {
  const auto first = std::ranges::find_if(field, [](char c) { return is_letter(c) || is_digit(c); });
  if (first == field.end()) return !field.empty() && static_cast<unsigned char>(field.front()) >= 0x80;
  return !is_digit(*first) && !is_missing({first, field.end()});
}

// A column's name in lower case without its unit, as in "X (km)"; blanks become underscores.
std::string plain_name(std::string_view field) {
  std::string name = lower_case(trim(field.substr(0, field.find_first_of("(["))));
  std::ranges::replace(name, ' ', '_');
  return name;
}

// Whether a plain name is one of the words, alone or as in "stop_lat" and "lat_deg".
bool is_called(const std::string& name, NameList words) {
  return std::ranges::any_of(words, [&](std::string_view word) {
    return name == word || name.starts_with(std::string(word) + "_") ||
           name.ends_with("_" + std::string(word));
  });
}
constexpr std::string_view kX[] = {"x"}, kY[] = {"y"}, kZ[] = {"z"}, kLatitude[] = {"lat", "latitude"},
                           kLongitude[] = {"lon", "lng", "long", "longitude"},
                           kWeight[] = {"weight", "weights"},
                           kValue[] = {"value", "values", "profit", "profits"};

class CsvReader {
 public:
  CsvReader(std::string_view bytes, const std::string& file, const ReadOptions& options)
      : lines_(bytes, file),
        file_(file),
        options_(options),
        is_knapsack_(is_wanted(ItemFields::kWeightAndValue)) {}

  InstanceFile read() {
    if (!lines_.next_row(line_)) fail_empty();
    if (lower_case(line_).starts_with("sep=")) {  // Excel's
      if (!lines_.next_row(line_)) fail_empty();
    }
    separator_ = separator_of(line_);
    split(line_, separator_, fields_);
    width_ = fields_.size();
    if (width_ == 1) lines_.fail("expected \"x,y\" or the columns' names, found " + shown(trim(line_)));
    read_header();
    choose_columns();
    if (!has_header_ || lines_.next_row(line_)) read_rows();
    if (is_matrix_) drop_empty_column();
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
  [[noreturn]] void fail_empty() const {
    throw InputError(file_, 0, "expected at least one line \"x,y\", found none");
  }
  bool is_wanted(ItemFields fields) const {
    return options_.problem && problem_of(*options_.problem).fields == fields;
  }
  bool is_on_globe() const { return options_.metric && is_on_sphere(*options_.metric); }
  ItemFields fields() const {
    if (is_knapsack_) return ItemFields::kWeightAndValue;
    for (const ItemFields fields : {ItemFields::kDistances, ItemFields::kEdges}) {
      if (is_matrix_ && is_wanted(fields)) return fields;
    }
    return ItemFields::kCoordinates;
  }

  // The first column of such a name.
  int column(NameList words) const {
    for (const bool is_exact : {true, false}) {
      for (size_t at = 0; at < header_.size(); ++at) {
        const bool is_it =
            is_exact ? std::ranges::find(words, header_[at]) != words.end() : is_called(header_[at], words);
        if (is_it) return static_cast<int>(at);
      }
    }
    return kNone;
  }
  bool is_named(int at, NameList words) const { return has_header_ && is_called(header_[at], words); }

  // Whether the first line names the columns: none of its fields is a number, or it has the names that
  // --columns wants, or it is the numbers that pandas writes above an index.
  void read_header() {
    for (const std::string_view field : fields_) header_.push_back(plain_name(field));
    Fields names;
    if (!options_.columns.empty() && options_.columns != "none") split(options_.columns, ',', names);
    for (const std::string_view name : names) wanted_.push_back(plain_name(name));
    if (options_.columns == "none") return;
    const auto is_name = [](std::string_view field) { return field.empty() || is_column_name(field); };
    const auto is_there = [&](const std::string& name) {
      return std::ranges::find(header_, name) != header_.end();
    };
    has_numbers_ = width_ > 1;
    for (size_t i = fields_[0].empty(); i < width_; ++i)
      has_numbers_ = has_numbers_ && fields_[i] == std::to_string(i - fields_[0].empty());
    has_header_ = (!wanted_.empty() && std::ranges::all_of(wanted_, is_there)) ||
                  (has_numbers_ && fields_[0].empty()) ||
                  (std::ranges::all_of(fields_, is_name) && std::ranges::any_of(fields_, is_column_name));
    if (has_numbers_ && !has_header_ && wanted_.empty())
      warn(
          "column numbers as pandas writes them? They are read as numbers: --columns 0,1 leaves them out, "
          "--columns none says that they are a row");
  }

  // Sets the two columns to read, or that the file is a matrix.
  void choose_columns() {
    if (!wanted_.empty()) {
      take_wanted();
    } else if (has_header_) {
      take_named();
    }
    if (first_ == kNone && width_ == 2) first_ = 0, second_ = 1;
    if (first_ == kNone && width_ == 3 && has_numbers_ && has_header_) first_ = 1, second_ = 2;
    is_matrix_ = first_ == kNone;
    if (is_matrix_) return;
    put_in_order();
    if (has_header_ && first_ != 0 && second_ != 0) name_ = 0;
  }

  void take_wanted() {
    const auto place = [&](const std::string& name) {
      if (has_header_) {
        const auto named = std::ranges::find(header_, name);
        if (named != header_.end()) return static_cast<int>(named - header_.begin());
      }
      int64_t number = 0;
      if (parse_integer(name, number) && number >= 0 && std::cmp_less(number, width_))
        return static_cast<int>(number);
      lines_.fail("--columns: expected names of the first line, or numbers from 0 to " +
                  std::to_string(width_ - 1) + ", found " + shown(name));
    };
    if (wanted_.size() != 2) lines_.fail("--columns: expected two columns, found " + shown(options_.columns));
    first_ = place(wanted_[0]);
    second_ = place(wanted_[1]);
    if (first_ == second_)
      lines_.fail("--columns: expected two different columns, found " + shown(options_.columns));
  }

  void take_named() {
    const auto take = [&](NameList one, NameList other) {
      const int a = column(one), b = column(other);
      if (a == kNone || b == kNone || a == b) return false;
      first_ = a, second_ = b;
      return true;
    };
    if (!is_knapsack_ && (take(kX, kY) || take(kLatitude, kLongitude))) {
      if (column(kZ) != kNone) warn("the column z is not read; --columns x,y says so");
      return;
    }
    const int weight = column(kWeight), value = column(kValue);
    const bool has_items = take(kWeight, kValue) || (width_ == 2 && (weight != kNone || value != kNone));
    if (!has_items && is_knapsack_)
      lines_.fail("expected columns weight and value, found " + shown(trim(line_)) +
                  "; --columns WEIGHT,VALUE names them");
    if (!has_items || (options_.problem && !is_knapsack_)) return void(first_ = second_ = kNone);
    if (!is_knapsack_)
      lines_.fail(
          "columns weight and value: pass --problem knapsack --capacity W to read a KnapSack, or "
          "--problem tsp to read points");
  }

  // Weight before value and, on the sphere, latitude before longitude, where the names say which is which.
  void put_in_order() {
    const bool are_degrees = (is_named(first_, kLatitude) && is_named(second_, kLongitude)) ||
                             (is_named(first_, kLongitude) && is_named(second_, kLatitude));
    if (is_knapsack_ && (is_named(first_, kValue) || is_named(second_, kWeight))) std::swap(first_, second_);
    if (is_knapsack_ || !are_degrees) return;
    if (!options_.metric) warn(kDegreesWarning);
    const bool is_swapped =
        is_on_globe() ? is_named(first_, kLongitude) : wanted_.empty() && second_ < first_;
    if (is_swapped) std::swap(first_, second_);
  }

  // A number of a field. A comma in it is the decimal point, but for what may be thousands between commas.
  bool parse_field(std::string_view field, double& number) const {
    if (parse_number(field, number)) return true;
    const size_t comma = field.find(',');
    if (comma == std::string_view::npos || field.find('.') != std::string_view::npos) return false;
    if (separator_ == ',' && field.size() - comma == 4) return false;
    std::string text(field);
    text[comma] = '.';
    return parse_number(text, number);
  }

  // Separators alone, as spreadsheets end a table.
  bool is_padding() const {
    const auto is_empty = [](std::string_view field) { return field.empty(); };
    return std::ranges::all_of(fields_, is_empty) && line_.find('"') == std::string_view::npos &&
           (has_header_ || !numbers_.empty());
  }

  void read_rows() {
    std::array<double, 2> pair{};
    const size_t rows = lines_.rest().size() / (line_.size() + 1) + 1;  // as long as this one
    if (!is_matrix_) numbers_.reserve(2 * rows);
    if (name_ != kNone) names_.reserve(rows);
    do {
      split(line_, separator_, fields_);
      if (is_padding()) continue;
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
      if (name_ != kNone) names_.push_back(name_of(fields_[name_]));
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
    if (std::fabs(number) > kLargestNumber || (number < 0.0 && is_knapsack_))
      lines_.fail(std::string(is_knapsack_ ? "expected numbers from 0 to 1e100"
                                           : "expected coordinates within +-1e100") +
                  ", found " + shown(trim(line_)));
    if (!is_knapsack_) return;
    if (const std::string lost = lost_digits(text, number); !lost.empty()) lines_.fail(lost);
  }

  // A missing number is a way that is not there. Rows have names where the columns have the same, or where
  // theirs has none.
  void read_matrix_row() {
    if (numbers_.empty() && has_header_)
      has_row_names_ = header_[0].empty() || plain_name(fields_[0]) == header_[1];
    if (has_row_names_) names_.push_back(name_of(fields_[0]));
    for (size_t i = has_row_names_; i < width_; ++i) {
      double number = MatrixBuilder::kNoWay;
      if (!is_missing(fields_[i]) &&
          (!parse_field(fields_[i], number) || number < 0.0 || number > kLargestNumber))
        lines_.fail("column " + std::to_string(i) + ": expected a number from 0 to 1e100, found " +
                    shown(fields_[i]) +
                    (has_header_ ? "; --columns NAME,NAME chooses the columns of coordinates" : ""));
      numbers_.push_back(number);
    }
  }

  // A separator at the end of each row begins no column.
  void drop_empty_column() {
    const size_t n = width_ - has_row_names_, rows = numbers_.size() / std::max<size_t>(n, 1);
    if (n < 3 || rows == 0) return;
    for (size_t row = 0; row < rows; ++row) {
      if (numbers_[row * n + n - 1] != MatrixBuilder::kNoWay) return;
    }
    std::vector<double> kept;
    for (size_t i = 0; i < numbers_.size(); ++i) {
      if (i % n != n - 1) kept.push_back(numbers_[i]);
    }
    numbers_ = std::move(kept);
    --width_;
    is_matrix_ =
        width_ - has_row_names_ != 2 || std::ranges::find(numbers_, MatrixBuilder::kNoWay) != numbers_.end();
  }

  std::shared_ptr<const DistanceMatrix> matrix() {
    const size_t n = width_ - has_row_names_;
    if (numbers_.size() != n * n) {
      lines_.fail("expected 2 columns, \"x,y\", or as many columns as rows, a matrix; found " +
                  std::to_string(n) + " columns and " + std::to_string(n == 0 ? 0 : numbers_.size() / n) +
                  " rows; --columns chooses two, by names or by numbers from 0");
    }
    MatrixBuilder builder(static_cast<int>(n), numbers_.size());
    bool is_told = false;
    for (size_t i = 0; i < numbers_.size(); ++i) {
      const bool is_own = i / n == i % n;
      if (is_own && numbers_[i] != 0.0 && numbers_[i] != MatrixBuilder::kNoWay &&
          !std::exchange(is_told, true))
        warn("read as a matrix of distances, whose row " + std::to_string(i / n) + " has " +
             number_text(numbers_[i]) + " on the diagonal; --columns chooses two columns of coordinates");
      builder.add(static_cast<int>(i / n), static_cast<int>(i % n), numbers_[i]);
    }
    return builder.finish();
  }

  void fill(Instance& instance) {
    if (numbers_.empty()) fail_empty();
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
  std::vector<std::string> header_;  // the plain names of the first line
  std::vector<std::string> wanted_;  // --columns
  bool has_header_ = false, has_numbers_ = false, is_matrix_ = false, has_row_names_ = false;
  const bool is_knapsack_;
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
