// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/gradient.h"

#include <algorithm>

namespace pointsman {
namespace {

struct TileGradient {
  const CpuParameters& p;
  const GradientRequest& request;
  const RolloutTile& tile;
  TileActivations& a;
  GradientWorkspace& w;
  const FoldedActor& folded;

  const cpu::AttentionWeights weights = p.attention(request.policy);
  const SequenceBatch& batch = request.sequences;
  const int n = batch.n, most_steps = batch.steps(), sequences = static_cast<int>(tile.pieces.size());
  const int rows = static_cast<int>(tile.rollouts);
  StopMeter meter = StopMeter(&request.stop);
  int steps = 0;

  template <typename Rules>
  void run() {
    steps = choosing_steps<Rules>();
    if (steps == 0) return;
    a.decoder.steps = steps;
    attention<Rules>();
    projections_backward();
    if (request.learned == Learned::kAttention) return;
    decoder_backward();
    encoder_backward();
  }

  const int32_t* order(int64_t result) const { return request.orders + result * most_steps; }

  // Steps in which some rollout of the tile still had a choice.
  template <typename Rules>
  int choosing_steps() const {
    if (!Rules::kDropsItems) return n - 1;
    int most = 0;
    for (const RolloutPiece& piece : tile.pieces) {
      for (int i = 0; i < piece.count; ++i) {
        const int32_t* items = order(piece.result + i);
        most = std::max(most, static_cast<int>(std::find(items, items + most_steps, -1) - items));
      }
    }
    return most;
  }

  // All steps of all rollouts, rollout by rollout: gradients of queries, per-item sums of references.
  template <typename Rules>
  void attention() {
    const Projections& stacked = p.projections;
    const size_t floats = floats_of(n);
    float* sums = w.sums.get(sequences * stacked.count * floats);
    std::fill_n(sums, sequences * stacked.count * floats, 0.0f);
    const size_t total = static_cast<size_t>(steps) * rows * kHidden;
    std::fill_n(w.dqueries.get(total), total, 0.0f);
    w.scratch.get(cpu::gradient_scratch(n));
    w.items.resize(n);
    w.words.resize(Rules::words(n));
    w.prior.start(p.prior_weights(request.policy), n);
    w.dprior.get(n);
    int row = 0;
    for (int s = 0; s < sequences; ++s) {
      const auto sums_of = [&](int i) {
        return i < 0 ? nullptr : sums + (static_cast<size_t>(s) * stacked.count + i) * floats;
      };
      cpu::ReferenceGradients gradients{sums_of(stacked.glimpse), sums_of(stacked.pointer),
                                        sums_of(stacked.values),  sums_of(stacked.requeries),
                                        folded.glimpse_v,         folded.pointer_v};
      const RolloutPiece& piece = tile.pieces[s];
      for (int i = 0; i < piece.count; ++i, ++row) {
        rollout_attention(Rules::make(batch.rule_inputs(piece.sequence, request.policy)), s, piece.result + i,
                          row, gradients);
      }
    }
  }

  size_t attention_size() const { return cpu::attention_activations(n, weights.glimpses); }

  // A rollout's next step lies `rows` further, too far for the processor to guess.
  void ask_for_next(int step, size_t row) const {
    if (step + 1 >= steps) return;
    const size_t next = row + rows;
    prefetch(a.queries.data() + next * kHidden, kHidden);
    prefetch(a.attention.data() + next * attention_size(), static_cast<int64_t>(attention_size()));
  }

  template <typename Rules>
  void rollout_attention(Rules rules, int sequence, int64_t result, int row,
                         cpu::ReferenceGradients& gradients) {
    int32_t* list = w.items.data();
    const int32_t* items = order(result);
    const float* features = batch.features_of(tile.pieces[sequence].sequence);
    const float inverse_temperature = 1.0f / request.policy.temperature;
    std::fill(w.words.begin(), w.words.end(), 0u);
    rules.use_words(w.words.data());
    int count = initial_remaining(rules, list, n);
    for (int step = 0; step < steps && count > 0 && items[step] >= 0; ++step) {
      const int position = static_cast<int>(std::find(list, list + count, items[step]) - list);
      if (position == count) return;  // not an order that this problem allows: its rest has no gradient
      if (count > 1) {
        meter.check(kMatricesOf<Rules> > 0 ? n * n : count);
        const size_t at = static_cast<size_t>(step) * rows + row;
        ask_for_next(step, at);
        const float* prior = w.prior.of(rules, {features, list, count, step > 0 ? items[step - 1] : -1});
        float* dprior = prior == nullptr ? nullptr : w.dprior.data();
        cpu::pointer_gradient({&a.encoded.references[sequence], &weights, a.queries.data() + at * kHidden,
                               list, count, prior, a.attention.data() + at * attention_size(), position,
                               request.weights[result], &gradients, w.dqueries.data() + at * kHidden, dprior,
                               w.scratch.data()});
        if (prior != nullptr) w.prior.add_gradient(dprior, count, inverse_temperature, folded.prior);
      }
      rules.step(items[step]);
      count = next_remaining(rules, list, count, position, n);
    }
  }

