// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/cpu_operations.h"
#include "tests/catch.h"
#include "tests/kernels/cpu/on_each_target.h"

namespace pointsman {
namespace {

constexpr int kSizes[] = {1, 2, 15, 16, 17, 31, 32, 33, 100, 127, 1000};
constexpr float kUntouched = 12345.0f;

struct State {
  std::vector<float> parameters, first, second, gradient;

  explicit State(int count)
      : parameters(random_floats(count + 1, 1)),
        first(random_floats(count + 1, 2, 0.1f)),
        second(random_floats(count + 1, 3, 0.01f)),
        gradient(random_floats(count + 1, 4, 5.0f)) {
    for (float& v : second) v = std::abs(v);
    for (auto* values : {&parameters, &first, &second, &gradient}) values->back() = kUntouched;
  }

  cpu::AdamArgs arguments(int count, float scale) {
    return {parameters.data(),
            first.data(),
            second.data(),
            gradient.data(),
            count,
            scale,
            1e-3f,
            0.9f,
            0.999f,
            1e-8f,
            0.271f,
            0.002997f};
  }
};

struct Expected {
  double parameter, first, second, step;
};

Expected one_step(const cpu::AdamArgs& a, double p, double m, double v, double g) {
  const double scaled = a.gradient_scale * g;
  Expected e;
  e.first = a.beta1 * m + (1.0 - a.beta1) * scaled;
  e.second = a.beta2 * v + (1.0 - a.beta2) * scaled * scaled;
  e.step = a.learning_rate * (e.first / a.correction1) / (std::sqrt(e.second / a.correction2) + a.epsilon);
  e.parameter = p - e.step;
  return e;
}

TEST_CASE("adam_update is Adam, zeroes the gradient, and touches nothing else") {
  on_each_target([](const CpuTarget&) {
    for (int count : kSizes) {
      for (float scale : {1.0f, 0.125f}) {
        INFO(count << " parameters, gradient scale " << scale);
        const State before(count);
        State after(count);
        const cpu::AdamArgs args = after.arguments(count, scale);
        cpu::adam_update(args);
        double worst = 0.0;
        for (int i = 0; i < count; ++i) {
          const double m = before.first[i], v = before.second[i], g = scale * before.gradient[i];
          const Expected e = one_step(args, before.parameters[i], m, v, before.gradient[i]);
          // m: scaling, (1 - beta1), two products, one sum: 4 roundings of its terms; v: one more for the
          // square. The step: m's share as an absolute error, then half of v's, four divisions and roots, the
          // product.
          const double m_off = 4 * kUnit * (std::abs(0.9 * m) + std::abs(0.1 * g));
          const double step_off =
              std::abs(e.step) * 12 * kUnit + 1e-3 * m_off / 0.271 / std::sqrt(e.second / 0.002997);
          worst = std::max(
              {worst, std::abs(after.first[i] - e.first) / m_off,
               std::abs(after.second[i] - e.second) / (6 * kUnit * (v + 1e-3 * g * g)),
               std::abs(after.parameters[i] - e.parameter) / (step_off + kUnit * std::abs(e.parameter))});
          if (after.gradient[i] != 0.0f) FAIL("gradient " << i << " is not zeroed");
        }
        CHECK(worst <= 1.0);
        for (const auto* values : {&after.parameters, &after.first, &after.second, &after.gradient}) {
          CHECK(values->back() == kUntouched);
        }
      }
    }
  });
}

TEST_CASE("a parameter's Adam step does not depend on its place in the vector") {
  on_each_target([](const CpuTarget&) {
    State together(100);
    cpu::adam_update(together.arguments(100, 0.5f));
    for (int i : {0, 15, 16, 97, 99}) {
      State alone(100);
      cpu::AdamArgs args = alone.arguments(1, 0.5f);
      args.parameters += i;
      args.first_moment += i;
      args.second_moment += i;
      args.gradient += i;
      cpu::adam_update(args);
      CHECK(same_bits(alone.parameters[i], together.parameters[i]));
      CHECK(same_bits(alone.first[i], together.first[i]));
      CHECK(same_bits(alone.second[i], together.second[i]));
    }
  });
}

TEST_CASE("a parameter without gradient and moments stays") {
  on_each_target([](const CpuTarget&) {
    State state(17);
    const std::vector<float> before = state.parameters;
    for (auto* values : {&state.first, &state.second, &state.gradient})
      std::fill(values->begin(), values->end(), 0.0f);
    cpu::adam_update(state.arguments(17, 1.0f));
    CHECK(same_bits(state.parameters, before));
  });
}

TEST_CASE("squared_norm sums in double") {
  for (int count : kSizes) {
    const std::vector<float> x = random_floats(count, 1, 3.0f);
    long double expected = 0.0L;
    for (float value : x) expected += static_cast<long double>(value) * static_cast<long double>(value);
    // A square of floats is exact in double; every partial sum rounds once for each term.
    CHECK(std::abs(cpu::squared_norm(x.data(), count) - static_cast<double>(expected)) <=
          (count + 1) * 0x1p-53 * static_cast<double>(expected));
  }
  CHECK(cpu::squared_norm(nullptr, 0) == 0.0);
  // Single precision would lose the ones beside 2^30, or overflow.
  const std::vector<float> mixed{0x1p15f, 1.0f, 1.0f, 1.0f, 1e30f};
  CHECK(cpu::squared_norm(mixed.data(), 4) == 0x1p30 + 3.0);
  CHECK(std::isfinite(cpu::squared_norm(mixed.data(), 5)));
}

}  // namespace
}  // namespace pointsman
