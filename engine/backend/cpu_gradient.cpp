// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu_gradient.h"

#include <algorithm>

#include "kernels/common/knapsack.h"
#include "kernels/common/tsp.h"
#include "kernels/cpu/cpu_operations.h"

namespace pointsman {

namespace {

constexpr size_t kSquare = static_cast<size_t>(kHidden) * kHidden;
constexpr size_t kRecurrent = static_cast<size_t>(kGates) * kHidden;

size_t take(size_t& offset, size_t size) {
  const size_t at = offset;
  offset += size;
  return at;
}

}  // namespace

FoldedLayout::FoldedLayout(int reference_slots) {
  size = 0;
  encoder_recurrent = take(size, kRecurrent);
  encoder_bias = take(size, kGates);
  encoder_fold = take(size, 2 * kGates);
  decoder_recurrent = take(size, kRecurrent);
  decoder_bias = take(size, kGates);
  decoder_fold = take(size, 2 * kGates);
  decoder_start = take(size, kGates);
  query = take(size, kSquare);
  references = take(size, reference_slots * kSquare);
  glimpse_v = take(size, kHidden);
  pointer_v = take(size, kHidden);
}

namespace {

class TileGradient {
 public:
  TileGradient(const CpuParameters& parameters, const AttentionWeights& weights, const ReferenceSlots& slots,
               const GradientRequest& request, const RolloutTile& tile, TileActivations* kept,
               GradientWorkspace& workspace, float* folded)
      : p_(parameters),
        weights_(weights),
        slots_(slots),
        request_(request),
        batch_(request.sequences),
        tile_(tile),
        have_forward_(kept != nullptr),
        a_(kept != nullptr ? *kept : workspace.activations),
        w_(workspace),
        folded_(folded),
        at_(slots.count),
        n_(batch_.n),
        sequences_(static_cast<int>(tile.pieces.size())),
        rows_(static_cast<int>(tile.rollouts)) {}

  template <typename Rules>
  void run() {
    steps_ = choosing_steps<Rules>();
    if (steps_ == 0) return;
    if (have_forward_) {
      a_.decoder.steps = steps_;
    } else {
      forward();
    }
    attention<Rules>();
    decoder_backward();
    encoder_backward();
  }

 private:
  const float* features(int piece) const {
    return batch_.features + static_cast<size_t>(tile_.pieces[piece].sequence) * n_ * 2;
  }
  const int32_t* order(int64_t result) const { return request_.orders + result * n_; }

  // Steps in which some rollout of the tile still had a choice.
  template <typename Rules>
  int choosing_steps() const {
    if (!Rules::kDropsItems) return n_ - 1;
    int most = 0;
    for (const RolloutPiece& piece : tile_.pieces) {
      for (int i = 0; i < piece.count; ++i) {
        const int32_t* items = order(piece.result + i);
        most = std::max(most, static_cast<int>(std::find(items, items + n_, -1) - items));
      }
    }
    return most;
  }

  // Encoder of each sequence; decoder of each rollout, fed with what it chose. Rollouts that ended run on
  // with zero inputs (kept activations: with old finite numbers), for no gradient ever enters those steps.
  void forward() {
    std::vector<const float*> inputs;
    for (int s = 0; s < sequences_; ++s) inputs.push_back(features(s));
    encode(p_, slots_, inputs.data(), sequences_, n_, true, a_.encoded);
    a_.decoder.resize(rows_, steps_, true);
    int row = 0;
    for (int s = 0; s < sequences_; ++s) {
      for (int i = 0; i < tile_.pieces[s].count; ++i, ++row) {
        std::copy_n(a_.encoded.tape.h_slot(n_) + s * kHidden, kHidden, a_.decoder.h_slot(0) + row * kHidden);
        std::copy_n(a_.encoded.tape.c_slot(n_) + s * kHidden, kHidden, a_.decoder.c_slot(0) + row * kHidden);
        const int32_t* items = order(tile_.pieces[s].result + i);
        for (int step = 1; step < steps_; ++step) {
          float* input = a_.decoder.input(step) + 2 * row;
          const int32_t item = items[step - 1];
          input[0] = item < 0 ? 0.0f : features(s)[2 * item];
          input[1] = item < 0 ? 0.0f : features(s)[2 * item + 1];
        }
      }
    }
    lstm_forward(p_.decoder, p_.decoder_start_bias.data(), false, true, a_.decoder);
    const int total = steps_ * rows_;
    float* queries = a_.queries.get(static_cast<size_t>(total) * kHidden);
    cpu::multiply(
        {a_.decoder.h_slot(1), kHidden, p_.query.data(), queries, kHidden, total, kHidden, kHidden, false});
  }

