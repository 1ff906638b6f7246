// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu_parameters.h"

#include <algorithm>

namespace pointsman {

CpuParameters::CpuParameters(const ModelConfig& config_, const ParameterLayout& layout_)
    : config(config_),
      layout(layout_),
      projections(projections_of(config.glimpses)),
      flat(layout.size),
      first_moment(layout.size),
      second_moment(layout.size),
      gradient(layout.size) {}

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
  const float* w_hh = flat.data() + from.weight_hh;
  lstm.recurrent.resize(kRecurrent);
  lstm.recurrent_t.resize(kRecurrent);
  cpu::pack({w_hh, kHidden, kGates, kHidden, false, lstm.recurrent.data()});
  cpu::pack({w_hh, kHidden, kHidden, kGates, true, lstm.recurrent_t.data()});
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

void CpuParameters::prepare_square(size_t offset, AlignedFloats& packed, AlignedFloats& transposed) {
  packed.resize(kSquare);
  transposed.resize(kSquare);
  cpu::pack({flat.data() + offset, kHidden, kHidden, kHidden, false, packed.data()});
  cpu::pack({flat.data() + offset, kHidden, kHidden, kHidden, true, transposed.data()});
}

// The matrix [columns][k] at `offset`.
void CpuParameters::prepare_matrix(size_t offset, int columns, int k, PackedMatrix& matrix) {
  matrix.forward.resize(static_cast<size_t>(columns) * k);
  matrix.backward.resize(matrix.forward.size());
  cpu::pack({flat.data() + offset, k, columns, k, false, matrix.forward.data()});
  cpu::pack({flat.data() + offset, k, k, columns, true, matrix.backward.data()});
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

void CpuParameters::prepare() {
  if (config.encoder == Encoder::kLstm) {
    prepare_lstm(layout.encoder, encoder);
  } else {
    prepare_attention_encoder();
  }
  prepare_lstm(layout.decoder, decoder);
  decoder_start_bias.resize(kGates);
  fold_input(layout.decoder.weight_ih, layout.decoder.start, 1, decoder_start_bias.data());
  for (int j = 0; j < kGates; ++j) decoder_start_bias[j] += decoder.bias[j];
  prepare_square(layout.query, query, query_t);

  const int width = projections.count * kHidden;
  const auto tensors = projection_tensors(layout, projections);
  AlignedFloats stacked(static_cast<size_t>(projections.count) * kSquare);
  for (int i = 0; i < projections.count; ++i) {
    std::copy_n(flat.begin() + tensors[i], kSquare, stacked.begin() + i * kSquare);
  }
  references.resize(stacked.size());
  references_t.resize(stacked.size());
  cpu::pack({stacked.data(), kHidden, width, kHidden, false, references.data()});
  cpu::pack({stacked.data(), kHidden, kHidden, width, true, references_t.data()});

  if (!config.has_critic) return;
  const ParameterLayout::Critic& critic = layout.critic;
  prepare_lstm(critic.encoder, critic_encoder);
  prepare_square(critic.process.w_ref, critic_reference, critic_reference_t);
  prepare_square(critic.process.w_q, critic_query, critic_query_t);
  prepare_square(critic.fc1_weight, critic_fc1, critic_fc1_t);
}

}  // namespace pointsman
