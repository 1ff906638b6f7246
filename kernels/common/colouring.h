// SPDX-License-Identifier: Apache-2.0
// The rules of graph colouring: every node gets a colour, joined nodes get different ones, and few colours
// are used. The network points by turns at a node and at its colour (Bello et al. 2017, "Generalization to
// other problems": a pointer and a softmax over labels). Colours are interchangeable, so a colour in use is
// pointed at by the node that got it first, and a new one by the node itself: no label has parameters of its
// own.
#pragma once

#include <cstdint>

#include "kernels/common/host_device.h"
#include "kernels/common/remaining.h"

namespace pointsman {

struct ColouringRules {
  static constexpr bool kDropsItems = true;
  static constexpr bool kHasCapacity = false;
  static constexpr bool kMonotone = false;
  static constexpr int kFeatures =
      3;                              // of a node: degree, its neighbours' mean degree, share of these joined
  static constexpr int kContext = 3;  // whether a colour is chosen, share of nodes coloured, colours per node
  static constexpr int max_steps(int n) { return 2 * n; }
  static constexpr int number_rows(int n) { return n; }
  // Of each node one word of its own colour, and a bit for each colour among its neighbours.
  static constexpr int words(int n) { return n * (1 + set_words(n)); }

  const double* edges = nullptr;  // [n][n] not 0: joined
  int n = 0;
  int colours = 0;   // in use
  int coloured = 0;  // nodes
  int node = -1;     // whose colour comes next; -1: a node comes next
  uint32_t* known = nullptr;

  POINTSMAN_HOST_DEVICE static ColouringRules make(const RuleInputs& in) { return {in.weights, in.n}; }
  POINTSMAN_HOST_DEVICE void use_words(uint32_t* words) { known = words; }
  POINTSMAN_HOST_DEVICE void context(float* out) const {
    out[0] = node < 0 ? 0.0f : 1.0f;
    out[1] = share(coloured);
    out[2] = share(colours);
  }

  POINTSMAN_HOST_DEVICE bool feasible(int item) const {
    if (node < 0) return !is_coloured(item);
    return item == node || ((known[item] & kIsFirst) != 0 && !touches(node, colour_of(item)));
  }
  POINTSMAN_HOST_DEVICE bool ends(int) const { return false; }
  POINTSMAN_HOST_DEVICE void step(int item) {
    if (node < 0) {
      node = item;
      return;
    }
    const int colour = item == node ? colours++ : colour_of(item);
    known[node] = (item == node ? kIsFirst : 0u) | static_cast<uint32_t>(colour + 1);
    for (int other = 0; other < n; ++other) {
      if (joins(node, other)) set_of(other)[colour / 32] |= uint32_t{1} << (colour % 32);
    }
    ++coloured;
    node = -1;
  }
  POINTSMAN_HOST_DEVICE bool complete(int steps, int count) const { return steps == max_steps(count); }

  // The prior of a candidate, kPriors numbers. Of a node: the colours among its neighbours, and its share of
  // neighbours without one (Brelaz 1979). Of a colour: whether it is new, for how many neighbours without a
  // colour it is then lost, and its number, the last two as shares of n, and all of them negative.
  static constexpr int kPriors = 5;
  static constexpr bool kLooksAhead = false;
  struct Outlook {};
  POINTSMAN_HOST_DEVICE static Outlook outlook(const Candidates&) { return {}; }
  POINTSMAN_HOST_DEVICE void priors(const Candidates&, const Outlook&, int item, float* out) const {
    const bool is_node = node < 0;
    const int colour = is_node ? -1 : item == node ? colours : colour_of(item);
    int neighbours = 0;
    for (int other = 0; other < n; ++other)
      neighbours +=
          joins(is_node ? item : node, other) && !is_coloured(other) && (is_node || !touches(other, colour));
    out[0] = is_node ? static_cast<float>(saturation(item)) : 0.0f;
    out[1] = is_node ? share(neighbours) : 0.0f;
    out[2] = !is_node && item == node ? -1.0f : 0.0f;
    out[3] = is_node ? 0.0f : -share(neighbours);
    out[4] = is_node ? 0.0f : -share(colour);
  }
  // What training starts their weights from.
  static float prior_start(int k, int n) {
    const float size = static_cast<float>(n);
    return k == 0 ? 3.0f : k == 1 ? 0.25f * size : k == 2 ? 10.0f : k == 3 ? 0.5f * size : 0.1f * size;
  }

  // What the policy minimises: the number of colours, each of which one node got first.
  POINTSMAN_HOST_DEVICE static double cost(const float*, const int32_t* order, int steps) {
    int colours = 0;
    for (int i = 0; i + 1 < steps; i += 2) colours += order[i] == order[i + 1];
    return colours;
  }

 private:
  static constexpr uint32_t kIsFirst = uint32_t{1} << 31;  // of a node: it got its colour first

  static constexpr int set_words(int n) { return (n + 31) / 32; }

  POINTSMAN_HOST_DEVICE uint32_t* set_of(int item) const { return known + n + item * set_words(n); }
  POINTSMAN_HOST_DEVICE bool is_coloured(int item) const { return known[item] != 0; }
  POINTSMAN_HOST_DEVICE int colour_of(int item) const {
    return static_cast<int>(known[item] & ~kIsFirst) - 1;
  }
  POINTSMAN_HOST_DEVICE bool joins(int a, int b) const { return edges[int64_t{a} * n + b] != 0.0; }
  POINTSMAN_HOST_DEVICE bool touches(int item, int colour) const {
    return colour < n && (set_of(item)[colour / 32] >> (colour % 32) & 1) != 0;
  }
  POINTSMAN_HOST_DEVICE int saturation(int item) const {
    int count = 0;
    for (int word = 0; word < set_words(n); ++word) {
      for (uint32_t left = set_of(item)[word]; left != 0; left &= left - 1) ++count;
    }
    return count;
  }
  POINTSMAN_HOST_DEVICE float share(int count) const {
    return static_cast<float>(count) / static_cast<float>(n);
  }
};

}  // namespace pointsman
