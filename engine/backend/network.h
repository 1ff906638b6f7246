// SPDX-License-Identifier: Apache-2.0
// What every backend reads in the same way from a model's config and layout.
#pragma once

#include <array>
#include <vector>

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

// The products of the attention encoder. Matrix: a device's form of a matrix.
template <typename Matrix>
struct EncoderProducts {
  // A matrix [columns][depth] and its bias.
  struct Linear {
    size_t weight, bias;  // in the parameter vector
    int columns, depth;
    Matrix matrix;
  };
  struct Layer {
    Linear in, out, linear1, linear2;
  };

  EncoderProducts(const ModelConfig& config, const ParameterLayout& layout)
      : start_h{layout.start.h_weight, layout.start.h_bias, kHidden, kHidden, {}},
        start_c{layout.start.c_weight, layout.start.c_bias, kHidden, kHidden, {}} {
    const int wide = config.feed_forward;
    for (const EncoderLayerOffsets& at : layout.layers) {
      layers.push_back({{at.in_weight, at.in_bias, 3 * kHidden, kHidden, {}},
                        {at.out_weight, at.out_bias, kHidden, kHidden, {}},
                        {at.linear1_weight, at.linear1_bias, wide, kHidden, {}},
                        {at.linear2_weight, at.linear2_bias, kHidden, wide, {}}});
    }
  }

  // All of them; none of Encoder::kLstm.
  template <typename Visit>
  void for_each(const Visit& visit) {
    for (Layer& layer : layers) {
      for (Linear* linear : {&layer.in, &layer.out, &layer.linear1, &layer.linear2}) visit(*linear);
    }
    if (layers.empty()) return;
    visit(start_h);
    visit(start_c);
  }

  std::vector<Layer> layers;
  Linear start_h, start_c;  // of the decoder's start state
};

// tensor(offset): the device's vector that begins there.
template <typename Tensor>
auto attention_of(const ModelConfig& config, const ParameterLayout& layout, const Policy& policy,
                  const Tensor& tensor) {
  return Attention<decltype(tensor(size_t{}))>{tensor(layout.glimpse.v), tensor(layout.pointer.v),
                                               config.glimpses, config.centre_logits,
                                               policy.scale(config.clip)};
}

}  // namespace pointsman
