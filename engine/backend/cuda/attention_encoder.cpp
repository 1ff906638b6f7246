// SPDX-License-Identifier: Apache-2.0
// The layers and the start state are those of cpu/attention_encoder.cpp.
#include <algorithm>

#include "engine/backend/cuda/forward.h"

namespace pointsman::cuda {

AttentionStates::AttentionStates(Placement& placement, const ModelConfig& config, const ChunkShape& shape,
                                 bool record)
    : layers(record ? config.layers : 1) {
  const size_t s = shape.sequences, rows = s * shape.n, wide = config.feed_forward;
  const auto take = [&](size_t width) { return placement.take<float>(rows * width); };
  normed = take(kHidden);
  for (Layer& layer : layers) {
    layer.x = take(kHidden);
    layer.residual = take(kHidden);
    layer.qkv = take(record ? 3 * kHidden : std::max<size_t>(3 * kHidden, wide));
    // Without `record` each goes where what it is made after is no longer needed.
    layer.attended = record ? take(kHidden) : normed;
    layer.hidden = record ? take(wide) : layer.qkv;
    layer.softmax = record ? take(2 * static_cast<size_t>(config.heads)) : nullptr;
  }
  for (float** vectors : {&mean, &start_h, &start_c}) *vectors = placement.take<float>(s * kHidden);
}

AttentionGradients::AttentionGradients(Placement& placement, const ModelConfig& config,
                                       const ChunkShape& shape) {
  const size_t s = shape.sequences, rows = s * shape.n, wide = config.feed_forward;
  const auto take = [&](size_t width) { return placement.take<float>(rows * width); };
  dx = take(kHidden);
  normed = take(kHidden);
  dnormed = dattended = take(kHidden);
  dqkv = dhidden = take(std::max<size_t>(3 * kHidden, wide));
  means = take(config.heads);
  ones = take(1);
  for (float** vectors : {&dmean, &dstart_h, &dstart_c}) *vectors = placement.take<float>(s * kHidden);
}

namespace {

using Linear = EncoderProducts<MutableSetArray>::Linear;

struct AttentionForward {
  const DeviceStream& stream;
  const ChunkShape& shape;
  const ChunkArrays& inputs;
  const AttentionStates& states;
  float* const output;
  const CudaParameters& p = *stream.device.parameters;
  const ParameterLayout& layout = *stream.device.layout;

  void run() const {
    embed({p.tensor(layout.embedding), inputs.features, shape.width, states.layers[0].x,
           inputs.sequence_ranges, shape.n},
          stream.get());
    const size_t layers = p.products.layers.size();
    const bool record = states.layers.size() == layers;
    for (size_t l = 0; l < layers; ++l) {
      const AttentionStates::Layer& layer = states.layers[record ? l : 0];
      const bool last = l + 1 == layers;
      // A layer reads x to its end only as `residual`, so that without all layers the next x goes over it.
      forward(l, layer, last ? output : record ? states.layers[l + 1].x : layer.x, last);
    }
    mean_items({output, states.mean, shape.sequences, shape.n}, stream.get());
    LinearArgs h = product(p.products.start_h, states.mean, nullptr, states.start_h);
    LinearArgs c = product(p.products.start_c, states.mean, nullptr, states.start_c);
    h.function = LinearArgs::Function::kTanh;
    h.items = c.items = 1;
    linear(h, stream.get());
    linear(c, stream.get());
  }

  void forward(size_t l, const AttentionStates::Layer& to, float* next, bool last) const {
    const EncoderLayerOffsets& at = layout.layers[l];
    const auto& layer = p.products.layers[l];
    norm(to.x, at.norm1_weight, at.norm1_bias);
    linear(product(layer.in, states.normed, nullptr, to.qkv), stream.get());
    cuda::self_attention({to.qkv, to.attended, to.softmax, shape.sequences, shape.n,
                          stream.device.config.heads, stream.device.precision},
                         stream.get());
    linear(product(layer.out, to.attended, to.x, to.residual), stream.get());
    norm(to.residual, at.norm2_weight, at.norm2_bias);
    LinearArgs hidden = product(layer.linear1, states.normed, nullptr, to.hidden);
    hidden.function = LinearArgs::Function::kRelu;
    linear(hidden, stream.get());
    LinearArgs out = product(layer.linear2, to.hidden, to.residual, next);
    out.to_states = last;
    linear(out, stream.get());
  }

  void norm(const float* x, size_t weight, size_t bias) const {
    layer_norm({x, p.tensor(weight), p.tensor(bias), states.normed, inputs.sequence_ranges, shape.n},
               stream.get());
  }

  // base null: none.
  LinearArgs product(const Linear& layer, const float* x, const float* base, float* y) const {
    constexpr auto kNone = LinearArgs::Function::kNone;
    return {layer.matrix, p.tensor(layer.bias),   x,     base,  y,
            layer.depth,  layer.columns,          kNone, false, inputs.sequence_ranges,
            shape.n,      stream.device.precision};
  }
};

struct AttentionBackward {
  const MainStream& main;
  const ChunkPlan& plan;
  const ChunkArrays& inputs;
  const AttentionStates& states;
  const AttentionGradients& a;
  const int n = plan.shape.n;
  const CudaParameters& p = *main.device.parameters;
  const ParameterLayout& layout = *main.device.layout;