  // All steps of all rollouts, rollout by rollout: gradients of queries, per-item sums of references.
  template <typename Rules>
  void attention() {
    const size_t slice = static_cast<size_t>(n_) * kHidden;
    float* sums = w_.sums.get(sequences_ * slots_.count * slice);
    std::fill_n(sums, sequences_ * slots_.count * slice, 0.0f);
    const size_t total = static_cast<size_t>(steps_) * rows_ * kHidden;
    std::fill_n(w_.dqueries.get(total), total, 0.0f);
    w_.scratch.get(cpu::gradient_scratch(n_));
    w_.logits.get(cpu::padded(n_));
    w_.attention.get(attention_size());
    w_.items.resize(n_);
    int row = 0;
    for (int s = 0; s < sequences_; ++s) {
      const auto slot = [&](int i) {
        return i < 0 ? nullptr : sums + (static_cast<size_t>(s) * slots_.count + i) * slice;
      };
      ReferenceGradients gradients{slot(slots_.glimpse),   slot(slots_.pointer),    slot(slots_.values),
                                   slot(slots_.requeries), folded_ + at_.glimpse_v, folded_ + at_.pointer_v};
      const RolloutPiece& piece = tile_.pieces[s];
      for (int i = 0; i < piece.count; ++i, ++row) {
        rollout_attention(Rules::make(batch_.rule_inputs(piece.sequence, request_.policy)), s,
                          piece.result + i, row, gradients);
      }
    }
  }

  size_t attention_size() const { return cpu::attention_activations(n_, weights_.glimpses); }

  // What the attention of one step left, or makes now.
  const float* attention_of(int sequence, size_t row, const float* query, const int32_t* list, int count) {
    if (have_forward_) return a_.attention.data.data() + row * attention_size();
    StepStatistics statistics;
    cpu::pointer_logits({&a_.encoded.references[sequence], &weights_, query, list, count,
                         w_.logits.data.data(), w_.attention.data.data(), &statistics});
    return w_.attention.data.data();
  }

  template <typename Rules>
  void rollout_attention(Rules rules, int sequence, int64_t result, int row, ReferenceGradients& gradients) {
    int32_t* list = w_.items.data();
    const int32_t* items = order(result);
    int count = initial_remaining(rules, list, n_);
    for (int step = 0; step < steps_ && count > 0 && items[step] >= 0; ++step) {
      const int position = static_cast<int>(std::find(list, list + count, items[step]) - list);
      if (position == count) return;  // not an order that this problem allows: its rest has no gradient
      if (count > 1) {
        const size_t at = static_cast<size_t>(step) * rows_ + row;
        const float* query = a_.queries.data.data() + at * kHidden;
        cpu::pointer_gradient({&a_.encoded.references[sequence], &weights_, query, list, count,
                               attention_of(sequence, at, query, list, count), position,
                               request_.weights[result], &gradients, w_.dqueries.data.data() + at * kHidden,
                               w_.scratch.data.data()});
      }
      rules.step(items[step]);
      count = remove_and_filter(rules, list, count, position);
    }
  }

