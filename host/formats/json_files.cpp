// SPDX-License-Identifier: Apache-2.0
// Solutions and errors in JSON and NDJSON, and what writes instances (docs/file-formats.md).
#include <algorithm>
#include <cmath>

#include "engine/problem/graph.h"
#include "engine/problem/instance.h"
#include "engine/problem/metric.h"
#include "engine/problem/timed_places.h"
#include "host/formats/formats.h"
#include "models/tools/json_text.h"

namespace pointsman {
namespace {

// `otherwise` by default leaves the member out.
template <typename Value>
JsonText if_known(bool is_known, const Value& value, const JsonText& otherwise = {}) {
  return is_known ? JsonText(value) : otherwise;
}

JsonText pairs(const std::vector<std::array<int32_t, 2>>& edges) {
  return json_array(edges.size(),
                    [&](size_t i) { return json_array(2, [&](size_t k) { return edges[i][k]; }); });
}

std::string instance_json(const Instance& instance) {
  const Problem& problem = problem_of(instance);
  const auto n = static_cast<size_t>(instance.n());
  const bool is_timed = problem.fields == ItemFields::kCoordinatesAndWindows;
  const bool is_packing = problem.fields == ItemFields::kWeightAndValue;
  JsonText points, matrix, edges, forced, forbidden, names, windows;
  if (instance.names) names = json_array(n, [&](size_t i) { return (*instance.names)[i]; });
  // Two numbers of each item from `field` on, or where it has them one.
  const auto number_pairs = [&](size_t field) {
    return json_array(n, [&](size_t i) {
      return json_array(2, [&](size_t k) { return instance.item(static_cast<int>(i))[field + k]; });
    });
  };
  const auto column = [&](bool has_it, size_t field) {
    return has_it ? json_array(n, [&](size_t i) { return instance.item(static_cast<int>(i))[field]; })
                  : JsonText();
  };
  if (has_metric(problem.fields) && !instance.matrix) points = number_pairs(0);
  if (is_timed) windows = number_pairs(InstancePlaces::kOpens);
  if (is_graph(instance.problem)) {
    edges = pairs(edges_of(*instance.matrix));
  } else if (instance.matrix) {
    matrix =
        json_array(n, [&](int a) { return json_array(n, [&](int b) { return instance.matrix->at(a, b); }); });
  }
  if (!instance.forced.empty()) forced = pairs(instance.forced);
  if (!instance.forbidden.empty()) forbidden = pairs(instance.forbidden);
  const bool has_metric = instance.metric != Metric::kEuclidean && !instance.matrix;
  return json_object({{"id", if_known(instance.has_id, instance.id)},
                      {"problem", name_of(instance.problem)},
                      {"edge_weight_type", if_known(has_metric, metric_name(instance.metric))},
                      {"capacity", if_known(problem.has_capacity, instance.capacity)},
                      {"coordinates", points},
                      {"distance_matrix", matrix},
                      {"n", if_known(is_graph(instance.problem), n)},
                      {"edges", edges},
                      {"names", names},
                      {"forced", forced},
                      {"forbidden", forbidden},
                      {"start", if_known(instance.start >= 0, instance.start)},
                      {"end", if_known(instance.end >= 0, instance.end)},
                      {"demands", column(problem.has_depot, 2)},
                      {"time_windows", windows},
                      {"service_times", column(is_timed, InstancePlaces::kVisit)},
                      {"weights", column(is_packing, 0)},
                      {"values", column(is_packing, 1)}})
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

// item(i) of each of the order's items; of routes an array each.
template <typename Item>
JsonText order_json(const Problem& problem, const std::vector<int32_t>& order, Item item) {
  const auto items = [&](const std::vector<int32_t>& some) {
    return json_array(some.size(), [&](size_t i) { return item(some[i]); });
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
  const JsonText order = order_json(problem, solution.order, [](int32_t item) { return item; });
  JsonText names;
  if (instance.names && is_solved)
    names = order_json(problem, solution.order, [&](int32_t item) { return (*instance.names)[item]; });
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
       {"redrawn", if_known(solution.redrawn > 0, solution.redrawn)},
       {problem.order_key, if_known(is_solved, order, kNoNumber)},
       {"names", names}});
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
