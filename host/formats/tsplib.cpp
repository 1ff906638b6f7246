// SPDX-License-Identifier: Apache-2.0
// TSPLIB instances, by coordinates or by matrices, with fixed edges, tours (G. Reinelt, "TSPLIB 95", sections
// 1 and 2), and CVRP instances and routes as CVRPLIB has them.
#include <cmath>
#include <limits>

#include "engine/problem/fixed_edges.h"
#include "engine/problem/metric.h"
#include "host/formats/formats.h"
#include "models/tools/atomic_file.h"
#include "models/tools/json_text.h"

namespace pointsman {
namespace {

constexpr double kScale = 1e6;  // of coordinates whose metric TSPLIB does not have
constexpr std::string_view kSupportedTypes = "EUC_2D, CEIL_2D, GEO, ATT, MAN_2D, MAX_2D, EXPLICIT";
constexpr std::array<std::string_view, 8> kMetricNames = {"EUCLIDEAN", "EUC_2D", "CEIL_2D", "GEO",
                                                          "ATT",       "MAN_2D", "MAX_2D",  "EXPLICIT"};
// Keywords that change nothing for an instance.
constexpr std::array<std::string_view, 3> kIgnoredKeys = {"COMMENT", "NODE_COORD_TYPE", "DISPLAY_DATA_TYPE"};
constexpr std::string_view kCoordinates = "NODE_COORD_SECTION", kWeights = "EDGE_WEIGHT_SECTION",
                           kDisplay = "DISPLAY_DATA_SECTION", kTour = "TOUR_SECTION",
                           kDemands = "DEMAND_SECTION", kDepots = "DEPOT_SECTION",
                           kFixed = "FIXED_EDGES_SECTION";

// The columns that an EDGE_WEIGHT_FORMAT has of each row: those before the diagonal, the diagonal, those
// after.
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

class TsplibReader {
 public:
  // type: "TSP", which an ATSP, HPP or CVRP may be instead, or "TOUR".
  TsplibReader(InputFile& file, std::string_view type)
      : file_(file.name()), bytes_(file.read_rest()), type_(type), lines_(bytes_, file_) {}

  InstanceFile read_instance(const ReadOptions& options) {
    read_header();
    if (dimension_ == 0) fail_here("expected DIMENSION before it, found none");
    if (!metric_)
      fail_here("expected EDGE_WEIGHT_TYPE (" + std::string(kSupportedTypes) + ") before it, found none");
    Instance instance;
    instance.metric = *metric_;
    instance.problem = problem_with(ItemFields::kCoordinates, options);
    if (kind_ == "CVRP") {
      read_routing(instance);
    } else if (is_matrix()) {
      set_matrix(instance, read_matrix());
    } else {
      instance.values = read_coordinates();
    }
    read_end();
    check_kind(instance);
    instance.forced = std::move(forced_);
    instance.id = name_.empty() ? file_stem(file_) : name_;
    return {{instance}, warnings_};
  }

