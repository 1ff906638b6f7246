// SPDX-License-Identifier: Apache-2.0
// The attention encoder of a tile: pre-norm layers (Vaswani et al. 2017; Xiong et al. 2020)
//   a = x + W_o attend(LN1(x)) + b_o,  x' = a + W_2 relu(W_1 LN2(a) + b_1) + b_2,
// from x = E p, and the decoder's start state from the mean of the encoded items.
#include <algorithm>
#include <cmath>

#include "engine/backend/cpu/network.h"
#include "kernels/common/scalar_math.h"

namespace pointsman {
namespace {

size_t floats_of(int rows, int width) { return static_cast<size_t>(rows) * width; }

// A matrix [columns][k] and its bias.
struct Linear {
  const PackedMatrix& packed;
  size_t weight, bias;  // in the parameter vector
  int columns, k;
};

// The four products of a layer, and the two of the start state.
struct LayerProducts {
  Linear in, out, linear1, linear2;
};
LayerProducts products_of(const CpuParameters& p, int l) {
  const EncoderLayerOffsets& at = p.layout.layers[l];
  const PackedEncoderLayer& packed = p.layers[l];
  const int wide = p.config.feed_forward;
  return {{packed.in, at.in_weight, at.in_bias, 3 * kHidden, kHidden},
          {packed.out, at.out_weight, at.out_bias, kHidden, kHidden},
          {packed.linear1, at.linear1_weight, at.linear1_bias, wide, kHidden},
          {packed.linear2, at.linear2_weight, at.linear2_bias, kHidden, wide}};
}
Linear start_h_of(const CpuParameters& p) {
  return {p.start_h, p.layout.start.h_weight, p.layout.start.h_bias, kHidden, kHidden};
}
Linear start_c_of(const CpuParameters& p) {
  return {p.start_c, p.layout.start.c_weight, p.layout.start.c_bias, kHidden, kHidden};
}

// y = (x +) b + W input for each row; x null: none.
void apply(const CpuParameters& p, const Linear& linear, const float* input, const float* x, float* y,
           int rows, bool relu = false) {
  cpu::multiply({input, linear.k, linear.packed.forward.data(), y, linear.columns, rows, linear.k,
                 linear.columns, false, p.flat.data() + linear.bias, x, relu});
}

// Rows whose activations the second-level cache holds beside a layer's weights.
constexpr int kBlockRows = 64;

int sequences_of_block(int n) { return (kBlockRows + n - 1) / n; }

// Of an activation that is kept for the backward pass, or else exists for one block of rows: row `first`.
float* row_of(const AttentionStates& states, Buffer& activation, int first, int width) {
  return activation.data.data() + (states.with_layers ? floats_of(first, width) : 0);
}

// The first half of a layer, for `sequences` of them from first_sequence on: x -> residual.
void attend(const CpuParameters& p, int l, AttentionStates& states, AttentionStates::Layer& layer,
            int first_sequence, int sequences, const StopToken& stop) {
  const EncoderLayerOffsets& at = p.layout.layers[l];
  const LayerProducts products = products_of(p, l);
  const float* flat = p.flat.data();
  const int n = states.n, first = first_sequence * n, rows = sequences * n;
  const float* x = layer.x.data.data() + floats_of(first, kHidden);
  float *normed = states.normed.data.data(), *qkv = row_of(states, layer.qkv, first, 3 * kHidden),
        *attended = row_of(states, layer.attended, first, kHidden);
  float* norm = row_of(states, layer.norm1, first, 2);
  for (int i = 0; i < rows; i += kBlockRows) {
    stop.check();
    const int count = std::min(kBlockRows, rows - i);
    float* const to = normed + floats_of(i, kHidden);
    cpu::layer_norm({x + floats_of(i, kHidden), flat + at.norm1_weight, flat + at.norm1_bias, to,
                     norm + floats_of(i, 2), count});
    apply(p, products.in, to, nullptr, qkv + floats_of(i, 3 * kHidden), count);
  }
  for (int s = 0; s < sequences; ++s) {
    const size_t own = floats_of(s * n, kHidden);
    cpu::self_attention(
        {qkv + 3 * own, attended + own, n, p.config.heads, states.scratch.data.data(), &stop});
  }
  float* residual = layer.residual.data.data() + floats_of(first, kHidden);
  for (int i = 0; i < rows; i += kBlockRows) {
    stop.check();
    const size_t at_row = floats_of(i, kHidden);
    apply(p, products.out, attended + at_row, x + at_row, residual + at_row, std::min(kBlockRows, rows - i));
  }
}

// The second half, for `rows` rows from `first` on: residual -> next.
void feed_forward(const CpuParameters& p, int l, AttentionStates& states, AttentionStates::Layer& layer,
                  int first, int rows, float* next) {
  const EncoderLayerOffsets& at = p.layout.layers[l];
  const LayerProducts products = products_of(p, l);
  const float *flat = p.flat.data(), *residual = layer.residual.data.data() + floats_of(first, kHidden);
  float *normed = states.normed.data.data(),
        *hidden = row_of(states, layer.hidden, first, p.config.feed_forward);
  cpu::layer_norm({residual, flat + at.norm2_weight, flat + at.norm2_bias, normed,
                   row_of(states, layer.norm2, first, 2), rows});
  apply(p, products.linear1, normed, nullptr, hidden, rows, true);
  apply(p, products.linear2, hidden, residual, next + floats_of(first, kHidden), rows);
}

void layer_forward(const CpuParameters& p, int l, AttentionStates& states, AttentionStates::Layer& layer,
                   float* next, const StopToken& stop) {
  const int rows = states.sequences * states.n, block = sequences_of_block(states.n);
  for (int s = 0; s < states.sequences; s += block)
    attend(p, l, states, layer, s, std::min(block, states.sequences - s), stop);
  for (int first = 0; first < rows; first += kBlockRows) {
    stop.check();
    feed_forward(p, l, states, layer, first, std::min(kBlockRows, rows - first), next);
  }
}

void make_room(const CpuParameters& p, AttentionStates& states, const StopToken& stop) {
  const int rows = states.sequences * states.n, block = sequences_of_block(states.n) * states.n,
            kept = states.with_layers ? rows : std::min(block, rows),
            hidden = states.with_layers ? rows : std::min(kBlockRows, rows);
  states.layers.resize(states.with_layers ? p.layers.size() : std::max<size_t>(states.layers.size(), 1));
  for (AttentionStates::Layer& layer : states.layers) {
    for (Buffer* wide : {&layer.x, &layer.residual}) wide->get(floats_of(rows, kHidden), stop);
    for (Buffer* statistics : {&layer.norm1, &layer.norm2}) statistics->get(floats_of(kept, 2), stop);
    layer.attended.get(floats_of(kept, kHidden), stop);
    layer.qkv.get(floats_of(kept, 3 * kHidden), stop);
    layer.hidden.get(floats_of(hidden, p.config.feed_forward), stop);
  }
  states.output.get(floats_of(rows, kHidden), stop);
  states.normed.get(floats_of(block, kHidden), stop);
  for (Buffer* narrow : {&states.mean, &states.start_h, &states.start_c})
    narrow->get(floats_of(states.sequences, kHidden), stop);
  states.scratch.get(static_cast<size_t>(cpu::self_attention_scratch(states.n)), stop);
}

void start_forward(const CpuParameters& p, AttentionStates& states) {
  const int sequences = states.sequences;
  float *mean = states.mean.data.data(), *h = states.start_h.data.data();
  std::fill_n(mean, floats_of(sequences, kHidden), 0.0f);
  for (int s = 0; s < sequences; ++s) {
    float* own = mean + floats_of(s, kHidden);
    cpu::sum_columns(states.output.data.data() + floats_of(s * states.n, kHidden), states.n, kHidden, own);
    for (int d = 0; d < kHidden; ++d) own[d] /= static_cast<float>(states.n);
  }
  apply(p, start_h_of(p), mean, nullptr, h, sequences);
  apply(p, start_c_of(p), mean, nullptr, states.start_c.data.data(), sequences);
  for (size_t i = 0; i < floats_of(sequences, kHidden); ++i) h[i] = tanh_f32(h[i]);
}

}  // namespace

void attention_encoder_forward(const CpuParameters& p, const SequenceBatch& batch, const RolloutTile& tile,
                               bool with_layers, AttentionStates& states, const StopToken& stop) {
  states.sequences = static_cast<int>(tile.pieces.size());
  states.n = batch.n;
  states.with_layers = with_layers;
  make_room(p, states, stop);
  float* x = states.layers[0].x.data.data();
  for (int s = 0; s < states.sequences; ++s) {
    cpu::embed({batch.features_of(tile.pieces[s].sequence), p.embedding.data(),
                x + floats_of(s * batch.n, kHidden), batch.n});
  }
  const int layers = static_cast<int>(p.layers.size());
  for (int l = 0; l < layers; ++l) {
    AttentionStates::Layer& layer = states.layers[with_layers ? l : 0];
    // A layer reads x to its end only as `residual`, so that without all layers the next x goes over it.
    Buffer& next = l + 1 == layers ? states.output : with_layers ? states.layers[l + 1].x : layer.x;
    layer_forward(p, l, states, layer, next.data.data(), stop);
  }
  start_forward(p, states);
}

namespace {

struct AttentionBackward {
  const AttentionBackwardArgs& a;
  const CpuParameters& p = a.parameters;
  AttentionStates& states = a.states;
  const int rows = states.sequences * states.n;