  // The matrices that queries and references were made with.
  void projections_backward() {
    accumulate_square(w.dqueries.data(), a.decoder.h_after(0), folded.query, steps * rows);
    const int width = p.projections.count * kHidden, total = n * sequences;
    const float* outputs = is_lstm() ? a.encoded.states.h_after(0) : a.encoded.attention.output.data();
    make_reference_gradients();
    cpu::accumulate_outer(
        {w.dreferences.data(), width, outputs, kHidden, folded.references, kHidden, total, width, kHidden});
  }

  void decoder_backward() {
    const int total = steps * rows;
    float* dh = w.dh.get(floats_of(total));
    multiply_square(w.dqueries.data(), p.query.backward, dh, total);
    float* dc = w.dc.get(floats_of(rows));
    std::fill_n(dc, floats_of(rows), 0.0f);
    float* dh_start = w.dh_start.get(floats_of(rows));
    lstm_backward(p.decoder, a.decoder, {dh, dc, dh_start}, folded.decoder, request.stop);
  }

  // Sums of the references -> rows of [projections * H] as the encoder's, with the factor v that the sums
  // lack.
  void make_reference_gradients() {
    const Projections& stacked = p.projections;
    const int width = stacked.count * kHidden;
    const size_t floats = floats_of(n);
    float* out = w.dreferences.get(floats * sequences * stacked.count);
    for (int s = 0; s < sequences; ++s) {
      for (int i = 0; i < stacked.count; ++i) {
        const float* v = i == stacked.glimpse   ? weights.glimpse_v
                         : i == stacked.pointer ? weights.pointer_v
                                                : nullptr;
        const float* sums = w.sums.data() + (static_cast<size_t>(s) * stacked.count + i) * floats;
        for (int item = 0; item < n; ++item) {
          const int row = is_lstm() ? item * sequences + s : s * n + item;
          float* to = out + static_cast<size_t>(row) * width + i * kHidden;
          for (int d = 0; d < kHidden; ++d)
            to[d] = v == nullptr ? sums[item * kHidden + d] : v[d] * sums[item * kHidden + d];
        }
      }
    }
  }

  bool is_lstm() const { return p.config.encoder == Encoder::kLstm; }

  void encoder_backward() {
    const int width = p.projections.count * kHidden, total = n * sequences;
    const size_t floats = floats_of(sequences);
    float* dh = w.dh.get(floats_of(total));
    cpu::multiply({w.dreferences.data(), width, p.references.backward.data(), dh, kHidden, total, width,
                   kHidden, false});
    float* dc = w.encoder_dc.get(floats);
    std::fill_n(dc, floats, 0.0f);
    if (is_lstm()) {
      add_start_gradients(dh + (n - 1) * floats, dc);
      lstm_backward(p.encoder, a.encoded.states, {dh, dc, nullptr}, folded.encoder, request.stop);
      return;
    }
    float* dstart_h = w.encoder_dh.get(floats);
    std::fill_n(dstart_h, floats, 0.0f);
    add_start_gradients(dstart_h, dc);
    attention_encoder_backward(
        {{p, batch, tile, request.stop}, a.encoded.attention, dh, dstart_h, dc, w.encoder, folded.attention});
  }

