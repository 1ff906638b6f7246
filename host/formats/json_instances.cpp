// SPDX-License-Identifier: Apache-2.0
// Instances in JSON and NDJSON (docs/file-formats.md). Unknown keys are ignored.
#include <cmath>
#include <utility>

#include "engine/problem/fixed_edges.h"
#include "engine/problem/graph.h"
#include "engine/problem/metric.h"
#include "engine/problem/timed_places.h"
#include "host/formats/formats.h"
#include "models/tools/json_text.h"

namespace pointsman {
namespace {

// The names in use, the usual one first.
using Keys = std::initializer_list<const char*>;
constexpr Keys kPlaceKeys = {"coordinates", "coords", "locs", "loc"}, kValueKeys = {"values", "profits"},
               kLatitudes = {"lat", "latitude"}, kLongitudes = {"lon", "lng", "longitude"},
               kWindowKeys = {"time_windows", "windows"},
               kVisitKeys = {"service_times", "service", "durations"};

// What the instances of a file have in common.
struct JsonReading {
  const ReadOptions& options;
  const std::string& file;   // its name
  uint64_t graph_bytes = 0;  // that the graphs before take
  bool has_degrees = false;  // points are named lat and lon, and nothing says how to measure them
  std::string warning = {};

  // What to tell of the file; empty: nothing.
  std::string text() const {
    if (has_degrees && !options.metric) return file + ": " + kDegreesWarning;
    return warning.empty() ? warning : file + ": " + warning;
  }
};

// A name or id: a string or an integer.
std::string name_text(const JsonValue& value) {
  if (!value.is_number()) return value.text();
  if (value.number() != std::floor(value.number())) value.fail_expected("a string or an integer");
  return std::string(value.word());
}

double non_negative(const JsonValue& value) {
  const double number = value.bounded_number();
  if (number < 0.0) value.fail_expected("a number of at least 0");
  if (const std::string lost = lost_digits(value.word(), number); !lost.empty()) value.fail(lost);
  return number;
}

void check_size(const JsonValue& array, size_t size, const Instance& instance) {
  if (size == 0)
    array.fail(std::string("expected at least one ") + problem_of(instance).item + ", found none");
  if (size > static_cast<size_t>(kLargestSize))
    array.fail("more than " + std::to_string(kLargestSize) + " of them");
}

// A member that may be missing; null is as good.
std::optional<JsonValue> find_given(const JsonValue& object, const char* key) {
  const std::optional<JsonValue> value = object.find(key);
  return value && value->kind() != JsonValue::Kind::kNull ? value : std::nullopt;
}

// The first of these members that the object has.
std::optional<JsonValue> find_any(const JsonValue& object, Keys keys) {
  for (const char* key : keys) {
    if (const std::optional<JsonValue> value = find_given(object, key)) return value;
  }
  return std::nullopt;
}
JsonValue get_any(const JsonValue& object, Keys keys) {
  const std::optional<JsonValue> value = find_any(object, keys);
  return value ? *value : object.get(*keys.begin());  // which names the usual one
}

// [x, y], {"x":, "y":}, or degrees as {"lat":, "lon":}.
std::array<JsonValue, 2> coordinates_of(const JsonValue& point) {
  if (point.is_object() && point.find("x") && point.find("y")) return {point.get("x"), point.get("y")};
  const std::vector<JsonValue> pair = point.is_array() ? point.elements() : std::vector<JsonValue>();
  if (pair.size() == 2) return {pair[0], pair[1]};
  const std::optional<JsonValue> latitude = point.is_object() ? find_any(point, kLatitudes) : std::nullopt;
  const std::optional<JsonValue> longitude = point.is_object() ? find_any(point, kLongitudes) : std::nullopt;
  if (!latitude || !longitude) point.fail_expected("a pair [x, y], or an object with x and y or lat and lon");
  return {*latitude, *longitude};
}

// A pair [a, b] of n cities, from 0.
std::array<int32_t, 2> read_pair(const JsonValue& pair, int n) {
  const std::vector<JsonValue> ends = pair.elements();
  if (ends.size() != 2) pair.fail_expected("a pair of cities");
  for (const JsonValue& end : ends) {
    if (end.index() >= n) end.fail_expected("a city below " + std::to_string(n));
  }
  return {ends[0].index(), ends[1].index()};
}

// "forbidden": of an ATSP the ways from the first to the second, else those back too. Ascending.
std::vector<std::array<int32_t, 2>> read_forbidden(const JsonValue& object, int n, bool is_one_way) {
  std::vector<std::array<int32_t, 2>> ways;
  const std::optional<JsonValue> given = find_given(object, "forbidden");
  if (!given) return ways;
  for (const JsonValue& pair : given->elements()) {
    const auto [from, to] = read_pair(pair, n);
    if (from == to) pair.fail_expected("two cities");
    ways.push_back({from, to});
    if (!is_one_way) ways.push_back({to, from});
  }
  std::ranges::sort(ways);
  ways.erase(std::ranges::unique(ways).begin(), ways.end());
  return ways;
}

// "names": what the user calls the items, strings or integers.
void read_names(const JsonValue& object, Instance& instance) {
  const std::optional<JsonValue> given = find_given(object, "names");
  if (!given) return;
  const std::vector<JsonValue> names = given->elements();
  if (!std::cmp_equal(names.size(), instance.n()))
    given->fail_expected("one for each " + std::string(problem_of(instance).item) + " (" +
                         std::to_string(instance.n()) + ")");
  std::vector<std::string> texts;
  for (const JsonValue& name : names) texts.push_back(name_text(name));
  instance.names = std::make_shared<const std::vector<std::string>>(std::move(texts));
}

// When each place opens and closes, null: never; and how long a visit takes, by default no time.
void read_windows(const JsonValue& object, Instance& instance) {
  const size_t n = static_cast<size_t>(instance.n()), width = static_cast<size_t>(instance.width());
  const std::string one_each = "one for each place (" + std::to_string(n) + ")";
  const JsonValue given = get_any(object, kWindowKeys);
  const std::vector<JsonValue> windows = given.elements();
  if (windows.size() != n) given.fail_expected(one_each);
  for (size_t i = 0; i < n; ++i) {
    double* const item = instance.values.data() + width * i;
    const std::vector<JsonValue> ends = windows[i].elements();
    if (ends.size() != 2) windows[i].fail_expected("a pair [opens, closes]");
    item[InstancePlaces::kOpens] = ends[0].bounded_number();
    item[InstancePlaces::kCloses] = ends[1].kind() == JsonValue::Kind::kNull
                                        ? std::numeric_limits<double>::infinity()
                                        : ends[1].bounded_number();
    if (const std::string wrong = wrong_times(instance, i); !wrong.empty()) ends[1].fail_expected(wrong);
  }
  const std::optional<JsonValue> visits = find_any(object, kVisitKeys);
  if (!visits) return;
  const std::vector<JsonValue> times = visits->elements();
  if (times.size() != n) visits->fail_expected(one_each);
  for (size_t i = 0; i < n; ++i) instance.values[width * i + InstancePlaces::kVisit] = non_negative(times[i]);
}

void read_points(const JsonValue& object, Instance& instance, JsonReading& reading) {
  const JsonValue coordinates = get_any(object, kPlaceKeys);
  const std::vector<JsonValue> points = coordinates.elements();
  check_size(coordinates, points.size(), instance);
  const bool has_demands = problem_of(instance).fields == ItemFields::kCoordinatesAndDemand;
  const std::vector<JsonValue> demands =
      has_demands ? object.get("demands").elements() : std::vector<JsonValue>();
  if (has_demands && demands.size() != points.size())
    object.get("demands").fail_expected("as many as coordinates (" + std::to_string(points.size()) + ")");
  instance.values.reserve(instance.width() * points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    for (const JsonValue& coordinate : coordinates_of(points[i]))
      instance.values.push_back(coordinate.bounded_number());
    if (!has_demands) {
      instance.values.resize(instance.width() * (i + 1));
      continue;
    }
    instance.values.push_back(non_negative(demands[i]));
    if (const std::string wrong = wrong_demand(instance, i); !wrong.empty()) demands[i].fail_expected(wrong);
  }
  const std::optional<JsonValue> type = find_given(object, "edge_weight_type");
  if (type) {
    const std::optional<Metric> metric = find_metric(upper_case(type->text()));
    if (!metric || *metric == Metric::kExplicit) type->fail_expected(metric_names());
    instance.metric = *metric;
  } else if (points[0].is_object() && !points[0].find("x")) {
    reading.has_degrees = true;
  }
  for (int city = 0; is_on_sphere(instance.metric) && city < instance.n(); ++city) {
    if (!is_geographic(instance.first(city), instance.second(city)))
      points[city].fail_expected(degrees_expected(instance.metric));
  }
}

// [n][n], the diagonal ignored; null where there is no way.
void read_matrix(const JsonValue& object, Instance& instance, JsonReading& reading) {
  const JsonValue matrix = object.get("distance_matrix");
  const std::vector<JsonValue> rows = matrix.elements();
  check_size(matrix, rows.size(), instance);
  const int n = static_cast<int>(rows.size());
  const auto forbidden = read_forbidden(object, n, instance.problem == ProblemKind::kAtsp);
  MatrixBuilder builder(n, rows.size() * rows.size());
  for (int i = 0; i < n; ++i) {
    const std::vector<JsonValue> row = rows[i].elements();
    if (row.size() != rows.size()) rows[i].fail_expected("a row of " + std::to_string(n) + " distances");
    for (int j = 0; j < n; ++j) {
      const bool is_way = i != j && row[j].kind() != JsonValue::Kind::kNull &&
                          !std::ranges::binary_search(forbidden, std::array{i, j});
      const double distance = is_way ? row[j].number() : MatrixBuilder::kNoWay;
      if (!builder.add(i, j, distance)) row[j].fail(MatrixBuilder::refusal(distance));
    }
  }
  set_matrix(instance, builder.finish(), reading.warning);
}

// "n" nodes, by default those that edges name; "edges" [[a, b], ..] from 0.
void read_graph(const JsonValue& object, Instance& instance, JsonReading& reading) {
  const JsonValue given = object.get("edges");
  const std::vector<JsonValue> edges = given.elements();
  int32_t n = 0;
  std::vector<std::array<int32_t, 2>> pairs;
  for (const JsonValue& edge : edges) {
    const std::vector<JsonValue> ends = edge.elements();
    if (ends.size() != 2) edge.fail_expected("a pair of nodes");
    pairs.push_back({ends[0].index(), ends[1].index()});
    for (const int32_t end : pairs.back()) {
      if (end >= kMostGraphNodes) edge.fail_expected("nodes below " + std::to_string(kMostGraphNodes));
      n = std::max(n, end + 1);
    }
  }
  if (const std::optional<JsonValue> size = find_given(object, "n")) {
    if (size->index() < std::max(n, 1) || size->index() > kMostGraphNodes)
      size->fail_expected("from " + std::to_string(std::max(n, 1)) + " to " +
                          std::to_string(kMostGraphNodes) + " nodes");
    n = size->index();
  }
  if (n == 0) given.fail("expected an edge, or \"n\"; found neither");
  DistanceMatrix graph = claimed_graph(n, reading.graph_bytes, reading.file);
  for (const auto& [a, b] : pairs) {
    if (a == b) {
      reading.warning = "edges that join a node with itself are left out";
    } else {
      join(graph, a, b);
    }
  }
  instance.metric = Metric::kExplicit;
  instance.matrix = std::make_shared<const DistanceMatrix>(std::move(graph));
}

// [[a, b], ..] from 0.
void read_forced(const JsonValue& edges, Instance& instance) {
  const std::vector<JsonValue> pairs = edges.elements();
  for (const JsonValue& pair : pairs) {
    instance.forced.push_back(read_pair(pair, instance.n()));
    const auto& [a, b] = instance.forced.back();
    if (std::isinf(city_distance(instance, a, b))) pair.fail_expected("an edge that is not forbidden");
  }
  size_t at = 0;
  if (const std::string wrong = wrong_edges(instance.n(), instance.forced, at); !wrong.empty())
    pairs[at].fail_expected(wrong);
}

// A path's first and last city, from 0, where they are given.
void read_ends(const JsonValue& object, Instance& instance) {
  for (const auto& [key, end] : {std::pair("start", &instance.start), std::pair("end", &instance.end)}) {
    const std::optional<JsonValue> given = find_given(object, key);
    if (!given) continue;
    *end = given->index();
    if (*end >= instance.n()) given->fail_expected("a city below " + std::to_string(instance.n()));
    if (instance.start == instance.end && instance.n() > 1)
      given->fail_expected("another city than \"start\"");
  }
}

// The numbers of the only dimension of a KnapSack that may have several: [..] or [[..]].
std::vector<JsonValue> only_dimension(const JsonValue& array) {
  const std::vector<JsonValue> elements = array.elements();
  if (elements.empty() || !elements[0].is_array()) return elements;
  if (elements.size() > 1) array.fail_expected("weights of one dimension");
  return elements[0].elements();
}

double read_capacity(const JsonValue& object, const ReadOptions& options) {
  const std::optional<JsonValue> capacity = find_any(object, {"capacity", "capacities"});
  if (!capacity && options.capacity) return *options.capacity;
  if (!capacity) object.fail("expected the key \"capacity\" or --capacity W, found neither");
  if (!capacity->is_array()) return non_negative(*capacity);
  const std::vector<JsonValue> all = capacity->elements();
  if (all.size() != 1) capacity->fail_expected("one capacity");
  return non_negative(all[0]);
}

// "weights" and "values", or "items" with a weight and a value each; a value may be called profit.
void read_weights_and_values(const JsonValue& object, Instance& instance) {
  if (const std::optional<JsonValue> items = object.find("items")) {
    const std::vector<JsonValue> elements = items->elements();
    check_size(*items, elements.size(), instance);
    for (const JsonValue& item : elements) {
      if (!item.is_object()) item.fail_expected("an object with weight and value");
      instance.values.push_back(non_negative(item.get("weight")));
      instance.values.push_back(non_negative(get_any(item, {"value", "profit"})));
    }
    return;
  }
  const JsonValue weights_array = object.get("weights"), values_array = get_any(object, kValueKeys);
  const std::vector<JsonValue> weights = only_dimension(weights_array), values = values_array.elements();
  check_size(weights_array, weights.size(), instance);
  if (values.size() != weights.size())
    values_array.fail_expected("as many as weights (" + std::to_string(weights.size()) + ")");
  instance.values.reserve(2 * weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    instance.values.push_back(non_negative(weights[i]));
    instance.values.push_back(non_negative(values[i]));
  }
}

// A wish that would not be met.
void refuse(const JsonValue& object, const char* key, const Problem& problem) {
  if (const std::optional<JsonValue> given = find_given(object, key))
    given->fail(std::string("\"") + key + "\" is not for " + problem.title);
}

// As "problem" says, else the option, else as the other keys tell.
ProblemKind read_problem(const JsonValue& object, const ReadOptions& options) {
  if (const std::optional<JsonValue> name = find_given(object, "problem")) {
    const std::optional<ProblemKind> kind = find_problem(name->text());
    if (!kind) name->fail_expected(problem_names("\""));
    return *kind;
  }
  if (options.problem) return *options.problem;
  if (find_any(object, {"weights", "items"})) return problem_with(ItemFields::kWeightAndValue, options);
  if (find_any(object, {"demands"})) return problem_with(ItemFields::kCoordinatesAndDemand, options);
  if (find_any(object, kWindowKeys)) return problem_with(ItemFields::kCoordinatesAndWindows, options);
  if (find_any(object, kPlaceKeys) || find_given(object, "distance_matrix"))
    return problem_with(ItemFields::kCoordinates, options);
  if (find_given(object, "edges")) return problem_with(ItemFields::kEdges, options);
  for (const auto& [key, what] :
       {std::pair("features", "GeoJSON"), std::pair("durations", "a road service's table"),
        std::pair("distances", "a road service's table"), std::pair("rows", "a road service's table")}) {
    if (object.find(key))
      object.fail(std::string("this is ") + what + "; python -m pointsman convert makes an instance of it");
  }
  object.fail(
      "expected the key \"problem\", or coordinates, distance_matrix, weights or edges to tell it; found "
      "none");
}

void read_places(const JsonValue& object, Instance& instance, JsonReading& reading) {
  const bool is_named = find_given(object, "problem").has_value();
  const ProblemKind kind = instance.problem;
  if (find_given(object, "distance_matrix")) {
    read_matrix(object, instance, reading);
    if (instance.problem != kind && is_named)
      object.get("distance_matrix").fail(asymmetry_text(*instance.matrix, 0, "\"problem\": \"atsp\""));
  } else {
    read_points(object, instance, reading);
    for (const auto& [a, b] : read_forbidden(object, instance.n(), false)) {
      if (a < b) instance.forbidden.push_back({a, b});
    }
  }
  if (is_open(instance.problem)) {
    read_ends(object, instance);
  } else if (const std::optional<JsonValue> forced = find_given(object, "forced")) {
    read_forced(*forced, instance);
  }
}

void read_timed_places(const JsonValue& object, Instance& instance, JsonReading& reading) {
  if (const std::optional<JsonValue> matrix = find_given(object, "distance_matrix")) {
    read_matrix(object, instance, reading);
    if (forbids_ways(instance)) matrix->fail_expected("a way between any two places");
    instance.values.resize(static_cast<size_t>(instance.width()) * instance.n());
  } else {
    read_points(object, instance, reading);
  }
  read_windows(object, instance);
}

Instance read_instance(const JsonValue& object, JsonReading& reading) {
  Instance instance;
  if (!object.is_object()) object.fail_expected("an instance (an object)");
  if (const std::optional<JsonValue> id = find_given(object, "id")) instance.id = name_text(*id);
  instance.has_id = !instance.id.empty();
  instance.problem = read_problem(object, reading.options);
  const Problem& problem = problem_of(instance);
  if (instance.problem != ProblemKind::kTsp) refuse(object, "forced", problem);
  if (problem.has_capacity || problem.has_first || problem.has_labels) refuse(object, "forbidden", problem);
  if (!problem.has_first) refuse(object, "time_windows", problem);
  if (problem.has_capacity) instance.capacity = read_capacity(object, reading.options);
  switch (problem.fields) {
    case ItemFields::kCoordinates:
      read_places(object, instance, reading);
      break;
    case ItemFields::kCoordinatesAndDemand:
      read_points(object, instance, reading);
      break;
    case ItemFields::kCoordinatesAndWindows:
      read_timed_places(object, instance, reading);
      break;
    case ItemFields::kOwn:  // in no file
    case ItemFields::kDistances:
      read_matrix(object, instance, reading);
      break;
    case ItemFields::kEdges:
      read_graph(object, instance, reading);
      break;
    case ItemFields::kWeightAndValue:
      read_weights_and_values(object, instance);
      break;
  }
  read_names(object, instance);
  return instance;
}

// Rows without keys: of points [x, y], else of a matrix, null where there is no way.
class RowReader {
 public:
  void add(const JsonValue& row) {
    const std::vector<JsonValue> numbers = row.elements();
    const size_t expected = rows_.empty() ? numbers.size() : rows_[0].size();
    if (numbers.size() != expected) row.fail_expected("a row of " + std::to_string(expected) + " numbers");
    std::vector<double>& to = rows_.emplace_back();
    for (const JsonValue& number : numbers)
      to.push_back(number.kind() == JsonValue::Kind::kNull ? kNoNumber : number.bounded_number());
  }
  bool is_empty() const { return rows_.empty(); }

