// SPDX-License-Identifier: Apache-2.0
// One parameter set as the CPU kernels read it: the flat vector, and its matrices folded, stacked and packed.
#pragma once

#include <span>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/network.h"
#include "kernels/cpu/aligned_floats.h"
#include "kernels/cpu/cpu_operations.h"
#include "kernels/tools/worker_threads.h"

namespace pointsman {

// A matrix as multiply() reads it, and its transpose for the backward pass (of a set that learns).
struct PackedMatrix {
  AlignedFloats forward, backward;
};

// An LSTM with its input half folded to [4H, F + C] (algebra identity 1).
struct PackedLstm {
  PackedMatrix recurrent;  // W_hh [4H][H]
  int inputs = 0;          // F, of the decoder F + C
  AlignedFloats fold;      // [inputs][4H] W_ih E, then W_ih W_context
  AlignedFloats bias;      // [4H]
};

class CpuParameters {
 public:
  // config and layout must outlive it.
  CpuParameters(const ModelConfig& config, const ParameterLayout& layout);

  // Other parameters [layout.size]; zeroes what they have learned.
  void load(std::span<const float> parameters);

  // Must be called after `flat` changed, before the set is used. helpers: null, or threads that are free.
  void prepare(WorkerThreads* helpers = nullptr);

  // Makes what only gradients and updates need: moments and gradient, all zero, and the transposes. Must be
  // called before those; does nothing the second time.
  void learn();
  bool learns() const { return !gradient.empty(); }

  cpu::AttentionWeights attention(const Policy& policy) const;
  // The prior's weights over T [Rules::kPriors]; empty: the model has none.
  std::vector<float> prior_weights(const Policy& policy) const;

  const ModelConfig& config;
  const ParameterLayout& layout;
  const Projections projections;

  std::vector<float> flat;                         // [layout.size]
  std::vector<float> first_moment, second_moment;  // [layout.size]; empty before learn()
  std::vector<float> gradient;                     // likewise
  int64_t actor_steps = 0, critic_steps = 0;

  PackedLstm encoder, decoder;  // encoder: of Encoder::kLstm; the next two: of kAttention
  AlignedFloats embedding;      // [F][H] E transposed
  EncoderProducts<PackedMatrix> products;
  AlignedFloats decoder_start_bias;  // [4H] bias + W_ih start
  PackedMatrix query;                // [H][H] the step's query projection
  PackedMatrix references;           // [count * H][H] the stacked projections of encoded items

  PackedLstm critic_encoder;
  PackedMatrix critic_reference, critic_query, critic_fc1;  // [H][H]

 private:
  void prepare_lstm(const LstmOffsets& from, PackedLstm& lstm);
  void fold_input(int64_t weight_ih, int64_t input, int width, float* fold) const;
  void pack(const float* matrix, int columns, int k, PackedMatrix& packed);

  std::vector<cpu::PackArgs> to_pack_;  // while prepare() gathers them
};

// The arrays of one parameter set that Adam (Kingma & Ba 2015) works on, [layout.size] each.
struct AdamArrays {
  float *parameters, *first_moment, *second_moment, *gradient;
};

// Updates the networks that the request names, counts their steps and zeroes the gradient. Returns the norms
// before clipping. helpers: null, or threads that are free.
GradientNorms adam_step(const ParameterLayout& layout, const AdamArrays& arrays, int64_t& actor_steps,
                        int64_t& critic_steps, const UpdateRequest& request, WorkerThreads* helpers);

}  // namespace pointsman