  // Ids until -1; a line may have several.
  std::vector<int32_t> read_tour() {
    read_header();
    std::vector<int32_t> tour;
    std::string_view rest, word;
    while (next_word(rest, word) && word != "EOF" && word != "-1") {
      int64_t id = 0;
      if (!parse_integer(word, id) || id < 1 || id > std::numeric_limits<int32_t>::max())
        fail_here("expected a city's id or -1, found " + shown(word));
      tour.push_back(static_cast<int32_t>(id - 1));
    }
    if (word.empty()) fail_here("expected -1 at its end, found the end of the file");
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

  [[noreturn]] void fail_here(const std::string& message) const { lines_.fail(section_ + ": " + message); }
  std::string dimension_text() const { return "DIMENSION = " + std::to_string(dimension_); }
  bool is_matrix() const { return metric_ == Metric::kExplicit; }

  // The section that holds the data, as far as the header before `key` says.
  std::string_view wanted_section(std::string_view key) const {
    if (type_ == "TOUR") return kTour;
    return is_matrix() || (!metric_ && key == kWeights) ? kWeights : kCoordinates;
  }

  // TYPE says whether the way back counts and may differ.
  void check_kind(Instance& instance) const {
    if (kind_ == "HPP") instance.problem = ProblemKind::kPath;
    if (kind_ == "ATSP") {
      if (!is_matrix()) fail_here("expected EDGE_WEIGHT_TYPE EXPLICIT of an ATSP");
      if (instance.problem == ProblemKind::kTsp) instance.problem = ProblemKind::kAtsp;
    } else if (instance.problem == ProblemKind::kAtsp) {
      fail_here(asymmetry_text(*instance.matrix, 1, "TYPE ATSP"));
    }
    if (!forced_.empty() && instance.problem != ProblemKind::kTsp)
      fail_here("expected no " + std::string(kFixed) + " of TYPE " + kind_);
  }

  // Pairs of ids until -1; a line may have several.
  void read_forced() {
    if (dimension_ == 0) fail_here("expected DIMENSION before it, found none");
    std::string_view rest, word;
    while (next_word(rest, word) && word != "-1") {
      std::array<int32_t, 2> edge;
      for (size_t end = 0; end < 2; ++end) {
        int64_t id = 0;
        if (end == 1) next_word(rest, word);
        if (!parse_integer(word, id) || id < 1 || id > dimension_)
          fail_here("expected two ids from 1 to " + dimension_text() + " or -1, found " + shown(word));
        edge[end] = static_cast<int32_t>(id - 1);
      }
      forced_.push_back(edge);
      size_t at = 0;
      const std::string wrong = wrong_edges(static_cast<int>(dimension_), forced_, at);
      if (!wrong.empty())
        fail_here("expected " + wrong + ", found " + std::to_string(edge[0] + 1) + " " +
                  std::to_string(edge[1] + 1));
    }
    if (word.empty()) fail_here("expected -1 at its end, found the end of the file");
    if (!trim(rest).empty()) fail_here("expected the end of the line, found " + shown(trim(rest)));
  }

  // Sections that an instance may have but does not need.
  bool is_skipped(std::string_view key) const {
    return type_ == "TSP" && (key == kDisplay || (key == kCoordinates && is_matrix()));
  }
  void skip_rows() {
    std::string_view line;
    for (LineScanner ahead = lines_; ahead.next_filled(line) && !is_letter(trim(line).front());)
      lines_.next_filled(line);
  }

  // Reads the header and the name of the wanted section, whose rows are next.
  void read_header() {
    section_ = wanted_section("");
    std::string_view line;
    while (lines_.next_filled(line)) {
      line = trim(line);
      const size_t colon = line.find(':');
      const std::string_view key = key_of(line);
      const std::string_view value = colon == std::string_view::npos ? "" : trim(line.substr(colon + 1));
      section_ = wanted_section(key);
      if (key == section_ || is_skipped(key)) {
        if (!value.empty())
          lines_.fail(std::string(key) + ": expected the end of the line, found " + shown(value));
        if (!is_skipped(key)) return;
        skip_rows();
        continue;
      }
      if (key == kFixed && type_ == "TSP") {
        section_ = kFixed;
        read_forced();
        continue;
      }
      if (key.size() > 8 && key.ends_with("_SECTION"))
        lines_.fail(shown(key) + ": this section is not supported; expected " + section_);
      if (key == "EOF") break;
      if (colon == std::string_view::npos || key.empty())
        lines_.fail("expected \"KEY: value\", found " + shown(line));
      read_key(key, value);
    }
    lines_.fail("expected " + section_ + ", found the end of the file");
  }

  void read_key(std::string_view key, std::string_view value) {
    const auto fail = [&](const std::string& expected) {
      lines_.fail(std::string(key) + ": expected " + expected + ", found " + shown(value));
    };
    const auto check_first = [&](bool is_first) {
      if (!is_first) lines_.fail(std::string(key) + ": given twice");
    };
    if (key == "NAME") {
      name_ = value;
    } else if (key == "TYPE") {
      std::string_view rest = value;
      kind_ = take_word(rest);
      const bool is_known =
          kind_ == type_ || (type_ == "TSP" && (kind_ == "ATSP" || kind_ == "HPP" || kind_ == "CVRP"));
      if (!is_known) fail(type_ == "TSP" ? "TSP, ATSP, HPP or CVRP" : std::string(type_));
    } else if (key == "CAPACITY") {
      check_first(capacity_.empty());
      capacity_ = value;
      capacity_line_ = lines_.number();
    } else if (kind_ == "CVRP" && (key == "DISTANCE" || key == "SERVICE_TIME")) {
      lines_.fail(std::string(key) + ": this limit on routes is not supported");
    } else if (key == "DIMENSION") {
      check_first(dimension_ == 0);
      if (!parse_integer(value, dimension_) || dimension_ < 1 || dimension_ > kLargestSize)
        fail("an integer from 1 to " + std::to_string(kLargestSize));
    } else if (key == "EDGE_WEIGHT_TYPE") {
      check_first(!metric_);
      metric_ = find_metric(value);
      if (!metric_ || metric_ == Metric::kEuclidean) fail("one of " + std::string(kSupportedTypes));
    } else if (key == "EDGE_WEIGHT_FORMAT") {
      weight_format_ = value;
      weight_format_line_ = lines_.number();
    } else if (std::ranges::find(kIgnoredKeys, key) == kIgnoredKeys.end()) {
      warnings_.push_back(lines_.warning("ignoring the unknown keyword " + shown(key)));
    }
  }

  const WeightFormat& weight_format() const {
    const std::string names = joined(kWeightFormats, ", ", &WeightFormat::name, " or ");
    if (weight_format_line_ == 0)
      fail_here("expected EDGE_WEIGHT_FORMAT (" + names + ") before it, found none");
    const auto found = std::ranges::find(kWeightFormats, weight_format_, &WeightFormat::name);
    if (found != kWeightFormats.end()) return *found;
    throw InputError(file_, weight_format_line_,
                     "EDGE_WEIGHT_FORMAT: expected " + names + ", found " + shown(weight_format_));
  }

  // Line breaks between the numbers have no meaning.
  std::shared_ptr<const DistanceMatrix> read_matrix() {
    const WeightFormat& format = weight_format();
    const int n = static_cast<int>(dimension_);
    MatrixBuilder builder(n, bytes_.size() / 2);
    LoadingWatch watch(file_);
    std::string_view rest;  // of the line
    for (int i = 0; i < n; ++i) {
      watch.after(static_cast<size_t>(n));
      const int first = format.has_before ? 0 : i + !format.has_own;
      const int end = format.has_behind ? n : i + format.has_own;
      for (int j = first; j < end; ++j) {
        const double number = next_number(rest, i, j);
        if (!builder.add(i, j, number)) fail_at(i, j, MatrixBuilder::refusal(number));
      }
    }
    if (!trim(rest).empty())
      fail_here("expected the end of the line after " + all_read() + ", found " + shown(trim(rest)));
    return builder.finish();
  }

  // Splits the next word off the rest of a line, or off the next lines; false at the end.
  bool next_word(std::string_view& rest, std::string_view& word) {
    while ((word = take_word(rest)).empty()) {
      if (!lines_.next(rest)) return false;
    }
    return true;
  }

  double next_number(std::string_view& rest, int i, int j) {
    std::string_view word;
    if (!next_word(rest, word)) fail_at(i, j, "expected a number, found the end of the file");
    double number = 0.0;
    if (!parse_number(word, number)) fail_at(i, j, "expected a number, found " + shown(word));
    return number;
  }

  [[noreturn]] void fail_at(int i, int j, const std::string& message) const {
    fail_here("row " + std::to_string(i + 1) + ", column " + std::to_string(j + 1) + ": " + message);
  }

  // The next line that is not blank; false at EOF and at the end of the file.
  bool next_before_eof(std::string_view& line) {
    if (ended_ || !lines_.next_row(line)) return false;
    line = trim(line);
    ended_ = line == "EOF";
    return !ended_;
  }

  Row read_row(std::string_view line) const {
    std::array<std::string_view, 4> words;
    Row row{0, 0.0, 0.0, lines_.number()};
    if (split_words(line, words) != 3 || !parse_integer(words[0], row.id) || !parse_number(words[1], row.x) ||
        !parse_number(words[2], row.y))
      fail_here("expected \"id x y\", found " + shown(line));
    if (row.id < 1 || row.id > dimension_)
      fail_here("expected an id from 1 to " + dimension_text() + ", found " + std::to_string(row.id));
    if (std::fabs(row.x) > kLargestNumber || std::fabs(row.y) > kLargestNumber)
      fail_here("expected coordinates within +-1e100");
    if (metric_ == Metric::kGeo && !is_geographic(row.x, row.y))
      fail_here("expected a latitude within +-90 and a longitude within +-360 (GEO), found " +
                number_text(row.x) + " " + number_text(row.y));
    return row;
  }

  // x and y of each city.
  std::vector<double> read_coordinates() {
    std::vector<Row> rows;
    std::string_view line;
    while (std::cmp_less(rows.size(), dimension_) && next_before_eof(line)) rows.push_back(read_row(line));
    if (!std::cmp_equal(rows.size(), dimension_))
      fail_here("expected " + dimension_text() + " rows, found " + std::to_string(rows.size()));
    // There are as many rows as cities: if no id occurs twice, none is missing.
    std::vector<int64_t> line_of(rows.size(), 0);
    std::vector<double> coordinates(2 * rows.size());
    for (const Row& row : rows) {
      const auto city = static_cast<size_t>(row.id - 1);
      if (line_of[city] != 0)
        throw InputError(file_, row.line,
                         section_ + ": expected a new id, found " + std::to_string(row.id) + " as in line " +
                             std::to_string(line_of[city]));
      line_of[city] = row.line;
      coordinates[2 * city] = row.x;
      coordinates[2 * city + 1] = row.y;
    }
    return coordinates;
  }

  // Coordinates, demands and the depot, which must be the first node.
  void read_routing(Instance& instance) {
    instance.problem = problem_with(ItemFields::kCoordinatesAndDemand, {});
    if (is_matrix()) fail_here("expected coordinates of a CVRP; matrices are not supported");
    if (capacity_.empty()) fail_here("expected CAPACITY before it, found none");
    if (!parse_number(capacity_, instance.capacity) || instance.capacity < 0.0 ||
        instance.capacity > kLargestNumber) {
      throw InputError(file_, capacity_line_,
                       "CAPACITY: expected a number from 0 to 1e100, found " + shown(capacity_));
    }
    if (const std::string lost = lost_digits(capacity_, instance.capacity); !lost.empty())
      throw InputError(file_, capacity_line_, lost);
    const std::vector<double> places = read_coordinates();
    instance.values.resize(places.size() / 2 * 3);
    for (size_t i = 0; i < places.size(); ++i) instance.values[i / 2 * 3 + i % 2] = places[i];
    begin_section(kDemands);
    std::vector<bool> known(places.size() / 2, false);
    for (size_t row = 0; row < known.size(); ++row) {
      const auto [id, demand] = read_demand();
      if (known[id]) fail_here("expected a new id, found " + std::to_string(id + 1) + " again");
      known[id] = true;
      instance.values[3 * id + 2] = demand;
      if (const std::string wrong = wrong_demand(instance, id); !wrong.empty())
        fail_here("expected " + wrong + ", found " + number_text(demand));
    }
    begin_section(kDepots);
    std::string_view rest, word;
    for (const std::string_view expected : {"1", "-1"}) {
      if (!next_word(rest, word) || word != expected)
        fail_here("expected 1 and -1, the first node as the only depot; found " + shown(word));
    }
    if (!trim(rest).empty()) fail_here("expected the end of the line, found " + shown(trim(rest)));
  }

  void begin_section(std::string_view name) {
    std::string_view line;
    section_ = name;
    if (!next_before_eof(line) || key_of(line) != name)
      fail_here("expected it after the rows before, found " + (ended_ ? "EOF" : shown(line)));
  }

  std::pair<size_t, double> read_demand() {
    std::string_view line;
    if (!next_before_eof(line)) fail_here("expected " + dimension_text() + " rows");
    std::array<std::string_view, 3> words;
    int64_t id = 0;
    double demand = 0.0;
    if (split_words(line, words) != 2 || !parse_integer(words[0], id) || !parse_number(words[1], demand))
      fail_here("expected \"id demand\", found " + shown(line));
    if (id < 1 || id > dimension_)
      fail_here("expected an id from 1 to " + dimension_text() + ", found " + std::to_string(id));
    if (demand < 0.0 || demand > kLargestNumber) fail_here("expected a demand from 0 to 1e100");
    if (const std::string lost = lost_digits(words[1], demand); !lost.empty()) fail_here(lost);
    return {static_cast<size_t>(id - 1), demand};
  }

  std::string all_read() const {
    return is_matrix() ? "the numbers of " + dimension_text() + " cities" : dimension_text() + " rows";
  }

  void read_end() {
    std::string_view line;
    while (next_before_eof(line)) {
      if (key_of(line) == kFixed) {
        section_ = kFixed;
        read_forced();
        continue;
      }
      if (!is_skipped(key_of(line))) fail_here("expected EOF after " + all_read() + ", found " + shown(line));
      skip_rows();
    }
    if (!ended_) {
      warnings_.push_back(lines_.warning("EOF is missing; was the file cut short?"));
    } else if (lines_.next_filled(line)) {
      lines_.fail("expected nothing after EOF, found " + shown(trim(line)));
    }
  }

  const std::string& file_;
  const std::string_view bytes_;
  const std::string_view type_;
  TextReader lines_;
  std::string name_, section_, weight_format_;
  int64_t weight_format_line_ = 0;  // 0: not given
  std::optional<Metric> metric_;
  int64_t dimension_ = 0;  // 0: not given
  std::string capacity_;
  int64_t capacity_line_ = 0;
  std::string kind_;  // as TYPE says
  std::vector<std::array<int32_t, 2>> forced_;
  bool ended_ = false;  // EOF was read
  std::vector<std::string> warnings_;
};

std::string matrix_text(const DistanceMatrix& matrix) {
  std::string out = "\nEDGE_WEIGHT_FORMAT : FULL_MATRIX\nEDGE_WEIGHT_SECTION\n";
  for (int i = 0; i < matrix.n; ++i) {
    for (int j = 0; j < matrix.n; ++j) out += number_text(matrix.at(i, j)) + (j + 1 < matrix.n ? " " : "\n");
  }
  return out;
}

std::string forced_text(const Instance& instance) {
  if (instance.forced.empty()) return "";
  std::string out = std::string(kFixed) + "\n";
  for (const auto& [a, b] : instance.forced)
    out += std::to_string(a + 1) + " " + std::to_string(b + 1) + "\n";
  return out + "-1\n";
}

}  // namespace

InstanceFile parse_tsplib(InputFile& file, const ReadOptions& options) {
  return TsplibReader(file, "TSP").read_instance(options);
}

std::string write_tsplib(const InstanceBatch& instances) {
  if (instances.size() != 1 || !has_metric(problem_of(instances[0]).fields))
    throw OutputRefused("a TSPLIB file holds one instance with distances; use npy, npz, json or ndjson");
  const Instance& instance = instances[0];
  const bool is_cvrp = problem_of(instance).has_depot, is_path = is_open(instance.problem);
  if (instance.start >= 0 || instance.end >= 0)
    throw OutputRefused("a TSPLIB file does not hold the given ends of a path; use json");
  if (forbids_ways(instance)) throw OutputRefused("a TSPLIB file does not hold forbidden edges; use json");
  const bool is_scaled = instance.metric == Metric::kEuclidean;
  const double scale = is_scaled ? kScale : 1.0;
  std::string out = "NAME : " + printable(instance.id.empty() ? "pointsman" : instance.id) +
                    "\nTYPE : " + (is_path ? "HPP" : problem_of(instance).title) + "\n";
  if (is_scaled)
    out += "COMMENT : coordinates times 1000000, since EUC_2D rounds each distance to an integer\n";
  out += "DIMENSION : " + std::to_string(instance.n()) +
         "\nEDGE_WEIGHT_TYPE : " + metric_name(is_scaled ? Metric::kEuc2d : instance.metric);
  if (!instance.has_coordinates())
    return out + matrix_text(*instance.matrix) + forced_text(instance) + "EOF\n";
  if (is_cvrp) out += "\nCAPACITY : " + number_text(instance.capacity);
  out += "\nNODE_COORD_SECTION\n";
  for (int i = 0; i < instance.n(); ++i)
    out += std::to_string(i + 1) + " " + number_text(scale * instance.first(i)) + " " +
           number_text(scale * instance.second(i)) + "\n";
  if (is_cvrp) {
    out += std::string(kDemands) + "\n";
    for (int i = 0; i < instance.n(); ++i)
      out +=
          std::to_string(i + 1) + " " + number_text(instance.values[3 * static_cast<size_t>(i) + 2]) + "\n";
    out += std::string(kDepots) + "\n1\n-1\n";
  }
  return out + forced_text(instance) + "EOF\n";
}

SolutionBatch parse_tour(InputFile& file, const InstanceBatch& instances) {
  check_count(1, instances, file.name());
  Solution solution;
  solution.order = TsplibReader(file, "TOUR").read_tour();
  solution.objective = kNoNumber;
  return {solution};
}

// Writes what LKH writes: cities from 1, a tour in its canonical order.
std::string write_tour(const Answer& answer) {
  const Problem& problem = problem_of(answer.instances[0]);
  if (answer.solutions.size() != 1 || !problem.has_all_items || problem.has_depot)
    throw OutputRefused("a .tour file holds one TSP tour; use json, ndjson, npy or npz");
  const Instance& instance = answer.instances[0];
  const Solution& solution = answer.solutions[0];
  if (!has_answer(solution))
    throw OutputRefused(solution.status == Status::kUnsolved ? "no tour was found before the run was stopped"
                                                             : "every tour found takes a forbidden way");
  const std::string cost = objective_text(instance, solution.objective);
  std::string out =
      "NAME : " + printable(instance.id.empty() ? "tour" : instance.id) + "." + cost +
      ".tour\nCOMMENT : Length = " + cost + "\nCOMMENT : Found by pointsman " + answer.summary.version +
      "\nTYPE : TOUR\nDIMENSION : " + std::to_string(solution.order.size()) + "\nTOUR_SECTION\n";
  const bool has_ends = is_open(instance.problem);
  for (const int32_t city : has_ends ? solution.order : problem.canonical(solution.order))
    out += std::to_string(city + 1) + "\n";
  return out + "-1\nEOF\n";
}

// "Route #1: 3 2", customers from 1, and "Cost 12".
SolutionBatch parse_routes(InputFile& file, const InstanceBatch& instances) {
  check_count(1, instances, file.name());
  if (!problem_of(instances[0]).has_depot)
    throw InputError(
        file.name(), 0,
        "expected a CVRP to these routes, found a " + std::string(problem_of(instances[0]).title));
  TextReader lines(file.read_rest(), file.name());
  Solution solution;
  solution.objective = kNoNumber;
  for (std::string_view line; lines.next_row(line);) {
    const std::string_view first = take_word(line);
    if (lower_case(first) == "cost") {
      if (!parse_number(trim(line), solution.objective))
        lines.fail("expected a number behind Cost, found " + shown(trim(line)));
      continue;
    }
    const size_t colon = line.find(':');
    if (lower_case(first) != "route" || colon == std::string_view::npos)
      lines.fail("expected \"Route #1: 3 2 ..\" or \"Cost 12\", found " + shown(first));
    line.remove_prefix(colon + 1);
    if (!solution.order.empty()) solution.order.push_back(0);
    for (std::string_view word; !(word = take_word(line)).empty();) {
      int64_t customer = 0;
      if (!parse_integer(word, customer) || customer < 1 || customer > std::numeric_limits<int32_t>::max())
        lines.fail("expected a customer, from 1, found " + shown(word));
      solution.order.push_back(static_cast<int32_t>(customer));
    }
  }
  return {solution};
}

std::string write_routes(const Answer& answer) {
  if (answer.solutions.size() != 1 || !problem_of(answer.instances[0]).has_depot)
    throw OutputRefused("a .sol file holds the routes of one CVRP; use json, ndjson, npy or npz");
  const Solution& solution = answer.solutions[0];
  if (!has_answer(solution)) throw OutputRefused("no routes were found before the run was stopped");
  std::string out;
  int number = 0;
  for (const std::vector<int32_t>& route : routes_of(solution.order)) {
    out += "Route #" + std::to_string(++number) + ":";
    for (const int32_t customer : route) out += " " + std::to_string(customer);
    out += "\n";
  }
  return out + "Cost " + objective_text(answer.instances[0], solution.objective) + "\n";
}

const char* metric_name(Metric metric) { return kMetricNames[static_cast<size_t>(metric)].data(); }

std::optional<Metric> find_metric(std::string_view name) {
  const auto found = std::find(kMetricNames.begin(), kMetricNames.end(), name);
  if (found == kMetricNames.end()) return std::nullopt;
  return static_cast<Metric>(found - kMetricNames.begin());
}

}  // namespace pointsman
