// SPDX-License-Identifier: Apache-2.0
// A population of tours, evolved by edge assembly crossover.
#pragma once

#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "engine/search/limits.h"
#include "engine/search/local/edge_assembly.h"
#include "kernels/tools/worker_threads.h"

namespace pointsman {

// Each generation crosses every tour with another one and replaces it by their child if that is shorter. The
// parents are the tours of the generation before, so the result does not depend on the number of threads.
template <typename Length>
class TourPopulation {
 public:
  // What it is made of must outlive it. tours: each [n].
  TourPopulation(const Distances& distances, const NeighbourLists& neighbours, const FixedEdges& fixed,
                 std::vector<std::vector<int32_t>> tours, WorkerThreads* workers)
      : workers_(workers),
        tours_(std::move(tours)),
        children_(tours_.size()),
        counts_(distances.n(), tours_.size()) {
    const int threads = workers != nullptr ? workers->count() : 1;
    for (int i = 0; i < threads; ++i) assemblies_.emplace_back(distances, neighbours, fixed);
    for (const std::vector<int32_t>& tour : tours_) counts_.add_tour(tour);
  }

  // Until several generations in a row shorten none, or `control` says stop.
  void evolve(uint64_t seed, const SearchControl& control) {
    std::mt19937_64 random(seed);
    std::vector<size_t> order(tours_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    int idle = 0;
    for (int made = 0; made < kMostGenerations && idle < kIdleGenerations; ++made, ++idle) {
      if (control.check() != Status::kDone) return;
      for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
      make_children(order, random(), control);
      if (replace_tours()) idle = -1;
    }
  }
  const std::vector<std::vector<int32_t>>& tours() const { return tours_; }

 private:
  static constexpr int kIdleGenerations = 3, kMostGenerations = 10'000;
  struct Child {
    std::vector<int32_t> tour;
    std::vector<EdgeChange> changes;  // empty: there is none
  };

  void make_children(const std::vector<size_t>& order, uint64_t seed, const SearchControl& control) {
    const auto make_child = [&](int64_t i, int worker) {
      if (control.check() != Status::kDone) return;
      const size_t mother = order[i], father = order[(static_cast<size_t>(i) + 1) % order.size()];
      std::mt19937_64 random(seed + static_cast<uint64_t>(i));
      EdgeAssembly<Length>& assembly = assemblies_[worker];
      const auto changes = assembly.cross(tours_[mother], tours_[father], counts_, random);
      if (changes.empty()) return;
      children_[mother].changes.assign(changes.begin(), changes.end());
      children_[mother].tour = assembly.tour();
    };
    const auto count = static_cast<int64_t>(order.size());
    if (workers_ != nullptr) return workers_->for_each(count, make_child);
    for (int64_t i = 0; i < count; ++i) make_child(i, 0);
  }

  // false: there was no child.
  bool replace_tours() {
    bool has_child = false;
    for (size_t i = 0; i < tours_.size(); ++i) {
      if (children_[i].changes.empty()) continue;
      has_child = true;
      for (const EdgeChange& one : children_[i].changes) counts_.change(one);
      children_[i].changes.clear();
      std::swap(tours_[i], children_[i].tour);
    }
    return has_child;
  }

  WorkerThreads* const workers_;
  std::vector<std::vector<int32_t>> tours_;
  std::vector<Child> children_;  // of each tour
  EdgeCounts counts_;
  std::vector<EdgeAssembly<Length>> assemblies_;  // of each thread
};

}  // namespace pointsman
