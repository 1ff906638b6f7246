// SPDX-License-Identifier: Apache-2.0
// The critic b(s): own embedding and encoder, P = 3 glimpses over all items with one set of weights, the
// encoder's last state as the first query, then two layers (Bello et al., section 3.2 and docs/decisions.md).
#include <algorithm>
#include <numeric>

#include "engine/backend/cpu/gradient.h"

namespace pointsman {

namespace {

class CriticTile {
 public:
  CriticTile(const CpuParameters& parameters, const CriticRequest& request, const RolloutTile& tile,
             GradientWorkspace& workspace)
      : p_(parameters),
        critic_(parameters.layout.critic),
        request_(request),
        tile_(tile),
        w_(workspace),
        states_(workspace.activations.encoded.states),
        n_(request.sequences.n),
        rows_(static_cast<int>(tile.pieces.size())),
        items_(n_) {
    std::iota(items_.begin(), items_.end(), 0);
  }

  void forward() {
    encode();
    // [P + 1][rows][H], and [P][rows][H] W_q state
    float* states = w_.critic_states.get(static_cast<size_t>(kProcessSteps + 1) * rows_ * kHidden);
    float* queries = w_.critic_queries.get(static_cast<size_t>(kProcessSteps) * rows_ * kHidden);
    std::copy_n(states_.h_after(n_ - 1), static_cast<size_t>(rows_) * kHidden, states);
    for (int step = 0; step < kProcessSteps; ++step) {
      multiply_square(at(states, step), p_.critic_query, at(queries, step), rows_);
      for (int row = 0; row < rows_; ++row) {
        request_.stop.check();
        cpu::glimpse(glimpse_args(step, row));
      }
    }
    hidden_.resize(static_cast<size_t>(rows_) * kHidden);
    multiply_square(at(states, kProcessSteps), p_.critic_fc1, hidden_.data(), rows_);
    const float* bias1 = p_.flat.data() + critic_.fc1_bias;
    const float* weight2 = p_.flat.data() + critic_.fc2_weight;
    for (int row = 0; row < rows_; ++row) {
      float value = p_.flat[critic_.fc2_bias];
      for (int d = 0; d < kHidden; ++d) {
        float& h = hidden_[row * kHidden + d];
        h = std::max(h + bias1[d], 0.0f);
        value += weight2[d] * h;
      }
      request_.values[tile_.pieces[row].sequence] = value;
    }
  }

  void backward(const FoldedCritic& folded) {
    const size_t slice = static_cast<size_t>(n_) * kHidden;
    reference_sums_ = w_.sums.get(2 * rows_ * slice);  // [rows][n][H] of the references, then of the values
    value_sums_ = reference_sums_ + rows_ * slice;
    std::fill_n(reference_sums_, 2 * rows_ * slice, 0.0f);
    w_.scratch.get(cpu::gradient_scratch(n_));
    head_backward(folded);
    process_backward(folded);
    encoder_backward(folded);
  }

 private:
  float* at(float* base, int step) const { return base + static_cast<size_t>(step) * rows_ * kHidden; }

  void encode() {
    encode_states(p_.critic_encoder, request_.sequences, tile_, request_.targets != nullptr, states_,
                  request_.stop);
    const size_t slice = static_cast<size_t>(n_) * kHidden;
    // [rows][n][H] W_ref r, then the states themselves
    references_ = w_.activations.encoded.storage.get(2 * rows_ * slice);
    values_ = references_ + rows_ * slice;
    bounds_.resize(rows_);
    for (int row = 0; row < rows_; ++row) {
      request_.stop.check();
      project_states(states_, row, p_.critic_reference.data(), references_ + row * slice);
      cpu::exp_references({references_ + row * slice, n_ * kHidden, &bounds_[row]});
      for (int i = 0; i < n_; ++i) {
        std::copy_n(states_.h_after(i) + row * kHidden, kHidden, values_ + row * slice + i * kHidden);
      }
    }
  }

  cpu::GlimpseArgs glimpse_args(int step, int row) {
    const size_t slice = static_cast<size_t>(n_) * kHidden;
    float* out = at(w_.critic_states.data.data(), step + 1) + row * kHidden;
    const float* query = at(w_.critic_queries.data.data(), step) + row * kHidden;
    return {references_ + row * slice,
            bounds_[row],
            values_ + row * slice,
            p_.flat.data() + critic_.process.v,
            query,
            items_.data(),
            n_,
            out,
            scores_.get(cpu::padded(n_))};
  }

