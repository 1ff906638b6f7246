// SPDX-License-Identifier: Apache-2.0
#include "engine/search/exact/timed_tours.h"

#include <algorithm>
#include <compare>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/problem/problem.h"
#include "engine/problem/timed_places.h"
#include "engine/search/heuristics.h"

namespace pointsman {
namespace {

constexpr int kMostDelayedPlaces = 13;  // where windows prune nothing
constexpr int64_t kTourPartsPerCheck = 4096;
constexpr size_t kMostParts = size_t{1} << 25;  // some 0.9 GB

// What a tour up to some place costs: its length, or where delays are allowed their sum.
struct TourPart {
  double now, cost;  // now: when it may leave its last place
  int32_t step;      // of steps_
};

// By sets of visited places, layer by layer.
class TimedTours {
 public:
  // are_late: delays are allowed, and their sum is what a tour costs.
  TimedTours(const Instance& instance, bool are_late)
      : places_(instance), n_(instance.n()), are_late_(are_late), ways_(static_cast<size_t>(n_) * n_) {
    for (int a = 0; a < n_; ++a) {
      for (int b = 0; b < n_; ++b) way(a, b) = places_.way(a, b);
    }
    quickest_ = ways_;  // with the visits on the way, closed under the triangle inequality
    for (int a = 0; a < n_; ++a) {
      for (int b = 0; b < n_; ++b) quickest_[a * n_ + b] += a == b ? 0.0 : places_.visit(b);
    }
    for (int by = 0; by < n_; ++by) {
      for (int a = 0; a < n_; ++a) {
        for (int b = 0; b < n_; ++b)
          quickest_[a * n_ + b] =
              std::min(quickest_[a * n_ + b], quickest_[a * n_ + by] + quickest_[by * n_ + b]);
      }
    }
  }

  // The best order; empty: there is none. CallStopped where the control says so.
  std::vector<int32_t> best(const SearchControl& control) {
    Layer layer;
    steps_.push_back({-1, 0});
    layer[{1, 0}].push_back({places_.leave(0, places_.opens(0)), 0.0, 0});
    for (int visited = 1; visited < n_; ++visited) {
      Layer next;
      for (const auto* entry : sorted(layer)) {
        for (const TourPart& part : entry->second) extend(entry->first, part, next, control);
      }
      layer = std::move(next);
    }
    int32_t best = -1;
    double least = std::numeric_limits<double>::infinity();
    for (const auto* entry : sorted(layer)) {
      for (const TourPart& part : entry->second) {
        const std::optional<TourPart> whole = gone(entry->first.last, part, 0);
        if (!whole || !(whole->cost < least)) continue;
        least = whole->cost;
        best = part.step;
      }
    }
    std::vector<int32_t> order;
    for (int32_t step = best; step >= 0; step = steps_[step].before) order.push_back(steps_[step].place);
    std::ranges::reverse(order);
    return order;
  }

 private:
  struct State {
    uint32_t set;  // of visited places, a bit each
    int32_t last;

    auto operator<=>(const State&) const = default;
  };
  struct Hash {
    size_t operator()(const State& state) const {
      return (state.set * uint64_t{32} + static_cast<uint32_t>(state.last)) * 0x9E3779B97F4A7C15ull;
    }
  };
  // No part is as early and as cheap as another of the same state; the earliest first.
  using Layer = std::unordered_map<State, std::vector<TourPart>, Hash>;
  struct Step {
    int32_t before, place;
  };

  // In an order that no library chooses, so that of equal tours the same one is found everywhere.
  static std::vector<const Layer::value_type*> sorted(const Layer& layer) {
    std::vector<const Layer::value_type*> entries;
    for (const auto& entry : layer) entries.push_back(&entry);
    std::ranges::sort(entries, {}, [](const auto* entry) { return entry->first; });
    return entries;
  }

  double& way(int from, int to) { return ways_[static_cast<size_t>(from) * n_ + to]; }

  // On from `last` to a place; none where that is too late.
  std::optional<TourPart> gone(int last, const TourPart& part, int to) {
    const double arrival = part.now + way(last, to), delay = std::max(arrival - places_.closes(to), 0.0);
    if (delay > 0.0 && !are_late_) return std::nullopt;
    return TourPart{places_.leave(to, arrival), part.cost + (are_late_ ? delay : way(last, to)), part.step};
  }

  // Whether each place not in the set can still be reached in time, and then the depot.
  bool can_end(const State& state, const TourPart& part) const {
    for (int place = 0; place < n_ && !are_late_; ++place) {
      if (place > 0 && (state.set >> place & 1) != 0) continue;
      const double quickest = quickest_[static_cast<size_t>(state.last) * n_ + place] - places_.visit(place);
      // Sums in another order round otherwise.
      if (part.now + quickest * (1.0 - 1e-12) > places_.closes(place)) return false;
    }
    return true;
  }

  void extend(const State& state, const TourPart& part, Layer& next, const SearchControl& control) {
    if (++parts_ % kTourPartsPerCheck == 0 && control.check() != Status::kDone) throw CallStopped();
    for (int to = 1; to < n_; ++to) {
      if ((state.set >> to & 1) != 0) continue;
      std::optional<TourPart> longer = gone(state.last, part, to);
      const State there{state.set | uint32_t{1} << to, to};
      if (longer && can_end(there, *longer)) add(next[there], *longer, to);
    }
  }

  void add(std::vector<TourPart>& parts, TourPart part, int32_t place) {
    const auto at = std::ranges::lower_bound(parts, part.now, {}, &TourPart::now);
    if (at != parts.begin() && std::prev(at)->cost <= part.cost) return;
    if (at != parts.end() && at->now == part.now && at->cost <= part.cost) return;
    auto end = at;  // of those that it beats
    while (end != parts.end() && end->cost >= part.cost) ++end;
    if (steps_.size() >= kMostParts) throw CallStopped();
    steps_.push_back({part.step, place});
    part.step = static_cast<int32_t>(steps_.size()) - 1;
    parts.insert(parts.erase(at, end), part);
  }

  const InstancePlaces places_;
  const int n_;
  const bool are_late_;
  std::vector<double> ways_, quickest_;  // [n][n]
  std::vector<Step> steps_;
  int64_t parts_ = 0;  // that went on
};

Solution solution_of(const Instance& instance, std::vector<int32_t> order) {
  Solution solution = checked_solution(instance, std::move(order));
  solution.start = Start::kExact;
  return solution;
}

}  // namespace

Solution exact_timed_tour(const Instance& instance, const SearchControl& control) {
  require_problem(problem_of(instance).fields == ItemFields::kCoordinatesAndWindows, instance,
                  "exact_timed_tour");
  if (instance.n() > kMostExactPlaces)
    throw std::invalid_argument("exact: expected at most " + std::to_string(kMostExactPlaces) +
                                " places, found " + std::to_string(instance.n()));
  try {
    std::vector<int32_t> order = TimedTours(instance, false).best(control);
    if (order.empty() && instance.n() <= kMostDelayedPlaces) order = TimedTours(instance, true).best(control);
    return order.empty() ? quick_answer(instance) : solution_of(instance, std::move(order));
  } catch (const CallStopped&) {
    return unsolved();
  }
}

}  // namespace pointsman
