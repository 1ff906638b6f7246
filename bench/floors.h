// SPDX-License-Identifier: Apache-2.0
// What an operation must do at least, counted from its arithmetic (docs/kernels.md), and the time that takes
// at best. Counts are of the fp32 path as it is written: an fma is one fp32 instruction, a division one
// special-function operation and what refines it, and every array crosses device memory once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/network.h"

namespace pointsman::bench {

struct Work {
  double fp32 = 0.0;     // instructions of the fp32 pipe, each of one lane
  double special = 0.0;  // special-function operations (reciprocals, square roots)
  double bytes = 0.0;    // of device memory
};

inline Work operator+(Work a, Work b) { return {a.fp32 + b.fp32, a.special + b.special, a.bytes + b.bytes}; }
inline Work operator*(double times, Work a) { return {times * a.fp32, times * a.special, times * a.bytes}; }

// What the device can do in a second. An fp32 unit of 128 lanes and a special-function unit of 16 stand in
// each multiprocessor, so the second rate is an eighth of the first.
struct Peaks {
  double fp32 = 0.0;   // fp32 instructions (fma), measured
  double bytes = 0.0;  // of a device-to-device copy, read and written, measured

  double special() const { return fp32 / 8.0; }
};

// fma rate and copy bandwidth of a CUDA device, measured now. Zeros where this was built without CUDA.
Peaks cuda_peaks(int device);

struct Floor {
  double ms;
  const char* bound;  // the unit that needs longest
};

inline Floor floor_of(Work work, Peaks peaks) {
  const double fp32 = work.fp32 / peaks.fp32, special = work.special / peaks.special(),
               bytes = work.bytes / peaks.bytes;
  const double most = std::max({fp32, special, bytes});
  return {1e3 * most, most == fp32 ? "fp32" : most == special ? "special" : "bytes"};
}

inline constexpr double kH = kHidden;
inline constexpr double kRow = 4.0 * kHidden;  // bytes of a hidden vector
inline constexpr double kExp = 13.0;           // fp32 instructions of exp (kernels/common/scalar_math.h)
inline constexpr double kDivide = 7.0;         // of a division, besides its reciprocal
inline constexpr double kScore = 4.8;    // of one attention element, four of them joined over one division
inline constexpr double kReadout = 1.0;  // of one element of a softmax readout
// Of one attention element's way back: to the query, to the reference, and both at once in the critic.
inline constexpr double kToQuery = 7.3, kToReference = 8.3, kToBoth = 12.0;

// One LSTM cell but its product: 5 exponentials and 3 divisions a unit, 5 divisions more for the tape, the
// input's half and the bias.
inline Work cell_work(bool keep) {
  const double divisions = keep ? 8.0 : 3.0;
  return {kH * (5.0 * (kExp + 2.0) + divisions * kDivide + 4.0 * 3.0), kH * divisions, 0.0};
}

inline Work lstm_forward_work(double rows, double steps, bool keep) {
  const Work step = cell_work(keep) + Work{4.0 * kH * kH, 0.0, 8.0 + kRow * (keep ? 7.0 : 1.0)};
  return rows * steps * step + Work{0.0, 0.0, 4.0 * kH * kRow};
}

inline Work lstm_backward_work(double rows, double steps) {
  return rows * steps * Work{4.0 * kH * kH + 20.0 * kH, 0.0, kRow * (5.0 + 1.0 + 1.0 + 4.0)};
}

// dW_hh, one product over all rows and steps.
inline Work recurrent_gradient_work(double rows, double steps) {
  return rows * steps * Work{4.0 * kH * kH, 0.0, kRow * 5.0};
}

inline Work input_gradient_work(double rows, double steps) {
  return rows * steps * Work{3.0 * 4.0 * kH, 0.0, 4.0 * kRow + 8.0};
}

// `slices` H x H products of each item; two of them as exponentials.
inline Work project_references_work(double sequences, double n, double slices) {
  const double exponentials = std::min(slices, 2.0);
  return sequences * n * Work{slices * kH * kH + exponentials * kH * kExp, 0.0, kRow * (1.0 + slices)};
}

// Of one instance's encoding and `slices` projections of its items, the multiply-adds alone: all that a CPU's
// floor counts.
inline Work lstm_encoding_work(double n, double slices) {
  return {n * kH * ((4.0 + slices) * kH + 8.0), 0.0, 0.0};
}
inline Work attention_encoding_work(double n, double layers, double feed_forward, double slices) {
  const double layer = n * kH * (4.0 * kH + 2.0 * feed_forward + 2.0 * n);
  return {layers * layer + n * kH * (2.0 + slices * kH) + 2.0 * kH * kH, 0.0, 0.0};
}

// One rollout of n steps with one glimpse. What is read once for all rollouts of an instance is in
// project_references_work.
inline Work decode_work(double rollouts, double n, bool keep) {
  const double elements = kH * n * (n + 1.0) / 2.0;
  const Work attention = {elements * (2.0 * kScore + kReadout) + n * (n + 1.0) * (kExp + 6.0),
                          elements * 2.0 / 4.0, 0.0};
  const Work step = cell_work(keep) + Work{5.0 * kH * kH, 0.0, 4.0 + (keep ? 8.0 * kRow : 0.0)};
  return rollouts * (n * step + attention);
}

// What one rollout of each of `sequences` reads of their references: three rows of every item left, at every
// step. The blocks that run at once have more of them than the L2 holds.
inline Work distinct_references_work(double sequences, double n) {
  return {0.0, 0.0, sequences * n * (n + 1.0) / 2.0 * 3.0 * kRow};
}

// `rollouts` of one sequence, or one of each of many, which are encoded first.
inline Work rollout_work(double sequences, double rollouts, double n) {
  const Work references = sequences > 1.0 ? distinct_references_work(sequences, n) : Work{};
  return lstm_forward_work(sequences, n, false) + project_references_work(sequences, n, 3.0) +
         decode_work(rollouts, n, false) + references;
}

// Backward of the attention of all steps, the forward computed again: two passes of scores, one readout with
// its gradients; scores' and softmax's gradients go through device memory from the first kernel to the
// second.
inline Work pointer_gradient_work(double rollouts, double sequences, double n) {
  const double elements = kH * n * (n + 1.0) / 2.0;
  const Work row = {elements * (2.0 * (kScore + kToQuery + kToReference) + 3.0 * kReadout), elements * 1.5,
                    3.0 * 8.0 * n * n + 3.0 * 2.0 * kRow * n + 2.0 * kRow * n};
  return rollouts * row + sequences * Work{0.0, 0.0, 6.0 * n * kRow};
}

// The critic but its encoder, forward and backward: three glimpses over all items, two layers.
inline Work critic_work(double sequences, double n) {
  const Work glimpse = {2.0 * kH * kH + n * kH * (2.0 * kScore + kReadout + kToBoth), n * kH * 1.5, 0.0};
  return sequences * (3.0 * glimpse + Work{(n + 2.0) * kH * kH + n * kH * kExp, 0.0, n * kRow * 6.0});
}

// The norm reads the gradient; the update reads and writes parameters, moments and gradient.
inline Work adam_update_work(double count) { return count * Work{18.0, 2.0, 36.0}; }

// H x H products over `rows` vectors.
inline Work square_products_work(double rows, double products) {
  return rows * products * Work{kH * kH, 0.0, 2.0 * kRow};
}

// Sampled rollouts with kept activations and their gradient, `parameters` of each of `sets` networks updated.
// Each of the `sequences` has an order of its own, so each is encoded.
inline Work actor_step_work(double sequences, double n, double sets, double parameters) {
  return lstm_forward_work(sequences, n, true) + project_references_work(sequences, n, 3.0) +
         decode_work(sequences, n, true) + pointer_gradient_work(sequences, sequences, n) +
         2.0 * (lstm_backward_work(sequences, n) + recurrent_gradient_work(sequences, n) +
                input_gradient_work(sequences, n)) +
         square_products_work(sequences * n, 2.0 + 2.0 * 3.0) + adam_update_work(sets * parameters);
}

inline Work critic_step_work(double sequences, double n, double parameters) {
  return lstm_forward_work(sequences, n, true) + critic_work(sequences, n) +
         lstm_backward_work(sequences, n) + recurrent_gradient_work(sequences, n) +
         input_gradient_work(sequences, n) + square_products_work(sequences * n, 2.0) +
         adam_update_work(parameters);
}

}  // namespace pointsman::bench
