// SPDX-License-Identifier: Apache-2.0
// TSPLIB95 instances by coordinates, and tours (G. Reinelt, "TSPLIB 95", sections 1 and 2).
#include <array>
#include <cmath>
#include <limits>

#include "host/files/formats.h"
#include "host/files/text_scan.h"

namespace pointsman {

namespace {

constexpr std::string_view kSupportedTypes = "EUC_2D, CEIL_2D, GEO, ATT";
// Keywords that change nothing for an instance given by coordinates.
constexpr std::array<std::string_view, 4> kIgnoredKeys = {"COMMENT", "EDGE_WEIGHT_FORMAT", "NODE_COORD_TYPE",
                                                          "DISPLAY_DATA_TYPE"};

// The header and the walk over the lines are the same for instances and tours.
class TsplibReader {
 public:
  TsplibReader(std::string_view bytes, const std::string& file) : file_(file), lines_(bytes) {}

  InstanceFile read_instance();
  std::vector<int32_t> read_tour();

 private:
  struct Row {
    int64_t id;
    double x, y;
    int64_t line;
  };

  [[noreturn]] void fail(const std::string& message) const {
    throw InputError(file_, lines_.number(), message);
  }

  // Reads the header up to the section of that name; what follows are its rows.
  void read_header(std::string_view section, std::string_view type);
  void read_key(std::string_view key, std::string_view value, std::string_view wanted_type);
  void read_dimension(std::string_view value);
  std::vector<Row> read_rows();
  Row read_row(std::string_view line) const;
  void place_rows(const std::vector<Row>& rows, Instance& instance) const;
  void check_point(const Row& row) const;
  void read_end();

