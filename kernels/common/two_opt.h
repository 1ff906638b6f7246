// SPDX-License-Identifier: Apache-2.0
// Iterated local search for one tour (Martin, Otto & Felten 1991) by a team of threads: from the
// nearest-neighbour tour 2-opt and Or-opt moves along candidate lists (Bentley 1992) to a local optimum, then
// kicks, each with the moves that repair it. A team is a warp (kernels/cuda/two_opt.cu) or the calling thread
// alone: the tour is the same, bit for bit.
//
// A queue holds the cities to look at. The team looks at one city at a time: it shares out all moves that add
// an edge from it to one of its neighbours, and makes the one that gains most. Single precision throughout:
// sums, products, quotients and square roots are rounded correctly on every device, and no compiler contracts
// them.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/common/host_device.h"
#include "kernels/common/philox.h"
#include "kernels/common/tour_limits.h"
#include "kernels/common/tsp.h"

namespace pointsman {

inline constexpr int kTourNeighbours = 8;

// Of each of the two paths that a kick exchanges. With 30 the tours of 100 and 200 cities become longer; 100
// take more time and gain little.
inline constexpr int kMostKickedCities = 50;

// A move must gain more than rounding can feign. Six distances of at most 1.42 are each wrong by 3 x 2^-24 of
// it (differences, squares, their sum, the root), five sums of at most 4.25 by 2^-24: 2.8e-6. So each move
// shortens the tour, and no tour comes again.
inline constexpr float kLeastTourGain = 3e-6f;

struct TourInstance {
  const float* xy;             // [n][2], in the unit square
  const uint16_t* neighbours;  // [n][kTourNeighbours], nearest first
  int n;                       // kFewestTourCities .. kMostTourCities
};

// The neighbours of one city, nearest first, ties by number. out: [kTourNeighbours].
POINTSMAN_HOST_DEVICE inline void nearest_cities(const float* xy, int n, int city, uint16_t* out) {
  constexpr int kLast = kTourNeighbours - 1;
  float distances[kTourNeighbours];
  int cities[kTourNeighbours] = {};
  for (float& distance : distances) distance = INFINITY;
  for (int other = 0; other < n; ++other) {
    const float distance = tour_distance(xy, city, other);
    if (other == city || !(distance < distances[kLast])) continue;
    distances[kLast] = distance;
    cities[kLast] = other;
    for (int k = kLast; k > 0; --k) {  // loops of a fixed length keep both arrays in registers
      const bool nearer = distances[k] < distances[k - 1];
      const float farther = nearer ? distances[k - 1] : distances[k];
      const int its_city = nearer ? cities[k - 1] : cities[k];
      distances[k - 1] = nearer ? distances[k] : distances[k - 1];
      cities[k - 1] = nearer ? cities[k] : cities[k - 1];
      distances[k] = farther;
      cities[k] = its_city;
    }
  }
  for (int k = 0; k < kTourNeighbours; ++k) out[k] = static_cast<uint16_t>(cities[k]);
}

// What a team works on, shared by its threads.
struct TourMemory {
  uint16_t *order, *position;  // [n] the tour, and where in it a city stands
  uint16_t *kept, *best;       // [n] tours to go back to
  uint16_t* queue;             // [n] a ring
  uint32_t* waits;             // [(n + 31) / 32] a bit for each city: is it in the queue?

  POINTSMAN_HOST_DEVICE static int64_t words(int n) { return 5 * ((n + 1) / 2) + (n + 31) / 32; }
  POINTSMAN_HOST_DEVICE TourMemory(uint32_t* memory, int n) {
    uint16_t** const arrays[] = {&order, &position, &kept, &best, &queue};
    for (uint16_t** array : arrays) {
      *array = reinterpret_cast<uint16_t*>(memory);
      memory += (n + 1) / 2;
    }
    waits = memory;
  }
};

// A team of one.
struct LoneThread {
  static constexpr int lane() { return 0; }
  static constexpr int size() { return 1; }
  void sync() const {}
  // The move that gains most, of those that gain as much the one of the lowest code, to all threads.
  void choose(float&, int&) const {}
};

template <typename Team>
class TwoOpt {
 public:
  POINTSMAN_DEVICE TwoOpt(const Team& team, const TourInstance& instance, const TourMemory& memory)
      : team_(team), in_(instance), my_(memory) {}

