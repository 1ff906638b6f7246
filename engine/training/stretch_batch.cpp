// SPDX-License-Identifier: Apache-2.0
#include "engine/training/stretch_batch.h"

#include <algorithm>
#include <span>
#include <vector>

#include "engine/backend/stretch.h"
#include "engine/problem/generate.h"
#include "kernels/common/philox.h"

namespace pointsman {
namespace {

constexpr uint64_t kStretchSalt = 0x73747265746368ull;

// The draws of a step.
class StepDraws {
 public:
  StepDraws(uint64_t seed, int64_t step) : seed_(seed ^ kStretchSalt), step_(static_cast<uint64_t>(step)) {}

  // Of 0 .. choices - 1, each equally likely to within 2^-32 choices.
  int below(int choices) {
    const PhiloxBlock block = philox4x32(seed_, step_, counter_++);
    return static_cast<int>(uint64_t{block.word[0]} * static_cast<uint64_t>(choices) >> 32);
  }

 private:
  const uint64_t seed_, step_;
  uint64_t counter_ = 0;
};

// The tour from its city number `start` on, one way or the other.
std::vector<int32_t> turned(std::span<const int32_t> tour, int start, bool backwards) {
  const auto n = static_cast<int>(tour.size());
  std::vector<int32_t> path(tour.size());
  for (int i = 0; i < n; ++i) path[i] = tour[(start + (backwards ? n - i : i)) % n];
  return path;
}

// Of a path around a tour: its first city, the `left` that follow, and the city behind them.
void add_stretch(const float* xy, const std::vector<int32_t>& path, int left, int reread, int copy,
                 TrainingBatch& batch) {
  const int32_t end = path[static_cast<size_t>(left + 1) % path.size()];
  std::vector<int32_t> others(path.begin() + 1, path.begin() + 1 + left);
  std::ranges::sort(others);  // the order of the items tells nothing
  const size_t start = batch.features.size();
  const std::vector<int32_t> cities = append_stretch(xy, path[0], end, others, batch.features);
  for (size_t item = 0; item < cities.size(); ++item)
    apply_dihedral(copy, &batch.features[start + StretchRules::kFeatures * item]);
  const auto next = std::span(path).subspan(1, std::min(reread, left));
  const std::vector<int32_t> order = stretch_order(cities, next);
  batch.orders.insert(batch.orders.end(), order.begin(), order.end());
  batch.add_numbers(nullptr, reread, {});
}

}  // namespace

TrainingBatch stretch_batch(const TrainOptions& options, int64_t step, const StopToken& stop) {
  const Examples& examples = *options.examples;
  StepDraws draws(training_seed(options.seed), step);
  const auto count = static_cast<int>(examples.count());
  const int any = draws.below(count);
  const int read = std::min(1 + draws.below(examples.sizes[any] - 1), kStretchWindow);
  std::vector<int> rows;  // of tours that have so many cities left
  for (int row = 0; row < count; ++row) {
    if (examples.sizes[row] > read) rows.push_back(row);
  }
  TrainingBatch batch{{options.model.decoded(), StretchRules::kEnds + read},
                      options.batch * options.rollouts};
  StopMeter meter(&stop);
  for (int i = 0; i < batch.count; ++i) {
    const int row = rows[draws.below(static_cast<int>(rows.size()))];
    const int n = examples.sizes[row];
    const int left = read < kStretchWindow ? read : read + draws.below(n - read);
    meter.check(n);
    const std::span<const int32_t> tour = std::span(examples.orders).subspan(examples.begins[row], n);
    const int start = draws.below(n);
    const std::vector<int32_t> path = turned(tour, start, draws.below(2) == 1);
    add_stretch(&examples.features[2 * examples.begins[row]], path, left, options.model.reread,
                draws.below(8), batch);
    batch.keys.push_back(static_cast<uint64_t>(step) * static_cast<uint64_t>(batch.count) +
                         static_cast<uint64_t>(i));
  }
  batch.parameter_sets.assign(batch.count, 0);
  batch.first_samples.assign(batch.count, 0);
  return batch;
}

}  // namespace pointsman
