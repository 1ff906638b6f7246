// SPDX-License-Identifier: Apache-2.0
// Input sequences for the backend out of instances of one size and problem, and the way back to the user's
// numbering.
#pragma once

#include <cstdint>
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
  std::vector<float> features = {};          // [count][n][2]
  std::vector<double> weights = {};          // [count][n], of rule_numbers(); empty without capacities
  std::vector<double> capacities = {};       // [count]; likewise
  std::vector<int32_t> parameter_sets = {};  // [count]

  SequenceBatch view() const;  // valid until a member changes
};

class SequencePacker {
 public:
  // What `instances` points to, and the pointers, must outlive the packer and all have the n and the problem
  // of the first. Throws std::invalid_argument when they do not, or when there is none.
  SequencePacker(std::span<const Instance* const> instances, double trained_capacity);

  void clear();
  // One more sequence: position i holds item order[i] of the instance (an empty order: item i) in dihedral
  // copy `copy`.
  void add(size_t instance, int copy, std::vector<int32_t> order, int32_t parameter_set = 0);

  SequenceBatch batch() const { return sequences_.view(); }  // valid until the next clear() or add()

  // The user's item numbers of a rollout of sequence s. chosen: [n], -1 after the last.
  std::vector<int32_t> original_order(size_t s, const int32_t* chosen) const;

 private:
  std::span<const Instance* const> instances_;
  const int n_;
  std::vector<std::vector<float>> inputs_;  // of each instance, [n][2]
  std::vector<RuleNumbers> rule_numbers_;   // of each instance; empty without capacities
  Sequences sequences_;
  std::vector<std::vector<int32_t>> orders_;
};

inline constexpr const char* kInvalidAnswer = "the network's answer is not valid: ";

}  // namespace pointsman
