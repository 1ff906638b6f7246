// SPDX-License-Identifier: Apache-2.0
// TSPLIB instances, by coordinates or by matrices, with fixed edges (G. Reinelt, "TSPLIB 95", sections 1 and
// 2), and CVRP instances as CVRPLIB has them.
#include <cmath>
#include <limits>
#include <unordered_map>

#include "engine/problem/fixed_edges.h"
#include "engine/problem/metric.h"
#include "host/formats/formats.h"
#include "host/formats/tsplib_file.h"
#include "models/tools/atomic_file.h"
#include "models/tools/json_text.h"

namespace pointsman {
namespace {

constexpr double kScale = 1e6;  // of coordinates whose metric TSPLIB does not have
constexpr std::array<std::string_view, 12> kMetricNames = {
    "EUCLIDEAN", "EUC_2D",   "CEIL_2D", "GEO",       "ATT",          "MAN_2D",
    "MAX_2D",    "EXPLICIT", "GEOM",    "HAVERSINE", "HAVERSINE_KM", "FLOOR_2D"};
// Distances in space, which become a matrix.
constexpr std::array<std::string_view, 3> kSpaceNames = {"EUC_3D", "MAN_3D", "MAX_3D"};
constexpr int kMostInSpace = 5000;               // cities: 100 MB
constexpr std::string_view kExact = "EXACT_2D";  // VRPLIB's name of EUCLIDEAN
// Keywords that change nothing for an instance.
constexpr std::array<std::string_view, 4> kIgnoredKeys = {"COMMENT", "NODE_COORD_TYPE", "DISPLAY_DATA_TYPE",
                                                          "EDGE_DATA_FORMAT"};
constexpr std::string_view kCoordinates = "NODE_COORD_SECTION", kWeights = "EDGE_WEIGHT_SECTION",
                           kDisplay = "DISPLAY_DATA_SECTION", kDemands = "DEMAND_SECTION",
                           kDepots = "DEPOT_SECTION", kFixed = "FIXED_EDGES_SECTION";

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

std::string supported_types() {
  return joined(kMetricNames, ", ") + ", " + joined(kSpaceNames, ", ") + " or " + std::string(kExact);
}

// The ids of n cities: 1 to n, or others.
class CityIds {
 public:
  explicit CityIds(int64_t n) : n_(n) {}
  // Of rows whose ids are not 1 to n.
  explicit CityIds(std::vector<std::string> names)
      : n_(static_cast<int64_t>(names.size())),
        names_(std::make_shared<const std::vector<std::string>>(std::move(names))) {
    for (size_t city = 0; city < names_->size(); ++city) numbers_.emplace((*names_)[city], city);
  }

  // The city with this id; -1: none.
  int32_t find(std::string_view id) const {
    if (names_) {
      const auto found = numbers_.find(printable(id));
      return found == numbers_.end() ? -1 : found->second;
    }
    int64_t number = 0;
    return parse_integer(id, number) && number >= 1 && number <= n_ ? static_cast<int32_t>(number - 1) : -1;
  }
  std::string text(int32_t city) const { return names_ ? (*names_)[city] : std::to_string(city + 1); }
  // As a message says what was expected.
  std::string expected() const {
    return names_ ? "an id of " + std::string(kCoordinates)
                  : "an id from 1 to DIMENSION = " + std::to_string(n_);
  }
  const std::shared_ptr<const std::vector<std::string>>& names() const { return names_; }

 private:
  int64_t n_;
  std::shared_ptr<const std::vector<std::string>> names_;  // null: 1 to n
  std::unordered_map<std::string_view, int32_t> numbers_;
};

class TsplibReader {
 public:
  explicit TsplibReader(InputFile& file)
      : name_(file.name()), bytes_(file.read_rest()), file_(split_tsplib(bytes_, name_)) {}

