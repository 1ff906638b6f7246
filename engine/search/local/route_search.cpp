// SPDX-License-Identifier: Apache-2.0
#include "engine/search/local/route_search.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "engine/problem/problem.h"
#include "engine/search/heuristics.h"
#include "engine/search/local/route_rings.h"
#include "engine/search/local/routes.h"
#include "engine/search/local/tour_search.h"

namespace pointsman {
namespace {

// As in the paper.
constexpr double kMeanRemoved = 10.0;  // customers a kick, about
constexpr double kLongestString = 10.0;
constexpr double kSplit = 0.5;   // how many strings leave customers within where they are
constexpr double kBlink = 0.01;  // how many places an insertion does not see

// Measured at n = 21 to 101: docs/experiments.md, "Routes".
constexpr double kSplitDepth = 0.99;  // how many split strings leave one more, again and again
constexpr double kFirstHeat = 1.0, kLastHeat = 0.01;  // temperatures, in median edges of the start
constexpr int kNeighbours = 40;  // of each customer: whom it may come beside, and who leaves with it

constexpr int64_t kKicksPerLook = 16;  // at the clock, for a temperature
constexpr double kMostSlack = 64.0;    // distances in a kick's change, in those of Distances::rounding()

class Random {
 public:
  explicit Random(uint64_t seed) : bits_(seed) {}

  int below(int count) { return static_cast<int>(bits_() % static_cast<uint64_t>(count)); }
  double uniform() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }  // 0 <= u < 1
  double exponential() { return -std::log(1.0 - uniform()); }                // of mean 1

 private:
  std::mt19937_64 bits_;
};

// The ruin: strings of customers leave the routes around one of them.
class Ruin {
 public:
  Ruin(RouteRings& routes, const NeighbourLists& neighbours)
      : routes_(routes), neighbours_(neighbours), last_ruin_(routes.customers() + 1, 0) {}

  // Who left, in the order in which they did.
  const std::vector<int32_t>& make(Random& random) {
    removed_.clear();
    ++ruins_;
    const double mean = static_cast<double>(routes_.customers()) / routes_.routes();
    const double longest = std::min(kLongestString, mean);
    const double most_strings = 4.0 * kMeanRemoved / (1.0 + longest) - 1.0;
    int strings = 1 + static_cast<int>(random.uniform() * most_strings);
    const int32_t seed = routes_.customer(random.below(routes_.customers()));
    remove_string(seed, longest, random);
    for (const Neighbour& near : neighbours_[seed]) {
      if (strings == 1) break;
      if (!routes_.is_served(near.place) || last_ruin_[routes_.route_of(near.place)] == ruins_) continue;
      remove_string(near.place, longest, random);
      --strings;
    }
    return removed_;
  }

 private:
  // A string of the customer's route, with the customer in it; some customers within may stay.
  void remove_string(int32_t customer, double longest, Random& random) {
    const int32_t route = routes_.route_of(customer);
    last_ruin_[route] = ruins_;
    const int size = routes_.customers_of(route);
    const int length = 1 + static_cast<int>(random.uniform() * std::min(longest, static_cast<double>(size)));
    int kept = 0;
    if (length > 1 && length < size && random.uniform() < kSplit) {
      kept = 1;
      while (length + kept < size && random.uniform() < kSplitDepth) ++kept;
    }
    int32_t node = first_of_string(customer, length + kept, random);
    const int first_kept = kept > 0 ? 1 + random.below(length - 1) : length;
    for (int i = 0; i < length + kept; ++i) {
      const int32_t next = routes_.next(node);
      if (i < first_kept || i >= first_kept + kept) {
        routes_.remove(node);
        removed_.push_back(node);
      }
      node = next;
    }
  }

  // Of the strings of this length around a customer in its route, at random.
  int32_t first_of_string(int32_t customer, int length, Random& random) const {
    int before = 0, behind = 0;
    for (int32_t node = routes_.previous(customer); before < length - 1 && !routes_.is_depot(node); ++before)
      node = routes_.previous(node);
    for (int32_t node = routes_.next(customer); behind < length - 1 && !routes_.is_depot(node); ++behind)
      node = routes_.next(node);
    const int least = length - 1 - behind;
    for (int back = least + random.below(before - least + 1); back > 0; --back)
      customer = routes_.previous(customer);
    return customer;
  }

