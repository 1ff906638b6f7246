// SPDX-License-Identifier: Apache-2.0
#include "engine/search/sequence_packer.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "engine/problem/network_input.h"
#include "engine/problem/problem.h"
#include "engine/problem/validate.h"

namespace pointsman {

SequencePacker::SequencePacker(std::span<const Instance> instances, double trained_capacity)
    : instances_(instances), n_(instances.empty() ? 0 : instances[0].n()) {
  if (n_ < 1) throw std::invalid_argument("no instance, or one without items");
  for (const Instance& instance : instances) {
    if (instance.n() != n_ || instance.problem != instances[0].problem) {
      throw std::invalid_argument("instances of several sizes or problems in one batch");
    }
    inputs_.push_back(problem_of(instance).features(instance, trained_capacity));
  }
}

void SequencePacker::clear() {
  features_.clear();
  weights_.clear();
  capacities_.clear();
  parameter_sets_.clear();
  orders_.clear();
}

void SequencePacker::add(size_t instance, int copy, std::vector<int32_t> order, int32_t parameter_set) {
  const Instance& source = instances_[instance];
  const bool weighs = problem_of(source).has_capacity;
  for (int i = 0; i < n_; ++i) {
    const int item = order.empty() ? i : order[i];
    float point[2] = {inputs_[instance][2 * item], inputs_[instance][2 * item + 1]};
    apply_dihedral(copy, point);
    features_.insert(features_.end(), point, point + 2);
    if (weighs) weights_.push_back(source.first(item));
  }
  if (weighs) capacities_.push_back(source.capacity);
  parameter_sets_.push_back(parameter_set);
  orders_.push_back(std::move(order));
}

SequenceBatch SequencePacker::batch() const {
  SequenceBatch batch;
  batch.problem = instances_[0].problem;
  batch.n = n_;
  batch.count = count();
  batch.features = features_.data();
  if (!capacities_.empty()) {
    batch.weights = weights_.data();
    batch.capacities = capacities_.data();
  }
  batch.parameter_sets = parameter_sets_.data();
  return batch;
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

void check_answer(const Instance& instance, Solution& solution) {
  const std::string wrong = validate_solution(instance, solution);
  if (!wrong.empty()) throw std::logic_error("the network's answer is not valid: " + wrong);
}

}  // namespace pointsman
