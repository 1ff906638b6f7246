// SPDX-License-Identifier: Apache-2.0
// TSPLIB95 instances by coordinates or by symmetric matrices, and tours (G. Reinelt, "TSPLIB 95", sections 1
// and 2).
#include <cmath>
#include <limits>

#include "engine/problem/metric.h"
#include "host/formats/formats.h"
#include "host/formats/matrix_builder.h"
#include "host/formats/printable.h"
#include "models/tools/atomic_file.h"
#include "models/tools/json_text.h"

namespace pointsman {
namespace {

constexpr double kScale = 1e6;  // of coordinates whose metric TSPLIB does not have
constexpr std::string_view kSupportedTypes = "EUC_2D, CEIL_2D, GEO, ATT, MAN_2D, MAX_2D, EXPLICIT";
// Keywords that change nothing for an instance.
constexpr std::array<std::string_view, 3> kIgnoredKeys = {"COMMENT", "NODE_COORD_TYPE", "DISPLAY_DATA_TYPE"};
constexpr std::string_view kCoordinates = "NODE_COORD_SECTION", kWeights = "EDGE_WEIGHT_SECTION",
                           kDisplay = "DISPLAY_DATA_SECTION", kTour = "TOUR_SECTION";

// What an EDGE_WEIGHT_FORMAT has of each row: the columns before its own, its own, those behind it.
struct WeightFormat {
  std::string_view name;
  bool has_before, has_own, has_behind;
};
constexpr std::array<WeightFormat, 5> kWeightFormats = {{{"FULL_MATRIX", true, true, true},
                                                         {"UPPER_ROW", false, false, true},
                                                         {"LOWER_ROW", true, false, false},
                                                         {"UPPER_DIAG_ROW", false, true, true},
                                                         {"LOWER_DIAG_ROW", true, true, false}}};

std::string_view key_of(std::string_view line) { return trim(line.substr(0, line.find(':'))); }

// The header and the walk over the lines are the same for instances and tours.
class TsplibReader {
 public:
  TsplibReader(std::string_view bytes, const std::string& file)
      : file_(file), size_(bytes.size()), lines_(bytes) {}

  InstanceFile read_instance(const ReadOptions& options) {
    read_header("TSP");
    if (dimension_ == 0) fail_here("expected DIMENSION before it, found none");
    if (metric_ == Metric::kEuclidean) {
      fail_here("expected EDGE_WEIGHT_TYPE (" + std::string(kSupportedTypes) + ") before it, found none");
    }
    Instance instance;
    instance.metric = metric_;
    if (metric_ == Metric::kExplicit) {
      instance.problem = problem_with(ItemFields::kCoordinates, {});
      instance.matrix = read_matrix();
    } else {
      instance.problem = problem_with(ItemFields::kCoordinates, options);
      place_rows(read_rows(), instance);
    }
    read_end();
    instance.id = name_.empty() ? file_stem(file_) : name_;
    return {{instance}, warnings_};
  }

  // Ids until -1; several may share a line.
  std::vector<int32_t> read_tour() {
    read_header("TOUR");
    std::vector<int32_t> tour;
    std::string_view line;
    std::array<std::string_view, 1> word;
    while (!ended_ && lines_.next(line)) {
      for (; !ended_ && split_words(line, word) == 1; line.remove_prefix(word[0].end() - line.begin())) {
        int64_t id = 0;
        ended_ = word[0] == "EOF" || word[0] == "-1";
        if (ended_) break;
        if (!parse_integer(word[0], id) || id < 1 || id > std::numeric_limits<int32_t>::max()) {
          fail_here("expected a city's id or -1, found " + shown(word[0]));
        }
        tour.push_back(static_cast<int32_t>(id - 1));
      }
    }
    if (!ended_) fail_here("expected -1 at its end, found the end of the file");
    const auto count = static_cast<int64_t>(tour.size());
    if (dimension_ != 0 && count != dimension_)
      fail_here("expected " + dimension_text() + " ids, found " + std::to_string(count));
    return tour;
  }

 private:
  struct Row {
    int64_t id;
    double x, y;
    int64_t line;
  };

  [[noreturn]] void fail(const std::string& message) const {
    throw InputError(file_, lines_.number(), message);
  }
  [[noreturn]] void fail_here(const std::string& message) const { fail(section_ + ": " + message); }
  void warn(const std::string& message) {
    warnings_.push_back(file_ + ":" + std::to_string(lines_.number()) + ": " + message);
  }
  std::string dimension_text() const { return "DIMENSION = " + std::to_string(dimension_); }

