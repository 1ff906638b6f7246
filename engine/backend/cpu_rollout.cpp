// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu_rollout.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/common/philox.h"
#include "kernels/common/scalar_math.h"

namespace pointsman {

namespace {

constexpr int kBlock = 24;  // groups whose products are made together: four register tiles of rows

// Rollouts that share a prefix: one network state, one list of remaining items.
template <typename Rules>
struct Group {
  Rules rules;
  int piece;  // index in the tile
  int row;    // of the recorded activations
  int remaining;
  int first_member, members;
  int32_t last = -1;  // item chosen last
};

struct Member {
  int piece;
  int index;  // rollout index inside the piece's sequence
  int64_t result;
  double log_prob = 0.0;
};

template <typename Rules>
class TileRollout {
 public:
  TileRollout(const CpuParameters& parameters, const RolloutRequest& request, const RolloutTile& tile,
              RolloutWorkspace& workspace, TileActivations* recorded, RolloutResult& result)
      : parameters_(parameters),
        weights_(parameters.attention(request.policy)),
        request_(request),
        batch_(request.sequences),
        tile_(tile),
        want_entropy_(request.decode == Decode::kSample),
        w_(workspace),
        encoded_(recorded == nullptr ? workspace.encoded : recorded->encoded),
        recorded_(recorded),
        result_(result),
        n_(batch_.n),
        meter_(&request.stop) {}

  PolicyStatistics run() {
    encode(parameters_, batch_, tile_, recorded_ != nullptr, encoded_, request_.stop);
    start();
    for (int step = 0; !groups_.empty(); ++step) advance(step);
    return statistics_;
  }

 private:
  const float* features(int piece) const { return batch_.features_of(tile_.pieces[piece].sequence); }

  // One group per piece, all its rollouts in it (on a tape each in its own row, so alone); the decoder's
  // first step from the encoder's start state.
  void start() {
    const int pieces = static_cast<int>(tile_.pieces.size());
    for (Buffer* state : {&w_.h[0], &w_.h[1], &w_.c[0], &w_.c[1]}) state->get(tile_.rollouts * kHidden);
    for (auto& items : w_.items) items.resize(tile_.rollouts * n_);
    w_.logits.get(cpu::padded(n_));
    w_.prefix.get(cpu::padded(n_));
    w_.attention.get(attention_size());
    w_.prior.start(parameters_.prior_weights(request_.policy), n_);
    child_of_.assign(n_, -1);
    for (int p = 0; p < pieces; ++p) {
      const RolloutPiece& piece = tile_.pieces[p];
      const int members = recorded_ == nullptr ? piece.count : 1;
      for (int i = 0; i < piece.count; i += members) {
        const int row = static_cast<int>(groups_.size());
        groups_.push_back({Rules::make(batch_.rule_inputs(piece.sequence, request_.policy)), p, row, 0,
                           static_cast<int>(members_.size()) + i, members});
        groups_.back().remaining = initial_remaining(groups_.back().rules, items(0, row), n_);
      }
      for (int i = 0; i < piece.count; ++i) members_.push_back({p, piece.first + i, piece.result + i});
    }
    w_.products.get(std::max(groups_.size(), size_t{kBlock}) * (kGates + kHidden));
    make_first_states();
    drop_finished();
  }

  void make_first_states() {
    const int rows = static_cast<int>(groups_.size());
    const float *h = encoded_.start_h, *c = encoded_.start_c;
    float* products = w_.products.data.data();
    float* cells = nullptr;
    if (recorded_ != nullptr) {
      LstmStates& decoder = recorded_->decoder;
      decoder.resize(rows, n_, true);
      recorded_->queries.get(static_cast<size_t>(n_) * rows * kHidden);
      recorded_->attention.get(static_cast<size_t>(n_) * rows * attention_size());
      for (const Group<Rules>& group : groups_) {
        std::copy_n(h + group.piece * kHidden, kHidden, decoder.h_before(0) + group.row * kHidden);
        std::copy_n(c + group.piece * kHidden, kHidden, decoder.c_before(0) + group.row * kHidden);
      }
      h = decoder.h_before(0);
      c = decoder.c_before(0);
      cells = decoder.cell(0);
    }
    cpu::multiply(
        {h, kHidden, parameters_.decoder.recurrent.data(), products, kGates, rows, kHidden, kGates, false});
    cpu::lstm_cell({rows, products, kGates, nullptr, parameters_.decoder_start_bias.data(), nullptr, c,
                    w_.h[0].data.data(), w_.c[0].data.data(), cells});
    for (int row = 0; recorded_ != nullptr && row < rows; ++row) record_state(0, 0, row, row);
  }