  InstanceFile read(const ReadOptions& options) {
    for (const TsplibFile::Keyword& keyword : file_.keywords) read_keyword(keyword);
    if (!metric_ && weight_format_.line != 0 && file_.find(kWeights)) metric_ = Metric::kExplicit;
    if (!metric_ && file_.find(kCoordinates)) metric_ = options.metric;
    check_sections();
    ids_ = CityIds(dimension_);
    Instance instance;
    instance.metric = *metric_;
    instance.problem = problem_with(ItemFields::kCoordinates, options);
    if (kind_ == "HPP") instance.problem = ProblemKind::kPath;
    if (kind_ == "ATSP" && instance.problem == ProblemKind::kTsp) instance.problem = ProblemKind::kAtsp;
    if (kind_ == "CVRP") {
      read_routing(instance);
    } else if (is_matrix()) {
      set_matrix(instance, read_matrix(), note_);
    } else {
      read_cities(instance);
    }
    check_kind(instance);
    if (const TsplibFile::Section* fixed = file_.find(kFixed)) read_forced(*fixed, instance);
    instance.names = ids_.names();
    instance.first_id = 1;
    instance.id = title_.empty() ? file_stem(name_) : title_;
    if (!note_.empty()) warnings_.push_back(name_ + ": " + note_);
    if (!file_.has_end)
      warnings_.push_back(name_ + ":" + std::to_string(file_.last_line) +
                          ": EOF is missing; was the file cut short?");
    return {{instance}, warnings_};
  }

 private:
  struct Row {
    std::string_view id;
    std::array<double, 3> place;
    int64_t line;
  };

  // The rows of a section, and messages about them.
  class Rows : public TextReader {
   public:
    Rows(const TsplibFile::Section& section, const std::string& file)
        : TextReader(section.rows, file, section.line), name_(section.name) {}
    [[noreturn]] void fail(const std::string& message) const { TextReader::fail(name_ + ": " + message); }

    bool next(std::string_view& line) {
      if (!next_row(line)) return false;
      line = trim(line);
      return true;
    }
    // Splits the next word off the rest of a line, or off the next lines; false at the end.
    bool next_word(std::string_view& rest, std::string_view& word) {
      while ((word = take_word(rest)).empty()) {
        if (!next(rest)) return false;
      }
      return true;
    }
    // -1 may end any section.
    void expect_end(std::string_view rest, const std::string& after) {
      bool is_ended = trim(rest) == "-1";
      if (!is_ended && !trim(rest).empty())
        fail("expected the end of the line" + after + ", found " + shown(trim(rest)));
      for (std::string_view line; next(line); is_ended = true) {
        if (is_ended || line != "-1")
          fail("expected the end of the section" + after + ", found " + shown(line));
      }
    }

   private:
    const std::string& name_;
  };

  [[noreturn]] void fail(int64_t line, const std::string& message) const {
    throw InputError(name_, line, message);
  }
  std::string dimension_text() const { return "DIMENSION = " + std::to_string(dimension_); }
  bool is_matrix() const { return metric_ == Metric::kExplicit && space_.empty(); }
  int64_t data_line() const { return file_.find(is_matrix() ? kWeights : kCoordinates)->line; }

