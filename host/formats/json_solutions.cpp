// SPDX-License-Identifier: Apache-2.0
// The program's own answers in JSON and NDJSON (docs/file-formats.md), and its errors.
#include <cmath>

#include "engine/problem/instance_hash.h"
#include "host/formats/formats.h"
#include "models/tools/json_text.h"

namespace pointsman {
namespace {

// One element of our own "solutions", or one NDJSON line.
Solution read_json_solution(const JsonValue& object, size_t index, const Instance& instance) {
  if (!object.is_object()) object.fail_expected("a solution (an object)");
  if (object.has("index") && static_cast<size_t>(object.get("index").index()) != index) {
    object.get("index").fail_expected(std::to_string(index));
  }
  const Problem& problem = problem_of(instance);
  Solution solution;
  for (const JsonValue& entry : object.get(problem.order_key).elements()) {
    solution.order.push_back(entry.index());
  }
  const char* const key = problem.objective_key;
  const bool claims = object.has(key) && object.get(key).kind() != JsonValue::Kind::kNull;
  solution.objective = claims ? object.get(key).number() : kNoNumber;
  return solution;
}

// No member where the number is not known.
JsonText known(double value) { return std::isfinite(value) ? JsonText(value) : JsonText(); }

// Null where it is not known.
JsonText objective_json(const Instance& instance, double objective) {
  JsonText json(objective);
  if (std::isfinite(objective)) json.text = objective_text(instance, objective);
  return json;
}

// Null where there is none.
template <typename Number>
JsonText or_null(const std::optional<Number>& number) {
  return number ? JsonText(*number) : JsonText(kNoNumber);
}
JsonText or_null(const std::string& text) { return text.empty() ? JsonText(kNoNumber) : JsonText(text); }

JsonText group_json(const SummaryGroup& group) {
  return json_object({{"problem", or_null(group.problem)},
                      {"n", group.n > 0 ? JsonText(group.n) : JsonText(kNoNumber)},
                      {"mode", group.mode},
                      {"model", or_null(group.model)},
                      {"instances", group.instances},
                      {"mean_cost", group.mean_cost},
                      {"gap", group.gap}});
}

}  // namespace

std::string summary_json(const SolveSummary& s) {
  return json_object(
             {{"instances", s.instances},
              {"unsolved", s.unsolved > 0 ? JsonText(s.unsolved) : JsonText()},
              {"mean_cost", s.mean_cost},
              {"mean_network_cost", known(s.mean_network_cost)},
              {"gap", s.gap},
              {"computing_times", json_object({{"loading", s.loading_ms}, {"solving", s.solving_ms}})},
              {"mode", s.mode},
              {"start", s.start.empty() ? JsonText() : JsonText(s.start)},
              {"kicks", s.kicks > 0 ? JsonText(s.kicks) : JsonText()},
              {"samples", or_null(s.samples)},
              {"augment", or_null(s.augment)},
              {"shuffle", s.shuffle},
              {"improve", s.improve},
              {"model", s.model.empty() ? JsonText() : JsonText(s.model)},  // no member where none was used
              {"model_sha256", s.model.empty() ? JsonText() : JsonText(s.model_sha256)},
              {"device", s.device},
              {"seed", s.seed},
              {"version", s.version},
              {"groups", json_array(s.groups.size(), [&](size_t i) { return group_json(s.groups[i]); })}})
      .text;
}

bool is_ndjson(std::string_view bytes, const std::string& file) {
  const AnswerFormat* const told = format_by_suffix(answer_formats(), unpacked_name(file));
  if (told && told->kind == OutputFormat::kNdjson) return true;
  if (told && told->kind == OutputFormat::kJson) return false;
  const size_t end = bytes.find('\n');
  if (end == std::string_view::npos) return false;
  try {
    return !JsonDocument(bytes.substr(0, end), file).root().has("solutions");
  } catch (const InputError&) {
    return false;
  }
}

namespace {

// What a solution starts with. hash: empty where it is left out.
std::string start_of(int64_t index, const Instance& instance, const std::string& hash) {
  std::string start = json_object({{"index", index},
                                   {"id", instance.id},
                                   {"problem", name_of(instance.problem)},
                                   {"n", instance.n()},
                                   {"instance", hash.empty() ? JsonText() : JsonText(hash)}})
                          .text;
  start.back() = ',';
  return start;
}

// And what follows.
std::string found_json(const Instance& instance, const Solution& solution, double gap) {
  const Problem& problem = problem_of(instance);
  const bool is_solved = solution.status != Status::kUnsolved;
  const bool has_length =
      is_solved && problem.fields == ItemFields::kCoordinates && instance.has_coordinates();
  const JsonText objective = objective_json(instance, solution.objective);
  const bool has_network = std::isfinite(solution.network_objective);
  const bool has_start = solution.start != Start::kNone;
  const bool has_kicks = has_start && is_solved && problem.has_local_search;
  const auto order = json_array(solution.order.size(), [&](size_t i) { return solution.order[i]; });
  const JsonText found = json_object(
      {{"status", name_of(solution.status)},
       {problem.objective_key, is_solved ? objective : JsonText()},
       {"cost_euclidean", has_length ? JsonText(solution.unrounded) : JsonText()},
       {"weight", is_solved && problem.has_capacity ? JsonText(solution.weight) : JsonText()},
       {"gap", gap},
       {"log_prob", solution.log_prob},
       {"network_cost", has_network ? objective_json(instance, solution.network_objective) : JsonText()},
       {"start", has_start ? JsonText(name_of(solution.start)) : JsonText()},
       {"kicks", has_kicks ? JsonText(solution.kicks) : JsonText()},
       {problem.order_key, is_solved ? JsonText(order) : JsonText(kNoNumber)}});
  return found.text.substr(1);
}

}  // namespace

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
  return json_object({{"index", index >= 0 ? JsonText(index) : JsonText()},
                      {"code", code},
                      {"error", message},
                      {"file", file.empty() ? JsonText() : JsonText(file)},
                      {"line", line > 0 ? JsonText(line) : JsonText()}})
      .text;
}

