// SPDX-License-Identifier: Apache-2.0
#include "engine/search/sequence_packer.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "engine/problem/generate.h"
#include "engine/problem/problem.h"

namespace pointsman {

void Sequences::add_items(const float* from, int copy, std::span<const int32_t> order,
                          const double* own_items) {
  const auto numbers = static_cast<size_t>(width());
  for (int i = 0; i < n; ++i) {
    const size_t at = numbers * static_cast<size_t>(order.empty() ? i : order[i]);
    features.insert(features.end(), from + at, from + at + numbers);
    if (own) {
      items.insert(items.end(), own_items + at, own_items + at + numbers);
    } else {
      apply_dihedral(copy, &features[features.size() - numbers]);
    }
  }
}

void Sequences::add_numbers(const double* from, double capacity, std::span<const int32_t> order) {
  const int rows = number_rows(problem, n), of_pairs = order.empty() ? 0 : matrix_count(problem) * n;
  for (int row = 0; row < rows; ++row) {
    const int read = row < of_pairs ? row - row % n + order[row % n] : row;
    const double* const numbers = from + static_cast<size_t>(read) * n;
    for (int i = 0; i < n; ++i) weights.push_back(numbers[order.empty() ? i : order[i]]);
  }
  capacities.push_back(capacity);
}

SequenceBatch Sequences::view() const {
  return {.problem = problem,
          .n = n,
          .count = static_cast<int>(parameter_sets.size()),
          .features = features.data(),
          .weights = capacities.empty() ? nullptr : weights.data(),
          .capacities = capacities.empty() ? nullptr : capacities.data(),
          .parameter_sets = parameter_sets.data(),
          .own = own.get(),
          .declared = own ? &own->declared(n) : nullptr,
          .items = items.data()};
}

RolloutRequest Sequences::request() const {
  RolloutRequest request;
  request.sequences = view();
  request.counts = counts.empty() ? nullptr : counts.data();
  request.instance_keys = keys.data();
  request.first_samples = first_samples.data();
  return request;
}

SequencePacker::SequencePacker(std::span<const Instance* const> instances, double trained_capacity)
    : instances_(instances), n_(instances.empty() ? 0 : instances[0]->n()) {
  if (n_ < 1) throw std::invalid_argument("no instance, or one without items");
  for (const Instance* instance : instances) {
    if (instance->n() != n_ || instance->problem != instances[0]->problem ||
        instance->own != instances[0]->own) {
      throw std::invalid_argument("instances of several sizes or problems in one batch");
    }
    inputs_.push_back(problem_of(*instance).features(*instance, trained_capacity));
    if (problem_of(*instance).rule_numbers) rule_numbers_.push_back(rule_numbers(*instance));
  }
  clear();
}

void SequencePacker::clear() {
  sequences_ = {instances_[0]->problem, n_};
  sequences_.own = instances_[0]->own;
  orders_.clear();
}

void SequencePacker::add(size_t instance, int copy, std::vector<int32_t> order, const Draws& draws) {
  sequences_.add_items(inputs_[instance].data(), copy, order, instances_[instance]->values.data());
  if (!rule_numbers_.empty()) {
    const RuleNumbers& numbers = rule_numbers_[instance];
    sequences_.add_numbers(numbers.weights.data(), numbers.capacity, order);
  }
  sequences_.parameter_sets.push_back(draws.parameter_set);
  sequences_.counts.push_back(draws.count);
  sequences_.keys.push_back(draws.key);
  sequences_.first_samples.push_back(draws.first_sample);
  orders_.push_back(std::move(order));
}

std::vector<int32_t> SequencePacker::answer(size_t s, const int32_t* chosen) const {
  std::vector<int32_t> original;
  original.reserve(n_);
  for (int i = 0; i < sequences_.steps() && chosen[i] >= 0; ++i) {
    if (chosen[i] >= n_) throw std::logic_error("the backend chose item " + std::to_string(chosen[i]));
    original.push_back(orders_[s].empty() ? chosen[i] : orders_[s][chosen[i]]);
  }
  return problem_of(sequences_.problem).answer_of(n_, std::move(original));
}

}  // namespace pointsman
