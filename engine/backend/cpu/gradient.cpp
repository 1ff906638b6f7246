// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/gradient.h"

#include <algorithm>

namespace pointsman {

namespace {

class TileGradient {
 public:
  TileGradient(const CpuParameters& parameters, const GradientRequest& request, const RolloutTile& tile,
               TileActivations* recorded, GradientWorkspace& workspace, const FoldedActor& folded)
      : p_(parameters),
        weights_(parameters.attention(request.policy)),
        request_(request),
        batch_(request.sequences),
        tile_(tile),
        have_forward_(recorded != nullptr),
        a_(have_forward_ ? *recorded : workspace.activations),
        w_(workspace),
        folded_(folded),
        n_(batch_.n),
        sequences_(static_cast<int>(tile.pieces.size())),
        rows_(static_cast<int>(tile.rollouts)),
        meter_(&request.stop) {}

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
    projections_backward();
    if (request_.learned == Learned::kAttention) return;
    decoder_backward();
    encoder_backward();
  }

 private:
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
  // with zero inputs (on a tape with old finite numbers), for no gradient ever enters those steps.
  void forward() {
    encode(p_, batch_, tile_, true, a_.encoded, request_.stop);
    a_.decoder.resize(rows_, steps_, true);
    int row = 0;
    for (int s = 0; s < sequences_; ++s) {
      const RolloutPiece& piece = tile_.pieces[s];
      for (int i = 0; i < piece.count; ++i, ++row) start_decoder(s, piece.result + i, row);
    }
    lstm_forward(p_.decoder, p_.decoder_start_bias.data(), false, a_.decoder, request_.stop);
    const int total = steps_ * rows_;
    float* queries = a_.queries.get(static_cast<size_t>(total) * kHidden);
    multiply_square(a_.decoder.h_after(0), p_.query, queries, total);
  }

  void start_decoder(int sequence, int64_t result, int row) {
    LstmStates& decoder = a_.decoder;
    std::copy_n(a_.encoded.start_h + sequence * kHidden, kHidden, decoder.h_before(0) + row * kHidden);
    std::copy_n(a_.encoded.start_c + sequence * kHidden, kHidden, decoder.c_before(0) + row * kHidden);
    const float* features = batch_.features_of(tile_.pieces[sequence].sequence);
    const int32_t* items = order(result);
    for (int step = 1; step < steps_; ++step) {
      float* input = decoder.input(step) + 2 * row;
      const int32_t item = items[step - 1];
      input[0] = item < 0 ? 0.0f : features[2 * item];
      input[1] = item < 0 ? 0.0f : features[2 * item + 1];
    }
  }

