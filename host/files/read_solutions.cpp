// SPDX-License-Identifier: Apache-2.0
#include "host/files/read_solutions.h"

#include <cmath>
#include <limits>

#include "engine/problem/validate.h"
#include "host/files/formats.h"
#include "host/files/npy_array.h"
#include "host/files/npz_file.h"
#include "host/files/text_scan.h"

namespace pointsman {

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::string solutions_wanted(const InstanceBatch& instances) {
  return std::to_string(instances.size()) + (instances.size() == 1 ? " solution" : " solutions");
}

void check_count(size_t found, const InstanceBatch& instances, const std::string& file) {
  if (found == instances.size()) return;
  throw InputError(
      file, 0,
      "expected " + solutions_wanted(instances) + ", one for each instance, found " + std::to_string(found));
}

// One element of our own "solutions", or one NDJSON line.
Solution read_json_solution(const JsonValue& object, size_t index, const Instance& instance) {
  if (!object.is_object()) object.fail_expected("a solution (an object)");
  if (object.has("index") && static_cast<size_t>(object.get("index").index()) != index) {
    object.get("index").fail_expected(std::to_string(index));
  }
  const bool tsp = instance.problem == ProblemKind::kTsp;
  Solution solution;
  for (const JsonValue& entry : object.get(tsp ? "tour" : "items").elements()) {
    solution.order.push_back(entry.index());
  }
  const char* const cost = tsp ? "cost" : "value";
  const bool claims = object.has(cost) && object.get(cost).kind() != JsonValue::Kind::kNull;
  solution.objective = claims ? object.get(cost).number() : kNone;
  return solution;
}

SolutionBatch read_json_solutions(std::string_view bytes, const std::string& file,
                                  const InstanceBatch& instances) {
  SolutionBatch out;
  if (!is_ndjson(bytes, file)) {
    const JsonDocument document(bytes, file);
    const JsonValue root = document.root();
    if (!root.is_object()) root.fail_expected("{\"solutions\":[..]}");
    if (!root.has("solutions")) {
      out.push_back(read_json_solution(root, 0, instances.at(0)));
    } else {
      for (const JsonValue& object : root.get("solutions").elements()) {
        if (out.size() == instances.size())
          object.fail("expected no more than " + solutions_wanted(instances));
        out.push_back(read_json_solution(object, out.size(), instances[out.size()]));
      }
    }
  } else {
    LineScanner lines(bytes);
    std::string_view line;
    while (lines.next(line)) {
      if (trim(line).empty()) continue;
      const JsonDocument document(line, file, lines.number());
      if (out.size() == instances.size()) {
        document.root().fail("expected no more than " + solutions_wanted(instances));
      }
      out.push_back(read_json_solution(document.root(), out.size(), instances[out.size()]));
    }
  }
  check_count(out.size(), instances, file);
  return out;
}

// Rows of an array (B, n), or of one row (n,), as tours or selections.
SolutionBatch read_rows(const NpyArray& array, const InstanceBatch& instances, const std::string& file) {
  const std::vector<int64_t>& shape = array.shape();
  if (array.header().is_float() || array.header().is_text()) {
    array.fail("npy header: descr: expected integers, found " + array.header().type_text());
  }
  if (shape.empty() || shape.size() > 2) {
    array.fail("npy header: shape: expected (B, n) or (n,), found " + array.header().shape_text());
  }
  check_count(shape.size() == 1 ? 1 : static_cast<size_t>(shape[0]), instances, file);
  SolutionBatch out;
  size_t next = 0;
  for (const Instance& instance : instances) {
    if (shape.back() != instance.n()) {
      array.fail("npy header: shape: expected n = " + std::to_string(instance.n()) + ", found " +
                 array.header().shape_text());
    }
    Solution solution;
    solution.objective = kNone;
    for (int32_t i = 0; i < instance.n(); ++i, ++next) {
      const int64_t value = array.integer(next);
      const bool tsp = instance.problem == ProblemKind::kTsp;
      if (value < 0 || value > (tsp ? std::numeric_limits<int32_t>::max() : 1)) {
        array.fail(array.index_text(next) + ": expected " + (tsp ? "a city, from 0" : "0 or 1") + ", found " +
                   std::to_string(value));
      }
      if (tsp) {
        solution.order.push_back(static_cast<int32_t>(value));
      } else if (value == 1) {
        solution.order.push_back(i);
      }
    }
    out.push_back(std::move(solution));
  }
  return out;
}

SolutionBatch read_npz_solutions(std::string_view bytes, const std::string& file,
                                 const InstanceBatch& instances) {
  const NpzFile npz(bytes, file);
  const std::string name = npz.has("tours") ? "tours" : npz.has("selections") ? "selections" : "";
  if (name.empty()) throw InputError(file, 0, "expected `tours` or `selections`, found " + npz.names());
  const std::string array_bytes = npz.read(name);
  SolutionBatch out = read_rows(npz.array(array_bytes, name), instances, file);
  if (npz.has("costs")) {
    const std::string cost_bytes = npz.read("costs");
    const NpyArray costs = npz.array(cost_bytes, "costs");
    if (costs.header().is_text() || costs.shape().size() > 1) costs.fail("expected numbers (B,)");
    check_count(costs.header().count, instances, file);
    for (size_t i = 0; i < out.size(); ++i) out[i].objective = costs.number(i);
  }
  return out;
}

SolutionBatch parse_solutions(std::string_view bytes, const std::string& file,
                              const InstanceBatch& instances) {
  if (instances.empty()) return {};
  if (bytes.substr(0, 6) == "\x93NUMPY") return read_rows(NpyArray(bytes, file), instances, file);
  if (bytes.substr(0, 2) == "PK") return read_npz_solutions(bytes, file, instances);
  const std::string_view text = trim(bytes.substr(0, bytes.find('\n')));
  if (!text.empty() && text.front() >= 'A' && text.front() <= 'Z') {
    check_count(1, instances, file);
    Solution solution;
    solution.order = parse_tsplib_tour(bytes, file);
    solution.objective = kNone;
    return {solution};
  }
  return read_json_solutions(bytes, file, instances);
}

std::vector<double> read_npy_reference(const NpyArray& array, const InstanceBatch& instances,
                                       const std::string& file) {
  if (array.header().is_text() || array.shape().size() != 1) {
    array.fail("npy header: expected numbers (B,), found " + array.header().type_text() + " " +
               array.header().shape_text());
  }
  check_count(array.header().count, instances, file);
  std::vector<double> out(instances.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = array.number(i);
  return out;
}

std::vector<double> costs_of(const SolutionBatch& claimed, const InstanceBatch& instances,
                             const std::string& file) {
  std::vector<double> out;
  for (size_t i = 0; i < claimed.size(); ++i) {
    Solution solution = claimed[i];
    const std::string wrong = validate_solution(instances[i], solution);
    if (!wrong.empty()) throw InputError(file, 0, "solution " + std::to_string(i) + ": " + wrong);
    out.push_back(solution.objective);
  }
  return out;
}

// {"costs":[..]}; nothing when it is another JSON text.
bool read_cost_list(std::string_view bytes, const std::string& file, const InstanceBatch& instances,
                    std::vector<double>& out) {
  if (is_ndjson(bytes, file)) return false;
  const JsonDocument document(bytes, file);
  if (!document.root().is_object() || !document.root().has("costs")) return false;
  for (const JsonValue& value : document.root().get("costs").elements()) out.push_back(value.number());
  check_count(out.size(), instances, file);
  return true;
}

// One number a line.
std::vector<double> read_number_lines(std::string_view bytes, const std::string& file,
                                      const InstanceBatch& instances) {
  std::vector<double> out;
  LineScanner lines(bytes);
  std::string_view line;
  while (lines.next(line)) {
    line = trim(line);
    if (line.empty()) continue;
    double value = 0.0;
    if (!parse_number(line, value)) {
      throw InputError(file, lines.number(), "expected a number, found " + shown(line));
    }
    out.push_back(value);
  }
  check_count(out.size(), instances, file);
  return out;
}

}  // namespace

bool is_ndjson(std::string_view bytes, const std::string& file) {
  const std::string suffix = file_suffix(file);
  if (suffix == ".ndjson" || suffix == ".jsonl") return true;
  if (suffix == ".json") return false;
  const size_t end = bytes.find('\n');
  if (end == std::string_view::npos) return false;
  try {
    return !JsonDocument(bytes.substr(0, end), file).root().has("solutions");
  } catch (const InputError&) {
    return false;
  }
}

SolutionBatch read_solutions(const std::string& path, const InstanceBatch& instances) {
  return parse_solutions(read_file(path), path, instances);
}

std::vector<double> read_reference(const std::string& what, const InstanceBatch& instances) {
  double value = 0.0;
  if (parse_number(what, value)) return std::vector<double>(instances.size(), value);
  const std::string bytes = read_file(what);
  std::vector<double> costs;
  if (bytes.substr(0, 6) == "\x93NUMPY") {
    const NpyArray array(bytes, what);
    if (array.shape().size() == 1 && array.header().is_float())
      return read_npy_reference(array, instances, what);
  } else if (trim(std::string_view(bytes).substr(0, 1)) == "{" &&
             read_cost_list(bytes, what, instances, costs)) {
    return costs;
  }
  if (!bytes.empty() && bytes.front() >= '0' && bytes.front() <= '9') {
    return read_number_lines(bytes, what, instances);
  }
  return costs_of(parse_solutions(bytes, what, instances), instances, what);
}

}  // namespace pointsman
