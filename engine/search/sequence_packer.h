// SPDX-License-Identifier: Apache-2.0
// Input sequences for the backend from instances of one size and problem, and back to the user's numbering.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/problem/instance.h"
#include "engine/problem/packing_units.h"

namespace pointsman {

// Owns everything its view points to.
struct Sequences {
  ProblemKind problem = ProblemKind::kTsp;
  int n = 0;
  std::vector<float> features = {};          // [count][n][F]
  std::vector<double> weights = {};          // [count][number_rows][n], of rule_numbers(); may be empty
  std::vector<double> capacities = {};       // [count]; likewise
  std::vector<int32_t> parameter_sets = {};  // [count]
  // As RolloutRequest has them, [count] or empty.
  std::vector<int32_t> counts = {};
  std::vector<uint64_t> keys = {};
  std::vector<uint32_t> first_samples = {};
  // Of a user's own problem, and its items in the user's units, [count][n][F].
  std::shared_ptr<const OwnProblem> own = nullptr;
  std::vector<double> items = {};

  int width() const { return own ? own->width() : feature_count(problem); }  // F
  int steps() const { return max_steps(problem, n); }

  // One more sequence's features: the items in this order (empty: as they stand), in dihedral copy `copy`.
  // from: [n][F]; own_items: of a user's own problem the same in the user's units, else unread.
  void add_items(const float* from, int copy, std::span<const int32_t> order, const double* own_items);
  // And what its rules read, of items in that order. from: [number_rows][n].
  void add_numbers(const double* from, double capacity, std::span<const int32_t> order);

  // Both are valid until a member changes. The request has keys, first samples and counts too.
  SequenceBatch view() const;
  RolloutRequest request() const;
};

// The rollouts of one sequence.
struct Draws {
  uint64_t key = 0;  // instance_key()
  uint32_t first_sample = 0;
  int32_t count = 1;
  int32_t parameter_set = 0;
};

class SequencePacker {
 public:
  // What `instances` points to, and the pointers, must outlive the packer and all have the n and the problem
  // of the first. Throws std::invalid_argument when they do not, or when there is none.
  SequencePacker(std::span<const Instance* const> instances, double trained_capacity);

  void clear();
  // One more sequence: position i holds item order[i] of the instance (an empty order: item i) in dihedral
  // copy `copy`.
  void add(size_t instance, int copy, std::vector<int32_t> order, const Draws& draws = {});

  const Sequences& sequences() const { return sequences_; }

  // The answer that a rollout of sequence s means. chosen: [steps], -1 after the last.
  std::vector<int32_t> answer(size_t s, const int32_t* chosen) const;

 private:
  std::span<const Instance* const> instances_;
  const int n_;
  std::vector<std::vector<float>> inputs_;  // of each instance, [n][F]
  std::vector<RuleNumbers> rule_numbers_;   // of each instance; empty where the rules read none
  Sequences sequences_;
  std::vector<std::vector<int32_t>> orders_;
};

inline constexpr const char* kInvalidAnswer = "the network's answer is not valid: ";

}  // namespace pointsman
