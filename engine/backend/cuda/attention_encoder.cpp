// SPDX-License-Identifier: Apache-2.0
// The layers and the start state are those of cpu_attention_encoder.cpp.
#include "engine/backend/cuda/attention_encoder.h"

#include <algorithm>

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

class AttentionForward {
 public:
  AttentionForward(const CudaLane& lane, const ChunkShape& shape, const ChunkArrays& inputs,
                   const AttentionStates& states, float* output)
      : p_(*lane.device.parameters),
        layout_(*lane.device.layout),
        stream_(lane.stream.get()),
        heads_(lane.device.config.heads),
        shape_(shape),
        inputs_(inputs),
        states_(states),
        output_(output) {}

  void run() const {
    embed({p_.tensor(layout_.embedding), inputs_.features, states_.layers[0].x, inputs_.sequence_ranges,
           shape_.n},
          stream_);
    const int layers = static_cast<int>(p_.layers.size());
    const bool record = states_.layers.size() == p_.layers.size();
    for (int l = 0; l < layers; ++l) {
      const AttentionStates::Layer& layer = states_.layers[record ? l : 0];
      const bool last = l + 1 == layers;
      // A layer reads x to its end only as `residual`, so that without all layers the next x goes over it.
      forward(l, layer, last ? output_ : record ? states_.layers[l + 1].x : layer.x, last);
    }
    start();
  }

 private:
  void forward(int l, const AttentionStates::Layer& to, float* next, bool last) const {
    const EncoderLayerOffsets& at = layout_.layers[l];
    const CudaParameters::EncoderLayer& layer = p_.layers[l];
    float* const normed = states_.normed;
    norm(to.x, at.norm1_weight, at.norm1_bias);
    apply(layer.in, normed, nullptr, to.qkv);
    cuda::self_attention({to.qkv, to.attended, to.softmax, shape_.sequences, shape_.n, heads_}, stream_);
    apply(layer.out, to.attended, to.x, to.residual);
    norm(to.residual, at.norm2_weight, at.norm2_bias);
    apply(layer.linear1, normed, nullptr, to.hidden, LinearArgs::Function::kRelu);
    LinearArgs out = args(layer.linear2, to.hidden, to.residual, next);
    out.to_states = last;
    linear(out, stream_);
  }

  void start() const {
    mean_items({output_, states_.mean, shape_.sequences, shape_.n}, stream_);
    LinearArgs h = args(p_.start_h, states_.mean, nullptr, states_.start_h);
    h.function = LinearArgs::Function::kTanh;
    LinearArgs c = args(p_.start_c, states_.mean, nullptr, states_.start_c);
    h.items = c.items = 1;
    linear(h, stream_);
    linear(c, stream_);
  }

  void norm(const float* x, size_t weight, size_t bias) const {
    layer_norm({x, p_.tensor(weight), p_.tensor(bias), states_.normed, inputs_.sequence_ranges, shape_.n},
               stream_);
  }

  // base null: none.
  LinearArgs args(const CudaParameters::Linear& layer, const float* x, const float* base, float* y) const {
    return {layer.prepared,
            p_.tensor(layer.bias),
            x,
            base,
            y,
            layer.depth,
            layer.columns,
            LinearArgs::Function::kNone,
            false,
            inputs_.sequence_ranges,
            shape_.n};
  }
  void apply(const CudaParameters::Linear& layer, const float* x, const float* base, float* y,
             LinearArgs::Function function = LinearArgs::Function::kNone) const {
    LinearArgs to = args(layer, x, base, y);
    to.function = function;
    linear(to, stream_);
  }

  const CudaParameters& p_;
  const ParameterLayout& layout_;
  const cudaStream_t stream_;
  const int heads_;
  const ChunkShape& shape_;
  const ChunkArrays& inputs_;
  const AttentionStates& states_;
  float* const output_;
};

class AttentionBackward {
 public:
  AttentionBackward(const CudaContext& context, const ChunkPlan& plan, const ChunkArrays& inputs,
                    const AttentionStates& states, const AttentionGradients& arrays)
      : context_(context),
        p_(*context.parameters),
        layout_(*context.layout),
        stream_(context.stream.get()),
        plan_(plan),
        inputs_(inputs),
        states_(states),
        a_(arrays),
        n_(plan.shape.n) {}

  void run(const float* dh) const {
    fill(a_.ones, 1.0f, rows(), stream_);
    start(dh);
    for (int l = static_cast<int>(p_.layers.size()) - 1; l >= 0; --l) {
      feed_forward(l);
      self_attention(l);
    }
    context_.cublas->accumulate_outer(
        {a_.dx, kHidden, inputs_.features, 2, p_.gradient_tensor(layout_.embedding), kHidden, 2, n_},
        plan_.sequence_ranges);
  }

