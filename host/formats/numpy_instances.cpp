// SPDX-License-Identifier: Apache-2.0
// Instances of one kind and size as NumPy arrays: .npy and .npz (docs/file-formats.md).
#include <cmath>

#include "host/formats/arrays.h"
#include "host/formats/formats.h"
#include "host/formats/input_file.h"
#include "host/formats/input_limit.h"
#include "host/formats/matrix_builder.h"
#include "host/formats/npz_file.h"
#include "models/tools/atomic_file.h"

namespace pointsman {
namespace {

constexpr const char* kPairs = "(B, n, 2) or (n, 2)";

[[noreturn]] void fail_shape(const NpyArray& array, const std::string& expected) {
  array.fail_header("shape: expected " + expected + ", found " + array.header().shape_text());
}

// Element i of the array, a number of an item; coordinates may be negative.
double checked_number(const NpyArray& array, size_t i, double value, ItemFields fields) {
  const bool may_be_negative = fields == ItemFields::kCoordinates;
  if (std::fabs(value) > kLargestNumber || (value < 0.0 && !may_be_negative)) {
    array.fail(array.index_text(i) + ": expected a number " +
               (may_be_negative ? "within +-1e100" : "from 0 to 1e100") + ", found " + std::to_string(value));
  }
  return value;
}

// Element i, a weight, a value or a capacity.
double item_number(const NpyArray& array, size_t i) {
  const double value = checked_number(array, i, array.number(i), ItemFields::kWeightAndValue);
  if (array.header().is_float() || value < 0x1p53) return value;
  const std::string lost = lost_digits(std::to_string(array.integer(i)), value);
  if (!lost.empty()) array.fail(array.index_text(i) + ": " + lost);
  return value;
}

void check_numbers(const NpyArray& array) {
  if (array.header().is_float() || array.header().is_integer()) return;
  array.fail_header("descr: expected floats or integers, found " + array.header().type_text());
}

// An array of numbers (.., n, trailing axes): at least one instance of 1 to kLargestSize points.
void check_shape(const NpyArray& array, size_t rank, const char* expected) {
  check_numbers(array);
  const std::vector<int64_t>& shape = array.shape();
  bool good = shape.size() == rank || shape.size() == rank - 1;
  for (const int64_t size : shape) good = good && size >= 1 && size <= kLargestSize;
  if (!good) fail_shape(array, expected);
}

// What so many instances of so many doubles take together, before they take it.
void check_memory(const NpyArray& array, size_t instances, size_t numbers, const ReadOptions& options) {
  if (!options.is_packed) return;
  check_input_size(instances * sizeof(Instance) + numbers * sizeof(double), array.file(),
                   std::to_string(instances) + " instances of " + array.header().shape_text() + " take");
}

// Of a checked array (B, n, 2) or (n, 2); each instance is otherwise like `pattern`.
InstanceBatch read_pairs(const NpyArray& array, const Instance& pattern, const ReadOptions& options) {
  const auto size = static_cast<size_t>(2 * array.shape()[array.shape().size() - 2]);
  check_memory(array, array.header().count / size, array.header().count, options);
  InstanceBatch instances(array.header().count / size, pattern);
  LoadingWatch watch(array.file());
  size_t next = 0;
  for (Instance& instance : instances) {
    watch.after(size);
    instance.values.resize(size);
    if (problem_of(pattern).fields == ItemFields::kWeightAndValue && !array.header().is_float()) {
      for (double& value : instance.values) value = item_number(array, next++);
      continue;
    }
    array.numbers(next, instance.values);
    for (const double value : instance.values)
      checked_number(array, next++, value, problem_of(pattern).fields);
  }
  return instances;
}

// The matrix that starts at element `first`. The diagonal is not read.
std::shared_ptr<const DistanceMatrix> read_matrix(const NpyArray& array, size_t first, int n) {
  MatrixBuilder builder(n, array.header().count);
  LoadingWatch watch(array.file());
  for (int i = 0; i < n; ++i) {
    watch.after(static_cast<size_t>(n));
    for (int j = 0; j < n; ++j) {
      const size_t at = first + static_cast<size_t>(i) * static_cast<size_t>(n) + static_cast<size_t>(j);
      const double distance = i == j ? 0.0 : array.number(at);
      if (!builder.add(i, j, distance))
        array.fail(array.index_text(at) + ": " + builder.refusal(i, j, distance));
    }
  }
  return builder.finish();
}

InstanceBatch read_columns(const NpyArray& weights, const NpyArray& values, const Instance& pattern,
                           const ReadOptions& options) {
  check_shape(weights, 2, "(B, n) or (n,)");
  check_shape(values, 2, "(B, n) or (n,)");
  if (weights.shape() != values.shape())
    fail_shape(values, "that of weights, " + weights.header().shape_text());
  const auto n = static_cast<size_t>(weights.shape().back());
  check_memory(weights, weights.header().count / n, 2 * weights.header().count, options);
  InstanceBatch instances(weights.header().count / n, pattern);
  LoadingWatch watch(weights.file());
  size_t next = 0;
  for (Instance& instance : instances) {
    watch.after(2 * n);
    instance.values.reserve(2 * n);
    for (size_t i = 0; i < n; ++i, ++next) {
      for (const NpyArray* array : {&weights, &values}) instance.values.push_back(item_number(*array, next));
    }
  }
  return instances;
}

void read_ids(const NpzFile& npz, InstanceBatch& instances) {
  const NpyArray ids = npz.array("ids");
  if (!(ids.header().is_text() || ids.header().is_integer()) || ids.shape().size() > 1 ||
      ids.header().count != instances.size()) {
    ids.fail_header("expected " + std::to_string(instances.size()) + " strings or integers, found " +
                    ids.header().type_text() + " " + ids.header().shape_text());
  }
  for (size_t b = 0; b < instances.size(); ++b) {
    instances[b].id = ids.header().is_text() ? ids.text(b) : std::to_string(ids.integer(b));
    instances[b].has_id = !instances[b].id.empty();
  }
}

void check_metric(const InstanceBatch& instances) {
  check_coordinates(instances);
  for (const Instance& instance : instances) {
    if (instance.metric == Metric::kEuclidean) continue;
    throw OutputRefused("an array holds no edge weight type; use json, ndjson or tsplib");
  }
}

// A float64 array (B, axes) of numbers(instance).
template <typename Numbers>
std::string doubles_npy(const InstanceBatch& instances, std::vector<size_t> axes, Numbers numbers) {
  axes.insert(axes.begin(), instances.size());
  std::string out = npy_header("<f8", axes);
  const std::string name = ".npy";
  LoadingWatch watch(name);
  for (const Instance& instance : instances) {
    watch.after(instance.values.size());
    for (const double number : numbers(instance)) append_bytes(out, number);
  }
  return out;
}

// (B, n)
std::string column_npy(const InstanceBatch& instances, size_t column) {
  const auto n = static_cast<size_t>(instances[0].n());
  return doubles_npy(instances, {n}, [&](const Instance& instance) {
    std::vector<double> numbers;
    for (size_t i = column; i < 2 * n; i += 2) numbers.push_back(instance.values[i]);
    return numbers;
  });
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

InstanceBatch instances_of_points(const NpyArray& array, const ReadOptions& options) {
  const std::vector<int64_t>& shape = array.shape();
  check_numbers(array);
  if ((shape.size() != 2 && shape.size() != 3) || shape.back() != 2) {
    const bool is_square = shape.size() > 1 && shape.back() == shape[shape.size() - 2];
    fail_shape(array, kPairs + std::string(is_square ? " (--input-format matrix takes distances)" : ""));
  }
  const int64_t n = shape[shape.size() - 2];
  if (array.header().count == 0 || n > kLargestSize) {
    fail_shape(array, "at least one instance of 1 to " + std::to_string(kLargestSize) + " points");
  }
  Instance pattern;
  pattern.problem = options.problem.value_or(problem_with(ItemFields::kCoordinates, options));
  const Problem& problem = problem_of(pattern);
  if (problem.has_capacity && !options.capacity) {
    array.fail(std::string("an .npy of ") + problem.title + " instances needs --capacity W" +
               (problem.fields == ItemFields::kWeightAndValue ? " (columns weight, value)" : ""));
  }
  if (problem.has_capacity) pattern.capacity = *options.capacity;
  return read_pairs(array, pattern, options);
}

InstanceBatch instances_of_matrices(const NpyArray& array, const ReadOptions& options) {
  const std::vector<int64_t>& shape = array.shape();
  check_numbers(array);
  const bool is_square = (shape.size() == 2 || shape.size() == 3) && shape.back() == shape[shape.size() - 2];
  if (!is_square || array.header().count == 0 || shape.back() > kLargestSize)
    fail_shape(array, "(n, n) or (B, n, n) with at least one matrix");
  const auto n = static_cast<size_t>(shape.back());
  InstanceBatch instances;
  check_memory(array, array.header().count / (n * n), array.header().count / 2, options);
  instances.reserve(array.header().count / (n * n));
  for (size_t first = 0; first < array.header().count; first += n * n) {
    Instance& instance = instances.emplace_back();
    instance.problem = problem_with(ItemFields::kCoordinates, {});
    instance.metric = Metric::kExplicit;
    instance.matrix = read_matrix(array, first, static_cast<int>(n));
  }
  return instances;
}

InstanceBatch instances_of_items(const NpyArray& weights, const NpyArray& values) {
  Instance pattern;
  pattern.problem = problem_with(ItemFields::kWeightAndValue, {});
  return read_columns(weights, values, pattern, {});
}

void set_capacities(const NpyArray& capacity, InstanceBatch& instances) {
  const size_t count = capacity.header().count;
  if (capacity.header().is_text() || capacity.shape().size() > 1 ||
      (count != 1 && count != instances.size())) {
    capacity.fail_header("expected a number or " + std::to_string(instances.size()) + " of them, found " +
                         capacity.header().type_text() + " " + capacity.header().shape_text());
  }
  for (size_t b = 0; b < instances.size(); ++b) {
    const size_t i = count == 1 ? 0 : b;
    instances[b].capacity = item_number(capacity, i);
  }
}

InstanceFile parse_npy(std::string_view bytes, const std::string& file, const ReadOptions& options) {
  return {instances_of_points(NpyArray(bytes, file), options), {}};
}

InstanceFile parse_matrix(std::string_view bytes, const std::string& file, const ReadOptions& options) {
  return {instances_of_matrices(NpyArray(bytes, file), options), {}};
}

InstanceFile parse_npz(std::string_view bytes, const std::string& file, const ReadOptions& asked) {
  const NpzFile npz(bytes, file);
  ReadOptions options = asked;
  options.is_packed = asked.is_packed || npz.is_packed();
  const bool has_pairs = npz.has("locs"), has_columns = npz.has("weights") || npz.has("values");
  if (has_pairs == has_columns) {
    throw InputError(file, 0, "expected `locs`, or `weights` and `values`; found " + npz.names());
  }
  Instance pattern;
  pattern.problem = problem_with(has_pairs ? ItemFields::kCoordinates : ItemFields::kWeightAndValue, options);
  InstanceFile out;
  if (has_pairs) {
    const NpyArray locs = npz.array("locs");
    check_shape(locs, 3, kPairs);
    if (locs.shape().back() != 2) fail_shape(locs, kPairs);
    out.instances = read_pairs(locs, pattern, options);
  } else {
    const NpyArray weights = npz.array("weights"), values = npz.array("values");
    out.instances = read_columns(weights, values, pattern, options);
  }
  if (npz.has("capacity") && problem_of(pattern).has_capacity) {
    set_capacities(npz.array("capacity"), out.instances);
  } else if (problem_of(pattern).has_capacity) {
    if (!options.capacity) throw InputError(file, 0, "expected `capacity` or --capacity W, found neither");
    for (Instance& instance : out.instances) instance.capacity = *options.capacity;
  }
  if (npz.has("ids")) read_ids(npz, out.instances);
  return out;
}

std::string write_npy(const InstanceBatch& instances) {
  check_uniform(instances);
  check_metric(instances);
  return doubles_npy(instances, {static_cast<size_t>(instances[0].n()), 2},
                     [](const Instance& instance) -> const std::vector<double>& { return instance.values; });
}

std::string write_npz(const InstanceBatch& instances) {
  check_uniform(instances);
  check_metric(instances);
  const Problem& problem = problem_of(instances[0]);
  std::vector<std::pair<std::string, std::string>> arrays;
  switch (problem.fields) {
    case ItemFields::kCoordinates:
      arrays.emplace_back("locs.npy", write_npy(instances));
      break;
    case ItemFields::kWeightAndValue:
      arrays.emplace_back("weights.npy", column_npy(instances, 0));
      arrays.emplace_back("values.npy", column_npy(instances, 1));
      break;
  }
  if (problem.has_capacity) {
    arrays.emplace_back("capacity.npy", doubles_npy(instances, {}, [](const Instance& instance) {
                          return std::array{instance.capacity};
                        }));
  }
  if (std::any_of(instances.begin(), instances.end(),
                  [](const Instance& instance) { return instance.has_id; })) {
    arrays.emplace_back("ids.npy", ids_npy(instances));
  }
  return zip_stored(arrays);
}

}  // namespace pointsman
