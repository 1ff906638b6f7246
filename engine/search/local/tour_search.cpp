// SPDX-License-Identifier: Apache-2.0
#include "engine/search/local/tour_search.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/problem/problem.h"
#include "engine/search/exact/shortest_tour.h"
#include "engine/search/heuristics.h"
#include "engine/search/local/neighbour_lists.h"

namespace pointsman {
namespace {

// Measured over n = 50 to 1,000 and 2 ms to 1 s: docs/experiments.md, "Local search".
constexpr double kHeat = 0.5;         // the first mean of what the tour may grow by, in its mean edges
constexpr int64_t kKicksPerRun = 16;  // a city, at least
constexpr uint64_t kSeedStep = 0x9e3779b97f4a7c15;  // from one run's seed to the next
constexpr int kStretch = 500;       // cities for each of several searches of one tour, at least
constexpr int kMostHelpers = 16;    // such searches: each has a copy of the tour
constexpr int kCitiesPerKick = 20;  // in a round: more kicks between two comparisons fit together less often

std::vector<int32_t> all_places(int n) {
  std::vector<int32_t> places(static_cast<size_t>(n));
  std::iota(places.begin(), places.end(), 0);
  return places;
}

// By how much the tour may grow: uniformly distributed with a mean that falls to 0 over the kicks, or over
// the time where that is nearer its end.
struct Cooling {
  double heat;
  Clock::time_point start;
  double done = 0.0, step;  // the share of all kicks made so far, and of one
  std::atomic<bool>& hurried;

  double draw(int64_t kick, const SearchControl& control, std::mt19937_64& random) const {
    const double share = share_gone(done + static_cast<double>(kick) * step, start, control, hurried);
    return 2.0 * heat * std::max(1.0 - share, 0.0) * (static_cast<double>(random() >> 11) * 0x1p-53);
  }
};

// The kicks of one TourSearch: what it searches with, and the tour.
template <typename Length>
class Kicks {
 public:
  Kicks(const Distances& distances, const NeighbourLists& neighbours, uint64_t seed,
        LinKernighan<Length>& tour, const SearchControl& control)
      : distances_(distances),
        neighbours_(neighbours),
        n_(distances.n()),
        seed_(seed),
        tour_(tour),
        control_(control) {}

  // Leaves the best tour and returns how many kicks were made. Many kicks are divided among runs that begin
  // at the same tour: what one run ends at depends more on chance than on its length, so the best of two is
  // better than one twice as long.
  int64_t make(int64_t kicks, WorkerThreads* workers);
  bool hurried() const { return hurried_; }  // whether the time limit set the schedule

 private:
  int64_t make_run(int64_t kicks, uint64_t seed, WorkerThreads* workers) {
    return TourSearch::divides(n_) ? make_together(kicks, seed, workers) : make_alone(kicks, seed);
  }
  int64_t make_alone(int64_t kicks, uint64_t seed);
  int64_t make_together(int64_t kicks, uint64_t seed, WorkerThreads* workers);
  struct Helper;

  // A few edges so long that nothing else is seen beside them say nothing of how much a kick may cost.
  Cooling cooling(int64_t kicks, int helpers) {
    const double edge =
        distances_.is_wide() ? tour_.median_edge() : distances_.to_double(tour_.length()) / n_;
    return {kHeat * edge, Clock::now(), 0.0, static_cast<double>(helpers) / static_cast<double>(kicks),
            hurried_};
  }

  // One kick and its repair. Returns by how much the tour grew: 0 where it was undone.
  Length try_kick(LinKernighan<Length>& tour, int first, int count, int64_t kick, const Cooling& cooling,
                  std::mt19937_64& random) const {
    Length change = tour.kick(random, first, count);
    change -= tour.descend(control_);
    if (change <= distances_.template as<Length>(cooling.draw(kick, control_, random))) return change;
    tour.undo();
    return 0;
  }
  void report(Length length) const {
    if (control_.on_best) control_.on_best(distances_.to_double(length));
  }

