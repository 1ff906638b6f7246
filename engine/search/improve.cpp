// SPDX-License-Identifier: Apache-2.0
#include "engine/search/improve.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/problem/metric.h"
#include "engine/problem/problem.h"
#include "engine/problem/validate.h"

namespace pointsman {

namespace {

constexpr int kMatrixCities = 1000;  // as many have their distances in a matrix (8 MB)
constexpr int kLongestSegment = 3;
constexpr int kKickSpan = 100;           // cities that one local double bridge may touch
constexpr double kLeastGain = 1e-12;     // of the tour's length
constexpr uint32_t kLooksPerCheck = 64;  // cities looked at between two questions to the control

}  // namespace

inline double TourSearch::distance(int a, int b) const {
  return matrix_.empty() ? city_distance(instance_, a, b) : matrix_[static_cast<size_t>(a) * n_ + b];
}

TourSearch::TourSearch(const Instance& instance, const ImproveOptions& options)
    : instance_(instance),
      options_(options),
      n_(instance.n()),
      position_(n_),
      queued_(n_),
      random_(options.seed) {
  if (n_ <= kMatrixCities) {
    matrix_.resize(static_cast<size_t>(n_) * n_);
    for (int a = 0; a < n_; ++a) {
      for (int b = a + 1; b < n_; ++b) {
        matrix_[static_cast<size_t>(a) * n_ + b] = matrix_[static_cast<size_t>(b) * n_ + a] =
            city_distance(instance, a, b);
      }
    }
  }
  list_length_ = std::clamp(options.neighbours, 0, std::max(n_ - 1, 0));
  find_neighbours();
}

// The nearest of each city, equally near ones by number.
void TourSearch::find_neighbours() {
  std::vector<std::pair<double, int32_t>> others;
  for (int city = 0; city < n_; ++city) {
    others.clear();
    for (int other = 0; other < n_; ++other) {
      if (other != city) others.emplace_back(distance(city, other), other);
    }
    std::partial_sort(others.begin(), others.begin() + list_length_, others.end());
    for (int k = 0; k < list_length_; ++k) {
      neighbour_distance_.push_back(others[k].first);
      neighbours_.push_back(others[k].second);
    }
  }
}

int TourSearch::path_length(int from, int to) const {
  const int steps = position_[to] - position_[from];
  return (steps >= 0 ? steps : steps + n_) + 1;
}

// Reverses the path of `length` cities that starts at position `start`. Its own inverse.
void TourSearch::swap_path(int start, int length) {
  int i = start;
  int j = wrap(start + length - 1);
  for (int swaps = length / 2; swaps > 0; --swaps) {
    const int city_i = tour_[i];
    const int city_j = tour_[j];
    tour_[i] = city_j;
    position_[city_j] = i;
    tour_[j] = city_i;
    position_[city_i] = j;
    if (++i == n_) i = 0;
    if (--j < 0) j = n_ - 1;
  }
}

void TourSearch::reverse_path(int start, int length) {
  if (length < 2) return;
  journal_.push_back({start, length});
  swap_path(start, length);
}

// Reverses the path first .. last or, the same cycle, all the rest: whichever is shorter.
void TourSearch::reverse_either(int first, int last) {
  const int length = path_length(first, last);
  if (2 * length <= n_) {
    reverse_path(position_[first], length);
  } else {
    reverse_path(wrap(position_[last] + 1), n_ - length);
  }
}

void TourSearch::enqueue(int city) {
  if (queued_[city]) return;
  queued_[city] = 1;
  queue_.push_back(city);
}

void TourSearch::look_for_two_opt(int a, Move& best) const {
  const int32_t* list = &neighbours_[static_cast<size_t>(a) * list_length_];
  const double* near = &neighbour_distance_[static_cast<size_t>(a) * list_length_];
  const int after = next(a);
  const int before = previous(a);
  const double to_after = distance(a, after);
  const double to_before = distance(a, before);
  const double longest = std::max(to_after, to_before);
  for (int k = 0; k < list_length_ && near[k] < longest; ++k) {
    const int c = list[k];
    if (near[k] < to_after) {
      const int d = next(c);
      const double gain = to_after + distance(c, d) - near[k] - distance(after, d);
      if (gain > best.gain) best = {gain, false, a, after, c, d, 0};
    }
    if (near[k] < to_before) {
      const int d = previous(c);
      const double gain = to_before + distance(c, d) - near[k] - distance(before, d);
      if (gain > best.gain) best = {gain, false, before, a, d, c, 0};
    }
  }
}

// Segments that begin at a and run forward or backward, put beside a's near cities so that a touches them.
void TourSearch::look_for_segment_move(int a, bool forward, Move& best) const {
  const int32_t* list = &neighbours_[static_cast<size_t>(a) * list_length_];
  const double* near = &neighbour_distance_[static_cast<size_t>(a) * list_length_];
  const int outside = forward ? previous(a) : next(a);
  const double to_outside = distance(a, outside);
  int segment[kLongestSegment];
  int end = a;
  for (int length = 1; length <= kLongestSegment && length <= n_ - 3; ++length) {
    segment[length - 1] = end;
    const int beyond = forward ? next(end) : previous(end);
    const double removed = to_outside + distance(end, beyond) - distance(outside, beyond);
    for (int k = 0; k < list_length_ && near[k] < removed; ++k) {
      const int c = list[k];
      if (std::find(segment, segment + length, c) != segment + length) continue;
      for (const int d : {next(c), previous(c)}) {
        if (d == a || d == end) continue;  // the edge that ties the segment itself
        const double gain = removed + distance(c, d) - near[k] - distance(end, d);
        if (gain > best.gain) best = {gain, true, a, 0, c, d, end};
      }
    }
    end = beyond;
  }
}

// Cuts the segment out and joins it in between c and d. Seen along the tour the segment S and the path T up
// to the new place change places: both together are reversed, then each of them back as far as its new
// direction asks.
void TourSearch::apply_segment_move(const Move& move) {
  const bool a_first = path_length(move.a, move.segment_end) <= kLongestSegment;
  const int first = a_first ? move.a : move.segment_end;
  const int last = a_first ? move.segment_end : move.a;
  const int size = path_length(first, last);
  const bool c_first = next(move.c) == move.d;  // the edge (c, d) as the tour walks it
  const int left = c_first ? move.c : move.d;
  const int right = c_first ? move.d : move.c;
  const bool keep_direction = a_first == c_first;

  const int ahead = path_length(last, left) - 1;     // cities between the segment and the place, forward
  const int behind = path_length(right, first) - 1;  // and backward
  if (ahead <= behind) {
    const int start = position_[first];
    reverse_path(start, size + ahead);
    reverse_path(start, ahead);
    if (keep_direction) reverse_path(wrap(start + ahead), size);
  } else {
    const int start = position_[right];
    reverse_path(start, size + behind);
    if (keep_direction) reverse_path(start, size);
    reverse_path(wrap(start + size), behind);
  }
}

void TourSearch::apply(const Move& move) {
  if (move.is_segment) {
    // The cities on both sides of the segment, before it leaves.
    for (const int city : {move.a, move.segment_end}) {
      enqueue(previous(city));
      enqueue(next(city));
    }
    apply_segment_move(move);
    for (const int city : {move.a, move.segment_end, move.c, move.d}) enqueue(city);
  } else {
    reverse_either(move.b, move.c);
    for (const int city : {move.a, move.b, move.c, move.d}) enqueue(city);
  }
}

bool TourSearch::stop(const SearchControl& control) {
  if (!stopped_ && ++asked_ % kLooksPerCheck == 0) stopped_ = control.check() != Status::kDone;
  return stopped_;
}

// Looks at the queued cities until none is left. Returns what was gained.
double TourSearch::drain_queue(const SearchControl& control) {
  double gained = 0.0;
  while (!queue_.empty() && !stop(control)) {
    const int city = queue_.front();
    queue_.pop_front();
    queued_[city] = 0;
    for (;;) {
      Move best;
      best.gain = least_gain_;
      look_for_two_opt(city, best);
      look_for_segment_move(city, true, best);
      look_for_segment_move(city, false, best);
      if (best.gain <= least_gain_) break;
      apply(best);
      gained += best.gain;
    }
  }
  return gained;
}

// A double bridge within a short stretch: three consecutive paths A B C become C B A, each in its own
// direction. Returns what it cost.
double TourSearch::kick() {
  const auto draw = [&](int below) { return static_cast<int>(random_() % static_cast<uint64_t>(below)); };
  const int longest = std::min(n_ - 1, kKickSpan) / 3;
  const int start = draw(n_);
  const int sizes[3] = {1 + draw(longest), 1 + draw(longest), 1 + draw(longest)};
  int begin = wrap(start + 1);
  int ends[8] = {tour_[start]};  // the cities on both sides of the four edges that go
  for (int i = 0, at = begin; i < 3; ++i) {
    ends[2 * i + 1] = tour_[at];
    ends[2 * i + 2] = tour_[wrap(at + sizes[i] - 1)];
    at = wrap(at + sizes[i]);
    ends[2 * i + 3] = tour_[at];
  }
  const double cost = distance(ends[0], ends[5]) + distance(ends[6], ends[3]) + distance(ends[4], ends[1]) +
                      distance(ends[2], ends[7]) - distance(ends[0], ends[1]) - distance(ends[2], ends[3]) -
                      distance(ends[4], ends[5]) - distance(ends[6], ends[7]);
  reverse_path(begin, sizes[0] + sizes[1] + sizes[2]);
  for (const int i : {2, 1, 0}) {
    reverse_path(begin, sizes[i]);
    begin = wrap(begin + sizes[i]);
  }
  for (const int city : ends) enqueue(city);
  return cost;
}

void TourSearch::undo() {
  for (; !journal_.empty(); journal_.pop_back()) swap_path(journal_.back().start, journal_.back().length);
}

void TourSearch::load(const std::vector<int32_t>& order) {
  tour_ = order;
  double length = 0.0;
  for (int i = 0; i < n_; ++i) {
    position_[tour_[i]] = i;
    length += distance(tour_[i], tour_[wrap(i + 1)]);
  }
  least_gain_ = kLeastGain * length;
  journal_.clear();
  std::fill(queued_.begin(), queued_.end(), 0);
  queue_.clear();
  for (const int city : order) enqueue(city);
  random_.seed(options_.seed);
}

bool TourSearch::improve(Solution& solution, const SearchControl& control) {
  asked_ = 0;
  stopped_ = control.check() != Status::kDone;
  if (n_ < 4) return true;  // up to three cities have one tour
  if (stopped_) return false;
  load(solution.order);
  drain_queue(control);
  journal_.clear();
  for (int64_t i = 0; i < options_.kicks && !stopped_; ++i) {
    if (kick() - drain_queue(control) > 0.0) undo();
    journal_.clear();
  }
  Solution improved = solution;
  improved.order = tour_;
  require_valid(instance_, improved, "local search left no tour: ");
  if (is_better(instance_.problem, improved.objective, solution.objective)) solution = std::move(improved);
  return !stopped_;
}

void improve_solution(const Instance& instance, Solution& solution, const ImproveOptions& options,
                      const SearchControl& control) {
  if (!problem_of(instance).has_local_search) return;
  const std::string wrong = validate_solution(instance, solution);
  if (!wrong.empty()) throw std::invalid_argument("improve_solution: " + wrong);
  TourSearch(instance, options).improve(solution, control);
}

}  // namespace pointsman