SolutionBatch parse_json_answers(std::string_view bytes, const std::string& file,
                                 const InstanceBatch& instances) {
  SolutionBatch out;
  const auto add = [&](const JsonValue& object) {
    if (out.size() == instances.size()) object.fail("expected no more than " + solutions_wanted(instances));
    out.push_back(read_json_solution(object, out.size(), instances[out.size()]));
  };
  if (is_ndjson(bytes, file)) {
    for_each_json_line(bytes, file, add);
  } else {
    const JsonDocument document(bytes, file);
    const JsonValue root = document.root();
    if (!root.is_object()) root.fail_expected("{\"solutions\":[..]}");
    if (root.has("solutions")) {
      for (const JsonValue& object : root.get("solutions").elements()) add(object);
    } else {
      add(root);
    }
  }
  check_count(out.size(), instances, file);
  return out;
}

std::string write_json_answers(const Answer& answer) {
  std::string out = "{\"code\":" + std::to_string(answer.summary.code) +
                    ",\"summary\":" + summary_json(answer.summary) + ",\n \"solutions\":[";
  for (size_t i = 0; i < answer.solutions.size(); ++i) {
    out += (i > 0 ? ",\n  " : "\n  ") +
           solution_json(static_cast<int64_t>(i), answer.instances[i], answer.solutions[i], answer.gap(i));
  }
  return out + "]}\n";
}

std::string write_ndjson_answers(const Answer& answer) {
  std::string out;
  for (size_t i = 0; i < answer.solutions.size(); ++i)
    out += solution_line(static_cast<int64_t>(i), answer.instances[i], answer.solutions[i], answer.gap(i));
  return out;
}

}  // namespace pointsman
