// SPDX-License-Identifier: Apache-2.0
#include "engine/search/local/tour_search.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>
#include <utility>

#include "engine/problem/problem.h"
#include "engine/search/exact/shortest_tour.h"
#include "engine/search/heuristics.h"
#include "engine/search/local/lin_kernighan.h"
#include "engine/search/local/tour_population.h"

namespace pointsman {
namespace {

// Measured over n = 50 to 1,000 and 2 ms to 1 s: docs/experiments.md, "Local search".
constexpr double kHeat = 0.5;         // the first mean of what the tour may grow by, in its mean edges
constexpr double kShake = 0.2;        // kicks a city that take a run away from the common start
constexpr double kKicksPerRun = 0.3;  // a city, those included, in the first population
constexpr double kKicksPerLaterRun = 0.7;
constexpr int64_t kFewestRuns = 12, kMostRuns = 100;  // of a population
constexpr int kMostCrossed = 20'000;                  // cities; in a larger instance one tour gets all kicks
// Of the time until a limit the runs of n cities get 1 / (1 + kCrossing sqrt(n)), crossing the rest.
constexpr double kCrossing = 0.03;
constexpr uint64_t kSeedStep = 0x9e3779b97f4a7c15;  // from one run's seed to the next
constexpr int kStretch = 500;       // cities for each of several searches of one tour, at least
constexpr int kMostHelpers = 16;    // such searches: each has a copy of the tour
constexpr int kCitiesPerKick = 20;  // in a round: more kicks between two comparisons fit together less often

// By how much the tour may grow: uniformly distributed with a mean that falls to 0 over the kicks, or over
// the time where that is nearer its end.
struct Cooling {
  double heat;
  Clock::time_point start;
  double done = 0.0, step;  // the share of all kicks made so far, and of one
  const SearchControl& control;
  std::atomic<bool>& hurried;

  double draw(int64_t kick, std::mt19937_64& random) const {
    const double share = share_gone(done + static_cast<double>(kick) * step, start, control, hurried);
    return 2.0 * heat * std::max(1.0 - share, 0.0) * (static_cast<double>(random() >> 11) * 0x1p-53);
  }
};

// Searches a tour by kicks, and leaves the best.
template <typename Length>
struct Kicks {
  const Distances& distances;
  const NeighbourLists& neighbours;
  const FixedEdges& fixed;
  const uint64_t seed;
  LinKernighan<Length>& tour;
  const SearchControl& control;
  const SymmetricForm& form;
  const int n = distances.n();
  std::atomic<bool> hurried{false};  // the time limit set the schedule
  bool is_cut_short = false;         // a limit ended the crossing

  // Returns how many kicks were made.
  int64_t make(int64_t kicks, WorkerThreads* workers) {
    const auto of_a_run = static_cast<int64_t>(kKicksPerRun * n);
    if (n <= kMostCrossed && of_a_run > 0 && kicks / of_a_run >= kFewestRuns) {
      if (has_time(of_a_run, workers)) return make_populations(kicks, workers);
      hurried = true;
    }
    return kick_one_tour(kicks, workers);
  }

  int64_t kick_one_tour(int64_t kicks, WorkerThreads* workers) {
    return TourSearch::divides(n) ? make_together(kicks, workers) : make_alone(tour, kicks, seed, control);
  }

  // Whether a limit leaves time for a population. Times a trial run, whose tour is dropped.
  bool has_time(int64_t of_a_run, const WorkerThreads* workers) {
    if (!control.deadline) return true;
    const int64_t threads = workers != nullptr ? std::min<int64_t>(workers->count(), kFewestRuns) : 1;
    SearchControl trial = for_runs(static_cast<double>((kFewestRuns + threads - 1) / threads));
    trial.report = {};
    LinKernighan<Length> own(distances, neighbours, fixed);
    own.load_settled(tour.places());
    std::mt19937_64 random(seed);
    const bool is_in_time = shake_and_kick(own, of_a_run, random, trial) == of_a_run;
    hurried = false;  // the trial may have set it
    return is_in_time;
  }

  // With a part of the time for runs as the deadline.
  SearchControl for_runs(double parts) const {
    SearchControl until = control;
    if (!control.deadline) return until;
    const auto now = Clock::now();
    const double share = 1.0 / (parts * (1.0 + kCrossing * std::sqrt(n)));
    until.deadline = now + std::chrono::duration_cast<Clock::duration>(share * (*control.deadline - now));
    return until;
  }

