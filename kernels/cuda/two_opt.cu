// SPDX-License-Identifier: Apache-2.0
// Local search for tours, a warp each, so that lanes need no barrier of the block. Its lanes share out the
// moves of the city that the warp looks at: 12 for each of 2 x 8 first exchanges, of which all behind the
// first neighbour that is no nearer than the city's own edges are left out. Coordinates and neighbours come
// from the L1.
#include <climits>
#include <stdexcept>
#include <string>

#include "kernels/common/two_opt.h"
#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device.cuh"

namespace pointsman::cuda {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xFFFFFFFFu;
constexpr int kMostToursOfBlock = 4, kBlocks = 7;  // of a multiprocessor: with 8 registers would spill
constexpr int kNearestThreads = 128;

struct WarpTeam {
  __device__ static int lane() { return static_cast<int>(threadIdx.x % kWarp); }
  __device__ static constexpr int size() { return kWarp; }
  __device__ void sync() const { __syncwarp(); }
  // Gains are 0 or more: their bits have their order.
  __device__ void choose(float& gain, int& code) const {
    const unsigned bits = __float_as_uint(gain), most = __reduce_max_sync(kAllLanes, bits);
    code = __reduce_min_sync(kAllLanes, bits == most ? code : INT_MAX);
    gain = __uint_as_float(most);
  }
};

// Does the host want the launch to end? It may have said so since the last question.
struct StopWord {
  const int32_t* word;
  __device__ bool operator()() const {
    if (word == nullptr) return false;
    const int32_t stop = WarpTeam::lane() == 0 ? *static_cast<const volatile int32_t*>(word) : 0;
    return __shfl_sync(kAllLanes, stop, 0) != 0;
  }
};

__global__ void __launch_bounds__(kNearestThreads) nearest_cities_kernel(TwoOptArgs args) {
  const int64_t i = int64_t{blockIdx.x} * kNearestThreads + threadIdx.x;
  if (i >= int64_t{args.tours} * args.n) return;
  const int64_t tour = i / args.n;
  nearest_cities(args.xy + 2 * tour * args.n, args.n, static_cast<int>(i % args.n),
                 args.neighbours + i * kTourNeighbours);
}

__global__ void __launch_bounds__(kMostToursOfBlock* kWarp, kBlocks) two_opt_kernel(TwoOptArgs args) {
  POINTSMAN_DYNAMIC_SHARED(uint32_t, shared);
  const int warp = static_cast<int>(threadIdx.x / kWarp), warps = static_cast<int>(blockDim.x / kWarp);
  const int64_t tour = int64_t{blockIdx.x} * warps + warp;
  if (tour >= args.tours) return;
  const TourInstance in = {args.xy + 2 * tour * args.n, args.neighbours + tour * args.n * kTourNeighbours,
                           args.n};
  const TourMemory memory(shared + warp * TourMemory::words(args.n), args.n);
  TwoOpt<WarpTeam> search(WarpTeam{}, in, memory);
  const int made = search.search(args.kicks, args.seed, args.keys[tour], StopWord{args.stop});
  for (int i = WarpTeam::lane(); i < args.n; i += kWarp)
    args.orders[tour * args.n + i] = made == kNotBegun ? -1 : memory.best[i];
  if (WarpTeam::lane() == 0) args.kicks_made[tour] = made;
}

void two_opt(const TwoOptArgs& args, cudaStream_t stream) {
  if (args.tours == 0) return;
  if (args.n < kFewestTourCities || args.n > kMostTourCities)
    throw std::invalid_argument("two_opt: cannot search for a tour of " + std::to_string(args.n) + " cities");
  const int64_t cities = int64_t{args.tours} * args.n;
  launch(nearest_cities_kernel, static_cast<unsigned>((cities + kNearestThreads - 1) / kNearestThreads),
         kNearestThreads, 0, stream, args);
  // More than one tour a block only where the shared memory that needs no asking holds them.
  const int64_t bytes = TourMemory::words(args.n) * int64_t{sizeof(uint32_t)};
  const int64_t fit = (int64_t{48} << 10) / bytes;
  const int warps = static_cast<int>(fit < 1 ? 1 : fit < kMostToursOfBlock ? fit : kMostToursOfBlock);
  launch(two_opt_kernel, static_cast<unsigned>((args.tours + warps - 1) / warps), warps * kWarp,
         warps * bytes, stream, args);
}

}  // namespace pointsman::cuda
