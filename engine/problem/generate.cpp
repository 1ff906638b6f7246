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

// The n items of instance `index`: one Philox block holds both numbers of an item. Returns the end of what it
// wrote.
template <typename Number>
Number* write_items(int n, uint64_t seed, uint64_t index, Number* to) {
  for (int item = 0; item < n; ++item) {
    const PhiloxBlock block = philox4x32(seed ^ stream::kInstances, index, static_cast<uint64_t>(item));
    *to++ = static_cast<Number>(uniform_double(block.word[0], block.word[1]));
    *to++ = static_cast<Number>(uniform_double(block.word[2], block.word[3]));
  }
  return to;
}

// `count` instances with room for their numbers, which fill(instance, i) writes.
template <typename Fill>
InstanceBatch filled_instances(ProblemKind problem, int n, int count, const StopToken& stop,
                               const Fill& fill) {
  Instance pattern;
  pattern.problem = problem;
  pattern.capacity = problem_of(problem).default_capacity(n);
  pattern.values.resize(2 * static_cast<size_t>(n));
  InstanceBatch batch;
  batch.reserve(static_cast<size_t>(count));
  StopMeter meter(&stop);
  for (int i = 0; i < count; ++i) {
    meter.check(n);
    batch.push_back(pattern);
    fill(batch.back(), static_cast<uint64_t>(i));
  }
  return batch;
}

}  // namespace

InstanceBatch generate_instances(ProblemKind problem, int n, uint64_t seed, uint64_t first, int count,
                                 const StopToken& stop) {
  return filled_instances(problem, n, count, stop, [&](Instance& instance, uint64_t i) {
    write_items(n, seed, first + i, instance.values.data());
  });
}

void generate_features(int n, uint64_t seed, uint64_t first, int count, float* features) {
  for (int i = 0; i < count; ++i) features = write_items(n, seed, first + static_cast<uint64_t>(i), features);
}

InstanceBatch generate_like_numpy(ProblemKind problem, int n, uint32_t seed, int count,
                                  const StopToken& stop) {
  // std::mt19937 seeds itself from one word exactly as numpy.random.seed does from an integer.
  std::mt19937 generator(seed);
  const auto draw = [&generator] {
    const auto high = static_cast<uint32_t>(generator());
    return uniform_double(high, static_cast<uint32_t>(generator()));
  };
  const bool in_pairs = problem_of(problem).fields == ItemFields::kCoordinates;
  // Of pairs all numbers in turn; else all weights, then all values.
  const size_t step = in_pairs ? 1 : 2;
  const auto draw_column = [&](Instance& instance, size_t column) {
    for (size_t i = column; i < instance.values.size(); i += step) instance.values[i] = draw();
  };
  InstanceBatch batch = filled_instances(problem, n, count, stop,
                                         [&](Instance& instance, uint64_t) { draw_column(instance, 0); });
  if (in_pairs) return batch;
  StopMeter meter(&stop);
  for (Instance& instance : batch) {
    meter.check(n);
    draw_column(instance, 1);
  }
  return batch;
}

}  // namespace pointsman