  // The gradients of each sequence's start state, summed over its rollouts: dh, dc [sequences][H] +=.
  void add_start_gradients(float* dh, float* dc) const {
    int row = 0;
    for (int s = 0; s < sequences; ++s) {
      for (int i = 0; i < tile.pieces[s].count; ++i, ++row) {
        for (int d = 0; d < kHidden; ++d) {
          dh[s * kHidden + d] += w.dh_start[row * kHidden + d];
          dc[s * kHidden + d] += w.dc[row * kHidden + d];
        }
      }
    }
  }
};

}  // namespace

void gradient_tile(const CpuParameters& parameters, const GradientRequest& request, const RolloutTile& tile,
                   TileActivations& activations, GradientWorkspace& workspace, const FoldedActor& folded) {
  TileGradient gradient{parameters, request, tile, activations, workspace, folded};
  with_rules(request.sequences.problem, [&]<typename Rules>() { gradient.run<Rules>(); });
}

namespace {

LstmGradient take_lstm(Placement& placement, int inputs, bool start) {
  float* const recurrent = placement.take<float>(kRecurrent);
  float* const bias = placement.take<float>(kGates);
  float* const fold = placement.take<float>(static_cast<size_t>(inputs) * kGates);
  return {recurrent, bias, fold, start ? placement.take<float>(kGates) : nullptr};
}

void add(const float* from, size_t count, size_t to, CpuParameters& p) {
  for (size_t i = 0; i < count; ++i) p.gradient[to + i] += from[i];
}

// Of kWidth columns at `input` of a matrix X [H][width]: dW_ih += dM X^T, dX += W_ih^T dM. fold:
// dM, [kWidth][4H].
template <int kWidth>
void unfold_inputs(const float* fold, int64_t weight_ih, int64_t input, int width, CpuParameters& p) {
  const float* x = p.flat.data() + input;
  float* dx = p.gradient.data() + input;
  for (int j = 0; j < kGates; ++j) {
    const float* w = p.flat.data() + weight_ih + floats_of(j);
    float* dw = p.gradient.data() + weight_ih + floats_of(j);
    float dm[kWidth];
    for (int i = 0; i < kWidth; ++i) dm[i] = fold[i * kGates + j];
    for (int d = 0; d < kHidden; ++d) {
      float sum = dm[0] * x[width * d];
      for (int i = 1; i < kWidth; ++i) sum += dm[i] * x[width * d + i];
      dw[d] += sum;
      for (int i = 0; i < kWidth; ++i) dx[width * d + i] += w[d] * dm[i];
    }
  }
}

// Of all its columns.
void unfold_input(const float* fold, int64_t weight_ih, int64_t input, int width, CpuParameters& p) {
  if (width == 2) return unfold_inputs<2>(fold, weight_ih, input, 2, p);
  for (int i = 0; i < width; ++i)
    unfold_inputs<1>(fold + static_cast<size_t>(i) * kGates, weight_ih, input + i, width, p);
}

// Recurrent half and bias; input half: of embedding, context and start (algebra identity 1).
void unfold(const LstmGradient& folded, const LstmOffsets& lstm, CpuParameters& p) {
  add(folded.recurrent, kRecurrent, lstm.weight_hh, p);
  add(folded.bias, kGates, lstm.bias, p);
  unfold_input(folded.fold, lstm.weight_ih, lstm.embedding, lstm.features, p);
  const float* const rest = folded.fold + static_cast<size_t>(lstm.features) * kGates;
  if (lstm.contexts > 0) unfold_input(rest, lstm.weight_ih, lstm.context, lstm.contexts, p);
  if (lstm.start >= 0) unfold_input(folded.start, lstm.weight_ih, lstm.start, 1, p);
}

}  // namespace

FoldedActor::FoldedActor(Placement& placement, const ParameterLayout& layout, int projections)
    : encoder(layout.layers.empty() ? take_lstm(placement, layout.encoder.inputs(), false) : LstmGradient{}),
      attention{placement.take<float>(layout.attention_end - layout.attention_begin),
                placement.take<float>(layout.layers.empty() ? 0 : layout.decoder.features * kHidden)},
      decoder(take_lstm(placement, layout.decoder.inputs(), true)),
      query(placement.take<float>(kSquare)),
      references(placement.take<float>(static_cast<size_t>(projections) * kSquare)),
      glimpse_v(placement.take<float>(kHidden)),
      pointer_v(placement.take<float>(kHidden)),
      prior(placement.take<float>(layout.priors)) {}

FoldedCritic::FoldedCritic(Placement& placement, const ParameterLayout& layout)
    : encoder(take_lstm(placement, layout.critic.encoder.inputs(), false)),
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
    const int width = p.layout.decoder.features;
    float* de = p.gradient.data() + p.layout.embedding;
    for (int d = 0; d < kHidden; ++d) {
      for (int i = 0; i < width; ++i) de[width * d + i] += folded.attention.embedding[i * kHidden + d];
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
