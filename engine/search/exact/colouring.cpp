// SPDX-License-Identifier: Apache-2.0
#include "engine/search/exact/colouring.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/problem/graph.h"
#include "engine/problem/problem.h"
#include "engine/search/heuristics.h"

namespace pointsman {
namespace {

constexpr int64_t kPaintsPerCheck = 1024;

// Depth first: the node with the most colours among its neighbours gets each colour in use, then a new one,
// as long as that is fewer than the best colouring has.
class ColourBranches {
 public:
  ColourBranches(const Graph& graph, std::vector<int32_t> best, const SearchControl& control)
      : graph_(graph),
        control_(control),
        n_(graph.n()),
        best_(std::move(best)),
        most_(renumber_colours(best_)),
        colours_(static_cast<size_t>(n_), -1),
        saturation_(colours_.size(), 0),
        open_(colours_.size()),
        counts_(colours_.size() * static_cast<size_t>(most_), 0) {
    for (int node = 0; node < n_; ++node) open_[node] = graph.degree(node);
  }

  // Returns whether it came to the end; then best() is optimal.
  bool run() {
    const std::vector<int32_t> clique = greedy_clique(graph_);
    least_ = static_cast<int>(clique.size());
    if (least_ == most_) return true;
    int used = 0;
    for (const int32_t node : clique) paint(node, used++);
    branch(n_ - used, used);
    return !is_over_;
  }
  const std::vector<int32_t>& best() const { return best_; }

 private:
  int32_t& count(int node, int colour) { return counts_[static_cast<size_t>(node) * capacity_ + colour]; }

  void paint(int node, int colour) {
    colours_[node] = colour;
    graph_.neighbours(node).for_each([&](int other) {
      saturation_[other] += count(other, colour)++ == 0;
      --open_[other];
    });
  }
  void unpaint(int node) {
    const int colour = std::exchange(colours_[node], -1);
    graph_.neighbours(node).for_each([&](int other) {
      saturation_[other] -= --count(other, colour) == 0;
      ++open_[other];
    });
  }

  int next_node() const {
    int next = -1;
    for (int node = 0; node < n_; ++node) {
      if (colours_[node] >= 0) continue;
      if (next < 0 || std::pair(saturation_[node], open_[node]) > std::pair(saturation_[next], open_[next]))
        next = node;
    }
    return next;
  }

  bool is_done() {
    if (++branches_ % kPaintsPerCheck == 0 && control_.check() != Status::kDone) is_over_ = true;
    return is_over_ || most_ == least_;
  }

  // `left` nodes are without a colour.
  void branch(int left, int used) {
    if (left == 0) {
      best_ = colours_;
      most_ = used;
      if (control_.report.on_best) control_.report.on_best(used);
      return;
    }
    const int node = next_node();
    // A better colouring that was found below here leaves nothing to find where as many colours are in use.
    for (int colour = 0; used < most_ && colour < std::min(used + 1, most_ - 1) && !is_done(); ++colour) {
      if (count(node, colour) > 0) continue;
      paint(node, colour);
      branch(left - 1, std::max(used, colour + 1));
      unpaint(node);
    }
  }

  const Graph& graph_;
  const SearchControl& control_;
  const int n_;
  std::vector<int32_t> best_;
  int most_;                      // colours of best_
  const int capacity_ = most_;    // colours that have room
  int least_ = 0;                 // no colouring has fewer
  std::vector<int32_t> colours_;  // -1: none
  std::vector<int> saturation_;   // colours among a node's neighbours
  std::vector<int> open_;         // neighbours without a colour
  std::vector<int32_t> counts_;   // [n][capacity] neighbours that have this colour
  int64_t branches_ = 0;
  bool is_over_ = false;
};

}  // namespace

Solution exact_colouring(const Instance& instance, const SearchControl& control) {
  require_problem(problem_of(instance).has_labels, instance, "exact_colouring");
  const Graph graph(instance);
  ColourBranches branches(graph, dsatur_colours(graph), control);
  const bool is_whole = branches.run();
  Solution solution = checked_solution(instance, branches.best());
  solution.start = is_whole ? Start::kExact : Start::kBranchAndBound;
  if (!is_whole) solution.status = control.check();
  return solution;
}

}  // namespace pointsman
