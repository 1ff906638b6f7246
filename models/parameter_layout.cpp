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
    Tensor tensor{std::move(name), std::move(shape), layout_.size, 1};
    for (const int extent : tensor.shape) tensor.size *= static_cast<size_t>(extent);
    layout_.size += tensor.size;
    layout_.tensors.push_back(std::move(tensor));
    return layout_.tensors.back().offset;
  }

  LstmOffsets add_lstm(const std::string& name, size_t embedding, int hidden) {
    LstmOffsets lstm{};
    lstm.embedding = static_cast<int64_t>(embedding);
    lstm.weight_ih = static_cast<int64_t>(add(name + ".weight_ih", {4 * hidden, hidden}));
    lstm.weight_hh = static_cast<int64_t>(add(name + ".weight_hh", {4 * hidden, hidden}));
    lstm.bias = static_cast<int64_t>(add(name + ".bias", {4 * hidden}));
    return lstm;
  }

  AttentionOffsets add_attention(const std::string& name, int hidden) {
    AttentionOffsets attention{};
    attention.w_ref = add(name + ".w_ref", {hidden, hidden});
    attention.w_q = add(name + ".w_q", {hidden, hidden});
    attention.v = add(name + ".v", {hidden});
    return attention;
  }

 private:
  ParameterLayout& layout_;
};

}  // namespace

ParameterLayout::ParameterLayout(const ModelConfig& config) {
  const int hidden = config.hidden;
  Appender appender(*this);
  const size_t embedding = appender.add("actor.embedding.weight", {hidden, 2});
  const size_t start = appender.add("actor.decoder.start", {hidden});
  encoder = appender.add_lstm("actor.encoder", embedding, hidden);
  decoder = appender.add_lstm("actor.decoder", embedding, hidden);
  decoder.start = static_cast<int64_t>(start);
  if (config.glimpses > 0) glimpse = appender.add_attention("actor.glimpse", hidden);
  pointer = appender.add_attention("actor.pointer", hidden);
  query = config.glimpses > 0 ? glimpse.w_q : pointer.w_q;
  actor_size = size;
  if (!config.has_critic) return;
  const size_t critic_embedding = appender.add("critic.embedding.weight", {hidden, 2});
  critic.encoder = appender.add_lstm("critic.encoder", critic_embedding, hidden);
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
