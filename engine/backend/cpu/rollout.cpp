// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/rollout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "kernels/common/philox.h"
#include "kernels/common/scalar_math.h"

namespace pointsman {
namespace {

constexpr int kProductRows = 24;     // groups whose products are made together: four register tiles of rows
constexpr int kBlockChildren = 512;  // of a block, at most: their states take 0.7 MB at n = 100
constexpr int64_t kSmallestBranch = 512;  // choices; a few of them take as long as to hand a branch over

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

// Groups of one depth of the tree that have not yet chosen their next item, and their members in the groups'
// order. The last ones choose first.
template <typename Rules>
struct Level {
  GroupStates* states = nullptr;
  int step = 0;  // items that each has chosen
  std::vector<Group<Rules>> groups;
  std::vector<Member> members;

  float* h_of(size_t group) const { return states->h.data() + group * kHidden; }
  float* c_of(size_t group) const { return states->c.data() + group * kHidden; }

  // Members of the groups from `group` on.
  int64_t members_from(size_t group) const {
    return static_cast<int64_t>(members.size()) - groups[group].first_member;
  }
  void drop_from(size_t group) {
    members.resize(groups[group].first_member);
    groups.resize(group);
  }
};

// What a member of a group chose, and its log p then.
struct Chosen {
  int position, member;
  double log_prob;
};

constexpr int kEnded = -1, kImpossible = -2;  // in the place of a position: of forced orders

template <typename Rules>
struct TileRollout {
  // Inputs of the decoder, at most.
  static constexpr int kMostInputs =
      kIsOwn<Rules> ? 2 * kMostOwnFeatures : Rules::kFeatures + Rules::kContext;
  static_assert(kMostInputs >= 2);

  const TileRolloutArgs& args;
  BranchQueue::Tree& tree;
  const EncodedTile& encoded;
  RolloutWorkspace& w;

  const CpuParameters& parameters = args.parameters;
  const RolloutRequest& request = args.request;
  const SequenceBatch& batch = request.sequences;
  const RolloutTile& tile = args.tile;
  TileActivations* const recorded = args.recorded;
  RolloutResult& result = args.result;
  const cpu::AttentionWeights weights = parameters.attention(request.policy);
  const bool want_entropy = request.wants_entropy();
  const int n = batch.n, steps = batch.steps(), words = Rules::words(n);
  StopMeter meter = StopMeter(&request.stop);
  std::deque<Level<Rules>> levels = {};                 // what is left to do at each depth
  std::vector<int> child_of = std::vector<int>(n, -1);  // by position in a group's list
  std::vector<Chosen> chosen = {};                      // by the members of a group that go on
  PolicyStatistics statistics = {};

  // From the beginning, or on from where a branch of the tree begins.
  PolicyStatistics run(Level<Rules>* branch = nullptr) {
    w.products.get(static_cast<size_t>(kProductRows) * (kGates + kHidden));
    w.logits.get(cpu::padded(n));
    w.prefix.get(cpu::padded(n));
    w.attention.get(attention_size());
    w.prior.start(parameters.prior_weights(request.policy), n);
    if (branch == nullptr) {
      start();
    } else {
      std::swap(level_at(0), *branch);
    }
    for (size_t depth = 0; args.branches == nullptr || !args.branches->has_failed();) {
      Level<Rules>& parents = level_at(depth);
      if (!parents.groups.empty()) {
        Level<Rules>& children = level_at(depth + 1);
        advance(parents, children);
        if (parents.groups.empty()) {
          std::swap(parents, children);
        } else {
          ++depth;
        }
        if (args.branches != nullptr && args.branches->is_wanted()) give_branch(depth);
      } else if (depth > 0) {
        --depth;
      } else {
        break;
      }
    }
    return statistics;
  }

