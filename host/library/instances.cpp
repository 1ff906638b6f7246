// SPDX-License-Identifier: Apache-2.0
// Series of instances: from numbers in memory, from files and to files.
#include <cmath>

#include "engine/problem/problem.h"
#include "engine/problem/timed_places.h"
#include "host/library/handles.h"
#include "models/tools/json_text.h"

namespace pointsman {

namespace {

ProblemKind problem_named(const char* name) {
  const std::optional<ProblemKind> kind = find_problem(name);
  if (!kind) throw std::invalid_argument("problem: expected " + problem_names() + ", found " + shown(name));
  return *kind;
}

KnapsackLayout layout_named(const std::string& name) {
  const std::span<const LayoutName> layouts = knapsack_layouts();
  const auto found = std::ranges::find(layouts, name, &LayoutName::name);
  if (found == layouts.end())
    throw std::invalid_argument("layout: expected one of " + joined(layouts, ", ", &LayoutName::name) +
                                ", found " + shown(name));
  return found->layout;
}

// A number that is not what an instance may hold. `place` follows the instance's own.
[[noreturn]] void fail_number(const pointsman_instances& instances, const std::string& place,
                              const std::string& message) {
  throw InputError("instances[" + std::to_string(instances.batch.size()) + "]" + place, 0, message);
}

bool is_allowed(double value, bool may_be_negative) {
  return std::fabs(value) <= kLargestNumber && (may_be_negative || value >= 0.0);
}

void check_size(const pointsman_instances& instances, size_t n, const char* of) {
  if (n >= 1 && n <= static_cast<size_t>(kLargestSize)) return;
  fail_number(instances, "",
              std::string("expected from 1 to ") + std::to_string(kLargestSize) + " " + of + ", found " +
                  std::to_string(n));
}

void add(pointsman_instances& instances, Instance instance, const char* id) {
  instance.id = id == nullptr ? "" : id;
  instance.has_id = !instance.id.empty();
  instances.batch.push_back(std::move(instance));
}

Instance items_instance(const pointsman_instances& instances, ProblemKind kind, const double* items, size_t n,
                        double capacity) {
  const Problem& problem = problem_of(kind);
  check_size(instances, n, problem.items);
  if (problem.fields == ItemFields::kDistances)
    throw UsageError(std::string(problem.title) + ": instances are matrices; use pointsman_add_matrix");
  if (problem.fields == ItemFields::kEdges)
    throw UsageError(std::string(problem.title) + ": instances are graphs; use pointsman_parse_instances");
  const auto width = static_cast<size_t>(numbers_of_item(kind));
  const auto fail_at = [&](size_t i, const std::string& expected) {
    fail_number(instances, ".items[" + std::to_string(i / width) + "][" + std::to_string(i % width) + "]",
                "expected " + expected + ", found " + number_text(items[i]));
  };
  for (size_t i = 0; i < width * n; ++i) {
    const bool is_time = problem.fields == ItemFields::kCoordinatesAndWindows &&
                         i % width >= InstancePlaces::kOpens && i % width <= InstancePlaces::kCloses;
    const bool may_be_negative = is_time || (has_metric(problem.fields) && i % width < 2);
    const bool is_never = is_time && i % width == InstancePlaces::kCloses && items[i] == HUGE_VAL;
    if (!is_never && !is_allowed(items[i], may_be_negative))
      fail_at(i, may_be_negative ? "a number within +-1e100" : "a number from 0 to 1e100");
  }
  Instance instance;
  instance.problem = kind;
  instance.values.assign(items, items + width * n);
  for (size_t i = 0; i < n && problem.fields == ItemFields::kCoordinatesAndWindows; ++i) {
    const std::string wrong = wrong_times(instance, i);
    if (!wrong.empty()) fail_at(width * i + InstancePlaces::kCloses, wrong);
  }
  if (!problem.has_capacity) return instance;
  if (!is_allowed(capacity, false))
    fail_number(instances, ".capacity", "expected a number from 0 to 1e100, found " + number_text(capacity));
  instance.capacity = capacity;
  for (size_t i = 0; i < n && problem.has_depot; ++i) {
    const std::string wrong = wrong_demand(instance, i);
    if (!wrong.empty()) fail_at(width * i + 2, wrong);
  }
  return instance;
}

Instance matrix_instance(const pointsman_instances& instances, const double* distances, size_t n) {
  check_size(instances, n, "cities");
  MatrixBuilder builder(static_cast<int>(n), n * (n - 1) / 2);
  for (size_t at = 0; at < n * n; ++at) {
    const auto i = static_cast<int>(at / n), j = static_cast<int>(at % n);
    if (builder.add(i, j, distances[at])) continue;
    fail_number(instances, ".distances[" + std::to_string(i) + "][" + std::to_string(j) + "]",
                MatrixBuilder::refusal(distances[at]));
  }
  Instance instance;
  std::string note;  // callers hand over numbers that they know
  set_matrix(instance, builder.finish(), note);
  return instance;
}

ReadOptions read_options(const pointsman_read_options* given) {
  const pointsman_read_options own = taken(given, pointsman_read_options{});
  ReadOptions options;
  if (own.format != nullptr)
    options.format = chosen_format(instance_formats(), own.format, "", &InstanceFormat::parse).kind;
  if (own.layout != nullptr) options.layout = layout_named(own.layout);
  if (own.problem != nullptr) options.problem = problem_named(own.problem);
  if (!is_allowed(own.capacity, false)) {
    throw std::invalid_argument("capacity: expected a number from 0 to 1e100, found " +
                                number_text(own.capacity));
  }
  if (own.capacity > 0.0) options.capacity = own.capacity;
  if (own.metric != nullptr) options.metric = find_metric(upper_case(own.metric));
  if (own.metric != nullptr && !options.metric)
    throw std::invalid_argument("metric: expected " + metric_names() + ", found " + shown(own.metric));
  if (own.columns != nullptr) options.columns = own.columns;
  return options;
}

pointsman_instances* new_instances(const pointsman_solver& solver, InstanceFile&& file) {
  for (const std::string& warning : file.warnings) solver.log.info(warning);
  return new pointsman_instances{std::move(file.instances)};
}

}  // namespace

}  // namespace pointsman

