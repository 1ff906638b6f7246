// SPDX-License-Identifier: Apache-2.0
// What a model's weights make of the numbers that the rules know of a candidate (Rules::priors), with the
// bits of engine/backend/cpu/prior.h.
#pragma once

#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device.cuh"

namespace pointsman::cuda {

// The prior of one step of one rollout.
template <typename Rules>
struct Prior {
  Rules rules;  // before the step
  Candidates step;
  const float* weights;  // [Rules::kPriors]; null: the model has no prior
  float inverse_temperature;
  typename Rules::Outlook seen;

  __device__ __forceinline__ bool exists() const { return weights != nullptr; }
  // What the item's logit gains; 0 without a prior.
  __device__ __forceinline__ float total(int item) const {
    if (!exists()) return 0.0f;
    float raw[Rules::kPriors];
    rules.priors(step, seen, item, raw);
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < Rules::kPriors; ++k) {
      const float share = __ldg(weights + k) * inverse_temperature * raw[k];
      sum = k == 0 ? share : sum + share;
    }
    return sum;
  }
  // scale t (+ the item's prior).
  __device__ __forceinline__ float logit(float t, float scale, int item) const {
    return exists() ? fmaf(t, scale, total(item)) : t * scale;
  }
};

// weights: of parameter set `set`.
template <typename Rules>
__device__ __forceinline__ Prior<Rules> prior_of(const PriorWeights& weights, int set, const Rules& rules,
                                                 const Candidates& step) {
  const float* own = weights.weights.data;
  Prior<Rules> prior{rules, step, own, weights.inverse_temperature, {}};
  if (own == nullptr) return prior;
  prior.weights = own + set * weights.weights.stride;
  prior.seen = rules.outlook(step);
  return prior;
}

}  // namespace pointsman::cuda
