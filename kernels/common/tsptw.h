// SPDX-License-Identifier: Apache-2.0
// The rules of the travelling salesman problem with time windows: a tour from the depot, item 0, that is at
// every place before it closes and waits where it comes before it opens. Whether there is such a tour is hard
// to know (Savelsbergh 1985), so a rollout may end late: what is certainly too late is masked, and the rest
// costs a penalty (Bello et al. 2017, section 6).
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/common/host_device.h"
#include "kernels/common/remaining.h"

namespace pointsman {

// What the rules read of n places, in the user's units. Rows of n numbers: the ways from each place, when the
// places open, when they close, and how long a visit takes.
struct TimedPlaces {
  static constexpr int rows(int n) { return n + 3; }

  const double* ways = nullptr;  // [n][n]
  int n = 0;

  POINTSMAN_HOST_DEVICE double way(int from, int to) const { return ways[int64_t{from} * n + to]; }
  POINTSMAN_HOST_DEVICE double opens(int place) const { return row(0)[place]; }
  POINTSMAN_HOST_DEVICE double closes(int place) const { return row(1)[place]; }
  POINTSMAN_HOST_DEVICE double visit(int place) const { return row(2)[place]; }
  // When one may go on that comes to `place` at this time.
  POINTSMAN_HOST_DEVICE double leave(int place, double arrival) const {
    return (arrival > opens(place) ? arrival : opens(place)) + visit(place);
  }

 private:
  POINTSMAN_HOST_DEVICE const double* row(int i) const { return ways + int64_t{n + i} * n; }
};

// Of a tour that leaves the depot when it opens: its length, and the sum of all delays behind closing times.
struct TimedTour {
  double length = 0.0, late = 0.0;
  int first_late = -1;  // place
};

// places: TimedPlaces, or what has its members. order: [n], from the depot.
template <typename Places>
POINTSMAN_HOST_DEVICE inline TimedTour timed_tour(const Places& places, const int32_t* order) {
  TimedTour tour;
  double now = places.leave(order[0], places.opens(order[0]));
  for (int i = 1; i <= places.n; ++i) {
    const int to = order[i < places.n ? i : 0];
    const double way = places.way(order[i - 1], to), arrival = now + way;
    tour.length += way;
    if (arrival > places.closes(to)) {
      if (tour.first_late < 0) tour.first_late = to;
      tour.late += arrival - places.closes(to);
    }
    now = places.leave(to, arrival);
  }
  return tour;
}

struct TsptwRules {
  static constexpr bool kDropsItems = true;
  static constexpr bool kHasCapacity = false;
  static constexpr bool kMonotone = false;  // where all is too late, all may be chosen
  static constexpr int kFeatures = 4;       // x, y, opens and closes
  static constexpr int kContext = 1;        // the time
  static constexpr int max_steps(int n) { return n; }
  static constexpr int words(int n) { return (n + 31) / 32; }  // a bit for each place that was visited
  static constexpr int number_rows(int n) { return TimedPlaces::rows(n); }

  TimedPlaces places;
  double unit = 1.0;     // the user's units of one network unit
  double penalty = 0.0;  // of a delay of one network unit, and of being late at all
  double now = 0.0;      // when the last place may be left
  int last = -1;
  bool masks = true;
  uint32_t* visited = nullptr;

  POINTSMAN_HOST_DEVICE static TsptwRules make(const RuleInputs& in) {
    TsptwRules rules;
    rules.places = {in.weights, in.n};
    rules.unit = in.capacity;
    rules.penalty = in.penalty;
    rules.masks = in.masks;
    return rules;
  }
  POINTSMAN_HOST_DEVICE void use_words(uint32_t* words) { visited = words; }
  POINTSMAN_HOST_DEVICE void context(float* out) const {
    const double units = (now - places.opens(0)) / unit;
    out[0] = last < 0 ? 0.0f : static_cast<float>(units < 1e6 ? units : 1e6) * time_share(places.n);
  }

