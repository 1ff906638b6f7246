// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <utility>
#include <vector>

#include "engine/backend/cuda/forward.h"
#include "engine/backend/requests.h"

namespace pointsman::cuda {
namespace {

// A chunk's device memory. With best_only all rollouts are candidates, whose statistics are the answers'.
struct RolloutWork {
  RolloutWork(Placement& placement, const ModelConfig& config, const ChunkShape& shape,
              const TileShape& tiles, bool record, bool best_only)
      : activations(placement, config, shape, record),
        activation_bytes(placement.bytes()),
        inputs(placement, shape),
        answers(placement, shape.steps, best_only ? shape.sequences : shape.rows, shape.tiles, best_only),
        candidates(placement, shape.steps, best_only ? shape.rows : 0, 0),
        best_scratch(placement.take<std::byte>(best_only ? best_of_scratch(shape.sequences) : 0)) {
    candidates.statistics = answers.statistics;
    if (tiles.samples > 0) {
      const int64_t tree = decode_tree_bytes(shape.n, std::min(tiles.samples, shape.rows));
      activations.tree = placement.take<std::byte>(std::min(tiles.blocks, shape.tiles) * tree);
    }
  }

  Activations activations;
  size_t activation_bytes;
  ChunkArrays inputs;
  RolloutArrays answers, candidates;
  std::byte* best_scratch;
};

// Most samples of a sequence that may share prefixes: without a tape, where each has its own activations.
int most_that_share(const RolloutRequest& request) {
  if (request.decode != Decode::kSample || request.tape != nullptr || request.counts == nullptr) return 0;
  return *std::max_element(request.counts, request.counts + request.sequences.count);
}

// Of the whole call; of more rollouts than a chunk can have only their number.
DecodeLoad decode_load(const RolloutRequest& request, int64_t rollouts) {
  if (rollouts > std::numeric_limits<int>::max()) return {rollouts, 1, 1};
  return decode_load(request.sequences, whole_batch(request.sequences, request.counts));
}

// A chunk under way.
struct Flight {
  DeviceStream& stream;
  StreamPool::Lease lease;  // of the stream, unless it is the main one
  ChunkPlan plan;
  RolloutWork work;
};

struct Rollouts {
  MainStream& main;
  const RolloutRequest& request;
  const int64_t rollouts;
  RolloutResult& result;

  const SequenceBatch& batch = request.sequences;
  const int steps = batch.steps();
  const TileShape tiles = tile_shape(main.device, batch.n, decode_load(request, rollouts),
                                     request.tape == nullptr ? main.device.precision : Precision::kFp32,
                                     most_that_share(request));
  const ChunkShape flags{.sampling = request.decode == Decode::kSample,
                         .orders = request.decode == Decode::kForced,
                         .decode = true};
  bool record = false, is_whole = true;  // is_whole: no stop left some of the rollouts unmade
  std::vector<int32_t> finished = std::vector<int32_t>(batch.count, 0);  // [count] rollouts made

  // On the pool's streams. Where one has too little memory for a single rollout, the chunks run one after the
  // other on the main stream, with all of the memory.
  void run(StreamPool& pool) {
    const auto measure = [this](int sequences, int rows) { return need(sequences, rows); };
    const bool alone = !is_one_chunk(pool.memory(), measure, 1, 1);
    const auto all = alone ? pool.take(StreamPool::kStreams) : std::vector<StreamPool::Lease>();
    CudaMemory& memory = alone ? main.memory : pool.memory();
    const auto chunks = cut_into_chunks(memory, batch, request.counts, measure);
    std::deque<Flight> flights;
    for (const CudaChunk& chunk : chunks) {
      if (chunk.rows == 0) continue;
      StreamPool::Lease lease;
      if (!alone) lease = flights.empty() ? std::move(pool.take(1)[0]) : pool.try_take();
      if (lease.get() == nullptr && !flights.empty()) lease = land(flights);
      is_whole = is_whole && !request.stop.stops();
      if (!is_whole) break;
      DeviceStream& stream = alone ? main : *lease.get();
      flights.push_back(prepare(stream, std::move(lease), chunk));
      enqueue(flights.back());
    }
    while (!flights.empty()) land(flights);
    tell_finished();
  }