  void run() {
    start();
    for (int l = static_cast<int>(p.layers.size()) - 1; l >= 0; --l) {
      a.stop.check();
      feed_forward(l);
      self_attention(l);
    }
    for (int s = 0; s < states.sequences; ++s) {
      cpu::embed_backward(a.batch.features_of(a.tile.pieces[s].sequence),
                          a.doutput + floats_of(s * states.n, kHidden), states.n, a.sums.embedding);
    }
  }

  // The start states' gradients into the mean's and so into doutput.
  void start() {
    const int sequences = states.sequences, n = states.n;
    const float *h = states.start_h.data.data(), *mean = states.mean.data.data();
    const size_t floats = floats_of(sequences, kHidden);
    for (size_t i = 0; i < floats; ++i) a.dstart_h[i] *= 1.0f - h[i] * h[i];
    float* dmean = a.buffers.dmean.get(floats);
    back(start_h_of(p), mean, a.dstart_h, sequences, dmean, false);
    back(start_c_of(p), mean, a.dstart_c, sequences, dmean, true);
    for (size_t i = 0; i < floats; ++i) dmean[i] /= static_cast<float>(n);
    for (int s = 0; s < sequences; ++s) {
      float* out = a.doutput + floats_of(s * n, kHidden);
      cpu::add_bias({out, dmean + floats_of(s, kHidden), out, n, kHidden});
    }
  }

