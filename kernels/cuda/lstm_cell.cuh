// SPDX-License-Identifier: Apache-2.0
// One unit of one LSTM cell, forward and backward, with the bits of kernels/cpu/lstm.cpp, and what the
// kernels of whole sequences, lstm.cu and lstm_cluster.cu, read and write for a unit.
#pragma once

#include "kernels/common/network.h"
#include "kernels/common/scalar_math.h"
#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device.cuh"

namespace pointsman::cuda {

// sigmoid(x) = 1 / (1 + e^-x); beyond this it is 0 or 1, and products of two denominators stay finite.
inline constexpr float kSigmoidLimit = 60.0f;

// A gate before its nonlinearity; without an input just product + bias.
__device__ __forceinline__ float lstm_gate(float product, float bias, float fold0, float fold1,
                                           float2 input) {
  return fmaf(fold1, input.y, fmaf(fold0, input.x, product + bias));
}

// The gates of a unit with any number of inputs: bias and folded inputs are added to the product. bias, fold:
// at the unit.
__device__ __forceinline__ void add_inputs(const float* bias, const float* fold, const float* inputs,
                                           int count, float (&gate)[4]) {
#pragma unroll
  for (int g = 0; g < 4; ++g) {
    gate[g] += __ldg(bias + g * kHidden);
    for (int i = 0; i < count; ++i)
      gate[g] = fmaf(__ldg(fold + i * kGates + g * kHidden), inputs[i], gate[g]);
  }
}

__device__ __forceinline__ float sigmoid_denominator(float x) {
  return exp_bounded_f32(0.0f - clamp_f32(x, -kSigmoidLimit, kSigmoidLimit)) + 1.0f;
}

// exp(2x) - 1 with |x| limited to where tanh is 1: tanh(x) = m / (m + 2).
__device__ __forceinline__ float tanh_numerator(float x) {
  const float limited = clamp_f32(x, -math::kTanhMax, math::kTanhMax);
  const ExpParts e = exp_parts(limited + limited);
  return fmaf(e.scale, e.remainder, e.scale - 1.0f);
}

// Bias and folded input half of the four gates of a unit.
struct LstmUnitWeights {
  float bias[4], fold0[4], fold1[4];
};

__device__ __forceinline__ LstmUnitWeights load_unit_weights(const LstmForwardArgs& a, int set, int unit) {
  // Spelled out: with SetArray::of() the kernels on tensor cores take more registers.
  const float* bias = a.bias.data + set * a.bias.stride + unit;
  const float* fold = a.fold.data + set * a.fold.stride + unit;
  LstmUnitWeights w;
#pragma unroll
  for (int gate = 0; gate < 4; ++gate) {
    w.bias[gate] = __ldg(bias + gate * kHidden);
    w.fold0[gate] = __ldg(fold + gate * kHidden);
    w.fold1[gate] = __ldg(fold + kGates + gate * kHidden);
  }
  return w;
}

struct LstmUnit {
  float h, c;                                         // the new state
  float i_denominator, f_denominator, o_denominator;  // what the cells is made of
  float g_numerator, c_numerator;
};

// The gates before their nonlinearities and the old c.
__device__ __forceinline__ LstmUnit lstm_unit(float i, float f, float g, float o, float c) {
  LstmUnit u;
  u.i_denominator = sigmoid_denominator(i);
  u.f_denominator = sigmoid_denominator(f);
  u.g_numerator = tanh_numerator(g);
  u.o_denominator = sigmoid_denominator(o);
  u.c = c / u.f_denominator + u.g_numerator / (u.i_denominator * (u.g_numerator + 2.0f));
  u.c_numerator = tanh_numerator(u.c);
  u.h = u.c_numerator / (u.o_denominator * (u.c_numerator + 2.0f));
  return u;
}

// i, f, g, o, tanh(c') for the backward pass, kHidden apart. cells points at the unit's i.
__device__ __forceinline__ void store_lstm_cell(const LstmUnit& u, float* cells) {
  cells[0] = 1.0f / u.i_denominator;
  cells[kHidden] = 1.0f / u.f_denominator;
  cells[2 * kHidden] = u.g_numerator / (u.g_numerator + 2.0f);
  cells[3 * kHidden] = 1.0f / u.o_denominator;
  cells[4 * kHidden] = u.c_numerator / (u.c_numerator + 2.0f);
}

struct LstmCell {
  float i, f, g, o, tanh_c;
};

// What store_lstm_cell wrote.
__device__ __forceinline__ LstmCell load_lstm_cell(const float* cells) {
  return {cells[0], cells[kHidden], cells[2 * kHidden], cells[3 * kHidden], cells[4 * kHidden]};
}

struct LstmUnitGradient {
  float i, f, g, o;  // of the gates before their nonlinearities
  float c;           // of the old c
};

// dh and dc reach this step's h and c.
__device__ __forceinline__ LstmUnitGradient lstm_unit_backward(const LstmCell& cell, float c_before, float dh,
                                                               float dc) {
  const float dh_o = dh * cell.o;
  const float d_o = dh_o * cell.tanh_c;
  const float d_c = dc + fmaf(-d_o, cell.tanh_c, dh_o);
  const float dc_i = d_c * cell.i;
  const float d_i = dc_i * cell.g;  // still without the factor (1 - i)
  const float d_f = d_c * c_before * cell.f;
  return {fmaf(-d_i, cell.i, d_i), fmaf(-d_f, cell.f, d_f), fmaf(-d_i, cell.g, dc_i), fmaf(-d_o, cell.o, d_o),
          d_c * cell.f};
}

// Steps that a row has made.
__device__ __forceinline__ int made_steps(const LstmBackwardArgs& a, int64_t row) {
  return a.row_steps == nullptr ? a.steps : a.row_steps[row];
}

// Steps that some row of the tile has made.
__device__ __forceinline__ int made_steps(const LstmBackwardArgs& a, const SetRange& tile) {
  int most = 0;
  for (int r = 0; r < tile.rows; ++r) {
    const int steps = made_steps(a, int64_t{tile.first_row} + r);
    most = steps > most ? steps : most;
  }
  return most;
}

__device__ __forceinline__ void store_gates(const LstmUnitGradient& d, float* dgates) {
  dgates[0] = d.i;
  dgates[kHidden] = d.f;
  dgates[2 * kHidden] = d.g;
  dgates[3 * kHidden] = d.o;
}

}  // namespace pointsman::cuda