  // All at once and onto the tape, which a stop leaves empty; false when the activations and what a gradient
  // adds to them do not fit.
  bool run_onto_tape() {
    if (!fits_on_tape(0)) return false;
    const CudaChunk chunk = whole_batch(batch, request.counts);
    const Flight flight = prepare(main, {}, chunk);
    enqueue(flight);
    main.wait(request.stop);
    collect(flight);
    if (is_whole) main.memory.hold(flight.work.activation_bytes);
    tell_finished();
    return true;
  }

  // The same and the rest of the step as one graph. The activations and the word of the stop signal stay
  // where they are.
  bool run_step(const RestOfStep& rest) {
    if (!fits_on_tape(rest.bytes)) return false;
    const CudaChunk chunk = whole_batch(batch, request.counts);
    const Flight flight = prepare(main, {}, chunk);
    main.downloads.reserve(flight.work.answers.bytes);
    main.memory.hold(flight.work.activation_bytes + flight.work.inputs.bytes);
    HostCall answers([&] {
      collect(flight);
      tell_finished();
      rest.on_host();
    });
    rest.prepare();
    main.learning.launch(main, [&] {
      enqueue(flight);
      answers.enqueue(main);
      rest.enqueue();
    });
    try {
      main.wait(request.stop);
    } catch (...) {
      cudaStreamSynchronize(main.get());  // which calls `answers`
      throw;
    }
    answers.rethrow();
    return true;
  }

  ChunkNeed need(int sequences, int rows) const {
    Placement counted;
    const RolloutWork work(counted, main.device.config, at_most(flags, batch, sequences, rows), tiles, record,
                           request.best_only);
    const bool attends = main.device.config.encoder == Encoder::kAttention;
    return {counted.bytes(), work.inputs.bytes, work.answers.bytes,
            attends ? static_cast<double>(sequences) * batch.n * batch.n : 0.0};
  }

  // Whether all rollouts and their gradient fit, and `more` bytes beside the activations and inputs.
  bool fits_on_tape(size_t more) {
    record = true;
    ChunkNeed whole{};
    const auto measure = [&](int sequences, int rows) {
      whole = need(sequences, rows);
      whole.device = std::max(whole.device, gradient_bytes(main, batch, sequences, rows)) + more;
      if (more > 0) whole.device += whole.upload;
      return whole;
    };
    record = is_one_chunk(main.memory, measure, batch.count, rollouts);
    if (record) main.memory.work(whole.device);
    return record;
  }

  // The chunk's inputs, on their way to the stream.
  Flight prepare(DeviceStream& stream, StreamPool::Lease lease, const CudaChunk& chunk) {
    const ChunkPlan plan(batch, chunk, flags, tiles);
    const auto work =
        stream.memory.place<RolloutWork>(main.device.config, plan.shape, tiles, record, request.best_only);
    upload(stream, plan, work.inputs, [&](const ChunkArrays& to) { fill(chunk, to); });
    stream.stop_signal.begin(stream, work.inputs.stop);
    return {stream, std::move(lease), plan, work};
  }

  // The rest of its work.
  void enqueue(const Flight& flight) const {
    DeviceStream& stream = flight.stream;
    const ChunkPlan& plan = flight.plan;
    const RolloutWork& work = flight.work;
    encode(stream, plan, work.inputs, work.activations);
    const RolloutArrays &to = work.answers, &from = request.best_only ? work.candidates : to;
    decode(stream, request, plan, work.inputs, work.activations, from);
    if (request.best_only) {
      best_of({work.inputs.first_row, from.orders, from.costs, from.log_probs, plan.chunk.sequences,
               plan.shape.steps, work.best_scratch, to.winners, to.orders, to.costs, to.log_probs},
              stream.get());
    }
    stream.download(stream.downloads.reserve(to.bytes), to.block, to.bytes);
  }

  // Waits for the first chunk and takes its answers. Returns its stream.
  StreamPool::Lease land(std::deque<Flight>& flights) {
    flights.front().stream.wait(request.stop);
    Flight landed = std::move(flights.front());
    flights.pop_front();
    collect(landed);
    return std::move(landed.lease);
  }

