// SPDX-License-Identifier: Apache-2.0
// The linear layers of the attention encoder, in fp32 with the CPU's bits or on tensor cores. A block makes
// 128 or 32 rows in 128 columns. Pieces of 32 terms, of its rows and of its columns' weights, pass through
// shared memory (2 x 32.3 or 20.3 KB): the next one is copied while one is multiplied. So 128 rows read the
// weights of a layer once.
//
// In fp32 a thread makes 8 or 2 rows, 16 apart, in 8 columns, 16 apart. On tensor cores a warp makes 64 rows
// in 32 columns, or 32 in 16; tile_multiply_mma.cuh describes fragments, of which the rows are the left ones
// here.
#include "kernels/common/scalar_math.h"
#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/set_ranges.cuh"
#include "kernels/cuda/tile_multiply.cuh"
#include "kernels/cuda/tile_multiply_mma.cuh"

namespace pointsman::cuda {

inline constexpr int kLinearThreads = 256, kLinearWarps = kLinearThreads / 32;
inline constexpr int kLinearColumns = 128;
inline constexpr int kPiece = 32;   // terms
inline constexpr int kStripe = 16;  // rows or columns of a thread lie so far apart, in fp32

POINTSMAN_HOST_DEVICE constexpr int strips_of(int columns) {
  return (columns + kLinearColumns - 1) / kLinearColumns;
}

// A piece in shared memory. Neighbouring rows, and the fours of weights that the lanes of a warp read at
// once, meet in no bank.
template <int kRows>
struct LinearPiece {
  static constexpr int kFour = 4 * kLinearColumns + 8;  // floats between fours of weights
  static constexpr int kFloats = kRows * kPiece + kPiece / 4 * kFour;
  float* data;

  __device__ __forceinline__ float* term(int row, int k) const {
    return data + row * kPiece + (k ^ ((row & 1) << 4));
  }
  __device__ __forceinline__ float* weights(int k, int column) const {  // k: a multiple of 4
    return data + kRows * kPiece + k / 4 * kFour + 4 * column;
  }
};

// Terms k .. k + part - 1 of the block's rows and columns; zeros behind the last of these.
template <int kRows>
__device__ __forceinline__ void copy_piece(const LinearArgs& a, const SetRange& rows, int first_column, int k,
                                           int part, const LinearPiece<kRows>& to) {
  constexpr int kFours = kPiece / 4;
  for (int at = threadIdx.x; at < kRows * kFours; at += kLinearThreads) {
    const int row = at / kFours, term = at % kFours * 4;
    copy_to_shared(to.term(row, term), a.x + (int64_t{rows.first_row} + row) * a.depth + k + term,
                   row < rows.rows && term < part);
  }
  const float* const weights = a.weight.of(rows.set);
  for (int at = threadIdx.x; at < kFours * kLinearColumns; at += kLinearThreads) {
    const int term = at / kLinearColumns * 4, column = at % kLinearColumns;
    copy_to_shared(to.weights(term, column),
                   weights + index_in_fours(k + term, first_column + column, a.columns),
                   first_column + column < a.columns && term < part);
  }
}

template <Precision kPrecision, int kRows>
struct LinearSums {
  static constexpr int kWarpRows = kRows < 64 ? kRows : 64;
  static constexpr int kWarpColumns = kLinearColumns * kRows / kWarpRows / kLinearWarps;
  static constexpr int kDown = kWarpRows / 16, kAcross = kWarpColumns / 8;  // fragments
  using Cores = TensorCores<kPrecision>;

  float d[kDown][kAcross][4] = {};

  // Of the thread's fragments; made anew where they are asked.
  __device__ __forceinline__ static int first_row() {
    return made_here(threadIdx.x) / 32 % (kRows / kWarpRows) * kWarpRows;
  }
  __device__ __forceinline__ static int first_column() {
    return made_here(threadIdx.x) / 32 / (kRows / kWarpRows) * kWarpColumns;
  }

  // part: a multiple of 16.
  __device__ __forceinline__ void add(const LinearPiece<kRows>& piece, int part) {
    const int thread = made_here(threadIdx.x), group = thread % 32 / 4, member = thread % 4;
#pragma unroll 1
    for (int k = 0; k < part; k += 16) {
      typename Cores::Right right[kAcross];
      const float* const fours = piece.weights(k + 4 * member, first_column() + group);
#pragma unroll
      for (int j = 0; j < kAcross; ++j)
        right[j] = Cores::right(*reinterpret_cast<const float4*>(fours + 32 * j));
      const float* const rows = piece.term(first_row() + group, k + 4 * member);
#pragma unroll
      for (int i = 0; i < kDown; ++i) {
        const float* const row = rows + 16 * i * kPiece;
        const typename Cores::Left left = Cores::left(*reinterpret_cast<const float4*>(row),
                                                      *reinterpret_cast<const float4*>(row + 8 * kPiece));
#pragma unroll
        for (int j = 0; j < kAcross; ++j) Cores::multiply(left, right[j], d[i][j]);
      }
    }
  }

  // each(row, column, sums) of the thread's sums: of neighbouring columns.
  template <typename Each>
  __device__ __forceinline__ void for_each(const Each& each) const {
    const int thread = made_here(threadIdx.x), group = thread % 32 / 4, member = thread % 4;
#pragma unroll
    for (int i = 0; i < kDown * kAcross * 2; ++i) {
      const float(&fragment)[4] = d[i / 2 / kAcross][i / 2 % kAcross];
      const float pair[2] = {fragment[i % 2 * 2], fragment[i % 2 * 2 + 1]};
      each(first_row() + 16 * (i / 2 / kAcross) + group + i % 2 * 8,
           first_column() + 8 * (i / 2 % kAcross) + 2 * member, pair);
    }
  }
};

template <int kRows>
struct LinearSums<Precision::kFp32, kRows> {
  static constexpr int kColumns = kLinearColumns / kStripe, kOwnRows = kRows / kStripe;

