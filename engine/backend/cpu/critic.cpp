// SPDX-License-Identifier: Apache-2.0
// The critic b(s): own embedding and encoder, P = 3 glimpses over all items with one set of weights, the
// encoder's last state as the first query, then two layers (Bello et al., section 3.2 and docs/decisions.md).
#include <algorithm>
#include <numeric>

#include "engine/backend/cpu/gradient.h"

namespace pointsman {
namespace {

struct CriticTile {
  const CpuParameters& p;
  const CriticRequest& request;
  const RolloutTile& tile;
  GradientWorkspace& w;
  const ParameterLayout::Critic& critic = p.layout.critic;
  LstmStates& encoder = w.activations.encoded.states;
  const int n = request.sequences.n, rows = static_cast<int>(tile.pieces.size());
  const size_t slice = floats_of(n);  // of a sequence
  std::vector<int32_t> items = std::vector<int32_t>(n);
  float *references = nullptr, *values = nullptr, *reference_sums = nullptr, *value_sums = nullptr;
  AlignedFloats bounds = {}, hidden = {}, dstate = {};
  Buffer scores = {};

  void forward() {
    std::iota(items.begin(), items.end(), 0);
    encode();
    // [P + 1][rows][H], and [P][rows][H] W_q state
    float* states = w.critic_states.get(floats_of((kProcessSteps + 1) * rows));
    float* queries = w.critic_queries.get(floats_of(kProcessSteps * rows));
    std::copy_n(encoder.h_after(n - 1), floats_of(rows), states);
    for (int step = 0; step < kProcessSteps; ++step) {
      multiply_square(at(states, step), p.critic_query.forward, at(queries, step), rows);
      for (int row = 0; row < rows; ++row) {
        request.stop.check();
        cpu::glimpse(glimpse_args(step, row));
      }
    }
    hidden.resize(floats_of(rows));
    multiply_square(at(states, kProcessSteps), p.critic_fc1.forward, hidden.data(), rows);
    const float* bias1 = p.flat.data() + critic.fc1_bias;
    const float* weight2 = p.flat.data() + critic.fc2_weight;
    for (int row = 0; row < rows; ++row) {
      float value = p.flat[critic.fc2_bias];
      for (int d = 0; d < kHidden; ++d) {
        float& h = hidden[row * kHidden + d];
        h = std::max(h + bias1[d], 0.0f);
        value += weight2[d] * h;
      }
      request.values[tile.pieces[row].sequence] = value;
    }
  }

  void backward(const FoldedCritic& folded) {
    reference_sums = w.sums.get(2 * rows * slice);  // [rows][n][H] of the references, then of the values
    value_sums = reference_sums + rows * slice;
    std::fill_n(reference_sums, 2 * rows * slice, 0.0f);
    w.scratch.get(cpu::gradient_scratch(n));
    head_backward(folded);
    process_backward(folded);
    encoder_backward(folded);
  }

  float* at(float* base, int step) const { return base + floats_of(step * rows); }

  void encode() {
    encode_states(p.critic_encoder, {p, request.sequences, tile, request.stop}, true, encoder);
    // [rows][n][H] W_ref r, then the states themselves
    references = w.activations.encoded.storage.get(2 * rows * slice);
    values = references + rows * slice;
    bounds.resize(rows);
    for (int row = 0; row < rows; ++row) {
      request.stop.check();
      cpu::multiply({encoder.h_after(0) + row * kHidden, rows * kHidden, p.critic_reference.forward.data(),
                     references + row * slice, kHidden, n, kHidden, kHidden, false});
      bounds[row] = cpu::exp_references(references + row * slice, n * kHidden);
      for (int i = 0; i < n; ++i) {
        std::copy_n(encoder.h_after(i) + row * kHidden, kHidden, values + row * slice + i * kHidden);
      }
    }
  }