  // Half of the groups of the least depth where that is worth it. At the last depth one stays.
  void give_branch(size_t depth) {
    while (depth > 0 && levels[depth].groups.empty()) --depth;
    for (size_t d = 0; d <= depth; ++d) {
      Level<Rules>& level = levels[d];
      const size_t count = level.groups.size(), kept = d < depth ? count / 2 : (count + 1) / 2;
      if (kept == count || level.members_from(kept) * (steps - level.step) < kSmallestBranch) continue;
      give_branch(level, kept);
      return;
    }
  }

  // The groups from `first` on.
  void give_branch(Level<Rules>& from, size_t first) {
    struct Branch {
      GroupStates states;
      Level<Rules> level;
    };
    auto branch = std::make_shared<Branch>();
    Level<Rules>& to = branch->level;
    to.states = &branch->states;
    to.step = from.step;
    to.groups.assign(from.groups.begin() + static_cast<int64_t>(first), from.groups.end());
    to.members.assign(from.members.end() - from.members_from(first), from.members.end());
    to.states->make_room(to.groups.size(), n, words);
    for (size_t g = 0; g < to.groups.size(); ++g) {
      to.groups[g].first_member -= from.groups[first].first_member;
      copy_states(from, first + g, to, g);
    }
    from.drop_from(first);
    args.branches->put(tree, [branch, &args = args, &tree = tree, &encoded = encoded](auto& workspace) {
      return TileRollout{args, tree, encoded, workspace}.run(&branch->level);
    });
  }

  void copy_states(const Level<Rules>& from, size_t g, const Level<Rules>& to, size_t at) const {
    std::copy_n(items(from, g), n, items(to, at));
    std::copy_n(words_of(from, g), words, words_of(to, at));
    std::copy_n(from.h_of(g), kHidden, to.h_of(at));
    std::copy_n(from.c_of(g), kHidden, to.c_of(at));
  }

  const float* features(int piece) const { return batch.features_of(tile.pieces[piece].sequence); }
  Rules first_rules(int piece) const {
    return Rules::make(batch.rule_inputs(tile.pieces[piece].sequence, request.policy));
  }

  Level<Rules>& level_at(size_t depth) {
    for (size_t made = levels.size(); made <= depth; ++made) {
      if (w.levels.size() == made) w.levels.emplace_back();
      levels.emplace_back().states = &w.levels[made];
    }
    return levels[depth];
  }

  // One group per piece, all its rollouts in it (on a tape each in its own row, so alone); the decoder's
  // first step from the encoder's start state.
  void start() {
    Level<Rules>& first = level_at(0);
    const int pieces = static_cast<int>(tile.pieces.size());
    for (int p = 0; p < pieces; ++p) {
      const RolloutPiece& piece = tile.pieces[p];
      const int members = recorded == nullptr ? piece.count : 1;
      for (int i = 0; i < piece.count; i += members) {
        const int row = static_cast<int>(first.groups.size());
        first.states->make_room(row + 1, n, words);
        first.groups.push_back(
            {first_rules(p), p, row, 0, static_cast<int>(first.members.size()) + i, members});
        Group<Rules>& group = first.groups.back();
        std::fill_n(words_of(first, row), words, 0u);
        group.rules.use_words(words_of(first, row));
        group.remaining = initial_remaining(group.rules, items(first, row), n);
      }
      for (int i = 0; i < piece.count; ++i) first.members.push_back({p, piece.first + i, piece.result + i});
    }
    w.products.get(first.groups.size() * (kGates + kHidden));
    make_first_states(first);
    drop_finished(first, 0);  // of instances in which nothing is feasible
  }

