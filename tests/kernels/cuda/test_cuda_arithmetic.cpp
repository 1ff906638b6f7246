// SPDX-License-Identifier: Apache-2.0
// What the kernels build on: tensor core fragments by the tables of NVIDIA's "Parallel Thread Execution
// ISA" 9.0, section "Matrix multiply-accumulate operation using mma instruction", and the division without
// checks.
#include <cstdint>
#include <cstring>
#include <ios>
#include <vector>

#include "tests/catch.h"
#include "tests/kernels/cuda/arithmetic_kernels.h"
#include "tests/kernels/cuda/device_test.h"

namespace pointsman::cuda {
namespace {

struct Place {
  int row, column;
};

// The tables, an element of a fragment a line, as the ISA writes them. groupID = %laneid >> 2;
// threadID_in_group = %laneid % 4.

// "Matrix Fragments for mma.m16n8k8", .tf32: a0 .. a3, each a register.
Place tf32_a(int lane, int i) {
  const int group_id = lane >> 2, thread_id_in_group = lane % 4;
  const int row = i == 0 || i == 2 ? group_id : group_id + 8;
  const int column = i == 0 || i == 1 ? thread_id_in_group : thread_id_in_group + 4;
  return {row, column};
}
// b0, b1, each a register.
Place tf32_b(int lane, int i) {
  const int group_id = lane >> 2, thread_id_in_group = lane % 4;
  return {i == 0 ? thread_id_in_group : thread_id_in_group + 4, group_id};
}
// "Matrix Fragments for mma.m16n8k16 with floating point type", .bf16: a0 .. a7, two a register, the lower
// half first.
Place bf16_a(int lane, int i) {
  const int group_id = lane >> 2, thread_id_in_group = lane % 4;
  const int row = (0 <= i && i < 2) || (4 <= i && i < 6) ? group_id : group_id + 8;
  const int column = thread_id_in_group * 2 + (i & 0x1) + (i >= 4 ? 8 : 0);
  return {row, column};
}
// b0 .. b3, two a register.
Place bf16_b(int lane, int i) {
  const int group_id = lane >> 2, thread_id_in_group = lane % 4;
  return {thread_id_in_group * 2 + (i & 0x1) + (i >= 2 ? 8 : 0), group_id};
}
// c0 .. c3 and d0 .. d3 of both, each a register.
Place accumulator(int lane, int i) {
  const int group_id = lane >> 2, thread_id_in_group = lane % 4;
  return {i < 2 ? group_id : group_id + 8, thread_id_in_group * 2 + (i & 0x1)};
}

// Small whole numbers, no two rows or columns alike: exact in every precision, in any order of the sums.
int a_of(int row, int column) { return (row * row + 3 * row * column + 5 * column * column) % 17 - 8; }
int b_of(int row, int column) { return (7 * row + row * column + 2 * column * column) % 13 - 6; }
int c_of(int row, int column) { return 100 * row + column; }

uint32_t bits_of(int number) {
  const auto value = static_cast<float>(number);
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

using Table = Place (*)(int lane, int i);
using Element = int (*)(int row, int column);

// `count` elements a lane, `packed` of them a register (a bf16 number is the upper half of a float).
std::vector<uint32_t> fragments(Table table, Element element, int count, int packed) {
  std::vector<uint32_t> registers(static_cast<size_t>(32 * count / packed));
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < count; ++i) {
      const Place place = table(lane, i);
      const uint32_t bits = bits_of(element(place.row, place.column));
      registers[(lane * count + i) / packed] |= packed == 1 ? bits : bits >> 16 << (16 * (i % 2));
    }
  }
  return registers;
}

void check_product(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b, int depth,
                   void (*multiply)(const uint32_t*, const uint32_t*, float*)) {
  std::vector<float> c(128);
  for (int at = 0; at < 128; ++at) {
    const Place place = accumulator(at / 4, at % 4);
    c[at] = static_cast<float>(c_of(place.row, place.column));
  }
  const DeviceArray<uint32_t> device_a(a), device_b(b);
  DeviceArray<float> sums(c);
  multiply(device_a.data(), device_b.data(), sums.data());
  const std::vector<float> d = sums.download();
  for (int at = 0; at < 128; ++at) {
    const Place place = accumulator(at / 4, at % 4);
    int sum = c_of(place.row, place.column);
    for (int k = 0; k < depth; ++k) sum += a_of(place.row, k) * b_of(k, place.column);
    CHECK(d[at] == static_cast<float>(sum));
  }
}

TEST_CASE("mma: m16n8k8 of tf32 by the ISA's tables") {
  check_product(fragments(tf32_a, a_of, 4, 1), fragments(tf32_b, b_of, 2, 1), 8, multiply_fragments_tf32);
}

TEST_CASE("mma: m16n8k16 of bf16 by the ISA's tables") {
  check_product(fragments(bf16_a, a_of, 8, 2), fragments(bf16_b, b_of, 4, 2), 16, multiply_fragments_bf16);
}

void check_quotients(uint64_t seed, int64_t pairs) {
  DeviceArray<int64_t> wrong(kQuotientThreads);
  DeviceArray<float> last(size_t{2} * kQuotientThreads);
  compare_quotients(seed, pairs / kQuotientThreads, wrong.data(), last.data());
  const std::vector<int64_t> counts = wrong.download();
  const std::vector<float> places = last.download();
  for (int t = 0; t < kQuotientThreads; ++t) {
    INFO(std::hexfloat << places[2 * t] << " / " << places[2 * t + 1]);
    REQUIRE(counts[t] == 0);
  }
}

TEST_CASE("quick_quotient is the quotient: 10 million pairs") { check_quotients(1, 10'000'000); }
TEST_CASE("quick_quotient is the quotient: a billion pairs", "[.long]") { check_quotients(2, 1'000'000'000); }

}  // namespace
}  // namespace pointsman::cuda
