// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror, Shaw (SC 2011), with cuRAND's layout:
// counter = {offset/4 lo, hi, subsequence lo, hi}, key = {seed lo, hi}. Stateless: a draw is a pure function
// of (seed, stream, subsequence, step), so no batch, order, chunk or thread count can change it.
#pragma once

#include <cstdint>

#include "kernels/common/host_device.h"

namespace pointsman {

struct PhiloxBlock {
  uint32_t word[4];
};

inline constexpr int kPhiloxRounds = 10;
inline constexpr uint32_t kPhiloxMultiplier0 = 0xD2511F53u, kPhiloxMultiplier1 = 0xCD9E8D57u;
inline constexpr uint32_t kPhiloxKeyStep0 = 0x9E3779B9u, kPhiloxKeyStep1 = 0xBB67AE85u;

// One block of four words. `counter_block` is cuRAND's offset / 4.
POINTSMAN_HOST_DEVICE inline PhiloxBlock philox4x32(uint64_t key, uint64_t subsequence,
                                                    uint64_t counter_block) {
  uint32_t c0 = static_cast<uint32_t>(counter_block);
  uint32_t c1 = static_cast<uint32_t>(counter_block >> 32);
  uint32_t c2 = static_cast<uint32_t>(subsequence);
  uint32_t c3 = static_cast<uint32_t>(subsequence >> 32);
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t product0 = uint64_t{kPhiloxMultiplier0} * c0;
    const uint64_t product1 = uint64_t{kPhiloxMultiplier1} * c2;
    c0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(product1);
    c2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(product0);
    k0 += kPhiloxKeyStep0;
    k1 += kPhiloxKeyStep1;
  }
  return {{c0, c1, c2, c3}};
}

// The independent streams: the key is the seed xor one of these.
namespace stream {
inline constexpr uint64_t kSampling = 0;  // the draws of a rollout
inline constexpr uint64_t kInputOrder = 0x6F72646572000000ull;
inline constexpr uint64_t kInstances = 0x696E7374616E6365ull;
inline constexpr uint64_t kInitialisation = 0x696E697469616C00ull;
inline constexpr uint64_t kNoise = 0x6E6F697365000000ull;  // of logits
inline constexpr uint64_t kKicks = 0x6B69636B73000000ull;  // of two_opt.h
}  // namespace stream

inline constexpr float kUniformScale = 2.3283064365386963e-10f, kUniformShift = 1.1641532182693481e-10f;

// [0, 2^32) -> (0, 1], cuRAND's map. 1.0f itself can be returned.
POINTSMAN_HOST_DEVICE inline float uniform_from_word(uint32_t word) {
  return static_cast<float>(word) * kUniformScale + kUniformShift;
}

// The uniform of one decoding step: subsequence = instance id << 32 | sample index, offset = 4 x step.
POINTSMAN_HOST_DEVICE inline float sampling_uniform(uint64_t seed, uint64_t instance_id, uint32_t sample,
                                                    uint32_t step) {
  const PhiloxBlock block = philox4x32(seed ^ stream::kSampling, (instance_id << 32) | sample, step);
  return uniform_from_word(block.word[0]);
}

// A random number of mean 0 and variance 1 for an item in a decoding step. It is normal but for its tails,
// which end at 4.9: the sum of eight uniforms, which are the halves of the block's words, so that no libm
// decides its bits.
POINTSMAN_HOST_DEVICE inline float noise_normal(uint64_t seed, uint64_t instance_id, uint32_t sample,
                                                uint32_t step, uint32_t item) {
  const PhiloxBlock block =
      philox4x32(seed ^ stream::kNoise, (instance_id << 32) | sample, (uint64_t{step} << 32) | item);
  int32_t sum = -4 * 65535;  // the mean
  for (uint32_t word : block.word) sum += static_cast<int32_t>((word >> 16) + (word & 0xFFFFu));
  constexpr float kOneDeviation = 53509.918f;  // sqrt(8 (65536^2 - 1) / 12)
  return static_cast<float>(sum) / kOneDeviation;
}

}  // namespace pointsman
