// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/stretches.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "engine/backend/requests.h"
#include "engine/backend/stretch.h"

namespace pointsman {
namespace {

// Rollouts that go on together, until their tours are whole. What a stop finds begun is lost, so that where
// one may come the first are few.
constexpr size_t kTogether = 256, kFirstTogether = 16;

// Rollouts of a sequence that began alike.
struct Beginning {
  int sequence;
  std::vector<int32_t> tour;  // so far
  std::vector<int32_t> left;  // the other cities, ascending
  std::vector<size_t> rows;   // of the result
};

// A call for one stretch of each group.
struct StretchCall {
  explicit StretchCall(int n) : items(n) {}

  void add(const RolloutRequest& of, const std::vector<uint32_t>& numbers, const Beginning& group,
           int reread) {
    const float* const xy = of.sequences.features_of(group.sequence);
    cities.push_back(append_stretch(xy, group.tour.back(), group.tour.front(), group.left, features));
    capacities.push_back(reread);
    sets.push_back(of.sequences.set_of(group.sequence));
    counts.push_back(static_cast<int32_t>(group.rows.size()));
    const uint64_t draws[] = {of.instance_keys == nullptr ? 0 : of.instance_keys[group.sequence],
                              group.tour.size()};
    keys.push_back(hash_array(draws, sizeof draws));
    for (const size_t row : group.rows) {
      samples.push_back(numbers[row]);
      if (of.forced == nullptr) continue;
      const int32_t* const next = of.forced + row * of.sequences.n + group.tour.size();
      const std::vector<int32_t> order =
          stretch_order(cities.back(), {next, std::min<size_t>(reread, group.left.size())});
      forced.insert(forced.end(), order.begin(), order.end());
    }
  }

  RolloutRequest request(const RolloutRequest& of, const ModelConfig& config) const {
    RolloutRequest request;
    request.sequences = {.problem = config.decoded(),
                         .n = items,
                         .count = static_cast<int>(counts.size()),
                         .features = features.data(),
                         .capacities = capacities.data(),
                         .parameter_sets = sets.data()};
    request.decode = of.decode;
    request.counts = counts.data();
    request.instance_keys = keys.data();
    request.samples = samples.data();
    request.seed = of.seed;
    request.policy = of.policy;
    if (of.forced != nullptr) request.forced = forced.data();
    request.stop = of.stop;
    return request;
  }

  const int items;
  std::vector<std::vector<int32_t>> cities = {};  // of each sequence's items
  std::vector<float> features = {};
  std::vector<double> capacities = {};
  std::vector<int32_t> sets = {}, counts = {}, forced = {};
  std::vector<uint64_t> keys = {};
  std::vector<uint32_t> samples = {};
};

class Stretches {
 public:
  Stretches(const RolloutRequest& request, const ModelConfig& config, const RolloutCall& stretches,
            RolloutResult& result)
      : request_(request), config_(config), stretches_(stretches), result_(result) {
    for (int s = 0; s < batch_.count; ++s) {
      const uint32_t first = request.first_samples == nullptr ? 0 : request.first_samples[s];
      for (int j = 0; j < rollouts_of(request.counts, s); ++j)
        samples_.push_back(first + static_cast<uint32_t>(j) * request.sample_stride);
    }
  }

  // False: a stop came before the end.
  bool run() {
    std::vector<Beginning> groups;
    size_t row = 0, begun = 0, together = request_.stop.can_stop() ? kFirstTogether : kTogether;
    bool whole = true;
    for (int s = 0; s < batch_.count && whole; ++s) {
      const int32_t corner = first_of_tour(batch_.features_of(s), batch_.n);
      for (const size_t last = row + rollouts_of(request_.counts, s); row < last && whole; ++row) {
        begin(s, request_.forced != nullptr ? request_.forced[row * batch_.n] : corner, row, groups);
        if (++begun < together) continue;
        whole = finish(std::exchange(groups, {}));
        together = std::min(2 * together, kTogether);
        begun = 0;
      }
    }
    return whole && finish(std::move(groups));
  }

