// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda_rollout.h"

#include <algorithm>

#include "engine/backend/cuda_gradient.h"
#include "engine/backend/rollout_request.h"
#include "kernels/cuda/best_of.h"

namespace pointsman::cuda {

namespace {

DecodeMode mode_of(Decode decode) {
  return decode == Decode::kGreedy   ? DecodeMode::kGreedy
         : decode == Decode::kSample ? DecodeMode::kSample
                                     : DecodeMode::kForced;
}

// All rollouts of a call that wants the best ones; statistics are its answers'.
struct CandidateArrays {
  CandidateArrays(Placement& placement, int n, int sequences, int rows_)
      : rows(placement, n, rows_, 0), scratch(placement.take<std::byte>(best_of_scratch(sequences))) {}
  RolloutArrays rows;
  std::byte* scratch;
};

class Rollouts {
 public:
  Rollouts(CudaContext& context, const RolloutRequest& request, int64_t rollouts, RolloutResult& result)
      : context_(context),
        request_(request),
        batch_(request.sequences),
        result_(result),
        slices_(reference_slices(context.config).count),
        tile_rows_(tile_rows(context, batch_.n, rollouts)) {}

  void run() {
    const auto measure = [this](int sequences, int rows) { return need(sequences, rows, false); };
    for (const CudaChunk& chunk : cut_into_chunks(context_, batch_, request_.counts, measure)) {
      if (chunk.rows > 0) run(chunk, false);
    }
  }

  // All at once and onto the tape; false when the activations and what a gradient adds to them do not fit.
  bool run_onto_tape() {
    const ChunkNeed whole = need(batch_.count, batch_.count, true);
    const auto measure = [&](int, int) { return whole; };
    if (!is_one_chunk(context_, measure, batch_.count, batch_.count)) return false;
    run(whole_batch(batch_), true);
    return true;
  }

 private:
  ChunkShape shape() const {
    ChunkShape shape;
    shape.sampling = request_.decode == Decode::kSample;
    shape.orders = request_.decode == Decode::kForced;
    return shape;
  }

  ChunkNeed need(int sequences, int rows, bool record) const {
    const ChunkShape most = at_most(shape(), batch_, sequences, rows);
    Placement uploads, downloads, others;
    ChunkArrays(uploads, most);
    place_answers(downloads, sequences, rows, most.tiles);
    Activations(others, slices_, batch_.n, sequences, rows, record);
    if (request_.best_only) CandidateArrays(others, batch_.n, sequences, rows);
    size_t device = others.bytes() + uploads.bytes() + downloads.bytes();
    if (record) device = std::max(device, gradient_bytes(context_, batch_, sequences, rows));
    return {device, uploads.bytes(), downloads.bytes()};
  }

  void run(const CudaChunk& chunk, bool record) {
    Placement work(context_.memory.work(need(chunk.sequences, chunk.rows, record).device));
    const Activations activations(work, slices_, batch_.n, chunk.sequences, chunk.rows, record);
    const size_t recorded = work.bytes();
    const UploadedChunk uploaded =
        upload(context_, batch_, chunk, shape(), cut_into_tiles(batch_, chunk, tile_rows_), work,
               [&](const ChunkArrays& to) { fill(chunk, to); });
    Placement counted;
    place_answers(counted, chunk.sequences, chunk.rows, uploaded.shape.tiles);
    std::byte* const block = work.take<std::byte>(counted.bytes());
    Placement placed(block);
    const RolloutArrays answers = place_answers(placed, chunk.sequences, chunk.rows, uploaded.shape.tiles);
    encode(context_, uploaded, activations, record, settings().precision);
    if (request_.best_only) {
      CandidateArrays candidates(work, batch_.n, chunk.sequences, chunk.rows);
      candidates.rows.statistics = answers.statistics;
      decode(context_, settings(), uploaded, activations, record, candidates.rows);
      choose(uploaded, candidates, answers);
    } else {
      decode(context_, settings(), uploaded, activations, record, answers);
    }
    download(chunk, uploaded.shape.tiles, block, counted.bytes());
    if (record) context_.memory.hold(recorded);
  }

