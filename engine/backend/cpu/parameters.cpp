// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/parameters.h"

#include <algorithm>
#include <cmath>

namespace pointsman {

CpuParameters::CpuParameters(const ModelConfig& config_, const ParameterLayout& layout_)
    : config(config_),
      layout(layout_),
      projections(projections_of(config.glimpses)),
      flat(layout.size),
      products(config, layout) {}

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
  pack(flat.data() + from.weight_hh, kGates, kHidden, lstm.recurrent);
  lstm.bias.assign(flat.begin() + from.bias, flat.begin() + from.bias + kGates);
  lstm.inputs = from.inputs();
  lstm.fold.resize(static_cast<size_t>(lstm.inputs) * kGates);
  fold_input(from.weight_ih, from.embedding, from.features, lstm.fold.data());
  float* const rest = lstm.fold.data() + static_cast<size_t>(from.features) * kGates;
  if (from.contexts > 0) fold_input(from.weight_ih, from.context, from.contexts, rest);
}

// fold [width][4H] = (W_ih X)^T, X [H][width] at `input`; width at most 16.
void CpuParameters::fold_input(int64_t weight_ih, int64_t input, int width, float* fold) const {
  constexpr int kPanel = 16;
  AlignedFloats panel(kPanel * kHidden, 0.0f), product(kPanel * kGates);
  for (int d = 0; d < kHidden; ++d) {
    std::copy_n(flat.data() + input + d * width, width, panel.data() + d * kPanel);
  }
  cpu::multiply({flat.data() + weight_ih, kHidden, panel.data(), product.data(), kPanel, kGates, kHidden,
                 kPanel, false});
  for (int i = 0; i < width; ++i) {
    for (int j = 0; j < kGates; ++j) fold[i * kGates + j] = product[j * kPanel + i];
  }
}

// The matrix [columns][k].
void CpuParameters::pack(const float* matrix, int columns, int k, PackedMatrix& packed) {
  packed.forward.resize(static_cast<size_t>(columns) * k);
  to_pack_.push_back({matrix, k, columns, k, false, packed.forward.data()});
  if (!learns()) return;
  packed.backward.resize(packed.forward.size());
  to_pack_.push_back({matrix, k, k, columns, true, packed.backward.data()});
}

void CpuParameters::prepare(WorkerThreads* helpers) {
  to_pack_.clear();
  if (config.encoder == Encoder::kLstm) {
    prepare_lstm(layout.encoder, encoder);
  } else {
    const int width = layout.decoder.features;
    embedding.resize(static_cast<size_t>(width) * kHidden);
    for (int d = 0; d < kHidden; ++d) {
      for (int i = 0; i < width; ++i) embedding[i * kHidden + d] = flat[layout.embedding + width * d + i];
    }
  }
  products.for_each([this](auto& linear) {
    pack(flat.data() + linear.weight, linear.columns, linear.depth, linear.matrix);
  });
  prepare_lstm(layout.decoder, decoder);
  decoder_start_bias.resize(kGates);
  fold_input(layout.decoder.weight_ih, layout.decoder.start, 1, decoder_start_bias.data());
  for (int j = 0; j < kGates; ++j) decoder_start_bias[j] += decoder.bias[j];
  const auto square = [this](size_t offset, PackedMatrix& packed) {
    pack(flat.data() + offset, kHidden, kHidden, packed);
  };
  square(layout.query, query);
  const auto tensors = projection_tensors(layout, projections);
  AlignedFloats stacked(static_cast<size_t>(projections.count) * kSquare);
  for (int i = 0; i < projections.count; ++i) {
    std::copy_n(flat.begin() + tensors[i], kSquare, stacked.begin() + i * kSquare);
  }
  pack(stacked.data(), projections.count * kHidden, kHidden, references);
  if (config.has_critic) {
    const ParameterLayout::Critic& critic = layout.critic;
    prepare_lstm(critic.encoder, critic_encoder);
    square(critic.process.w_ref, critic_reference);
    square(critic.process.w_q, critic_query);
    square(critic.fc1_weight, critic_fc1);
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
  norms.actor = step_range(arrays, 0, layout.actor_size, ++actor_steps, request, helpers);
  if (request.critic && layout.size > layout.actor_size) {
    norms.critic = step_range(arrays, layout.actor_size, layout.size, ++critic_steps, request, helpers);
  } else {
    std::fill(arrays.gradient + layout.actor_size, arrays.gradient + layout.size, 0.0f);
  }
  return norms;
}

}  // namespace pointsman