  // The section with what is wanted, as far as the header is known when `key` comes.
  std::string_view wanted_section(std::string_view type, std::string_view key) const {
    if (type != "TSP") return kTour;
    const bool is_unknown = metric_ == Metric::kEuclidean;
    return metric_ == Metric::kExplicit || (is_unknown && key == kWeights) ? kWeights : kCoordinates;
  }

  // Of the sections of an instance that are no part of it.
  bool is_passed_over(std::string_view key) const {
    return key == kDisplay || (key == kCoordinates && metric_ == Metric::kExplicit);
  }
  void pass_over_rows() {
    const auto is_word = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); };
    std::string_view line;
    for (LineScanner ahead = lines_; ahead.next_filled(line) && !is_word(trim(line).front());) lines_ = ahead;
  }

  // Reads the header up to the section with what is wanted; what follows are its rows.
  void read_header(std::string_view type) {
    section_ = wanted_section(type, "");
    std::string_view line;
    while (lines_.next_filled(line)) {
      line = trim(line);
      const size_t colon = line.find(':');
      const std::string_view key = key_of(line);
      const std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
      section_ = wanted_section(type, key);
      const bool is_passed = type == "TSP" && is_passed_over(key);
      if (key == section_ || is_passed) {
        if (!trim(value).empty())
          fail(std::string(key) + ": expected the end of the line, found " + shown(value));
        if (!is_passed) return;
        pass_over_rows();
        continue;
      }
      if (key.size() > 8 && key.ends_with("_SECTION")) {
        fail(shown(key) + ": this section is not supported; expected " + section_);
      }
      if (key == "EOF") break;
      if (colon == std::string_view::npos || key.empty())
        fail("expected \"KEY: value\", found " + shown(line));
      read_key(key, trim(value), type);
    }
    fail("expected " + section_ + ", found the end of the file");
  }

  void read_key(std::string_view key, std::string_view value, std::string_view wanted_type) {
    if (key == "NAME") {
      name_ = value;
    } else if (key == "TYPE") {
      std::array<std::string_view, 1> word;
      if (split_words(value, word) == 0 || word[0] != wanted_type) {
        fail("TYPE: expected " + std::string(wanted_type) + ", found " + shown(value) +
             (word[0] == "ATSP" ? "; asymmetric instances are not solved" : ""));
      }
    } else if (key == "DIMENSION") {
      if (dimension_ != 0) fail("DIMENSION: given twice");
      if (!parse_integer(value, dimension_) || dimension_ < 1 || dimension_ > kLargestSize) {
        fail("DIMENSION: expected an integer from 1 to " + std::to_string(kLargestSize) + ", found " +
             shown(value));
      }
    } else if (key == "EDGE_WEIGHT_TYPE") {
      if (metric_ != Metric::kEuclidean) fail("EDGE_WEIGHT_TYPE: given twice");
      metric_ = find_metric(value).value_or(Metric::kEuclidean);
      if (metric_ == Metric::kEuclidean) {
        fail("EDGE_WEIGHT_TYPE: expected one of " + std::string(kSupportedTypes) + ", found " + shown(value));
      }
    } else if (key == "EDGE_WEIGHT_FORMAT") {
      weight_format_ = value;
      weight_format_line_ = lines_.number();
    } else if (std::find(kIgnoredKeys.begin(), kIgnoredKeys.end(), key) == kIgnoredKeys.end()) {
      warn("unknown keyword " + shown(key) + " passed over");
    }
  }

  const WeightFormat& weight_format() const {
    const std::string names = joined(kWeightFormats, ", ", &WeightFormat::name, " or ");
    if (weight_format_line_ == 0)
      fail_here("expected EDGE_WEIGHT_FORMAT (" + names + ") before it, found none");
    const auto found =
        std::find_if(kWeightFormats.begin(), kWeightFormats.end(),
                     [&](const WeightFormat& format) { return format.name == weight_format_; });
    if (found != kWeightFormats.end()) return *found;
    throw InputError(file_, weight_format_line_,
                     "EDGE_WEIGHT_FORMAT: expected " + names + ", found " + shown(weight_format_));
  }

