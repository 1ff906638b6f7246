// SPDX-License-Identifier: Apache-2.0
// NumPy's arrays in and out of the engine's types. Arrays that come in are C-ordered numbers of 1, 2, 4 or 8
// bytes in the machine's byte order; `name` is theirs in messages.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/problem/instance.h"
#include "host/formats/npy_array.h"

namespace pointsman {

using AnyArray = nanobind::ndarray<nanobind::ro, nanobind::c_contig, nanobind::device::cpu>;

// Refers to the array's own memory.
NpyArray npy_of(const AnyArray& array, const std::string& name);

// An array of numpy that owns `values`, which are as many as `shape` says.
template <typename Number>
nanobind::object numpy_array(std::vector<Number> values, std::initializer_list<size_t> shape) {
  auto* const owned = new std::vector<Number>(std::move(values));
  const nanobind::capsule owner(
      owned, [](void* memory) noexcept { delete static_cast<std::vector<Number>*>(memory); });
  return nanobind::cast(nanobind::ndarray<nanobind::numpy, Number>(owned->data(), shape, owner));
}

// The items of one instance, (n, 2): x and y, or weight and value. Empty of a matrix.
nanobind::object items_array(const Instance& instance);
// Of all instances, (B, n, 2); they are of one size and have coordinates.
nanobind::object items_array(const InstanceBatch& instances);
// (n, n), its diagonal 0.
nanobind::object matrix_array(const DistanceMatrix& matrix);

// (B, n) int32 of all answers, which are orders of all items of instances of one size; -1 where there is
// none.
nanobind::object orders_array(const SolutionBatch& solutions, int n);
// One int32 array an answer.
nanobind::list orders_list(const SolutionBatch& solutions);

}  // namespace pointsman
