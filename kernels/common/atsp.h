// SPDX-License-Identifier: Apache-2.0
// The rules of the asymmetric travelling salesman problem: every city once, and the way back. A city has no
// place; what its rules know of it are ways. They carry the assignment problem of what is left from step to
// step: entropic (Cuturi 2013), its solution is the affinities times a scaling of each row and column, and a
// few sweeps over both (Sinkhorn and Knopp 1967) bring the last step's columns up to date.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/common/host_device.h"
#include "kernels/common/remaining.h"
#include "kernels/common/scalar_math.h"

namespace pointsman {

struct AtspRules {
  static constexpr bool kDropsItems = false;
  static constexpr bool kHasCapacity = false;
  static constexpr bool kMonotone = true;
  static constexpr int kFeatures = 14;  // engine/problem/atsp.h
  static constexpr int kContext = 0;
  static constexpr int max_steps(int n) { return n; }
  // Rows of n numbers: the ways from each city, in units of the mean of all, and the affinities of each: P of
  // the assignment problem of all cities, at a temperature of 1 / n, kLeast to 1, 0 to itself.
  static constexpr int kMatrices = 2;
  static constexpr int number_rows(int n) { return kMatrices * n; }
  static constexpr int words(int n) { return 2 * n; }  // a column's scaling, and what it is made from
  static constexpr float kLeast = 1e-15f;

  const double* ways = nullptr;        // [n][n]
  const double* affinities = nullptr;  // [n][n]
  int n = 0;
  int first = -1, last = -1;
  int chosen = 0;
  uint32_t* columns = nullptr;  // [2][n] floats; the scaling is 0 where nobody may go

  POINTSMAN_HOST_DEVICE static AtspRules make(const RuleInputs& in) {
    return {in.weights, in.weights + int64_t{in.n} * in.n, in.n};
  }
  POINTSMAN_HOST_DEVICE void use_words(uint32_t* words) { columns = words; }
  POINTSMAN_HOST_DEVICE void context(float*) const {}

  POINTSMAN_HOST_DEVICE bool feasible(int) const { return true; }
  POINTSMAN_HOST_DEVICE bool ends(int) const { return false; }
  POINTSMAN_HOST_DEVICE void step(int item) {
    if (first < 0) {
      first = item;
      for (int j = 0; j < n; ++j) set(j, 1.0f);
    } else {
      set(item, 0.0f);
    }
    last = item;
    ++chosen;
    for (int sweep = 0; sweep < kSweeps && n - chosen > 1; ++sweep) balance();
  }
  POINTSMAN_HOST_DEVICE bool complete(int steps, int count) const { return steps == count; }

  // The prior of a candidate, kPriors numbers: minus the way there; the logarithms of its affinity and of its
  // share in the assignment problem of what is left; the shortest other way there, minus the shortest way on
  // from there, and the way from there to the first city. 0 at the first step.
  static constexpr int kPriors = 6;
  static constexpr bool kLooksAhead = false;
  struct Outlook {
    float total = 1.0f;  // of the present city's row
  };
  POINTSMAN_HOST_DEVICE Outlook outlook(const Candidates& step) const {
    Outlook seen;
    if (step.last < 0) return seen;
    seen.total = 0.0f;
    for (int i = 0; i < step.count; ++i) seen.total += affinity(last, step.items[i]) * at(step.items[i]);
    return seen;
  }
  POINTSMAN_HOST_DEVICE void priors(const Candidates& step, const Outlook& seen, int item, float* out) const {
    for (int k = 0; k < kPriors; ++k) out[k] = 0.0f;
    if (step.last < 0) return;
    const float here = affinity(last, item);
    double into = kFar, onward = way(item, first);
    for (int i = 0; i < step.count; ++i) {
      const int other = step.items[i];
      if (other == item) continue;
      if (way(other, item) < into) into = way(other, item);
      if (way(item, other) < onward) onward = way(item, other);
    }
    out[0] = -shown(way(last, item));
    out[1] = log_f32(here);
    out[2] = log_f32(here * at(item) / seen.total);
    out[3] = shown(into);
    out[4] = -shown(onward);
    out[5] = shown(way(item, first));
  }
  // What training starts their weights from.
  static float prior_start(int k, int) {
    return k == 0 ? 1.6f : k == 1 ? 0.25f : k == 2 ? 0.4f : k == 3 ? 0.6f : k == 4 ? 0.4f : 0.5f;
  }

  // What the policy minimises. order: [n].
  POINTSMAN_HOST_DEVICE double cost(const float*, const int32_t* order, int count) const {
    double total = 0.0;
    for (int i = 0; i < count; ++i) total += way(order[i], order[i + 1 < count ? i + 1 : 0]);
    return total;
  }

 private:
  static constexpr int kSweeps = 4;
  static constexpr double kFar = 1e30;

  POINTSMAN_HOST_DEVICE double way(int from, int to) const { return ways[int64_t{from} * n + to]; }
  POINTSMAN_HOST_DEVICE float affinity(int from, int to) const {
    return static_cast<float>(affinities[int64_t{from} * n + to]);
  }
  // Ten times the temperature is 1; what is longer than eight of these is far.
  POINTSMAN_HOST_DEVICE float shown(double length) const {
    const double units = length * n * 0.1;
    return static_cast<float>(units < 8.0 ? units : 8.0);
  }
  POINTSMAN_HOST_DEVICE float at(int j) const {
    float value;
    std::memcpy(&value, columns + j, sizeof value);
    return value;
  }
  POINTSMAN_HOST_DEVICE void set(int j, float value) { std::memcpy(columns + j, &value, sizeof value); }

  // The rows and columns that the order has still to join, each scaled to sum 1: first the rows, of which
  // nothing is kept, then the columns. The present city does not go to the first one yet.
  POINTSMAN_HOST_DEVICE void balance() {
    const float home = at(first);
    for (int j = 0; j < n; ++j) set(n + j, 0.0f);
    for (int i = 0; i < n; ++i) {
      if (i != last && (i == first || at(i) == 0.0f)) continue;
      if (i == last) set(first, 0.0f);
      const float before = at(n + first), scale = 1.0f / row_sum(i);
      for (int j = 0; j < n; ++j) set(n + j, at(n + j) + affinity(i, j) * scale);
      if (i == last) {
        set(first, home);
        set(n + first, before);
      }
    }
    float most = 0.0f;
    for (int j = 0; j < n; ++j) {
      if (at(j) == 0.0f) continue;
      set(j, 1.0f / at(n + j));
      most = at(j) > most ? at(j) : most;
    }
    for (int j = 0; j < n; ++j) {
      if (at(j) == 0.0f) continue;
      const float share = at(j) / most;
      set(j, share > kLeast ? share : kLeast);
    }
  }
  // Eight strided partial sums, and the tree (l, l + 4), (l, l + 2), (l, l + 1).
  POINTSMAN_HOST_DEVICE float row_sum(int i) const {
    float sums[8] = {};
    int j = 0;
    for (; j + 8 <= n; j += 8) {
      for (int l = 0; l < 8; ++l) sums[l] += affinity(i, j + l) * at(j + l);
    }
    for (int l = 0; l < 8; ++l) {
      if (j + l < n) sums[l] += affinity(i, j + l) * at(j + l);
    }
    for (int step = 4; step > 0; step /= 2) {
      for (int l = 0; l < step; ++l) sums[l] += sums[l + step];
    }
    return sums[0];
  }
};

}  // namespace pointsman
