// SPDX-License-Identifier: Apache-2.0
// Instances, solutions and errors in JSON and NDJSON (docs/file-formats.md). Unknown keys are ignored.
#include <algorithm>
#include <cmath>

#include "engine/problem/fixed_edges.h"
#include "engine/problem/instance.h"
#include "engine/problem/metric.h"
#include "host/formats/formats.h"
#include "models/tools/json_text.h"

namespace pointsman {
namespace {

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

void read_points(const JsonValue& object, Instance& instance) {
  const JsonValue coordinates = object.get("coordinates");
  const std::vector<JsonValue> points = coordinates.elements();
  check_size(coordinates, points.size(), instance);
  const bool has_demands = problem_of(instance).fields == ItemFields::kCoordinatesAndDemand;
  const std::vector<JsonValue> demands =
      has_demands ? object.get("demands").elements() : std::vector<JsonValue>();
  if (has_demands && demands.size() != points.size())
    object.get("demands").fail_expected("as many as coordinates (" + std::to_string(points.size()) + ")");
  instance.values.reserve(instance.width() * points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    const JsonValue& point = points[i];
    const std::vector<JsonValue> pair = point.is_array() ? point.elements() : std::vector<JsonValue>();
    if (pair.size() != 2) point.fail_expected("a pair [x, y]");
    for (const JsonValue& coordinate : pair) instance.values.push_back(coordinate.bounded_number());
    if (!has_demands) continue;
    instance.values.push_back(non_negative(demands[i]));
    if (const std::string wrong = wrong_demand(instance, i); !wrong.empty()) demands[i].fail_expected(wrong);
  }
  const std::optional<JsonValue> type = object.find("edge_weight_type");
  if (!type) return;
  const std::optional<Metric> metric = find_metric(type->text());
  if (!metric || *metric == Metric::kExplicit)
    type->fail_expected("EUCLIDEAN, EUC_2D, CEIL_2D, GEO, ATT, MAN_2D or MAX_2D");
  instance.metric = *metric;
  if (instance.metric != Metric::kGeo) return;
  for (int city = 0; city < instance.n(); ++city) {
    if (!is_geographic(instance.first(city), instance.second(city)))
      points[city].fail_expected("a latitude within +-90 and a longitude within +-360 (GEO)");
  }
}

// A member that may be missing; null is as good.
std::optional<JsonValue> find_given(const JsonValue& object, const char* key) {
  const std::optional<JsonValue> value = object.find(key);
  return value && value->kind() != JsonValue::Kind::kNull ? value : std::nullopt;
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

// [n][n], the diagonal ignored; null where there is no way.
void read_matrix(const JsonValue& object, Instance& instance) {
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
  set_matrix(instance, builder.finish());
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

void read_weights_and_values(const JsonValue& object, Instance& instance) {
  const JsonValue weights_array = object.get("weights"), values_array = object.get("values");
  const std::vector<JsonValue> weights = weights_array.elements(), values = values_array.elements();
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

Instance read_instance(const JsonValue& object) {
  Instance instance;
  if (!object.is_object()) object.fail_expected("an instance (an object)");
  if (const std::optional<JsonValue> id = object.find("id")) instance.id = id->text();
  instance.has_id = !instance.id.empty();
  const JsonValue name = object.get("problem");
  const std::optional<ProblemKind> kind = find_problem(name.text());
  if (!kind) name.fail_expected(problem_names("\""));
  instance.problem = *kind;
  const Problem& problem = problem_of(instance);
  if (*kind != ProblemKind::kTsp) refuse(object, "forced", problem);
  if (problem.has_capacity) refuse(object, "forbidden", problem);
  if (problem.has_capacity) instance.capacity = non_negative(object.get("capacity"));
  switch (problem.fields) {
    case ItemFields::kCoordinates:
      if (object.find("distance_matrix")) {
        read_matrix(object, instance);
        if (instance.problem != *kind)
          object.get("distance_matrix").fail(asymmetry_text(*instance.matrix, 0, "\"problem\": \"atsp\""));
      } else {
        read_points(object, instance);
        for (const auto& [a, b] : read_forbidden(object, instance.n(), false)) {
          if (a < b) instance.forbidden.push_back({a, b});
        }
      }
      if (is_open(instance.problem)) {
        read_ends(object, instance);
      } else if (const std::optional<JsonValue> forced = find_given(object, "forced")) {
        read_forced(*forced, instance);
      }
      break;
    case ItemFields::kCoordinatesAndDemand:
      read_points(object, instance);
      break;
    case ItemFields::kDistances:
      read_matrix(object, instance);
      break;
    case ItemFields::kWeightAndValue:
      read_weights_and_values(object, instance);
      break;
  }
  return instance;
}

// `otherwise` by default leaves the member out.
template <typename Value>
JsonText if_known(bool is_known, const Value& value, const JsonText& otherwise = {}) {
  return is_known ? JsonText(value) : otherwise;
}

std::string instance_json(const Instance& instance) {
  const Problem& problem = problem_of(instance);
  const auto n = static_cast<size_t>(instance.n());
  JsonText points, matrix, forced, forbidden, demands, weights, values;
  const auto number = [&](size_t i, size_t field) { return instance.values[instance.width() * i + field]; };
  const auto column = [&](size_t field) { return json_array(n, [&](size_t i) { return number(i, field); }); };
  switch (problem.fields) {
    case ItemFields::kCoordinatesAndDemand:
      demands = column(2);
      [[fallthrough]];
    case ItemFields::kCoordinates:
      if (instance.matrix) break;
      points = json_array(n, [&](size_t i) { return json_array(2, [&](size_t k) { return number(i, k); }); });
      break;
    case ItemFields::kWeightAndValue:
      weights = column(0);
      values = column(1);
      break;
    case ItemFields::kDistances:
      break;
  }
  if (instance.matrix) {
    matrix =
        json_array(n, [&](int a) { return json_array(n, [&](int b) { return instance.matrix->at(a, b); }); });
  }
  const auto pairs = [](const std::vector<std::array<int32_t, 2>>& edges) {
    return json_array(edges.size(),
                      [&](size_t i) { return json_array(2, [&](size_t k) { return edges[i][k]; }); });
  };
  if (!instance.forced.empty()) forced = pairs(instance.forced);
  if (!instance.forbidden.empty()) forbidden = pairs(instance.forbidden);
  const bool has_metric = instance.metric != Metric::kEuclidean && !instance.matrix;
  return json_object({{"id", if_known(instance.has_id, instance.id)},
                      {"problem", name_of(instance.problem)},
                      {"edge_weight_type", if_known(has_metric, metric_name(instance.metric))},
                      {"capacity", if_known(problem.has_capacity, instance.capacity)},
                      {"coordinates", points},
                      {"distance_matrix", matrix},
                      {"forced", forced},
                      {"forbidden", forbidden},
                      {"start", if_known(instance.start >= 0, instance.start)},
                      {"end", if_known(instance.end >= 0, instance.end)},
                      {"demands", demands},
                      {"weights", weights},
                      {"values", values}})
      .text;
}

// Reads an element of "solutions" or a line of NDJSON.
Solution read_json_solution(const JsonValue& object, size_t index, const Instance& instance) {
  if (!object.is_object()) object.fail_expected("a solution (an object)");
  const std::optional<JsonValue> own_index = object.find("index");
  if (own_index && static_cast<size_t>(own_index->index()) != index)
    own_index->fail_expected(std::to_string(index));
  const Problem& problem = problem_of(instance);
  Solution solution;
  for (const JsonValue& entry : object.get(problem.order_key).elements()) {
    if (!problem.has_depot) {
      solution.order.push_back(entry.index());
      continue;
    }
    if (!solution.order.empty()) solution.order.push_back(0);
    for (const JsonValue& customer : entry.elements()) {
      solution.order.push_back(customer.index());
      if (solution.order.back() == 0) customer.fail_expected("a customer, from 1");
    }
  }
  const std::optional<JsonValue> claim = object.find(problem.objective_key);
  solution.objective = claim && claim->kind() != JsonValue::Kind::kNull ? claim->number() : kNoNumber;
  return solution;
}

// Null if the objective is not known.
JsonText objective_json(const Instance& instance, double objective) {
  JsonText json(objective);
  if (std::isfinite(objective)) json.text = objective_text(instance, objective);
  return json;
}

JsonText group_json(const SummaryGroup& group) {
  return json_object({{"problem", if_known(!group.problem.empty(), group.problem, kNoNumber)},
                      {"n", if_known(group.n > 0, group.n, kNoNumber)},
                      {"mode", group.mode},
                      {"model", if_known(!group.model.empty(), group.model, kNoNumber)},
                      {"instances", group.instances},
                      {"mean_cost", group.mean_cost},
                      {"gap", group.gap}});
}

// Of routes an array each.
JsonText order_json(const Problem& problem, const std::vector<int32_t>& order) {
  const auto items = [](const std::vector<int32_t>& some) {
    return json_array(some.size(), [&](size_t i) { return some[i]; });
  };
  if (!problem.has_depot) return items(order);
  const std::vector<std::vector<int32_t>> routes = routes_of(order);
  return json_array(routes.size(), [&](size_t i) { return items(routes[i]); });
}

double gap_to_bound(const Solution& solution) {
  return solution.bound == 0.0 ? 0.0 : 1.0 - solution.objective / solution.bound;
}

// The members that identify the instance. An empty hash is left out.
std::string start_of(int64_t index, const Instance& instance, const std::string& hash) {
  std::string start = json_object({{"index", index},
                                   {"id", instance.id},
                                   {"problem", name_of(instance.problem)},
                                   {"n", instance.n()},
                                   {"instance", if_known(!hash.empty(), hash)}})
                          .text;
  start.back() = ',';
  return start;
}

// The remaining members.
std::string found_json(const Instance& instance, const Solution& solution, double gap) {
  const Problem& problem = problem_of(instance);
  const bool is_solved = has_answer(solution);
  const bool is_infeasible = solution.status == Status::kInfeasible;
  const bool has_length = is_solved && has_metric(problem.fields) && instance.has_coordinates();
  const JsonText objective = objective_json(instance, solution.objective);
  const bool has_network = std::isfinite(solution.network_objective);
  const bool has_start = solution.start != Start::kNone;
  const bool has_bound = is_solved && std::isfinite(solution.bound);
  const bool has_kicks = has_start && is_solved && problem.has_local_search;
  const JsonText order = order_json(problem, solution.order);
  const JsonText found = json_object(
      {{"status", name_of(solution.status)},
       {"violation", if_known(is_infeasible, solution.violation)},
       {problem.objective_key, if_known(is_solved, objective)},
       {"cost_euclidean", if_known(has_length, solution.unrounded)},
       {"weight", if_known(is_solved && problem.has_packing, solution.weight)},
       {"bound", if_known(has_bound, objective_json(instance, solution.bound))},
       {"gap_to_bound", if_known(has_bound, gap_to_bound(solution))},
       {"gap", gap},
       {"log_prob", solution.log_prob},
       {"network_cost", if_known(has_network, objective_json(instance, solution.network_objective))},
       {"start", if_known(has_start, name_of(solution.start))},
       {"kicks", if_known(has_kicks, solution.kicks)},
       {problem.order_key, if_known(is_solved, order, kNoNumber)}});
  return found.text.substr(1);
}

}  // namespace

std::string summary_json(const SolveSummary& s) {
  return json_object(
             {{"instances", s.instances},
              {"unsolved", if_known(s.unsolved > 0, s.unsolved)},
              {"infeasible", if_known(s.infeasible > 0, s.infeasible)},
              {"mean_cost", s.mean_cost},
              {"mean_network_cost", if_known(std::isfinite(s.mean_network_cost), s.mean_network_cost)},
              {"gap", s.gap},
              {"computing_times", json_object({{"loading", s.loading_ms}, {"solving", s.solving_ms}})},
              {"mode", s.mode},
              {"start", if_known(!s.start.empty(), s.start)},
              {"kicks", if_known(s.kicks > 0, s.kicks)},
              {"samples", if_known(s.samples.has_value(), s.samples.value_or(0), kNoNumber)},
              {"augment", if_known(s.augment.has_value(), s.augment.value_or(0), kNoNumber)},
              {"shuffle", s.shuffle},
              {"improve", s.improve},
              {"model", if_known(!s.model.empty(), s.model)},
              {"model_sha256", if_known(!s.model.empty(), s.model_sha256)},
              {"device", s.device},
              {"seed", s.seed},
              {"version", s.version},
              {"groups", json_array(s.groups.size(), [&](size_t i) { return group_json(s.groups[i]); })}})
      .text;
}

Instance parse_json_instance(std::string_view bytes, const std::string& file, int64_t line) {
  const JsonDocument document(bytes, file, line);
  return read_instance(document.root());
}

InstanceFile read_json(const std::function<std::string()>& next_piece, const std::string& file) {
  InstanceFile out;
  const JsonDocument document(next_piece, file, "instances", [&](const JsonValue& element) {
    out.instances.push_back(read_instance(element));
  });
  const JsonValue root = document.root();
  if (!root.is_object() && !root.is_array())
    root.fail_expected("an instance, an array of them or {\"instances\":[..]}");
  const std::optional<JsonValue> list = root.is_array() ? root : root.find("instances");
  if (!list) {
    out.instances.push_back(read_instance(root));
    return out;
  }
  if (!list->is_array()) list->fail_expected("an array");
  if (out.instances.empty()) list->fail("expected at least one instance, found none");
  return out;
}

InstanceFile parse_json(InputFile& file, const ReadOptions&) {
  return read_json([&] { return file.read_piece(); }, file.name());
}

static std::string joined_json(const InstanceBatch& instances, std::string_view between) {
  static const std::string name = "JSON";  // in the message of InputStopped
  return joined(instances, between, [watch = LoadingWatch(name)](const Instance& instance) mutable {
    watch.after(instance.values.size());
    return instance_json(instance);
  });
}

std::string write_json(const InstanceBatch& instances) {
  const std::string all = joined_json(instances, ",\n");
  return instances.size() == 1 ? all + "\n" : "{\"instances\":[\n" + all + "]}\n";
}

std::string write_ndjson(const InstanceBatch& instances) {
  std::string all = joined_json(instances, "\n");
  if (!all.empty()) all += '\n';
  return all;
}

std::string solution_json(int64_t index, const Instance& instance, const Solution& solution, double gap) {
  return start_of(index, instance, {}) + found_json(instance, solution, gap);
}

std::string solution_line_start(int64_t index, const Instance& instance) {
  return start_of(index, instance,
                  printed("%016llx", static_cast<unsigned long long>(instance_hash(instance))));
}

std::string solution_line(int64_t index, const Instance& instance, const Solution& solution, double gap) {
  return solution_line_start(index, instance) + found_json(instance, solution, gap) + "\n";
}

std::string error_json(int code, const std::string& message, const std::string& file, int64_t line,
                       int64_t index) {
  return json_object({{"index", if_known(index >= 0, index)},
                      {"code", code},
                      {"error", message},
                      {"file", if_known(!file.empty(), file)},
                      {"line", if_known(line > 0, line)}})
      .text;
}

bool is_ndjson(std::string_view bytes, const std::string& file) {
  const AnswerFormat* const told = format_by_suffix(answer_formats(), unpacked_name(file));
  if (told && told->kind == OutputFormat::kNdjson) return true;
  if (told && told->kind == OutputFormat::kJson) return false;
  const size_t end = bytes.find('\n');
  return end != std::string_view::npos && is_json_object_without("solutions", bytes.substr(0, end), file);
}

SolutionBatch parse_json_answers(InputFile& file, const InstanceBatch& instances) {
  const std::string_view bytes = file.read_rest();
  SolutionBatch out;
  const auto add = [&](const JsonValue& object) {
    if (out.size() == instances.size()) object.fail("expected no more than " + solutions_wanted(instances));
    out.push_back(read_json_solution(object, out.size(), instances[out.size()]));
  };
  if (is_ndjson(bytes, file.name())) {
    LineScanner lines(bytes);
    for (std::string_view line; lines.next_filled(line);) {
      const JsonDocument document(line, file.name(), lines.number());
      add(document.root());
    }
  } else {
    const JsonDocument document(bytes, file.name());
    const JsonValue root = document.root();
    if (!root.is_object()) root.fail_expected("{\"solutions\":[..]}");
    if (const std::optional<JsonValue> list = root.find("solutions")) {
      for (const JsonValue& object : list->elements()) add(object);
    } else {
      add(root);
    }
  }
  check_count(out.size(), instances, file.name());
  return out;
}

std::string write_json_answers(const Answer& answer) {
  std::string out = "{\"code\":" + std::to_string(answer.summary.code) +
                    ",\"summary\":" + summary_json(answer.summary) + ",\n \"solutions\":[";
  for (size_t i = 0; i < answer.solutions.size(); ++i)
    out += (i > 0 ? ",\n  " : "\n  ") +
           solution_json(static_cast<int64_t>(i), answer.instances[i], answer.solutions[i], answer.gap(i));
  return out + "]}\n";
}

std::string write_ndjson_answers(const Answer& answer) {
  std::string out;
  for (size_t i = 0; i < answer.solutions.size(); ++i)
    out += solution_line(static_cast<int64_t>(i), answer.instances[i], answer.solutions[i], answer.gap(i));
  return out;
}

}  // namespace pointsman
