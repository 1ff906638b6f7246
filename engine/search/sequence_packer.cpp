// SPDX-License-Identifier: Apache-2.0
#include "engine/search/sequence_packer.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "engine/problem/generate.h"
#include "engine/problem/problem.h"

namespace pointsman {

SequenceBatch Sequences::view() const {
  SequenceBatch batch;
  batch.problem = problem;
  batch.n = n;
  batch.count = static_cast<int>(parameter_sets.size());
  batch.features = features.data();
  if (!capacities.empty()) {
    batch.weights = weights.data();
    batch.capacities = capacities.data();
  }
  batch.parameter_sets = parameter_sets.data();
  return batch;
}

SequencePacker::SequencePacker(std::span<const Instance* const> instances, double trained_capacity)
    : instances_(instances), n_(instances.empty() ? 0 : instances[0]->n()) {
  if (n_ < 1) throw std::invalid_argument("no instance, or one without items");
  for (const Instance* instance : instances) {
    if (instance->n() != n_ || instance->problem != instances[0]->problem) {
      throw std::invalid_argument("instances of several sizes or problems in one batch");
    }
    inputs_.push_back(problem_of(*instance).features(*instance, trained_capacity));
    if (problem_of(*instance).has_capacity) rule_numbers_.push_back(rule_numbers(*instance));
  }
  clear();
}

void SequencePacker::clear() {
  sequences_ = {instances_[0]->problem, n_};
  orders_.clear();
}

void SequencePacker::add(size_t instance, int copy, std::vector<int32_t> order, int32_t parameter_set) {
  const RuleNumbers* const numbers = rule_numbers_.empty() ? nullptr : &rule_numbers_[instance];
  for (int i = 0; i < n_; ++i) {
    const int item = order.empty() ? i : order[i];
    float point[2] = {inputs_[instance][2 * item], inputs_[instance][2 * item + 1]};
    apply_dihedral(copy, point);
    sequences_.features.insert(sequences_.features.end(), point, point + 2);
    if (numbers) sequences_.weights.push_back(numbers->weights[item]);
  }
  if (numbers) sequences_.capacities.push_back(numbers->capacity);
  sequences_.parameter_sets.push_back(parameter_set);
  orders_.push_back(std::move(order));
}

std::vector<int32_t> SequencePacker::original_order(size_t s, const int32_t* chosen) const {
  std::vector<int32_t> original;
  original.reserve(n_);
  for (int i = 0; i < n_ && chosen[i] >= 0; ++i) {
    if (chosen[i] >= n_) throw std::logic_error("the backend chose item " + std::to_string(chosen[i]));
    original.push_back(orders_[s].empty() ? chosen[i] : orders_[s][chosen[i]]);
  }
  return original;
}

}  // namespace pointsman
