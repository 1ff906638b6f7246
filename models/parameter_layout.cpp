// SPDX-License-Identifier: Apache-2.0
#include "models/parameter_layout.h"

#include <utility>

#include "kernels/common/philox.h"

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
  const auto add_lstm = [&](const std::string& name, size_t embedding) {
    LstmOffsets lstm{};
    lstm.embedding = static_cast<int64_t>(embedding);
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
  const size_t embedding = add("actor.embedding.weight", {hidden, 2});
  const size_t start = add("actor.decoder.start", {hidden});
  encoder = add_lstm("actor.encoder", embedding);
  decoder = add_lstm("actor.decoder", embedding);
  decoder.start = static_cast<int64_t>(start);
  if (config.glimpses > 0) glimpse = add_attention("actor.glimpse");
  pointer = add_attention("actor.pointer");
  query = config.glimpses > 0 ? glimpse.w_q : pointer.w_q;
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
  return parameters;
}

}  // namespace pointsman
