// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/two_opt.h"

#include <algorithm>

#include "engine/backend/cuda/forward.h"
#include "engine/backend/requests.h"

namespace pointsman::cuda {
namespace {

// What looking at a pair of cities for the candidate lists, which no stop ends, takes of the time of a pair
// of an attention encoder: some 10 of 600 instructions.
constexpr double kPairs = 1.0 / 60.0;

// A chunk's device memory; its rows are its sequences.
struct TwoOptWork {
  TwoOptWork(Placement& placement, const ChunkShape& shape)
      : inputs(placement, shape),
        neighbours(placement.take<uint16_t>(size_t{kTourNeighbours} * shape.sequences * shape.n)),
        orders(placement.take<int32_t>(numbers(shape))) {}

  // One array, so that one copy downloads both.
  static size_t numbers(const ChunkShape& shape) {
    return static_cast<size_t>(shape.sequences) * (shape.n + 1);
  }

  ChunkArrays inputs;
  uint16_t* neighbours;
  int32_t* orders;  // [sequences][n], then [sequences] kicks made
};

struct Tours {
  MainStream& main;
  const TwoOptRequest& request;
  TwoOptResult& result;
  const SequenceBatch& batch = request.sequences;
  ChunkShape shape{.sampling = true};  // the inputs have keys

  void run() {
    const auto measure = [this](int sequences, int rows) {
      const ChunkShape most = at_most(shape, batch, sequences, rows);
      Placement counted;
      const TwoOptWork work(counted, most);
      return ChunkNeed{counted.bytes(), work.inputs.bytes, TwoOptWork::numbers(most) * sizeof(int32_t),
                       kPairs * sequences * batch.n * batch.n};
    };
    for (const CudaChunk& chunk : cut_into_chunks(main.memory, batch, nullptr, measure)) {
      if (request.stop.stops()) return;
      run(chunk);
    }
  }

  void run(const CudaChunk& chunk) {
    const ChunkPlan plan(batch, chunk, shape);
    const auto work = main.memory.place<TwoOptWork>(plan.shape);
    upload(main, plan, work.inputs, [&](const ChunkArrays& to) {
      std::copy_n(request.instance_keys + chunk.first_sequence, chunk.sequences, to.keys);
      std::fill_n(to.first_samples, chunk.sequences, 0u);
    });
    main.stop_signal.begin(main, work.inputs.stop);
    const size_t places = static_cast<size_t>(chunk.sequences) * batch.n;
    two_opt({.xy = work.inputs.features,
             .neighbours = work.neighbours,
             .keys = work.inputs.keys,
             .tours = chunk.sequences,
             .n = batch.n,
             .kicks = request.kicks,
             .seed = request.seed,
             .stop = work.inputs.stop,
             .orders = work.orders,
             .kicks_made = work.orders + places},
            main.get());
    const size_t bytes = TwoOptWork::numbers(plan.shape) * sizeof(int32_t);
    const auto* const answers = reinterpret_cast<const int32_t*>(main.downloads.reserve(bytes));
    main.download(main.downloads.data(), work.orders, bytes);
    main.wait(request.stop);
    const auto first = static_cast<std::ptrdiff_t>(chunk.first_sequence);
    std::copy_n(answers, places, result.orders.begin() + first * batch.n);
    std::copy_n(answers + places, chunk.sequences, result.kicks.begin() + first);
  }
};

}  // namespace

void search_tours(MainStream& main, const TwoOptRequest& request, TwoOptResult& result) {
  begin_tours(request, result);
  Tours{main, request, result}.run();
}

}  // namespace pointsman::cuda
