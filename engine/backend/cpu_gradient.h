// SPDX-License-Identifier: Apache-2.0
// The manual backward pass of a tile: sum over its rollouts of weight * d log p / d parameters. Because the
// decoder only reads the chosen items, the attention of all steps is one batch without an order in time
// (algebra identity 7); only the two recurrences are sequential.
#pragma once

#include <vector>

#include "engine/backend/cpu_rollout.h"

namespace pointsman {

// Where a tile's folded gradient sums lie in its buffer of `size` floats. "Folded": the input halves of the
// LSTMs as [2][4H] and the reference projections stacked; unfold_* adds them to the gradient once a call.
struct FoldedLayout {
  explicit FoldedLayout(int reference_slots);
  size_t encoder_recurrent, encoder_bias, encoder_fold;
  size_t decoder_recurrent, decoder_bias, decoder_fold, decoder_start;
  size_t query, references, glimpse_v, pointer_v;
  size_t size;
};

struct CriticFoldedLayout {
  CriticFoldedLayout();
  size_t recurrent, bias, fold, reference, query, v, fc1_weight, fc1_bias, fc2_weight, fc2_bias;
  size_t size;
};

struct GradientWorkspace {
  TileActivations activations;  // of a tile whose rollout did not keep them, and of the critic
  Buffer critic_states, critic_queries;
  Buffer dqueries, dh, dc, dh_start, sums, dreferences, scratch, encoder_dc, logits, attention;
  std::vector<int32_t> items;
};

// Adds the tile's folded gradient to `folded` [FoldedLayout::size]. kept: by the tile's rollout, or null.
void gradient_tile(const CpuParameters& parameters, const AttentionWeights& weights,
                   const ReferenceSlots& slots, const GradientRequest& request, const RolloutTile& tile,
                   TileActivations* kept, GradientWorkspace& workspace, float* folded);

// Critic values of the tile's sequences into values; with targets also the folded gradient of
// weight * sum (value - target)^2. values, targets: indexed by sequence.
void critic_tile(const CpuParameters& parameters, const ParameterLayout& layout,
                 const SequenceBatch& sequences, const RolloutTile& tile, const float* targets, float weight,
                 GradientWorkspace& workspace, float* values, float* folded);

// folded sums -> + parameters.gradient.
void unfold_actor(const ModelConfig& config, const ParameterLayout& layout, const float* folded,
                  CpuParameters& parameters);
void unfold_critic(const ParameterLayout& layout, const float* folded, CpuParameters& parameters);

}  // namespace pointsman