  // doutput: the gradient of the layer's output; then that of the residual behind its self-attention.
  void feed_forward(int l) {
    const EncoderLayerOffsets& at = p.layout.layers[l];
    const LayerProducts products = products_of(p, l);
    AttentionStates::Layer& layer = states.layers[l];
    const size_t wide = floats_of(rows, p.config.feed_forward), narrow = floats_of(rows, kHidden);
    float *normed = a.buffers.normed.get(narrow), *dnormed = a.buffers.dnormed.get(narrow),
          *dhidden = a.buffers.dhidden.get(wide);
    const float* hidden = layer.hidden.data.data();
    back(products.linear2, hidden, a.doutput, rows, dhidden, false);
    cpu::relu_backward(hidden, dhidden, static_cast<int64_t>(wide));
    norm(layer.residual, layer.norm2, at.norm2_weight, at.norm2_bias, normed);
    back(products.linear1, normed, dhidden, rows, dnormed, false);
    norm_back(layer.residual, layer.norm2, at.norm2_weight, at.norm2_bias, dnormed);
  }

  // doutput: of the residual; then that of the layer's input.
  void self_attention(int l) {
    const EncoderLayerOffsets& at = p.layout.layers[l];
    const LayerProducts products = products_of(p, l);
    AttentionStates::Layer& layer = states.layers[l];
    const size_t narrow = floats_of(rows, kHidden);
    float *normed = a.buffers.normed.get(narrow), *dnormed = a.buffers.dnormed.get(narrow),
          *dattended = a.buffers.dattended.get(narrow), *dqkv = a.buffers.dqkv.get(3 * narrow);
    back(products.out, layer.attended.data.data(), a.doutput, rows, dattended, false);
    for (int s = 0; s < states.sequences; ++s) {
      const size_t first = floats_of(s * states.n, kHidden);
      cpu::self_attention_backward({{layer.qkv.data.data() + 3 * first, nullptr, states.n, p.config.heads,
                                     states.scratch.data.data(), &a.stop},
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
    cpu::layer_norm(
        {x.data.data(), p.flat.data() + weight, p.flat.data() + bias, y, statistics.data.data(), rows});
  }

  // doutput += what goes back through a layer norm.
  void norm_back(Buffer& x, Buffer& statistics, size_t weight, size_t bias, const float* dy) const {
    cpu::layer_norm_backward({x.data.data(), statistics.data.data(), p.flat.data() + weight, dy, a.doutput,
                              sum(weight), sum(bias), rows});
  }

  // y = W x + b: the sums of W and b, and dx (+)= dy W.
  void back(const Linear& linear, const float* x, const float* dy, int count, float* dx,
            bool accumulate) const {
    const int columns = linear.columns, k = linear.k;
    cpu::accumulate_outer({dy, columns, x, k, sum(linear.weight), k, count, columns, k});
    cpu::sum_columns(dy, count, columns, sum(linear.bias));
    cpu::multiply({dy, columns, linear.packed.backward.data(), dx, k, count, columns, k, accumulate});
  }
};

}  // namespace

void attention_encoder_backward(const AttentionBackwardArgs& args) { AttentionBackward{args}.run(); }

}  // namespace pointsman