 private:
  int64_t rows() const { return static_cast<int64_t>(plan_.shape.sequences) * n_; }

  // The start states' gradients into the mean's and so, with the references', into dx.
  void start(const float* dh) const {
    const int sequences = plan_.shape.sequences;
    tanh_backward(states_.start_h, a_.dstart_h, static_cast<int64_t>(sequences) * kHidden, stream_);
    back(p_.start_h, states_.mean, a_.dstart_h, a_.dmean, 1);
    back(p_.start_c, states_.mean, a_.dstart_c, a_.dmean, 1, true);
    mean_backward({dh, a_.dmean, a_.dx, sequences, n_}, stream_);
  }

  // dx: of the layer's output; then of the residual behind its self-attention.
  void feed_forward(int l) const {
    const AttentionStates::Layer& layer = states_.layers[l];
    const EncoderLayerOffsets& at = layout_.layers[l];
    const CudaParameters::EncoderLayer& products = p_.layers[l];
    back(products.linear2, layer.hidden, a_.dx, a_.dhidden, n_);
    relu_backward(layer.hidden, a_.dhidden, rows() * products.linear1.columns, stream_);
    norm(layer.residual, at.norm2_weight, at.norm2_bias);
    back(products.linear1, a_.normed, a_.dhidden, a_.dnormed, n_);
    norm_back(layer.residual, at.norm2_weight, at.norm2_bias);
  }

  // dx: of the residual; then of the layer's input.
  void self_attention(int l) const {
    const AttentionStates::Layer& layer = states_.layers[l];
    const EncoderLayerOffsets& at = layout_.layers[l];
    const CudaParameters::EncoderLayer& products = p_.layers[l];
    back(products.out, layer.attended, a_.dx, a_.dattended, n_);
    self_attention_backward(
        {{layer.qkv, layer.attended, layer.softmax, plan_.shape.sequences, n_, context_.config.heads},
         a_.dattended,
         a_.means,
         a_.dqkv},
        stream_);
    norm(layer.x, at.norm1_weight, at.norm1_bias);
    back(products.in, a_.normed, a_.dqkv, a_.dnormed, n_);
    norm_back(layer.x, at.norm1_weight, at.norm1_bias);
  }

  // The layer norm once more: its output is not kept.
  void norm(const float* x, size_t weight, size_t bias) const {
    layer_norm({x, p_.tensor(weight), p_.tensor(bias), a_.normed, inputs_.sequence_ranges, n_}, stream_);
  }

  // dx += what goes back through a layer norm. Its output is done with: the weight's gradients go there.
  void norm_back(const float* x, size_t weight, size_t bias) const {
    layer_norm_backward({x, p_.tensor(weight), a_.dnormed, a_.dx, a_.normed, inputs_.sequence_ranges, n_},
                        stream_);
    sum(a_.normed, kHidden, weight, n_);
    sum(a_.dnormed, kHidden, bias, n_);
  }

  // y = W x + b: the sums of W and b, and dx (+)= dy W. items: rows of the arrays a sequence.
  void back(const CudaParameters::Linear& linear, const float* x, const float* dy, float* dx, int items,
            bool accumulate = false) const {
    context_.cublas->accumulate_outer({dy, linear.columns, x, linear.depth, p_.gradient_tensor(linear.weight),
                                       linear.columns, linear.depth, items},
                                      plan_.sequence_ranges);
    sum(dy, linear.columns, linear.bias, items);
    context_.cublas->multiply(
        {dy, p_.tensor(linear.weight), true, dx, linear.columns, linear.depth, items, accumulate},
        plan_.sequence_ranges);
  }

  // The sums over the rows, by a product with ones: far too few threads would share them otherwise.
  void sum(const float* rows, int width, size_t offset, int items) const {
    context_.cublas->accumulate_outer({a_.ones, 1, rows, width, p_.gradient_tensor(offset), 1, width, items},
                                      plan_.sequence_ranges);
  }

  const CudaContext& context_;
  const CudaParameters& p_;
  const ParameterLayout& layout_;
  const cudaStream_t stream_;
  const ChunkPlan& plan_;
  const ChunkArrays& inputs_;
  const AttentionStates& states_;
  const AttentionGradients& a_;
  const int n_;
};

}  // namespace

void encode_by_attention(const CudaLane& lane, const ChunkShape& shape, const ChunkArrays& inputs,
                         const AttentionStates& states, float* output) {
  AttentionForward(lane, shape, inputs, states, output).run();
}

void attention_encoder_gradient(const CudaContext& context, const ChunkPlan& plan, const ChunkArrays& inputs,
                                const AttentionStates& states, const float* dh,
                                const AttentionGradients& arrays) {
  AttentionBackward(context, plan, inputs, states, arrays).run(dh);
}

}  // namespace pointsman::cuda