  // All steps of all rollouts, rollout by rollout: gradients of queries, per-item sums of references.
  template <typename Rules>
  void attention() {
    const Projections& p = p_.projections;
    const size_t floats = static_cast<size_t>(n_) * kHidden;
    float* sums = w_.sums.get(sequences_ * p.count * floats);
    std::fill_n(sums, sequences_ * p.count * floats, 0.0f);
    const size_t total = static_cast<size_t>(steps_) * rows_ * kHidden;
    std::fill_n(w_.dqueries.get(total), total, 0.0f);
    w_.scratch.get(cpu::gradient_scratch(n_));
    w_.logits.get(cpu::padded(n_));
    w_.attention.get(attention_size());
    w_.items.resize(n_);
    w_.prior.start(p_.prior_weights(request_.policy), n_);
    w_.dprior.get(n_);
    int row = 0;
    for (int s = 0; s < sequences_; ++s) {
      const auto sums_of = [&](int i) {
        return i < 0 ? nullptr : sums + (static_cast<size_t>(s) * p.count + i) * floats;
      };
      cpu::ReferenceGradients gradients{sums_of(p.glimpse),   sums_of(p.pointer), sums_of(p.values),
                                        sums_of(p.requeries), folded_.glimpse_v,  folded_.pointer_v};
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
    // The prior enters behind what is kept.
    if (have_forward_) return a_.attention.data.data() + row * attention_size();
    cpu::StepStatistics statistics;
    cpu::pointer_logits({&a_.encoded.references[sequence], &weights_, query, list, count, nullptr,
                         w_.logits.data.data(), w_.attention.data.data(), &statistics});
    return w_.attention.data.data();
  }

  // A rollout's next step lies `rows` further, too far for the processor to guess.
  void ask_for_next(int step, size_t row) const {
    if (step + 1 >= steps_) return;
    const size_t next = row + rows_;
    prefetch(a_.queries.data.data() + next * kHidden, kHidden);
    if (have_forward_)
      prefetch(a_.attention.data.data() + next * attention_size(), static_cast<int64_t>(attention_size()));
  }

  template <typename Rules>
  void rollout_attention(Rules rules, int sequence, int64_t result, int row,
                         cpu::ReferenceGradients& gradients) {
    int32_t* list = w_.items.data();
    const int32_t* items = order(result);
    const float* features = batch_.features_of(tile_.pieces[sequence].sequence);
    const float inverse_temperature = 1.0f / request_.policy.temperature;
    int count = initial_remaining(rules, list, n_);
    for (int step = 0; step < steps_ && count > 0 && items[step] >= 0; ++step) {
      const int position = static_cast<int>(std::find(list, list + count, items[step]) - list);
      if (position == count) return;  // not an order that this problem allows: its rest has no gradient
      if (count > 1) {
        meter_.check(count);
        const size_t at = static_cast<size_t>(step) * rows_ + row;
        const float* query = a_.queries.data.data() + at * kHidden;
        ask_for_next(step, at);
        const float* prior = w_.prior.of(rules, {features, list, count, step > 0 ? items[step - 1] : -1});
        float* dprior = prior == nullptr ? nullptr : w_.dprior.data.data();
        cpu::pointer_gradient({&a_.encoded.references[sequence], &weights_, query, list, count, prior,
                               attention_of(sequence, at, query, list, count), position,
                               request_.weights[result], &gradients, w_.dqueries.data.data() + at * kHidden,
                               dprior, w_.scratch.data.data()});
        if (prior != nullptr) w_.prior.add_gradient(dprior, count, inverse_temperature, folded_.prior);
      }
      rules.step(items[step]);
      count = remove_and_filter(rules, list, count, position);
    }
  }

  // The matrices that queries and references were made with.
  void projections_backward() {
    accumulate_square(w_.dqueries.data.data(), a_.decoder.h_after(0), folded_.query, steps_ * rows_);
    const int width = p_.projections.count * kHidden, total = n_ * sequences_;
    const float* outputs = is_lstm() ? a_.encoded.states.h_after(0) : a_.encoded.attention.output.data.data();
    make_reference_gradients();
    cpu::accumulate_outer({w_.dreferences.data.data(), width, outputs, kHidden, folded_.references, kHidden,
                           total, width, kHidden});
  }

  void decoder_backward() {
    const int total = steps_ * rows_;
    float* dh = w_.dh.get(static_cast<size_t>(total) * kHidden);
    multiply_square(w_.dqueries.data.data(), p_.query_t, dh, total);
    float* dc = w_.dc.get(static_cast<size_t>(rows_) * kHidden);
    std::fill_n(dc, static_cast<size_t>(rows_) * kHidden, 0.0f);
    float* dh_start = w_.dh_start.get(static_cast<size_t>(rows_) * kHidden);
    lstm_backward(p_.decoder, a_.decoder, dh, dc, dh_start, folded_.decoder, request_.stop);
  }

  // Sums of the references -> rows of [projections * H] as the encoder's, with the factor v that the sums
  // lack.
  void make_reference_gradients() {
    const Projections& p = p_.projections;
    const int width = p.count * kHidden;
    const size_t floats = static_cast<size_t>(n_) * kHidden;
    float* out = w_.dreferences.get(floats * sequences_ * p.count);
    for (int s = 0; s < sequences_; ++s) {
      for (int i = 0; i < p.count; ++i) {
        const float* v = i == p.glimpse ? weights_.glimpse_v : i == p.pointer ? weights_.pointer_v : nullptr;
        const float* sums = w_.sums.data.data() + (static_cast<size_t>(s) * p.count + i) * floats;
        for (int item = 0; item < n_; ++item) {
          const int row = is_lstm() ? item * sequences_ + s : s * n_ + item;
          float* to = out + static_cast<size_t>(row) * width + i * kHidden;
          for (int d = 0; d < kHidden; ++d)
            to[d] = v == nullptr ? sums[item * kHidden + d] : v[d] * sums[item * kHidden + d];
        }
      }
    }
  }

  bool is_lstm() const { return p_.config.encoder == Encoder::kLstm; }

  void encoder_backward() {
    const int width = p_.projections.count * kHidden, total = n_ * sequences_;
    const size_t floats = static_cast<size_t>(sequences_) * kHidden;
    float* dh = w_.dh.get(static_cast<size_t>(total) * kHidden);
    cpu::multiply({w_.dreferences.data.data(), width, p_.references_t.data(), dh, kHidden, total, width,
                   kHidden, false});
    float* dc = w_.encoder_dc.get(floats);
    std::fill_n(dc, floats, 0.0f);
    if (is_lstm()) {
      add_start_gradients(dh + (n_ - 1) * floats, dc);
      lstm_backward(p_.encoder, a_.encoded.states, dh, dc, nullptr, folded_.encoder, request_.stop);
      return;
    }
    float* dstart_h = w_.encoder_dh.get(floats);
    std::fill_n(dstart_h, floats, 0.0f);
    add_start_gradients(dstart_h, dc);
    attention_encoder_backward({p_, batch_, tile_, a_.encoded.attention, dh, dstart_h, dc, w_.encoder,
                                folded_.attention, request_.stop});
  }

  // The gradients of each sequence's start state, summed over its rollouts: dh, dc [sequences][H] +=.
  void add_start_gradients(float* dh, float* dc) const {
    int row = 0;
    for (int s = 0; s < sequences_; ++s) {
      for (int i = 0; i < tile_.pieces[s].count; ++i, ++row) {
        for (int d = 0; d < kHidden; ++d) {
          dh[s * kHidden + d] += w_.dh_start.data[row * kHidden + d];
          dc[s * kHidden + d] += w_.dc.data[row * kHidden + d];
        }
      }
    }
  }

  const CpuParameters& p_;
  const cpu::AttentionWeights weights_;
  const GradientRequest& request_;
  const SequenceBatch& batch_;
  const RolloutTile& tile_;
  const bool have_forward_;
  TileActivations& a_;
  GradientWorkspace& w_;
  const FoldedActor& folded_;
  const int n_, sequences_, rows_;
  StopMeter meter_;
  int steps_ = 0;
};

}  // namespace

void gradient_tile(const CpuParameters& parameters, const GradientRequest& request, const RolloutTile& tile,
                   TileActivations* recorded, GradientWorkspace& workspace, const FoldedActor& folded) {
  TileGradient gradient(parameters, request, tile, recorded, workspace, folded);
  with_rules(request.sequences.problem, [&]<typename Rules>() { gradient.run<Rules>(); });
}

namespace {

LstmGradient take_lstm(Placement& placement, bool start) {
  float* const recurrent = placement.take<float>(kRecurrent);
  float* const bias = placement.take<float>(kGates);
  float* const fold = placement.take<float>(2 * kGates);
  return {recurrent, bias, fold, start ? placement.take<float>(kGates) : nullptr};
}

void add(const float* from, size_t count, size_t to, CpuParameters& p) {
  for (size_t i = 0; i < count; ++i) p.gradient[to + i] += from[i];
}

// Recurrent half and bias; input half: dW_ih = dM E^T (+ d1 s^T), dE += W_ih^T dM, ds = W_ih^T d1 (algebra
// identity 1).
void unfold(const LstmGradient& folded, const LstmOffsets& lstm, CpuParameters& p) {
  add(folded.recurrent, kRecurrent, lstm.weight_hh, p);
  add(folded.bias, kGates, lstm.bias, p);
  const bool start = lstm.start >= 0;
  const float* e = p.flat.data() + lstm.embedding;
  const float* s = p.flat.data() + (start ? lstm.start : 0);
  float* de = p.gradient.data() + lstm.embedding;
  float* ds = p.gradient.data() + (start ? lstm.start : 0);
  for (int j = 0; j < kGates; ++j) {
    const float x = folded.fold[j], y = folded.fold[kGates + j], first = start ? folded.start[j] : 0.0f;
    const float* w = p.flat.data() + lstm.weight_ih + static_cast<size_t>(j) * kHidden;
    float* dw = p.gradient.data() + lstm.weight_ih + static_cast<size_t>(j) * kHidden;
    for (int d = 0; d < kHidden; ++d) {
      dw[d] += x * e[2 * d] + y * e[2 * d + 1];
      de[2 * d] += w[d] * x;
      de[2 * d + 1] += w[d] * y;
      if (!start) continue;
      dw[d] += first * s[d];
      ds[d] += w[d] * first;
    }
  }
}

}  // namespace

FoldedActor::FoldedActor(Placement& placement, const ParameterLayout& layout, int projections)
    : encoder(layout.layers.empty() ? take_lstm(placement, false) : LstmGradient{}),
      attention{placement.take<float>(layout.attention_end - layout.attention_begin),
                placement.take<float>(layout.layers.empty() ? 0 : 2 * kHidden)},
      decoder(take_lstm(placement, true)),
      query(placement.take<float>(kSquare)),
      references(placement.take<float>(static_cast<size_t>(projections) * kSquare)),
      glimpse_v(placement.take<float>(kHidden)),
      pointer_v(placement.take<float>(kHidden)),
      prior(placement.take<float>(layout.priors)) {}

FoldedCritic::FoldedCritic(Placement& placement)
    : encoder(take_lstm(placement, false)),
      reference(placement.take<float>(kSquare)),
      query(placement.take<float>(kSquare)),
      v(placement.take<float>(kHidden)),
      fc1_weight(placement.take<float>(kSquare)),
      fc1_bias(placement.take<float>(kHidden)),
      fc2_weight(placement.take<float>(kHidden)),
      fc2_bias(placement.take<float>(1)) {}

void unfold(const FoldedActor& folded, CpuParameters& p) {
  if (p.config.encoder == Encoder::kLstm) {
    unfold(folded.encoder, p.layout.encoder, p);
  } else {
    add(folded.attention.tensors, p.layout.attention_end - p.layout.attention_begin, p.layout.attention_begin,
        p);
    float* de = p.gradient.data() + p.layout.embedding;
    for (int d = 0; d < kHidden; ++d) {
      for (int i = 0; i < 2; ++i) de[2 * d + i] += folded.attention.embedding[i * kHidden + d];
    }
  }
  add(folded.prior, p.layout.priors, p.layout.prior, p);
  unfold(folded.decoder, p.layout.decoder, p);
  add(folded.query, kSquare, p.layout.query, p);
  const auto tensors = projection_tensors(p.layout, p.projections);
  for (int i = 0; i < p.projections.count; ++i) add(folded.references + i * kSquare, kSquare, tensors[i], p);
  if (p.config.glimpses > 0) add(folded.glimpse_v, kHidden, p.layout.glimpse.v, p);
  add(folded.pointer_v, kHidden, p.layout.pointer.v, p);
}

void unfold(const FoldedCritic& folded, CpuParameters& p) {
  const ParameterLayout::Critic& critic = p.layout.critic;
  unfold(folded.encoder, critic.encoder, p);
  add(folded.reference, kSquare, critic.process.w_ref, p);
  add(folded.query, kSquare, critic.process.w_q, p);
  add(folded.v, kHidden, critic.process.v, p);
  add(folded.fc1_weight, kSquare, critic.fc1_weight, p);
  add(folded.fc1_bias, kHidden, critic.fc1_bias, p);
  add(folded.fc2_weight, kHidden, critic.fc2_weight, p);
  add(folded.fc2_bias, 1, critic.fc2_bias, p);
}

}  // namespace pointsman
