// SPDX-License-Identifier: Apache-2.0
// One unit of one LSTM cell, forward and backward, with the bits of kernels/cpu/lstm.cpp. Forward: 5
// exponentials and 3 divisions, 5 more divisions for the cells; no special-function operation but the
// divisions' reciprocals.
#pragma once

#include "kernels/common/network.h"
#include "kernels/common/scalar_math.h"
#include "kernels/cuda/device.cuh"

namespace pointsman::cuda {

// sigmoid(x) = 1 / (1 + e^-x); beyond this it is 0 or 1, and products of two denominators stay finite.
inline constexpr float kSigmoidLimit = 60.0f;

// A gate before its nonlinearity; without an input just product + bias.
__device__ __forceinline__ float lstm_gate(float product, float bias, float fold0, float fold1,
                                           float2 input) {
  return fmaf(fold1, input.y, fmaf(fold0, input.x, product + bias));
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

struct LstmUnitGradient {
  float i, f, g, o;  // of the gates before their nonlinearities
  float c;           // of the old c
};

// cells as store_lstm_cell wrote it; dh and dc reach this step's h and c.
__device__ __forceinline__ LstmUnitGradient lstm_unit_backward(const float* cells, float c_before, float dh,
                                                               float dc) {
  const float i = cells[0], f = cells[kHidden], g = cells[2 * kHidden], o = cells[3 * kHidden];
  const float tanh_c = cells[4 * kHidden];
  const float dh_o = dh * o;
  const float d_o = dh_o * tanh_c;
  const float d_c = dc + fmaf(-d_o, tanh_c, dh_o);
  const float dc_i = d_c * i;
  const float d_i = dc_i * g;  // still without the factor (1 - i)
  const float d_f = d_c * c_before * f;
  return {fmaf(-d_i, i, d_i), fmaf(-d_f, f, d_f), fmaf(-d_i, g, dc_i), fmaf(-d_o, o, d_o), d_c * f};
}

}  // namespace pointsman::cuda