  void make_first_states(const Level<Rules>& level) {
    const int rows = static_cast<int>(level.groups.size());
    const float *h = encoded.start_h, *c = encoded.start_c;
    float* products = w.products.data();
    float *cells = nullptr, *inputs = nullptr;
    if constexpr (kMostInputs > 2) {  // zeros for the item, and the context
      inputs = w.inputs.get(static_cast<size_t>(rows) * inputs_each());
      for (int row = 0; row < rows; ++row) {
        Group<Rules> group = level.groups[row];
        group.rules.use_words(words_of(level, row));
        make_input(group, -1, inputs + row * inputs_each());
      }
    }
    if (recorded != nullptr) {
      LstmStates& decoder = recorded->decoder;
      decoder.resize(rows, steps, inputs_each(), true);
      recorded->queries.get(static_cast<size_t>(steps) * rows * kHidden);
      recorded->attention.get(static_cast<size_t>(steps) * rows * attention_size());
      if (inputs != nullptr) std::copy_n(inputs, static_cast<size_t>(rows) * decoder.width, decoder.input(0));
      for (const Group<Rules>& group : level.groups) {
        std::copy_n(h + group.piece * kHidden, kHidden, decoder.h_before(0) + group.row * kHidden);
        std::copy_n(c + group.piece * kHidden, kHidden, decoder.c_before(0) + group.row * kHidden);
      }
      h = decoder.h_before(0);
      c = decoder.c_before(0);
      cells = decoder.cell(0);
    }
    cpu::multiply({h, kHidden, parameters.decoder.recurrent.forward.data(), products, kGates, rows, kHidden,
                   kGates, false});
    cpu::lstm_cell({rows, products, kGates, parameters.decoder.fold.data(),
                    parameters.decoder_start_bias.data(), inputs, inputs_each(), c, level.h_of(0),
                    level.c_of(0), cells});
    for (int row = 0; recorded != nullptr && row < rows; ++row) record_state(level, row, row);
  }

  // The state that the level's group `group` chooses from goes to the activations' row.
  void record_state(const Level<Rules>& level, size_t group, int row) {
    LstmStates& states = recorded->decoder;
    std::copy_n(level.h_of(group), kHidden, states.h_after(level.step) + row * kHidden);
    std::copy_n(level.c_of(group), kHidden, states.c_after(level.step) + row * kHidden);
  }

  // Of the groups from `first` on those that have nothing left to choose end here; the others close the gaps.
  void drop_finished(Level<Rules>& level, size_t first) {
    size_t end = first;
    for (size_t g = first; g < level.groups.size(); ++g) {
      const Group<Rules>& group = level.groups[g];
      if (group.remaining == 0) {
        const bool whole = group.rules.complete(level.step, n);
        for (int m = 0; m < group.members; ++m) finish(level.members[group.first_member + m], whole);
      } else {
        if (g != end) {
          copy_states(level, g, level, end);
          level.groups[end] = group;
        }
        ++end;
      }
    }
    level.groups.resize(end);
  }

  int features_each() const {
    if constexpr (kIsOwn<Rules>) return batch.width();
    return Rules::kFeatures;
  }
  int inputs_each() const {
    if constexpr (kIsOwn<Rules>) return 2 * batch.width();
    return kMostInputs;
  }

  int32_t* items(const Level<Rules>& level, size_t group) const {
    return level.states->items.data() + group * n;
  }
  uint32_t* words_of(const Level<Rules>& level, size_t group) const {
    return level.states->words.data() + group * words;
  }

  // What the decoder reads after `item`, or first (-1): the item's features, then the context.
  void make_input(const Group<Rules>& group, int32_t item, float* to) const {
    if (item < 0) {
      std::fill_n(to, features_each(), 0.0f);
    } else {
      const int width = features_each();
      std::copy_n(features(group.piece) + static_cast<size_t>(item) * width, width, to);
    }
    group.rules.context(to + features_each());
  }
  size_t attention_size() const { return cpu::attention_activations(n, weights.glimpses); }

