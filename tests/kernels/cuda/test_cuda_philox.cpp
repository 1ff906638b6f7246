// SPDX-License-Identifier: Apache-2.0
// Our Philox against cuRAND's own, in the two forms that need no GPU: the device functions of
// curand_kernel.h, compiled for the host, and the library's host generator. Built where the CUDA toolkit is
// found, and against its headers, not the emulation's.
#include <curand.h>
#include <curand_kernel.h>

#include <cstdint>
#include <random>
#include <vector>

#include "kernels/common/philox.h"
#include "tests/catch.h"

namespace pointsman {
namespace {

constexpr uint64_t kBlocks = uint64_t{1} << 62;  // that a 64-bit offset, which counts words, can skip

curandStatePhilox4_32_10_t state_at(uint64_t seed, uint64_t subsequence, uint64_t offset) {
  curandStatePhilox4_32_10_t state;
  curand_init(seed, subsequence, offset, &state);
  return state;
}

bool equal(const PhiloxBlock& a, uint4 b) {
  return a.word[0] == b.x && a.word[1] == b.y && a.word[2] == b.z && a.word[3] == b.w;
}

bool equal(const PhiloxBlock& a, float4 b) {
  return uniform_from_word(a.word[0]) == b.x && uniform_from_word(a.word[1]) == b.y &&
         uniform_from_word(a.word[2]) == b.z && uniform_from_word(a.word[3]) == b.w;
}

// Four blocks and their uniforms from `block` on, which is below kBlocks.
int differences(uint64_t seed, uint64_t subsequence, uint64_t block) {
  auto words = state_at(seed, subsequence, 4 * block), uniforms = words;
  int count = 0;
  for (uint64_t i = 0; i < 4; ++i) {
    const PhiloxBlock ours = philox4x32(seed, subsequence, block + i);
    count += !equal(ours, curand4(&words));
    count += !equal(ours, curand_uniform4(&uniforms));
  }
  return count;
}

TEST_CASE("philox: cuRAND's blocks and uniforms for random seeds, subsequences and offsets") {
  std::mt19937_64 random(1);
  int wrong = 0;
  for (int i = 0; i < 200'000; ++i) wrong += differences(random(), random(), random() % kBlocks);
  CHECK(wrong == 0);
}

TEST_CASE("philox: cuRAND's blocks where 32 and 64 bits end") {
  const uint64_t edges[] = {0, 1, 0xFFFFFFFE, 0xFFFFFFFF, 0x100000000, 0x1FFFFFFFF, kBlocks - 2, kBlocks - 1};
  const uint64_t ends[] = {0, 0xFFFFFFFF, 0x100000000, ~uint64_t{0} - 1, ~uint64_t{0}};
  for (uint64_t block : edges) {
    for (uint64_t subsequence : ends) {
      for (uint64_t seed : ends) {
        INFO("seed " << seed << ", subsequence " << subsequence << ", block " << block);
        CHECK(differences(seed, subsequence, block) == 0);
      }
    }
  }
  // After its last block a subsequence goes on with the next one.
  for (uint64_t subsequence : ends) {
    auto state = state_at(7, subsequence, 0);
    for (int i = 0; i < 4; ++i) skipahead(4 * (kBlocks - 1), &state);
    skipahead(uint64_t{4 * 2}, &state);
    CHECK(equal(philox4x32(7, subsequence, ~uint64_t{0} - 1), curand4(&state)));
    CHECK(equal(philox4x32(7, subsequence, ~uint64_t{0}), curand4(&state)));
    CHECK(equal(philox4x32(7, subsequence + 1, 0), curand4(&state)));
  }
}

TEST_CASE("philox: a decoding step's uniform is cuRAND's at offset 4 x step") {
  std::mt19937_64 random(2);
  int wrong = 0;
  for (int i = 0; i < 50'000; ++i) {
    const uint64_t seed = random(), id = random() & 0xFFFFFFFF;
    const auto sample = static_cast<uint32_t>(random()), step = static_cast<uint32_t>(random());
    auto state = state_at(seed ^ stream::kSampling, id << 32 | sample, uint64_t{4} * step);
    wrong += curand_uniform(&state) != sampling_uniform(seed, id, sample, step);
  }
  CHECK(wrong == 0);
}

TEST_CASE("philox: an offset's two low bits choose the word") {
  const PhiloxBlock block = philox4x32(3, 4, 5);
  for (uint64_t word = 0; word < 4; ++word) {
    auto state = state_at(3, 4, 4 * 5 + word);
    CHECK(curand(&state) == block.word[word]);
  }
}

class HostGenerator {
 public:
  explicit HostGenerator(uint64_t seed) {
    require(curandCreateGeneratorHost(&generator_, CURAND_RNG_PSEUDO_PHILOX4_32_10));
    require(curandSetPseudoRandomGeneratorSeed(generator_, seed));
  }
  ~HostGenerator() { curandDestroyGenerator(generator_); }
  HostGenerator(const HostGenerator&) = delete;

  std::vector<uint32_t> words(size_t count) {
    std::vector<uint32_t> result(count);
    require(curandGenerate(generator_, result.data(), count));
    return result;
  }
  std::vector<float> uniforms(size_t count) {
    std::vector<float> result(count);
    require(curandGenerateUniform(generator_, result.data(), count));
    return result;
  }

 private:
  static void require(curandStatus_t status) { REQUIRE(status == CURAND_STATUS_SUCCESS); }
  curandGenerator_t generator_ = nullptr;
};

TEST_CASE("philox: cuRAND's host generator gives block 0 of subsequences 0, 1, 2 and so on") {
  constexpr size_t kSubsequences = 4096;
  for (uint64_t seed : {uint64_t{0}, uint64_t{1234}, uint64_t{0x123456789ABCDEF0}}) {
    const std::vector<uint32_t> words = HostGenerator(seed).words(4 * kSubsequences);
    const std::vector<float> uniforms = HostGenerator(seed).uniforms(4 * kSubsequences);
    int wrong = 0;
    for (size_t s = 0; s < kSubsequences; ++s) {
      const PhiloxBlock ours = philox4x32(seed, s, 0);
      for (size_t i = 0; i < 4; ++i) {
        wrong += ours.word[i] != words[4 * s + i];
        wrong += uniform_from_word(ours.word[i]) != uniforms[4 * s + i];
      }
    }
    INFO("seed " << seed);
    CHECK(wrong == 0);
  }
}

}  // namespace
}  // namespace pointsman
