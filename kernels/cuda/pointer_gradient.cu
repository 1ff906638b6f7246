// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/pointer_gradient.cuh"

namespace pointsman::cuda {

namespace {

// Hands out arrays from `base` on; with base null it only counts.
class Carver {
 public:
  explicit Carver(void* base) : base_(static_cast<unsigned char*>(base)) {}

  template <typename T>
  T* take(int64_t count) {
    const int64_t at = bytes_;
    bytes_ += (count * static_cast<int64_t>(sizeof(T)) + 255) / 256 * 256;
    return base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + at);
  }
  int64_t bytes() const { return bytes_; }

 private:
  unsigned char* base_;
  int64_t bytes_ = 0;
};

PointerGradientScratch carve(Carver& carver, int64_t rows, int64_t sequences, int64_t n, int64_t glimpses) {
  const int64_t steps = rows * n, passes = glimpses + 1;
  PointerGradientScratch s;
  s.chosen_at = carver.take<int32_t>(steps);
  s.capacity = carver.take<double>(steps);
  s.du = carver.take<float>(steps * passes * n);
  s.p = carver.take<float>(steps * glimpses * n);
  s.factors = carver.take<float>(steps * passes * kHidden);
  s.direct = carver.take<int32_t>(steps * passes);
  s.dout = carver.take<float>(steps * glimpses * kHidden);
  s.dv = carver.take<double>(sequences * n * 2 * kHidden);
  return s;
}

}  // namespace

int64_t pointer_gradient_scratch(int rows, int sequences, int n, int glimpses) {
  Carver carver(nullptr);
  carve(carver, rows, sequences, n, glimpses);
  return carver.bytes();
}

void pointer_gradient(const PointerGradientArgs& args, cudaStream_t stream) {
  Carver carver(args.scratch);
  const PointerGradientScratch scratch =
      carve(carver, args.rows, args.sequences, args.n, args.attention.glimpses);
  const unsigned tiles = (args.n + kGradientHalfWarps - 1) / kGradientHalfWarps;
  constexpr int kRowsABlock = kGradientThreads / 32;
  if (args.rows > 0) {
    launch(list_choices_kernel, (args.rows + kRowsABlock - 1) / kRowsABlock, kGradientThreads, 0, stream,
           args, scratch);
    const size_t shared = size_t{kGradientHalfWarps} * 2 * list_length(args.n) * sizeof(float);
    launch(step_gradients_kernel, args.rows * tiles, kGradientThreads, shared, stream, args, scratch);
  }
  launch(item_gradients_kernel, args.sequences * args.slices.count * tiles, kGradientThreads, 0, stream, args,
         scratch);
  launch(sum_v_kernel, args.sequences, 2 * kHidden, 0, stream, args, scratch);
}

}  // namespace pointsman::cuda
