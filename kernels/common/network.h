// SPDX-License-Identifier: Apache-2.0
// What every device knows of the network: its widths, where an LSTM's tensors lie, which projections of the
// encoded items attention reads, and what attention is set to.
#pragma once

#include <cstdint>

namespace pointsman {

inline constexpr int kHidden = 128;                  // H of Bello et al. 2017, section 5
inline constexpr int kGates = 4 * kHidden;           // i, f, g, o
inline constexpr int kLstmCell = kGates + kHidden;   // i, f, g, o, tanh(c) of a step, for its backward pass
inline constexpr int kSquare = kHidden * kHidden;    // floats of a matrix [H][H]
inline constexpr int kRecurrent = kGates * kHidden;  // floats of W_hh [4H][H]
inline constexpr int kProcessSteps = 3;              // P, glimpses of the critic's process block

// Where the tensors of an LSTM begin in the flat parameter vector, in floats.
struct LstmOffsets {
  int64_t embedding;               // [H][F]
  int64_t weight_ih;               // [4H][H]
  int64_t weight_hh;               // [4H][H]
  int64_t bias;                    // [4H]
  int64_t start = -1;              // [H] the decoder's trainable first input; -1: none
  int64_t context = 0;             // [H][C] of the decoder
  int features = 2, contexts = 0;  // F and C, Rules::kFeatures and kContext

  int inputs() const { return features + contexts; }
};

// What turns the items of an instance into references.
enum class Encoder {
  kLstm,       // Bello et al. 2017: reads the items one by one
  kAttention,  // layers of self-attention (Kool et al. 2019, pre-norm): the order of the items does not
               // matter
};
// Whether the same items in another order are another input.
constexpr bool reads_order(Encoder encoder) { return encoder == Encoder::kLstm; }
constexpr const char* name_of(Encoder encoder) { return encoder == Encoder::kLstm ? "lstm" : "attention"; }

inline constexpr float kNormEpsilon = 1e-5f;  // of the layer norms, added to the variance

// Every encoded item r is multiplied once by `count` matrices [H][H], stacked in the order below. Which place
// each has; -1: it is not there.
struct Projections {
  int glimpse = -1;    // W_ref^g r
  int pointer = -1;    // W_ref^p r
  int values = -1;     // W_q^p r: the glimpse's readout is the pointer's query (algebra identity 2)
  int requeries = -1;  // W_q^g r: the next glimpse's query
  int count = 0;
};

constexpr Projections projections_of(int glimpses) {
  Projections p;
  if (glimpses > 0) p.glimpse = p.count++;
  p.pointer = p.count++;
  if (glimpses > 0) p.values = p.count++;
  if (glimpses > 1) p.requeries = p.count++;
  return p;
}

// Vector: how a device names a vector [H] of a parameter set.
template <typename Vector>
struct Attention {
  Vector glimpse_v, pointer_v;
  int glimpses;  // 0 ..: with 0 the step's query goes to the pointer
  bool centre;   // subtract the mean of u before the clip
  float scale;   // C / T
};

}  // namespace pointsman