 private:
  // Joins the rollouts of the sequence that begin at the same city.
  void begin(int s, int32_t first, size_t row, std::vector<Beginning>& groups) const {
    if (first < 0 || first >= batch_.n) return;  // infeasible
    for (Beginning& group : groups) {
      if (group.sequence == s && group.tour[0] == first) return group.rows.push_back(row);
    }
    Beginning group{s, {first}, {}, {row}};
    for (int32_t city = 0; city < batch_.n; ++city) {
      if (city != first) group.left.push_back(city);
    }
    groups.push_back(std::move(group));
  }

  // All of them have visited equally many cities.
  bool finish(std::vector<Beginning> groups) {
    for (const Beginning& group : groups) {
      for (const size_t row : group.rows) result_.log_probs[row] = 0.0;
    }
    while (!groups.empty() && !groups[0].left.empty()) {
      if (!advance(groups)) {
        for (const Beginning& group : groups) {
          for (const size_t row : group.rows) result_.log_probs[row] = std::nan("");
        }
        return false;
      }
    }
    for (const Beginning& group : groups) {
      const double cost = tour_length(batch_.features_of(group.sequence), group.tour.data(), batch_.n);
      for (const size_t row : group.rows) {
        std::ranges::copy(group.tour, result_.orders.begin() + static_cast<int64_t>(row) * batch_.n);
        result_.costs[row] = cost;
      }
    }
    return true;
  }

  // One more stretch of each group, and the groups parted where rollouts do.
  bool advance(std::vector<Beginning>& groups) {
    const auto left = static_cast<int>(groups[0].left.size());
    StretchCall call(StretchRules::kEnds + std::min(left, kStretchWindow));
    for (const Beginning& group : groups) {
      if (request_.stop.stops()) return false;
      call.add(request_, samples_, group, config_.reread);
    }
    RolloutResult found;
    stretches_(call.request(request_, config_), found);
    result_.statistics += found.statistics;
    if (!found.finished.empty()) return false;
    std::vector<Beginning> next;
    size_t at = 0;
    for (size_t g = 0; g < groups.size(); ++g) {
      std::map<std::vector<int32_t>, size_t> parts;  // of the next groups, by the stretch
      for (const size_t row : groups[g].rows) {
        double& log_prob = result_.log_probs[row];
        log_prob += found.log_probs[at];
        const std::vector<int32_t> stretch = stretch_of(call.cities[g], &found.orders[at++ * call.items]);
        const bool is_short = static_cast<int>(stretch.size()) < std::min(config_.reread, left);
        if (is_short) log_prob = std::nan("");  // forced, and infeasible
        if (std::isnan(log_prob)) continue;
        const auto [part, is_new] = parts.emplace(stretch, next.size());
        if (is_new) next.push_back(moved_on(groups[g], stretch));
        next[part->second].rows.push_back(row);
      }
    }
    groups = std::move(next);
    return true;
  }

  static std::vector<int32_t> stretch_of(const std::vector<int32_t>& cities, const int32_t* order) {
    std::vector<int32_t> stretch;
    for (size_t i = StretchRules::kEnds; i < cities.size() && order[i] >= 0; ++i)
      stretch.push_back(cities[order[i]]);
    return stretch;
  }

  static Beginning moved_on(const Beginning& group, const std::vector<int32_t>& stretch) {
    std::vector<int32_t> gone = stretch;
    std::ranges::sort(gone);
    Beginning next{group.sequence, group.tour, {}, {}};
    next.tour.insert(next.tour.end(), stretch.begin(), stretch.end());
    std::ranges::set_difference(group.left, gone, std::back_inserter(next.left));
    return next;
  }

  const RolloutRequest& request_;
  const SequenceBatch& batch_ = request_.sequences;
  const ModelConfig& config_;
  const RolloutCall& stretches_;
  RolloutResult& result_;
  std::vector<uint32_t> samples_;  // of each row
};

}  // namespace

void roll_out_stretches(const RolloutRequest& request, const ModelConfig& config,
                        const RolloutCall& stretches, RolloutResult& result) {
  if (request.tape != nullptr) throw std::invalid_argument("rollout: a network that re-reads fills no tape");
  clear_rollouts(count_rollouts(request), request.sequences.n, result);
  if (!Stretches(request, config, stretches, result).run()) count_finished(request, result);
  if (request.best_only) choose_best(request, result);
}

}  // namespace pointsman
