// SPDX-License-Identifier: Apache-2.0
#include "models/parameter_layout.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/common/philox.h"
#include "kernels/common/rules.h"

namespace pointsman {
namespace {

// Appends tensors to a layout. Braces keep the order.
struct Appender {
  ParameterLayout& layout;
  int hidden, features;

  size_t tensor(std::string name, std::vector<int> shape) const {
    Tensor tensor{std::move(name), std::move(shape), layout.size, 1};
    for (const int extent : tensor.shape) tensor.size *= static_cast<size_t>(extent);
    layout.size += tensor.size;
    layout.tensors.push_back(std::move(tensor));
    return layout.tensors.back().offset;
  }

  LstmOffsets lstm(const std::string& name, size_t input) const {
    return {.embedding = static_cast<int64_t>(input),
            .weight_ih = static_cast<int64_t>(tensor(name + ".weight_ih", {4 * hidden, hidden})),
            .weight_hh = static_cast<int64_t>(tensor(name + ".weight_hh", {4 * hidden, hidden})),
            .bias = static_cast<int64_t>(tensor(name + ".bias", {4 * hidden})),
            .features = features};
  }

  AttentionOffsets attention(const std::string& name) const {
    return {.w_ref = tensor(name + ".w_ref", {hidden, hidden}),
            .w_q = tensor(name + ".w_q", {hidden, hidden}),
            .v = tensor(name + ".v", {hidden})};
  }