  // The last block of the parents chooses, and is then gone.
  void advance(Level<Rules>& parents, Level<Rules>& children) {
    children.groups.clear();
    children.members.clear();
    children.step = parents.step + 1;
    const size_t begin = last_block(parents), end = parents.groups.size();
    for (size_t first = begin; first < end; first += kProductRows) {
      const size_t last = std::min(first + kProductRows, end);
      const bool states = make_products(parents, first, last);
      if (request.decode == Decode::kSample) make_uniforms(parents, first, last);
      for (size_t g = first; g < last; ++g) {
        meter.check(kMatricesOf<Rules> > 0 ? n * n : parents.groups[g].remaining);  // its rules look at pairs
        choose(parents, children, g, states, w.products.data() + (g - first) * (kGates + kHidden));
      }
    }
    parents.drop_from(begin);
  }

  // Where it begins: one group at least, and no more than surely have that few children.
  static size_t last_block(const Level<Rules>& parents) {
    int room = kBlockChildren;
    size_t begin = parents.groups.size();
    while (begin > 0) {
      const Group<Rules>& group = parents.groups[begin - 1];
      room -= std::min(group.members, group.remaining);
      if (room < 0 && begin < parents.groups.size()) break;
      --begin;
    }
    return begin;
  }

  // [W_hh h, W_q h] of a block of groups. Returns whether the gates' part was made. Of monotone rules nobody
  // reads it once every group is left with at most two items, since the last item needs no network; of others
  // a forced choice may leave many.
  bool make_products(const Level<Rules>& level, size_t first, size_t last) {
    int most = 0;
    for (size_t g = first; g < last; ++g) most = std::max(most, level.groups[g].remaining);
    if (Rules::kMonotone && most < 2) return false;
    const int rows = static_cast<int>(last - first);
    const float* h = level.h_of(first);
    float* products = w.products.data();
    constexpr int kWidth = kGates + kHidden;
    cpu::multiply({h, kHidden, parameters.query.forward.data(), products + kGates, kWidth, rows, kHidden,
                   kHidden, false});
    if (Rules::kMonotone && most < 3) return false;
    cpu::multiply({h, kHidden, parameters.decoder.recurrent.forward.data(), products, kWidth, rows, kHidden,
                   kGates, false});
    return true;
  }

  // The uniforms of this step, for the members of a block of groups.
  void make_uniforms(const Level<Rules>& level, size_t first, size_t last) {
    Draws& draws = w.draws;
    const Member* members = level.members.data() + level.groups[first].first_member;
    const Group<Rules>& end = level.groups[last - 1];
    const int count = end.first_member + end.members - level.groups[first].first_member;
    draws.first_member = level.groups[first].first_member;
    draws.make_room(count);
    for (int i = 0; i < count; ++i) {
      const int sequence = tile.pieces[members[i].piece].sequence;
      const uint32_t before = request.first_samples == nullptr ? 0 : request.first_samples[sequence];
      draws.instances[i] = static_cast<uint32_t>(request.instance_keys[sequence]);
      draws.samples[i] = request.samples != nullptr
                             ? request.samples[members[i].result]
                             : before + static_cast<uint32_t>(members[i].index) * request.sample_stride;
    }
    cpu::sampling_uniforms({request.seed, static_cast<uint32_t>(level.step), count, draws.instances.data(),
                            draws.samples.data(), draws.uniforms.data()});
  }

  // For each member the position whose perturbed logit is the largest.
  void take_noisiest(const Group<Rules>& group, const int32_t* list, int step) {
    Draws& draws = w.draws;
    for (int m = 0; m < group.members; ++m) {
      const int draw = group.first_member - draws.first_member + m;
      float most = -std::numeric_limits<float>::infinity();
      draws.positions[m] = 0;  // also where no logit is a number
      for (int j = 0; j < group.remaining; ++j) {
        const float normal = noise_normal(request.seed, draws.instances[draw], draws.samples[draw],
                                          static_cast<uint32_t>(step), static_cast<uint32_t>(list[j]));
        const float logit = w.logits[j] + request.policy.noise * normal;
        if (logit > most) draws.positions[m] = j;
        most = std::max(most, logit);
      }
    }
  }