  void read_keyword(const TsplibFile::Keyword& keyword) {
    const std::string& key = keyword.key;
    const std::string_view value = keyword.value;
    const int64_t line = keyword.line;
    const auto fail_expected = [&](const std::string& expected) {
      fail(line, key + ": expected " + expected + ", found " + shown(value));
    };
    const bool is_twice = (key == "CAPACITY" && capacity_.line != 0) ||
                          (key == "DIMENSION" && dimension_ != 0) || (key == "EDGE_WEIGHT_TYPE" && metric_);
    if (is_twice) fail(line, key + ": given twice");
    if (key == "NAME") {
      title_ = value;
    } else if (key == "TYPE") {
      std::string_view rest = value;
      kind_ = upper_case(take_word(rest));
      if (kind_ != "TSP" && kind_ != "ATSP" && kind_ != "HPP" && kind_ != "CVRP")
        fail_expected("TSP, ATSP, HPP or CVRP");
    } else if (key == "CAPACITY") {
      capacity_ = keyword;
    } else if (key == "DISTANCE" || key == "SERVICE_TIME") {
      if (kind_ == "CVRP") fail(line, key + ": this limit on routes is not supported");
    } else if (key == "DIMENSION") {
      if (!parse_integer(value, dimension_) || dimension_ < 1 || dimension_ > kLargestSize)
        fail_expected("an integer from 1 to " + std::to_string(kLargestSize));
    } else if (key == "EDGE_WEIGHT_TYPE") {
      read_metric(keyword);
    } else if (key == "EDGE_WEIGHT_FORMAT") {
      weight_format_ = keyword;
    } else if (std::ranges::find(kIgnoredKeys, key) == kIgnoredKeys.end()) {
      warnings_.push_back(name_ + ":" + std::to_string(line) + ": ignoring the unknown keyword " +
                          shown(key));
    }
  }

  void read_metric(const TsplibFile::Keyword& keyword) {
    const std::string type = upper_case(keyword.value);
    metric_ = type == kExact ? Metric::kEuclidean : find_metric(type);
    if (std::ranges::find(kSpaceNames, type) != kSpaceNames.end()) {
      metric_ = Metric::kExplicit;
      space_ = type;
    }
    if (!metric_)
      fail(keyword.line,
           "EDGE_WEIGHT_TYPE: expected one of " + supported_types() + ", found " + shown(keyword.value));
  }

  // That there is what the specification promises, and nothing that would be passed over.
  void check_sections() const {
    const std::string_view wanted =
        is_matrix() || (!metric_ && file_.find(kWeights) && !file_.find(kCoordinates)) ? kWeights
                                                                                       : kCoordinates;
    for (const TsplibFile::Section& section : file_.sections) {
      const bool is_known = section.name == wanted || section.name == kDisplay || section.name == kFixed ||
                            (section.name == kCoordinates && is_matrix()) ||
                            (kind_ == "CVRP" && (section.name == kDemands || section.name == kDepots));
      if (!is_known)
        fail(section.line,
             shown(section.name) + ": this section is not supported; expected " + std::string(wanted));
    }
    const TsplibFile::Section* const section = file_.find(wanted);
    if (!section) fail(file_.last_line, "expected " + std::string(wanted) + ", found the end of the file");
    const auto fail_without = [&](const std::string& key) {
      fail(section->line, section->name + ": expected " + key + ", found none");
    };
    if (dimension_ == 0) fail_without("DIMENSION");
    if (!metric_) fail_without("EDGE_WEIGHT_TYPE (" + supported_types() + ") or --metric");
  }

  // Only TYPE ATSP has ways back that differ.
  void check_kind(const Instance& instance) const {
    const int64_t line = data_line();
    if (kind_ == "ATSP" && !is_matrix()) fail(line, "expected EDGE_WEIGHT_TYPE EXPLICIT of an ATSP");
    if (kind_ != "ATSP" && instance.problem == ProblemKind::kAtsp)
      fail(line, std::string(kWeights) + ": " + asymmetry_text(*instance.matrix, 1, "TYPE ATSP"));
  }

