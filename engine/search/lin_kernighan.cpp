// SPDX-License-Identifier: Apache-2.0
#include "engine/search/lin_kernighan.h"

#include <algorithm>
#include <utility>

namespace pointsman {

namespace {

// Measured over n = 50 to 1,000 and 2 ms to 1 s: docs/experiments.md, "Local search".
constexpr int kDepth = 3;               // edges of an exchange
constexpr int kBreadth = 5;             // steps tried after the first edge; after the second all
constexpr int kKickSpan = 100;          // cities that a kick may move, at most
constexpr double kLeastGain = 1e-12;    // of the tour's length
constexpr int64_t kLooksPerCheck = 64;  // cities looked at between two questions to the control

}  // namespace

LinKernighan::LinKernighan(const Distances& distances, const NeighbourLists& neighbours)
    : distance_(distances),
      neighbours_(neighbours),
      n_(distances.n()),
      tour_(n_),
      queue_(static_cast<size_t>(n_)),
      is_queued_(static_cast<size_t>(n_)) {
  tour_.set_journal(false);
}

void LinKernighan::load(const std::vector<int32_t>& places) {
  tour_.load(places);
  least_gain_ = kLeastGain * length();
  std::fill(is_queued_.begin(), is_queued_.end(), 0);
  queue_first_ = queue_size_ = 0;
  for (const int32_t place : places) enqueue(place);
  asked_ = 0;
  stopped_ = false;
}

void LinKernighan::load(const LinKernighan& other) {
  tour_.load(other.places());
  least_gain_ = other.least_gain_;
  std::fill(is_queued_.begin(), is_queued_.end(), 0);
  queue_first_ = queue_size_ = 0;
  stopped_ = false;
}

double LinKernighan::length() const {
  double length = 0.0;
  for (int i = 0; i < n_; ++i) length += distance_(tour_.at(i), tour_.at(tour_.after(i)));
  return length;
}

void LinKernighan::enqueue(int city) {
  if (is_queued_[city]) return;
  is_queued_[city] = 1;
  const int end = queue_first_ + queue_size_++;
  queue_[end < n_ ? end : end - n_] = city;
}

// From the open end of the last edge chosen: every candidate with both of its edges, as long as something is
// gained.
template <int kSize>
int LinKernighan::find_steps(double open, Step* steps) const {
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
    const int32_t ahead = tour_.at(tour_.after(position)), behind = tour_.at(before);
    if (!is_chosen(position))
      steps[count++] = {gained + distance_(near.place, ahead), near.place, ahead, position, true};
    if (!is_chosen(before))
      steps[count++] = {gained + distance_(near.place, behind), near.place, behind, before, false};
  }
  return count;
}

// Goes on from kSize edges chosen, what is `open` gained. Makes the first exchange that shortens the tour.
template <int kSize>
bool LinKernighan::extend(double open) {
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
        finish({exchange_, false});
        return true;
      }
    }
    if constexpr (kSize + 1 < kDepth) {
      if (extend<kSize + 1>(step.open)) return true;
    }
  }
  return false;
}

void LinKernighan::finish(const Move& move) {
  for (int end = 0; end < 2 * move.exchange.size; ++end) enqueue(move.exchange.t[end]);
  if (moves_ != nullptr) moves_->push_back(move);
}

bool LinKernighan::find_exchange(int city) {
  for (const bool next : {true, false}) {
    tour_.choose(exchange_, 0, city, next);
    if (extend<1>(distance_(exchange_.t[0], exchange_.t[1]))) return true;
  }
  return false;
}

bool LinKernighan::asks_stop(const SearchControl& control) {
  if (!stopped_ && ++asked_ % kLooksPerCheck == 0) stopped_ = control.check() != Status::kDone;
  return stopped_;
}

double LinKernighan::descend(const SearchControl& control) {
  double gained = 0.0;
  while (queue_size_ > 0 && !asks_stop(control)) {
    const int city = queue_[queue_first_];
    if (++queue_first_ == n_) queue_first_ = 0;
    --queue_size_;
    is_queued_[city] = 0;
    while (find_exchange(city)) gained += gain_;
  }
  return gained;
}

// Each of the three paths has up to a third of the span.
double LinKernighan::kick(std::mt19937_64& random, int first, int count) {
  const auto draw = [&](int below) { return static_cast<int>(random() % static_cast<uint64_t>(below)); };
  const int longest = std::min(n_ - 1, kKickSpan) / 3;
  int cuts[4] = {(first + draw(count)) % n_};
  for (int i = 1; i < 4; ++i) cuts[i] = (cuts[i - 1] + 1 + draw(longest)) % n_;
  std::sort(cuts, cuts + 4);
  Move move;
  move.is_bridge = true;
  move.exchange.size = 4;
  int32_t* const ends = move.exchange.t;
  for (int i = 0; i < 4; ++i) {
    ends[2 * i] = tour_.at(cuts[i]);
    ends[2 * i + 1] = tour_.at(tour_.after(cuts[i]));
  }
  double cost = 0.0;
  for (int i = 0; i < 8; i += 2)  // the end before cut i meets the city behind the cut after the next
    cost += distance_(ends[i], ends[(i + 5) % 8]) - distance_(ends[i], ends[i + 1]);
  tour_.bridge(cuts);
  finish(move);
  return cost;
}

bool LinKernighan::repeat(std::span<const Move> moves) {
  keep();
  for (const Move& move : moves) {
    if (move.is_bridge ? tour_.bridge_elsewhere(move.exchange.t) : tour_.apply_elsewhere(move.exchange))
      continue;
    undo();
    return false;
  }
  keep();
  return true;
}

}  // namespace pointsman