  Instance finish(const JsonValue& list, JsonReading& reading) {
    Instance instance;
    instance.problem = reading.options.problem.value_or(ProblemKind::kTsp);
    const Problem& problem = problem_of(instance);
    const size_t n = rows_.size(), width = rows_[0].size();
    const bool are_points = width == 2 && problem.fields == ItemFields::kCoordinates;
    const bool is_matrix = width == n && !are_points && are_in_matrix(problem.fields);
    if (!are_points && !is_matrix)
      list.fail("expected rows [x, y], or a square matrix, of a " + std::string(problem.title) +
                " instance; found " + std::to_string(n) + " rows of " + std::to_string(width));
    MatrixBuilder builder(static_cast<int>(n), n * n);
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < width; ++j) {
        const double number = rows_[i][j];
        if (are_points && std::isnan(number))
          list.fail("row " + std::to_string(i) + ": expected a number, found null");
        if (are_points) instance.values.push_back(number);
        if (is_matrix && !builder.add(static_cast<int>(i), static_cast<int>(j), number))
          list.fail("row " + std::to_string(i) + ": " + MatrixBuilder::refusal(number));
      }
    }
    if (is_matrix) set_matrix(instance, builder.finish(), reading.warning);
    rows_.clear();
    return instance;
  }

 private:
  std::vector<std::vector<double>> rows_;
};

}  // namespace