  float sum[kColumns][kOwnRows] = {};

  // Of the thread; made anew where it is asked.
  __device__ __forceinline__ static int first_row() { return made_here(threadIdx.x) / kStripe; }
  __device__ __forceinline__ static int first_column() { return made_here(threadIdx.x) % kStripe; }

  __device__ __forceinline__ void add(const LinearPiece<kRows>& piece, int part) {
#pragma unroll 1
    for (int k = 0; k < part; k += 4) {
      float4 w[kColumns];
#pragma unroll
      for (int c = 0; c < kColumns; ++c)
        w[c] = *reinterpret_cast<const float4*>(piece.weights(k, first_column() + kStripe * c));
      multiply_four(piece.term(first_row(), k), kStripe * kPiece, w, sum);
    }
  }

  template <typename Each>
  __device__ __forceinline__ void for_each(const Each& each) const {
#pragma unroll
    for (int i = 0; i < kColumns * kOwnRows; ++i) {
      const int r = i / kColumns, c = i % kColumns;
      const float one[1] = {sum[c][r]};
      each(first_row() + kStripe * r, first_column() + kStripe * c, one);
    }
  }
};

__device__ __forceinline__ float apply(LinearArgs::Function function, float x) {
  switch (function) {
    case LinearArgs::Function::kRelu:
      return x > 0.0f ? x : 0.0f;
    case LinearArgs::Function::kTanh:
      return tanh_f32(x);
    default:
      return x;
  }
}

// Sums of a row in neighbouring columns, of which all or none exist.
template <int kCount>
__device__ __forceinline__ void store_linear(const LinearArgs& a, const SetRange& rows, int row_of_tile,
                                             int column, const float (&sums)[kCount]) {
  if (row_of_tile >= rows.rows || column >= a.columns) return;
  const int64_t row = int64_t{rows.first_row} + row_of_tile, from = row * a.columns + column;
  const int64_t to = a.to_states ? from + (row / a.items + 1) * a.columns : from;
  const float* const biases = a.bias.of(rows.set) + column;
  float y[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const float bias = __ldg(biases + i);
    y[i] = apply(a.function, (a.base == nullptr ? bias : a.base[from + i] + bias) + sums[i]);
  }
  if constexpr (kCount == 2) {
    *reinterpret_cast<float2*>(a.y + to) = {y[0], y[1]};
  } else {
    a.y[to] = y[0];
  }
}

// Grid: tiles of rows x strips of columns in one number, strips fastest, so that the rows of a tile are read
// from device memory once. The last strip may be narrower.
template <Precision kPrecision, int kRows>
__global__ void __launch_bounds__(kLinearThreads,  // 2: nvcc spills in tf32
                                  kPrecision == Precision::kFp32 || kPrecision == Precision::kBf16 ? 2 : 1)
    linear_kernel(LinearArgs a) {
  POINTSMAN_DYNAMIC_SHARED(float, shared);
  constexpr int kFloats = LinearPiece<kRows>::kFloats;
  const int strips = strips_of(a.columns);
  const SetRange rows = find_row_tile(a.ranges, blockIdx.x / strips, kRows, a.items);
  if (rows.rows <= 0) return;
  const int first_column = blockIdx.x % strips * kLinearColumns;
  const auto part_at = [&](int k) { return a.depth - k < kPiece ? a.depth - k : kPiece; };
  LinearSums<kPrecision, kRows> sums;
  const auto piece_at = [&](int k) { return LinearPiece<kRows>{shared + k / kPiece % 2 * kFloats}; };
  const auto copy = [&](int k) {
    if (k < a.depth) copy_piece(a, rows, first_column, k, part_at(k), piece_at(k));
    end_copy_group();
  };
  copy(0);
#pragma unroll 1
  for (int k = 0; k < a.depth; k += kPiece) {
    copy(k + kPiece);
    wait_for_copies<1>();
    __syncthreads();
    sums.add(piece_at(k), part_at(k));
    __syncthreads();
  }
  sums.for_each(
      [&](int row, int column, const auto& own) { store_linear(a, rows, row, first_column + column, own); });
}

namespace {

// A block of 128 rows reads less for an fma, one of 32 is ready earlier: these, where those would leave
// multiprocessors without work.
int choose_rows(const LinearArgs& a) {
  if (a.tile_rows != 0) return a.tile_rows;
  const int blocks = row_tile_count(a.ranges, 128, a.items) * strips_of(a.columns);
  return blocks >= device_attribute(cudaDevAttrMultiProcessorCount) ? 128 : 32;
}

template <int kRows>
void launch_linear(const LinearArgs& args, cudaStream_t stream) {
  const dim3 grid(row_tile_count(args.ranges, kRows, args.items) * strips_of(args.columns));
  with_precision(args.precision, [&]<Precision kPrecision>() {
    launch(linear_kernel<kPrecision, kRows>, grid, kLinearThreads,
           2 * LinearPiece<kRows>::kFloats * sizeof(float), stream, args);
  });
}

}  // namespace

void linear(const LinearArgs& args, cudaStream_t stream) {
  if (args.ranges.rows == 0) return;
  if (choose_rows(args) == 128) return launch_linear<128>(args, stream);
  launch_linear<32>(args, stream);
}

}  // namespace pointsman::cuda