  // The depot first. Then what time_left() does not show to be too late.
  POINTSMAN_HOST_DEVICE bool feasible(int item) const {
    if (last < 0) return item == 0;
    return !is_visited(item) && (!masks || time_left<true>(item) >= 0.0);
  }
  // Where nothing is feasible the tour goes on, late.
  POINTSMAN_HOST_DEVICE bool last_resort(int item) const { return !is_visited(item); }
  POINTSMAN_HOST_DEVICE bool ends(int) const { return false; }
  POINTSMAN_HOST_DEVICE void step(int item) {
    now = places.leave(item, last < 0 ? places.opens(item) : now + places.way(last, item));
    last = item;
    visited[item / 32] |= uint32_t{1} << (item % 32);
  }
  POINTSMAN_HOST_DEVICE bool complete(int steps, int n) const { return steps == n; }

  // The prior of a candidate, kPriors numbers in network units: minus the way, minus the wait until it opens,
  // minus the time left until it closes, and what time_left() says.
  static constexpr int kPriors = 4;
  static constexpr bool kLooksAhead = false;
  struct Outlook {};
  POINTSMAN_HOST_DEVICE static Outlook outlook(const Candidates&) { return {}; }
  POINTSMAN_HOST_DEVICE void priors(const Candidates&, const Outlook&, int item, float* out) const {
    out[0] = out[1] = out[2] = out[3] = 0.0f;
    if (last < 0) return;
    const double way = places.way(last, item), wait = places.opens(item) - (now + way);
    out[0] = -shown(way);
    out[1] = -shown(wait > 0.0 ? wait : 0.0);
    out[2] = -shown(places.closes(item) - (now + way));
    out[3] = shown(time_left(item));
  }
  // What training starts their weights from.
  static float prior_start(int k, int n) {
    const float root = std::sqrt(static_cast<float>(n));
    return k == 1 ? 2.0f * root : k == 2 ? 0.0f : 0.5f * root;
  }

  // What the penalty is multiplied with: the delays in network units, and 1 where there is any.
  POINTSMAN_HOST_DEVICE double lateness(const TimedTour& tour) const {
    return tour.late > 0.0 ? tour.late / unit + 1.0 : 0.0;
  }
  double lateness(const int32_t* order) const { return lateness(timed_tour(places, order)); }
  // What the policy minimises. order: [n].
  POINTSMAN_HOST_DEVICE double cost(const float*, const int32_t* order, int) const {
    const TimedTour tour = timed_tour(places, order);
    return tour.length / unit + penalty * lateness(tour);
  }

  // Times are features in such a share of a network unit that those of a random tour end near 1: two random
  // places of the unit square lie 0.52 apart.
  POINTSMAN_HOST_DEVICE static float time_share(int n) { return 2.0f / static_cast<float>(n); }

 private:
  static constexpr double kFar = 4.0;  // a time that nobody needs to know better

  POINTSMAN_HOST_DEVICE bool is_visited(int item) const {
    return (visited[item / 32] >> (item % 32) & 1) != 0;
  }
  // The least time that going there next leaves: there, at each place not yet visited and the depot, gone to
  // straight from there, and at the second of any two of these, in the better order. Below 0 it is certainly
  // too late, as no way by a third place is shorter (rounded distances may break this by a unit).
  // stops_below: any number below 0 will do.
  template <bool stops_below = false>
  POINTSMAN_HOST_DEVICE double time_left(int item) const {
    const double arrival = now + places.way(last, item), leave = places.leave(item, arrival);
    double least = places.closes(item) - arrival;
    for (int a = 0; a < places.n; ++a) {
      if (a == item || (a > 0 && is_visited(a))) continue;
      const double at_a = leave + places.way(item, a), left = places.closes(a) - at_a;
      if (left < least) least = left;
      if (stops_below && least < 0.0) return least;
      const double from_a = places.leave(a, at_a);
      for (int b = a + 1; a > 0 && b < places.n; ++b) {
        if (b == item || is_visited(b)) continue;
        const double after_a = places.closes(b) - (from_a + places.way(a, b));
        if (after_a >= least) continue;
        const double from_b = places.leave(b, leave + places.way(item, b));
        const double after_b = places.closes(a) - (from_b + places.way(b, a));
        const double better = after_a > after_b ? after_a : after_b;
        if (better < least) least = better;
      }
    }
    return least;
  }
  // In network units, within +-kFar.
  POINTSMAN_HOST_DEVICE float shown(double time) const {
    const double units = time / unit;
    return static_cast<float>(units > kFar ? kFar : units < -kFar ? -kFar : units);
  }
};

}  // namespace pointsman
