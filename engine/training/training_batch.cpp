// SPDX-License-Identifier: Apache-2.0
#include "engine/training/training_batch.h"

#include <numeric>

#include "engine/problem/generate.h"
#include "engine/problem/problem.h"
#include "engine/training/stretch_batch.h"

namespace pointsman {
namespace {

constexpr uint64_t kEpochSalt = 0x65706F6368ull;  // the order of an epoch is not that of any input

// Fills in parameter set 0, the first sample where none was named, and the weights that the network reads.
void complete(const ModelConfig& config, const StopToken& stop, TrainingBatch& batch) {
  batch.parameter_sets.assign(batch.count, 0);
  batch.first_samples.resize(batch.count, 0);
  const size_t floats = static_cast<size_t>(batch.width()) * batch.n;
  StopMeter meter(&stop);
  for (int s = 0; s < batch.count && problem_of(batch.problem).trained_numbers; ++s) {
    meter.check(batch.n);
    const RuleNumbers numbers =
        trained_numbers(problem_of(batch.problem), batch.n, &batch.features[floats * s], config.capacity);
    batch.weights.insert(batch.weights.end(), numbers.weights.begin(), numbers.weights.end());
    batch.capacities.push_back(numbers.capacity);
  }
}

// What the rules read of the sequence behind the last one that has it; of problems that keep it.
void append_numbers(const TrainingBatch& plain, int i, const std::vector<int32_t>& order,
                    TrainingBatch& batch) {
  if (!keeps_numbers(problem_of(plain.problem))) return;
  const size_t numbers = plain.view().numbers_each();
  batch.add_numbers(&plain.weights[numbers * i], plain.capacities[i], order);
}

// Copy number `copy` of instance i of `plain`, its items in this order, appended to `batch`.
void append_copy(const TrainingBatch& plain, int i, int copy, const std::vector<int32_t>& order,
                 TrainingBatch& batch) {
  const Problem& problem = problem_of(plain.problem);
  const int n = plain.n;
  const size_t start = batch.features.size(), steps = plain.steps();
  const size_t first = plain.width() * static_cast<size_t>(i) * n;
  batch.add_items(&plain.features[first], problem.has_symmetries ? copy % 8 : 0, order,
                  plain.own ? plain.items.data() + first : nullptr);
  append_numbers(plain, i, order, batch);
  batch.keys.push_back(plain.keys[i]);
  batch.first_samples.push_back(static_cast<uint32_t>(copy));
  if (plain.orders.empty()) return;
  std::vector<int32_t> place(n);  // of each item in the copy
  for (int32_t p = 0; p < n; ++p) place[order[p]] = p;
  std::vector<int32_t> answer(&plain.orders[i * steps], &plain.orders[i * steps] + steps);
  for (int32_t& item : answer) item = item < 0 ? -1 : place[item];
  problem.make_example(n, &batch.features[start], answer.data());
  batch.orders.insert(batch.orders.end(), answer.begin(), answer.end());
}

// `copies` sequences of each instance, in random orders of their own if `shuffled`.
TrainingBatch copies_of(const TrainingBatch& plain, const TrainOptions& options, int copies, bool shuffled,
                        const StopToken& stop) {
  TrainingBatch batch{{plain.problem, plain.n}, plain.count * copies};
  batch.own = plain.own;
  batch.features.reserve(plain.features.size() * copies);
  std::vector<int32_t> order(plain.n);
  std::iota(order.begin(), order.end(), 0);
  StopMeter meter(&stop);
  for (int i = 0; i < plain.count; ++i) {
    for (int copy = 0; copy < copies; ++copy) {
      meter.check(plain.n);
      if (shuffled)
        order = input_order(training_seed(options.seed), plain.keys[i], static_cast<uint32_t>(copy), plain.n,
                            problem_of(plain.problem).depots());
      append_copy(plain, i, copy, order, batch);
    }
  }
  complete(options.model, stop, batch);
  return batch;
}

// Instances whose features do not tell what the rules read.
void draw_whole(const ModelConfig& config, uint64_t seed, uint64_t first, const StopToken& stop,
                TrainingBatch& batch) {
  const Problem& problem = problem_of(config.problem);
  for (const Instance& instance :
       generate_instances(config.problem, config.n, seed, first, batch.count, stop)) {
    const std::vector<float> features = problem.features(instance, config.capacity);
    batch.add_items(features.data(), 0, {}, nullptr);
    batch.add_numbers(rule_numbers(instance).weights.data(), 0.0, {});
    batch.keys.push_back(first++);
  }
}

// Examples first .. first + count - 1 of the endless sequence of epochs.
TrainingBatch example_batch(const TrainOptions& options, uint64_t seed, uint64_t first, int count,
                            EpochOrder& order, const StopToken& stop) {
  const Examples& examples = *options.examples;
  TrainingBatch batch{{examples.problem, examples.n}, count};
  const size_t numbers = static_cast<size_t>(batch.width()) * examples.n, steps = batch.steps();
  StopMeter meter(&stop);
  for (uint64_t key = first; key < first + static_cast<uint64_t>(count); ++key) {
    meter.check(examples.n);
    const uint64_t epoch = key / examples.count();
    if (order.rows.empty() || order.epoch != epoch)
      order = {epoch, input_order(seed ^ kEpochSalt, epoch, 0, static_cast<int>(examples.count()))};
    const auto row = static_cast<size_t>(order.rows[key % examples.count()]);
    const bool turns = problem_of(batch.problem).has_symmetries;
    batch.add_items(&examples.features[numbers * row], turns ? static_cast<int>(epoch % 8) : 0, {}, nullptr);
    if (examples.have_answers())
      batch.orders.insert(batch.orders.end(), &examples.orders[steps * row],
                          &examples.orders[steps * row] + steps);
    if (!examples.numbers.empty())
      batch.add_numbers(&examples.numbers[batch.view().numbers_each() * row], 0.0, {});
    batch.keys.push_back(key);
  }
  complete(options.model, stop, batch);
  return batch;
}

// Instances as they are: the examples, else uniform ones.
TrainingBatch drawn_batch(const TrainOptions& options, uint64_t seed, uint64_t first, int count,
                          EpochOrder& order, const StopToken& stop) {
  return options.examples ? example_batch(options, seed, first, count, order, stop)
                          : plain_batch(options, seed, first, count, stop);
}

}  // namespace

TrainingBatch plain_batch(const TrainOptions& options, uint64_t seed, uint64_t first, int count,
                          const StopToken& stop) {
  const ModelConfig& config = options.model;
  TrainingBatch batch{{config.problem, config.n}, count};
  if (options.own) {
    batch.own = options.own;
    batch.items = options.own->draw(seed, first, count, config.n);
    batch.features = options.own->features(batch.items);
    for (int i = 0; i < count; ++i) batch.keys.push_back(first + static_cast<uint64_t>(i));
    complete(config, stop, batch);
    return batch;
  }
  const size_t floats = static_cast<size_t>(batch.width()) * config.n;
  batch.features.reserve(count * floats);
  StopMeter meter(&stop);
  const bool is_drawn = keeps_numbers(problem_of(config.problem));
  if (is_drawn) draw_whole(config, seed, first, stop, batch);
  for (int i = 0; i < count && !is_drawn; ++i) {
    meter.check(config.n);
    batch.keys.push_back(first + static_cast<uint64_t>(i));
    batch.features.resize(batch.features.size() + floats);
    generate_features(config.problem, config.n, config.capacity, seed, batch.keys.back(),
                      &batch.features[i * floats]);
  }
  complete(config, stop, batch);
  return batch;
}

TrainingBatch validation_batch(const TrainOptions& options) {
  if (!options.validation)
    return plain_batch(options, validation_seed(options.seed), 0, options.validation_instances);
  TrainingBatch batch{{options.model.problem, options.model.n},
                      static_cast<int>(options.validation->count())};
  batch.features = options.validation->features;
  batch.weights = options.validation->numbers;
  if (!batch.weights.empty()) batch.capacities.assign(batch.count, 0.0);
  complete(options.model, {}, batch);
  return batch;
}

TrainingBatch challenge_batch(const TrainOptions& options, int64_t round, const StopToken& stop) {
  const auto count = static_cast<uint64_t>(options.validation_instances);
  EpochOrder order;
  return drawn_batch(options, challenge_seed(options.seed), static_cast<uint64_t>(round) * count,
                     options.validation_instances, order, stop);
}

TrainingBatch training_batch(const TrainOptions& options, int64_t step, EpochOrder& order,
                             const StopToken& stop) {
  if (options.model.reread > 0) return stretch_batch(options, step, stop);
  const uint64_t seed = training_seed(options.seed);
  const uint64_t first = static_cast<uint64_t>(step) * static_cast<uint64_t>(options.batch);
  const TrainingBatch plain = drawn_batch(options, seed, first, options.batch, order, stop);
  if (!options.is_supervised() && options.baseline != Baseline::kShared) return plain;
  if (options.is_supervised() || reads_order(options.model.encoder))
    return copies_of(plain, options, options.rollouts, true, stop);
  // The rollouts of an instance share an encoding, or one a symmetry.
  TrainingBatch batch = copies_of(plain, options, options.symmetries, false, stop);
  batch.counts.assign(batch.count, options.rollouts / options.symmetries);
  return batch;
}

}  // namespace pointsman
