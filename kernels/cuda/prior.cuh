// SPDX-License-Identifier: Apache-2.0
// What a model's weights make of the numbers that the rules know of a candidate (Rules::priors), with the
// bits of engine/backend/cpu_prior.h.
#pragma once

#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device.cuh"

namespace pointsman::cuda {

// The prior of one step of one rollout.
template <typename Rules>
struct Prior {
  Rules rules;            // before the step
  const float* features;  // [n][2] of the sequence
  int last;               // item chosen last; -1: none
  const float* weights;   // [Rules::kPriors]; null: the model has no prior
  float inverse_temperature;

  __device__ __forceinline__ bool exists() const { return weights != nullptr; }
  __device__ __forceinline__ void numbers(int item, float (&raw)[Rules::kPriors]) const {
    rules.priors(features, last, item, raw);
  }
  // scale t (+ the item's prior).
  __device__ __forceinline__ float logit(float t, float scale, int item) const {
    if (!exists()) return t * scale;
    float raw[Rules::kPriors];
    numbers(item, raw);
    float total = 0.0f;
#pragma unroll
    for (int k = 0; k < Rules::kPriors; ++k) {
      const float share = __ldg(weights + k) * inverse_temperature * raw[k];
      total = k == 0 ? share : total + share;
    }
    return fmaf(t, scale, total);
  }
};

// weights: of parameter set `set`; features: [n][2].
template <typename Rules>
__device__ __forceinline__ Prior<Rules> prior_of(const PriorWeights& weights, int set, const Rules& rules,
                                                 const float* features, int last) {
  const float* own = weights.weights.data;
  return {rules, features, last, own == nullptr ? nullptr : own + set * weights.weights.stride,
          weights.inverse_temperature};
}

}  // namespace pointsman::cuda
