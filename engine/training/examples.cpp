// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>

#include "engine/problem/problem.h"
#include "engine/problem/timed_places.h"
#include "engine/training/trainer.h"
#include "kernels/tools/fnv1a.h"

namespace pointsman {
namespace {

[[noreturn]] void refuse(size_t row, const std::string& what) {
  throw std::invalid_argument("example " + std::to_string(row) + ": " + what);
}

void check_size(const ModelConfig& config, size_t row, int n) {
  if (config.reread > 0 ? n >= kFewestRead : n == config.n) return;
  refuse(row, "expected " +
                  (config.reread > 0 ? std::to_string(kFewestRead) + " cities or more"
                                     : "n = " + std::to_string(config.n)) +
                  ", found " + std::to_string(n));
}

template <class T>
std::string_view bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

uint64_t fingerprint_of(const Examples& examples, const std::function<void(size_t)>& after) {
  constexpr size_t kPiece = 1 << 20;
  uint64_t hash = kFnvStart;
  for (std::string_view left : {bytes_of(examples.features), bytes_of(examples.orders),
                                bytes_of(examples.numbers), bytes_of(examples.sizes)}) {
    for (; !left.empty(); left.remove_prefix(std::min(kPiece, left.size()))) {
      hash = fnv1a(left.substr(0, kPiece), hash);
      if (after) after(kPiece);
    }
  }
  return std::max<uint64_t>(hash, 1);
}

}  // namespace

Examples make_examples(const ModelConfig& config, const InstanceBatch& instances,
                       const SolutionBatch& solutions, const std::function<void(size_t)>& after) {
  if (!solutions.empty() && instances.size() != solutions.size()) {
    throw std::invalid_argument("examples: " + std::to_string(instances.size()) + " instances, " +
                                std::to_string(solutions.size()) + " solutions");
  }
  Examples examples{config.problem, config.n};
  for (size_t row = 0; row < instances.size(); ++row) {
    const Instance& instance = instances[row];
    if (after) after(static_cast<size_t>(instance.n()));
    if (instance.problem != examples.problem) refuse(row, std::string("expected ") + name_of(config.problem));
    check_size(config, row, instance.n());
    if (problem_of(instance).has_first && !has_plain_times(instance))
      refuse(row, "a network learns on Euclidean distances without visits");
    const std::vector<float> features = problem_of(instance).features(instance, config.capacity);
    // In the network's own numbers: a packing may fit in double and not in float.
    const RuleNumbers numbers =
        keeps_numbers(problem_of(instance))
            ? rule_numbers(instance)
            : trained_numbers(problem_of(instance), instance.n(), features.data(), config.capacity);
    if (!solutions.empty()) {
      Solution solution = solutions[row];
      const std::string wrong = validate_solution(instance, solution);
      if (!wrong.empty()) refuse(row, wrong);
      solution.order = problem_of(instance).choices_of(instance, std::move(solution.order));
      RuleInputs inputs{numbers.weights.data(), numbers.capacity, false, instance.n()};
      if (!is_reachable(config.problem, inputs, solution.order)) {
        ++examples.unreachable;
        continue;
      }
      solution.order.resize(max_steps(config.problem, instance.n()), -1);
      if (config.reread > 0) {
        examples.sizes.push_back(instance.n());
        examples.begins.push_back(examples.orders.size());
      }
      examples.orders.insert(examples.orders.end(), solution.order.begin(), solution.order.end());
    }
    examples.features.insert(examples.features.end(), features.begin(), features.end());
    if (keeps_numbers(problem_of(instance)))
      examples.numbers.insert(examples.numbers.end(), numbers.weights.begin(), numbers.weights.end());
  }
  if (examples.features.empty()) throw std::invalid_argument("examples: nothing to learn from");
  examples.fingerprint = fingerprint_of(examples, after);
  return examples;
}

Examples split_off(Examples& examples, size_t most) {
  if (examples.count() < 10) return examples;
  Examples last{examples.problem, examples.n};
  const size_t kept = examples.count() - std::min(examples.count() / 10, most);
  const auto move_rows = [&](auto& all, auto& end, size_t width) {
    const size_t first = std::min(kept * width, all.size());
    end.assign(all.begin() + static_cast<int64_t>(first), all.end());
    all.resize(first);
  };
  const auto n = static_cast<size_t>(examples.n);
  move_rows(examples.features, last.features, static_cast<size_t>(feature_count(examples.problem)) * n);
  move_rows(examples.numbers, last.numbers,
            static_cast<size_t>(number_rows(examples.problem, examples.n)) * n);
  move_rows(examples.orders, last.orders, static_cast<size_t>(max_steps(examples.problem, examples.n)));
  for (Examples* part : {&examples, &last}) part->fingerprint = fingerprint_of(*part, {});
  return last;
}

}  // namespace pointsman