  const Distances& distances_;
  const NeighbourLists& neighbours_;
  const int n_;
  const uint64_t seed_;
  LinKernighan<Length>& tour_;
  const SearchControl& control_;
  std::atomic<bool> hurried_{false};
};

template <typename Length>
int64_t Kicks<Length>::make(int64_t kicks, WorkerThreads* workers) {
  const std::vector<int32_t> start = tour_.places();
  std::vector<int32_t> best;
  Length best_length = 0;
  const int64_t runs = std::max<int64_t>(kicks / (kKicksPerRun * n_), 1);
  int64_t made = 0;
  for (int64_t run = 0; run < runs; ++run) {
    if (run > 0) tour_.load(start);
    const int64_t of_run = kicks / runs + (run < kicks % runs ? 1 : 0);
    const int64_t made_now = make_run(of_run, seed_ ^ (static_cast<uint64_t>(run) * kSeedStep), workers);
    made += made_now;
    if (run == 0 || tour_.length() < best_length) {
      best_length = tour_.length();
      best = tour_.places();
    }
    if (made_now < of_run) break;
  }
  tour_.load(best);
  return made;
}

template <typename Length>
int64_t Kicks<Length>::make_alone(int64_t kicks, uint64_t seed) {
  const Cooling cooling = this->cooling(kicks, 1);
  std::mt19937_64 random(seed);
  std::vector<int32_t> best = tour_.places();
  Length excess = 0;  // of the tour's length over the best one's
  tour_.set_journal(true);
  int64_t made = 0;
  while (made < kicks) {
    excess += try_kick(tour_, 0, n_, made, cooling, random);
    tour_.keep();
    if (excess < 0) {
      best = tour_.places();
      excess = 0;
      report(tour_.length());
    }
    if (tour_.stopped()) break;
    ++made;
  }
  tour_.set_journal(false);
  if (excess > 0) tour_.load(best);
  return made;
}

// Kicks a stretch of a copy of the tour, and writes down what that changed.
template <typename Length>
struct Kicks<Length>::Helper {
  LinKernighan<Length> tour;
  std::mt19937_64 random;
  std::vector<Move> moves;
  std::vector<size_t> ends;  // [changes] in moves: each is a kick with its repair that was kept
  int64_t kicks = 0, looks = 0;

  // At most so many kicks, and no more once it has looked at so many cities.
  void run(const Kicks& all, int first, int count, int64_t most_kicks, int64_t most_looks,
           const Cooling& cooling) {
    const int64_t looks_before = tour.looks();
    kicks = looks = 0;
    moves.clear();
    ends.clear();
    while (kicks < most_kicks && looks < most_looks && !tour.stopped()) {
      const Length change = all.try_kick(tour, first, count, kicks, cooling, random);
      if (!tour.stopped()) ++kicks;
      looks = tour.looks() - looks_before;
      if (tour.is_negligible(change)) {  // most likely repaired to what it was
        tour.undo();
        moves.resize(ends.empty() ? 0 : ends.back());
        continue;
      }
      ends.push_back(moves.size());
      tour.keep();
    }
  }

