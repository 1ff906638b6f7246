// SPDX-License-Identifier: Apache-2.0
// Instances and solutions of one problem and size as NumPy arrays, .npy and .npz (docs/file-formats.md).
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "engine/problem/timed_places.h"
#include "host/formats/formats.h"
#include "host/formats/input_file.h"
#include "host/formats/npy_array.h"
#include "models/tools/atomic_file.h"
#include "models/tools/json_text.h"

namespace pointsman {
namespace {

constexpr const char *kPairs = "(B, n, 2) or (n, 2)", *kColumns = "(B, n) or (n,)",
                     *kMatrices = "(n, n) or (B, n, n)";

[[noreturn]] void fail_shape(const NpyArray& array, const std::string& expected) {
  array.fail_header("shape: expected " + expected + ", found " + array.header().shape_text());
}

[[noreturn]] void fail_array(const NpyArray& array, const std::string& expected) {
  array.fail_header("expected " + expected + ", found " + array.header().type_text() + " " +
                    array.header().shape_text());
}

// The k-th axis from the last; 0 if there is none.
int64_t size_from_end(const NpyArray& array, size_t k) {
  const size_t rank = array.shape().size();
  return k < rank ? array.shape()[rank - 1 - k] : 0;
}

// Throws unless the array holds numbers, or what may be booleans, has `rank` axes or one fewer, and `fits`.
void check_shape(const NpyArray& array, size_t rank, bool fits, const std::string& expected,
                 bool may_be_booleans = false) {
  if (!array.header().is_float() && !array.header().is_integer() &&
      !(may_be_booleans && array.header().kind == 'b'))
    array.fail_header("descr: expected floats or integers, found " + array.header().type_text());
  if (!fits || (array.shape().size() != rank && array.shape().size() + 1 != rank))
    fail_shape(array, expected);
  for (const int64_t size : array.shape()) {
    if (size < 1 || size > kLargestSize)
      fail_shape(array, "at least one instance of 1 to " + std::to_string(kLargestSize) + " points");
  }
}

bool are_pairs(const NpyArray& array) { return size_from_end(array, 0) == 2; }
bool are_square(const NpyArray& array) {
  return size_from_end(array, 1) > 0 && size_from_end(array, 0) == size_from_end(array, 1);
}

// Only coordinates may be negative.
void check_number(const NpyArray& array, size_t i, double value, bool is_coordinate) {
  if (std::fabs(value) <= kLargestNumber && (value >= 0.0 || is_coordinate)) return;
  const std::string expected = is_coordinate ? "within +-1e100" : "from 0 to 1e100";
  array.fail_at(i, "expected a number " + expected + ", found " + std::to_string(value));
}

// Element i: when a place closes, perhaps never. `opens`: when it opens.
double closing_time(const NpyArray& array, size_t i, double opens) {
  const double value = array.any_number(i);
  if (value != std::numeric_limits<double>::infinity()) check_number(array, i, value, true);
  if (!(value >= opens)) array.fail_at(i, "expected no time before it opens, found " + std::to_string(value));
  return value;
}

// Element i: a weight, a value or a capacity.
double item_number(const NpyArray& array, size_t i) {
  const double value = array.number(i);
  check_number(array, i, value, false);
  if (array.header().is_float() || value < 0x1p53) return value;
  const std::string lost = lost_digits(std::to_string(array.integer(i)), value);
  if (!lost.empty()) array.fail_at(i, lost);
  return value;
}

// `pattern` once for each `size` elements of the array. For packed input it first checks the memory that the
// instances and `numbers` doubles need.
InstanceBatch new_instances(const NpyArray& array, size_t size, size_t numbers, const Instance& pattern) {
  const size_t count = array.header().count / size;
  if (array.is_packed())
    check_input_size(count * sizeof(Instance) + numbers * sizeof(double), array.file(),
                     std::to_string(count) + " instances of " + array.header().shape_text() + " take");
  return InstanceBatch(count, pattern);
}

// The numbers of the items: an array of pairs, or columns, which alternate. An instance has `size` elements
// of each.
InstanceBatch read_items(std::initializer_list<const NpyArray*> arrays, size_t size,
                         const Instance& pattern) {
  const NpyArray& first = **arrays.begin();
  InstanceBatch instances = new_instances(first, size, arrays.size() * first.header().count, pattern);
  const bool are_places = has_metric(problem_of(pattern).fields);
  const bool may_lose_digits = !are_places && !first.header().is_float();
  LoadingWatch watch(first.file());
  size_t next = 0;
  for (Instance& instance : instances) {
    watch.after(arrays.size() * size);
    if (arrays.size() == 1 && !may_lose_digits) {
      instance.values.resize(size);
      first.numbers(next, instance.values);
      for (const double value : instance.values) check_number(first, next++, value, are_places);
      continue;
    }
    instance.values.reserve(arrays.size() * size);
    for (const size_t end = next + size; next < end; ++next) {
      for (const NpyArray* array : arrays) instance.values.push_back(item_number(*array, next));
    }
  }
  return instances;
}

void read_ids(const NpzFile& npz, InstanceBatch& instances) {
  const NpyArray ids = npz.array("ids");
  if (!(ids.header().is_text() || ids.header().is_integer()) || ids.shape().size() > 1 ||
      ids.header().count != instances.size())
    fail_array(ids, std::to_string(instances.size()) + " strings or integers");
  for (size_t b = 0; b < instances.size(); ++b) {
    instances[b].id = ids.header().is_text() ? ids.text(b) : std::to_string(ids.integer(b));
    instances[b].has_id = !instances[b].id.empty();
  }
}

void check_uniform(const InstanceBatch& instances) {
  if (instances.empty()) throw OutputRefused("an array cannot be empty; use json or ndjson");
  if (!is_uniform(instances))
    throw OutputRefused("an array holds instances of one problem and one size; use json or ndjson");
}

// Throws OutputRefused for what an array cannot hold.
void check_writable(const InstanceBatch& instances) {
  check_uniform(instances);
  if (!std::ranges::all_of(instances, &Instance::suits_networks) ||
      !std::ranges::all_of(instances, &Instance::has_coordinates))
    throw OutputRefused(
        "an array of coordinates holds no matrix, forced or forbidden edges or ends; use json");
  const auto is_euclidean = [](const Instance& instance) { return instance.metric == Metric::kEuclidean; };
  if (!std::ranges::all_of(instances, is_euclidean))
    throw OutputRefused("an array holds no edge weight type; use json, ndjson or tsplib");
}

// A float64 array (B, axes..) of each instance's numbers: fields first .. last - 1 of its items from `item`
// on.
std::string values_npy(const InstanceBatch& instances, std::vector<size_t> axes, int item, int first,
                       int last) {
  axes.insert(axes.begin(), instances.size());
  std::string out = npy_header("<f8", axes);
  const std::string name = ".npy";
  LoadingWatch watch(name);
  for (const Instance& instance : instances) {
    watch.after(instance.values.size());
    for (int i = item; i < instance.n(); ++i) {
      for (int field = first; field < last; ++field)
        append_bytes(out, instance.values[static_cast<size_t>(instance.width()) * i + field]);
    }
  }
  return out;
}

// (B, 2), the places of all items 0.
std::string first_npy(const InstanceBatch& instances) {
  std::string out = npy_header("<f8", {instances.size(), 2});
  for (const Instance& instance : instances) {
    append_bytes(out, instance.first(0));
    append_bytes(out, instance.second(0));
  }
  return out;
}

// (B,) of UTF-8 byte strings
std::string ids_npy(const InstanceBatch& instances) {
  size_t longest = 1;
  for (const Instance& instance : instances) longest = std::max(longest, instance.id.size());
  std::string out = npy_header("|S" + std::to_string(longest), {instances.size()});
  for (const Instance& instance : instances) {
    out += instance.id;
    out.append(longest - instance.id.size(), '\0');
  }
  return out;
}

}  // namespace

// (B, n, 5): x, y, when a place opens and closes, how long a visit takes.
static InstanceBatch timed_instances(const NpyArray& array, const Instance& pattern) {
  constexpr size_t kWidth = InstancePlaces::kVisit + 1;
  check_shape(array, 3, size_from_end(array, 0) == kWidth,
              "(B, n, 5) or (n, 5): x, y, opens, closes and visit");
  const size_t size = kWidth * static_cast<size_t>(size_from_end(array, 1));
  InstanceBatch instances = new_instances(array, size, array.header().count, pattern);
  LoadingWatch watch(array.file());
  size_t next = 0;
  for (Instance& instance : instances) {
    watch.after(size);
    for (const size_t end = next + size; next < end; ++next) {
      const size_t field = next % kWidth;
      if (field == InstancePlaces::kCloses) {
        instance.values.push_back(closing_time(array, next, instance.values.back()));
        continue;
      }
      instance.values.push_back(array.number(next));
      check_number(array, next, instance.values.back(), field != InstancePlaces::kVisit);
    }
  }
  return instances;
}

InstanceBatch instances_of_points(const NpyArray& array, const ReadOptions& options) {
  if (options.problem && problem_of(*options.problem).fields == ItemFields::kCoordinatesAndWindows) {
    Instance pattern;
    pattern.problem = *options.problem;
    return timed_instances(array, pattern);
  }
  check_shape(array, 3, are_pairs(array),
              kPairs + std::string(are_square(array) ? " (--input-format matrix takes distances)" : ""));
  Instance pattern;
  pattern.problem = options.problem.value_or(problem_with(ItemFields::kCoordinates, options));
  const Problem& problem = problem_of(pattern);
  if (problem.fields == ItemFields::kDistances || problem.fields == ItemFields::kEdges)
    array.fail(std::string("points are no ") + problem.title + " instance; expected a matrix");
  if (problem.has_depot)
    array.fail(std::string("an .npy has no demands; expected an .npz or JSON of ") + problem.title);
  if (problem.has_capacity && !options.capacity)
    array.fail(std::string("an .npy of ") + problem.title + " instances needs --capacity W" +
               (problem.fields == ItemFields::kWeightAndValue ? " (columns weight, value)" : ""));
  if (problem.has_capacity) pattern.capacity = *options.capacity;
  return read_items({&array}, static_cast<size_t>(2 * size_from_end(array, 1)), pattern);
}

InstanceBatch instances_of_matrices(const NpyArray& array, std::optional<ProblemKind> problem,
                                    std::string& note) {
  Instance pattern;
  pattern.problem = problem.value_or(ProblemKind::kTsp);
  check_shape(array, 3, are_square(array), kMatrices, is_graph(pattern.problem));
  const auto n = static_cast<size_t>(array.shape().back());
  const Problem& known = problem_of(pattern);
  if (!are_in_matrix(known.fields)) array.fail(std::string("a matrix of distances is no ") + known.title);
  InstanceBatch instances = new_instances(array, n * n, array.header().count, pattern);
  LoadingWatch watch(array.file());
  size_t next = 0;
  for (Instance& instance : instances) {
    MatrixBuilder builder(static_cast<int>(n), array.header().count);
    for (int i = 0; i < builder.n(); ++i) {
      watch.after(n);
      for (int j = 0; j < builder.n(); ++j, ++next) {
        const double distance = i == j ? 0.0 : array.any_number(next);
        if (!builder.add(i, j, distance)) array.fail_at(next, MatrixBuilder::refusal(distance));
      }
    }
    set_matrix(instance, builder.finish(), note);
  }
  const auto is_atsp = [](const Instance& instance) { return instance.problem == ProblemKind::kAtsp; };
  if (std::ranges::any_of(instances, is_atsp)) {
    for (Instance& instance : instances) instance.problem = ProblemKind::kAtsp;
  }
  return instances;
}

InstanceBatch instances_of_items(const NpyArray& weights, const NpyArray& values,
                                 const ReadOptions& options) {
  for (const NpyArray* array : {&weights, &values}) check_shape(*array, 2, true, kColumns);
  if (weights.shape() != values.shape())
    fail_shape(values, "that of weights, " + weights.header().shape_text());
  Instance pattern;
  pattern.problem = problem_with(ItemFields::kWeightAndValue, options);
  return read_items({&weights, &values}, static_cast<size_t>(weights.shape().back()), pattern);
}

void set_capacities(const NpyArray& capacity, InstanceBatch& instances) {
  const size_t count = capacity.header().count;
  if (capacity.header().is_text() || capacity.shape().size() > 1 || (count != 1 && count != instances.size()))
    fail_array(capacity, "a number or " + std::to_string(instances.size()) + " of them");
  for (size_t b = 0; b < instances.size(); ++b)
    instances[b].capacity = item_number(capacity, count == 1 ? 0 : b);
}

InstanceFile parse_npy(InputFile& file, const ReadOptions& options) {
  const ItemFields fields = problem_of(options.problem.value_or(ProblemKind::kTsp)).fields;
  if (fields == ItemFields::kDistances || fields == ItemFields::kEdges) return parse_matrix(file, options);
  return {instances_of_points(NpyArray(file), options), {}};
}

InstanceFile parse_matrix(InputFile& file, const ReadOptions& options) {
  std::string note;
  InstanceFile out{instances_of_matrices(NpyArray(file), options.problem, note), {}};
  if (!note.empty()) out.warnings.push_back(file.name() + ": " + note);
  return out;
}

static void read_capacities(const NpzFile& npz, const std::string& file, const ReadOptions& options,
                            InstanceBatch& instances) {
  if (npz.has("capacity")) return set_capacities(npz.array("capacity"), instances);
  if (!options.capacity) throw InputError(file, 0, "expected `capacity` or --capacity W, found neither");
  for (Instance& instance : instances) instance.capacity = *options.capacity;
}

// depot (B, 2), locs (B, customers, 2), demand (B, customers), and capacity.
static InstanceFile parse_routing(const NpzFile& npz, const std::string& file, const ReadOptions& options) {
  const NpyArray depots = npz.array("depot"), locs = npz.array("locs"), demands = npz.array("demand");
  check_shape(depots, 2, are_pairs(depots), "(B, 2)");
  check_shape(locs, 3, are_pairs(locs), kPairs);
  check_shape(demands, 2, true, kColumns);
  const auto customers = static_cast<size_t>(size_from_end(locs, 1));
  Instance pattern;
  pattern.problem = problem_with(ItemFields::kCoordinatesAndDemand, options);
  InstanceFile out;
  out.instances = new_instances(depots, 2, 3 * locs.header().count / 2, pattern);
  const size_t count = out.instances.size();
  std::vector<int64_t> shape = locs.shape();
  shape.pop_back();
  if (demands.shape() != shape)
    fail_array(demands, "a number for each of `locs`, " + locs.header().shape_text());
  shape.back() = 2;
  if (depots.shape() != shape)
    fail_array(depots, "a place for each instance of `locs`, " + locs.header().shape_text());
  read_capacities(npz, file, options, out.instances);
  LoadingWatch watch(file);
  for (size_t b = 0; b < count; ++b) {
    watch.after(3 * customers);
    std::vector<double>& values = out.instances[b].values;
    const auto add = [&](const NpyArray& array, size_t i, bool is_coordinate) {
      const double number = is_coordinate ? array.number(i) : item_number(array, i);
      check_number(array, i, number, is_coordinate);
      values.push_back(number);
    };
    add(depots, 2 * b, true), add(depots, 2 * b + 1, true);
    values.push_back(0.0);
    for (size_t i = b * customers; i < (b + 1) * customers; ++i) {
      add(locs, 2 * i, true), add(locs, 2 * i + 1, true), add(demands, i, false);
      const std::string wrong = wrong_demand(out.instances[b], i - b * customers + 1);
      if (!wrong.empty()) demands.fail_at(i, "expected " + wrong + ", found " + number_text(values.back()));
    }
  }
  if (npz.has("ids")) read_ids(npz, out.instances);
  return out;
}

// The array of coordinates: by one of its usual names, else the only one of pairs, whatever its name, where
// nothing has the name of another array.
static std::string name_of_pairs(const NpzFile& npz) {
  for (const char* name : {"locs", "coords", "loc", "coordinates"}) {
    if (npz.has(name)) return name;
  }
  std::string found;
  for (const std::string& key : npz.keys()) {
    if (key == "weights" || key == "values" || key == "profits") return "";
    if (key == "ids" || key == "time_windows") continue;
    const NpyArray array = npz.array(key);
    if (!are_pairs(array) || array.shape().size() < 2) continue;
    if (!found.empty()) return "";
    found = key;
  }
  return found;
}

// Behind the places of the instances: time_windows (B, n, 2), of which a closing time may be infinite, and
// service_times (B, n) or none.
static void add_windows(const NpzFile& npz, const NpyArray& locs, InstanceBatch& instances) {
  const NpyArray windows = npz.array("time_windows");
  if (windows.shape() != locs.shape()) fail_shape(windows, "that of places, " + locs.header().shape_text());
  check_shape(windows, 3, true, kPairs);
  std::unique_ptr<const NpyArray> visits;
  if (npz.has("service_times")) visits.reset(new NpyArray(npz.array("service_times")));
  if (visits) {
    std::vector<int64_t> shape = locs.shape();
    shape.pop_back();
    check_shape(*visits, 2, visits->shape() == shape, "a number for each place");
  }
  size_t next = 0;
  for (Instance& instance : instances) {
    const std::vector<double> places = std::exchange(instance.values, {});
    for (size_t i = 0; 2 * i < places.size(); ++i, ++next) {
      const double opens = windows.number(2 * next);
      check_number(windows, 2 * next, opens, true);
      instance.values.insert(instance.values.end(), {places[2 * i], places[2 * i + 1], opens,
                                                     closing_time(windows, 2 * next + 1, opens),
                                                     visits ? item_number(*visits, next) : 0.0});
    }
  }
}

InstanceFile parse_npz(InputFile& file, const ReadOptions& options) {
  const NpzFile npz(file);
  if (npz.has("depot")) return parse_routing(npz, file.name(), options);
  const std::string pairs = name_of_pairs(npz);
  const bool has_pairs = !pairs.empty(), has_columns = npz.has("weights") || npz.has("values");
  if (has_pairs == has_columns)
    throw InputError(file.name(), 0, "expected `locs`, or `weights` and `values`; found " + npz.names());
  InstanceFile out;
  if (has_pairs) {
    const NpyArray locs = npz.array(pairs);
    check_shape(locs, 3, are_pairs(locs), kPairs);
    Instance pattern;
    const bool is_timed = npz.has("time_windows");
    pattern.problem =
        problem_with(is_timed ? ItemFields::kCoordinatesAndWindows : ItemFields::kCoordinates, options);
    out.instances = read_items({&locs}, static_cast<size_t>(2 * size_from_end(locs, 1)), pattern);
    if (is_timed) add_windows(npz, locs, out.instances);
  } else {
    const bool has_profits = npz.has("profits") && !npz.has("values");
    const NpyArray weights = npz.array("weights"), values = npz.array(has_profits ? "profits" : "values");
    out.instances = instances_of_items(weights, values, options);
  }
  if (problem_of(out.instances[0]).has_capacity) read_capacities(npz, file.name(), options, out.instances);
  if (npz.has("ids")) read_ids(npz, out.instances);
  return out;
}

// (B, n, n)
static std::string matrices_npy(const InstanceBatch& instances) {
  const auto n = static_cast<size_t>(instances[0].n());
  std::string out = npy_header("<f8", {instances.size(), n, n});
  for (const Instance& instance : instances) {
    for (int a = 0; a < instance.n(); ++a) {
      for (int b = 0; b < instance.n(); ++b) append_bytes(out, instance.matrix->at(a, b));
    }
  }
  return out;
}

std::string write_npy(const InstanceBatch& instances) {
  check_uniform(instances);
  const ItemFields fields = problem_of(instances[0]).fields;
  if (fields == ItemFields::kDistances || fields == ItemFields::kEdges) return matrices_npy(instances);
  check_writable(instances);
  if (problem_of(instances[0]).has_depot) throw OutputRefused("an .npy holds no demands; use npz or json");
  const int width = instances[0].width();
  return values_npy(instances, {static_cast<size_t>(instances[0].n()), static_cast<size_t>(width)}, 0, 0,
                    width);
}

std::string write_npz(const InstanceBatch& instances) {
  check_writable(instances);
  const Problem& problem = problem_of(instances[0]);
  const auto n = static_cast<size_t>(instances[0].n());
  std::vector<std::pair<std::string, std::string>> arrays;
  switch (problem.fields) {
    case ItemFields::kCoordinates:
      arrays.emplace_back("locs.npy", values_npy(instances, {n, 2}, 0, 0, 2));
      break;
    case ItemFields::kWeightAndValue:
      arrays.emplace_back("weights.npy", values_npy(instances, {n}, 0, 0, 1));
      arrays.emplace_back("values.npy", values_npy(instances, {n}, 0, 1, 2));
      break;
    case ItemFields::kCoordinatesAndDemand:
      arrays.emplace_back("depot.npy", first_npy(instances));
      arrays.emplace_back("locs.npy", values_npy(instances, {n - 1, 2}, 1, 0, 2));
      arrays.emplace_back("demand.npy", values_npy(instances, {n - 1}, 1, 2, 3));
      break;
    case ItemFields::kCoordinatesAndWindows:
      arrays.emplace_back("locs.npy", values_npy(instances, {n, 2}, 0, 0, 2));
      arrays.emplace_back("time_windows.npy", values_npy(instances, {n, 2}, 0, 2, 4));
      arrays.emplace_back("service_times.npy", values_npy(instances, {n}, 0, 4, 5));
      break;
    case ItemFields::kOwn:  // in no file
    case ItemFields::kDistances:
    case ItemFields::kEdges:
      break;  // refused
  }
  if (problem.has_capacity) {
    std::string& bytes = arrays.emplace_back("capacity.npy", npy_header("<f8", {instances.size()})).second;
    for (const Instance& instance : instances) append_bytes(bytes, instance.capacity);
  }
  if (std::ranges::any_of(instances, &Instance::has_id)) arrays.emplace_back("ids.npy", ids_npy(instances));
  return zip_stored(arrays);
}

SolutionBatch solutions_of_rows(const NpyArray& array, const InstanceBatch& instances,
                                const std::string& file) {
  const std::vector<int64_t>& shape = array.shape();
  if (array.header().is_float() || array.header().is_text())
    array.fail_header("descr: expected integers, found " + array.header().type_text());
  if (shape.empty() || shape.size() > 2) fail_shape(array, kColumns);
  check_count(shape.size() == 1 ? 1 : static_cast<size_t>(shape[0]), instances, file);
  SolutionBatch out;
  size_t next = 0;
  for (const Instance& instance : instances) {
    const Problem& problem = problem_of(instance);
    if (!problem.has_depot && shape.back() != instance.n())
      fail_shape(array, "n = " + std::to_string(instance.n()));
    const bool has_all_items = problem.has_all_items;
    Solution solution;
    solution.objective = kNoNumber;
    for (int32_t i = 0; i < static_cast<int32_t>(shape.back()); ++i, ++next) {
      const int64_t value = array.integer(next);
      if (problem.has_depot && value == -1) continue;
      if (value < 0 || value > (has_all_items ? std::numeric_limits<int32_t>::max() : 1))
        array.fail_at(
            next,
            "expected " +
                (has_all_items ? "a " + std::string(problem.has_labels ? "colour" : problem.item) + ", from 0"
                               : "0 or 1") +
                ", found " + std::to_string(value));
      if (has_all_items) {
        solution.order.push_back(static_cast<int32_t>(value));
      } else if (value == 1) {
        solution.order.push_back(i);
      }
    }
    out.push_back(std::move(solution));
  }
  return out;
}

SolutionBatch parse_npy_answers(InputFile& file, const InstanceBatch& instances) {
  return solutions_of_rows(NpyArray(file), instances, file.name());
}

SolutionBatch parse_npz_answers(InputFile& file, const InstanceBatch& instances) {
  const NpzFile npz(file);
  const char* const kNames[] = {"tours", "routes", "selections", "colours"};
  const auto found = std::ranges::find_if(kNames, [&](const char* name) { return npz.has(name); });
  if (found == std::end(kNames))
    throw InputError(file.name(), 0,
                     "expected `tours`, `routes`, `selections` or `colours`, found " + npz.names());
  const std::string name = *found;
  SolutionBatch out = solutions_of_rows(npz.array(name), instances, file.name());
  if (npz.has("costs")) {
    const NpyArray costs = npz.array("costs");
    if (costs.header().is_text() || costs.shape().size() > 1) costs.fail("expected numbers (B,)");
    check_count(costs.header().count, instances, file.name());
    for (size_t i = 0; i < out.size(); ++i) out[i].objective = costs.number(i);
  }
  return out;
}

std::string write_npy_answers(const Answer& answer) {
  check_uniform(answer.instances);
  const Problem& problem = problem_of(answer.instances[0]);
  const auto n = static_cast<size_t>(longest_order(answer.instances[0]));
  const bool has_all_items = problem.has_all_items;
  std::string out = npy_header(has_all_items ? "<i4" : "|u1", {answer.solutions.size(), n});
  for (const Solution& solution : answer.solutions) {
    if (!has_answer(solution)) {  // a row of -1
      out.append(n * (has_all_items ? sizeof(int32_t) : 1), '\xFF');
      continue;
    }
    std::string taken(n, '\0');
    for (const int32_t item : solution.order) {
      if (has_all_items) append_bytes(out, item);
      taken.at(static_cast<size_t>(item)) = '\1';
    }
    if (!has_all_items) out += taken;
    if (has_all_items) out.append((n - solution.order.size()) * sizeof(int32_t), '\xFF');  // -1
  }
  return out;
}

std::string write_npz_answers(const Answer& answer) {
  const std::string orders = write_npy_answers(answer);
  std::string costs = npy_header("<f8", {answer.solutions.size()});
  for (const Solution& solution : answer.solutions) append_bytes(costs, solution.objective);
  const Problem& problem = problem_of(answer.instances[0]);
  const char* const name = problem.has_labels      ? "colours.npy"
                           : problem.has_depot     ? "routes.npy"
                           : problem.has_all_items ? "tours.npy"
                                                   : "selections.npy";
  return zip_stored({{name, orders}, {"costs.npy", costs}});
}

}  // namespace pointsman
