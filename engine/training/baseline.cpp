// SPDX-License-Identifier: Apache-2.0
#include "engine/training/baseline.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace pointsman {
namespace {

// P(0 < T < t) of Student's t with `freedom` degrees of freedom, by Simpson's rule; t >= 0. With t = tan(x)
// the range is finite however large t is, and the integrand has no narrow peak: with the 400 panels the error
// is below 1e-9 for any number of instances up to 100,000.
double student_integral(double t, double freedom) {
  constexpr int kPanels = 400;
  const double width = std::atan(t) / kPanels;
  const double log_scale =
      std::lgamma((freedom + 1) / 2) - std::lgamma(freedom / 2) - 0.5 * std::log(freedom * std::numbers::pi);
  double sum = 0.0;
  for (int i = 0; i <= kPanels; ++i) {
    const double x = i * width, cosine = std::cos(x), tangent = std::tan(x);
    const double density = std::exp(log_scale - (freedom + 1) / 2 * std::log1p(tangent * tangent / freedom));
    sum += density / (cosine * cosine) * (i == 0 || i == kPanels ? 1 : i % 2 == 1 ? 4 : 2);
  }
  return sum * width / 3;
}

}  // namespace

std::vector<double> leave_one_out_baseline(std::span<const double> costs, int k) {
  std::vector<double> baseline(costs.size());
  for (size_t first = 0; first + k <= costs.size(); first += k) {
    double sum = 0.0;
    for (int r = 0; r < k; ++r) sum += costs[first + r];
    for (int r = 0; r < k; ++r) baseline[first + r] = (sum - costs[first + r]) / (k - 1);
  }
  return baseline;
}

double paired_t_test(std::span<const double> challenger, std::span<const double> incumbent) {
  const double count = static_cast<double>(challenger.size());
  double mean = 0.0;
  for (size_t i = 0; i < challenger.size(); ++i) mean += (challenger[i] - incumbent[i]) / count;
  double variance = 0.0;
  for (size_t i = 0; i < challenger.size(); ++i) {
    const double deviation = challenger[i] - incumbent[i] - mean;
    variance += deviation * deviation / (count - 1);
  }
  if (variance == 0.0) return mean < 0.0 ? 0.0 : 1.0;
  const double t = mean / std::sqrt(variance / count);
  const double half = student_integral(std::abs(t), count - 1);
  return std::clamp(t < 0.0 ? 0.5 - half : 0.5 + half, 0.0, 1.0);
}

}  // namespace pointsman