  // Crosses populations of runs that begin at the same tour. From the second on, the best tour so far joins
  // them. If a limit leaves no time for another run, the best tour gets the remaining kicks.
  int64_t make_populations(int64_t kicks, WorkerThreads* workers) {
    const std::vector<int32_t> start = tour.places();
    std::vector<int32_t> best = start;
    Length best_length = tour.length();
    int64_t made = 0, made_now = 1;
    for (uint64_t round = 0; made < kicks && made_now > 0 && control.check() == Status::kDone; ++round) {
      std::vector<std::vector<int32_t>> tours;
      if (round > 0) tours.push_back(best);
      made_now = make_runs(start, round, kicks - made, tours, workers);
      made += made_now;
      TourPopulation<Length> population(distances, neighbours, fixed, std::move(tours), workers);
      population.evolve(seed + round, control);
      for (const std::vector<int32_t>& one : population.tours()) {
        tour.load_settled(one);
        if (!(tour.length() < best_length)) continue;
        best_length = tour.length();
        best = one;
      }
      report(control, best_length);
    }
    tour.load(best);
    tour.descend(control);
    report(control, tour.length());
    is_cut_short = control.check() != Status::kDone;
    if (made < kicks && !is_cut_short) made += kick_one_tour(kicks - made, workers);
    return made;
  }

  // Makes the runs of one population and appends their tours. Returns how many kicks they made.
  int64_t make_runs(const std::vector<int32_t>& start, uint64_t round, int64_t kicks,
                    std::vector<std::vector<int32_t>>& tours, WorkerThreads* workers) {
    const auto of_a_run = static_cast<int64_t>((round == 0 ? kKicksPerRun : kKicksPerLaterRun) * n);
    const int64_t count = std::clamp<int64_t>(kicks / of_a_run, 1, kMostRuns),
                  all = count < kMostRuns ? kicks : std::min(kicks, count * of_a_run);
    const SearchControl until = for_runs(1.0);
    struct Run {
      std::vector<int32_t> places = {};
      int64_t kicks = 0;
    };
    std::vector<Run> runs(static_cast<size_t>(count));
    for_each_item(workers, count, [&](int64_t i) {
      if (until.check() != Status::kDone) return;
      LinKernighan<Length> own(distances, neighbours, fixed);
      own.load_settled(start);
      std::mt19937_64 random(seed ^ ((round * kMostRuns + static_cast<uint64_t>(i)) * kSeedStep));
      runs[i].kicks = shake_and_kick(own, all / count + (i < all % count ? 1 : 0), random, until);
      runs[i].places = own.places();
    });
    int64_t made = 0;
    for (Run& run : runs) {
      made += run.kicks;
      if (!run.places.empty()) tours.push_back(std::move(run.places));
    }
    if (made < all && control.check() == Status::kDone) hurried = true;
    return made;
  }

  // Returns how many kicks were made.
  int64_t shake_and_kick(LinKernighan<Length>& own, int64_t kicks, std::mt19937_64& random,
                         const SearchControl& until) {
    const auto shakes = std::min(static_cast<int64_t>(kShake * n), kicks);
    for (int64_t i = 0; i < shakes; ++i) own.kick(random, 0, n);
    own.descend(until);
    return own.stopped() ? 0 : shakes + make_alone(own, kicks - shakes, random(), until);
  }

  // Leaves the best tour. Returns how many kicks were made.
  int64_t make_alone(LinKernighan<Length>& kicked, int64_t kicks, uint64_t run_seed,
                     const SearchControl& until) {
    const Cooling cooling = this->cooling(kicked, kicks, 1, until);
    std::mt19937_64 random(run_seed);
    std::vector<int32_t> best = kicked.places();
    Length excess = 0;  // of the tour's length over the best one's
    kicked.set_journal(true);
    int64_t made = 0;
    while (made < kicks) {
      excess += try_kick(kicked, 0, n, made, cooling, random);
      kicked.keep();
      if (excess < 0) {
        best = kicked.places();
        excess = 0;
        report(until, kicked.length());
      }
      if (kicked.stopped()) break;
      ++made;
    }
    kicked.set_journal(false);
    if (excess > 0) kicked.load(best);
    return made;
  }

