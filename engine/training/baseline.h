// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the baselines: b of equation (5) of Bello et al. 2017 (trainer.h says which there are).
#pragma once

#include <span>
#include <vector>

namespace pointsman {

// Mean of the other k - 1 costs of the same instance. costs: [instances][k], k >= 2; returns the same shape.
std::vector<double> leave_one_out_baseline(std::span<const double> costs, int k);

// One-sided paired t-test: the probability, were both equally good, of `challenger` being this much cheaper
// in the mean. The same instances in the same order, at least 2. 1 when no cost differs.
double paired_t_test(std::span<const double> challenger, std::span<const double> incumbent);

}  // namespace pointsman
