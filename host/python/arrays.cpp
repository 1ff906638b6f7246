// SPDX-License-Identifier: Apache-2.0
#include "host/python/arrays.h"

#include <algorithm>
#include <string_view>

#include "engine/problem/problem.h"

namespace nb = nanobind;

namespace pointsman {

NpyArray npy_of(const AnyArray& array, const std::string& name) {
  const auto kind_of = [](nb::dlpack::dtype type) {
    switch (static_cast<nb::dlpack::dtype_code>(type.code)) {
      case nb::dlpack::dtype_code::Float:
        return 'f';
      case nb::dlpack::dtype_code::Int:
        return 'i';
      case nb::dlpack::dtype_code::UInt:
        return 'u';
      default:
        return 'b';
    }
  };
  NpyHeader header;
  header.kind = kind_of(array.dtype());
  header.item_size = array.itemsize();
  for (size_t axis = 0; axis < array.ndim(); ++axis)
    header.shape.push_back(static_cast<int64_t>(array.shape(axis)));
  header.count = array.size();
  header.data_size = array.nbytes();
  return {header, std::string_view(static_cast<const char*>(array.data()), array.nbytes()), name};
}

nb::object items_array(const Instance& instance) {
  return numpy_array(instance.values, {instance.values.size() / 2, 2});
}

nb::object items_array(const InstanceBatch& instances) {
  const auto n = static_cast<size_t>(instances.at(0).n());
  std::vector<double> all;
  all.reserve(instances.size() * 2 * n);
  for (const Instance& instance : instances)
    all.insert(all.end(), instance.values.begin(), instance.values.end());
  return numpy_array(std::move(all), {instances.size(), n, 2});
}

nb::object matrix_array(const DistanceMatrix& matrix) {
  const auto n = static_cast<size_t>(matrix.n);
  std::vector<double> all;
  all.reserve(n * n);
  for (int i = 0; i < matrix.n; ++i) {
    for (int j = 0; j < matrix.n; ++j) all.push_back(matrix.at(i, j));
  }
  return numpy_array(std::move(all), {n, n});
}

nb::object orders_array(const SolutionBatch& solutions, int n) {
  const auto width = static_cast<size_t>(n);
  std::vector<int32_t> all(solutions.size() * width, -1);
  for (size_t i = 0; i < solutions.size(); ++i)
    std::copy(solutions[i].order.begin(), solutions[i].order.end(), all.data() + i * width);
  return numpy_array(std::move(all), {solutions.size(), width});
}

nb::list orders_list(const SolutionBatch& solutions) {
  nb::list all;
  for (const Solution& solution : solutions) all.append(numpy_array(solution.order, {solution.order.size()}));
  return all;
}

}  // namespace pointsman
