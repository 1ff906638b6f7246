// SPDX-License-Identifier: Apache-2.0
// What the attention encoder does beside its products and its self-attention, with the bits of
// kernels/cpu/encoder_layer.cpp in the forward pass. Where rows are embedded or normed a half-warp takes a
// row; elsewhere a thread takes an element, or four.
#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/half_warp_attention.cuh"
#include "kernels/cuda/set_ranges.cuh"

namespace pointsman::cuda {

inline constexpr int kNormThreads = 256;
inline constexpr int kNormRows = kNormThreads / kHalfWarp;
inline constexpr int kElementThreads = 256;

// The row of this half-warp, and its parameter set; rows is 0 behind the last one.
__device__ __forceinline__ SetRange own_item(const SetRanges& ranges, int items) {
  const SetRange tile = find_row_tile(ranges, blockIdx.x, kNormRows, items);
  const int row = threadIdx.x / kHalfWarp;
  return {tile.set, tile.first_row + row, row < tile.rows ? 1 : 0};
}

__device__ __forceinline__ float mean_of_row(HalfWarp w, const float (&x)[kOwned]) {
  return sum_of_vector(w, x) * (1.0f / kHidden);
}

struct NormedRow {
  float x[kOwned];  // (x - mean) s
  float inverse;    // s
};

__device__ __forceinline__ NormedRow norm_row(HalfWarp w, const float* row) {
  NormedRow normed;
  load_owned(w, row, normed.x);
  const float mean = mean_of_row(w, normed.x);
  float square[kOwned];
#pragma unroll
  for (int i = 0; i < kOwned; ++i) {
    normed.x[i] -= mean;
    square[i] = normed.x[i] * normed.x[i];
  }
  normed.inverse = 1.0f / sqrtf(mean_of_row(w, square) + kNormEpsilon);
#pragma unroll
  for (int i = 0; i < kOwned; ++i) normed.x[i] *= normed.inverse;
  return normed;
}

__global__ void __launch_bounds__(kNormThreads) embed_kernel(EmbedArgs a) {
  const HalfWarp w = this_half_warp();
  const SetRange own = own_item(a.ranges, a.items);
  if (own.rows == 0) return;
  const int64_t row = own.first_row;
  const float* features = a.features + row * a.width;
  float out[kOwned];
#pragma unroll
  for (int i = 0; i < kOwned; ++i) {
    const float* e = a.embedding.of(own.set) + (w.lane + kHalfWarp * i) * a.width;
    out[i] = __ldg(e) * features[0];
    for (int f = 1; f < a.width; ++f) out[i] = fmaf(__ldg(e + f), features[f], out[i]);
  }
  store_owned(w, out, a.out + row * kHidden);
}

__global__ void __launch_bounds__(kNormThreads) layer_norm_kernel(LayerNormArgs a) {
  const HalfWarp w = this_half_warp();
  const SetRange own = own_item(a.ranges, a.items);
  if (own.rows == 0) return;
  const int64_t at = int64_t{own.first_row} * kHidden;
  NormedRow normed = norm_row(w, a.x + at);
  float weight[kOwned], bias[kOwned];
  load_owned(w, a.weight.of(own.set), weight);
  load_owned(w, a.bias.of(own.set), bias);
#pragma unroll
  for (int i = 0; i < kOwned; ++i) normed.x[i] = fmaf(normed.x[i], weight[i], bias[i]);
  store_owned(w, normed.x, a.y + at);
}

__global__ void __launch_bounds__(kNormThreads) layer_norm_backward_kernel(LayerNormBackwardArgs a) {
  const HalfWarp w = this_half_warp();
  const SetRange own = own_item(a.ranges, a.items);
  if (own.rows == 0) return;
  const int64_t at = int64_t{own.first_row} * kHidden;
  const NormedRow normed = norm_row(w, a.x + at);
  float g[kOwned], gx[kOwned], weight[kOwned], dx[kOwned];
  load_owned(w, a.dy + at, g);
  load_owned(w, a.weight.of(own.set), weight);
  load_owned(w, a.dx + at, dx);
#pragma unroll
  for (int i = 0; i < kOwned; ++i) gx[i] = g[i] * normed.x[i];
  store_owned(w, gx, a.dweight + at);
#pragma unroll
  for (int i = 0; i < kOwned; ++i) {
    g[i] *= weight[i];
    gx[i] *= weight[i];
  }
  const float mean_g = mean_of_row(w, g), mean_gx = mean_of_row(w, gx);
#pragma unroll
  for (int i = 0; i < kOwned; ++i)
    dx[i] = fmaf(normed.inverse, fmaf(-normed.x[i], mean_gx, g[i] - mean_g), dx[i]);
  store_owned(w, dx, a.dx + at);
}

__global__ void __launch_bounds__(kElementThreads)
    relu_backward_kernel(const float* y, float* dy, int64_t count) {
  const int64_t at = 4 * (int64_t{blockIdx.x} * kElementThreads + threadIdx.x);
  if (at >= count) return;
  const float4 out = *reinterpret_cast<const float4*>(y + at);
  float4 d = *reinterpret_cast<const float4*>(dy + at);
  if (!(out.x > 0.0f)) d.x = 0.0f;
  if (!(out.y > 0.0f)) d.y = 0.0f;
  if (!(out.z > 0.0f)) d.z = 0.0f;
  if (!(out.w > 0.0f)) d.w = 0.0f;
  *reinterpret_cast<float4*>(dy + at) = d;
}

__global__ void __launch_bounds__(kElementThreads)
    tanh_backward_kernel(const float* h, float* dh, int64_t count) {
  const int64_t at = int64_t{blockIdx.x} * kElementThreads + threadIdx.x;
  if (at < count) dh[at] *= 1.0f - h[at] * h[at];
}

__global__ void __launch_bounds__(kElementThreads) fill_kernel(float* x, float value, int64_t count) {
  const int64_t at = int64_t{blockIdx.x} * kElementThreads + threadIdx.x;
  if (at < count) x[at] = value;
}

__global__ void __launch_bounds__(kHidden) mean_items_kernel(MeanItemsArgs a) {
  const int64_t sequence = blockIdx.x;
  float* h = a.h + sequence * (a.n + 1) * kHidden + threadIdx.x;
  h[0] = 0.0f;
  float sum = 0.0f;
#pragma unroll 8
  for (int item = 1; item <= a.n; ++item) sum += h[int64_t{item} * kHidden];
  a.mean[sequence * kHidden + threadIdx.x] = sum / static_cast<float>(a.n);
}

__global__ void __launch_bounds__(kElementThreads) mean_backward_kernel(MeanBackwardArgs a) {
  const int64_t at = 4 * (int64_t{blockIdx.x} * kElementThreads + threadIdx.x);
  const int64_t row = at / kHidden, sequence = row / a.n;
  if (sequence >= a.sequences) return;
  const float4 dh = *reinterpret_cast<const float4*>(a.dh + at + (sequence + 1) * kHidden);
  const float4 dmean = *reinterpret_cast<const float4*>(a.dmean + sequence * kHidden + at % kHidden);
  const auto n = static_cast<float>(a.n);
  *reinterpret_cast<float4*>(a.out + at) =
      float4{dh.x + dmean.x / n, dh.y + dmean.y / n, dh.z + dmean.z / n, dh.w + dmean.w / n};
}

namespace {

unsigned blocks_of(int64_t threads) {
  return static_cast<unsigned>((threads + kElementThreads - 1) / kElementThreads);
}

// A half-warp a row.
template <typename Args>
void launch_rows(void (*kernel)(Args), const Args& args, cudaStream_t stream) {
  if (args.ranges.rows == 0) return;
  launch(kernel, row_tile_count(args.ranges, kNormRows, args.items), kNormThreads, 0, stream, args);
}

}  // namespace

void embed(const EmbedArgs& args, cudaStream_t stream) { launch_rows(embed_kernel, args, stream); }

void layer_norm(const LayerNormArgs& args, cudaStream_t stream) {
  launch_rows(layer_norm_kernel, args, stream);
}

void layer_norm_backward(const LayerNormBackwardArgs& args, cudaStream_t stream) {
  launch_rows(layer_norm_backward_kernel, args, stream);
}

void relu_backward(const float* y, float* dy, int64_t count, cudaStream_t stream) {
  launch(relu_backward_kernel, blocks_of(count / 4), kElementThreads, 0, stream, y, dy, count);
}

void tanh_backward(const float* h, float* dh, int64_t count, cudaStream_t stream) {
  launch(tanh_backward_kernel, blocks_of(count), kElementThreads, 0, stream, h, dh, count);
}

void fill(float* x, float value, int64_t count, cudaStream_t stream) {
  launch(fill_kernel, blocks_of(count), kElementThreads, 0, stream, x, value, count);
}

void mean_items(const MeanItemsArgs& args, cudaStream_t stream) {
  launch(mean_items_kernel, args.sequences, kHidden, 0, stream, args);
}

void mean_backward(const MeanBackwardArgs& args, cudaStream_t stream) {
  const int64_t elements = int64_t{args.sequences} * args.n * kHidden;
  launch(mean_backward_kernel, blocks_of(elements / 4), kElementThreads, 0, stream, args);
}

}  // namespace pointsman::cuda
