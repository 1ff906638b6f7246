// SPDX-License-Identifier: Apache-2.0
#include "engine/problem/generate.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <utility>

#include "engine/problem/graph.h"
#include "engine/problem/problem.h"
#include "kernels/common/philox.h"

namespace pointsman {
namespace {

// 53 random bits from two words, [0, 1). The words' use is that of MT19937's authors (and so of numpy).
double uniform_double(uint32_t high, uint32_t low) {
  return ((high >> 5) * 67108864.0 + (low >> 6)) / 9007199254740992.0;
}

// The items of instance `index`: Philox block number `item` holds the first two numbers of an item, and block
// n + item the next two.
void write_items(uint64_t seed, uint64_t index, Instance& instance) {
  const Problem& problem = problem_of(instance);
  const int n = instance.n(), width = instance.width();
  double* to = instance.values.data();
  for (int item = 0; item < n; ++item) {
    for (int field = 0; field < width; field += 2) {
      const PhiloxBlock block =
          philox4x32(seed ^ stream::kInstances, index, static_cast<uint64_t>(field / 2 * n + item));
      for (int i = 0; i < 2 && field + i < width; ++i)
        *to++ =
            problem.drawn_number(item, field + i, uniform_double(block.word[2 * i], block.word[2 * i + 1]));
    }
  }
  if (problem.finish_drawn) problem.finish_drawn(instance);
}

// Ways uniform in [0, 1), each then replaced by the shortest way round (Floyd 1962): block a n + b holds the
// one from a to b.
std::shared_ptr<const DistanceMatrix> draw_matrix(uint64_t seed, uint64_t index, int n,
                                                  const StopToken& stop) {
  const auto size = static_cast<size_t>(n);
  std::vector<double> ways(size * size);
  for (size_t i = 0; i < ways.size(); ++i) {
    const PhiloxBlock block = philox4x32(seed ^ stream::kInstances, index, i);
    ways[i] = i % (size + 1) == 0 ? 0.0 : uniform_double(block.word[0], block.word[1]);
  }
  StopMeter meter(&stop);
  for (size_t by = 0; by < size; ++by) {
    meter.check(n * n);
    for (size_t a = 0; a < size; ++a) {
      for (size_t b = 0; b < size; ++b)
        ways[a * size + b] = std::min(ways[a * size + b], ways[a * size + by] + ways[by * size + b]);
    }
  }
  DistanceMatrix matrix{n, {}};
  for (size_t a = 0; a < size; ++a) {
    for (size_t b = a + 1; b < size; ++b) {
      matrix.above.push_back(ways[a * size + b]);
      matrix.back.push_back(ways[b * size + a]);
    }
  }
  return std::make_shared<const DistanceMatrix>(std::move(matrix));
}

// Every two nodes are joined with probability 1/2: block number i has the uniform of the i-th pair.
std::shared_ptr<const DistanceMatrix> draw_graph(uint64_t seed, uint64_t index, int n) {
  DistanceMatrix graph = empty_graph(n);
  for (size_t i = 0; i < graph.above.size(); ++i) {
    const PhiloxBlock block = philox4x32(seed ^ stream::kInstances, index, i);
    graph.above[i] = uniform_double(block.word[0], block.word[1]) < 0.5 ? 1.0 : 0.0;
  }
  return std::make_shared<const DistanceMatrix>(std::move(graph));
}

// randint(1, 10): the lowest 4 bits of a word, drawn again where they are above 8.
double numpy_demand(std::mt19937& generator) {
  uint32_t bits = 0;
  do bits = static_cast<uint32_t>(generator()) & 15;
  while (bits > 8);
  return 1.0 + bits;
}

// An instance with room for its numbers.
Instance blank_instance(ProblemKind problem, int n) {
  Instance blank;
  blank.problem = problem;
  blank.capacity = problem_of(problem).default_capacity(n);
  blank.values.resize(static_cast<size_t>(blank.width()) * n);
  return blank;
}

// What instance `index` of n items holds, into the blank one.
void draw(Instance& blank, uint64_t seed, uint64_t index, int n, const StopToken& stop) {
  const ItemFields fields = problem_of(blank).fields;
  if (fields != ItemFields::kDistances && fields != ItemFields::kEdges)
    return write_items(seed, index, blank);
  blank.metric = Metric::kExplicit;
  blank.matrix =
      fields == ItemFields::kEdges ? draw_graph(seed, index, n) : draw_matrix(seed, index, n, stop);
}

}  // namespace

InstanceBatch generate_instances(ProblemKind problem, int n, uint64_t seed, uint64_t first, int count,
                                 const StopToken& stop) {
  const Instance blank = blank_instance(problem, n);
  StopMeter meter(&stop);
  InstanceBatch batch;
  batch.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    meter.check(problem_of(problem).fields == ItemFields::kEdges ? n * n : n);
    batch.push_back(blank);
    draw(batch.back(), seed, first++, n, stop);
  }
  return batch;
}

