// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/lstm.cuh"
#include "kernels/cuda/lstm_mma.cuh"

namespace pointsman::cuda {
namespace {

// Below 64 tiles of 32 rows more than half of 132 multiprocessors would have none, and ranges shorter than a
// tile would leave most of it empty: then tiles have 8 rows, and read the weights from L2 four times as
// often. A count, not a measurement.
constexpr int kFewTiles = 64, kLargeTile = 32;

bool small_tiles(int rows, int range_count) {
  return rows < kFewTiles * kLargeTile || rows < range_count * kLargeTile;
}

template <int kGroups, typename Args>
void launch_tiles(void (*kernel)(Args), size_t shared_bytes, const Args& args, cudaStream_t stream) {
  const int tiles = row_tile_count(args.rows, args.range_count, kGroups * kTileRows);
  launch(kernel, dim3(tiles), dim3(kGroups * kHidden), shared_bytes, stream, args);
}

template <int kGroups>
void (*forward_kernel(const LstmForwardArgs& args))(LstmForwardArgs) {
  switch (args.precision) {
    case Precision::kFp32:
      break;
    case Precision::kTf32:
      return lstm_forward_mma_kernel<kGroups, Precision::kTf32>;
    case Precision::kTf32x3:
      return lstm_forward_mma_kernel<kGroups, Precision::kTf32x3>;
    case Precision::kBf16:
      return lstm_forward_mma_kernel<kGroups, Precision::kBf16>;
  }
  return args.cells != nullptr ? lstm_forward_kernel<kGroups, true> : lstm_forward_kernel<kGroups, false>;
}

template <int kGroups>
void forward(const LstmForwardArgs& args, cudaStream_t stream) {
  launch_tiles<kGroups>(forward_kernel<kGroups>(args), lstm_forward_shared(kGroups * kTileRows), args,
                        stream);
}

template <int kGroups>
void backward(const LstmBackwardArgs& args, cudaStream_t stream) {
  launch_tiles<kGroups>(lstm_backward_kernel<kGroups>, lstm_backward_shared(kGroups * kTileRows), args,
                        stream);
}

}  // namespace

void lstm_forward(const LstmForwardArgs& args, cudaStream_t stream) {
  if (args.precision != Precision::kFp32 && args.cells != nullptr) {
    throw std::invalid_argument("lstm_forward: cells are written in fp32 only");
  }
  small_tiles(args.rows, args.range_count) ? forward<1>(args, stream) : forward<4>(args, stream);
}

void lstm_backward(const LstmBackwardArgs& args, cudaStream_t stream) {
  small_tiles(args.rows, args.range_count) ? backward<1>(args, stream) : backward<4>(args, stream);
}

}  // namespace pointsman::cuda
