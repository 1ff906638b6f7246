// SPDX-License-Identifier: Apache-2.0
// Input sequences for the backend out of instances of one size and problem, and the way back to the user's
// numbering.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/problem/instance.h"

namespace pointsman {

class SequencePacker {
 public:
  // `instances` must outlive the packer and all have the n and the problem of the first.
  // Throws std::invalid_argument when they do not, or when there is none.
  SequencePacker(std::span<const Instance> instances, double trained_capacity);

  void clear();
  // One more sequence: position i holds item order[i] of the instance (an empty order: item i) in dihedral
  // copy `copy`.
  void add(size_t instance, int copy, std::vector<int32_t> order, int32_t parameter_set = 0);

  int count() const { return static_cast<int>(orders_.size()); }
  SequenceBatch batch() const;  // valid until the next clear() or add()

  // The user's item numbers of a rollout of sequence s. chosen: [n], -1 after the last.
  std::vector<int32_t> original_order(size_t s, const int32_t* chosen) const;

 private:
  std::span<const Instance> instances_;
  int n_;
  std::vector<std::vector<float>> inputs_;  // of each instance, [n][2]
  std::vector<float> features_;
  std::vector<double> weights_, capacities_;
  std::vector<int32_t> parameter_sets_;
  std::vector<std::vector<int32_t>> orders_;
};

// Fills the costs of an answer that a network gave. An invalid one is a defect of the program:
// std::logic_error.
void check_answer(const Instance& instance, Solution& solution);

}  // namespace pointsman