void generate_features(ProblemKind problem, int n, double capacity, uint64_t seed, uint64_t index,
                       float* features) {
  Instance instance = blank_instance(problem, n);
  instance.capacity = capacity;
  write_items(seed, index, instance);
  if (instance.width() == 2) {  // its numbers are in network units
    std::copy(instance.values.begin(), instance.values.end(), features);
    return;
  }
  const std::vector<float> made = problem_of(instance).features(instance, capacity);
  std::copy(made.begin(), made.end(), features);
}

InstanceBatch generate_like_numpy(ProblemKind problem, int n, uint32_t seed, int count,
                                  const StopToken& stop) {
  // std::mt19937 seeds itself from one word exactly as numpy.random.seed does from an integer.
  std::mt19937 generator(seed);
  const auto draw = [&generator] {
    const auto high = static_cast<uint32_t>(generator());
    return uniform_double(high, static_cast<uint32_t>(generator()));
  };
  const auto draw_demand = [&generator] { return numpy_demand(generator); };
  const Instance blank = blank_instance(problem, n);
  InstanceBatch batch;
  batch.reserve(static_cast<size_t>(count));
  StopMeter meter(&stop);
  // Numbers `from` .. `to` - 1 of items first .. last - 1 of all instances.
  const auto fill = [&](int first, int last, int from, int to, const auto& next) {
    for (size_t k = 0; k < static_cast<size_t>(count); ++k) {
      meter.check(n);
      if (k == batch.size()) batch.push_back(blank);
      Instance& instance = batch[k];
      for (int item = first; item < last; ++item) {
        for (int field = from; field < to; ++field)
          instance.values[static_cast<size_t>(instance.width()) * item + field] = next();
      }
    }
  };
  switch (problem_of(problem).fields) {
    case ItemFields::kCoordinates:
      fill(0, n, 0, 2, draw);
      break;
    case ItemFields::kWeightAndValue:
      fill(0, n, 0, 1, draw);
      fill(0, n, 1, 2, draw);
      break;
    case ItemFields::kCoordinatesAndDemand:
      fill(0, 1, 0, 2, draw);
      fill(1, n, 0, 2, draw);
      fill(1, n, 2, 3, draw_demand);
      break;
    case ItemFields::kOwn:  // drawn by the user's function
    case ItemFields::kCoordinatesAndWindows:
    case ItemFields::kDistances:
    case ItemFields::kEdges:
      throw std::invalid_argument("generate_like_numpy: not for this problem");
  }
  return batch;
}

void apply_dihedral(int copy, float* point) {
  if (copy & 1) point[0] = 1.0f - point[0];
  if (copy & 2) point[1] = 1.0f - point[1];
  if (copy & 4) std::swap(point[0], point[1]);
}

std::vector<int32_t> input_order(uint64_t seed, uint64_t instance_key, uint32_t replica, int n, int fixed) {
  std::vector<int32_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  uint64_t counter = 0;
  for (int i = n - 1; i > fixed; --i) {
    const uint32_t choices = static_cast<uint32_t>(i - fixed) + 1;
    // Multiply and shift, with the few words that would favour some choices drawn again: exactly uniform.
    const uint32_t refused_below = (0u - choices) % choices;
    uint64_t product;
    do {
      const PhiloxBlock block =
          philox4x32(seed ^ stream::kInputOrder, (instance_key << 32) | replica, counter++);
      product = static_cast<uint64_t>(block.word[0]) * choices;
    } while (static_cast<uint32_t>(product) < refused_below);
    std::swap(order[i], order[fixed + static_cast<int>(product >> 32)]);
  }
  return order;
}

}  // namespace pointsman
