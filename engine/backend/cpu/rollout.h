// SPDX-License-Identifier: Apache-2.0
// Rollouts of a tile of sequences on one worker. Rollouts of one sequence that have chosen the same items so
// far have the same state and the same probabilities, so the network is evaluated once for each distinct
// prefix (algebra identity 8) and each rollout of the group draws with its own uniform: bits as one by one.
// The tree of prefixes is walked depth first, a block of groups at a time, so that the second-level cache
// holds what a block computes, however many rollouts the tile has.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

#include "engine/backend/cpu/network.h"
#include "engine/backend/requests.h"

namespace pointsman {

// Network states and remaining items of groups, and the words of their rules.
struct GroupStates {
  Buffer h, c;                  // [groups][H]
  std::vector<int32_t> items;   // [groups][n]
  std::vector<uint32_t> words;  // [groups][Rules::words(n)]

  void make_room(size_t groups, int n, int words_each) {
    h.get(groups * kHidden);
    c.get(groups * kHidden);
    if (items.size() < groups * n) items.resize(groups * n);
    if (words.size() < groups * words_each) words.resize(groups * words_each);
  }
};

// Of the members of a block of groups, in their order.
struct Draws {
  std::vector<uint32_t> instances, samples;  // [members]
  Buffer uniforms;                           // [members]
  std::vector<int32_t> positions;            // [members] in their group's list
  int first_member = 0;                      // of the block, in its level

  void make_room(int members) {
    const size_t count = cpu::padded(members);
    for (auto* key : {&instances, &samples})
      if (key->size() < count) key->resize(count);
    if (positions.size() < count) positions.resize(count);
    uniforms.get(count);
  }
};

struct RolloutWorkspace {
  EncodedTile encoded;
  Buffer products, inputs, logits, prefix, attention;
  Draws draws;
  std::deque<GroupStates> levels;
  Prior prior;
};

// Branches of the trees that workers walk, which they hand to idle workers during a call: so the threads
// share one instance's samples and every prefix is still evaluated once. Thread-safe.
class BranchQueue {
 public:
  using Branch = std::function<PolicyStatistics(RolloutWorkspace&)>;

  // How many branches of one tree are not yet done.
  class Tree {
    friend class BranchQueue;
    int open_ = 0;
  };

  explicit BranchQueue(int workers) : working_(workers) {}

  // Whether more workers wait than branches.
  bool is_wanted() const { return idle_ > queued_; }
  void put(Tree& tree, Branch branch) {
    {
      const std::lock_guard lock(mutex_);
      items_.push_back({&tree, std::move(branch)});
      ++tree.open_;
      ++open_;
      ++queued_;
    }
    changed_.notify_one();
  }

  // Runs branches, of this tree or of another, until this one's are done.
  void wait_for(const Tree& tree, RolloutWorkspace& workspace) {
    help([&] { return tree.open_ == 0; }, workspace);
  }
  // Of a worker without further tiles: until nobody has tiles or branches. All workers must come here.
  void wait_for_all(RolloutWorkspace& workspace) {
    {
      const std::lock_guard lock(mutex_);
      --working_;
    }
    changed_.notify_all();
    help([&] { return working_ == 0 && open_ == 0; }, workspace);
  }

  // Calls work(); keeps that it was stopped, or the first other exception.
  template <typename Work>
  void attempt(const Work& work) {
    try {
      work();
    } catch (const CallStopped&) {
      stopped_ = true;
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      failed_ = true;
    }
  }
  bool was_stopped() const { return stopped_; }
  bool has_failed() const { return failed_; }
  void rethrow() const {  // the exception, if there was one
    if (error_) std::rethrow_exception(error_);
  }

  // Of all branches. When everybody has returned.
  const PolicyStatistics& statistics() const { return statistics_; }

 private:
  template <typename IsDone>
  void help(const IsDone& is_done, RolloutWorkspace& workspace) {
    std::unique_lock lock(mutex_);
    while (!is_done()) {
      if (items_.empty()) {
        ++idle_;
        changed_.wait(lock, [&] { return !items_.empty() || is_done(); });
        --idle_;
        continue;
      }
      Item item = std::move(items_.front());
      items_.pop_front();
      --queued_;
      lock.unlock();
      PolicyStatistics own;
      attempt([&] { own = item.branch(workspace); });
      item.branch = nullptr;
      lock.lock();
      statistics_ += own;
      --open_;
      if (--item.tree->open_ == 0) changed_.notify_all();
    }
  }

  struct Item {
    Tree* tree;
    Branch branch;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  int working_;   // workers that may still begin a tile
  int open_ = 0;  // branches of all trees
  std::atomic<int> idle_ = 0, queued_ = 0;
  PolicyStatistics statistics_;
  std::atomic<bool> stopped_ = false, failed_ = false;
  std::exception_ptr error_;
};

struct TileRolloutArgs {
  const CpuParameters& parameters;
  const RolloutRequest& request;
  const RolloutTile& tile;
  TileActivations* recorded;  // where the tile's activations go, or null
  RolloutResult& result;
  BranchQueue* branches;  // null, as of a request with a tape: the worker walks alone
};

// Fills orders, costs and log_probs of the tile's rollouts and returns the tile's statistics, less those of
// the branches that went to the queue.
PolicyStatistics roll_out_tile(const TileRolloutArgs& args, RolloutWorkspace& workspace);

}  // namespace pointsman
