// SPDX-License-Identifier: Apache-2.0
// The attention encoder of the oracle: pre-norm layers of self-attention and feed-forward (PyTorch's
// nn.TransformerEncoderLayer with norm_first, no dropout, ReLU), forward and in reverse.
#include <algorithm>
#include <cmath>

#include "tests/reference/reference.h"

namespace pointsman::reference {
namespace {

constexpr int kH = kHidden;

// y = W x + b, and its reverse.
Vector linear(const Network& network, const std::string& weight, const std::string& bias, const Vector& x) {
  const double *w = network.tensor(weight), *b = network.tensor(bias);
  const auto inputs = static_cast<int>(x.size());
  const auto outputs = static_cast<int>(network.tensor_size(bias));
  Vector y(outputs);
  for (int j = 0; j < outputs; ++j) y[j] = b[j] + dot(w + j * inputs, x.data(), inputs);
  return y;
}

void linear_backward(const Network& network, const std::string& weight, const std::string& bias,
                     const Vector& x, const Vector& dy, Vector& dx, Vector& gradient) {
  const double* w = network.tensor(weight);
  double *dw = &gradient[network.offset(weight)], *db = &gradient[network.offset(bias)];
  const auto inputs = static_cast<int>(x.size());
  for (int j = 0; j < static_cast<int>(dy.size()); ++j) {
    db[j] += dy[j];
    for (int k = 0; k < inputs; ++k) {
      dw[j * inputs + k] += dy[j] * x[k];
      dx[k] += dy[j] * w[j * inputs + k];
    }
  }
}

struct Moments {
  double mean = 0.0, deviation = 0.0;
};

Moments moments_of(const Vector& x) {
  Moments m;
  for (double value : x) m.mean += value / kH;
  double variance = 0.0;
  for (double value : x) variance += (value - m.mean) * (value - m.mean) / kH;
  m.deviation = std::sqrt(variance + 1e-5);
  return m;
}

Vector layer_norm(const Network& network, const std::string& name, const Vector& x) {
  const double *weight = network.tensor(name + ".weight"), *bias = network.tensor(name + ".bias");
  const Moments m = moments_of(x);
  Vector y(kH);
  for (int d = 0; d < kH; ++d) y[d] = (x[d] - m.mean) / m.deviation * weight[d] + bias[d];
  return y;
}

void layer_norm_backward(const Network& network, const std::string& name, const Vector& x, const Vector& dy,
                         Vector& dx, Vector& gradient) {
  const double* weight = network.tensor(name + ".weight");
  double *dweight = &gradient[network.offset(name + ".weight")],
         *dbias = &gradient[network.offset(name + ".bias")];
  const Moments m = moments_of(x);
  double sum = 0.0, sum_x = 0.0;
  for (int d = 0; d < kH; ++d) {
    const double normed = (x[d] - m.mean) / m.deviation;
    dweight[d] += dy[d] * normed;
    dbias[d] += dy[d];
    sum += dy[d] * weight[d] / kH;
    sum_x += dy[d] * weight[d] * normed / kH;
  }
  for (int d = 0; d < kH; ++d)
    dx[d] += (dy[d] * weight[d] - sum - (x[d] - m.mean) / m.deviation * sum_x) / m.deviation;
}

// Of a layer's self-attention: the items' queries, keys and values lie in qkv, head by head.
void attend(int heads, EncoderLayer& layer) {
  const int n = static_cast<int>(layer.qkv.size()), width = kH / heads;
  layer.attended.assign(n, Vector(kH, 0.0));
  layer.p.assign(heads, {});
  std::vector<int> items(n);
  for (int j = 0; j < n; ++j) items[j] = j;
  for (int h = 0; h < heads; ++h) {
    for (int i = 0; i < n; ++i) {
      Vector scores(n);
      for (int j = 0; j < n; ++j) {
        const double *query = &layer.qkv[i][h * width], *key = &layer.qkv[j][kH + h * width];
        scores[j] = dot(query, key, width) / std::sqrt(static_cast<double>(width));
      }
      layer.p[h].push_back(softmax(scores, items));
      for (int j = 0; j < n; ++j) {
        for (int d = h * width; d < (h + 1) * width; ++d)
          layer.attended[i][d] += layer.p[h][i][j] * layer.qkv[j][2 * kH + d];
      }
    }
  }
}

std::vector<Vector> attend_backward(int heads, const EncoderLayer& layer,
                                    const std::vector<Vector>& d_attended) {
  const int n = static_cast<int>(layer.qkv.size()), width = kH / heads;
  std::vector<Vector> d_qkv(n, Vector(3 * kH, 0.0));
  for (int h = 0; h < heads; ++h) {
    for (int i = 0; i < n; ++i) {
      const Vector& p = layer.p[h][i];
      Vector dp(n, 0.0);
      double mean = 0.0;
      for (int j = 0; j < n; ++j) {
        for (int d = h * width; d < (h + 1) * width; ++d) {
          dp[j] += d_attended[i][d] * layer.qkv[j][2 * kH + d];
          d_qkv[j][2 * kH + d] += p[j] * d_attended[i][d];
        }
        mean += p[j] * dp[j];
      }
      for (int j = 0; j < n; ++j) {
        const double d_score = p[j] * (dp[j] - mean) / std::sqrt(static_cast<double>(width));
        for (int d = h * width; d < (h + 1) * width; ++d) {
          d_qkv[i][d] += d_score * layer.qkv[j][kH + d];
          d_qkv[j][kH + d] += d_score * layer.qkv[i][d];
        }
      }
    }
  }
  return d_qkv;
}

std::string layer_name(size_t l) { return "actor.encoder.layers." + std::to_string(l); }

}  // namespace

Encoding encode_by_attention(const Network& network, const Sequence& sequence) {
  const int n = sequence.n(), width = sequence.width();
  const double* e = network.tensor("actor.embedding.weight");
  std::vector<Vector> x(n, Vector(kH));
  for (int i = 0; i < n; ++i) {
    for (int d = 0; d < kH; ++d) x[i][d] = dot(e + width * d, &sequence.features[width * i], width);
  }
  Encoding encoding;
  for (int l = 0; l < network.config.layers; ++l) {
    const std::string name = layer_name(l);
    EncoderLayer layer;
    layer.x = x;
    for (int i = 0; i < n; ++i) {
      layer.normed.push_back(layer_norm(network, name + ".norm1", x[i]));
      layer.qkv.push_back(linear(network, name + ".attention.in_proj_weight",
                                 name + ".attention.in_proj_bias", layer.normed[i]));
    }
    attend(network.config.heads, layer);
    for (int i = 0; i < n; ++i) {
      const Vector out = linear(network, name + ".attention.out_proj.weight",
                                name + ".attention.out_proj.bias", layer.attended[i]);
      for (int d = 0; d < kH; ++d) x[i][d] += out[d];
      layer.residual.push_back(x[i]);
      layer.normed_residual.push_back(layer_norm(network, name + ".norm2", x[i]));
      Vector hidden =
          linear(network, name + ".linear1.weight", name + ".linear1.bias", layer.normed_residual[i]);
      for (double& value : hidden) value = std::max(value, 0.0);
      layer.hidden.push_back(hidden);
      const Vector fed = linear(network, name + ".linear2.weight", name + ".linear2.bias", hidden);
      for (int d = 0; d < kH; ++d) x[i][d] += fed[d];
    }
    encoding.layers.push_back(std::move(layer));
  }
  encoding.mean.assign(kH, 0.0);
  for (int i = 0; i < n; ++i) {
    for (int d = 0; d < kH; ++d) encoding.mean[d] += x[i][d] / n;
  }
  encoding.references = std::move(x);
  encoding.start_hidden = linear(network, "actor.start.h.weight", "actor.start.h.bias", encoding.mean);
  for (double& value : encoding.start_hidden) value = std::tanh(value);
  encoding.start_cell = linear(network, "actor.start.c.weight", "actor.start.c.bias", encoding.mean);
  return encoding;
}

void encode_by_attention_backward(const Network& network, const Sequence& sequence, const Encoding& encoding,
                                  std::vector<Vector> dx, Vector d_hidden, Vector d_cell, Vector& gradient) {
  const int n = sequence.n();
  for (int d = 0; d < kH; ++d) d_hidden[d] *= 1.0 - encoding.start_hidden[d] * encoding.start_hidden[d];
  Vector d_mean(kH, 0.0);
  linear_backward(network, "actor.start.h.weight", "actor.start.h.bias", encoding.mean, d_hidden, d_mean,
                  gradient);
  linear_backward(network, "actor.start.c.weight", "actor.start.c.bias", encoding.mean, d_cell, d_mean,
                  gradient);
  for (int i = 0; i < n; ++i) {
    for (int d = 0; d < kH; ++d) dx[i][d] += d_mean[d] / n;
  }
  for (size_t l = encoding.layers.size(); l-- > 0;) {
    const std::string name = layer_name(l);
    const EncoderLayer& layer = encoding.layers[l];
    std::vector<Vector> d_attended(n, Vector(kH, 0.0));
    for (int i = 0; i < n; ++i) {
      Vector d_fed(layer.hidden[i].size(), 0.0), d_normed(kH, 0.0);
      linear_backward(network, name + ".linear2.weight", name + ".linear2.bias", layer.hidden[i], dx[i],
                      d_fed, gradient);
      for (size_t j = 0; j < d_fed.size(); ++j) {
        if (layer.hidden[i][j] <= 0.0) d_fed[j] = 0.0;
      }
      linear_backward(network, name + ".linear1.weight", name + ".linear1.bias", layer.normed_residual[i],
                      d_fed, d_normed, gradient);
      layer_norm_backward(network, name + ".norm2", layer.residual[i], d_normed, dx[i], gradient);
      linear_backward(network, name + ".attention.out_proj.weight", name + ".attention.out_proj.bias",
                      layer.attended[i], dx[i], d_attended[i], gradient);
    }
    const std::vector<Vector> d_qkv = attend_backward(network.config.heads, layer, d_attended);
    for (int i = 0; i < n; ++i) {
      Vector d_normed(kH, 0.0);
      linear_backward(network, name + ".attention.in_proj_weight", name + ".attention.in_proj_bias",
                      layer.normed[i], d_qkv[i], d_normed, gradient);
      layer_norm_backward(network, name + ".norm1", layer.x[i], d_normed, dx[i], gradient);
    }
  }
  const int width = sequence.width();
  double* de = &gradient[network.offset("actor.embedding.weight")];
  for (int i = 0; i < n; ++i) {
    for (int d = 0; d < kH; ++d) {
      for (int k = 0; k < width; ++k) de[width * d + k] += dx[i][d] * sequence.features[width * i + k];
    }
  }
}

}  // namespace pointsman::reference