  RouteRings& routes_;
  const NeighbourLists& neighbours_;
  std::vector<int32_t> removed_;
  std::vector<int64_t> last_ruin_;  // [n] of routes
  int64_t ruins_ = 0;
};

// The recreation: customers come back one by one, each to where it costs least, blinking.
class Recreation {
 public:
  Recreation(RouteRings& routes, const NeighbourLists& neighbours)
      : routes_(routes), neighbours_(neighbours) {}

  // Returns how many neighbours it looked at.
  int64_t make(const std::vector<int32_t>& customers, Random& random) {
    looks_ = 0;
    sort(customers, random);
    for (const auto& [key, customer] : sorted_) routes_.insert(customer, best_place(customer, random));
    return looks_;
  }

 private:
  // At random, by falling demand, the farthest first or the nearest first: 4, 4, 2 and 1 times of 11.
  void sort(const std::vector<int32_t>& customers, Random& random) {
    const int way = random.below(11);
    sorted_.clear();
    for (const int32_t customer : customers) {
      const double key = way < 4    ? random.uniform()
                         : way < 8  ? -static_cast<double>(routes_.demand(customer))
                         : way < 10 ? -routes_.from_depot(customer)
                                    : routes_.from_depot(customer);
      sorted_.emplace_back(key, customer);
    }
    std::sort(sorted_.begin(), sorted_.end());
  }

  // The node behind which the customer lengthens its route least: next to a neighbour whose route has room,
  // or alone.
  int32_t best_place(int32_t customer, Random& random) {
    const double from_depot = routes_.from_depot(customer);
    int32_t best = routes_.empty_route();
    double least = 2.0 * from_depot;
    const auto look = [&](int32_t node, double distance) {
      if (blinks(random)) return;
      const double added = distance + routes_.distance(customer, routes_.next(node)) - routes_.edge(node);
      if (!(added < least)) return;
      least = added;
      best = node;
    };
    looks_ += static_cast<int64_t>(neighbours_[customer].size());
    for (const auto& [distance, near] : neighbours_[customer]) {
      if (!routes_.is_served(near) || !routes_.has_room(routes_.route_of(near), customer)) continue;
      look(near, distance);
      const int32_t before = routes_.previous(near);
      if (routes_.is_depot(before)) look(before, from_depot);
    }
    return best;
  }

  // How many places it sees before the next one that it does not is drawn at once.
  bool blinks(Random& random) {
    if (seen_-- > 0) return false;
    seen_ = static_cast<int64_t>(random.exponential() * mean_seen_);
    return true;
  }

  RouteRings& routes_;
  const NeighbourLists& neighbours_;
  std::vector<std::pair<double, int32_t>> sorted_;
  const double mean_seen_ = -1.0 / std::log1p(-kBlink);  // of an exponential whose floor is geometric
  int64_t seen_ = 0, looks_ = 0;
};

// Kicks routes and leaves the best that it has seen.
class Annealing {
 public:
  Annealing(RouteRings& routes, const NeighbourLists& neighbours, double rounding, uint64_t seed)
      : routes_(routes),
        ruin_(routes, neighbours),
        recreation_(routes, neighbours),
        random_(seed),
        best_(routes.order()),
        best_length_(routes.length()),
        slack_(kMostSlack * rounding) {}

  // Returns how many kicks were made: fewer than `kicks` where `control` stopped them.
  int64_t make(int64_t kicks, const SearchControl& control) {
    constexpr int64_t kLooksPerCheck = 20'000;  // some 0.1 ms
    const double edge = median_edge();
    const Clock::time_point start = Clock::now();
    double temperature = 0.0;
    int64_t looks = 0;
    for (int64_t made = 0; made < kicks; ++made) {
      if (looks >= kLooksPerCheck) {
        looks = 0;
        if (control.check() != Status::kDone) return made;
      }
      if (made % kKicksPerLook == 0) {
        const double counted = static_cast<double>(made) / static_cast<double>(kicks);
        const double share = share_gone(counted, start, control, hurried_);
        temperature = edge * kFirstHeat * std::pow(kLastHeat / kFirstHeat, share);
      }
      looks += kick(temperature, control);
    }
    return kicks;
  }

  const std::vector<int32_t>& best() const { return best_; }
  bool was_hurried() const { return hurried_; }