  // Of a chunk whose rollouts cost so much: those that a stop did not end.
  void count_finished(const CudaChunk& chunk, const double* costs) {
    for (int s = 0; s < chunk.sequences; ++s) {
      const auto made = std::count_if(costs + chunk.first_row[s], costs + chunk.first_row[s + 1],
                                      [](double cost) { return !std::isinf(cost); });
      finished[chunk.first_sequence + s] += static_cast<int32_t>(made);
      is_whole = is_whole && made == chunk.first_row[s + 1] - chunk.first_row[s];
    }
  }
  void tell_finished() {
    if (!is_whole) result.finished = finished;
  }

  void fill(const CudaChunk& chunk, const ChunkArrays& to) const {
    if (flags.sampling) {
      std::copy_n(request.instance_keys + chunk.first_sequence, chunk.sequences, to.keys);
      if (request.first_samples == nullptr) {
        std::fill_n(to.first_samples, chunk.sequences, 0u);
      } else {
        std::copy_n(request.first_samples + chunk.first_sequence, chunk.sequences, to.first_samples);
      }
    }
    if (flags.orders) {
      std::copy_n(request.forced + chunk.first_result * steps, static_cast<size_t>(chunk.rows) * steps,
                  to.orders);
    }
  }

  void collect(const Flight& flight) {
    const DeviceStream& stream = flight.stream;
    const ChunkPlan& plan = flight.plan;
    const CudaChunk& chunk = plan.chunk;
    Placement placed(stream.downloads.data());
    const RolloutArrays from(placed, steps, request.best_only ? chunk.sequences : chunk.rows,
                             plan.shape.tiles, request.best_only);
    if (request.best_only) {
      std::vector<double> costs(chunk.rows, 0.0);
      if (stream.stop_signal.is_sent()) {
        stream.download(costs.data(), flight.work.candidates.costs, costs.size() * sizeof(double));
        stream.synchronize();
      }
      count_finished(chunk, costs.data());
      for (int s = 0; s < chunk.sequences; ++s) take_best(chunk, s, from);
    } else {
      count_finished(chunk, from.costs);
      for (int r = 0; r < chunk.rows; ++r) take(from, r, chunk.first_result + r);
    }
    for (int t = 0; t < plan.shape.tiles; ++t) result.statistics += from.statistics[t];
  }

  // An earlier chunk may hold the first rollouts of the same sequence: the best of equal ones is there.
  void take_best(const CudaChunk& chunk, int s, const RolloutArrays& from) {
    const int64_t to = chunk.first_sequence + s;
    if (std::isinf(from.costs[s])) return;  // it has none, or a stop ended all of them
    if (result.winners[to] >= 0 && !(from.costs[s] < result.costs[to])) return;
    take(from, s, to);
    result.winners[to] = (s == 0 ? chunk.skipped : 0) + from.winners[s];
  }

  // Entry `at` of a chunk's answers, unless a stop ended it.
  void take(const RolloutArrays& from, int64_t at, int64_t to) {
    if (std::isinf(from.costs[at])) return;
    std::copy_n(from.orders + at * steps, steps, result.orders.begin() + to * steps);
    result.costs[to] = from.costs[at];
    result.log_probs[to] = from.log_probs[at];
  }
};

}  // namespace

void roll_out(MainStream& main, StreamPool& pool, const RolloutRequest& request, RolloutResult& result) {
  const SequenceBatch& batch = request.sequences;
  const int64_t rollouts = count_rollouts(request);
  clear_rollouts(request.best_only ? batch.count : rollouts, batch.steps(), result);
  if (request.best_only) result.winners.assign(batch.count, -1);
  if (rollouts == 0) return;
  Rollouts calls{main, request, rollouts, result};
  if (request.tape != nullptr) main.memory.let_go();
  if (request.tape != nullptr && calls.run_onto_tape()) {
    if (calls.is_whole) main.tape_head.fill(request, result);
  } else {
    calls.run(pool);
  }
}

bool run_step(MainStream& main, const RolloutRequest& request, RolloutResult& result,
              const RestOfStep& rest) {
  const int64_t rollouts = count_rollouts(request);
  clear_rollouts(rollouts, request.sequences.steps(), result);
  if (rollouts == 0) return false;
  struct LetGo {
    ~LetGo() { memory.let_go(); }
    CudaMemory& memory;
  } const let_go{main.memory};
  main.memory.let_go();
  main.tape_head.forget();
  return Rollouts{main, request, rollouts, result}.run_step(rest);
}

}  // namespace pointsman::cuda