  // What is downloaded of a chunk.
  RolloutArrays place_answers(Placement& placement, int sequences, int rows, int tiles) const {
    return {placement, batch_.n, request_.best_only ? sequences : rows, tiles, request_.best_only};
  }

  void choose(const UploadedChunk& chunk, const CandidateArrays& from, const RolloutArrays& to) const {
    best_of({chunk.arrays.first_row, from.rows.orders, from.rows.costs, from.rows.log_probs,
             chunk.shape.sequences, batch_.n, from.scratch, to.winners, to.orders, to.costs, to.log_probs},
            context_.stream.get());
  }

  DecodeSettings settings() const {
    return {mode_of(request_.decode),
            batch_.problem,
            request_.policy,
            request_.sample_stride,
            request_.seed,
            request_.tape != nullptr ? Precision::kFp32 : context_.precision};
  }

  void fill(const CudaChunk& chunk, const ChunkArrays& to) const {
    if (request_.decode == Decode::kSample) {
      std::copy_n(request_.instance_keys + chunk.first_sequence, chunk.sequences, to.keys);
      if (request_.first_samples == nullptr) {
        std::fill_n(to.first_samples, chunk.sequences, 0u);
      } else {
        std::copy_n(request_.first_samples + chunk.first_sequence, chunk.sequences, to.first_samples);
      }
    }
    if (request_.decode == Decode::kForced) {
      std::copy_n(request_.forced + chunk.first_result * batch_.n, static_cast<size_t>(chunk.rows) * batch_.n,
                  to.orders);
    }
  }

  void download(const CudaChunk& chunk, int tiles, const std::byte* device, size_t bytes) {
    std::byte* const host = context_.downloads.reserve(bytes);
    require(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, context_.stream.get()), "download");
    context_.stream.synchronize();
    Placement placed(host);
    const RolloutArrays from = place_answers(placed, chunk.sequences, chunk.rows, tiles);
    if (request_.best_only) {
      for (int s = 0; s < chunk.sequences; ++s) {
        if (chunk.first_row[s] < chunk.first_row[s + 1]) take_best(chunk, s, from);
      }
    } else {
      copy(from, 0, chunk.rows, chunk.first_result);
    }
    for (int t = 0; t < tiles; ++t) {
      const DecodeStatistics& s = from.statistics[t];
      result_.statistics += {s.entropy, s.mean_logit, s.saturated, s.steps, s.evaluations, s.direct_rows};
    }
  }

  // An earlier chunk may hold the first rollouts of the same sequence: the best of equal ones is there.
  void take_best(const CudaChunk& chunk, int s, const RolloutArrays& from) {
    const int64_t to = chunk.first_sequence + s;
    if (result_.winners[to] >= 0 && !(from.costs[s] < result_.costs[to])) return;
    copy(from, s, 1, to);
    result_.winners[to] = (s == 0 ? chunk.skipped : 0) + from.winners[s];
  }

  void copy(const RolloutArrays& from, int64_t first, int64_t count, int64_t to) {
    std::copy_n(from.orders + first * batch_.n, count * batch_.n, result_.orders.begin() + to * batch_.n);
    std::copy_n(from.costs + first, count, result_.costs.begin() + to);
    std::copy_n(from.log_probs + first, count, result_.log_probs.begin() + to);
  }

  CudaContext& context_;
  const RolloutRequest& request_;
  const SequenceBatch& batch_;
  RolloutResult& result_;
  const int slices_;
  const int tile_rows_;
};

}  // namespace

void roll_out(CudaContext& context, const RolloutRequest& request, RolloutResult& result) {
  const SequenceBatch& batch = request.sequences;
  const int64_t rollouts = count_rollouts(request);
  clear_rollouts(request.best_only ? batch.count : rollouts, batch.n, result);
  if (request.best_only) result.winners.assign(batch.count, -1);
  if (rollouts == 0) return;
  Rollouts calls(context, request, rollouts, result);
  if (request.tape != nullptr) context.memory.let_go();
  if (request.tape != nullptr && calls.run_onto_tape()) {
    context.tape_head.fill(request, result);
  } else {
    calls.run();
  }
}

}  // namespace pointsman::cuda