  void decoder_backward() {
    const int total = steps_ * rows_;
    const float* dqueries = w_.dqueries.data.data();
    cpu::accumulate_outer({dqueries, kHidden, a_.decoder.h_slot(1), kHidden, folded_ + at_.query, kHidden,
                           total, kHidden, kHidden});
    float* dh = w_.dh.get(static_cast<size_t>(total) * kHidden);
    cpu::multiply({dqueries, kHidden, p_.query_t.data(), dh, kHidden, total, kHidden, kHidden, false});
    float* dc = w_.dc.get(static_cast<size_t>(rows_) * kHidden);
    std::fill_n(dc, static_cast<size_t>(rows_) * kHidden, 0.0f);
    float* dh_start = w_.dh_start.get(static_cast<size_t>(rows_) * kHidden);
    lstm_backward(p_.decoder, a_.decoder, dh, dc, dh_start,
                  {folded_ + at_.decoder_recurrent, folded_ + at_.decoder_bias, folded_ + at_.decoder_fold,
                   folded_ + at_.decoder_start});
  }

  // Sums of the references -> [n][sequences][slots * H], with the factor v that the sums lack.
  float* reference_gradients() {
    const int width = slots_.count * kHidden;
    const size_t slice = static_cast<size_t>(n_) * kHidden;
    float* out = w_.dreferences.get(static_cast<size_t>(n_) * sequences_ * width);
    for (int s = 0; s < sequences_; ++s) {
      for (int slot = 0; slot < slots_.count; ++slot) {
        const float* v = slot == slots_.glimpse   ? weights_.glimpse_v
                         : slot == slots_.pointer ? weights_.pointer_v
                                                  : nullptr;
        const float* sums = w_.sums.data.data() + (static_cast<size_t>(s) * slots_.count + slot) * slice;
        for (int i = 0; i < n_; ++i) {
          float* to = out + (static_cast<size_t>(i) * sequences_ + s) * width + slot * kHidden;
          for (int d = 0; d < kHidden; ++d)
            to[d] = v == nullptr ? sums[i * kHidden + d] : v[d] * sums[i * kHidden + d];
        }
      }
    }
    return out;
  }

  void encoder_backward() {
    const int width = slots_.count * kHidden, total = n_ * sequences_;
    const size_t states = static_cast<size_t>(sequences_) * kHidden;
    const float* dreferences = reference_gradients();
    LstmTape& tape = a_.encoded.tape;
    cpu::accumulate_outer({dreferences, width, tape.h_slot(1), kHidden, folded_ + at_.references, kHidden,
                           total, width, kHidden});
    float* dh = w_.dh.get(static_cast<size_t>(total) * kHidden);
    cpu::multiply({dreferences, width, p_.references_t.data(), dh, kHidden, total, width, kHidden, false});
    float* dc = w_.encoder_dc.get(states);
    std::fill_n(dc, states, 0.0f);
    int row = 0;
    for (int s = 0; s < sequences_; ++s) {
      for (int i = 0; i < tile_.pieces[s].count; ++i, ++row) {
        float* dh_last = dh + (n_ - 1) * states + s * kHidden;
        for (int d = 0; d < kHidden; ++d) {
          dh_last[d] += w_.dh_start.data[row * kHidden + d];
          dc[s * kHidden + d] += w_.dc.data[row * kHidden + d];
        }
      }
    }
    lstm_backward(
        p_.encoder, tape, dh, dc, nullptr,
        {folded_ + at_.encoder_recurrent, folded_ + at_.encoder_bias, folded_ + at_.encoder_fold, nullptr});
  }