Instance parse_json_instance(std::string_view bytes, const std::string& file, int64_t line,
                             const ReadOptions& options, std::string& warning) {
  const JsonDocument document(bytes, file, line);
  JsonReading reading{options, file};
  Instance instance = read_instance(document.root(), reading);
  warning = reading.text();
  return instance;
}

InstanceFile read_json(const std::function<std::string()>& next_piece, const std::string& file,
                       const ReadOptions& options) {
  InstanceFile out;
  JsonReading reading{options, file};
  RowReader rows;
  const JsonDocument document(next_piece, file, "instances", [&](const JsonValue& element) {
    if (!element.is_array()) {
      if (!rows.is_empty()) element.fail_expected("a row");
      out.instances.push_back(read_instance(element, reading));
      return;
    }
    const std::vector<JsonValue> parts = element.elements();
    if (parts.empty() || !parts[0].is_array()) {
      if (!parts.empty() && !out.instances.empty() && rows.is_empty())
        element.fail_expected("an instance (an object)");
      return rows.add(element);
    }
    RowReader own;
    for (const JsonValue& part : parts) own.add(part);
    out.instances.push_back(own.finish(element, reading));
  });
  const JsonValue root = document.root();
  if (!root.is_object() && !root.is_array())
    root.fail_expected("an instance, an array of them or {\"instances\":[..]}");
  const std::optional<JsonValue> list = root.is_array() ? root : root.find("instances");
  if (!list) {
    out.instances.push_back(read_instance(root, reading));
  } else {
    if (!list->is_array()) list->fail_expected("an array");
    if (!rows.is_empty()) out.instances.push_back(rows.finish(*list, reading));
    if (out.instances.empty()) list->fail("expected at least one instance, found none");
  }
  if (std::string warning = reading.text(); !warning.empty()) out.warnings.push_back(std::move(warning));
  return out;
}

InstanceFile parse_json(InputFile& file, const ReadOptions& options) {
  return read_json([&] { return file.read_piece(); }, file.name(), options);
}

}  // namespace pointsman