  // The tour in TourMemory::order is the one that is worked on, and all of its cities wait.
  POINTSMAN_DEVICE void queue_all() {
    for (int i = team_.lane(); i < in_.n; i += team_.size()) {
      const uint16_t city = my_.order[i];
      my_.queue[i] = city;
      my_.position[city] = static_cast<uint16_t>(i);
    }
    for (int i = team_.lane(); i < (in_.n + 31) / 32; i += team_.size()) my_.waits[i] = ~0u;
    team_.sync();
    head_ = 0;
    queued_ = in_.n;
  }

  // From city 0 always to the nearest city that is left, to the rounding of 2 - distance. All of them wait.
  // False: stops() came before the end.
  template <typename Stops>
  POINTSMAN_DEVICE bool begin(const Stops& stops) {
    constexpr float kFar = 2.0f;  // more than any distance: what is chosen has a gain above 0
    uint16_t* const left = my_.kept;
    for (int i = team_.lane(); i < in_.n; i += team_.size()) left[i] = static_cast<uint16_t>(i);
    team_.sync();
    Choice nearest = {0.0f, 0};
    for (int count = in_.n; count > 0; --count) {
      if (count % kLooksPerStop == 0 && stops()) return false;
      const int city = left[nearest.code];
      team_.sync();  // all have read it
      if (team_.lane() == 0) {
        my_.order[in_.n - count] = static_cast<uint16_t>(city);
        left[nearest.code] = left[count - 1];
      }
      team_.sync();
      nearest = {0.0f, 0};
      for (int i = team_.lane(); i < count - 1; i += team_.size()) {
        const float closeness = kFar - distance(city, left[i]);
        if (closeness > nearest.gain) nearest = {closeness, i};
      }
      team_.choose(nearest.gain, nearest.code);
    }
    queue_all();
    return true;
  }

  // The move that gains most of those that exchange an edge of the city for one to a neighbour that is
  // nearer, of equal ones the first.
  struct Choice {
    float gain;
    int code;  // kMoves: none gains more than kLeastTourGain
  };
  POINTSMAN_DEVICE Choice look(int city) const {
    Choice best = {kLeastTourGain, kMoves};
    const float before = distance(city, next(city, -1)), behind = distance(city, next(city, 1));
    const float longer = before > behind ? before : behind;
    Move move;
    for (int i = team_.lane(); i < kMoves; i += team_.size()) {
      // Nearest first: what comes gains nothing either.
      if (!(distance(city, in_.neighbours[city * kTourNeighbours + i / (2 * kVariants)]) < longer)) break;
      if (!make_move(city, i, move)) continue;
      const float gain = gain_of(move);
      if (gain > best.gain) best = {gain, i};
    }
    team_.choose(best.gain, best.code);
    return best;
  }

  // Makes moves until no city waits, or stops() says so. Returns what they gained.
  template <typename Stops>
  POINTSMAN_DEVICE float descend(const Stops& stops) {
    float gained = 0.0f;
    while (queued_ > 0) {
      if (++looks_ % kLooksPerStop == 0 && stops()) {
        stopped_ = true;
        break;
      }
      const int city = dequeue();
      const Choice choice = look(city);
      if (choice.code == kMoves) continue;
      Move move{};
      make_move(city, choice.code, move);
      apply(move);
      gained += choice.gain;
    }
    team_.sync();  // all have looked
    return gained;
  }

  // run() from the tour of begin(). kNotBegun: stops() came before that was there.
  template <typename Stops>
  POINTSMAN_DEVICE int search(int kicks, uint64_t seed, uint64_t key, const Stops& stops) {
    if (stops() || !begin(stops)) return kNotBegun;
    return run(kicks, seed, key, stops);
  }

  // descend() from the tour that is there, then kicks with the moves that repair each; a tour that has grown
  // is kept by chance, ever more seldom. The shortest, as sums of single precision tell, is in
  // TourMemory::best. A kick is a function of (seed, key, its number) alone. Returns how many were made, or
  // kDescentStopped. The whole team asks stops() every kLooksPerStop looks, or cities of begin().
  template <typename Stops>
  POINTSMAN_DEVICE int run(int kicks, uint64_t seed, uint64_t key, const Stops& stops) {
    descend(stops);
    copy(my_.order, my_.kept);
    copy(my_.order, my_.best);
    if (stopped_) return kDescentStopped;
    const float heat = 2.0f * kHeat * mean_edge();
    float excess = 0.0f;  // of the tour's length over the best one's
    for (int k = 0; k < kicks; ++k) {
      const PhiloxBlock draw = philox4x32(seed ^ stream::kKicks, key, static_cast<uint64_t>(k));
      float change = kick(draw);
      change -= descend(stops);
      if (stopped_) return k;
      const float left = 1.0f - static_cast<float>(k) / static_cast<float>(kicks);
      if (change > heat * left * uniform_from_word(draw.word[3])) {
        restore();
        continue;
      }
      excess += change;
      copy(my_.order, my_.kept);
      if (excess < 0.0f) {
        copy(my_.order, my_.best);
        excess = 0.0f;
      }
    }
    return kicks;
  }

