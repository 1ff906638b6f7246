// SPDX-License-Identifier: Apache-2.0
// The attention encoder of a tile: pre-norm layers (Vaswani et al. 2017; Xiong et al. 2020)
//   a = x + W_o attend(LN1(x)) + b_o,  x' = a + W_2 relu(W_1 LN2(a) + b_1) + b_2,
// from x = E p, and the decoder's start state from the mean of the encoded items.
#include <algorithm>

#include "engine/backend/cpu/network.h"
#include "kernels/common/scalar_math.h"

namespace pointsman {
namespace {

using Linear = EncoderProducts<PackedMatrix>::Linear;

// Rows whose activations the second-level cache holds beside a layer's weights.
constexpr int kBlockRows = 64;

struct AttentionForward {
  const TileCall& call;
  AttentionStates& states;
  const CpuParameters& p = call.parameters;
  const StopToken& stop = call.stop;
  const int n = call.batch.n, sequences = static_cast<int>(call.tile.pieces.size()), rows = sequences * n;
  const int block_sequences = (kBlockRows + n - 1) / n;

  void run(bool with_layers) {
    states.sequences = sequences;
    states.n = n;
    states.with_layers = with_layers;
    make_room();
    float* x = states.layers[0].x.data();
    for (int s = 0; s < sequences; ++s) {
      cpu::embed(call.features_of(s), call.batch.width(), p.embedding.data(), n, x + floats_of(s * n));
    }
    const int layers = static_cast<int>(p.products.layers.size());
    for (int l = 0; l < layers; ++l) {
      AttentionStates::Layer& layer = states.layers[with_layers ? l : 0];
      // A layer reads x to its end only as `residual`, so that without all layers the next x goes over it.
      Buffer& next = l + 1 == layers ? states.output : with_layers ? states.layers[l + 1].x : layer.x;
      for (int s = 0; s < sequences; s += block_sequences)
        attend(l, layer, s, std::min(block_sequences, sequences - s));
      for (int first = 0; first < rows; first += kBlockRows)
        feed_forward(l, layer, first, std::min(kBlockRows, rows - first), next.data());
    }
    start();
  }

  void make_room() {
    const bool all = states.with_layers;
    const int block = block_sequences * n, kept = all ? rows : std::min(block, rows),
              hidden = all ? rows : std::min(kBlockRows, rows);
    states.layers.resize(all ? p.products.layers.size() : std::max<size_t>(states.layers.size(), 1));
    for (AttentionStates::Layer& layer : states.layers) {
      for (Buffer* wide : {&layer.x, &layer.residual}) wide->get(floats_of(rows), stop);
      for (Buffer* statistics : {&layer.norm1, &layer.norm2}) statistics->get(floats_of(kept, 2), stop);
      layer.attended.get(floats_of(kept), stop);
      layer.qkv.get(floats_of(kept, 3 * kHidden), stop);
      layer.hidden.get(floats_of(hidden, p.config.feed_forward), stop);
    }
    states.output.get(floats_of(rows), stop);
    states.normed.get(floats_of(block), stop);
    for (Buffer* narrow : {&states.mean, &states.start_h, &states.start_c})
      narrow->get(floats_of(sequences), stop);
    states.scratch.get(static_cast<size_t>(cpu::self_attention_scratch(n)), stop);
  }

  // The first half of a layer, for `count` sequences from first_sequence on: x -> residual.
  void attend(int l, AttentionStates::Layer& layer, int first_sequence, int count) {
    const EncoderLayerOffsets& at = p.layout.layers[l];
    const int first = first_sequence * n, some = count * n;
    const float* x = layer.x.data() + floats_of(first);
    float *normed = states.normed.data(), *qkv = row_of(layer.qkv, first, 3 * kHidden),
          *attended = row_of(layer.attended, first, kHidden), *norm = row_of(layer.norm1, first, 2);
    for (int i = 0; i < some; i += kBlockRows) {
      stop.check();
      const int block = std::min(kBlockRows, some - i);
      float* const to = normed + floats_of(i);
      cpu::layer_norm({x + floats_of(i), p.flat.data() + at.norm1_weight, p.flat.data() + at.norm1_bias, to,
                       norm + floats_of(i, 2), block});
      apply(p.products.layers[l].in, to, nullptr, qkv + floats_of(i, 3 * kHidden), block);
    }
    for (int s = 0; s < count; ++s) {
      const size_t own = floats_of(s * n);
      cpu::self_attention({qkv + 3 * own, attended + own, n, p.config.heads, states.scratch.data(), &stop});
    }
    float* residual = layer.residual.data() + floats_of(first);
    for (int i = 0; i < some; i += kBlockRows) {
      stop.check();
      const size_t row = floats_of(i);
      apply(p.products.layers[l].out, attended + row, x + row, residual + row,
            std::min(kBlockRows, some - i));
    }
  }