  // Pairs of ids until -1; a line may have several.
  void read_forced(const TsplibFile::Section& section, Instance& instance) const {
    Rows rows(section, name_);
    if (instance.problem != ProblemKind::kTsp) rows.fail("is not for TYPE " + kind_);
    std::string_view rest, word;
    std::vector<int64_t> lines;  // of the edges
    while (rows.next_word(rest, word) && word != "-1") {
      std::array<int32_t, 2> edge;
      for (size_t end = 0; end < 2; ++end) {
        if (end == 1) rows.next_word(rest, word);
        edge[end] = ids_.find(word);
        if (edge[end] < 0)
          rows.fail("expected two ids, each " + ids_.expected() + ", or -1, found " + shown(word));
      }
      instance.forced.push_back(edge);
      lines.push_back(rows.number());
    }
    rows.expect_end(rest, "");
    size_t at = 0;
    if (const std::string wrong = wrong_edges(instance.n(), instance.forced, at); !wrong.empty()) {
      const auto [a, b] = instance.forced[at];
      fail(lines[at], section.name + ": expected " + wrong + ", found " + ids_.text(a) + " " + ids_.text(b));
    }
  }

  const WeightFormat& weight_format() const {
    const std::string names = joined(kWeightFormats, ", ", &WeightFormat::name, " or ");
    if (weight_format_.line == 0)
      fail(file_.find(kWeights)->line,
           std::string(kWeights) + ": expected EDGE_WEIGHT_FORMAT (" + names + "), found none");
    const auto found =
        std::ranges::find(kWeightFormats, upper_case(weight_format_.value), &WeightFormat::name);
    if (found != kWeightFormats.end()) return *found;
    fail(weight_format_.line,
         "EDGE_WEIGHT_FORMAT: expected " + names + ", found " + shown(weight_format_.value));
  }

  // Line breaks between the numbers have no meaning.
  std::shared_ptr<const DistanceMatrix> read_matrix() const {
    const WeightFormat& format = weight_format();
    const int n = static_cast<int>(dimension_);
    MatrixBuilder builder(n, bytes_.size() / 2);
    LoadingWatch watch(name_);
    Rows rows(*file_.find(kWeights), name_);
    std::string_view rest, word;  // of the line
    for (int i = 0; i < n; ++i) {
      watch.after(static_cast<size_t>(n));
      const int first = format.has_before ? 0 : i + !format.has_own;
      const int end = format.has_behind ? n : i + format.has_own;
      for (int j = first; j < end; ++j) {
        const auto fail_at = [&](const std::string& message) {
          rows.fail("row " + std::to_string(i + 1) + ", column " + std::to_string(j + 1) + ": " + message);
        };
        double number = 0.0;
        if (!rows.next_word(rest, word)) fail_at("expected a number, found the end of the section");
        if (!parse_number(word, number)) fail_at("expected a number, found " + shown(word));
        if (!builder.add(i, j, number)) fail_at(MatrixBuilder::refusal(number));
      }
    }
    rows.expect_end(rest, " after the numbers of " + dimension_text() + " cities");
    return builder.finish();
  }

  // "id x y", in space "id x y z".
  Row read_row(std::string_view line, const Rows& rows) const {
    const size_t axes = space_.empty() ? 2 : 3;
    std::array<std::string_view, 5> words;
    Row row{{}, {}, rows.number()};
    bool is_row = split_words(line, words) == axes + 1;
    for (size_t axis = 0; is_row && axis < axes; ++axis)
      is_row = parse_number(words[axis + 1], row.place[axis]);
    if (!is_row)
      rows.fail(std::string("expected \"id x y") + (axes == 3 ? " z" : "") + "\", found " + shown(line));
    row.id = words[0];
    if (std::ranges::any_of(row.place, [](double x) { return std::fabs(x) > kLargestNumber; }))
      rows.fail("expected coordinates within +-1e100");
    if (is_on_sphere(*metric_) && !is_geographic(row.place[0], row.place[1]))
      rows.fail("expected " + degrees_expected(*metric_) + ", found " + number_text(row.place[0]) + " " +
                number_text(row.place[1]));
    return row;
  }

