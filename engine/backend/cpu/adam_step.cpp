// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/adam_step.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu_operations.h"

namespace pointsman {

namespace {

double step_range(const AdamArrays& arrays, size_t begin, size_t end, int64_t step,
                  const UpdateRequest& request, WorkerThreads* helpers) {
  const auto count = static_cast<int64_t>(end - begin);
  const double norm = std::sqrt(cpu::squared_norm(arrays.gradient + begin, count));
  const double scale = norm > request.max_norm ? request.max_norm / norm : 1.0;
  const auto correction = [&](float beta) {
    return static_cast<float>(1.0 - std::pow(static_cast<double>(beta), static_cast<double>(step)));
  };
  constexpr int64_t kSlice = 65536;
  for_each_item(helpers, (count + kSlice - 1) / kSlice, [&](int64_t slice) {
    const size_t first = begin + slice * kSlice;
    cpu::adam_update({arrays.parameters + first, arrays.first_moment + first, arrays.second_moment + first,
                      arrays.gradient + first, std::min<int64_t>(kSlice, end - first),
                      static_cast<float>(scale), request.learning_rate, request.beta1, request.beta2,
                      request.epsilon, correction(request.beta1), correction(request.beta2)});
  });
  return norm;
}

}  // namespace

GradientNorms adam_step(const ParameterLayout& layout, const AdamArrays& arrays, int64_t& actor_steps,
                        int64_t& critic_steps, const UpdateRequest& request, WorkerThreads* helpers) {
  GradientNorms norms;
  if (request.actor) norms.actor = step_range(arrays, 0, layout.actor_size, ++actor_steps, request, helpers);
  if (request.critic && layout.size > layout.actor_size)
    norms.critic = step_range(arrays, layout.actor_size, layout.size, ++critic_steps, request, helpers);
  if (!request.actor) std::fill_n(arrays.gradient, layout.actor_size, 0.0f);
  if (!request.critic) std::fill(arrays.gradient + layout.actor_size, arrays.gradient + layout.size, 0.0f);
  return norms;
}

}  // namespace pointsman