 private:
  static constexpr int kLooksPerStop = 64;
  // The first mean of what the tour may grow by, in its mean edges: as in
  // engine/search/local/tour_search.cpp.
  static constexpr float kHeat = 0.5f;
  static constexpr int kVariants = 12;  // of moves that exchange a city's edge for one to a given neighbour
  static constexpr int kMoves = kTourNeighbours * 2 * kVariants;

  // Exchanges (p, f), (g, q), (u, v), met in this order going round, f to g being the path that is moved
  // between u and v; with is_pair (p, f) and (u, v) alone, and f to u is reversed.
  struct Move {
    int p, f, g, q, u, v;
    bool is_pair, keeps_direction;
  };

  POINTSMAN_DEVICE int next(int city, int direction) const {
    int at = my_.position[city] + direction;
    if (at == in_.n) at = 0;
    if (at < 0) at = in_.n - 1;
    return my_.order[at];
  }
  POINTSMAN_DEVICE float distance(int a, int b) const { return tour_distance(in_.xy, a, b); }

  POINTSMAN_DEVICE float mean_edge() const {
    float sum = 0.0f;
    for (int i = 0; i < in_.n; ++i) sum += distance(my_.order[i], my_.order[i + 1 < in_.n ? i + 1 : 0]);
    return sum / static_cast<float>(in_.n);
  }

  // Move `code` of those that look at city a; false: there is none such, or its first exchange gains nothing.
  POINTSMAN_DEVICE bool make_move(int a, int code, Move& move) const {
    const int c = in_.neighbours[a * kTourNeighbours + code / (2 * kVariants)];
    const int variant = code % kVariants, ahead = code / kVariants % 2 == 0 ? 1 : -1;
    const int b = next(a, ahead);
    if (!(distance(a, c) < distance(a, b))) return false;
    if (variant == 0) {  // a - c, b - behind c
      move = {a, b, b, b, c, next(c, ahead), true, false};
      return true;
    }
    if (variant < 6) {  // the path that begins at c goes between a and b
      const int length = 1 + variant / 2, away = variant % 2 == 0 ? ahead : -ahead;
      int end = c, after = c;
      for (int i = 0; i < length; ++i) {
        end = after;
        if (end == a || end == b) return false;
        after = next(end, away);
      }
      const int before = next(c, -away);
      if (away == ahead) {
        move = {before, c, end, after, a, b, false, true};
      } else {
        move = {after, end, c, before, a, b, false, false};
      }
      return true;
    }
    // The path that ends at a goes beside c.
    const int length = 1 + (variant - 6) / 2, side = variant % 2 == 0 ? ahead : -ahead;
    const int d = next(c, side);
    int begin = a, before = a;
    for (int i = 0; i < length; ++i) {
      begin = before;
      if (begin == c || begin == d) return false;
      before = next(begin, -ahead);
    }
    if (side == ahead) {
      move = {before, begin, a, b, c, d, false, false};
    } else {
      move = {before, begin, a, b, d, c, false, true};
    }
    return true;
  }

  POINTSMAN_DEVICE float gain_of(const Move& m) const {
    if (m.is_pair) return distance(m.p, m.f) + distance(m.u, m.v) - distance(m.p, m.u) - distance(m.f, m.v);
    const float leave = distance(m.p, m.f) + distance(m.g, m.q) + distance(m.u, m.v);
    const int first = m.keeps_direction ? m.f : m.g, last = m.keeps_direction ? m.g : m.f;
    return leave - distance(m.p, m.q) - distance(m.u, first) - distance(last, m.v);
  }

