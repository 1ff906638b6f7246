// SPDX-License-Identifier: Apache-2.0
#include "engine/search/tour_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/problem/problem.h"
#include "engine/problem/validate.h"
#include "engine/search/greedy_edges.h"

namespace pointsman {

namespace {

// Measured over n = 50 to 1,000 and 2 ms to 1 s: docs/experiments.md, "Local search".
constexpr double kHeat = 0.5;       // the first mean of what the tour may grow by, in its mean edges
constexpr int kFewestForKicks = 5;  // cities: fewer have no other tour that a step would not find
constexpr int kStretch = 500;       // cities for each of several searches of one tour, at least
constexpr int kMostHelpers = 16;    // such searches: each has a copy of the tour
constexpr int kCitiesPerKick = 20;  // in a round: more kicks between two comparisons fit together less often

std::vector<int32_t> all_places(int n) {
  std::vector<int32_t> places(static_cast<size_t>(n));
  std::iota(places.begin(), places.end(), 0);
  return places;
}

}  // namespace

TourSearch::TourSearch(const Instance& instance, const ImproveOptions& options, const SearchControl& control)
    : instance_(instance),
      options_(options),
      n_(instance.n()),
      distance_(instance, control.stop()),
      neighbours_(distance_, all_places(n_), options.neighbours, control.stop()),
      tour_(distance_, neighbours_) {}

std::vector<int32_t> TourSearch::greedy_tour(const SearchControl& control) const {
  std::vector<int32_t> tour = greedy_edges(distance_, neighbours_, control.stop());
  for (int32_t& place : tour) place = distance_.city(place);
  return tour;
}

// By how much the tour may grow: uniformly distributed with a mean that falls to 0 over the kicks, or over
// the time where that is nearer its end.
struct TourSearch::Cooling {
  double heat;
  Clock::time_point start;
  double done = 0.0, step;  // the share of all kicks made so far, and of one
  std::atomic<bool>& hurried;

  double draw(int64_t kick, const SearchControl& control, std::mt19937_64& random) const {
    const double share = share_gone(done + static_cast<double>(kick) * step, start, control, hurried);
    return 2.0 * heat * std::max(1.0 - share, 0.0) * (static_cast<double>(random() >> 11) * 0x1p-53);
  }
  double try_kick(LinKernighan& tour, int first, int count, int64_t kick, const SearchControl& control,
                  std::mt19937_64& random) const;
};

// One kick and its repair. Returns by how much the tour grew: 0 where it was undone.
double TourSearch::Cooling::try_kick(LinKernighan& tour, int first, int count, int64_t kick,
                                     const SearchControl& control, std::mt19937_64& random) const {
  double change = tour.kick(random, first, count);
  change -= tour.descend(control);
  if (change <= draw(kick, control, random)) return change;
  tour.undo();
  return 0.0;
}

int64_t TourSearch::kick_alone(int64_t kicks, const SearchControl& control) {
  const Cooling cooling = {kHeat * tour_.length() / n_, Clock::now(), 0.0, 1.0 / static_cast<double>(kicks),
                           hurried_};
  std::mt19937_64 random(options_.seed);
  std::vector<int32_t> best = tour_.places();
  double excess = 0.0;                     // of the tour's length over the best one's
  const int64_t copied_every = n_ / 1000;  // kicks, so that copies cost less than these
  int64_t next_copy = 0;
  tour_.set_journal(true);
  int64_t made = 0;
  while (made < kicks) {
    if (excess < 0.0 && made >= next_copy) {
      best = tour_.places();
      excess = 0.0;
      next_copy = made + copied_every;
      if (control.on_best) control.on_best(tour_.length());
    }
    excess += cooling.try_kick(tour_, 0, n_, made, control, random);
    tour_.keep();
    if (tour_.stopped()) break;
    ++made;
  }
  tour_.set_journal(false);
  if (excess > 0.0) tour_.load(best);
  return made;
}

// Kicks a stretch of a copy of the tour, and writes down what that changed.
struct TourSearch::Helper {
  LinKernighan tour;
  std::mt19937_64 random;
  std::vector<Move> moves;
  std::vector<size_t> ends;  // [changes] in moves: each is a kick with its repair that was kept
  int64_t kicks = 0, looks = 0;

  // At most so many kicks, and no more once it has looked at so many cities.
  void run(int first, int count, int64_t most_kicks, int64_t most_looks, const Cooling& cooling,
           const SearchControl& control) {
    const int64_t looks_before = tour.looks();
    kicks = looks = 0;
    moves.clear();
    ends.clear();
    while (kicks < most_kicks && looks < most_looks && !tour.stopped()) {
      const double change = cooling.try_kick(tour, first, count, kicks, control, random);
      if (!tour.stopped()) ++kicks;
      looks = tour.looks() - looks_before;
      if (std::abs(change) <= tour.least_gain()) {  // most likely repaired to what it was
        tour.undo();
        moves.resize(ends.empty() ? 0 : ends.back());
        continue;
      }
      ends.push_back(moves.size());
      tour.keep();
    }
  }