  // d(last process state) into dstate_.
  void head_backward(const FoldedCritic& folded) {
    const float* weight2 = p_.flat.data() + critic_.fc2_weight;
    AlignedFloats dhidden(static_cast<size_t>(rows_) * kHidden);
    for (int row = 0; row < rows_; ++row) {
      const int s = tile_.pieces[row].sequence;
      const float dvalue = 2.0f * request_.weight * (request_.values[s] - request_.targets[s]);
      *folded.fc2_bias += dvalue;
      for (int d = 0; d < kHidden; ++d) {
        const float h = hidden_[row * kHidden + d];
        folded.fc2_weight[d] += dvalue * h;
        dhidden[row * kHidden + d] = h > 0.0f ? dvalue * weight2[d] : 0.0f;
        folded.fc1_bias[d] += dhidden[row * kHidden + d];
      }
    }
    const float* last = at(w_.critic_states.data.data(), kProcessSteps);
    accumulate_square(dhidden.data(), last, folded.fc1_weight, rows_);
    dstate_.resize(dhidden.size());
    multiply_square(dhidden.data(), p_.critic_fc1_t, dstate_.data(), rows_);
  }

  void process_backward(const FoldedCritic& folded) {
    const size_t slice = static_cast<size_t>(n_) * kHidden;
    AlignedFloats dquery(static_cast<size_t>(rows_) * kHidden);
    AlignedFloats readout(kHidden);
    for (int step = kProcessSteps - 1; step >= 0; --step) {
      for (int row = 0; row < rows_; ++row) {
        request_.stop.check();
        cpu::GlimpseArgs forward = glimpse_args(step, row);
        forward.out = readout.data();
        cpu::glimpse_gradient({forward, dstate_.data() + row * kHidden, reference_sums_ + row * slice,
                               value_sums_ + row * slice, folded.v, dquery.data() + row * kHidden,
                               w_.scratch.data.data()});
      }
      const float* state = at(w_.critic_states.data.data(), step);
      accumulate_square(dquery.data(), state, folded.query, rows_);
      multiply_square(dquery.data(), p_.critic_query_t, dstate_.data(), rows_);
    }
  }

  void encoder_backward(const FoldedCritic& folded) {
    const size_t slice = static_cast<size_t>(n_) * kHidden;
    const float* v = p_.flat.data() + critic_.process.v;
    const int total = n_ * rows_;
    float* dreferences = w_.dreferences.get(static_cast<size_t>(total) * kHidden);  // [n][rows][H]
    float* dh = w_.dh.get(static_cast<size_t>(total) * kHidden);
    for (int row = 0; row < rows_; ++row) {
      for (int i = 0; i < n_; ++i) {
        const size_t time_major = (static_cast<size_t>(i) * rows_ + row) * kHidden;
        const size_t from = row * slice + static_cast<size_t>(i) * kHidden;
        for (int d = 0; d < kHidden; ++d) {
          dreferences[time_major + d] = v[d] * reference_sums_[from + d];
          dh[time_major + d] = value_sums_[from + d];
        }
      }
      float* last = dh + (static_cast<size_t>(n_ - 1) * rows_ + row) * kHidden;
      for (int d = 0; d < kHidden; ++d) last[d] += dstate_[row * kHidden + d];
    }
    accumulate_square(dreferences, states_.h_after(0), folded.reference, total);
    multiply_square(dreferences, p_.critic_reference_t, dh, total, true);
    float* dc = w_.dc.get(static_cast<size_t>(rows_) * kHidden);
    std::fill_n(dc, static_cast<size_t>(rows_) * kHidden, 0.0f);
    lstm_backward(p_.critic_encoder, states_, dh, dc, nullptr, folded.encoder, request_.stop);
  }

  const CpuParameters& p_;
  const ParameterLayout::Critic& critic_;
  const CriticRequest& request_;
  const RolloutTile& tile_;
  GradientWorkspace& w_;
  LstmStates& states_;
  const int n_, rows_;
  std::vector<int32_t> items_;
  float *references_ = nullptr, *values_ = nullptr, *reference_sums_ = nullptr, *value_sums_ = nullptr;
  AlignedFloats bounds_, hidden_, dstate_;
  Buffer scores_;
};

}  // namespace

void critic_tile(const CpuParameters& parameters, const CriticRequest& request, const RolloutTile& tile,
                 GradientWorkspace& workspace, const FoldedCritic& folded) {
  CriticTile critic(parameters, request, tile, workspace);
  critic.forward();
  if (request.targets != nullptr) critic.backward(folded);
}

}  // namespace pointsman