  // Reverses the tour from position `from` to `to`, or, where that is shorter, the rest of it.
  POINTSMAN_DEVICE void reverse(int from, int to) {
    const int n = in_.n;
    int count = to - from + 1;
    if (count <= 0) count += n;
    if (2 * count > n) {
      count = n - count;
      const int first = to + 1;
      to = from == 0 ? n - 1 : from - 1;
      from = first == n ? 0 : first;
    }
    for (int i = team_.lane(); i < count / 2; i += team_.size()) {
      int left = from + i, right = to - i;
      if (left >= n) left -= n;
      if (right < 0) right += n;
      const uint16_t there = my_.order[left], here = my_.order[right];
      my_.order[left] = here;
      my_.order[right] = there;
      my_.position[here] = static_cast<uint16_t>(left);
      my_.position[there] = static_cast<uint16_t>(right);
    }
    team_.sync();
  }

  // Exchanges the edges (a, b), (c, d) for (a, c), (b, d); b and d follow a and c, both in the same
  // direction.
  POINTSMAN_DEVICE void flip(int a, int b, int c, int d) {
    const int at_a = my_.position[a], at_b = my_.position[b], at_c = my_.position[c], at_d = my_.position[d];
    team_.sync();
    const bool goes_on = at_b == (at_a + 1 < in_.n ? at_a + 1 : 0);
    reverse(goes_on ? at_b : at_a, goes_on ? at_c : at_d);
  }

  POINTSMAN_DEVICE void apply(const Move& m) {
    // p f..g q..u v becomes p u..q g..f v, then p q..u g..f v, then p q..u f..g v.
    const int flips = m.is_pair ? 1 : m.keeps_direction ? 3 : 2;
    for (int i = 0; i < flips; ++i) {
      const int a = i < 2 ? m.p : m.u, b = i == 0 ? m.f : i == 1 ? m.u : m.g;
      const int c = i == 0 ? m.u : i == 1 ? m.q : m.f, d = i == 1 ? m.g : m.v;
      flip(a, b, c, d);
    }
    const int ends[] = {m.p, m.f, m.g, m.q, m.u, m.v};
    for (const int city : ends) enqueue(city);
  }

  POINTSMAN_DEVICE void enqueue(int city) {
    const uint32_t bit = 1u << city % 32;
    const bool is_new = (my_.waits[city / 32] & bit) == 0;
    team_.sync();
    if (!is_new) return;
    int at = head_ + queued_++;
    if (at >= in_.n) at -= in_.n;
    if (team_.lane() == 0) {
      my_.queue[at] = static_cast<uint16_t>(city);
      my_.waits[city / 32] |= bit;
    }
    team_.sync();
  }

  POINTSMAN_DEVICE int dequeue() {
    const int city = my_.queue[head_];
    head_ = head_ + 1 < in_.n ? head_ + 1 : 0;
    --queued_;
    if (team_.lane() == 0) my_.waits[city / 32] &= ~(1u << city % 32);
    return city;
  }

  // Exchanges two neighbouring paths (the double bridge within a stretch). Returns what it cost.
  POINTSMAN_DEVICE float kick(const PhiloxBlock& draw) {
    const int n = in_.n, half = (n - 2) / 2;
    const auto below = [](uint32_t word, int count) {
      return static_cast<int>(static_cast<uint64_t>(word) * static_cast<uint32_t>(count) >> 32);
    };
    const int longest = half < kMostKickedCities ? half : kMostKickedCities;
    const int start = below(draw.word[0], n);
    const int first = 1 + below(draw.word[1], longest), second = 1 + below(draw.word[2], longest);
    const auto at = [&](int offset) {
      const int place = start + offset;
      return static_cast<int>(my_.order[place < n ? place : place - n]);
    };
    const Move move = {at(0), at(1), at(first), at(first + 1), at(first + second), at(first + second + 1),
                       false, true};
    const float gain = gain_of(move);
    apply(move);
    return -gain;
  }

  POINTSMAN_DEVICE void copy(const uint16_t* from, uint16_t* to) {
    for (int i = team_.lane(); i < in_.n; i += team_.size()) to[i] = from[i];
  }

  POINTSMAN_DEVICE void restore() {
    for (int i = team_.lane(); i < in_.n; i += team_.size()) {
      const uint16_t city = my_.kept[i];
      my_.order[i] = city;
      my_.position[city] = static_cast<uint16_t>(i);
    }
    team_.sync();
  }

  const Team team_;
  const TourInstance in_;
  const TourMemory my_;
  // The same in all threads.
  int head_ = 0, queued_ = 0;
  uint32_t looks_ = 0;
  bool stopped_ = false;
};

}  // namespace pointsman