using namespace pointsman;

extern "C" {

int pointsman_read_options_init(pointsman_read_options* options, size_t size) {
  return give(pointsman_read_options{}, options, size);
}

int pointsman_instance_init(pointsman_instance* instance, size_t size) {
  return give(pointsman_instance{}, instance, size);
}

int pointsman_instances_create(pointsman_solver* solver, pointsman_instances** instances) {
  return call_with(solver, [&] {
    required(instances, "instances");
    *instances = new pointsman_instances;
  });
}

void pointsman_instances_free(pointsman_instances* instances) { delete instances; }

size_t pointsman_instances_count(const pointsman_instances* instances) {
  return instances == nullptr ? 0 : instances->batch.size();
}

int pointsman_instances_get(const pointsman_instances* instances, size_t index,
                            pointsman_instance* instance) {
  if (index >= pointsman_instances_count(instances) || instance == nullptr) return POINTSMAN_USAGE;
  const Instance& own = instances->batch[index];
  pointsman_instance view = {};
  view.id = own.id.c_str();
  view.problem = name_of(own.problem);
  view.metric = has_metric(problem_of(own).fields) ? metric_name(own.metric) : "";
  view.items = own.values.empty() ? nullptr : own.values.data();
  view.n = static_cast<size_t>(own.n());
  view.capacity = own.capacity;
  return give(view, instance, instance->size);
}

int pointsman_add_items(pointsman_solver* solver, pointsman_instances* instances, const char* problem,
                        const double* items, size_t n, double capacity, const char* id) {
  return call_with(solver, [&] {
    const ProblemKind kind = problem_named(required(problem, "problem"));
    required(instances, "instances");
    add(*instances, items_instance(*instances, kind, required(items, "items"), n, capacity), id);
  });
}

int pointsman_add_matrix(pointsman_solver* solver, pointsman_instances* instances, const double* distances,
                         size_t n, const char* id) {
  return call_with(solver, [&] {
    required(instances, "instances");
    add(*instances, matrix_instance(*instances, required(distances, "distances"), n), id);
  });
}

int pointsman_read_instances(pointsman_solver* solver, const char* path,
                             const pointsman_read_options* options, pointsman_instances** instances) {
  return call_with(solver, [&] {
    required(instances, "instances");
    *instances = new_instances(*solver, read_instances(required(path, "path"), read_options(options)));
  });
}

int pointsman_parse_instances(pointsman_solver* solver, const void* bytes, size_t size, const char* name,
                              const pointsman_read_options* options, pointsman_instances** instances) {
  return call_with(solver, [&] {
    required(instances, "instances");
    const std::string_view text(static_cast<const char*>(required(bytes, "bytes")), size);
    *instances = new_instances(*solver, parse_instances(text, required(name, "name"), read_options(options)));
  });
}

int pointsman_write_instances(pointsman_solver* solver, const pointsman_instances* instances,
                              const char* path, const char* format, int replace) {
  return call_with(solver, [&] {
    const InstanceBatch& batch = required(instances, "instances")->batch;
    const auto& chosen =
        chosen_format(instance_formats(), format, required(path, "path"), &InstanceFormat::write);
    write_output(path, replace != 0, [&] { return chosen.write(batch); });
  });
}

int pointsman_format_instances(pointsman_solver* solver, const pointsman_instances* instances,
                               const char* format, const void** bytes, size_t* size) {
  return call_with(solver, [&] {
    const InstanceBatch& batch = required(instances, "instances")->batch;
    required(bytes, "bytes");
    required(size, "size");
    const auto& chosen =
        chosen_format(instance_formats(), required(format, "format"), "", &InstanceFormat::write);
    solver->give_bytes(chosen.write(batch), bytes, size);
  });
}
}
