// SPDX-License-Identifier: Apache-2.0
// The attention encoder of a tile: pre-norm layers (Vaswani et al. 2017; Xiong et al. 2020)
//   a = x + W_o attend(LN1(x)) + b_o,  x' = a + W_2 relu(W_1 LN2(a) + b_1) + b_2,
// from x = E p, and the decoder's start state from the mean of the encoded items.
#include <algorithm>
#include <cmath>

#include "engine/backend/cpu_network.h"
#include "kernels/common/scalar_math.h"

namespace pointsman {
namespace {

size_t floats_of(int rows, int width) { return static_cast<size_t>(rows) * width; }

// y = (x +) b + input W^T; width and k: of W [width][k].
void linear(const float* input, int k, const PackedMatrix& weights, const float* bias, const float* x, float* y,
            int rows, int width) {
  cpu::add_bias({x, bias, y, rows, width});
  cpu::multiply({input, k, weights.forward.data(), y, width, rows, k, width, true});
}

void layer_forward(const CpuParameters& p, int l, AttentionStates& states, AttentionStates::Layer& layer,
                   float* next) {
  const EncoderLayerOffsets& at = p.layout.layers[l];
  const PackedEncoderLayer& packed = p.layers[l];
  const float* flat = p.flat.data();
  const int rows = states.sequences * states.n, feed_forward = p.config.feed_forward;
  float *x = layer.x.data.data(), *normed = states.normed.data.data(), *qkv = layer.qkv.data.data(),
        *attended = layer.attended.data.data(), *residual = layer.residual.data.data(),
        *hidden = layer.hidden.data.data();
  cpu::layer_norm({x, flat + at.norm1_weight, flat + at.norm1_bias, normed, layer.norm1.data.data(), rows});
  linear(normed, kHidden, packed.in, flat + at.in_bias, nullptr, qkv, rows, 3 * kHidden);
  for (int s = 0; s < states.sequences; ++s) {
    const size_t first = floats_of(s * states.n, kHidden);
    cpu::self_attention(
        {qkv + 3 * first, attended + first, states.n, p.config.heads, states.scratch.data.data()});
  }
  linear(attended, kHidden, packed.out, flat + at.out_bias, x, residual, rows, kHidden);
  cpu::layer_norm(
      {residual, flat + at.norm2_weight, flat + at.norm2_bias, normed, layer.norm2.data.data(), rows});
  linear(normed, kHidden, packed.linear1, flat + at.linear1_bias, nullptr, hidden, rows, feed_forward);
  cpu::relu(hidden, static_cast<int64_t>(floats_of(rows, feed_forward)));
  linear(hidden, feed_forward, packed.linear2, flat + at.linear2_bias, residual, next, rows, kHidden);
}

void make_room(const CpuParameters& p, bool with_layers, AttentionStates& states) {
  const int rows = states.sequences * states.n;
  states.layers.resize(with_layers ? p.layers.size() : std::max<size_t>(states.layers.size(), 1));
  for (AttentionStates::Layer& layer : states.layers) {
    for (Buffer* wide : {&layer.x, &layer.attended, &layer.residual}) wide->get(floats_of(rows, kHidden));
    for (Buffer* statistics : {&layer.norm1, &layer.norm2}) statistics->get(floats_of(rows, 2));
    layer.qkv.get(floats_of(rows, 3 * kHidden));
    layer.hidden.get(floats_of(rows, p.config.feed_forward));
  }
  for (Buffer* wide : {&states.output, &states.normed}) wide->get(floats_of(rows, kHidden));
  for (Buffer* narrow : {&states.mean, &states.start_h, &states.start_c})
    narrow->get(floats_of(states.sequences, kHidden));
  states.scratch.get(static_cast<size_t>(cpu::self_attention_scratch(states.n)));
}

void start_forward(const CpuParameters& p, AttentionStates& states) {
  const float* flat = p.flat.data();
  const int sequences = states.sequences;
  float *mean = states.mean.data.data(), *h = states.start_h.data.data();
  std::fill_n(mean, floats_of(sequences, kHidden), 0.0f);
  for (int s = 0; s < sequences; ++s) {
    float* own = mean + floats_of(s, kHidden);
    cpu::sum_columns(states.output.data.data() + floats_of(s * states.n, kHidden), states.n, kHidden, own);
    for (int d = 0; d < kHidden; ++d) own[d] /= static_cast<float>(states.n);
  }
  linear(mean, kHidden, p.start_h, flat + p.layout.start.h_bias, nullptr, h, sequences, kHidden);
  linear(mean, kHidden, p.start_c, flat + p.layout.start.c_bias, nullptr, states.start_c.data.data(), sequences,
         kHidden);
  for (size_t i = 0; i < floats_of(sequences, kHidden); ++i) h[i] = tanh_f32(h[i]);
}

}  // namespace

void attention_encoder_forward(const CpuParameters& p, const SequenceBatch& batch, const RolloutTile& tile,
                               bool with_layers, AttentionStates& states) {
  states.sequences = static_cast<int>(tile.pieces.size());
  states.n = batch.n;
  make_room(p, with_layers, states);
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
    layer_forward(p, l, states, layer, next.data.data());
  }
  start_forward(p, states);
}

namespace {

class AttentionBackward {
 public:
  AttentionBackward(const CpuParameters& parameters, AttentionStates& states, AttentionBackwardBuffers& buffers,
                    float* sums)
      : p_(parameters),
        flat_(p_.flat.data()),
        states_(states),
        b_(buffers),
        sums_(sums),
        rows_(states.sequences * states.n),
        width_(p_.config.feed_forward) {}

