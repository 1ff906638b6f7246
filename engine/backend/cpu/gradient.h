// SPDX-License-Identifier: Apache-2.0
// The manual backward pass of a tile: sum over its rollouts of weight * d log p / d parameters. Because the
// decoder only reads the chosen items, the attention of all steps is one batch without an order in time
// (algebra identity 7); only the two recurrences are sequential.
#pragma once

#include <vector>

#include "engine/backend/cpu/network.h"
#include "kernels/tools/placement.h"

namespace pointsman {

// A tile's gradient sums. "Folded": the input halves of the LSTMs as [inputs][4H] and the projections
// stacked; unfold() adds them to the gradient once a call.
struct FoldedActor {
  FoldedActor(Placement& placement, const ParameterLayout& layout, int projections);
  LstmGradient encoder;         // of Encoder::kLstm
  AttentionGradient attention;  // of Encoder::kAttention
  LstmGradient decoder;
  float *query, *references, *glimpse_v, *pointer_v;
  float* prior;  // [K]; unused without one
};

struct FoldedCritic {
  FoldedCritic(Placement& placement, const ParameterLayout& layout);
  LstmGradient encoder;
  float *reference, *query, *v, *fc1_weight, *fc1_bias, *fc2_weight, *fc2_bias;
};

// folded sums -> + parameters.gradient.
void unfold(const FoldedActor& folded, CpuParameters& parameters);
void unfold(const FoldedCritic& folded, CpuParameters& parameters);

struct GradientWorkspace {
  TileActivations activations;  // of a tile that is on no tape, and of the critic
  Buffer critic_states, critic_queries;
  Buffer dqueries, dh, dc, dh_start, sums, dreferences, scratch, encoder_dh, encoder_dc, dprior;
  AttentionBackwardBuffers encoder;
  std::vector<int32_t> items;
  std::vector<uint32_t> words;
  Prior prior;
};

// Adds the tile's gradient to `folded`. activations: of the tile's rollouts.
void gradient_tile(const CpuParameters& parameters, const GradientRequest& request, const RolloutTile& tile,
                   TileActivations& activations, GradientWorkspace& workspace, const FoldedActor& folded);

struct CriticRequest {
  const SequenceBatch& sequences;
  const float* targets;  // [count]
  float weight;
  float* values;  // [count] out
  const StopToken& stop;
};

// Critic values of the tile's sequences; adds the gradient of weight * sum (value - target)^2 to `folded`.
void critic_tile(const CpuParameters& parameters, const CriticRequest& request, const RolloutTile& tile,
                 GradientWorkspace& workspace, const FoldedCritic& folded);

}  // namespace pointsman
