// SPDX-License-Identifier: Apache-2.0
#include "engine/search/local/symmetric_form.h"

#include <algorithm>
#include <memory>

#include "engine/problem/metric.h"

namespace pointsman {

SymmetricForm::SymmetricForm(const Instance& instance, const StopToken& stop)
    : instance_(instance),
      cities_(instance.n() + (is_open(instance.problem) ? 1 : 0)),
      is_doubled_(instance.matrix && !instance.matrix->is_symmetric()),
      fixed_(instance.forced) {
  if (!is_path() && !is_doubled_) return;
  StopMeter meter(&stop);
  const double longest = longest_way(meter);
  never_ = longest > 0.0 ? 4.0 * longest : 1.0;  // a move takes away three edges
  own_.emplace();
  own_->metric = Metric::kExplicit;
  own_->matrix = std::make_shared<const DistanceMatrix>(edges(meter));
  for (int32_t city = 0; is_doubled_ && city < cities_; ++city) fixed_.push_back({city, city + cities_});
  const int32_t departures = is_doubled_ ? cities_ : 0;
  if (instance.start >= 0) fixed_.push_back({instance.start, instance.n() + departures});
  if (instance.end >= 0) fixed_.push_back({instance.end + departures, instance.n()});
}

double SymmetricForm::way(int from, int to) const {
  const int nowhere = is_path() ? instance_.n() : -1;
  const auto may_be = [](int32_t given, int found) { return given < 0 || given == found; };
  if (from == nowhere) return may_be(instance_.start, to) ? 0.0 : never_;
  if (to == nowhere) return may_be(instance_.end, from) ? 0.0 : never_;
  return city_distance(instance_, from, to);
}

double SymmetricForm::longest_way(StopMeter& meter) const {
  double longest = 0.0;
  for (int a = 0; a < instance_.n(); ++a) {
    meter.check(instance_.n());
    for (int b = 0; b < instance_.n(); ++b) longest = std::max(longest, city_distance(instance_, a, b));
  }
  return longest;
}

DistanceMatrix SymmetricForm::edges(StopMeter& meter) const {
  const auto n = static_cast<size_t>(is_doubled_ ? 2 * cities_ : cities_);
  DistanceMatrix edges{static_cast<int>(n), {}};
  edges.above.reserve(n * (n - 1) / 2);
  const auto length = [&](int a, int b) {
    const bool is_nowhere = std::max(a, b) >= instance_.n();
    return is_nowhere ? 0.0 : city_distance(instance_, a, b);
  };
  for (int a = 0; a < cities_; ++a) {
    meter.check(cities_);
    for (int b = a + 1; b < cities_; ++b) edges.above.push_back(is_doubled_ ? never_ : length(a, b));
    for (int b = 0; is_doubled_ && b < cities_; ++b) edges.above.push_back(a == b ? 0.0 : length(b, a));
  }
  edges.above.resize(n * (n - 1) / 2, never_);  // between two departures
  return edges;
}

std::vector<int32_t> SymmetricForm::tour_of(std::vector<int32_t> order) const {
  if (is_path()) order.push_back(instance_.n());
  if (!is_doubled_) return order;
  std::vector<int32_t> tour;
  for (const int32_t city : order) {
    tour.push_back(city);
    tour.push_back(city + cities_);
  }
  return tour;
}

std::vector<int32_t> SymmetricForm::order_of(std::vector<int32_t> tour) const {
  if (is_doubled_) {
    if (tour[0] >= cities_) std::rotate(tour.begin(), tour.begin() + 1, tour.end());  // an arrival first
    if (tour[1] != tour[0] + cities_) std::reverse(tour.begin() + 1, tour.end());
    for (int i = 1; i < cities_; ++i) tour[i] = tour[2 * static_cast<size_t>(i)];
    tour.resize(static_cast<size_t>(cities_));
  }
  if (is_path()) {
    std::rotate(tour.begin(), std::find(tour.begin(), tour.end(), instance_.n()), tour.end());
    tour.erase(tour.begin());
  }
  return tour;
}

}  // namespace pointsman