  EncoderLayerOffsets encoder_layer(const std::string& name, int feed_forward) const {
    return {.norm1_weight = tensor(name + ".norm1.weight", {hidden}),
            .norm1_bias = tensor(name + ".norm1.bias", {hidden}),
            .in_weight = tensor(name + ".attention.in_proj_weight", {3 * hidden, hidden}),
            .in_bias = tensor(name + ".attention.in_proj_bias", {3 * hidden}),
            .out_weight = tensor(name + ".attention.out_proj.weight", {hidden, hidden}),
            .out_bias = tensor(name + ".attention.out_proj.bias", {hidden}),
            .norm2_weight = tensor(name + ".norm2.weight", {hidden}),
            .norm2_bias = tensor(name + ".norm2.bias", {hidden}),
            .linear1_weight = tensor(name + ".linear1.weight", {feed_forward, hidden}),
            .linear1_bias = tensor(name + ".linear1.bias", {feed_forward}),
            .linear2_weight = tensor(name + ".linear2.weight", {hidden, feed_forward}),
            .linear2_bias = tensor(name + ".linear2.bias", {hidden})};
  }
};

// Of uniform parameters in (-bound, bound): the embedding and the attention encoder's matrices to U(-1, 1) /
// sqrt(inputs), its norms to 1, its biases to 0.
void start_attention_encoder(const ParameterLayout& layout, float bound, std::vector<float>& parameters) {
  for (const Tensor& tensor : layout.tensors) {
    const bool inside = tensor.offset >= layout.attention_begin && tensor.offset < layout.attention_end;
    const bool is_input = tensor.offset == layout.embedding ||
                          (layout.decoder.contexts > 0 && tensor.offset == size_t(layout.decoder.context));
    if (!inside && !is_input) continue;
    const auto begin = parameters.begin() + static_cast<int64_t>(tensor.offset);
    const auto end = begin + static_cast<int64_t>(tensor.size);
    if (tensor.shape.size() == 2) {
      const float factor = 1.0f / (bound * std::sqrt(static_cast<float>(tensor.shape[1])));
      for (auto p = begin; p != end; ++p) *p *= factor;
    } else {
      std::fill(begin, end,
                tensor.name.find(".norm") != std::string::npos && tensor.name.ends_with("weight"));
    }
  }
}

}  // namespace

int priors_of(const ModelConfig& config) {
  if (!config.has_prior) return 0;
  return with_rules(config.decoded(), []<typename Rules>() { return Rules::kPriors; });
}

ParameterLayout::ParameterLayout(const ModelConfig& config) {
  const int hidden = config.hidden, own = config.own.width();
  const int features = own > 0 ? own : feature_count(config.decoded());
  const int contexts = own > 0 ? own : context_count(config.decoded());
  const Appender add{*this, hidden, features};
  embedding = add.tensor("actor.embedding.weight", {hidden, features});
  const size_t first_input = add.tensor("actor.decoder.start", {hidden});
  const size_t context = contexts > 0 ? add.tensor("actor.decoder.context.weight", {hidden, contexts}) : 0;
  if (config.encoder == Encoder::kLstm) {
    encoder = add.lstm("actor.encoder", embedding);
  } else {
    attention_begin = size;
    for (int l = 0; l < config.layers; ++l)
      layers.push_back(add.encoder_layer("actor.encoder.layers." + std::to_string(l), config.feed_forward));
    start = {.h_weight = add.tensor("actor.start.h.weight", {hidden, hidden}),
             .h_bias = add.tensor("actor.start.h.bias", {hidden}),
             .c_weight = add.tensor("actor.start.c.weight", {hidden, hidden}),
             .c_bias = add.tensor("actor.start.c.bias", {hidden})};
    attention_end = size;
  }
  decoder = add.lstm("actor.decoder", embedding);
  decoder.start = static_cast<int64_t>(first_input);
  decoder.context = static_cast<int64_t>(context);
  decoder.contexts = contexts;
  if (config.glimpses > 0) glimpse = add.attention("actor.glimpse");
  pointer = add.attention("actor.pointer");
  query = config.glimpses > 0 ? glimpse.w_q : pointer.w_q;
  priors = priors_of(config);
  if (priors > 0) prior = add.tensor("actor.prior.weight", {priors});
  actor_size = size;
  if (!config.has_critic) return;
  critic.encoder = add.lstm("critic.encoder", add.tensor("critic.embedding.weight", {hidden, features}));
  critic.process = add.attention("critic.process");
  critic.fc1_weight = add.tensor("critic.head.fc1.weight", {hidden, hidden});
  critic.fc1_bias = add.tensor("critic.head.fc1.bias", {hidden});
  critic.fc2_weight = add.tensor("critic.head.fc2.weight", {1, hidden});
  critic.fc2_bias = add.tensor("critic.head.fc2.bias", {1});
}

std::vector<float> initial_parameters(const ModelConfig& config, uint64_t seed) {
  constexpr float kBound = 0.08f;
  const ParameterLayout layout(config);
  std::vector<float> parameters(layout.size);
  for (size_t i = 0; i < parameters.size(); i += 4) {
    const PhiloxBlock block = philox4x32(seed ^ stream::kInitialisation, 0, i / 4);
    for (size_t j = i; j < i + 4 && j < parameters.size(); ++j)
      parameters[j] = kBound * (2.0f * uniform_from_word(block.word[j - i]) - 1.0f);
  }
  if (config.has_critic) parameters[layout.critic.fc2_bias] = 0.0f;
  if (config.encoder == Encoder::kAttention) start_attention_encoder(layout, kBound, parameters);
  if (config.has_prior) {
    with_rules(config.decoded(), [&]<typename Rules>() {
      for (int k = 0; k < Rules::kPriors; ++k) parameters[layout.prior + k] = Rules::prior_start(k, config.n);
    });
  }
  return parameters;
}

void rescale_prior(const ModelConfig& config, const ModelConfig& from, std::vector<float>& parameters) {
  const size_t prior = ParameterLayout(config).prior;
  const auto start = [](const ModelConfig& model, int k) {
    return with_rules(model.decoded(), [&]<typename Rules>() { return Rules::prior_start(k, model.n); });
  };
  for (int k = 0; k < priors_of(config); ++k) {
    const float before = start(from, k);
    if (before != 0.0f) parameters[prior + k] *= start(config, k) / before;
  }
}

}  // namespace pointsman