 private:
  int64_t kick(double temperature, const SearchControl& control) {
    const int64_t looks = recreation_.make(ruin_.make(random_), random_);
    if (!(routes_.change() < temperature * random_.exponential())) {
      routes_.undo();
      return looks;
    }
    excess_ += routes_.change();
    routes_.keep();
    if (excess_ < -slack_) {
      best_ = routes_.order();
      best_length_ += excess_;
      excess_ = 0.0;
      if (control.report.on_best) control.report.on_best(best_length_);
    }
    return looks;
  }

  // Of those above 0: a few that are much longer say nothing of what a kick may cost.
  double median_edge() const {
    std::vector<double> edges = routes_.edges();
    std::erase(edges, 0.0);
    if (edges.empty()) return 0.0;
    const auto middle = edges.begin() + static_cast<std::ptrdiff_t>(edges.size() / 2);
    std::nth_element(edges.begin(), middle, edges.end());
    return *middle;
  }

  RouteRings& routes_;
  Ruin ruin_;
  Recreation recreation_;
  Random random_;
  std::vector<int32_t> best_;
  double best_length_, excess_ = 0.0;  // of the present routes over the best
  const double slack_;                 // what may be rounding
  std::atomic<bool> hurried_{false};   // the time limit set the temperatures
};

// The depot and a route's customers as a TSP.
Instance tour_of(const Instance& instance, const std::vector<int32_t>& route) {
  Instance tour;
  tour.metric = instance.metric;
  const auto add = [&](int32_t item) {
    tour.values.push_back(instance.first(item));
    tour.values.push_back(instance.second(item));
  };
  add(0);
  for (const int32_t customer : route) add(customer);
  return tour;
}

// Where the order is better, it takes its place.
void replace_if_better(const Instance& instance, Solution& solution, std::vector<int32_t> order) {
  Solution improved = solution;
  improved.order = std::move(order);
  require_valid(instance, improved, "local search left no routes: ");
  if (is_better(instance.problem, improved.objective, solution.objective)) solution = std::move(improved);
}

}  // namespace

RouteSearch::RouteSearch(const Instance& instance, const ImproveOptions& options,
                         const SearchControl& control)
    : instance_(instance),
      options_(options),
      distances_(instance, control.stop()),
      neighbours_(distances_, all_places(distances_.n()), kNeighbours, control.stop()) {}

Solution RouteSearch::start(const SearchControl& control) const { return savings_routes(instance_, control); }

bool RouteSearch::descend(Solution& solution, const SearchControl& control) const {
  bool finished = true;
  std::vector<std::vector<int32_t>> routes = routes_of(solution.order);
  for (std::vector<int32_t>& route : routes) {
    if (finished && route.size() > 2) finished = shorten(route, control);
  }
  replace_if_better(instance_, solution, order_of(routes));
  if (control.report.on_best) control.report.on_best(solution.objective);
  return finished;
}

bool RouteSearch::shorten(std::vector<int32_t>& route, const SearchControl& control) const {
  const Instance tour = tour_of(instance_, route);
  std::vector<int32_t> order(route.size() + 1);
  std::iota(order.begin(), order.end(), 0);
  Solution solution = checked_solution(tour, std::move(order));
  SearchControl quiet = control;
  quiet.report = {};
  bool finished = false;
  try {
    finished = TourSearch(tour, {}, quiet).descend(solution, quiet);
  } catch (const CallStopped&) {
    return false;
  }
  std::rotate(solution.order.begin(), std::find(solution.order.begin(), solution.order.end(), 0),
              solution.order.end());
  std::vector<int32_t> shorter;
  for (const int32_t place : std::span(solution.order).subspan(1)) shorter.push_back(route[place - 1]);
  route = std::move(shorter);
  return finished;
}

bool RouteSearch::improve(Solution& solution, const SearchControl& control, WorkerThreads*) const {
  if (!descend(solution, control)) return false;
  const int64_t kicks = kicks_of(instance_, options_, control);
  if (kicks == 0 || instance_.n() < 3) return true;  // one customer has one route
  RouteRings routes(instance_, distances_);
  routes.load(solution.order);
  Annealing annealing(routes, neighbours_, distances_.rounding(), options_.seed);
  solution.kicks = annealing.make(kicks, control);
  replace_if_better(instance_, solution, annealing.best());
  if (annealing.was_hurried() && solution.kicks == kicks && solution.status == Status::kDone)
    solution.status = Status::kTimeLimit;
  return solution.kicks == kicks;
}

}  // namespace pointsman