  void run(const float* dh) const {
    fill(a.ones, 1.0f, rows(), main.get());
    start(dh);
    for (int l = static_cast<int>(p.products.layers.size()) - 1; l >= 0; --l) {
      feed_forward(l);
      self_attention(l);
    }
    main.cublas->accumulate_outer(
        {a.dx, kHidden, inputs.features, 2, p.gradient_tensor(layout.embedding), kHidden, 2, n},
        plan.sequence_ranges);
  }

  int64_t rows() const { return static_cast<int64_t>(plan.shape.sequences) * n; }

  // The start states' gradients into the mean's and so, with the references', into dx.
  void start(const float* dh) const {
    const int sequences = plan.shape.sequences;
    tanh_backward(states.start_h, a.dstart_h, static_cast<int64_t>(sequences) * kHidden, main.get());
    back(p.products.start_h, states.mean, a.dstart_h, a.dmean, 1);
    back(p.products.start_c, states.mean, a.dstart_c, a.dmean, 1, true);
    mean_backward({dh, a.dmean, a.dx, sequences, n}, main.get());
  }

  // dx: of the layer's output; then of the residual behind its self-attention.
  void feed_forward(int l) const {
    const AttentionStates::Layer& layer = states.layers[l];
    const EncoderLayerOffsets& at = layout.layers[l];
    const auto& products = p.products.layers[l];
    back(products.linear2, layer.hidden, a.dx, a.dhidden, n);
    relu_backward(layer.hidden, a.dhidden, rows() * products.linear1.columns, main.get());
    norm(layer.residual, at.norm2_weight, at.norm2_bias);
    back(products.linear1, a.normed, a.dhidden, a.dnormed, n);
    norm_back(layer.residual, at.norm2_weight, at.norm2_bias);
  }

  // dx: of the residual; then of the layer's input.
  void self_attention(int l) const {
    const AttentionStates::Layer& layer = states.layers[l];
    const EncoderLayerOffsets& at = layout.layers[l];
    const auto& products = p.products.layers[l];
    back(products.out, layer.attended, a.dx, a.dattended, n);
    self_attention_backward(
        {{layer.qkv, layer.attended, layer.softmax, plan.shape.sequences, n, main.device.config.heads},
         a.dattended,
         a.means,
         a.dqkv},
        main.get());
    norm(layer.x, at.norm1_weight, at.norm1_bias);
    back(products.in, a.normed, a.dqkv, a.dnormed, n);
    norm_back(layer.x, at.norm1_weight, at.norm1_bias);
  }

  // The layer norm once more: its output is not kept.
  void norm(const float* x, size_t weight, size_t bias) const {
    layer_norm({x, p.tensor(weight), p.tensor(bias), a.normed, inputs.sequence_ranges, n}, main.get());
  }

  // dx += what goes back through a layer norm. Its output is done with: the weight's gradients go there.
  void norm_back(const float* x, size_t weight, size_t bias) const {
    layer_norm_backward({x, p.tensor(weight), a.dnormed, a.dx, a.normed, inputs.sequence_ranges, n},
                        main.get());
    sum(a.normed, kHidden, weight, n);
    sum(a.dnormed, kHidden, bias, n);
  }

  // y = W x + b: the sums of W and b, and dx (+)= dy W. items: rows of the arrays a sequence.
  void back(const Linear& linear, const float* x, const float* dy, float* dx, int items,
            bool accumulate = false) const {
    const Precision precision = main.device.precision;
    main.cublas->accumulate_outer({dy, linear.columns, x, linear.depth, p.gradient_tensor(linear.weight),
                                   linear.columns, linear.depth, items, precision},
                                  plan.sequence_ranges);
    sum(dy, linear.columns, linear.bias, items);
    main.cublas->multiply({dy, linear.columns, p.tensor(linear.weight), dx, linear.columns, linear.depth,
                           items, accumulate, precision},
                          plan.sequence_ranges);
  }

  // The sums over the rows, by a product with ones: far too few threads would share them otherwise.
  void sum(const float* rows, int width, size_t offset, int items) const {
    main.cublas->accumulate_outer({a.ones, 1, rows, width, p.gradient_tensor(offset), 1, width, items},
                                  plan.sequence_ranges);
  }
};

}  // namespace

void encode_by_attention(const DeviceStream& stream, const ChunkShape& shape, const ChunkArrays& inputs,
                         const AttentionStates& states, float* output) {
  AttentionForward{stream, shape, inputs, states, output}.run();
}

void attention_encoder_gradient(const MainStream& main, const ChunkPlan& plan, const ChunkArrays& inputs,
                                const AttentionStates& states, const float* dh,
                                const AttentionGradients& arrays) {
  AttentionBackward{main, plan, inputs, states, arrays}.run(dh);
}

}  // namespace pointsman::cuda
