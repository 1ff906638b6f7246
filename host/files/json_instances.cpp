// SPDX-License-Identifier: Apache-2.0
// JSON and NDJSON instances (docs/file-formats.md). Unknown keys are passed over: producers may carry their
// own.
#include <cmath>

#include "host/files/formats.h"
#include "host/files/text_scan.h"

namespace pointsman {

namespace {

double bounded_number(const JsonValue& value) {
  const double number = value.number();
  if (std::fabs(number) > kLargestNumber) value.fail_expected("a number within +-1e100");
  return number;
}

double non_negative(const JsonValue& value) {
  const double number = bounded_number(value);
  if (number < 0.0) value.fail_expected("a number of at least 0");
  return number;
}

void check_size(const JsonValue& array, size_t size, const char* of_what) {
  if (size == 0) array.fail("expected at least one " + std::string(of_what) + ", found none");
  if (size > static_cast<size_t>(kLargestSize))
    array.fail("more than " + std::to_string(kLargestSize) + " of them");
}

void read_tsp(const JsonValue& object, Instance& instance) {
  const JsonValue coordinates = object.get("coordinates");
  const std::vector<JsonValue> points = coordinates.elements();
  check_size(coordinates, points.size(), "city");
  instance.values.reserve(2 * points.size());
  for (const JsonValue& point : points) {
    if (!point.is_array()) point.fail_expected("a pair [x, y]");
    const std::vector<JsonValue> pair = point.elements();
    if (pair.size() != 2) point.fail_expected("a pair [x, y]");
    instance.values.push_back(bounded_number(pair[0]));
    instance.values.push_back(bounded_number(pair[1]));
  }
  if (!object.has("edge_weight_type")) return;
  const JsonValue type = object.get("edge_weight_type");
  for (const Metric metric :
       {Metric::kEuclidean, Metric::kEuc2d, Metric::kCeil2d, Metric::kGeo, Metric::kAtt}) {
    if (type.text() == metric_name(metric)) {
      instance.metric = metric;
      return;
    }
  }
  type.fail_expected("EUCLIDEAN, EUC_2D, CEIL_2D, GEO or ATT");
}

void read_knapsack(const JsonValue& object, Instance& instance) {
  instance.capacity = non_negative(object.get("capacity"));
  const JsonValue weights_array = object.get("weights"), values_array = object.get("values");
  const std::vector<JsonValue> weights = weights_array.elements(), values = values_array.elements();
  check_size(weights_array, weights.size(), "item");
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
  const JsonValue problem = object.get("problem");
  if (problem.text() == "tsp") {
    read_tsp(object, instance);
  } else if (problem.text() == "knapsack") {
    instance.problem = ProblemKind::kKnapsack;
    read_knapsack(object, instance);
  } else {
    problem.fail_expected("\"tsp\" or \"knapsack\"");
  }
  return instance;
}

}  // namespace

Instance parse_json_instance(std::string_view bytes, const std::string& file, int64_t line) {
  const JsonDocument document(bytes, file, line);
  return read_instance(document.root());
}

InstanceFile parse_json_instances(std::string_view bytes, const std::string& file) {
  const JsonDocument document(bytes, file);
  const JsonValue root = document.root();
  if (!root.is_object()) root.fail_expected("an instance or {\"instances\":[..]}");
  InstanceFile out;
  if (!root.has("instances")) {
    out.instances.push_back(read_instance(root));
    return out;
  }
  const JsonValue list = root.get("instances");
  for (const JsonValue& object : list.elements()) out.instances.push_back(read_instance(object));
  if (out.instances.empty()) list.fail("expected at least one instance, found none");
  return out;
}

InstanceFile parse_ndjson_instances(std::string_view bytes, const std::string& file) {
  InstanceFile out;
  LineScanner lines(bytes);
  std::string_view line;
  while (lines.next(line)) {
    if (trim(line).empty()) continue;
    out.instances.push_back(parse_json_instance(line, file, lines.number()));
  }
  if (out.instances.empty()) throw InputError(file, 0, "expected at least one instance, found none");
  return out;
}

}  // namespace pointsman