  // The rows in the order of the cities, whose ids they set: ids from 1 or 0 to n - 1 more count the cities,
  // others name them in file order.
  std::vector<Row> read_rows() {
    Rows rows(*file_.find(kCoordinates), name_);
    std::vector<Row> found;
    std::string_view line;
    while (std::cmp_less(found.size(), dimension_) && rows.next(line)) {
      if (line == "-1")
        rows.fail("expected " + dimension_text() + " rows, found " + std::to_string(found.size()));
      found.push_back(read_row(line, rows));
    }
    if (!std::cmp_equal(found.size(), dimension_))
      rows.fail("expected " + dimension_text() + " rows, found " + std::to_string(found.size()));
    rows.expect_end("", " after " + dimension_text() + " rows");
    sort_rows(found);
    return found;
  }

  void sort_rows(std::vector<Row>& rows) {
    const auto fail_twice = [&](const Row& first, const Row& second) {
      fail(second.line, std::string(kCoordinates) + ": expected a new id, found " + printable(second.id) +
                            " as in line " + std::to_string(first.line));
    };
    std::vector<int64_t> numbers(rows.size());
    bool are_numbers = true;
    for (size_t i = 0; i < rows.size() && are_numbers; ++i)
      are_numbers = parse_integer(rows[i].id, numbers[i]);
    const auto [least, largest] = std::ranges::minmax(numbers);
    if (are_numbers && (least == 0 || least == 1) && largest - least < dimension_) {
      std::vector<Row> in_order(rows.size(), Row{{}, {}, 0});
      for (size_t i = 0; i < rows.size(); ++i) {
        Row& place = in_order[static_cast<size_t>(numbers[i] - least)];
        if (place.line != 0) fail_twice(place, rows[i]);
        place = rows[i];
      }
      rows = std::move(in_order);
      if (least == 1) return;
    }
    std::vector<std::string> names;
    for (const Row& row : rows) names.push_back(printable(row.id));
    ids_ = CityIds(std::move(names));
    for (size_t i = 0; i < rows.size(); ++i) {
      const int32_t first = ids_.find(rows[i].id);
      if (std::cmp_not_equal(first, i)) fail_twice(rows[first], rows[i]);
    }
  }

  void read_cities(Instance& instance) {
    const std::vector<Row> rows = read_rows();
    if (!space_.empty()) return set_matrix(instance, distances_in_space(rows), note_);
    instance.values.reserve(2 * rows.size());
    for (const Row& row : rows) instance.values.insert(instance.values.end(), {row.place[0], row.place[1]});
  }

  // TSPLIB 95, section 2.1 to 2.3, each rounded to an integer.
  std::shared_ptr<const DistanceMatrix> distances_in_space(const std::vector<Row>& rows) const {
    const auto distance = [&](const Row& a, const Row& b) {
      double squares = 0.0, sum = 0.0, largest = 0.0;
      for (size_t axis = 0; axis < 3; ++axis) {
        const double d = std::fabs(a.place[axis] - b.place[axis]);
        squares += d * d;
        sum += d;
        largest = std::max(largest, std::floor(d + 0.5));
      }
      if (space_ == "MAX_3D") return largest;
      return std::floor((space_ == "MAN_3D" ? sum : std::sqrt(squares)) + 0.5);
    };
    if (dimension_ > kMostInSpace)
      fail(file_.find(kCoordinates)->line,
           "expected at most " + std::to_string(kMostInSpace) + " cities of " + space_ +
               ", whose distances are held as a matrix; found " + std::to_string(dimension_));
    MatrixBuilder builder(static_cast<int>(dimension_), rows.size() * rows.size());
    LoadingWatch watch(name_);
    for (int i = 0; i < builder.n(); ++i) {
      watch.after(rows.size());
      for (int j = i + 1; j < builder.n(); ++j) {
        if (const double d = distance(rows[i], rows[j]); !builder.add(i, j, d))
          fail(rows[j].line,
               std::string(kCoordinates) + ": expected distances within 1e100, found " + number_text(d));
      }
    }
    return builder.finish();
  }

