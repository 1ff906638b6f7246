// SPDX-License-Identifier: Apache-2.0
#include "engine/problem/generate.h"

#include <random>

#include "engine/problem/problem.h"
#include "kernels/common/philox.h"

namespace pointsman {
namespace {

// 53 random bits from two words, [0, 1). The words' use is that of MT19937's authors (and so of numpy).
double uniform_double(uint32_t high, uint32_t low) {
  return ((high >> 5) * 67108864.0 + (low >> 6)) / 9007199254740992.0;
}

struct UniformItem {
  double first, second;
};

// Item `item` of instance `index`: one Philox block holds both its numbers.
UniformItem uniform_item(uint64_t seed, uint64_t index, int item) {
  const PhiloxBlock block = philox4x32(seed ^ stream::kInstances, index, static_cast<uint64_t>(item));
  return {uniform_double(block.word[0], block.word[1]), uniform_double(block.word[2], block.word[3])};
}

InstanceBatch empty_instances(ProblemKind problem, int n, int count) {
  Instance instance;
  instance.problem = problem;
  instance.capacity = problem_of(problem).default_capacity(n);
  instance.values.resize(2 * static_cast<size_t>(n));
  return InstanceBatch(static_cast<size_t>(count), instance);
}

}  // namespace

InstanceBatch generate_instances(ProblemKind problem, int n, uint64_t seed, uint64_t first, int count) {
  InstanceBatch batch = empty_instances(problem, n, count);
  for (size_t i = 0; i < batch.size(); ++i) {
    for (int item = 0; item < n; ++item) {
      const UniformItem numbers = uniform_item(seed, first + i, item);
      batch[i].values[2 * static_cast<size_t>(item)] = numbers.first;
      batch[i].values[2 * static_cast<size_t>(item) + 1] = numbers.second;
    }
  }
  return batch;
}

void generate_features(int n, uint64_t seed, uint64_t first, int count, float* features) {
  for (uint64_t i = first; i < first + static_cast<uint64_t>(count); ++i) {
    for (int item = 0; item < n; ++item) {
      const UniformItem numbers = uniform_item(seed, i, item);
      *features++ = static_cast<float>(numbers.first);
      *features++ = static_cast<float>(numbers.second);
    }
  }
}

InstanceBatch generate_like_numpy(ProblemKind problem, int n, uint32_t seed, int count) {
  // std::mt19937 seeds itself from one word exactly as numpy.random.seed does from an integer.
  std::mt19937 generator(seed);
  const auto draw = [&generator] {
    const auto high = static_cast<uint32_t>(generator());
    return uniform_double(high, static_cast<uint32_t>(generator()));
  };
  InstanceBatch batch = empty_instances(problem, n, count);
  if (problem_of(problem).fields == ItemFields::kCoordinates) {
    for (Instance& instance : batch) {
      for (double& value : instance.values) value = draw();
    }
    return batch;
  }
  for (const size_t column : {0, 1}) {  // all weights, then all values
    for (Instance& instance : batch) {
      for (size_t i = column; i < instance.values.size(); i += 2) instance.values[i] = draw();
    }
  }
  return batch;
}

}  // namespace pointsman
