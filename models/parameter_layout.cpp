// SPDX-License-Identifier: Apache-2.0
#include "models/parameter_layout.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/common/philox.h"
#include "kernels/common/rules.h"

namespace pointsman {

ParameterLayout::ParameterLayout(const ModelConfig& config) {
  const int hidden = config.hidden;
  const auto add = [this](std::string name, std::vector<int> shape) {
    Tensor tensor{std::move(name), std::move(shape), size, 1};
    for (const int extent : tensor.shape) tensor.size *= static_cast<size_t>(extent);
    size += tensor.size;
    tensors.push_back(std::move(tensor));
    return tensors.back().offset;
  };
  const auto add_lstm = [&](const std::string& name, size_t input) {
    LstmOffsets lstm{};
    lstm.embedding = static_cast<int64_t>(input);
    lstm.weight_ih = static_cast<int64_t>(add(name + ".weight_ih", {4 * hidden, hidden}));
    lstm.weight_hh = static_cast<int64_t>(add(name + ".weight_hh", {4 * hidden, hidden}));
    lstm.bias = static_cast<int64_t>(add(name + ".bias", {4 * hidden}));
    return lstm;
  };
  const auto add_attention = [&](const std::string& name) {  // braces keep the order
    return AttentionOffsets{.w_ref = add(name + ".w_ref", {hidden, hidden}),
                            .w_q = add(name + ".w_q", {hidden, hidden}),
                            .v = add(name + ".v", {hidden})};
  };
  const auto add_encoder_layer = [&](const std::string& name) {
    return EncoderLayerOffsets{.norm1_weight = add(name + ".norm1.weight", {hidden}),
                               .norm1_bias = add(name + ".norm1.bias", {hidden}),
                               .in_weight = add(name + ".attention.in_proj_weight", {3 * hidden, hidden}),
                               .in_bias = add(name + ".attention.in_proj_bias", {3 * hidden}),
                               .out_weight = add(name + ".attention.out_proj.weight", {hidden, hidden}),
                               .out_bias = add(name + ".attention.out_proj.bias", {hidden}),
                               .norm2_weight = add(name + ".norm2.weight", {hidden}),
                               .norm2_bias = add(name + ".norm2.bias", {hidden}),
                               .linear1_weight = add(name + ".linear1.weight", {config.feed_forward, hidden}),
                               .linear1_bias = add(name + ".linear1.bias", {config.feed_forward}),
                               .linear2_weight = add(name + ".linear2.weight", {hidden, config.feed_forward}),
                               .linear2_bias = add(name + ".linear2.bias", {hidden})};
  };
  embedding = add("actor.embedding.weight", {hidden, 2});
  const size_t first_input = add("actor.decoder.start", {hidden});
  if (config.encoder == Encoder::kLstm) {
    encoder = add_lstm("actor.encoder", embedding);
  } else {
    attention_begin = size;
    for (int l = 0; l < config.layers; ++l)
      layers.push_back(add_encoder_layer("actor.encoder.layers." + std::to_string(l)));
    start = {.h_weight = add("actor.start.h.weight", {hidden, hidden}),
             .h_bias = add("actor.start.h.bias", {hidden}),
             .c_weight = add("actor.start.c.weight", {hidden, hidden}),
             .c_bias = add("actor.start.c.bias", {hidden})};
    attention_end = size;
  }
  decoder = add_lstm("actor.decoder", embedding);
  decoder.start = static_cast<int64_t>(first_input);
  if (config.glimpses > 0) glimpse = add_attention("actor.glimpse");
  pointer = add_attention("actor.pointer");
  query = config.glimpses > 0 ? glimpse.w_q : pointer.w_q;
  if (config.has_prior) {
    priors = with_rules(config.problem, []<typename Rules>() { return Rules::kPriors; });
    prior = add("actor.prior.weight", {priors});
  }
  actor_size = size;
  if (!config.has_critic) return;
  critic.encoder = add_lstm("critic.encoder", add("critic.embedding.weight", {hidden, 2}));
  critic.process = add_attention("critic.process");
  critic.fc1_weight = add("critic.head.fc1.weight", {hidden, hidden});
  critic.fc1_bias = add("critic.head.fc1.bias", {hidden});
  critic.fc2_weight = add("critic.head.fc2.weight", {1, hidden});
  critic.fc2_bias = add("critic.head.fc2.bias", {1});
}

std::vector<float> initial_parameters(const ModelConfig& config, uint64_t seed) {
  constexpr float kBound = 0.08f;
  const ParameterLayout layout(config);
  std::vector<float> parameters(layout.size);
  for (size_t i = 0; i < parameters.size(); i += 4) {
    const PhiloxBlock block = philox4x32(seed ^ stream::kInitialisation, 0, i / 4);
    for (size_t j = i; j < i + 4 && j < parameters.size(); ++j) {
      parameters[j] = kBound * (2.0f * uniform_from_word(block.word[j - i]) - 1.0f);
    }
  }
  if (config.has_critic) parameters[layout.critic.fc2_bias] = 0.0f;
  // The attention encoder's matrices from U(-1, 1) / sqrt(inputs), its norms from 1, its biases from 0.
  for (const Tensor& tensor : layout.tensors) {
    const bool embedding = !layout.layers.empty() && tensor.offset == layout.embedding;
    if (!embedding && (tensor.offset < layout.attention_begin || tensor.offset >= layout.attention_end))
      continue;
    const auto begin = parameters.begin() + static_cast<int64_t>(tensor.offset);
    const auto end = begin + static_cast<int64_t>(tensor.size);
    if (tensor.shape.size() == 2) {
      const float factor = 1.0f / (kBound * std::sqrt(static_cast<float>(tensor.shape[1])));
      for (auto p = begin; p != end; ++p) *p *= factor;
    } else {
      std::fill(begin, end,
                tensor.name.find(".norm") != std::string::npos && tensor.name.ends_with("weight"));
    }
  }
  if (config.has_prior) {
    with_rules(config.problem, [&]<typename Rules>() {
      for (int k = 0; k < Rules::kPriors; ++k) parameters[layout.prior + k] = Rules::prior_start(k, config.n);
    });
  }
  return parameters;
}

void rescale_prior(const ModelConfig& config, int from, std::vector<float>& parameters) {
  if (!config.has_prior) return;
  const size_t prior = ParameterLayout(config).prior;
  with_rules(config.problem, [&]<typename Rules>() {
    for (int k = 0; k < Rules::kPriors; ++k) {
      const float before = Rules::prior_start(k, from);
      if (before != 0.0f) parameters[prior + k] *= Rules::prior_start(k, config.n) / before;
    }
  });
}

}  // namespace pointsman
