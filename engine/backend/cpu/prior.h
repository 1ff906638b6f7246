// SPDX-License-Identifier: Apache-2.0
// What the rules know of a candidate before the network is asked: K numbers (Rules::priors) that a model's
// weights add to its logit.
#pragma once

#include <algorithm>
#include <vector>

#include "engine/backend/cpu/network.h"

namespace pointsman {

// The prior of the items a rollout may choose from.
class Prior {
 public:
  // weights: CpuParameters::prior_weights().
  void start(std::vector<float> weights, int n) {
    weights_ = std::move(weights);
    raw_.get(weights_.size() * cpu::padded(n));
    total_.get(cpu::padded(n));
  }

  // sum_k weights[k] raw[k][j] of candidate j, padded like logits; null without a prior. Valid until the next
  // call.
  template <typename Rules>
  const float* of(const Rules& rules, const Candidates& step) {
    if (weights_.empty()) return nullptr;
    const int stride = cpu::padded(step.count);
    float *raw = raw_.data.data(), *total = total_.data.data();
    const auto seen = rules.outlook(step);
    for (int j = 0; j < step.count; ++j) {
      float own[Rules::kPriors];
      rules.priors(step, seen, step.items[j], own);
      for (int k = 0; k < Rules::kPriors; ++k) raw[k * stride + j] = own[k];
    }
    if constexpr (Rules::kLooksAhead) {
      float* last = raw + (Rules::kPriors - 1) * stride;
      const float best = *std::max_element(last, last + step.count);
      for (int j = 0; j < step.count; ++j) last[j] = Rules::relative(seen, last[j], best);
    }
    for (int j = 0; j < step.count; ++j) {
      total[j] = weights_[0] * raw[j];
      for (int k = 1; k < Rules::kPriors; ++k) total[j] += weights_[k] * raw[k * stride + j];
    }
    for (int j = step.count; j < stride; ++j) total[j] = total[0];
    return total;
  }

  // sum[k] += scale sum_j dtotal[j] raw[k][j] for what of() was called last.
  void add_gradient(const float* dtotal, int count, float scale, float* sum) const {
    for (size_t k = 0; k < weights_.size(); ++k) {
      const float* raw = raw_.data.data() + k * cpu::padded(count);
      double total = 0.0;
      for (int j = 0; j < count; ++j) total += static_cast<double>(dtotal[j]) * static_cast<double>(raw[j]);
      sum[k] += static_cast<float>(total) * scale;
    }
  }

 private:
  std::vector<float> weights_;
  Buffer raw_, total_;
};

}  // namespace pointsman