  // Kicks a stretch of a copy of the tour, and writes down what that changed.
  struct Helper {
    LinKernighan<Length> tour;
    std::mt19937_64 random;
    std::vector<Move> moves = {};
    std::vector<size_t> ends = {};  // [changes] in moves: each is a kick with its repair that was kept
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
  int64_t make_together(int64_t kicks, WorkerThreads* workers) {
    const int count = std::min(n / kStretch, kMostHelpers);
    Cooling cooling = this->cooling(tour, kicks, count, control);
    std::vector<Helper> helpers;
    for (int i = 0; i < count; ++i) {
      helpers.push_back({LinKernighan<Length>(distances, neighbours, fixed), std::mt19937_64(seed + i)});
      helpers[i].tour.set_journal(true);
    }
    for (int i = 1; i < count; ++i) helpers[i].tour.record(&helpers[i].moves);
    LinKernighan<Length>& common = helpers[0].tour;
    common.load_settled(tour.places());
    std::mt19937_64 random(~seed);
    std::vector<int32_t> best = tour.places();
    Length best_length = tour.length();
    int64_t made = 0, looks = 0;
    for (bool stopped = false; !stopped && made < kicks;
         cooling.done = static_cast<double>(made) / static_cast<double>(kicks)) {
      const auto begin = static_cast<int64_t>(random() % static_cast<uint64_t>(n));
      // Shares of equal work end at about the same time: some kicks need many looks, some few.
      const int64_t most_looks = made == 0 ? n / count : looks / made * (n / kCitiesPerKick) / count;
      for (int i = 1; i < count; ++i) helpers[i].tour.load_settled(common.places());
      for_each_item(workers, count, [&](int64_t i) {
        const int64_t first = i * n / count, last = (i + 1) * n / count, left = kicks - made;
        helpers[i].run(*this, static_cast<int>((begin + first) % n), static_cast<int>(last - first),
                       left / count + (i < left % count ? 1 : 0), most_looks, cooling);
      });
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
      report(control, length);
    }
    tour.load(best);
    return made;
  }

  // A few edges so long that nothing else is seen beside them say nothing of how much a kick may cost, nor do
  // fixed edges.
  Cooling cooling(const LinKernighan<Length>& kicked, int64_t kicks, int helpers,
                  const SearchControl& until) {
    const double edge = distances.is_wide() || form.has_forbidden()
                            ? kicked.median_edge()
                            : distances.to_double(kicked.length()) / (n - fixed.count());
    return {kHeat * edge, Clock::now(), 0.0, static_cast<double>(helpers) / static_cast<double>(kicks),
            until,        hurried};
  }

  // One kick and its repair. Returns by how much the tour grew: 0 where it was undone.
  Length try_kick(LinKernighan<Length>& kicked, int first, int count, int64_t kick, const Cooling& cooling,
                  std::mt19937_64& random) const {
    Length change = kicked.kick(random, first, count);
    change -= kicked.descend(cooling.control);
    if (change <= distances.template as<Length>(cooling.draw(kick, random))) return change;
    kicked.undo();
    return 0;
  }