  // The second half, for `count` rows from `first` on: residual -> next.
  void feed_forward(int l, AttentionStates::Layer& layer, int first, int count, float* next) {
    stop.check();
    const EncoderLayerOffsets& at = p.layout.layers[l];
    const float* residual = layer.residual.data() + floats_of(first);
    float *normed = states.normed.data(), *hidden = row_of(layer.hidden, first, p.config.feed_forward);
    cpu::layer_norm({residual, p.flat.data() + at.norm2_weight, p.flat.data() + at.norm2_bias, normed,
                     row_of(layer.norm2, first, 2), count});
    apply(p.products.layers[l].linear1, normed, nullptr, hidden, count, true);
    apply(p.products.layers[l].linear2, hidden, residual, next + floats_of(first), count);
  }

  void start() {
    float *mean = states.mean.data(), *h = states.start_h.data();
    std::fill_n(mean, floats_of(sequences), 0.0f);
    for (int s = 0; s < sequences; ++s) {
      float* own = mean + floats_of(s);
      cpu::sum_columns(states.output.data() + floats_of(s * n), n, kHidden, own);
      for (int d = 0; d < kHidden; ++d) own[d] /= static_cast<float>(n);
    }
    apply(p.products.start_h, mean, nullptr, h, sequences);
    apply(p.products.start_c, mean, nullptr, states.start_c.data(), sequences);
    for (size_t i = 0; i < floats_of(sequences); ++i) h[i] = tanh_f32(h[i]);
  }

  // Of an activation that is kept for the backward pass, or else exists for one block of rows: row `first`.
  float* row_of(Buffer& activation, int first, int width) const {
    return activation.data() + (states.with_layers ? floats_of(first, width) : 0);
  }

  // y = (x +) b + W input for each row; x null: none.
  void apply(const Linear& linear, const float* input, const float* x, float* y, int count,
             bool relu = false) const {
    cpu::multiply({input, linear.depth, linear.matrix.forward.data(), y, linear.columns, count, linear.depth,
                   linear.columns, false, p.flat.data() + linear.bias, x, relu});
  }
};

struct AttentionBackward {
  const AttentionBackwardArgs& a;
  const CpuParameters& p = a.call.parameters;
  AttentionStates& states = a.states;
  const int rows = states.sequences * states.n;

  void run() {
    start();
    for (int l = static_cast<int>(p.products.layers.size()) - 1; l >= 0; --l) {
      a.call.stop.check();
      feed_forward(l);
      self_attention(l);
    }
    for (int s = 0; s < states.sequences; ++s) {
      cpu::embed_backward(a.call.features_of(s), a.call.batch.width(), a.doutput + floats_of(s * states.n),
                          states.n, a.sums.embedding);
    }
  }

  // The start states' gradients into the mean's and so into doutput.
  void start() {
    const int sequences = states.sequences, n = states.n;
    const float *h = states.start_h.data(), *mean = states.mean.data();
    const size_t floats = floats_of(sequences);
    for (size_t i = 0; i < floats; ++i) a.dstart_h[i] *= 1.0f - h[i] * h[i];
    float* dmean = a.buffers.dmean.get(floats);
    back(p.products.start_h, mean, a.dstart_h, sequences, dmean, false);
    back(p.products.start_c, mean, a.dstart_c, sequences, dmean, true);
    for (size_t i = 0; i < floats; ++i) dmean[i] /= static_cast<float>(n);
    for (int s = 0; s < sequences; ++s) {
      cpu::add_bias(a.doutput + floats_of(s * n), dmean + floats_of(s), n, kHidden);
    }
  }