  const std::string& file_;
  LineScanner lines_;
  std::string name_, edge_weight_type_;
  int64_t dimension_ = 0;  // 0: not given yet
  bool ended_ = false;     // EOF seen
  std::vector<std::string> warnings_;
};

void TsplibReader::read_dimension(std::string_view value) {
  if (dimension_ != 0) fail("DIMENSION: given twice");
  if (!parse_integer(value, dimension_) || dimension_ < 1 || dimension_ > kLargestSize) {
    fail("DIMENSION: expected an integer from 1 to " + std::to_string(kLargestSize) + ", found " +
         shown(value));
  }
}

void TsplibReader::read_key(std::string_view key, std::string_view value, std::string_view wanted_type) {
  if (key == "NAME") {
    name_ = value;
  } else if (key == "TYPE") {
    std::array<std::string_view, 1> word;
    if (split_words(value, word) == 0 || word[0] != wanted_type) {
      fail("TYPE: expected " + std::string(wanted_type) + ", found " + shown(value));
    }
  } else if (key == "DIMENSION") {
    read_dimension(value);
  } else if (key == "EDGE_WEIGHT_TYPE") {
    if (!edge_weight_type_.empty()) fail("EDGE_WEIGHT_TYPE: given twice");
    edge_weight_type_ = value;
    if (value != "EUC_2D" && value != "CEIL_2D" && value != "GEO" && value != "ATT") {
      fail("EDGE_WEIGHT_TYPE: expected one of " + std::string(kSupportedTypes) + ", found " + shown(value));
    }
  } else {
    for (const std::string_view ignored : kIgnoredKeys) {
      if (key == ignored) return;
    }
    warnings_.push_back(file_ + ":" + std::to_string(lines_.number()) + ": unknown keyword " + shown(key) +
                        " passed over");
  }
}

void TsplibReader::read_header(std::string_view section, std::string_view type) {
  std::string_view line;
  while (lines_.next(line)) {
    line = trim(line);
    if (line.empty()) continue;
    const size_t colon = line.find(':');
    const std::string_view key = trim(line.substr(0, colon));
    if (key == section) {
      if (colon != std::string_view::npos && !trim(line.substr(colon + 1)).empty()) {
        fail(std::string(section) + ": expected the end of the line, found " + shown(line.substr(colon + 1)));
      }
      return;
    }
    if (key.size() > 8 && key.substr(key.size() - 8) == "_SECTION") {
      fail(shown(key) + ": this section is not supported; expected " + std::string(section));
    }
    if (key == "EOF") break;
    if (colon == std::string_view::npos || key.empty()) fail("expected \"KEY: value\", found " + shown(line));
    read_key(key, trim(line.substr(colon + 1)), type);
  }
  fail("expected " + std::string(section) + ", found the end of the file");
}

void TsplibReader::check_point(const Row& row) const {
  if (std::fabs(row.x) > kLargestNumber || std::fabs(row.y) > kLargestNumber) {
    fail("NODE_COORD_SECTION: expected coordinates within +-1e100");
  }
  if (edge_weight_type_ == "GEO" && (std::fabs(row.x) > 90.0 || std::fabs(row.y) > 360.0)) {
    fail("NODE_COORD_SECTION: expected a latitude within +-90 and a longitude within +-360 (GEO), found " +
         number_text(row.x) + " " + number_text(row.y));
  }
}

TsplibReader::Row TsplibReader::read_row(std::string_view line) const {
  std::array<std::string_view, 4> words;
  Row row{0, 0.0, 0.0, lines_.number()};
  if (split_words(line, words) != 3 || !parse_integer(words[0], row.id) || !parse_number(words[1], row.x) ||
      !parse_number(words[2], row.y)) {
    fail("NODE_COORD_SECTION: expected \"id x y\", found " + shown(line));
  }
  if (row.id < 1 || row.id > dimension_) {
    fail("NODE_COORD_SECTION: expected an id from 1 to DIMENSION = " + std::to_string(dimension_) +
         ", found " + std::to_string(row.id));
  }
  check_point(row);
  return row;
}

std::vector<TsplibReader::Row> TsplibReader::read_rows() {
  std::vector<Row> rows;
  std::string_view line;
  while (lines_.next(line)) {
    line = trim(line);
    if (line.empty()) continue;
    if (line == "EOF") {
      ended_ = true;
      break;
    }
    if (static_cast<int64_t>(rows.size()) == dimension_) {
      fail("NODE_COORD_SECTION: expected EOF after DIMENSION = " + std::to_string(dimension_) +
           " rows, found " + shown(line));
    }
    rows.push_back(read_row(line));
  }
  if (static_cast<int64_t>(rows.size()) != dimension_) {
    fail("NODE_COORD_SECTION: expected DIMENSION = " + std::to_string(dimension_) + " rows, found " +
         std::to_string(rows.size()));
  }
  return rows;
}

// As many rows as cities and no id twice: none is missing.
void TsplibReader::place_rows(const std::vector<Row>& rows, Instance& instance) const {
  std::vector<int64_t> line_of(rows.size(), 0);
  instance.values.resize(2 * rows.size());
  for (const Row& row : rows) {
    const auto city = static_cast<size_t>(row.id - 1);
    if (line_of[city] != 0) {
      throw InputError(file_, row.line,
                       "NODE_COORD_SECTION: id " + std::to_string(row.id) + " was given in line " +
                           std::to_string(line_of[city]) + " already");
    }
    line_of[city] = row.line;
    instance.values[2 * city] = row.x;
    instance.values[2 * city + 1] = row.y;
  }
}

void TsplibReader::read_end() {
  if (!ended_) {
    warnings_.push_back(file_ + ":" + std::to_string(lines_.number()) +
                        ": EOF is missing; was the file cut short?");
    return;
  }
  std::string_view line;
  while (lines_.next(line)) {
    if (!trim(line).empty()) fail("expected nothing after EOF, found " + shown(trim(line)));
  }
}

InstanceFile TsplibReader::read_instance() {
  read_header("NODE_COORD_SECTION", "TSP");
  if (dimension_ == 0) fail("NODE_COORD_SECTION: expected DIMENSION before it, found none");
  if (edge_weight_type_.empty()) {
    fail("NODE_COORD_SECTION: expected EDGE_WEIGHT_TYPE (" + std::string(kSupportedTypes) +
         ") before it, found none");
  }
  Instance instance;
  place_rows(read_rows(), instance);
  read_end();
  instance.id = name_.empty() ? file_stem(file_) : name_;
  for (const Metric metric : {Metric::kEuc2d, Metric::kCeil2d, Metric::kGeo, Metric::kAtt}) {
    if (edge_weight_type_ == metric_name(metric)) instance.metric = metric;
  }
  InstanceFile out;
  out.instances.push_back(std::move(instance));
  out.warnings = std::move(warnings_);
  return out;
}

// Ids until -1; several may share a line.
std::vector<int32_t> TsplibReader::read_tour() {
  read_header("TOUR_SECTION", "TOUR");
  std::vector<int32_t> tour;
  std::string_view line;
  while (!ended_ && lines_.next(line)) {
    std::array<std::string_view, 1> word;
    for (; split_words(line, word) == 1;
         line = line.substr(static_cast<size_t>(word[0].data() + word[0].size() - line.data()))) {
      int64_t id = 0;
      if (word[0] == "EOF" || word[0] == "-1") {
        ended_ = true;
        break;
      }
      if (!parse_integer(word[0], id) || id < 1 || id > std::numeric_limits<int32_t>::max()) {
        fail("TOUR_SECTION: expected a city's id or -1, found " + shown(word[0]));
      }
      tour.push_back(static_cast<int32_t>(id - 1));
    }
  }
  if (!ended_) fail("TOUR_SECTION: expected -1 at its end, found the end of the file");
  if (dimension_ != 0 && static_cast<int64_t>(tour.size()) != dimension_) {
    fail("TOUR_SECTION: expected DIMENSION = " + std::to_string(dimension_) + " ids, found " +
         std::to_string(tour.size()));
  }
  return tour;
}

}  // namespace

const char* metric_name(Metric metric) {
  switch (metric) {
    case Metric::kEuclidean:
      return "EUCLIDEAN";
    case Metric::kEuc2d:
      return "EUC_2D";
    case Metric::kCeil2d:
      return "CEIL_2D";
    case Metric::kGeo:
      return "GEO";
    case Metric::kAtt:
      return "ATT";
  }
  return "";
}

InstanceFile parse_tsplib(std::string_view bytes, const std::string& file) {
  return TsplibReader(bytes, file).read_instance();
}

std::vector<int32_t> parse_tsplib_tour(std::string_view bytes, const std::string& file) {
  return TsplibReader(bytes, file).read_tour();
}

}  // namespace pointsman
