// SPDX-License-Identifier: Apache-2.0
// What every backend reads in the same way from a model's config and layout.
#pragma once

#include <array>

#include "kernels/common/network.h"
#include "kernels/common/policy.h"
#include "models/config.h"
#include "models/parameter_layout.h"

namespace pointsman {

// Where the matrix of each projection begins in the parameter vector; `count` of them.
inline std::array<size_t, 4> projection_tensors(const ParameterLayout& layout,
                                                const Projections& projections) {
  std::array<size_t, 4> tensors{};
  const auto set = [&](int projection, size_t offset) {
    if (projection >= 0) tensors[projection] = offset;
  };
  set(projections.glimpse, layout.glimpse.w_ref);
  set(projections.pointer, layout.pointer.w_ref);
  set(projections.values, layout.pointer.w_q);
  set(projections.requeries, layout.glimpse.w_q);
  return tensors;
}

// tensor(offset): the device's vector that begins there.
template <typename Tensor>
auto attention_of(const ModelConfig& config, const ParameterLayout& layout, const Policy& policy,
                  const Tensor& tensor) {
  return Attention<decltype(tensor(size_t{}))>{tensor(layout.glimpse.v), tensor(layout.pointer.v),
                                               config.glimpses, config.centre_logits,
                                               policy.scale(config.clip)};
}

}  // namespace pointsman
