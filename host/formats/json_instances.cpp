// SPDX-License-Identifier: Apache-2.0
// JSON and NDJSON instances (docs/file-formats.md). Unknown keys are passed over: producers may carry their
// own.
#include <utility>

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
  if (size > static_cast<size_t>(kLargestSize)) {
    array.fail("more than " + std::to_string(kLargestSize) + " of them");
  }
}

void read_points(const JsonValue& object, Instance& instance) {
  const JsonValue coordinates = object.get("coordinates");
  const std::vector<JsonValue> points = coordinates.elements();
  check_size(coordinates, points.size(), instance);
  instance.values.reserve(2 * points.size());
  for (const JsonValue& point : points) {
    const std::vector<JsonValue> pair = point.is_array() ? point.elements() : std::vector<JsonValue>();
    if (pair.size() != 2) point.fail_expected("a pair [x, y]");
    for (const JsonValue& coordinate : pair) instance.values.push_back(coordinate.bounded_number());
  }
  if (!object.has("edge_weight_type")) return;
  const JsonValue type = object.get("edge_weight_type");
  const std::optional<Metric> metric = find_metric(type.text());
  if (!metric || *metric == Metric::kExplicit)
    type.fail_expected("EUCLIDEAN, EUC_2D, CEIL_2D, GEO, ATT, MAN_2D or MAX_2D");
  instance.metric = *metric;
  if (instance.metric != Metric::kGeo) return;
  for (int city = 0; city < instance.n(); ++city) {
    if (!is_geographic(instance.first(city), instance.second(city)))
      points[city].fail_expected("a latitude within +-90 and a longitude within +-360 (GEO)");
  }
}

void read_weights_and_values(const JsonValue& object, Instance& instance) {
  const JsonValue weights_array = object.get("weights"), values_array = object.get("values");
  const std::vector<JsonValue> weights = weights_array.elements(), values = values_array.elements();
  check_size(weights_array, weights.size(), instance);
  if (values.size() != weights.size()) {
    values_array.fail_expected("as many as weights (" + std::to_string(weights.size()) + ")");
  }
  instance.values.reserve(2 * weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    instance.values.push_back(non_negative(weights[i]));
    instance.values.push_back(non_negative(values[i]));
  }
}

Instance read_instance(const JsonValue& object) {
  Instance instance;
  if (!object.is_object()) object.fail_expected("an instance (an object)");
  if (object.has("id")) {
    instance.id = object.get("id").text();
    instance.has_id = !instance.id.empty();
  }
  instance.problem = read_problem(object);
  const Problem& problem = problem_of(instance);
  if (problem.has_capacity) instance.capacity = non_negative(object.get("capacity"));
  switch (problem.fields) {
    case ItemFields::kCoordinates:
      read_points(object, instance);
      break;
    case ItemFields::kWeightAndValue:
      read_weights_and_values(object, instance);
      break;
  }
  return instance;
}

std::string instance_json(const Instance& instance) {
  const Problem& problem = problem_of(instance);
  const auto n = static_cast<size_t>(instance.n());
  JsonText id, metric, capacity, points, weights, values;
  if (instance.has_id) id = instance.id;
  if (instance.metric != Metric::kEuclidean) metric = metric_name(instance.metric);
  if (problem.has_capacity) capacity = instance.capacity;
  const auto number = [&](size_t i) { return instance.values[i]; };
  switch (problem.fields) {
    case ItemFields::kCoordinates:
      points =
          json_array(n, [&](size_t i) { return json_array(2, [&](size_t k) { return number(2 * i + k); }); });
      break;
    case ItemFields::kWeightAndValue:
      weights = json_array(n, [&](size_t i) { return number(2 * i); });
      values = json_array(n, [&](size_t i) { return number(2 * i + 1); });
      break;
  }
  return json_object({{"id", id},
                      {"problem", name_of(instance.problem)},
                      {"edge_weight_type", metric},
                      {"capacity", capacity},
                      {"coordinates", points},
                      {"weights", weights},
                      {"values", values}})
      .text;
}

}  // namespace

ProblemKind read_problem(const JsonValue& object) {
  const JsonValue name = object.get("problem");
  const std::optional<ProblemKind> kind = find_problem(name.text());
  if (!kind) name.fail_expected(problem_names("\""));
  return *kind;
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
  if (root.is_object() && !root.has("instances")) {
    out.instances.push_back(read_instance(root));
    return out;
  }
  const JsonValue list = root.is_array() ? root : root.get("instances");
  if (!list.is_array()) list.fail_expected("an array");
  if (out.instances.empty()) list.fail("expected at least one instance, found none");
  return out;
}

InstanceFile parse_json(std::string_view bytes, const std::string& file, const ReadOptions&) {
  return read_json([&] { return std::string(std::exchange(bytes, {})); }, file);
}

InstanceFile parse_ndjson(std::string_view bytes, const std::string& file, const ReadOptions&) {
  InstanceFile out;
  for_each_json_line(bytes, file,
                     [&](const JsonValue& line) { out.instances.push_back(read_instance(line)); });
  if (out.instances.empty()) throw InputError(file, 0, "expected at least one instance, found none");
  return out;
}

static const std::string kWritten = "JSON";  // in a message, where the run ends meanwhile

std::string write_json(const InstanceBatch& instances) {
  check_coordinates(instances);
  if (instances.size() == 1) return instance_json(instances[0]) + "\n";
  const auto watched = [&, watch = LoadingWatch(kWritten)](const Instance& instance) mutable {
    watch.after(instance.values.size());
    return instance_json(instance);
  };
  return "{\"instances\":[\n" + joined(instances, ",\n", watched) + "]}\n";
}

std::string write_ndjson(const InstanceBatch& instances) {
  check_coordinates(instances);
  std::string out;
  LoadingWatch watch(kWritten);
  for (const Instance& instance : instances) {
    watch.after(instance.values.size());
    out += instance_json(instance) + "\n";
  }
  return out;
}

}  // namespace pointsman