  // doutput: the gradient of the layer's output; then that of the residual behind its self-attention.
  void feed_forward(int l) {
    const EncoderLayerOffsets& at = p.layout.layers[l];
    const auto& products = p.products.layers[l];
    AttentionStates::Layer& layer = states.layers[l];
    const size_t wide = floats_of(rows, p.config.feed_forward), narrow = floats_of(rows);
    float *normed = a.buffers.normed.get(narrow), *dnormed = a.buffers.dnormed.get(narrow),
          *dhidden = a.buffers.dhidden.get(wide);
    const float* hidden = layer.hidden.data();
    back(products.linear2, hidden, a.doutput, rows, dhidden, false);
    cpu::relu_backward(hidden, dhidden, static_cast<int64_t>(wide));
    norm(layer.residual, layer.norm2, at.norm2_weight, at.norm2_bias, normed);
    back(products.linear1, normed, dhidden, rows, dnormed, false);
    norm_back(layer.residual, layer.norm2, at.norm2_weight, at.norm2_bias, dnormed);
  }

  // doutput: of the residual; then that of the layer's input.
  void self_attention(int l) {
    const EncoderLayerOffsets& at = p.layout.layers[l];
    const auto& products = p.products.layers[l];
    AttentionStates::Layer& layer = states.layers[l];
    const size_t narrow = floats_of(rows);
    float *normed = a.buffers.normed.get(narrow), *dnormed = a.buffers.dnormed.get(narrow),
          *dattended = a.buffers.dattended.get(narrow), *dqkv = a.buffers.dqkv.get(3 * narrow);
    back(products.out, layer.attended.data(), a.doutput, rows, dattended, false);
    for (int s = 0; s < states.sequences; ++s) {
      const size_t first = floats_of(s * states.n);
      cpu::self_attention_backward({{layer.qkv.data() + 3 * first, nullptr, states.n, p.config.heads,
                                     states.scratch.data(), &a.call.stop},
                                    dattended + first,
                                    dqkv + 3 * first});
    }
    norm(layer.x, layer.norm1, at.norm1_weight, at.norm1_bias, normed);
    back(products.in, normed, dqkv, rows, dnormed, false);
    norm_back(layer.x, layer.norm1, at.norm1_weight, at.norm1_bias, dnormed);
  }

  float* sum(size_t offset) const { return a.sums.tensors + (offset - p.layout.attention_begin); }

  // The layer norm once more: its output is not kept.
  void norm(Buffer& x, Buffer& statistics, size_t weight, size_t bias, float* y) const {
    cpu::layer_norm({x.data(), p.flat.data() + weight, p.flat.data() + bias, y, statistics.data(), rows});
  }

  // doutput += what goes back through a layer norm.
  void norm_back(Buffer& x, Buffer& statistics, size_t weight, size_t bias, const float* dy) const {
    cpu::layer_norm_backward(
        {x.data(), statistics.data(), p.flat.data() + weight, dy, a.doutput, sum(weight), sum(bias), rows});
  }

  // y = W x + b: the sums of W and b, and dx (+)= dy W.
  void back(const Linear& linear, const float* x, const float* dy, int count, float* dx,
            bool accumulate) const {
    const int columns = linear.columns, k = linear.depth;
    cpu::accumulate_outer({dy, columns, x, k, sum(linear.weight), k, count, columns, k});
    cpu::sum_columns(dy, count, columns, sum(linear.bias));
    cpu::multiply({dy, columns, linear.matrix.backward.data(), dx, k, count, columns, k, accumulate});
  }
};

}  // namespace

void attention_encoder_forward(const TileCall& call, bool with_layers, AttentionStates& states) {
  AttentionForward{call, states}.run(with_layers);
}

void attention_encoder_backward(const AttentionBackwardArgs& args) { AttentionBackward{args}.run(); }

}  // namespace pointsman
