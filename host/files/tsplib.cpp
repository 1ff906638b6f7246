// SPDX-License-Identifier: Apache-2.0
// TSPLIB95 instances by coordinates, and tours (G. Reinelt, "TSPLIB 95", sections 1 and 2).
#include <cmath>
#include <limits>

#include "engine/problem/metric.h"
#include "host/files/formats.h"
#include "models/atomic_file.h"
#include "models/json_text.h"

namespace pointsman {
namespace {

constexpr double kScale = 1e6;  // of coordinates whose metric TSPLIB does not have
constexpr std::string_view kSupportedTypes = "EUC_2D, CEIL_2D, GEO, ATT";
// Keywords that change nothing for an instance given by coordinates.
constexpr std::array<std::string_view, 4> kIgnoredKeys = {"COMMENT", "EDGE_WEIGHT_FORMAT", "NODE_COORD_TYPE",
                                                          "DISPLAY_DATA_TYPE"};

// The header and the walk over the lines are the same for instances and tours.
class TsplibReader {
 public:
  TsplibReader(std::string_view bytes, const std::string& file) : file_(file), lines_(bytes) {}

  InstanceFile read_instance(ProblemKind problem) {
    read_header("NODE_COORD_SECTION", "TSP");
    if (dimension_ == 0) fail_here("expected DIMENSION before it, found none");
    if (metric_ == Metric::kEuclidean) {
      fail_here("expected EDGE_WEIGHT_TYPE (" + std::string(kSupportedTypes) + ") before it, found none");
    }
    Instance instance;
    instance.problem = problem;
    instance.metric = metric_;
    place_rows(read_rows(), instance);
    read_end();
    instance.id = name_.empty() ? file_stem(file_) : name_;
    return {{instance}, warnings_};
  }

  // Ids until -1; several may share a line.
  std::vector<int32_t> read_tour() {
    read_header("TOUR_SECTION", "TOUR");
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

  // Reads the header up to the section of that name; what follows are its rows.
  void read_header(const std::string& section, std::string_view type) {
    section_ = section;
    std::string_view line;
    while (lines_.next_filled(line)) {
      line = trim(line);
      const size_t colon = line.find(':');
      const std::string_view key = trim(line.substr(0, colon));
      const std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
      if (key == section) {
        if (!trim(value).empty()) fail_here("expected the end of the line, found " + shown(value));
        return;
      }
      if (key.size() > 8 && key.ends_with("_SECTION")) {
        fail(shown(key) + ": this section is not supported; expected " + section);
      }
      if (key == "EOF") break;
      if (colon == std::string_view::npos || key.empty())
        fail("expected \"KEY: value\", found " + shown(line));
      read_key(key, trim(value), type);
    }
    fail("expected " + section + ", found the end of the file");
  }

  void read_key(std::string_view key, std::string_view value, std::string_view wanted_type) {
    if (key == "NAME") {
      name_ = value;
    } else if (key == "TYPE") {
      std::array<std::string_view, 1> word;
      if (split_words(value, word) == 0 || word[0] != wanted_type) {
        fail("TYPE: expected " + std::string(wanted_type) + ", found " + shown(value));
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
    } else if (std::find(kIgnoredKeys.begin(), kIgnoredKeys.end(), key) == kIgnoredKeys.end()) {
      warn("unknown keyword " + shown(key) + " passed over");
    }
  }

  std::vector<Row> read_rows() {
    std::vector<Row> rows;
    std::string_view line;
    while (lines_.next_filled(line)) {
      line = trim(line);
      ended_ = line == "EOF";
      if (ended_) break;
      if (static_cast<int64_t>(rows.size()) == dimension_) {
        fail_here("expected EOF after " + dimension_text() + " rows, found " + shown(line));
      }
      rows.push_back(read_row(line));
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

  void read_end() {
    std::string_view line;
    if (!ended_) {
      warn("EOF is missing; was the file cut short?");
    } else if (lines_.next_filled(line)) {
      fail("expected nothing after EOF, found " + shown(trim(line)));
    }
  }

  const std::string& file_;
  LineScanner lines_;
  std::string name_, section_;
  Metric metric_ = Metric::kEuclidean;  // that is none of TSPLIB's: not given yet
  int64_t dimension_ = 0;               // 0: not given yet
  bool ended_ = false;                  // EOF seen
  std::vector<std::string> warnings_;
};

// A name must not begin another line.
std::string on_one_line(std::string text) {
  for (char& c : text) c = c == '\n' || c == '\r' ? ' ' : c;
  return text;
}

constexpr std::array<std::string_view, 5> kMetricNames = {"EUCLIDEAN", "EUC_2D", "CEIL_2D", "GEO", "ATT"};

}  // namespace

InstanceFile parse_tsplib(std::string_view bytes, const std::string& file, const ReadOptions& options) {
  return TsplibReader(bytes, file).read_instance(problem_with(ItemFields::kCoordinates, options));
}

std::string write_tsplib(const InstanceBatch& instances) {
  if (instances.size() != 1 || problem_of(instances[0]).fields != ItemFields::kCoordinates) {
    throw OutputRefused("a TSPLIB file holds one TSP instance; use npy, npz, json or ndjson");
  }
  const Instance& instance = instances[0];
  const bool is_scaled = instance.metric == Metric::kEuclidean;
  const double scale = is_scaled ? kScale : 1.0;
  std::string out =
      "NAME : " + on_one_line(instance.id.empty() ? "pointsman" : instance.id) + "\nTYPE : TSP\n";
  if (is_scaled)
    out += "COMMENT : coordinates times 1000000, since EUC_2D rounds each distance to an integer\n";
  out += "DIMENSION : " + std::to_string(instance.n()) +
         "\nEDGE_WEIGHT_TYPE : " + metric_name(is_scaled ? Metric::kEuc2d : instance.metric) +
         "\nNODE_COORD_SECTION\n";
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
  const std::string cost = number_text(solution.objective);
  std::string out =
      "NAME : " + on_one_line(instance.id.empty() ? "tour" : instance.id) + "." + cost +
      ".tour\nCOMMENT : Length = " + cost + "\nCOMMENT : Found by pointsman " + answer.summary.version +
      "\nTYPE : TOUR\nDIMENSION : " + std::to_string(solution.order.size()) + "\nTOUR_SECTION\n";
  for (const int32_t city : problem_of(instance).canonical(solution.order))
    out += std::to_string(city + 1) + "\n";
  return out + "-1\nEOF\n";
}

std::string metric_name(Metric metric) { return std::string(kMetricNames[static_cast<size_t>(metric)]); }

std::optional<Metric> find_metric(std::string_view name) {
  const auto found = std::find(kMetricNames.begin(), kMetricNames.end(), name);
  if (found == kMetricNames.end()) return std::nullopt;
  return static_cast<Metric>(found - kMetricNames.begin());
}

}  // namespace pointsman