  // Its numbers stand on any lines.
  std::shared_ptr<const DistanceMatrix> read_matrix() {
    const WeightFormat& format = weight_format();
    const int n = static_cast<int>(dimension_);
    MatrixBuilder builder(n, size_ / 2);
    LoadingWatch watch(file_);
    std::string_view rest;  // of the line
    for (int i = 0; i < n; ++i) {
      watch.after(static_cast<size_t>(n));
      const int first = format.has_before ? 0 : i + !format.has_own;
      const int end = format.has_behind ? n : i + format.has_own;
      for (int j = first; j < end; ++j) {
        const double number = next_number(rest, i, j);
        if (!builder.add(i, j, number)) fail_at(i, j, builder.refusal(i, j, number));
      }
    }
    if (!trim(rest).empty())
      fail_here("expected the end of the line after " + all_read() + ", found " + shown(trim(rest)));
    return builder.finish();
  }

  double next_number(std::string_view& rest, int i, int j) {
    std::array<std::string_view, 1> word;
    while (split_words(rest, word) == 0) {
      if (!lines_.next(rest)) fail_at(i, j, "expected a number, found the end of the file");
    }
    rest.remove_prefix(static_cast<size_t>(word[0].end() - rest.begin()));
    double number = 0.0;
    if (!parse_number(word[0], number)) fail_at(i, j, "expected a number, found " + shown(word[0]));
    return number;
  }

  [[noreturn]] void fail_at(int i, int j, const std::string& message) const {
    fail_here("row " + std::to_string(i + 1) + ", column " + std::to_string(j + 1) + ": " + message);
  }

  std::vector<Row> read_rows() {
    std::vector<Row> rows;
    LoadingWatch watch(file_);
    std::string_view line;
    while (static_cast<int64_t>(rows.size()) < dimension_ && lines_.next_filled(line)) {
      line = trim(line);
      ended_ = line == "EOF";
      if (ended_) break;
      rows.push_back(read_row(line));
      watch.after(1);
    }
    if (static_cast<int64_t>(rows.size()) != dimension_) {
      fail_here("expected " + dimension_text() + " rows, found " + std::to_string(rows.size()));
    }
    return rows;
  }

  Row read_row(std::string_view line) const {
    std::array<std::string_view, 4> words;
    Row row{0, 0.0, 0.0, lines_.number()};
    if (split_words(line, words) != 3 || !parse_integer(words[0], row.id) || !parse_number(words[1], row.x) ||
        !parse_number(words[2], row.y)) {
      fail_here("expected \"id x y\", found " + shown(line));
    }
    if (row.id < 1 || row.id > dimension_) {
      fail_here("expected an id from 1 to " + dimension_text() + ", found " + std::to_string(row.id));
    }
    if (std::fabs(row.x) > kLargestNumber || std::fabs(row.y) > kLargestNumber) {
      fail_here("expected coordinates within +-1e100");
    }
    if (metric_ == Metric::kGeo && !is_geographic(row.x, row.y)) {
      fail_here("expected a latitude within +-90 and a longitude within +-360 (GEO), found " +
                number_text(row.x) + " " + number_text(row.y));
    }
    return row;
  }

  // As many rows as cities and no id twice: none is missing.
  void place_rows(const std::vector<Row>& rows, Instance& instance) const {
    std::vector<int64_t> line_of(rows.size(), 0);
    instance.values.resize(2 * rows.size());
    for (const Row& row : rows) {
      const auto city = static_cast<size_t>(row.id - 1);
      if (line_of[city] != 0) {
        throw InputError(file_, row.line,
                         section_ + ": id " + std::to_string(row.id) + " was given in line " +
                             std::to_string(line_of[city]) + " already");
      }
      line_of[city] = row.line;
      instance.values[2 * city] = row.x;
      instance.values[2 * city + 1] = row.y;
    }
  }

  std::string all_read() const {
    return metric_ == Metric::kExplicit ? "the numbers of " + dimension_text() + " cities"
                                        : dimension_text() + " rows";
  }

  void read_end() {
    std::string_view line;
    while (!ended_ && lines_.next_filled(line)) {
      line = trim(line);
      ended_ = line == "EOF";
      if (ended_) break;
      if (!is_passed_over(key_of(line)))
        fail_here("expected EOF after " + all_read() + ", found " + shown(line));
      pass_over_rows();
    }
    if (!ended_) {
      warn("EOF is missing; was the file cut short?");
    } else if (lines_.next_filled(line)) {
      fail("expected nothing after EOF, found " + shown(trim(line)));
    }
  }

