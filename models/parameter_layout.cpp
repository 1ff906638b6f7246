// SPDX-License-Identifier: Apache-2.0
#include "models/parameter_layout.h"

#include <utility>

#include "kernels/common/philox.h"

namespace pointsman {
namespace {

class Appender {
 public:
  explicit Appender(ParameterLayout& layout) : layout_(layout) {}

  size_t add(std::string name, std::vector<int> shape) {
    TensorSlot slot{std::move(name), std::move(shape), layout_.size, 1};
    for (const int extent : slot.shape) slot.size *= static_cast<size_t>(extent);
    layout_.size += slot.size;
    layout_.tensors.push_back(std::move(slot));
    return layout_.tensors.back().offset;
  }

  LstmSlots add_lstm(const std::string& name, int hidden) {
    LstmSlots slots{};
    slots.weight_ih = add(name + ".weight_ih", {4 * hidden, hidden});
    slots.weight_hh = add(name + ".weight_hh", {4 * hidden, hidden});
    slots.bias = add(name + ".bias", {4 * hidden});
    return slots;
  }

  AttentionSlots add_attention(const std::string& name, int hidden) {
    AttentionSlots slots{};
    slots.w_ref = add(name + ".w_ref", {hidden, hidden});
    slots.w_q = add(name + ".w_q", {hidden, hidden});
    slots.v = add(name + ".v", {hidden});
    return slots;
  }

 private:
  ParameterLayout& layout_;
};

}  // namespace

ParameterLayout::ParameterLayout(const ModelConfig& config) {
  const int hidden = config.hidden;
  Appender appender(*this);
  embedding = appender.add("actor.embedding.weight", {hidden, 2});
  decoder_start = appender.add("actor.decoder.start", {hidden});
  encoder = appender.add_lstm("actor.encoder", hidden);
  decoder = appender.add_lstm("actor.decoder", hidden);
  if (config.glimpses > 0) glimpse = appender.add_attention("actor.glimpse", hidden);
  pointer = appender.add_attention("actor.pointer", hidden);
  actor_size = size;
  if (!config.has_critic) return;
  critic.embedding = appender.add("critic.embedding.weight", {hidden, 2});
  critic.encoder = appender.add_lstm("critic.encoder", hidden);
  critic.process = appender.add_attention("critic.process", hidden);
  critic.fc1_weight = appender.add("critic.head.fc1.weight", {hidden, hidden});
  critic.fc1_bias = appender.add("critic.head.fc1.bias", {hidden});
  critic.fc2_weight = appender.add("critic.head.fc2.weight", {1, hidden});
  critic.fc2_bias = appender.add("critic.head.fc2.bias", {1});
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
