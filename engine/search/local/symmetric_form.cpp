// SPDX-License-Identifier: Apache-2.0
#include "engine/search/local/symmetric_form.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>

#include "engine/problem/metric.h"

namespace pointsman {
namespace {

constexpr int kNowhereRank = 10;  // nowhere is as far as a city's nearest of this rank, in the median

}  // namespace

SymmetricForm::SymmetricForm(const Instance& instance, const StopToken& stop)
    : instance_(instance),
      cities_(instance.n() + (is_open(instance.problem) ? 1 : 0)),
      is_doubled_(instance.matrix && !instance.matrix->is_symmetric()),
      has_forbidden_(forbids_ways(instance)),
      fixed_(instance.forced) {
  if (!is_path() && !is_doubled_ && !has_forbidden_) return;
  StopMeter meter(&stop);
  measure_ways(meter);
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
  if (from == nowhere) return may_be(instance_.start, to) ? nowhere_ : never_;
  if (to == nowhere) return may_be(instance_.end, from) ? nowhere_ : never_;
  return own_way(from, to);
}

double SymmetricForm::own_way(int from, int to) const {
  const double length = city_distance(instance_, from, to);
  return std::isinf(length) ? forbidden_ : length;
}

double SymmetricForm::answer_length(double tour) const {
  if (has_forbidden_ && tour >= forbidden_) return std::numeric_limits<double>::infinity();
  return is_path() ? tour - 2.0 * nowhere_ : tour;
}

void SymmetricForm::measure_ways(StopMeter& meter) {
  const int n = instance_.n();
  std::vector<double> ways, ranked;
  double longest = 0.0;
  for (int a = 0; a < n; ++a) {
    meter.check(n);
    ways.clear();
    for (int b = 0; b < n; ++b) {
      if (b == a) continue;
      const double way = city_distance(instance_, a, b);
      if (std::isfinite(way)) ways.push_back(way);
    }
    if (ways.empty()) continue;
    longest = std::max(longest, *std::max_element(ways.begin(), ways.end()));
    const auto ranked_way = ways.begin() + std::min<ptrdiff_t>(kNowhereRank, std::ssize(ways)) - 1;
    std::nth_element(ways.begin(), ranked_way, ways.end());
    ranked.push_back(*ranked_way);
  }
  const double unit = longest > 0.0 ? longest : 1.0;
  forbidden_ = (cities_ + 1) * unit;
  never_ = has_forbidden_ ? cities_ * forbidden_ : 4.0 * unit;  // a move takes away three edges
  if (!is_path() || ranked.empty()) return;
  const auto middle = ranked.begin() + std::ssize(ranked) / 2;
  std::nth_element(ranked.begin(), middle, ranked.end());
  nowhere_ = *middle;
}

DistanceMatrix SymmetricForm::edges(StopMeter& meter) const {
  const auto n = static_cast<size_t>(is_doubled_ ? 2 * cities_ : cities_);
  DistanceMatrix edges{static_cast<int>(n), {}};
  edges.above.reserve(n * (n - 1) / 2);
  const auto length = [&](int a, int b) {
    const bool is_nowhere = std::max(a, b) >= instance_.n();
    return is_nowhere ? nowhere_ : own_way(a, b);
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