  const std::string& file_;
  const size_t size_;  // bytes of the file
  LineScanner lines_;
  std::string name_, section_, weight_format_;
  int64_t weight_format_line_ = 0;      // 0: not given
  Metric metric_ = Metric::kEuclidean;  // that is none of TSPLIB's: not given yet
  int64_t dimension_ = 0;               // 0: not given yet
  bool ended_ = false;                  // EOF seen
  std::vector<std::string> warnings_;
};

std::string matrix_text(const DistanceMatrix& matrix) {
  std::string out = "\nEDGE_WEIGHT_FORMAT : FULL_MATRIX\nEDGE_WEIGHT_SECTION\n";
  for (int i = 0; i < matrix.n; ++i) {
    for (int j = 0; j < matrix.n; ++j) out += number_text(matrix.at(i, j)) + (j + 1 < matrix.n ? " " : "\n");
  }
  return out;
}

constexpr std::array<std::string_view, 8> kMetricNames = {"EUCLIDEAN", "EUC_2D", "CEIL_2D", "GEO",
                                                          "ATT",       "MAN_2D", "MAX_2D",  "EXPLICIT"};

}  // namespace

InstanceFile parse_tsplib(std::string_view bytes, const std::string& file, const ReadOptions& options) {
  return TsplibReader(bytes, file).read_instance(options);
}

std::string write_tsplib(const InstanceBatch& instances) {
  if (instances.size() != 1 || problem_of(instances[0]).fields != ItemFields::kCoordinates) {
    throw OutputRefused("a TSPLIB file holds one TSP instance; use npy, npz, json or ndjson");
  }
  const Instance& instance = instances[0];
  const bool is_scaled = instance.metric == Metric::kEuclidean;
  const double scale = is_scaled ? kScale : 1.0;
  std::string out = "NAME : " + printable(instance.id.empty() ? "pointsman" : instance.id) + "\nTYPE : TSP\n";
  if (is_scaled)
    out += "COMMENT : coordinates times 1000000, since EUC_2D rounds each distance to an integer\n";
  out += "DIMENSION : " + std::to_string(instance.n()) +
         "\nEDGE_WEIGHT_TYPE : " + metric_name(is_scaled ? Metric::kEuc2d : instance.metric);
  if (!instance.has_coordinates()) return out + matrix_text(*instance.matrix) + "EOF\n";
  out += "\nNODE_COORD_SECTION\n";
  for (int i = 0; i < instance.n(); ++i) {
    out += std::to_string(i + 1) + " " + number_text(scale * instance.first(i)) + " " +
           number_text(scale * instance.second(i)) + "\n";
  }
  return out + "EOF\n";
}

SolutionBatch parse_tour(std::string_view bytes, const std::string& file, const InstanceBatch& instances) {
  check_count(1, instances, file);
  Solution solution;
  solution.order = TsplibReader(bytes, file).read_tour();
  solution.objective = kNoNumber;
  return {solution};
}

// As LKH writes it: cities from 1, in the canonical order.
std::string write_tour(const Answer& answer) {
  if (answer.solutions.size() != 1 || !problem_of(answer.instances[0]).has_all_items) {
    throw OutputRefused("a .tour file holds one TSP tour; use json, ndjson, npy or npz");
  }
  const Instance& instance = answer.instances[0];
  const Solution& solution = answer.solutions[0];
  if (solution.status == Status::kUnsolved)
    throw OutputRefused("no tour was found before the run was stopped");
  const std::string cost = objective_text(instance, solution.objective);
  std::string out =
      "NAME : " + printable(instance.id.empty() ? "tour" : instance.id) + "." + cost +
      ".tour\nCOMMENT : Length = " + cost + "\nCOMMENT : Found by pointsman " + answer.summary.version +
      "\nTYPE : TOUR\nDIMENSION : " + std::to_string(solution.order.size()) + "\nTOUR_SECTION\n";
  for (const int32_t city : problem_of(instance).canonical(solution.order))
    out += std::to_string(city + 1) + "\n";
  return out + "-1\nEOF\n";
}

const char* metric_name(Metric metric) { return kMetricNames[static_cast<size_t>(metric)].data(); }

std::optional<Metric> find_metric(std::string_view name) {
  const auto found = std::find(kMetricNames.begin(), kMetricNames.end(), name);
  if (found == kMetricNames.end()) return std::nullopt;
  return static_cast<Metric>(found - kMetricNames.begin());
}

}  // namespace pointsman
