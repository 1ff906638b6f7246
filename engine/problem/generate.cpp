// SPDX-License-Identifier: Apache-2.0
#include "engine/problem/generate.h"

#include <numeric>
#include <random>
#include <utility>

#include "engine/problem/problem.h"
#include "kernels/common/philox.h"

namespace pointsman {
namespace {

// 53 random bits from two words, [0, 1). The words' use is that of MT19937's authors (and so of numpy).
double uniform_double(uint32_t high, uint32_t low) {
  return ((high >> 5) * 67108864.0 + (low >> 6)) / 9007199254740992.0;
}

// The n items of instance `index`: one Philox block holds both numbers of an item. Returns the end of them.
template <typename Number>
Number* write_items(int n, uint64_t seed, uint64_t index, Number* to) {
  for (int item = 0; item < n; ++item) {
    const PhiloxBlock block = philox4x32(seed ^ stream::kInstances, index, static_cast<uint64_t>(item));
    *to++ = static_cast<Number>(uniform_double(block.word[0], block.word[1]));
    *to++ = static_cast<Number>(uniform_double(block.word[2], block.word[3]));
  }
  return to;
}

// An instance with room for its numbers.
Instance blank_instance(ProblemKind problem, int n) {
  Instance blank;
  blank.problem = problem;
  blank.capacity = problem_of(problem).default_capacity(n);
  blank.values.resize(2 * static_cast<size_t>(n));
  return blank;
}

}  // namespace

InstanceBatch generate_instances(ProblemKind problem, int n, uint64_t seed, uint64_t first, int count,
                                 const StopToken& stop) {
  const Instance blank = blank_instance(problem, n);
  StopMeter meter(&stop);
  InstanceBatch batch;
  batch.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    meter.check(n);
    batch.push_back(blank);
    write_items(n, seed, first++, batch.back().values.data());
  }
  return batch;
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
  // Of pairs all numbers in turn; else all weights, then all values.
  const size_t columns = problem_of(problem).fields == ItemFields::kCoordinates ? 1 : 2;
  const Instance blank = blank_instance(problem, n);
  StopMeter meter(&stop);
  InstanceBatch batch;
  batch.reserve(static_cast<size_t>(count));
  for (size_t column = 0; column < columns; ++column) {
    for (size_t k = 0; k < static_cast<size_t>(count); ++k) {
      meter.check(n);
      if (column == 0) batch.push_back(blank);
      std::vector<double>& values = batch[k].values;
      for (size_t i = column; i < values.size(); i += columns) values[i] = draw();
    }
  }
  return batch;
}

void apply_dihedral(int copy, float* point) {
  if (copy & 1) point[0] = 1.0f - point[0];
  if (copy & 2) point[1] = 1.0f - point[1];
  if (copy & 4) std::swap(point[0], point[1]);
}

std::vector<int32_t> input_order(uint64_t seed, uint64_t instance_key, uint32_t replica, int n) {
  std::vector<int32_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  uint64_t counter = 0;
  for (int i = n - 1; i > 0; --i) {
    const uint32_t choices = static_cast<uint32_t>(i) + 1;
    // Multiply and shift, with the few words that would favour some choices drawn again: exactly uniform.
    const uint32_t refused_below = (0u - choices) % choices;
    uint64_t product;
    do {
      const PhiloxBlock block =
          philox4x32(seed ^ stream::kInputOrder, (instance_key << 32) | replica, counter++);
      product = static_cast<uint64_t>(block.word[0]) * choices;
    } while (static_cast<uint32_t>(product) < refused_below);
    std::swap(order[i], order[product >> 32]);
  }
  return order;
}

}  // namespace pointsman
