// SPDX-License-Identifier: Apache-2.0
#include "engine/search/local/symmetric_form.h"

#include <algorithm>
#include <memory>

namespace pointsman {
namespace {

Instance doubled(const Instance& instance) {
  const DistanceMatrix& ways = *instance.matrix;
  const int n = ways.n;
  double longest = 0.0;
  for (const auto* some : {&ways.above, &ways.back})
    for (const double way : *some) longest = std::max(longest, way);
  // A move takes away three edges at most.
  const double never = 4.0 * longest + 1.0;
  DistanceMatrix edges{2 * n, {}};
  edges.above.reserve(static_cast<size_t>(n) * (2 * static_cast<size_t>(n) - 1));
  for (int a = 0; a < n; ++a) {
    for (int b = a + 1; b < n; ++b) edges.above.push_back(never);  // between two arrivals
    for (int b = 0; b < n; ++b) edges.above.push_back(ways.at(b, a));
  }
  edges.above.resize(edges.above.capacity(), never);  // between two departures
  Instance tsp;
  tsp.metric = Metric::kExplicit;
  tsp.matrix = std::make_shared<const DistanceMatrix>(std::move(edges));
  return tsp;
}

}  // namespace

SymmetricForm::SymmetricForm(const Instance& instance) : instance_(instance), fixed_(instance.forced) {
  if (instance.problem != ProblemKind::kAtsp) return;
  doubled_ = doubled(instance);
  for (int32_t city = 0; city < instance.n(); ++city) fixed_.push_back({city, city + instance.n()});
}

std::vector<int32_t> SymmetricForm::tour_of(const std::vector<int32_t>& order) const {
  if (!doubled_) return order;
  std::vector<int32_t> tour;
  for (const int32_t city : order) {
    tour.push_back(city);
    tour.push_back(city + instance_.n());
  }
  return tour;
}

std::vector<int32_t> SymmetricForm::order_of(std::vector<int32_t> tour) const {
  if (!doubled_) return tour;
  const int n = instance_.n();
  if (tour[0] >= n) std::rotate(tour.begin(), tour.begin() + 1, tour.end());  // now an arrival is first
  if (tour[1] != tour[0] + n) std::reverse(tour.begin() + 1, tour.end());
  std::vector<int32_t> order;
  for (size_t i = 0; i < tour.size(); i += 2) order.push_back(tour[i]);
  return order;
}

}  // namespace pointsman
