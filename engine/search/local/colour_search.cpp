// SPDX-License-Identifier: Apache-2.0
#include "engine/search/local/colour_search.h"

#include <algorithm>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "engine/problem/graph.h"
#include "engine/problem/problem.h"
#include "engine/search/heuristics.h"

namespace pointsman {
namespace {

constexpr int64_t kMovesPerCheck = 256;
// Moves for which a node may not take its old colour again: up to 9 at random, and 0.6 for each node in
// conflict (Galinier and Hao 1999).
constexpr uint64_t kRandomTenure = 10;
constexpr double kTenureShare = 0.6;

// Colours of which joined nodes may have the same.
class TabuColours {
 public:
  // colours: [n] below `count`.
  TabuColours(const Graph& graph, std::vector<int32_t> colours, int count, uint64_t seed)
      : graph_(graph),
        n_(graph.n()),
        count_(count),
        colours_(std::move(colours)),
        joined_(static_cast<size_t>(n_) * count, 0),
        free_at_(joined_.size(), 0),
        random_(seed) {
    for (int node = 0; node < n_; ++node)
      graph.neighbours(node).for_each([&](int other) { ++joined(node, colours_[other]); });
    for (int node = 0; node < n_; ++node) conflicts_ += joined(node, colours_[node]);
  }

  const std::vector<int32_t>& colours() const { return colours_; }
  bool is_valid() const { return conflicts_ == 0; }

  // The best move of a node in conflict that is allowed, or better than all before; of equals one at random.
  void move() {
    ++moves_;
    int best = std::numeric_limits<int>::max(), node = -1, colour = 0, in_conflict = 0;
    uint64_t equals = 0;
    for (int a = 0; a < n_; ++a) {
      const int now = joined(a, colours_[a]);
      if (now == 0) continue;
      ++in_conflict;
      for (int c = 0; c < count_; ++c) {
        const int change = joined(a, c) - now;
        if (c == colours_[a] || change > best) continue;
        if (free_at_[place(a, c)] > moves_ && conflicts_ + 2 * change >= least_) continue;
        equals = change < best ? 1 : equals + 1;
        best = change;
        if (random_() % equals == 0) node = a, colour = c;
      }
    }
    if (node < 0) return;  // all are forbidden, for some moves
    free_at_[place(node, colours_[node])] = moves_ + static_cast<int64_t>(random_() % kRandomTenure) +
                                            static_cast<int64_t>(kTenureShare * in_conflict) + 1;
    paint(node, colour);
    least_ = std::min(least_, conflicts_);
  }

 private:
  size_t place(int node, int colour) const { return static_cast<size_t>(node) * count_ + colour; }
  int32_t& joined(int node, int colour) { return joined_[place(node, colour)]; }

  void paint(int node, int colour) {
    const int32_t before = std::exchange(colours_[node], colour);
    conflicts_ += 2 * (joined(node, colour) - joined(node, before));
    graph_.neighbours(node).for_each([&](int other) {
      --joined(other, before);
      ++joined(other, colour);
    });
  }

  const Graph& graph_;
  const int n_, count_;
  std::vector<int32_t> colours_;
  std::vector<int32_t> joined_;   // [n][count] neighbours that have this colour
  std::vector<int64_t> free_at_;  // [n][count] the move from which on the node may take it
  std::mt19937_64 random_;
  int64_t moves_ = 0;
  int64_t conflicts_ = 0;  // pairs of joined nodes with one colour, each counted twice
  int64_t least_ = std::numeric_limits<int64_t>::max();
};

// Without the colour of the fewest nodes, each of which gets the one that the fewest of its neighbours have.
std::vector<int32_t> without_one(const Graph& graph, std::vector<int32_t> colours, int count) {
  std::vector<int> sizes(static_cast<size_t>(count), 0);
  for (const int32_t colour : colours) ++sizes[colour];
  const auto gone = static_cast<int32_t>(std::ranges::min_element(sizes) - sizes.begin());
  for (int node = 0; node < graph.n(); ++node) {
    if (colours[node] != gone) continue;
    std::vector<int> seen(sizes.size(), 0);
    graph.neighbours(node).for_each([&](int other) { ++seen[colours[other]]; });
    seen[gone] = std::numeric_limits<int>::max();
    colours[node] = static_cast<int32_t>(std::ranges::min_element(seen) - seen.begin());
  }
  for (int32_t& colour : colours) colour -= colour > gone;
  return colours;
}

}  // namespace

ColourSearch::ColourSearch(const Instance& instance, const ImproveOptions& options)
    : instance_(instance), options_(options) {}

Solution ColourSearch::start(const SearchControl&) const { return quick_answer(instance_); }

bool ColourSearch::descend(Solution&, const SearchControl&) const { return true; }

bool ColourSearch::improve(Solution& solution, const SearchControl& control, WorkerThreads*) const {
  const Graph graph(instance_);
  const auto least = static_cast<int>(greedy_clique(graph).size());
  const int64_t kicks = kicks_of(instance_, options_, control);
  std::vector<int32_t> best = solution.order;
  int count = renumber_colours(best);
  bool finished = true;
  while (count > least && solution.kicks < kicks && finished) {
    TabuColours search(graph, without_one(graph, best, count), count - 1, options_.seed);
    for (; !search.is_valid() && solution.kicks < kicks && finished; ++solution.kicks) {
      search.move();
      if (solution.kicks % kMovesPerCheck == 0) finished = control.check() == Status::kDone;
    }
    if (!search.is_valid()) break;
    best = search.colours();
    --count;
    if (control.report.on_best) control.report.on_best(count);
  }
  solution.order = std::move(best);
  require_valid(instance_, solution, "local search left no colouring: ");
  return finished;
}

}  // namespace pointsman
