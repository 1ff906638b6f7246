// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>

#include "host/files/formats.h"
#include "host/files/npy_array.h"
#include "host/files/npz_file.h"

namespace pointsman {

namespace {

// Instances of one kind and size; arrays are float unless said otherwise.
class NpzInstances {
 public:
  NpzInstances(std::string_view bytes, const std::string& file, const ReadOptions& options)
      : npz_(bytes, file), file_(file), options_(options) {}

  InstanceFile read() {
    const bool tsp = npz_.has("locs"), knapsack = npz_.has("weights") || npz_.has("values");
    if (tsp == knapsack) {
      throw InputError(file_, 0, "expected `locs`, or `weights` and `values`; found " + npz_.names());
    }
    InstanceFile out;
    if (tsp) {
      read_tsp(out.instances);
    } else {
      read_knapsack(out.instances);
    }
    if (npz_.has("ids")) read_ids(out.instances);
    return out;
  }

 private:
  static double checked_number(const NpyArray& array, size_t i, bool negative_allowed) {
    const double value = array.number(i);
    if (std::fabs(value) > kLargestNumber || (value < 0.0 && !negative_allowed)) {
      array.fail(array.index_text(i) + ": expected a number " +
                 (negative_allowed ? "within +-1e100" : "from 0 to 1e100") + ", found " +
                 std::to_string(value));
    }
    return value;
  }

  // A float array (.., n, trailing axes): at least one instance of 1 to kLargestSize points.
  static void check_shape(const NpyArray& array, size_t rank, const char* expected) {
    const std::vector<int64_t>& shape = array.shape();
    if (!array.header().is_float()) {
      array.fail("npy header: descr: expected float32 or float64, found " + array.header().type_text());
    }
    bool good = shape.size() == rank || shape.size() == rank - 1;
    for (const int64_t size : shape) good = good && size >= 1 && size <= kLargestSize;
    if (!good) {
      array.fail("npy header: shape: expected " + std::string(expected) + ", found " +
                 array.header().shape_text());
    }
  }

  void read_tsp(InstanceBatch& instances) {
    const std::string bytes = npz_.read("locs");
    const NpyArray locs = npz_.array(bytes, "locs");
    check_shape(locs, 3, "(B, n, 2) or (n, 2)");
    if (locs.shape().back() != 2) {
      locs.fail("npy header: shape: expected (B, n, 2) or (n, 2), found " + locs.header().shape_text());
    }
    const auto size = static_cast<size_t>(2 * locs.shape()[locs.shape().size() - 2]);
    instances.resize(locs.header().count / size);
    size_t next = 0;
    for (Instance& instance : instances) {
      instance.values.resize(size);
      for (double& value : instance.values) value = checked_number(locs, next++, true);
    }
  }

  void read_knapsack(InstanceBatch& instances) {
    const std::string weight_bytes = npz_.read("weights"), value_bytes = npz_.read("values");
    const NpyArray weights = npz_.array(weight_bytes, "weights"), values = npz_.array(value_bytes, "values");
    check_shape(weights, 2, "(B, n) or (n,)");
    check_shape(values, 2, "(B, n) or (n,)");
    if (weights.shape() != values.shape()) {
      values.fail("npy header: shape: expected that of weights, " + weights.header().shape_text() +
                  ", found " + values.header().shape_text());
    }
    const auto n = static_cast<size_t>(weights.shape().back());
    instances.resize(weights.header().count / n);
    size_t next = 0;
    for (Instance& instance : instances) {
      instance.problem = ProblemKind::kKnapsack;
      instance.values.reserve(2 * n);
      for (size_t i = 0; i < n; ++i, ++next) {
        instance.values.push_back(checked_number(weights, next, false));
        instance.values.push_back(checked_number(values, next, false));
      }
    }
    read_capacities(instances);
  }

  void read_capacities(InstanceBatch& instances) {
    if (!npz_.has("capacity")) {
      if (!options_.capacity)
        throw InputError(file_, 0, "expected `capacity` or --capacity W, found neither");
      for (Instance& instance : instances) instance.capacity = *options_.capacity;
      return;
    }
    const std::string bytes = npz_.read("capacity");
    const NpyArray capacity = npz_.array(bytes, "capacity");
    const size_t count = capacity.header().count;
    if (capacity.header().is_text() || capacity.shape().size() > 1 ||
        (count != 1 && count != instances.size())) {
      capacity.fail("npy header: expected a number or " + std::to_string(instances.size()) +
                    " of them, found " + capacity.header().type_text() + " " +
                    capacity.header().shape_text());
    }
    for (size_t b = 0; b < instances.size(); ++b) {
      instances[b].capacity = checked_number(capacity, count == 1 ? 0 : b, false);
    }
  }

  void read_ids(InstanceBatch& instances) {
    const std::string bytes = npz_.read("ids");
    const NpyArray ids = npz_.array(bytes, "ids");
    if (!(ids.header().is_text() || ids.header().is_integer()) || ids.shape().size() > 1 ||
        ids.header().count != instances.size()) {
      ids.fail("npy header: expected " + std::to_string(instances.size()) + " strings or integers, found " +
               ids.header().type_text() + " " + ids.header().shape_text());
    }
    for (size_t b = 0; b < instances.size(); ++b) {
      instances[b].id = ids.header().is_text() ? ids.text(b) : std::to_string(ids.integer(b));
      instances[b].has_id = !instances[b].id.empty();
    }
  }

  NpzFile npz_;
  const std::string& file_;
  const ReadOptions& options_;
};

}  // namespace

InstanceFile parse_npz_instances(std::string_view bytes, const std::string& file,
                                 const ReadOptions& options) {
  return NpzInstances(bytes, file, options).read();
}

}  // namespace pointsman