  void report(const SearchControl& to, Length length) const {
    const double answer = form.answer_length(distances.to_double(length));
    if (to.report.on_best && std::isfinite(answer)) to.report.on_best(answer);
  }
};

}  // namespace

template class LinKernighan<double>;
template class LinKernighan<WideLength>;

TourSearch::TourSearch(const Instance& instance, const ImproveOptions& options, const SearchControl& control)
    : instance_(instance),
      options_(options),
      form_(instance, control.stop()),
      distance_(form_.tsp(), control.stop()),
      n_(distance_.n()),
      place_of_(static_cast<size_t>(n_)),
      fixed_(n_, fixed_places()),
      neighbours_(distance_, all_places(n_), places_with_a_choice(),
                  options.neighbours + (n_ > instance.n() ? 1 : 0), control.stop()) {}

// Fills place_of_ too.
std::vector<std::array<int32_t, 2>> TourSearch::fixed_places() {
  for (int place = 0; place < n_; ++place) place_of_[distance_.city(place)] = place;
  std::vector<std::array<int32_t, 2>> edges = form_.fixed();
  for (std::array<int32_t, 2>& edge : edges) edge = {place_of_[edge[0]], place_of_[edge[1]]};
  return edges;
}

// Those of which not both edges are fixed: only these are candidates.
std::vector<int32_t> TourSearch::places_with_a_choice() const {
  std::vector<int32_t> places = all_places(n_);
  if (fixed_.count() > 0) std::erase_if(places, [&](int32_t place) { return fixed_.at(place)[1] >= 0; });
  return places;
}

std::vector<int32_t> TourSearch::order_of(std::vector<int32_t> places) const {
  for (int32_t& place : places) place = distance_.city(place);
  return form_.order_of(std::move(places));
}

// Of up to kMostExactCities cities, as places of the form.
template <typename Length>
std::vector<int32_t> TourSearch::shortest() const {
  const auto length = [&](double distance) { return distance_.as<Length>(distance); };
  if (form_.is_doubled()) {
    const auto way = [&](int a, int b) { return a == b ? Length{0} : length(form_.way(a, b)); };
    std::vector<int32_t> cities = ShortestPaths<Length>(form_.cities(), way).tour_backwards();
    std::reverse(cities.begin(), cities.end());
    std::vector<int32_t> places;
    for (const int32_t city : cities) {
      places.push_back(place_of_[city]);
      places.push_back(place_of_[city + form_.cities()]);
    }
    return places;
  }
  if (fixed_.count() == 0)
    return ShortestPaths<Length>(n_, [&](int a, int b) { return length(distance_(a, b)); }).tour_backwards();
  return ShortestPaths<FixedFirst<Length>>(
             n_,
             [&](int a, int b) {
               return FixedFirst<Length>{fixed_.has(a, b) ? 0 : 1, length(distance_(a, b))};
             })
      .tour_backwards();
}

std::vector<int32_t> TourSearch::places_of(const std::vector<int32_t>& order) const {
  std::vector<int32_t> places = form_.tour_of(order);
  for (int32_t& city : places) city = place_of_[city];
  return places;
}

Solution TourSearch::start(const SearchControl& control) const {
  return checked_solution(instance_, order_of(greedy_edges(distance_, neighbours_, fixed_, control.stop())));
}

bool TourSearch::divides(int n) { return n >= 2 * kStretch; }

bool TourSearch::run(Solution& solution, int64_t kicks, const SearchControl& control,
                     WorkerThreads* workers) const {
  if (n_ < 4) return true;  // up to three cities have one tour
  if (control.check() != Status::kDone) return false;
  return distance_.is_wide() ? run<WideLength>(solution, kicks, control, workers)
                             : run<double>(solution, kicks, control, workers);
}

template <typename Length>
bool TourSearch::run(Solution& solution, int64_t kicks, const SearchControl& control,
                     WorkerThreads* workers) const {
  LinKernighan<Length> tour(distance_, neighbours_, fixed_);
  tour.load(places_of(solution.order));
  const Length before = tour.length();
  const bool is_small = form_.cities() <= kMostExactCities;
  bool finished = true;
  if (kicks > 0 && is_small) {
    tour.load(shortest<Length>());
  } else {
    tour.descend(control);
    finished = !tour.stopped();
  }
  Kicks<Length> all{distance_, neighbours_, fixed_, options_.seed, tour, control, form_};
  all.report(control, tour.length());
  constexpr int kFewestCuts = 4;  // of a kick
  if (finished && kicks > 0 && !is_small && n_ - fixed_.count() >= kFewestCuts) {
    solution.kicks = all.make(kicks, workers);
    finished = solution.kicks == kicks && !all.is_cut_short;
    if (finished && all.hurried && solution.status == Status::kDone) solution.status = Status::kTimeLimit;
  }
  Solution improved = solution;
  improved.order = order_of(tour.places());
  require_valid(instance_, improved, "local search left no tour: ");
  // The objective is a double, which may not show what a WideLength has gained, and infinite with one
  // forbidden way as with many.
  if (distance_.is_wide() || form_.has_forbidden()
          ? tour.length() < before
          : is_better(instance_.problem, improved.objective, solution.objective))
    solution = std::move(improved);
  return finished;
}

}  // namespace pointsman