  // Coordinates, demands and the depot, which must be the first node.
  void read_routing(Instance& instance) {
    const int64_t line = data_line();
    instance.problem = problem_with(ItemFields::kCoordinatesAndDemand, {});
    if (metric_ == Metric::kExplicit)
      fail(line, "expected coordinates in the plane of a CVRP; matrices are not supported");
    if (capacity_.line == 0) fail(line, "expected CAPACITY, found none");
    if (!parse_number(capacity_.value, instance.capacity) || instance.capacity < 0.0 ||
        instance.capacity > kLargestNumber)
      fail(capacity_.line, "CAPACITY: expected a number from 0 to 1e100, found " + shown(capacity_.value));
    if (const std::string lost = lost_digits(capacity_.value, instance.capacity); !lost.empty())
      fail(capacity_.line, lost);
    for (const Row& row : read_rows())
      instance.values.insert(instance.values.end(), {row.place[0], row.place[1], 0.0});
    for (const std::string_view name : {kDemands, kDepots}) {
      if (!file_.find(name)) fail(file_.last_line, "expected " + std::string(name) + ", found none");
    }
    read_demands(instance);
    Rows rows(*file_.find(kDepots), name_);
    std::string_view rest, word;
    if (!rows.next_word(rest, word) || ids_.find(word) != 0 || (rows.next_word(rest, word) && word != "-1"))
      rows.fail("expected " + ids_.text(0) + " and -1, the first node as the only depot; found " +
                shown(word));
    rows.expect_end(rest, "");
  }

  void read_demands(Instance& instance) const {
    Rows rows(*file_.find(kDemands), name_);
    std::vector<bool> known(static_cast<size_t>(instance.n()), false);
    std::string_view line;
    std::array<std::string_view, 3> words;
    for (size_t row = 0; row < known.size(); ++row) {
      double demand = 0.0;
      if (!rows.next(line)) rows.fail("expected " + dimension_text() + " rows, found " + std::to_string(row));
      if (split_words(line, words) != 2 || !parse_number(words[1], demand))
        rows.fail("expected \"id demand\", found " + shown(line));
      const int32_t city = ids_.find(words[0]);
      if (city < 0) rows.fail("expected " + ids_.expected() + ", found " + printable(words[0]));
      if (demand < 0.0 || demand > kLargestNumber) rows.fail("expected a demand from 0 to 1e100");
      if (const std::string lost = lost_digits(words[1], demand); !lost.empty()) rows.fail(lost);
      if (known[city]) rows.fail("expected a new id, found " + ids_.text(city) + " again");
      known[city] = true;
      instance.values[3 * static_cast<size_t>(city) + 2] = demand;
      if (const std::string wrong = wrong_demand(instance, city); !wrong.empty())
        rows.fail("expected " + wrong + ", found " + number_text(demand));
    }
    rows.expect_end("", " after " + dimension_text() + " rows");
  }

  const std::string& name_;
  const std::string_view bytes_;
  const TsplibFile file_;
  std::string title_, kind_, space_;              // space_: the metric of three coordinates; empty: another
  TsplibFile::Keyword capacity_, weight_format_;  // line 0: not given
  std::optional<Metric> metric_;
  int64_t dimension_ = 0;  // 0: not given
  CityIds ids_{0};
  std::vector<std::string> warnings_;
  std::string note_;
};

std::string matrix_text(const DistanceMatrix& matrix) {
  std::string out = "\nEDGE_WEIGHT_FORMAT : FULL_MATRIX\nEDGE_WEIGHT_SECTION\n";
  for (int i = 0; i < matrix.n; ++i) {
    for (int j = 0; j < matrix.n; ++j) out += number_text(matrix.at(i, j)) + (j + 1 < matrix.n ? " " : "\n");
  }
  return out;
}

// The ids of the cities: their names where all can be ids, else from 1. Rows of a matrix have none.
class WrittenIds {
 public:
  explicit WrittenIds(const Instance& instance)
      : names_(instance.has_coordinates() ? names_as_ids(instance) : nullptr) {}
  std::string operator()(int city) const { return names_ ? (*names_)[city] : std::to_string(city + 1); }