  // The state that group `group` chooses from at step `step` goes to the activations' row.
  void record_state(int side, int step, size_t group, int row) {
    LstmStates& states = recorded_->decoder;
    std::copy_n(w_.h[side].data.data() + group * kHidden, kHidden, states.h_after(step) + row * kHidden);
    std::copy_n(w_.c[side].data.data() + group * kHidden, kHidden, states.c_after(step) + row * kHidden);
  }

  // Instances in which nothing is feasible end before they begin.
  void drop_finished() {
    for (const Group<Rules>& group : groups_) {
      if (group.remaining > 0) continue;
      for (int m = 0; m < group.members; ++m) finish(members_[group.first_member + m]);
    }
    size_t left = 0;
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].remaining == 0) continue;
      if (left != g) {
        std::copy_n(items(0, g), n_, items(0, left));
        std::copy_n(w_.h[0].data.data() + g * kHidden, kHidden, w_.h[0].data.data() + left * kHidden);
        std::copy_n(w_.c[0].data.data() + g * kHidden, kHidden, w_.c[0].data.data() + left * kHidden);
      }
      groups_[left++] = groups_[g];
    }
    groups_.resize(left);
  }

  int32_t* items(int side, size_t group) { return w_.items[side].data() + group * n_; }
  size_t attention_size() const { return cpu::attention_activations(n_, weights_.glimpses); }

  void advance(int step) {
    next_groups_.clear();
    next_members_.clear();
    const int count = static_cast<int>(groups_.size());
    for (int first = 0; first < count; first += kBlock) {
      const int last = std::min(first + kBlock, count);
      const bool states = make_products(first, last);
      for (int g = first; g < last; ++g) {
        meter_.check(groups_[g].remaining);
        choose(g, step, states, w_.products.data.data() + (g - first) * (kGates + kHidden));
      }
    }
    groups_.swap(next_groups_);
    members_.swap(next_members_);
    side_ ^= 1;
  }

  // [W_hh h, W_q h] of a block of groups. Returns whether the gates' part was made: nobody reads it once
  // every group is left with at most two items, since the last item needs no network.
  bool make_products(int first, int last) {
    int most = 0;
    for (int g = first; g < last; ++g) most = std::max(most, groups_[g].remaining);
    if (most < 2) return false;
    const float* h = w_.h[side_].data.data() + static_cast<size_t>(first) * kHidden;
    float* products = w_.products.data.data();
    constexpr int kWidth = kGates + kHidden;
    cpu::multiply({h, kHidden, parameters_.query.data(), products + kGates, kWidth, last - first, kHidden,
                   kHidden, false});
    if (most < 3) return false;
    cpu::multiply({h, kHidden, parameters_.decoder.recurrent.data(), products, kWidth, last - first, kHidden,
                   kGates, false});
    return true;
  }

  // Probabilities of one group, its members' choices, and the groups they fall into.
  void choose(int g, int step, bool states, const float* products) {
    const Group<Rules>& group = groups_[g];
    const int32_t* list = items(side_, g);
    float* prefix = w_.prefix.data.data();
    float largest = 0.0f, log_total = 0.0f;
    if (group.remaining > 1) {
      float* activations = w_.attention.data.data();
      if (recorded_ != nullptr) {
        const size_t row = static_cast<size_t>(step) * recorded_->decoder.rows + group.row;
        std::copy_n(products + kGates, kHidden, recorded_->queries.data.data() + row * kHidden);
        activations = recorded_->attention.data.data() + row * attention_size();
      }
      largest = evaluate(group, list, products + kGates, activations);
      log_total = log_f32(prefix[group.remaining - 1]);
    }
    statistics_.steps += group.members;
    const int first_child = static_cast<int>(next_groups_.size());
    positions_.resize(group.members);
    for (int m = 0; m < group.members; ++m) {
      Member& member = members_[group.first_member + m];
      const int position = pick(group, list, member, step);
      positions_[m] = position;
      if (position < 0) {
        finish(member);
        continue;
      }
      if (group.rules.ends(list[position])) {  // the misfit is no part of the order, nor of its log p
        positions_[m] = -1;
        finish(member);
        continue;
      }
      if (group.remaining > 1) {
        member.log_prob += static_cast<double>((w_.logits.data[position] - largest) - log_total);
      }
      result_.orders[member.result * n_ + step] = list[position];
      if (child_of_[position] < 0)
        child_of_[position] = add_child(group, g, step, position, states, products);
      ++next_groups_[child_of_[position]].members;
    }
    place_members(group, first_child);
  }

  // Logits and running sums of a group into the workspace; returns the largest logit.
  float evaluate(const Group<Rules>& group, const int32_t* list, const float* query, float* activations) {
    cpu::StepStatistics step;
    const float* prior = w_.prior.of(group.rules, {features(group.piece), list, group.remaining, group.last});
    cpu::pointer_logits({&encoded_.references[group.piece], &weights_, query, list, group.remaining, prior,
                         w_.logits.data.data(), activations, &step});
    float largest;
    double entropy = 0.0;
    cpu::softmax_prefix({w_.logits.data.data(), group.remaining, w_.prefix.data.data(), &largest,
                         want_entropy_ ? &entropy : nullptr});
    ++statistics_.evaluations;
    statistics_.direct_rows += step.direct;
    statistics_.entropy += group.members * entropy;
    statistics_.mean_logit += group.members * static_cast<double>(step.mean_u);
    statistics_.saturated += group.members * static_cast<double>(step.saturated);
    return largest;
  }

  // Position in the list, or -1 when a forced order has ended or asks for what cannot be chosen.
  int pick(const Group<Rules>& group, const int32_t* list, Member& member, int step) {
    const int count = group.remaining;
    if (request_.decode == Decode::kForced) {
      const int32_t item = request_.forced[member.result * n_ + step];
      if (item < 0) return -1;
      const int32_t* at = std::find(list, list + count, item);
      if (at != list + count) return static_cast<int>(at - list);
      member.log_prob = std::numeric_limits<double>::quiet_NaN();
      return -1;
    }
    if (count == 1) return 0;
    if (request_.decode == Decode::kGreedy) {
      const float* logits = w_.logits.data.data();
      int best = 0;
      for (int j = 1; j < count; ++j) {
        if (logits[j] > logits[best] || (logits[j] == logits[best] && list[j] < list[best])) best = j;
      }
      return best;
    }
    const float* prefix = w_.prefix.data.data();
    const int sequence = tile_.pieces[member.piece].sequence;
    const uint32_t first = request_.first_samples == nullptr ? 0 : request_.first_samples[sequence];
    const float u =
        sampling_uniform(request_.seed, request_.instance_keys[sequence],
                         first + static_cast<uint32_t>(member.index) * request_.sample_stride, step);
    const float target = u * prefix[count - 1];
    const int position = static_cast<int>(std::lower_bound(prefix, prefix + count, target) - prefix);
    return std::min(position, count - 1);
  }

  // A group after `position` was chosen: list, rules and, where another choice is left, network state.
  int add_child(const Group<Rules>& group, int g, int step, int position, bool states,
                const float* products) {
    const int child = static_cast<int>(next_groups_.size());
    int32_t* list = items(side_ ^ 1, child);
    std::copy_n(items(side_, g), group.remaining, list);
    Group<Rules> next = group;
    const int32_t item = list[position];
    next.rules.step(item);
    next.last = item;
    next.remaining = remove_and_filter(next.rules, list, group.remaining, position);
    next.members = 0;
    if (next.remaining > 1 && states) {
      const size_t at = static_cast<size_t>(child) * kHidden;
      const float* input = features(group.piece) + 2 * item;
      float* cell = nullptr;
      if (recorded_ != nullptr) {
        cell = recorded_->decoder.cell(step + 1) + group.row * kLstmCell;
        std::copy_n(input, 2, recorded_->decoder.input(step + 1) + 2 * group.row);
      }
      cpu::lstm_cell({1, products, kGates + kHidden, parameters_.decoder.fold.data(),
                      parameters_.decoder.bias.data(), input,
                      w_.c[side_].data.data() + static_cast<size_t>(g) * kHidden,
                      w_.h[side_ ^ 1].data.data() + at, w_.c[side_ ^ 1].data.data() + at, cell});
      if (recorded_ != nullptr) record_state(side_ ^ 1, step + 1, child, group.row);
    }
    next_groups_.push_back(next);
    return child;
  }

  // Members sorted by group; groups that have nothing left to choose are done.
  void place_members(const Group<Rules>& group, int first_child) {
    int at = static_cast<int>(next_members_.size());
    for (size_t c = first_child; c < next_groups_.size(); ++c) {
      next_groups_[c].first_member = at;
      at += next_groups_[c].members;
      next_groups_[c].members = 0;
    }
    next_members_.resize(at);
    for (int m = 0; m < group.members; ++m) {
      if (positions_[m] < 0) continue;
      Group<Rules>& child = next_groups_[child_of_[positions_[m]]];
      next_members_[child.first_member + child.members++] = members_[group.first_member + m];
    }
    for (int m = 0; m < group.members; ++m) {
      if (positions_[m] >= 0) child_of_[positions_[m]] = -1;
    }
    // Finished groups may lie anywhere among what this parent made: close the gaps.
    size_t end = first_child;
    for (size_t c = first_child; c < next_groups_.size(); ++c) {
      if (next_groups_[c].remaining == 0) {
        for (int m = 0; m < next_groups_[c].members; ++m)
          finish(next_members_[next_groups_[c].first_member + m]);
        continue;
      }
      if (end != c) move_group(c, end);
      ++end;
    }
    next_groups_.resize(end);
  }

  void move_group(size_t from, size_t to) {
    std::copy_n(items(side_ ^ 1, from), n_, items(side_ ^ 1, to));
    for (Buffer* state : {&w_.h[side_ ^ 1], &w_.c[side_ ^ 1]}) {
      std::copy_n(state->data.data() + from * kHidden, kHidden, state->data.data() + to * kHidden);
    }
    next_groups_[to] = next_groups_[from];
  }

  // A forced order that ended in what cannot be chosen, or a tour that ended early, has no log p and no cost.
  void finish(const Member& member) {
    const int32_t* order = result_.orders.data() + member.result * n_;
    const bool whole = (Rules::kDropsItems || order[n_ - 1] >= 0) && !std::isnan(member.log_prob);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    result_.log_probs[member.result] = whole ? member.log_prob : nan;
    result_.costs[member.result] = whole ? Rules::cost(features(member.piece), order, n_) : nan;
  }

  const CpuParameters& parameters_;
  const cpu::AttentionWeights weights_;
  const RolloutRequest& request_;
  const SequenceBatch& batch_;
  const RolloutTile& tile_;
  const bool want_entropy_;
  RolloutWorkspace& w_;
  EncodedTile& encoded_;
  TileActivations* const recorded_;
  RolloutResult& result_;
  const int n_;
  StopMeter meter_;
  int side_ = 0;
  std::vector<Group<Rules>> groups_, next_groups_;
  std::vector<Member> members_, next_members_;
  std::vector<int> child_of_, positions_;
  PolicyStatistics statistics_;
};

}  // namespace

PolicyStatistics roll_out_tile(const CpuParameters& parameters, const RolloutRequest& request,
                               const RolloutTile& tile, RolloutWorkspace& workspace,
                               TileActivations* recorded, RolloutResult& result) {
  return with_rules(request.sequences.problem, [&]<typename Rules>() {
    return TileRollout<Rules>(parameters, request, tile, workspace, recorded, result).run();
  });
}

}  // namespace pointsman
