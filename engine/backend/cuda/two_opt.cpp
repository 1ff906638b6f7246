// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/two_opt.h"

#include <algorithm>

#include "engine/backend/cuda/calls.h"
#include "engine/backend/two_opt_request.h"

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

class Tours {
 public:
  Tours(CudaContext& context, const TwoOptRequest& request, TwoOptResult& result)
      : context_(context), request_(request), batch_(request.sequences), result_(result) {
    shape_.sampling = true;  // the inputs have keys
  }

  void run() {
    const auto measure = [this](int sequences, int rows) {
      ChunkShape most = at_most(shape_, batch_, sequences, rows);
      most.tiles = 0;
      Placement counted;
      const TwoOptWork work(counted, most);
      return ChunkNeed{counted.bytes(), work.inputs.bytes, TwoOptWork::numbers(most) * sizeof(int32_t),
                       kPairs * sequences * batch_.n * batch_.n};
    };
    for (const CudaChunk& chunk : cut_into_chunks(context_.memory, batch_, nullptr, measure)) {
      if (request_.stop.stops()) return;
      run(chunk);
    }
  }

 private:
  void run(const CudaChunk& chunk) {
    const ChunkPlan plan(batch_, chunk, shape_);
    const auto work = context_.memory.place<TwoOptWork>(plan.shape);
    upload(context_, plan, work.inputs, [&](const ChunkArrays& to) {
      std::copy_n(request_.instance_keys + chunk.first_sequence, chunk.sequences, to.keys);
      std::fill_n(to.first_samples, chunk.sequences, 0u);
    });
    context_.stop_signal.begin(context_.stream);
    const size_t places = static_cast<size_t>(chunk.sequences) * batch_.n;
    two_opt({.xy = work.inputs.features,
             .neighbours = work.neighbours,
             .keys = work.inputs.keys,
             .tours = chunk.sequences,
             .n = batch_.n,
             .kicks = request_.kicks,
             .seed = request_.seed,
             .stop = work.inputs.stop,
             .orders = work.orders,
             .kicks_made = work.orders + places},
            context_.stream.get());
    const size_t bytes = TwoOptWork::numbers(plan.shape) * sizeof(int32_t);
    const auto* const answers = reinterpret_cast<const int32_t*>(context_.downloads.reserve(bytes));
    require(cudaMemcpyAsync(context_.downloads.data(), work.orders, bytes, cudaMemcpyDeviceToHost,
                            context_.stream.get()),
            "download");
    context_.wait(request_.stop, work.inputs.stop);
    const auto first = static_cast<std::ptrdiff_t>(chunk.first_sequence);
    std::copy_n(answers, places, result_.orders.begin() + first * batch_.n);
    std::copy_n(answers + places, chunk.sequences, result_.kicks.begin() + first);
  }

  CudaContext& context_;
  const TwoOptRequest& request_;
  const SequenceBatch& batch_;
  TwoOptResult& result_;
  ChunkShape shape_;
};

}  // namespace

void search_tours(CudaContext& context, const TwoOptRequest& request, TwoOptResult& result) {
  begin_tours(request, result);
  Tours(context, request, result).run();
}

}  // namespace pointsman::cuda
