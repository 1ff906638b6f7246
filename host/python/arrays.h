// SPDX-License-Identifier: Apache-2.0
// Arrays of numpy that own their numbers.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <initializer_list>
#include <utility>
#include <vector>

namespace pointsman {

// `values` are as many as `shape` says.
template <typename Number>
nanobind::object numpy_array(std::vector<Number> values, std::initializer_list<size_t> shape) {
  auto* const owned = new std::vector<Number>(std::move(values));
  const nanobind::capsule owner(
      owned, [](void* memory) noexcept { delete static_cast<std::vector<Number>*>(memory); });
  return nanobind::cast(nanobind::ndarray<nanobind::numpy, Number>(owned->data(), shape, owner));
}

template <typename Number>
nanobind::object numpy_array(std::vector<Number> values) {
  const size_t count = values.size();
  return numpy_array(std::move(values), {count});
}

}  // namespace pointsman