  // Probabilities of one group, its members' choices, and the groups they fall into.
  void choose(Level<Rules>& parents, Level<Rules>& children, size_t g, bool states, const float* products) {
    Group<Rules>& group = parents.groups[g];
    group.rules.use_words(words_of(parents, g));
    const int32_t* list = items(parents, g);
    const int step = parents.step;
    float* prefix = w.prefix.data();
    float largest = 0.0f, log_total = 0.0f;
    if (group.remaining > 1) {
      float* activations = w.attention.data();
      if (recorded != nullptr) {
        const size_t row = static_cast<size_t>(step) * recorded->decoder.rows + group.row;
        std::copy_n(products + kGates, kHidden, recorded->queries.data() + row * kHidden);
        activations = recorded->attention.data() + row * attention_size();
      }
      largest = evaluate(group, list, products + kGates, activations);
      log_total = log_f32(prefix[group.remaining - 1]);
      if (request.decode == Decode::kSample && request.policy.noise > 0.0f) {
        take_noisiest(group, list, step);
      } else if (request.decode == Decode::kSample) {
        const float* uniforms = w.draws.uniforms.data() + (group.first_member - w.draws.first_member);
        cpu::draw_positions(prefix, group.remaining, uniforms, group.members, w.draws.positions.data());
      }
    }
    statistics.steps += group.members;
    const size_t first_child = children.groups.size();
    chosen.clear();
    for (int m = 0; m < group.members; ++m) {
      const Member& member = parents.members[group.first_member + m];
      const int position = pick(group, list, member, m, step);
      // The misfit that ends an order is no part of it, nor of its log p.
      if (position < 0 || group.rules.ends(list[position])) {
        finish(member, position != kImpossible && group.rules.complete(step, n));
        continue;
      }
      double log_prob = member.log_prob;
      if (group.remaining > 1) log_prob += static_cast<double>((w.logits[position] - largest) - log_total);
      result.orders[member.result * steps + step] = list[position];
      if (child_of[position] < 0)
        child_of[position] = add_child(parents, children, g, position, states, products);
      ++children.groups[child_of[position]].members;
      chosen.push_back({position, m, log_prob});
    }
    place_members(parents.members.data() + group.first_member, children, first_child);
  }

  // Logits and running sums of a group into the workspace; returns the largest logit.
  float evaluate(const Group<Rules>& group, const int32_t* list, const float* query, float* activations) {
    cpu::StepStatistics step;
    const float* prior = w.prior.of(group.rules, {features(group.piece), list, group.remaining, group.last});
    cpu::pointer_logits({&encoded.references[group.piece], &weights, query, list, group.remaining, prior,
                         w.logits.data(), activations, &step});
    double entropy = 0.0;
    const float largest = cpu::softmax_prefix(w.logits.data(), group.remaining, w.prefix.data(),
                                              want_entropy ? &entropy : nullptr);
    ++statistics.evaluations;
    statistics.direct_rows += step.direct;
    statistics.entropy += group.members * entropy;
    statistics.mean_logit += group.members * static_cast<double>(step.mean_u);
    statistics.saturated += group.members * static_cast<double>(step.saturated);
    return largest;
  }

  // Position in the list of the group's member m, or what is not one.
  int pick(const Group<Rules>& group, const int32_t* list, const Member& member, int m, int step) const {
    const int count = group.remaining;
    if (request.decode == Decode::kForced) {
      const int32_t item = request.forced[member.result * steps + step];
      if (item < 0) return kEnded;
      const int32_t* at = std::find(list, list + count, item);
      return at == list + count ? kImpossible : static_cast<int>(at - list);
    }
    if (count == 1) return 0;
    if (request.decode == Decode::kGreedy) {
      const float* logits = w.logits.data();
      int best = 0;
      for (int j = 1; j < count; ++j) {
        if (logits[j] > logits[best] || (logits[j] == logits[best] && list[j] < list[best])) best = j;
      }
      return best;
    }
    return w.draws.positions[m];
  }

