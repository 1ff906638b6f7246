// SPDX-License-Identifier: Apache-2.0
// The travelling salesman problem with time windows, as the table of problems knows it.
#include "kernels/common/tsptw.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/problem/metric.h"
#include "engine/problem/problem.h"
#include "engine/problem/timed_places.h"
#include "kernels/common/cvrp.h"

namespace pointsman {

double InstancePlaces::way(int from, int to) const { return city_distance(instance_, from, to); }

double lateness(const RuleInputs& inputs, const int32_t* order) {
  return TsptwRules::make(inputs).lateness(order);
}

bool has_plain_times(const Instance& instance) {
  for (int place = 0; place < instance.n(); ++place) {
    if (instance.item(place)[InstancePlaces::kVisit] != 0.0) return false;
  }
  return instance.metric == Metric::kEuclidean;
}

const char* wrong_times(const Instance& instance, size_t i) {
  const double* const item = instance.item(static_cast<int>(i));
  return item[InstancePlaces::kCloses] >= item[InstancePlaces::kOpens] ? "" : "no time before it opens";
}

namespace {

using Order = std::vector<int32_t>;
using enum InstancePlaces::Field;

constexpr int kWidth = kVisit + 1, kFeatures = TsptwRules::kFeatures;
constexpr double kFloats = 1e-6;  // of a time, a way or a coordinate, in network units
constexpr double kNever = 1e300;  // in place of an infinite closing time, whose differences are no numbers

// The user's units of one network unit: that of the coordinates, or of what the metric makes of them.
double unit_of(const Instance& instance, const std::vector<float>& square) {
  double shown = 0.0, ways = 0.0;
  for (int a = 0; a < instance.n(); ++a) {
    for (int b = 0; b < a; ++b) {
      const float *const from = &square[kWidth * a], *const to = &square[kWidth * b];
      shown += plain_distance(double{to[0]} - from[0], double{to[1]} - from[1]);
      ways += city_distance(instance, a, b);
    }
  }
  return shown > 0.0 && ways > 0.0 ? ways / shown : 1.0;
}

std::vector<float> in_unit_square(const Instance& instance) {
  std::vector<float> square(instance.values.size());
  write_unit_square(instance, square.data());
  return square;
}

// Places as a TSP's; times from when the depot opens, as TsptwRules::time_share() says.
std::vector<float> tsptw_features(const Instance& instance, double) {
  if (!instance.suits_networks())
    throw std::invalid_argument(std::string("an instance of TSPTW with ") + instance.beyond_networks());
  const std::vector<float> square = in_unit_square(instance);
  const InstancePlaces places(instance);
  const double share = TsptwRules::time_share(places.n) / unit_of(instance, square);
  double last = 0.0;  // no tour takes longer
  for (int place = 0; place < places.n; ++place) {
    double longest = 0.0;
    for (int to = 0; to < places.n; ++to) longest = std::max(longest, places.way(place, to));
    last += longest + places.visit(place);
    last = std::max(last, places.opens(place) - places.opens(0) + longest + places.visit(place));
  }
  std::vector<float> features;
  const auto add_time = [&](double time) {
    features.push_back(
        static_cast<float>(std::min(std::clamp(time - places.opens(0), 0.0, last) * share, 1e6)));
  };
  for (int place = 0; place < places.n; ++place) {
    features.insert(features.end(), &square[kWidth * place], &square[kWidth * place] + 2);
    add_time(places.opens(place));
    add_time(places.closes(place));
  }
  return features;
}

// TimedPlaces of n places. way(from, to), and number(place, field) from kOpens on.
template <typename Way, typename Number>
void write_places(int n, const Way& way, const Number& number, double* to) {
  for (int from = 0; from < n; ++from) {
    for (int place = 0; place < n; ++place) *to++ = way(from, place);
  }
  for (int field = kOpens; field <= kVisit; ++field) {
    for (int place = 0; place < n; ++place) *to++ = number(place, field);
  }
}

RuleNumbers places_numbers(const Instance& instance) {
  const InstancePlaces places(instance);
  RuleNumbers out;
  out.weights.resize(static_cast<size_t>(TimedPlaces::rows(places.n)) * places.n);
  out.capacity = instance.has_coordinates() ? unit_of(instance, in_unit_square(instance)) : 1.0;
  write_places(
      places.n, [&](int from, int to) { return places.way(from, to); },
      [&](int place, int field) {
        return field == kOpens   ? places.opens(place)
               : field == kVisit ? places.visit(place)
                                 : std::min(places.closes(place), kNever);
      },
      out.weights.data());
  return out;
}

// In network units.
void trained_places(int n, const float* features, double, double* numbers) {
  const auto feature = [&](int place, int f) { return double{features[kFeatures * place + f]}; };
  write_places(
      n,
      [&](int from, int to) {
        return plain_distance(feature(to, 0) - feature(from, 0), feature(to, 1) - feature(from, 1));
      },
      [&](int place, int field) {
        if (field == kVisit) return 0.0;
        const double time = feature(place, field) / TsptwRules::time_share(n);
        // Later by what floats may have lost, so that a tour that is in time stays so.
        return field == kCloses ? time + kFloats * n : time;
      },
      numbers);
}

std::string validate_timed(const Instance& instance, Solution& solution) {
  Order& order = solution.order;
  if (static_cast<int>(order.size()) != instance.n()) {
    return "the tour visits " + std::to_string(order.size()) + " of " + std::to_string(instance.n()) +
           " places";
  }
  std::ranges::rotate(order, std::ranges::find(order, 0));
  const InstancePlaces places(instance);
  const TimedTour tour = timed_tour(places, order.data());
  solution.objective = tour.length;
  solution.unrounded = instance.has_coordinates()
                           ? routes_length(instance.values.data(), kWidth, order.data(), instance.n())
                           : tour.length;
  solution.violation = tour.late;
  if (tour.late <= 0.0) return "";
  solution.objective = solution.unrounded = std::numeric_limits<double>::infinity();
  return "the tour comes to place " + std::to_string(tour.first_late) + " after it has closed";
}

// Infinite of one that is late.
double timed_length(const Instance& instance, const Order& order) {
  const TimedTour tour = timed_tour(InstancePlaces(instance), order.data());
  return tour.late > 0.0 ? std::numeric_limits<double>::infinity() : tour.length;
}

// A square of side 100; of the other numbers finish_windows() makes times.
double drawn_place(int, int field, double uniform) { return field <= kY ? 100.0 * uniform : uniform; }

// Windows of width 20 to 60 around the times of a random tour (Dumas et al. 1995), so that there is a tour in
// time. The depot opens at 0.
void finish_windows(Instance& instance) {
  const int n = instance.n();
  Order tour(static_cast<size_t>(n));
  std::iota(tour.begin(), tour.end(), 0);
  std::sort(tour.begin() + 1, tour.end(),
            [&](int32_t a, int32_t b) { return instance.item(a)[kVisit] < instance.item(b)[kVisit]; });
  double now = 0.0;
  for (int i = 1; i <= n; ++i) {
    const int place = tour[i < n ? i : 0];
    now += city_distance(instance, tour[i - 1], place);
    double* const item = instance.values.data() + static_cast<size_t>(kWidth * place);
    const double width = 20.0 + 40.0 * item[kOpens], closes = now + width * item[kCloses];
    item[kOpens] = place == 0 ? 0.0 : std::max(closes - width, 0.0);
    item[kCloses] = closes;
    item[kVisit] = 0.0;
  }
}

}  // namespace

extern const Problem kTsptwProblem = {.kind = ProblemKind::kTsptw,
                                      .title = "TSPTW",
                                      .model_prefix = "tsptw",
                                      .item = "place",
                                      .items = "places",
                                      .answer = "tour",
                                      .order_key = "tour",
                                      .objective_key = "cost",
                                      .measure = "length",
                                      .full_measure = "tour length",
                                      .fields = ItemFields::kCoordinatesAndWindows,
                                      .sense = Sense::kMinimise,
                                      .has_capacity = TsptwRules::kHasCapacity,
                                      .has_packing = false,
                                      .has_exact = true,
                                      .has_depot = false,
                                      .has_symmetries = true,
                                      .has_all_items = true,
                                      .has_local_search = true,
                                      .has_two_opt = false,
                                      .features = tsptw_features,
                                      .validate = validate_timed,
                                      .objective = timed_length,
                                      .canonical = [](Order order) { return order; },
                                      .make_example = [](int, const float*, int32_t*) {},
                                      .default_capacity = [](int) { return 0.0; },
                                      .rule_numbers = places_numbers,
                                      .trained_numbers = trained_places,
                                      .drawn_number = drawn_place,
                                      .finish_drawn = finish_windows,
                                      .has_first = true};

}  // namespace pointsman