  void repeat_on(LinKernighan<Length>& other) const {
    size_t begin = 0;
    for (const size_t end : ends) {
      other.repeat(std::span(moves).subspan(begin, end - begin));
      begin = end;
    }
  }
};

// The first helper's tour is the common one.
template <typename Length>
int64_t Kicks<Length>::make_together(int64_t kicks, uint64_t seed, WorkerThreads* workers) {
  const int count = std::min(n_ / kStretch, kMostHelpers);
  Cooling cooling = this->cooling(kicks, count);
  std::vector<Helper> helpers;
  for (int i = 0; i < count; ++i) {
    helpers.push_back({LinKernighan<Length>(distances_, neighbours_), std::mt19937_64(seed + i), {}, {}});
    helpers[i].tour.set_journal(true);
  }
  for (int i = 1; i < count; ++i) helpers[i].tour.record(&helpers[i].moves);
  LinKernighan<Length>& common = helpers[0].tour;
  common.load(tour_);
  std::mt19937_64 random(~seed);
  std::vector<int32_t> best = tour_.places();
  Length best_length = tour_.length();
  int64_t made = 0, looks = 0;
  for (bool stopped = false; !stopped && made < kicks;
       cooling.done = static_cast<double>(made) / static_cast<double>(kicks)) {
    const auto begin = static_cast<int64_t>(random() % static_cast<uint64_t>(n_));
    // Shares of equal work end at about the same time: some kicks need many looks, some few.
    const int64_t most_looks = made == 0 ? n_ / count : looks / made * (n_ / kCitiesPerKick) / count;
    const auto work = [&](int64_t i) {
      const int64_t first = i * n_ / count, last = (i + 1) * n_ / count, left = kicks - made;
      helpers[i].run(*this, static_cast<int>((begin + first) % n_), static_cast<int>(last - first),
                     left / count + (i < left % count ? 1 : 0), most_looks, cooling);
    };
    for (int i = 1; i < count; ++i) helpers[i].tour.load(common);
    for_each_item(workers, count, work);
    for (const Helper& helper : helpers) {
      if (&helper != &helpers[0]) helper.repeat_on(common);
      stopped = stopped || helper.tour.stopped();
      made += helper.kicks;
      looks += helper.looks;
    }
    const Length length = common.length();
    if (length >= best_length) continue;
    best_length = length;
    best = common.places();
    report(length);
  }
  tour_.load(best);
  return made;
}

}  // namespace

TourSearch::TourSearch(const Instance& instance, const ImproveOptions& options, const SearchControl& control)
    : instance_(instance),
      options_(options),
      n_(instance.n()),
      distance_(instance, control.stop()),
      neighbours_(distance_, all_places(n_), options.neighbours, control.stop()),
      tour_(std::in_place_type<LinKernighan<double>>, distance_, neighbours_) {
  if (distance_.is_wide()) tour_.emplace<LinKernighan<WideLength>>(distance_, neighbours_);
}

std::vector<int32_t> TourSearch::greedy_tour(const SearchControl& control) const {
  std::vector<int32_t> tour = greedy_edges(distance_, neighbours_, control.stop());
  for (int32_t& place : tour) place = distance_.city(place);
  return tour;
}

bool TourSearch::divides(int n) { return n >= 2 * kStretch; }

int64_t TourSearch::kicks(const SearchControl& control) const {
  if (options_.kicks) return *options_.kicks;
  return control.deadline && options_.fills_limit ? std::numeric_limits<int64_t>::max()
                                                  : int64_t{ImproveOptions::kKicksPerCity} * n_;
}

std::vector<int32_t> TourSearch::places_of(const std::vector<int32_t>& order) const {
  std::vector<int32_t> place_of(order.size()), places(order.size());
  for (int place = 0; place < n_; ++place) place_of[distance_.city(place)] = place;
  for (int i = 0; i < n_; ++i) places[i] = place_of[order[i]];
  return places;
}

template <typename Length>
bool TourSearch::run(LinKernighan<Length>& tour, Solution& solution, int64_t kicks,
                     const SearchControl& control, WorkerThreads* workers) const {
  tour.load(places_of(solution.order));
  const Length before = tour.length();
  bool finished = true;
  if (kicks > 0 && n_ <= kMostExactCities) {
    tour.load(shortest_tour<Length>(distance_));
  } else {
    tour.descend(control);
    finished = !tour.stopped();
  }
  if (control.on_best) control.on_best(distance_.to_double(tour.length()));
  if (finished && kicks > 0 && n_ > kMostExactCities) {
    Kicks<Length> all(distance_, neighbours_, options_.seed, tour, control);
    solution.kicks = all.make(kicks, workers);
    finished = solution.kicks == kicks;
    if (finished && all.hurried() && solution.status == Status::kDone) solution.status = Status::kTimeLimit;
  }
  Solution improved = solution;
  for (int i = 0; i < n_; ++i) improved.order[i] = distance_.city(tour.places()[i]);
  require_valid(instance_, improved, "local search left no tour: ");
  // The objective is a double, which may not show what a WideLength has gained.
  if (distance_.is_wide() ? tour.length() < before
                          : is_better(instance_.problem, improved.objective, solution.objective))
    solution = std::move(improved);
  return finished;
}

bool TourSearch::run(Solution& solution, int64_t kicks, const SearchControl& control,
                     WorkerThreads* workers) {
  if (n_ < 4) return true;  // up to three cities have one tour
  if (control.check() != Status::kDone) return false;
  return std::visit([&](auto& tour) { return run(tour, solution, kicks, control, workers); }, tour_);
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

Solution local_search_tour(const Instance& instance, const ImproveOptions& options,
                           const SearchControl& control, WorkerThreads* workers) {
  require_problem(problem_of(instance).has_local_search, instance, "local_search_tour");
  try {
    TourSearch search(instance, options, control);
    Solution solution = checked_solution(instance, search.greedy_tour(control));
    if (control.on_best) control.on_best(solution.objective);
    if (!search.improve(solution, control, workers)) solution.status = control.check();
    return solution;
  } catch (const CallStopped&) {
    return quick_answer(instance, control.check());
  }
}

}  // namespace pointsman
