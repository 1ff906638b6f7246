// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/parameters.h"

#include <algorithm>
#include <cmath>

namespace pointsman {

CpuParameters::CpuParameters(const ModelConfig& config_, const ParameterLayout& layout_)
    : config(config_), layout(layout_), projections(projections_of(config.glimpses)), flat(layout.size) {}

void CpuParameters::load(std::span<const float> parameters) {
  std::copy(parameters.begin(), parameters.end(), flat.begin());
  for (auto* learned : {&first_moment, &second_moment, &gradient}) learned->assign(learned->size(), 0.0f);
  actor_steps = critic_steps = 0;
  prepare();
}

void CpuParameters::learn() {
  if (learns()) return;
  for (auto* learned : {&first_moment, &second_moment, &gradient}) learned->assign(layout.size, 0.0f);
  prepare();
}

cpu::AttentionWeights CpuParameters::attention(const Policy& policy) const {
  return attention_of(config, layout, policy, [this](size_t offset) { return flat.data() + offset; });
}

std::vector<float> CpuParameters::prior_weights(const Policy& policy) const {
  const auto begin = flat.begin() + static_cast<int64_t>(layout.prior);
  std::vector<float> weights(begin, begin + layout.priors);
  for (float& weight : weights) weight *= 1.0f / policy.temperature;
  return weights;
}

void CpuParameters::prepare_lstm(const LstmOffsets& from, PackedLstm& lstm) {
  pack_both(flat.data() + from.weight_hh, kGates, kHidden, lstm.recurrent, lstm.recurrent_t);
  lstm.bias.assign(flat.begin() + from.bias, flat.begin() + from.bias + kGates);
  lstm.fold.resize(2 * kGates);
  fold_input(from.weight_ih, from.embedding, 2, lstm.fold.data());
}

// fold [width][4H] = (W_ih X)^T, X [H][width] at `input`.
void CpuParameters::fold_input(int64_t weight_ih, int64_t input, int width, float* fold) const {
  constexpr int kPanel = 16;
  AlignedFloats panel(kPanel * kHidden, 0.0f), products(kPanel * kGates);
  for (int d = 0; d < kHidden; ++d) {
    std::copy_n(flat.data() + input + d * width, width, panel.data() + d * kPanel);
  }
  cpu::multiply({flat.data() + weight_ih, kHidden, panel.data(), products.data(), kPanel, kGates, kHidden,
                 kPanel, false});
  for (int i = 0; i < width; ++i) {
    for (int j = 0; j < kGates; ++j) fold[i * kGates + j] = products[j * kPanel + i];
  }
}

// The matrix [columns][k].
void CpuParameters::pack_both(const float* matrix, int columns, int k, AlignedFloats& packed,
                              AlignedFloats& transposed) {
  packed.resize(static_cast<size_t>(columns) * k);
  to_pack_.push_back({matrix, k, columns, k, false, packed.data()});
  if (!learns()) return;
  transposed.resize(packed.size());
  to_pack_.push_back({matrix, k, k, columns, true, transposed.data()});
}

// The matrix [columns][k] at `offset`.
void CpuParameters::prepare_matrix(size_t offset, int columns, int k, PackedMatrix& matrix) {
  pack_both(flat.data() + offset, columns, k, matrix.forward, matrix.backward);
}

void CpuParameters::prepare_attention_encoder() {
  embedding.resize(2 * kHidden);
  for (int d = 0; d < kHidden; ++d) {
    for (int i = 0; i < 2; ++i) embedding[i * kHidden + d] = flat[layout.embedding + 2 * d + i];
  }
  layers.resize(layout.layers.size());
  for (size_t l = 0; l < layers.size(); ++l) {
    const EncoderLayerOffsets& from = layout.layers[l];
    prepare_matrix(from.in_weight, 3 * kHidden, kHidden, layers[l].in);
    prepare_matrix(from.out_weight, kHidden, kHidden, layers[l].out);
    prepare_matrix(from.linear1_weight, config.feed_forward, kHidden, layers[l].linear1);
    prepare_matrix(from.linear2_weight, kHidden, config.feed_forward, layers[l].linear2);
  }
  prepare_matrix(layout.start.h_weight, kHidden, kHidden, start_h);
  prepare_matrix(layout.start.c_weight, kHidden, kHidden, start_c);
}

void CpuParameters::prepare(WorkerThreads* helpers) {
  to_pack_.clear();
  if (config.encoder == Encoder::kLstm) {
    prepare_lstm(layout.encoder, encoder);
  } else {
    prepare_attention_encoder();
  }
  prepare_lstm(layout.decoder, decoder);
  decoder_start_bias.resize(kGates);
  fold_input(layout.decoder.weight_ih, layout.decoder.start, 1, decoder_start_bias.data());
  for (int j = 0; j < kGates; ++j) decoder_start_bias[j] += decoder.bias[j];
  pack_both(flat.data() + layout.query, kHidden, kHidden, query, query_t);

  const int width = projections.count * kHidden;
  const auto tensors = projection_tensors(layout, projections);
  AlignedFloats stacked(static_cast<size_t>(projections.count) * kSquare);
  for (int i = 0; i < projections.count; ++i) {
    std::copy_n(flat.begin() + tensors[i], kSquare, stacked.begin() + i * kSquare);
  }
  pack_both(stacked.data(), width, kHidden, references, references_t);

  if (config.has_critic) {
    const ParameterLayout::Critic& critic = layout.critic;
    prepare_lstm(critic.encoder, critic_encoder);
    pack_both(flat.data() + critic.process.w_ref, kHidden, kHidden, critic_reference, critic_reference_t);
    pack_both(flat.data() + critic.process.w_q, kHidden, kHidden, critic_query, critic_query_t);
    pack_both(flat.data() + critic.fc1_weight, kHidden, kHidden, critic_fc1, critic_fc1_t);
  }
  for_each_item(helpers, static_cast<int64_t>(to_pack_.size()), [&](int64_t i) { cpu::pack(to_pack_[i]); });
}

namespace {

double step_range(const AdamArrays& arrays, size_t begin, size_t end, int64_t step,
                  const UpdateRequest& request, WorkerThreads* helpers) {
  const auto count = static_cast<int64_t>(end - begin);
  const double norm = std::sqrt(cpu::squared_norm(arrays.gradient + begin, count));
  const double scale = norm > request.max_norm ? request.max_norm / norm : 1.0;
  const auto correction = [&](float beta) {
    return static_cast<float>(1.0 - std::pow(static_cast<double>(beta), static_cast<double>(step)));
  };
  constexpr int64_t kSlice = 65536;
  for_each_item(helpers, (count + kSlice - 1) / kSlice, [&](int64_t slice) {
    const size_t first = begin + slice * kSlice;
    cpu::adam_update({arrays.parameters + first, arrays.first_moment + first, arrays.second_moment + first,
                      arrays.gradient + first, std::min<int64_t>(kSlice, end - first),
                      static_cast<float>(scale), request.learning_rate, request.beta1, request.beta2,
                      request.epsilon, correction(request.beta1), correction(request.beta2)});
  });
  return norm;
}

}  // namespace

GradientNorms adam_step(const ParameterLayout& layout, const AdamArrays& arrays, int64_t& actor_steps,
                        int64_t& critic_steps, const UpdateRequest& request, WorkerThreads* helpers) {
  GradientNorms norms;
  if (request.actor) norms.actor = step_range(arrays, 0, layout.actor_size, ++actor_steps, request, helpers);
  if (request.critic && layout.size > layout.actor_size)
    norms.critic = step_range(arrays, layout.actor_size, layout.size, ++critic_steps, request, helpers);
  if (!request.actor) std::fill_n(arrays.gradient, layout.actor_size, 0.0f);
  if (!request.critic) std::fill(arrays.gradient + layout.actor_size, arrays.gradient + layout.size, 0.0f);
  return norms;
}

}  // namespace pointsman
