// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/decode.cuh"

namespace pointsman::cuda {
namespace {

using Kernel = void (*)(DecodeArgs, bool);

template <Precision kPrecision, bool kWhole>
Kernel kernel_of(ProblemKind problem) {
  return with_rules(problem,
                    []<typename Rules>() -> Kernel { return decode_kernel<Rules, kPrecision, kWhole>; });
}

template <Precision kPrecision>
Kernel mma_kernel_of(const DecodeArgs& args) {
  return args.tile_rows == kMaxDecodeRows ? kernel_of<kPrecision, true>(args.problem)
                                          : kernel_of<kPrecision, false>(args.problem);
}

Kernel kernel_of(const DecodeArgs& args) {
  switch (args.precision) {
    case Precision::kFp32:
      break;
    case Precision::kTf32:
      return mma_kernel_of<Precision::kTf32>(args);
    case Precision::kTf32x3:
      return mma_kernel_of<Precision::kTf32x3>(args);
    case Precision::kBf16:
      return mma_kernel_of<Precision::kBf16>(args);
  }
  return kernel_of<Precision::kFp32, false>(args.problem);
}

int64_t shared_limit() {
  int device = 0, bytes = 0;
  require(cudaGetDevice(&device), "current device");
  require(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
          "shared memory limit");
  return bytes;
}

}  // namespace

int decode_tile_rows(int n, bool few) {
  const int64_t limit = shared_limit();
  int rows = few ? kTileRows : kMaxDecodeRows;
  while (rows > 0 && rows * decode_row_bytes(n) > limit) rows -= kTileRows;
  return rows;
}

void decode(const DecodeArgs& args, cudaStream_t stream) {
  if (args.tile_count == 0) return;
  const int64_t rows = args.tile_rows * decode_row_bytes(args.n);
  const int64_t with_references = rows + decode_reference_bytes(args.n, args.projections.count);
  const bool fit = with_references <= shared_limit();
  const dim3 blocks(args.tile_count), threads(args.tile_rows * kHalfWarp);
  if (args.precision != Precision::kFp32 && args.record.h != nullptr) {
    throw std::invalid_argument("decode: activations are recorded in fp32 only");
  }
  launch(kernel_of(args), blocks, threads, fit ? with_references : rows, stream, args, fit);
}

}  // namespace pointsman::cuda