  // The group after `position` was chosen: list, rules and, where another choice is left, network state.
  int add_child(const Level<Rules>& parents, Level<Rules>& children, size_t g, int position, bool states,
                const float* products) {
    const Group<Rules>& group = parents.groups[g];
    const size_t child = children.groups.size();
    children.states->make_room(child + 1, n, words);
    int32_t* list = items(children, child);
    std::copy_n(items(parents, g), group.remaining, list);
    std::copy_n(words_of(parents, g), words, words_of(children, child));
    Group<Rules> next = group;
    next.rules.use_words(words_of(children, child));
    const int32_t item = list[position];
    next.rules.step(item);
    next.last = item;
    next.remaining = next_remaining(next.rules, list, group.remaining, position, n);
    next.members = 0;
    if (next.remaining > (Rules::kMonotone ? 1 : 0) && states) {
      float input[kMostInputs];
      make_input(next, item, input);
      float* cell = nullptr;
      if (recorded != nullptr) {
        cell = recorded->decoder.cell(children.step) + group.row * kLstmCell;
        std::copy_n(input, inputs_each(), recorded->decoder.input(children.step) + inputs_each() * group.row);
      }
      cpu::lstm_cell({1, products, kGates + kHidden, parameters.decoder.fold.data(),
                      parameters.decoder.bias.data(), input, inputs_each(), parents.c_of(g),
                      children.h_of(child), children.c_of(child), cell});
      if (recorded != nullptr) record_state(children, child, group.row);
    }
    children.groups.push_back(next);
    return static_cast<int>(child);
  }

  // The members of a group that go on, sorted by the groups that they fall into.
  void place_members(const Member* parents, Level<Rules>& children, size_t first_child) {
    std::vector<Group<Rules>>& groups = children.groups;
    int at = static_cast<int>(children.members.size());
    for (size_t c = first_child; c < groups.size(); ++c) {
      groups[c].first_member = at;
      at += groups[c].members;
      groups[c].members = 0;
    }
    children.members.resize(at);
    for (const Chosen& choice : chosen) {
      Group<Rules>& child = groups[child_of[choice.position]];
      Member& member = children.members[child.first_member + child.members++];
      member = parents[choice.member];
      member.log_prob = choice.log_prob;
    }
    for (const Chosen& choice : chosen) child_of[choice.position] = -1;
    drop_finished(children, first_child);
  }

  // A forced order that ended in what cannot be chosen, or too early, has no log p and no cost.
  void finish(const Member& member, bool complete) {
    const int32_t* order = result.orders.data() + member.result * steps;
    const bool whole = complete && !std::isnan(member.log_prob);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    result.log_probs[member.result] = whole ? member.log_prob : nan;
    result.costs[member.result] =
        whole ? first_rules(member.piece).cost(features(member.piece), order, steps) : nan;
  }
};

}  // namespace

PolicyStatistics roll_out_tile(const TileRolloutArgs& args, RolloutWorkspace& workspace) {
  const bool recorded = args.recorded != nullptr;
  EncodedTile& encoded = recorded ? args.recorded->encoded : workspace.encoded;
  encode({args.parameters, args.request.sequences, args.tile, args.request.stop}, recorded, encoded);
  BranchQueue::Tree tree;
  PolicyStatistics statistics;
  const auto walk = [&] {
    statistics = with_rules(args.request.sequences.problem, [&]<typename Rules>() {
      return TileRollout<Rules>{args, tree, encoded, workspace}.run();
    });
  };
  if (args.branches == nullptr) {
    walk();
  } else {
    args.branches->attempt(walk);
    args.branches->wait_for(tree, workspace);  // they read what is encoded here
  }
  return statistics;
}

}  // namespace pointsman