  const CpuParameters& p_;
  const AttentionWeights& weights_;
  const ReferenceSlots& slots_;
  const GradientRequest& request_;
  const SequenceBatch& batch_;
  const RolloutTile& tile_;
  const bool have_forward_;
  TileActivations& a_;
  GradientWorkspace& w_;
  float* const folded_;
  const FoldedLayout at_;
  const int n_, sequences_, rows_;
  int steps_ = 0;
};

}  // namespace

void gradient_tile(const CpuParameters& parameters, const AttentionWeights& weights,
                   const ReferenceSlots& slots, const GradientRequest& request, const RolloutTile& tile,
                   TileActivations* kept, GradientWorkspace& workspace, float* folded) {
  TileGradient gradient(parameters, weights, slots, request, tile, kept, workspace, folded);
  with_rules(request.sequences.problem, [&]<typename Rules>() { gradient.run<Rules>(); });
}

namespace {

void add(const float* from, size_t count, float* to) {
  for (size_t i = 0; i < count; ++i) to[i] += from[i];
}

// Input half of an LSTM: dW_ih = dM E^T (+ d1 s^T), dE += W_ih^T dM, ds = W_ih^T d1 (algebra identity 1).
void unfold_input(const float* fold, const float* start, const LstmSlots& lstm, size_t embedding,
                  size_t decoder_start, CpuParameters& p) {
  const float* e = p.flat.data() + embedding;
  const float* s = p.flat.data() + decoder_start;
  for (int j = 0; j < kGates; ++j) {
    const float x = fold[j], y = fold[kGates + j], first = start == nullptr ? 0.0f : start[j];
    const float* w = p.flat.data() + lstm.weight_ih + static_cast<size_t>(j) * kHidden;
    float* dw = p.gradient.data() + lstm.weight_ih + static_cast<size_t>(j) * kHidden;
    float* de = p.gradient.data() + embedding;
    float* ds = p.gradient.data() + decoder_start;
    for (int d = 0; d < kHidden; ++d) {
      dw[d] += x * e[2 * d] + y * e[2 * d + 1];
      de[2 * d] += w[d] * x;
      de[2 * d + 1] += w[d] * y;
      if (start == nullptr) continue;
      dw[d] += first * s[d];
      ds[d] += w[d] * first;
    }
  }
}

}  // namespace

void unfold_actor(const ModelConfig& config, const ParameterLayout& layout, const float* folded,
                  CpuParameters& p) {
  const ReferenceSlots slots = reference_slots(config);
  const FoldedLayout at(slots.count);
  float* g = p.gradient.data();
  add(folded + at.encoder_recurrent, kRecurrent, g + layout.encoder.weight_hh);
  add(folded + at.encoder_bias, kGates, g + layout.encoder.bias);
  unfold_input(folded + at.encoder_fold, nullptr, layout.encoder, layout.embedding, layout.decoder_start, p);
  add(folded + at.decoder_recurrent, kRecurrent, g + layout.decoder.weight_hh);
  add(folded + at.decoder_bias, kGates, g + layout.decoder.bias);
  unfold_input(folded + at.decoder_fold, folded + at.decoder_start, layout.decoder, layout.embedding,
               layout.decoder_start, p);
  add(folded + at.query, kSquare, g + (config.glimpses > 0 ? layout.glimpse.w_q : layout.pointer.w_q));
  const auto slot = [&](int i, size_t offset) {
    if (i >= 0) add(folded + at.references + i * kSquare, kSquare, g + offset);
  };
  slot(slots.glimpse, layout.glimpse.w_ref);
  slot(slots.pointer, layout.pointer.w_ref);
  slot(slots.values, layout.pointer.w_q);
  slot(slots.requeries, layout.glimpse.w_q);
  if (config.glimpses > 0) add(folded + at.glimpse_v, kHidden, g + layout.glimpse.v);
  add(folded + at.pointer_v, kHidden, g + layout.pointer.v);
}

void unfold_critic(const ParameterLayout& layout, const float* folded, CpuParameters& p) {
  const CriticFoldedLayout at;
  const ParameterLayout::Critic& critic = layout.critic;
  float* g = p.gradient.data();
  add(folded + at.recurrent, kRecurrent, g + critic.encoder.weight_hh);
  add(folded + at.bias, kGates, g + critic.encoder.bias);
  unfold_input(folded + at.fold, nullptr, critic.encoder, critic.embedding, 0, p);
  add(folded + at.reference, kSquare, g + critic.process.w_ref);
  add(folded + at.query, kSquare, g + critic.process.w_q);
  add(folded + at.v, kHidden, g + critic.process.v);
  add(folded + at.fc1_weight, kSquare, g + critic.fc1_weight);
  add(folded + at.fc1_bias, kHidden, g + critic.fc1_bias);
  add(folded + at.fc2_weight, kHidden, g + critic.fc2_weight);
  g[critic.fc2_bias] += folded[at.fc2_bias];
}

}  // namespace pointsman