  // The start states' gradients into the mean's and so into doutput.
  void start(float* doutput, float* dstart_h, float* dstart_c) {
    const int sequences = states_.sequences, n = states_.n;
    const float* h = states_.start_h.data.data();
    const size_t floats = floats_of(sequences, kHidden);
    for (size_t i = 0; i < floats; ++i) dstart_h[i] *= 1.0f - h[i] * h[i];
    const StartOffsets& at = p_.layout.start;
    float* dmean = b_.dmean.get(floats);
    const float* mean = states_.mean.data.data();
    linear_back(mean, kHidden, at.h_weight, at.h_bias, p_.start_h, dstart_h, kHidden, sequences, dmean, false);
    linear_back(mean, kHidden, at.c_weight, at.c_bias, p_.start_c, dstart_c, kHidden, sequences, dmean, true);
    for (size_t i = 0; i < floats; ++i) dmean[i] /= static_cast<float>(n);
    for (int s = 0; s < sequences; ++s) {
      float* out = doutput + floats_of(s * n, kHidden);
      cpu::add_bias({out, dmean + floats_of(s, kHidden), out, n, kHidden});
    }
  }

  // dx: the gradient of the layer's output, in place that of its input.
  void layer(int l, float* dx) {
    const EncoderLayerOffsets& at = p_.layout.layers[l];
    const PackedEncoderLayer& packed = p_.layers[l];
    AttentionStates::Layer& a = states_.layers[l];
    float* normed = b_.normed.get(floats_of(rows_, kHidden));
    float* dnormed = b_.dnormed.get(floats_of(rows_, kHidden));
    float* dhidden = b_.dhidden.get(floats_of(rows_, width_));
    linear_back(a.hidden.data.data(), width_, at.linear2_weight, at.linear2_bias, packed.linear2, dx, kHidden,
                rows_, dhidden, false);
    cpu::relu_backward(a.hidden.data.data(), dhidden, static_cast<int64_t>(floats_of(rows_, width_)));
    norm(a.residual, at.norm2_weight, at.norm2_bias, normed, a.norm2);
    linear_back(normed, kHidden, at.linear1_weight, at.linear1_bias, packed.linear1, dhidden, width_, rows_,
                dnormed, false);
    norm_back(a.residual, a.norm2, at.norm2_weight, at.norm2_bias, dnormed, dx);  // dx: of the residual

    float* dattended = b_.dattended.get(floats_of(rows_, kHidden));
    float* dqkv = b_.dqkv.get(floats_of(rows_, 3 * kHidden));
    linear_back(a.attended.data.data(), kHidden, at.out_weight, at.out_bias, packed.out, dx, kHidden, rows_,
                dattended, false);
    for (int s = 0; s < states_.sequences; ++s) {
      const size_t first = floats_of(s * states_.n, kHidden);
      cpu::self_attention_backward({{a.qkv.data.data() + 3 * first, nullptr, states_.n, p_.config.heads,
                                     states_.scratch.data.data()},
                                    dattended + first,
                                    dqkv + 3 * first});
    }
    norm(a.x, at.norm1_weight, at.norm1_bias, normed, a.norm1);
    linear_back(normed, kHidden, at.in_weight, at.in_bias, packed.in, dqkv, 3 * kHidden, rows_, dnormed, false);
    norm_back(a.x, a.norm1, at.norm1_weight, at.norm1_bias, dnormed, dx);
  }

 private:
  float* sum(size_t offset) const { return sums_ + (offset - p_.layout.attention_begin); }

  // The layer norm once more: its output is not kept.
  void norm(Buffer& x, size_t weight, size_t bias, float* y, Buffer& statistics) const {
    cpu::layer_norm({x.data.data(), flat_ + weight, flat_ + bias, y, statistics.data.data(), rows_});
  }

  // dx +=
  void norm_back(Buffer& x, Buffer& statistics, size_t weight, size_t bias, const float* dy, float* dx) const {
    cpu::layer_norm_backward({x.data.data(), statistics.data.data(), flat_ + weight, dy, dx, sum(weight),
                              sum(bias), rows_});
  }

  // y = W x + b, W [columns][k]: the sums of W and b, and dx (+)= dy W.
  void linear_back(const float* x, int k, size_t weight, size_t bias, const PackedMatrix& packed,
                   const float* dy, int columns, int rows, float* dx, bool accumulate) const {
    cpu::accumulate_outer({dy, columns, x, k, sum(weight), k, rows, columns, k});
    cpu::sum_columns(dy, rows, columns, sum(bias));
    cpu::multiply({dy, columns, packed.backward.data(), dx, k, rows, columns, k, accumulate});
  }

  const CpuParameters& p_;
  const float* const flat_;
  AttentionStates& states_;
  AttentionBackwardBuffers& b_;
  float* const sums_;
  const int rows_, width_;
};

}  // namespace

void attention_encoder_backward(const CpuParameters& p, const SequenceBatch& batch, const RolloutTile& tile,
                                AttentionStates& states, float* doutput, float* dstart_h, float* dstart_c,
                                AttentionBackwardBuffers& buffers, const AttentionGradient& sums) {
  AttentionBackward backward(p, states, buffers, sums.tensors);
  backward.start(doutput, dstart_h, dstart_c);
  for (int l = static_cast<int>(p.layers.size()) - 1; l >= 0; --l) backward.layer(l, doutput);
  for (int s = 0; s < states.sequences; ++s) {
    cpu::embed_backward(batch.features_of(tile.pieces[s].sequence), doutput + floats_of(s * states.n, kHidden),
                        states.n, sums.embedding);
  }
}

}  // namespace pointsman
