// SPDX-License-Identifier: Apache-2.0
#include "models/parameter_layout.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/common/philox.h"
#include "kernels/common/rules.h"

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

  EncoderLayerOffsets add_encoder_layer(const std::string& name, int hidden, int feed_forward) {
    EncoderLayerOffsets layer{};
    layer.norm1_weight = add(name + ".norm1.weight", {hidden});
    layer.norm1_bias = add(name + ".norm1.bias", {hidden});
    layer.in_weight = add(name + ".attention.in_proj_weight", {3 * hidden, hidden});
    layer.in_bias = add(name + ".attention.in_proj_bias", {3 * hidden});
    layer.out_weight = add(name + ".attention.out_proj.weight", {hidden, hidden});
    layer.out_bias = add(name + ".attention.out_proj.bias", {hidden});
    layer.norm2_weight = add(name + ".norm2.weight", {hidden});
    layer.norm2_bias = add(name + ".norm2.bias", {hidden});
    layer.linear1_weight = add(name + ".linear1.weight", {feed_forward, hidden});
    layer.linear1_bias = add(name + ".linear1.bias", {feed_forward});
    layer.linear2_weight = add(name + ".linear2.weight", {hidden, feed_forward});
    layer.linear2_bias = add(name + ".linear2.bias", {hidden});
    return layer;
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
  embedding = appender.add("actor.embedding.weight", {hidden, 2});
  const size_t first_input = appender.add("actor.decoder.start", {hidden});
  if (config.encoder == Encoder::kLstm) {
    encoder = appender.add_lstm("actor.encoder", embedding, hidden);
  } else {
    attention_begin = size;
    for (int l = 0; l < config.layers; ++l) {
      layers.push_back(appender.add_encoder_layer("actor.encoder.layers." + std::to_string(l), hidden,
                                                  config.feed_forward));
    }
    start.h_weight = appender.add("actor.start.h.weight", {hidden, hidden});
    start.h_bias = appender.add("actor.start.h.bias", {hidden});
    start.c_weight = appender.add("actor.start.c.weight", {hidden, hidden});
    start.c_bias = appender.add("actor.start.c.bias", {hidden});
    attention_end = size;
  }
  decoder = appender.add_lstm("actor.decoder", embedding, hidden);
  decoder.start = static_cast<int64_t>(first_input);
  if (config.glimpses > 0) glimpse = appender.add_attention("actor.glimpse", hidden);
  pointer = appender.add_attention("actor.pointer", hidden);
  query = config.glimpses > 0 ? glimpse.w_q : pointer.w_q;
  if (config.has_prior) {
    priors = with_rules(config.problem, []<typename Rules>() { return Rules::kPriors; });
    prior = appender.add("actor.prior.weight", {priors});
  }
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
  // The attention encoder's matrices from U(-1, 1) / sqrt(inputs), its norms from 1, its biases from 0.
  for (const Tensor& tensor : layout.tensors) {
    if (tensor.offset < layout.attention_begin || tensor.offset >= layout.attention_end) continue;
    const auto begin = parameters.begin() + static_cast<int64_t>(tensor.offset);
    const auto end = begin + static_cast<int64_t>(tensor.size);
    if (tensor.shape.size() == 2) {
      const float factor = 1.0f / (kBound * std::sqrt(static_cast<float>(tensor.shape[1])));
      for (auto p = begin; p != end; ++p) *p *= factor;
    } else {
      std::fill(begin, end, tensor.name.find(".norm") != std::string::npos && tensor.name.ends_with("weight"));
    }
  }
  if (config.has_prior) {
    with_rules(config.problem, [&]<typename Rules>() {
      for (int k = 0; k < Rules::kPriors; ++k)
        parameters[layout.prior + k] = Rules::prior_start(k, config.n);
    });
  }
  return parameters;
}

}  // namespace pointsman