 private:
  const std::vector<std::string>* names_;
};

std::string forced_text(const Instance& instance, const WrittenIds& ids) {
  if (instance.forced.empty()) return "";
  std::string out = std::string(kFixed) + "\n";
  for (const auto& [a, b] : instance.forced) out += ids(a) + " " + ids(b) + "\n";
  return out + "-1\n";
}

}  // namespace

InstanceFile parse_tsplib(InputFile& file, const ReadOptions& options) {
  return TsplibReader(file).read(options);
}

std::string write_tsplib(const InstanceBatch& instances) {
  if (instances.size() != 1 || !has_metric(problem_of(instances[0]).fields) ||
      problem_of(instances[0]).fields == ItemFields::kCoordinatesAndWindows)
    throw OutputRefused(
        "a TSPLIB file holds one instance with distances and no time windows; use npy, npz, json or ndjson");
  const Instance& instance = instances[0];
  const bool is_cvrp = problem_of(instance).has_depot, is_path = is_open(instance.problem);
  if (instance.start >= 0 || instance.end >= 0)
    throw OutputRefused("a TSPLIB file does not hold the given ends of a path; use json");
  if (forbids_ways(instance)) throw OutputRefused("a TSPLIB file does not hold forbidden edges; use json");
  const WrittenIds ids(instance);
  const bool is_scaled = instance.metric == Metric::kEuclidean;
  const double scale = is_scaled ? kScale : 1.0;
  std::string out = "NAME : " + printable(instance.id.empty() ? "pointsman" : instance.id) +
                    "\nTYPE : " + (is_path ? "HPP" : problem_of(instance).title) + "\n";
  if (is_scaled)
    out += "COMMENT : coordinates times 1000000, since EUC_2D rounds each distance to an integer\n";
  out += "DIMENSION : " + std::to_string(instance.n()) +
         "\nEDGE_WEIGHT_TYPE : " + metric_name(is_scaled ? Metric::kEuc2d : instance.metric);
  if (!instance.has_coordinates())
    return out + matrix_text(*instance.matrix) + forced_text(instance, ids) + "EOF\n";
  if (is_cvrp) out += "\nCAPACITY : " + number_text(instance.capacity);
  out += "\nNODE_COORD_SECTION\n";
  for (int i = 0; i < instance.n(); ++i)
    out += ids(i) + " " + number_text(scale * instance.first(i)) + " " +
           number_text(scale * instance.second(i)) + "\n";
  if (is_cvrp) {
    out += std::string(kDemands) + "\n";
    for (int i = 0; i < instance.n(); ++i)
      out += ids(i) + " " + number_text(instance.values[3 * static_cast<size_t>(i) + 2]) + "\n";
    out += std::string(kDepots) + "\n" + ids(0) + "\n-1\n";
  }
  return out + forced_text(instance, ids) + "EOF\n";
}

std::vector<std::string_view> coordinate_metrics() {
  std::vector<std::string_view> names(kMetricNames.begin(), kMetricNames.end());
  std::erase(names, "EXPLICIT");
  return names;
}

std::string metric_names() { return joined(coordinate_metrics(), ", ", {}, " or "); }

std::string degrees_expected(Metric metric) {
  return std::string("a latitude within +-90 and a longitude within +-360 (") + metric_name(metric) + ")";
}

const char* metric_name(Metric metric) { return kMetricNames[static_cast<size_t>(metric)].data(); }

std::optional<Metric> find_metric(std::string_view name) {
  const auto found = std::find(kMetricNames.begin(), kMetricNames.end(), name);
  if (found == kMetricNames.end()) return std::nullopt;
  return static_cast<Metric>(found - kMetricNames.begin());
}

}  // namespace pointsman
