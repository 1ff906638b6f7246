// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu_adam_step.h"

#include <cmath>

#include "kernels/cpu/cpu_operations.h"

namespace pointsman {

namespace {

double step_range(const AdamArrays& arrays, size_t begin, size_t end, int64_t step,
                  const UpdateRequest& request) {
  const auto count = static_cast<int64_t>(end - begin);
  const double norm = std::sqrt(cpu::squared_norm(arrays.gradient + begin, count));
  const double scale = norm > request.max_norm ? request.max_norm / norm : 1.0;
  const auto correction = [&](float beta) {
    return static_cast<float>(1.0 - std::pow(static_cast<double>(beta), static_cast<double>(step)));
  };
  cpu::adam_update({arrays.parameters + begin, arrays.first_moment + begin, arrays.second_moment + begin,
                    arrays.gradient + begin, count, static_cast<float>(scale), request.learning_rate,
                    request.beta1, request.beta2, request.epsilon, correction(request.beta1),
                    correction(request.beta2)});
  return norm;
}

}  // namespace

GradientNorms adam_step(const ParameterLayout& layout, const AdamArrays& arrays, int64_t& actor_steps,
                        int64_t& critic_steps, const UpdateRequest& request) {
  GradientNorms norms;
  if (request.actor) norms.actor = step_range(arrays, 0, layout.actor_size, ++actor_steps, request);
  if (request.critic && layout.size > layout.actor_size)
    norms.critic = step_range(arrays, layout.actor_size, layout.size, ++critic_steps, request);
  return norms;
}

}  // namespace pointsman