  cpu::GlimpseArgs glimpse_args(int step, int row) {
    float* out = at(w.critic_states.data(), step + 1) + row * kHidden;
    const float* query = at(w.critic_queries.data(), step) + row * kHidden;
    return {references + row * slice,
            bounds[row],
            values + row * slice,
            p.flat.data() + critic.process.v,
            query,
            items.data(),
            n,
            out,
            scores.get(cpu::padded(n))};
  }

  // d(last process state) into dstate.
  void head_backward(const FoldedCritic& folded) {
    const float* weight2 = p.flat.data() + critic.fc2_weight;
    AlignedFloats dhidden(floats_of(rows));
    for (int row = 0; row < rows; ++row) {
      const int s = tile.pieces[row].sequence;
      const float dvalue = 2.0f * request.weight * (request.values[s] - request.targets[s]);
      *folded.fc2_bias += dvalue;
      for (int d = 0; d < kHidden; ++d) {
        const float h = hidden[row * kHidden + d];
        folded.fc2_weight[d] += dvalue * h;
        dhidden[row * kHidden + d] = h > 0.0f ? dvalue * weight2[d] : 0.0f;
        folded.fc1_bias[d] += dhidden[row * kHidden + d];
      }
    }
    const float* last = at(w.critic_states.data(), kProcessSteps);
    accumulate_square(dhidden.data(), last, folded.fc1_weight, rows);
    dstate.resize(dhidden.size());
    multiply_square(dhidden.data(), p.critic_fc1.backward, dstate.data(), rows);
  }

  void process_backward(const FoldedCritic& folded) {
    AlignedFloats dquery(floats_of(rows));
    AlignedFloats readout(kHidden);
    for (int step = kProcessSteps - 1; step >= 0; --step) {
      for (int row = 0; row < rows; ++row) {
        request.stop.check();
        cpu::GlimpseArgs forward = glimpse_args(step, row);
        forward.out = readout.data();
        cpu::glimpse_gradient({forward, dstate.data() + row * kHidden, reference_sums + row * slice,
                               value_sums + row * slice, folded.v, dquery.data() + row * kHidden,
                               w.scratch.data()});
      }
      const float* state = at(w.critic_states.data(), step);
      accumulate_square(dquery.data(), state, folded.query, rows);
      multiply_square(dquery.data(), p.critic_query.backward, dstate.data(), rows);
    }
  }

  void encoder_backward(const FoldedCritic& folded) {
    const float* v = p.flat.data() + critic.process.v;
    const int total = n * rows;
    float* dreferences = w.dreferences.get(floats_of(total));  // [n][rows][H]
    float* dh = w.dh.get(floats_of(total));
    for (int row = 0; row < rows; ++row) {
      for (int i = 0; i < n; ++i) {
        const size_t time_major = (static_cast<size_t>(i) * rows + row) * kHidden;
        const size_t from = row * slice + floats_of(i);
        for (int d = 0; d < kHidden; ++d) {
          dreferences[time_major + d] = v[d] * reference_sums[from + d];
          dh[time_major + d] = value_sums[from + d];
        }
      }
      float* last = dh + (static_cast<size_t>(n - 1) * rows + row) * kHidden;
      for (int d = 0; d < kHidden; ++d) last[d] += dstate[row * kHidden + d];
    }
    accumulate_square(dreferences, encoder.h_after(0), folded.reference, total);
    multiply_square(dreferences, p.critic_reference.backward, dh, total, true);
    float* dc = w.dc.get(floats_of(rows));
    std::fill_n(dc, floats_of(rows), 0.0f);
    lstm_backward(p.critic_encoder, encoder, {dh, dc, nullptr}, folded.encoder, request.stop);
  }
};

}  // namespace

void critic_tile(const CpuParameters& parameters, const CriticRequest& request, const RolloutTile& tile,
                 GradientWorkspace& workspace, const FoldedCritic& folded) {
  CriticTile critic{parameters, request, tile, workspace};
  critic.forward();
  critic.backward(folded);
}

}  // namespace pointsman