  void repeat_on(LinKernighan& other) const {
    size_t begin = 0;
    for (const size_t end : ends) {
      other.repeat(std::span(moves).subspan(begin, end - begin));
      begin = end;
    }
  }
};

// The first helper's tour is the common one.
int64_t TourSearch::kick_together(int64_t kicks, const SearchControl& control, WorkerThreads* workers) {
  const int count = std::min(n_ / kStretch, kMostHelpers);
  Cooling cooling = {kHeat * tour_.length() / n_, Clock::now(), 0.0,
                     static_cast<double>(count) / static_cast<double>(kicks), hurried_};
  std::vector<Helper> helpers;
  for (int i = 0; i < count; ++i) {
    helpers.push_back({LinKernighan(distance_, neighbours_), std::mt19937_64(options_.seed + i), {}, {}});
    helpers[i].tour.set_journal(true);
  }
  for (int i = 1; i < count; ++i) helpers[i].tour.record(&helpers[i].moves);
  LinKernighan& common = helpers[0].tour;
  common.load(tour_);
  std::mt19937_64 random(~options_.seed);
  std::vector<int32_t> best = tour_.places();
  double best_length = tour_.length();
  int64_t made = 0, looks = 0;
  for (bool stopped = false; !stopped && made < kicks;
       cooling.done = static_cast<double>(made) / static_cast<double>(kicks)) {
    const auto begin = static_cast<int64_t>(random() % static_cast<uint64_t>(n_));
    // Shares of equal work end at about the same time: some kicks need many looks, some few.
    const int64_t most_looks = made == 0 ? n_ / count : looks / made * (n_ / kCitiesPerKick) / count;
    const auto work = [&](int64_t i) {
      const int64_t first = i * n_ / count, last = (i + 1) * n_ / count, left = kicks - made;
      helpers[i].run(static_cast<int>((begin + first) % n_), static_cast<int>(last - first),
                     left / count + (i < left % count ? 1 : 0), most_looks, cooling, control);
    };
    for (int i = 1; i < count; ++i) helpers[i].tour.load(common);
    for_each_item(workers, count, work);
    for (const Helper& helper : helpers) {
      if (&helper != &helpers[0]) helper.repeat_on(common);
      stopped = stopped || helper.tour.stopped();
      made += helper.kicks;
      looks += helper.looks;
    }
    const double length = common.length();
    if (length >= best_length) continue;
    best_length = length;
    best = common.places();
    if (control.on_best) control.on_best(length);
  }
  tour_.load(best);
  return made;
}

void TourSearch::load(const std::vector<int32_t>& order) {
  std::vector<int32_t> place_of(order.size()), places(order.size());
  for (int place = 0; place < n_; ++place) place_of[distance_.city(place)] = place;
  for (int i = 0; i < n_; ++i) places[i] = place_of[order[i]];
  tour_.load(places);
}

bool TourSearch::divides(int n) { return n >= 2 * kStretch; }

int64_t TourSearch::kicks(const SearchControl& control) const {
  if (options_.kicks) return *options_.kicks;
  return control.deadline && options_.fills_limit ? std::numeric_limits<int64_t>::max()
                                                  : int64_t{ImproveOptions::kKicksPerCity} * n_;
}

bool TourSearch::run(Solution& solution, int64_t kicks, const SearchControl& control,
                     WorkerThreads* workers) {
  if (n_ < 4) return true;  // up to three cities have one tour
  if (control.check() != Status::kDone) return false;
  load(solution.order);
  hurried_ = false;
  tour_.descend(control);
  bool finished = !tour_.stopped();
  if (control.on_best) control.on_best(tour_.length());
  if (finished && n_ >= kFewestForKicks && kicks > 0) {
    solution.kicks = divides(n_) ? kick_together(kicks, control, workers) : kick_alone(kicks, control);
    finished = solution.kicks == kicks;
    if (finished && hurried_ && solution.status == Status::kDone) solution.status = Status::kTimeLimit;
  }
  Solution improved = solution;
  for (int i = 0; i < n_; ++i) improved.order[i] = distance_.city(tour_.places()[i]);
  require_valid(instance_, improved, "local search left no tour: ");
  if (is_better(instance_.problem, improved.objective, solution.objective)) solution = std::move(improved);
  return finished;
}

void improve_solution(const Instance& instance, Solution& solution, const ImproveOptions& options,
                      const SearchControl& control) {
  if (!problem_of(instance).has_local_search) return;
  const std::string wrong = validate_solution(instance, solution);
  if (!wrong.empty()) throw std::invalid_argument("improve_solution: " + wrong);
  try {
    TourSearch(instance, options, control).improve(solution, control);
  } catch (const CallStopped&) {  // the solution stays what it was
  }
}

}  // namespace pointsman
