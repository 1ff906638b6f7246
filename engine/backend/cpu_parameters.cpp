// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu_parameters.h"

#include <algorithm>

#include "kernels/cpu/cpu_operations.h"

namespace pointsman {

static_assert(kHidden == kHiddenSize);

ReferenceSlots reference_slots(const ModelConfig& config) {
  ReferenceSlots slots;
  if (config.glimpses > 0) slots.glimpse = slots.count++;
  slots.pointer = slots.count++;
  if (config.glimpses > 0) slots.values = slots.count++;
  if (config.glimpses > 1) slots.requeries = slots.count++;
  return slots;
}

CpuParameters::CpuParameters(const ModelConfig& config, const ParameterLayout& layout)
    : flat(layout.size),
      first_moment(layout.size),
      second_moment(layout.size),
      gradient(layout.size),
      config_(config),
      layout_(layout) {}

void CpuParameters::prepare_lstm(const LstmSlots& slots, size_t embedding, PackedLstm& lstm) {
  const float* w_hh = flat.data() + slots.weight_hh;
  lstm.recurrent.resize(static_cast<size_t>(kGates) * kHidden);
  lstm.recurrent_t.resize(lstm.recurrent.size());
  cpu::pack({w_hh, kHidden, kGates, kHidden, false, lstm.recurrent.data()});
  cpu::pack({w_hh, kHidden, kHidden, kGates, true, lstm.recurrent_t.data()});
  lstm.bias.assign(flat.begin() + slots.bias, flat.begin() + slots.bias + kGates);
  lstm.fold.resize(2 * kGates);
  fold_input(slots.weight_ih, embedding, 2, lstm.fold.data());
}

// fold [width][4H] = (W_ih X)^T, X [H][width] at `input`.
void CpuParameters::fold_input(size_t weight_ih, size_t input, int width, float* fold) const {
  constexpr int kPanel = 16;
  AlignedFloats panel(static_cast<size_t>(kPanel) * kHidden, 0.0f),
      products(static_cast<size_t>(kPanel) * kGates);
  for (int d = 0; d < kHidden; ++d) {
    std::copy_n(flat.data() + input + static_cast<size_t>(d) * width, width, panel.data() + d * kPanel);
  }
  cpu::multiply({flat.data() + weight_ih, kHidden, panel.data(), products.data(), kPanel, kGates, kHidden,
                 kPanel, false});
  for (int i = 0; i < width; ++i) {
    for (int j = 0; j < kGates; ++j) fold[i * kGates + j] = products[j * kPanel + i];
  }
}

void CpuParameters::prepare_square(size_t offset, AlignedFloats& packed, AlignedFloats& transposed) {
  packed.resize(static_cast<size_t>(kHidden) * kHidden);
  transposed.resize(packed.size());
  cpu::pack({flat.data() + offset, kHidden, kHidden, kHidden, false, packed.data()});
  cpu::pack({flat.data() + offset, kHidden, kHidden, kHidden, true, transposed.data()});
}

void CpuParameters::prepare() {
  prepare_lstm(layout_.encoder, layout_.embedding, encoder);
  prepare_lstm(layout_.decoder, layout_.embedding, decoder);
  decoder_start_bias.resize(kGates);
  fold_input(layout_.decoder.weight_ih, layout_.decoder_start, 1, decoder_start_bias.data());
  for (int j = 0; j < kGates; ++j) decoder_start_bias[j] += decoder.bias[j];
  prepare_square(config_.glimpses > 0 ? layout_.glimpse.w_q : layout_.pointer.w_q, query, query_t);

  const ReferenceSlots slots = reference_slots(config_);
  AlignedFloats stacked(static_cast<size_t>(slots.count) * kHidden * kHidden);
  const auto stack = [&](int slot, size_t offset) {
    if (slot < 0) return;
    std::copy_n(flat.begin() + offset, kHidden * kHidden,
                stacked.begin() + static_cast<size_t>(slot) * kHidden * kHidden);
  };
  stack(slots.glimpse, layout_.glimpse.w_ref);
  stack(slots.pointer, layout_.pointer.w_ref);
  stack(slots.values, layout_.pointer.w_q);
  stack(slots.requeries, layout_.glimpse.w_q);
  references.resize(stacked.size());
  references_t.resize(stacked.size());
  cpu::pack({stacked.data(), kHidden, slots.count * kHidden, kHidden, false, references.data()});
  cpu::pack({stacked.data(), kHidden, kHidden, slots.count * kHidden, true, references_t.data()});

  if (!config_.has_critic) return;
  const ParameterLayout::Critic& critic = layout_.critic;
  prepare_lstm(critic.encoder, critic.embedding, critic_encoder);
  prepare_square(critic.process.w_ref, critic_reference, critic_reference_t);
  prepare_square(critic.process.w_q, critic_query, critic_query_t);
  prepare_square(critic.fc1_weight, critic_fc1, critic_fc1_t);
}

}  // namespace pointsman
