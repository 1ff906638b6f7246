// SPDX-License-Identifier: Apache-2.0
#include "engine/search/tour_search.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/problem/problem.h"
#include "engine/problem/validate.h"
#include "engine/search/greedy_edges.h"

namespace pointsman {

namespace {

// Measured over n = 50 to 1,000 and 2 ms to 1 s: docs/experiments.md, "Local search".
constexpr int kDepth = 3;                // edges of an exchange
constexpr int kBreadth = 5;              // steps tried after the first edge; after the second all
constexpr int kKickSpan = 100;           // cities that a kick may move, at most
constexpr double kHeat = 0.5;            // the first mean of what the tour may grow by, in its mean edges
constexpr double kLeastGain = 1e-12;     // of the tour's length
constexpr uint32_t kLooksPerCheck = 64;  // cities looked at between two questions to the control
constexpr int kFewestForKicks = 5;       // cities: fewer have no other tour that a step would not find

std::vector<int32_t> all_places(int n) {
  std::vector<int32_t> places(static_cast<size_t>(n));
  std::iota(places.begin(), places.end(), 0);
  return places;
}

// Falls to 0 over the kicks or over the time, whichever is nearer its end.
double heat_left(double done, Clock::time_point start, const SearchControl& control) {
  if (control.deadline) {
    const std::chrono::duration<double> gone = Clock::now() - start, all = *control.deadline - start;
    done = std::max(done, gone / all);
  }
  return std::max(1.0 - done, 0.0);
}

}  // namespace

TourSearch::TourSearch(const Instance& instance, const ImproveOptions& options, const SearchControl& control)
    : instance_(instance),
      options_(options),
      n_(instance.n()),
      distance_(instance, control.stop()),
      neighbours_(distance_, all_places(n_), options.neighbours, control.stop()),
      tour_(n_),
      queue_(static_cast<size_t>(n_)),
      is_queued_(static_cast<size_t>(n_)),
      random_(options.seed) {}

std::vector<int32_t> TourSearch::greedy_tour(const SearchControl& control) const {
  std::vector<int32_t> tour = greedy_edges(distance_, neighbours_, control.stop());
  for (int32_t& place : tour) place = distance_.city(place);
  return tour;
}

void TourSearch::enqueue(int city) {
  if (is_queued_[city]) return;
  is_queued_[city] = 1;
  const int end = queue_first_ + queue_size_++;
  queue_[end < n_ ? end : end - n_] = city;
}

// From the open end of the last edge chosen: every candidate with both of its edges, as long as something is
// gained.
template <int kSize>
int TourSearch::find_steps(double open, Step* steps) const {
  const int end = exchange_.t[2 * kSize - 1];
  const int32_t next = tour_.next(end), previous = tour_.previous(end);
  const auto is_chosen = [&](int cut) {
    for (int j = 0; j < kSize; ++j) {
      if (exchange_.cut[j] == cut) return true;
    }
    return false;
  };
  int count = 0;
  for (const Neighbour& near : neighbours_[end]) {
    const double gained = open - near.distance;
    if (gained <= least_gain_ || count + 2 > kMostSteps) break;
    if (near.place == next || near.place == previous) continue;  // the edge is in the tour
    const int position = tour_.position(near.place), before = tour_.before(position);
    if (!is_chosen(position)) {
      const int32_t other = tour_.at(tour_.after(position));
      steps[count++] = {gained + distance_(near.place, other), near.place, other, position, true};
    }
    if (!is_chosen(before)) {
      const int32_t other = tour_.at(before);
      steps[count++] = {gained + distance_(near.place, other), near.place, other, before, false};
    }
  }
  return count;
}

// Goes on from kSize edges chosen, what is `open` gained. Makes the first exchange that shortens the tour.
template <int kSize>
bool TourSearch::extend(double open) {
  Step steps[kMostSteps];
  const int count = find_steps<kSize>(open, steps);
  constexpr bool kIsLast = kSize + 1 == kDepth;
  for (int i = 0; i < (kIsLast ? count : std::min(count, kBreadth)); ++i) {
    if constexpr (!kIsLast) {
      int best = i;
      for (int j = i + 1; j < count; ++j) best = steps[j].open > steps[best].open ? j : best;
      std::swap(steps[i], steps[best]);
    }
    const Step& step = steps[i];
    const double gain = step.open - distance_(step.other, exchange_.t[0]);
    if (kIsLast && gain <= least_gain_) continue;
    exchange_.set(kSize, step.city, step.other, step.cut, step.is_ahead);
    if (gain > least_gain_) {
      exchange_.size = kSize + 1;
      if (tour_.apply(exchange_)) {
        gain_ = gain;
        for (int end = 0; end < 2 * exchange_.size; ++end) enqueue(exchange_.t[end]);
        return true;
      }
    }
    if constexpr (kSize + 1 < kDepth) {
      if (extend<kSize + 1>(step.open)) return true;
    }
  }
  return false;
}

bool TourSearch::find_exchange(int city) {
  for (const bool next : {true, false}) {
    tour_.choose(exchange_, 0, city, next);
    if (extend<1>(distance_(exchange_.t[0], exchange_.t[1]))) return true;
  }
  return false;
}

bool TourSearch::stop(const SearchControl& control) {
  if (!stopped_ && ++asked_ % kLooksPerCheck == 0) stopped_ = control.check() != Status::kDone;
  return stopped_;
}

// Looks at the queued cities until none is left. Returns what was gained.
double TourSearch::drain_queue(const SearchControl& control) {
  double gained = 0.0;
  while (queue_size_ > 0 && !stop(control)) {
    const int city = queue_[queue_first_];
    if (++queue_first_ == n_) queue_first_ = 0;
    --queue_size_;
    is_queued_[city] = 0;
    while (find_exchange(city)) gained += gain_;
  }
  return gained;
}

// A double bridge of three consecutive paths of up to a third of the span each. Returns what it cost.
double TourSearch::kick() {
  const auto draw = [&](int below) { return static_cast<int>(random_() % static_cast<uint64_t>(below)); };
  const int longest = std::min(n_ - 1, kKickSpan) / 3;
  int cuts[4] = {draw(n_)};
  for (int i = 1; i < 4; ++i) cuts[i] = (cuts[i - 1] + 1 + draw(longest)) % n_;
  std::sort(cuts, cuts + 4);
  int32_t ends[8];
  for (int i = 0; i < 4; ++i) {
    ends[2 * i] = tour_.at(cuts[i]);
    ends[2 * i + 1] = tour_.at(tour_.after(cuts[i]));
  }
  double cost = 0.0;
  for (int i = 0; i < 8; i += 2)  // the end before cut i meets the city behind the cut after the next
    cost += distance_(ends[i], ends[(i + 5) % 8]) - distance_(ends[i], ends[i + 1]);
  tour_.bridge(cuts);
  for (const int32_t city : ends) enqueue(city);
  return cost;
}

// By how much the tour may grow: uniformly distributed with this mean.
double TourSearch::draw_excess(double mean) {
  return 2.0 * mean * (static_cast<double>(random_() >> 11) * 0x1p-53);
}

// Returns how many kicks it made.
int64_t TourSearch::iterate(int64_t kicks, const SearchControl& control) {
  const Clock::time_point start = Clock::now();
  const double heat = kHeat * length() / n_;
  std::vector<int32_t> best = tour_.order();
  double excess = 0.0;                     // of the tour's length over the best one's
  const int64_t copied_every = n_ / 1000;  // kicks, so that copies cost less than these
  int64_t next_copy = 0;
  tour_.set_journal(true);
  int64_t i = 0;
  for (; i < kicks && !stopped_; ++i) {
    if (excess < 0.0 && i >= next_copy) {
      best = tour_.order();
      excess = 0.0;
      next_copy = i + copied_every;
    }
    double change = kick();
    change -= drain_queue(control);
    const double done = static_cast<double>(i) / static_cast<double>(kicks);
    if (change > draw_excess(heat * heat_left(done, start, control))) {
      tour_.undo();
    } else {
      excess += change;
    }
    tour_.keep();
  }
  if (excess > 0.0) tour_.load(best);
  return i;
}

double TourSearch::length() const {
  double length = 0.0;
  for (int i = 0; i < n_; ++i) length += distance_(tour_.at(i), tour_.at(tour_.after(i)));
  return length;
}

void TourSearch::load(const std::vector<int32_t>& order) {
  std::vector<int32_t> place_of(order.size()), places(order.size());
  for (int place = 0; place < n_; ++place) place_of[distance_.city(place)] = place;
  for (int i = 0; i < n_; ++i) places[i] = place_of[order[i]];
  tour_.load(places);
  least_gain_ = kLeastGain * length();
  std::fill(is_queued_.begin(), is_queued_.end(), 0);
  queue_first_ = queue_size_ = 0;
  for (const int32_t place : places) enqueue(place);
  random_.seed(options_.seed);
}

int64_t TourSearch::kicks(const SearchControl& control) const {
  if (options_.kicks) return *options_.kicks;
  return control.deadline && options_.fills_limit ? std::numeric_limits<int64_t>::max()
                                                  : int64_t{ImproveOptions::kKicksPerCity} * n_;
}

bool TourSearch::run(Solution& solution, int64_t kicks, const SearchControl& control) {
  asked_ = 0;
  stopped_ = control.check() != Status::kDone;
  if (n_ < 4) return true;  // up to three cities have one tour
  if (stopped_) return false;
  load(solution.order);
  tour_.set_journal(false);
  drain_queue(control);
  if (n_ >= kFewestForKicks) solution.kicks = iterate(kicks, control);
  Solution improved = solution;
  for (int i = 0; i < n_; ++i) improved.order[i] = distance_.city(tour_.at(i));
  require_valid(instance_, improved, "local search left no tour: ");
  if (is_better(instance_.problem, improved.objective, solution.objective)) solution = std::move(improved);
  return !stopped_;
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
