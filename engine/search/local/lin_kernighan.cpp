// SPDX-License-Identifier: Apache-2.0
#include "engine/search/local/lin_kernighan.h"

#include <algorithm>
#include <utility>

namespace pointsman {
namespace {

// Measured over n = 50 to 1,000 and 2 ms to 1 s: docs/experiments.md, "Local search".
constexpr int kDepth = 3;              // edges of an exchange
constexpr int kBreadth = 5;            // steps tried after the first edge; after the second all
constexpr int kKickSpan = 100;         // cities that a kick may move, at most
constexpr int64_t kAsksPerCheck = 64;  // looks and exchanges between two questions to the control

}  // namespace

template <typename Length>
LinKernighan<Length>::LinKernighan(const Distances& distances, const NeighbourLists& neighbours)
    : distances_(distances),
      neighbours_(neighbours),
      n_(distances.n()),
      tour_(n_),
      least_gain_(distances.as<Length>(distances.rounding())),
      queue_(static_cast<size_t>(n_)),
      is_queued_(static_cast<size_t>(n_)) {
  tour_.set_journal(false);
}

template <typename Length>
void LinKernighan<Length>::load(const std::vector<int32_t>& places) {
  tour_.load(places);
  std::fill(is_queued_.begin(), is_queued_.end(), 0);
  queue_first_ = queue_size_ = 0;
  for (const int32_t place : places) enqueue(place);
  looks_ = 0;
  stopped_ = false;
}

template <typename Length>
void LinKernighan<Length>::load(const LinKernighan& other) {
  tour_.load(other.places());
  std::fill(is_queued_.begin(), is_queued_.end(), 0);
  queue_first_ = queue_size_ = 0;
  stopped_ = false;
}

template <typename Length>
Length LinKernighan<Length>::length() const {
  Length length = 0;
  for (int i = 0; i < n_; ++i) length += distance(tour_.at(i), tour_.at(tour_.after(i)));
  return length;
}

template <typename Length>
double LinKernighan<Length>::median_edge() const {
  std::vector<double> edges;
  for (int i = 0; i < n_; ++i) edges.push_back(distances_(tour_.at(i), tour_.at(tour_.after(i))));
  std::nth_element(edges.begin(), edges.begin() + n_ / 2, edges.end());
  return edges[n_ / 2];
}

template <typename Length>
void LinKernighan<Length>::enqueue(int city) {
  if (is_queued_[city]) return;
  is_queued_[city] = 1;
  const int end = queue_first_ + queue_size_++;
  queue_[end < n_ ? end : end - n_] = city;
}

// From the open end of the last edge chosen: every candidate with both of its edges, as long as something is
// gained.
template <typename Length>
template <int kSize>
int LinKernighan<Length>::find_steps(Length open, Step* steps) const {
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
    const Length gained = open - distances_.as<Length>(near.distance);
    if (gained <= least_gain_ || count + 2 > kMostSteps) break;
    if (near.place == next || near.place == previous) continue;  // the edge is in the tour
    const int position = tour_.position(near.place), before = tour_.before(position);
    const int32_t ahead = tour_.at(tour_.after(position)), behind = tour_.at(before);
    if (!is_chosen(position))
      steps[count++] = {gained + distance(near.place, ahead), near.place, ahead, position, true};
    if (!is_chosen(before))
      steps[count++] = {gained + distance(near.place, behind), near.place, behind, before, false};
  }
  return count;
}

// Goes on from kSize edges chosen, what is `open` gained. Makes the first exchange that shortens the tour.
template <typename Length>
template <int kSize>
bool LinKernighan<Length>::extend(Length open) {
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
    const Length gain = step.open - distance(step.other, exchange_.t[0]);
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

template <typename Length>
void LinKernighan<Length>::finish(const Move& move) {
  for (int end = 0; end < 2 * move.exchange.size; ++end) enqueue(move.exchange.t[end]);
  if (moves_ != nullptr) moves_->push_back(move);
}

template <typename Length>
bool LinKernighan<Length>::find_exchange(int city) {
  for (const bool next : {true, false}) {
    tour_.choose(exchange_, 0, city, next);
    if (extend<1>(distance(exchange_.t[0], exchange_.t[1]))) return true;
  }
  return false;
}

template <typename Length>
bool LinKernighan<Length>::asks_stop(const SearchControl& control) {
  if (!stopped_ && ++asked_ % kAsksPerCheck == 0) stopped_ = control.check() != Status::kDone;
  return stopped_;
}

template <typename Length>
Length LinKernighan<Length>::descend(const SearchControl& control) {
  Length gained = 0;
  while (queue_size_ > 0 && !asks_stop(control)) {
    const int city = queue_[queue_first_];
    if (++queue_first_ == n_) queue_first_ = 0;
    --queue_size_;
    is_queued_[city] = 0;
    ++looks_;
    while (find_exchange(city)) {
      gained += gain_;
      if (asks_stop(control)) break;
    }
  }
  return gained;
}

// Each of the three paths has up to a third of the span.
template <typename Length>
Length LinKernighan<Length>::kick(std::mt19937_64& random, int first, int count) {
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
  Length cost = 0;
  for (int i = 0; i < 8; i += 2)  // the end before cut i meets the city behind the cut after the next
    cost += distance(ends[i], ends[(i + 5) % 8]) - distance(ends[i], ends[i + 1]);
  tour_.bridge(cuts);
  finish(move);
  return cost;
}

template <typename Length>
bool LinKernighan<Length>::repeat(std::span<const Move> moves) {
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

template class LinKernighan<double>;
template class LinKernighan<WideLength>;

}  // namespace pointsman
