// SPDX-License-Identifier: Apache-2.0
// Local search on tours, a warp each, so that lanes need no barrier of the block. Its lanes share out the
// moves of the city that the warp looks at: 12 for each of 2 x 8 first exchanges, of which all behind the
// first neighbour that is no nearer than the city's own edges are left out. A move that is looked at costs
// six distances of 5 operations and a square root, and 5 sums. Shared memory: 10 1/8 B a city and tour;
// coordinates and neighbours, 24 B a city, come from the L1. Device memory: 32 B a city and tour; the
// candidate lists, which are made before, 24 B a city and n distances.
#include <climits>
#include <stdexcept>
#include <string>

#include "kernels/common/tour_improvement.h"
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
  // Gains are above 0: their bits have their order.
  __device__ void choose(float& gain, int& code) const {
    const unsigned bits = __float_as_uint(gain), most = __reduce_max_sync(kAllLanes, bits);
    code = __reduce_min_sync(kAllLanes, bits == most ? code : INT_MAX);
    gain = __uint_as_float(most);
  }
};

__global__ void __launch_bounds__(kNearestThreads) nearest_cities_kernel(ImproveToursArgs args) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kNearestThreads + threadIdx.x;
  if (i >= static_cast<int64_t>(args.instances) * args.n) return;
  const int64_t instance = i / args.n;
  nearest_cities(args.xy + 2 * instance * args.n, args.n, static_cast<int>(i % args.n),
                 args.neighbours + i * kTourNeighbours);
}

__global__ void __launch_bounds__(kMostToursOfBlock* kWarp, kBlocks)
    improve_tours_kernel(ImproveToursArgs args) {
  POINTSMAN_DYNAMIC_SHARED(uint32_t, shared);
  const int warp = static_cast<int>(threadIdx.x / kWarp), warps = static_cast<int>(blockDim.x / kWarp);
  const int64_t tour = static_cast<int64_t>(blockIdx.x) * warps + warp;
  if (tour >= args.tours) return;
  const int64_t instance = args.instance_of[tour];
  const TourInstance in = {args.xy + 2 * instance * args.n,
                           args.neighbours + instance * args.n * kTourNeighbours, args.n};
  const TourMemory memory(shared + warp * TourMemory::words(args.n), args.n);
  int32_t* const order = args.orders + tour * args.n;
  const WarpTeam team;
  TourImprover<WarpTeam>(team, in, memory).run(order, args.kicks, args.seed, args.keys[tour]);
  for (int i = WarpTeam::lane(); i < args.n; i += kWarp) order[i] = memory.best[i];
}

namespace {

int64_t bytes_of_tour(int n) { return TourMemory::words(n) * static_cast<int64_t>(sizeof(uint32_t)); }

}  // namespace

void improve_tours(const ImproveToursArgs& args, cudaStream_t stream) {
  if (args.tours == 0) return;
  const int64_t bytes = bytes_of_tour(args.n);
  if (args.n > kMostTourCities || bytes > device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)) {
    throw std::invalid_argument("improve_tours: the device has no room for a tour of " +
                                std::to_string(args.n) + " cities");
  }
  const int64_t cities = static_cast<int64_t>(args.instances) * args.n;
  launch(nearest_cities_kernel, dim3(static_cast<unsigned>((cities + kNearestThreads - 1) / kNearestThreads)),
         dim3(kNearestThreads), 0, stream, args);
  // More than one tour a block only where the shared memory that needs no asking holds them.
  const int64_t fit = (int64_t{48} << 10) / bytes;
  const int warps = static_cast<int>(fit < 1 ? 1 : fit < kMostToursOfBlock ? fit : kMostToursOfBlock);
  launch(improve_tours_kernel, dim3(static_cast<unsigned>((args.tours + warps - 1) / warps)),
         dim3(warps * kWarp), warps * bytes, stream, args);
}

}  // namespace pointsman::cuda
