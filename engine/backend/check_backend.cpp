// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <set>
#include <stdexcept>

#include "engine/backend/backends.h"
#include "models/parameter_layout.h"

namespace pointsman {
namespace {

constexpr double kLogProbTolerance = 1e-5;  // of the log p
constexpr double kCostTolerance = 1e-12;    // of the cost, or absolute below 1
constexpr double kValueTolerance = 1e-5;    // of the critic's value, or absolute below 1
constexpr double kGradientTolerance =
    2e-4;  // of the tensor's largest element: each may be 1e-4 off the truth

bool near(double a, double b, double tolerance, double least = 1.0) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::abs(a - b) <= tolerance * std::max({std::abs(a), std::abs(b), least});
}

// Of the two backends.
struct Tapes final : Tape::Storage {
  Tape first, second;
};

class CheckBackend final : public Backend, TwoOptDevice {
 public:
  CheckBackend(std::unique_ptr<Backend> first, std::unique_ptr<Backend> second)
      : first_(std::move(first)),
        second_(std::move(second)),
        first_name_(first_->info().name),
        second_name_(second_->info().name) {}

  DeviceInfo info() const override {
    const DeviceInfo a = first_->info(), b = second_->info();
    return {"check", a.name + " (" + a.detail + ") against " + b.name + " (" + b.detail + ")", a.threads};
  }

  void configure(const ModelConfig& config, int sets) override {
    layout_.emplace(config);
    first_->configure(config, sets);
    second_->configure(config, sets);
  }

  void load_parameters(int set, std::span<const float> parameters) override {
    first_->load_parameters(set, parameters);
    second_->load_parameters(set, parameters);
  }

  void read_parameters(int set, std::span<float> parameters) const override {
    first_->read_parameters(set, parameters);
  }

  void load_optimiser(int set, const OptimiserState& state) override {
    first_->load_optimiser(set, state);
    second_->load_optimiser(set, state);
  }

  OptimiserState read_optimiser(int set) const override { return first_->read_optimiser(set); }

  void rollout(const RolloutRequest& request, RolloutResult& result) override {
    RolloutResult other;
    first_->rollout(on(request, &Tapes::first), result);
    second_->rollout(on(request, &Tapes::second), other);
    compare_rollouts(request.sequences.n, result, other);
  }

  TwoOptDevice* two_opt_device() override {
    return first_->two_opt_device() && second_->two_opt_device() ? this : nullptr;
  }
  void two_opt(const TwoOptRequest& request, TwoOptResult& result) override {
    TwoOptRequest whole = request;
    whole.stop = {};
    TwoOptResult other;
    first_->two_opt_device()->two_opt(whole, result);
    second_->two_opt_device()->two_opt(whole, other);
    compare_orders("tour", request.sequences.n, result.orders, other.orders);
    for (size_t s = 0; s < result.kicks.size(); ++s)
      compare("kicks of tour ", s, result.kicks[s], other.kicks[s], 0.0);
  }

  void gradient(const GradientRequest& request) override {
    first_->gradient(on(request, &Tapes::first));
    second_->gradient(on(request, &Tapes::second));
    compare_gradients(request.sequences);
  }

  void critic_values(const SequenceBatch& sequences, std::span<float> values) override {
    std::vector<float> other(sequences.count);
    first_->critic_values(sequences, values);
    second_->critic_values(sequences, other);
    compare_values(values, other);
  }

  void critic_gradient(const SequenceBatch& sequences, std::span<const float> targets, float weight,
                       std::span<float> values, const StopToken& stop) override {
    stop.check();
    std::vector<float> other(sequences.count);
    first_->critic_gradient(sequences, targets, weight, values);
    second_->critic_gradient(sequences, targets, weight, other);
    compare_values(values, other);
    compare_gradients(sequences);
  }

  void read_gradient(int set, std::span<float> gradient) const override {
    first_->read_gradient(set, gradient);
  }

  std::vector<GradientNorms> update(int first_set, int count, const UpdateRequest& request) override {
    const std::vector<GradientNorms> norms = first_->update(first_set, count, request);
    const std::vector<GradientNorms> other = second_->update(first_set, count, request);
    std::vector<float> parameters(layout_->size), others(layout_->size);
    for (int i = 0; i < count; ++i) {
      const int set = first_set + i;
      compare("norm of the actor's gradient of set ", set, norms[i].actor, other[i].actor, kGradientTolerance,
              0.0);
      compare("norm of the critic's gradient of set ", set, norms[i].critic, other[i].critic,
              kGradientTolerance, 0.0);
      first_->read_parameters(set, parameters);
      second_->read_parameters(set, others);
      for (size_t k = 0; k < parameters.size(); ++k) {
        if (std::abs(parameters[k] - others[k]) <= 2.0f * largest_step(request)) continue;
        differ("update of set " + std::to_string(set) + ", parameter " + std::to_string(k),
               number(parameters[k]), number(others[k]));
      }
      second_->load_parameters(set, parameters);
      second_->load_optimiser(set, first_->read_optimiser(set));
    }
    return norms;
  }

 private:
  // The request with a backend's own tape, and without a stop: the two would end in different places.
  template <typename Request>
  static Request on(Request request, Tape Tapes::*own) {
    if (request.tape != nullptr) request.tape = &(request.tape->template storage<Tapes>().*own);
    request.stop = {};
    return request;
  }

  static std::string number(double x) {
    char text[40];
    std::snprintf(text, sizeof text, "%.9g", x);
    return text;
  }

  [[noreturn]] void differ(const std::string& where, const std::string& a = "",
                           const std::string& b = "") const {
    std::string text = "check: difference in " + where;
    if (!a.empty()) text += ": " + first_name_ + " says " + a + ", " + second_name_ + " says " + b;
    throw std::runtime_error(text);
  }

  void compare(const char* what, size_t index, double a, double b, double tolerance,
               double least = 1.0) const {
    if (!near(a, b, tolerance, least)) differ(what + std::to_string(index), number(a), number(b));
  }

  // How far Adam moves a parameter at most (Kingma & Ba, section 2.1): where a gradient is a rounding error,
  // that far in either direction.
  static float largest_step(const UpdateRequest& request) {
    return 1.01f * request.learning_rate *
           std::max(1.0f, (1.0f - request.beta1) / std::sqrt(1.0f - request.beta2));
  }

  void compare_orders(const char* what, int n, const std::vector<int32_t>& orders,
                      const std::vector<int32_t>& others) const {
    const auto first = std::mismatch(orders.begin(), orders.end(), others.begin());
    if (first.first == orders.end()) return;
    const auto at = first.first - orders.begin();
    differ(what + (" " + std::to_string(at / n)) + ", item of step " + std::to_string(at % n),
           number(*first.first), number(*first.second));
  }

  void compare_rollouts(int n, const RolloutResult& result, const RolloutResult& other) const {
    if (result.costs.size() != other.costs.size()) differ("the number of rollouts");
    if (result.winners.size() != other.winners.size()) differ("the number of best rollouts");
    for (size_t s = 0; s < result.winners.size(); ++s) {
      if (result.winners[s] == other.winners[s]) continue;
      differ("the best rollout of sequence " + std::to_string(s), std::to_string(result.winners[s]),
             std::to_string(other.winners[s]));
    }
    compare_orders("rollout", n, result.orders, other.orders);
    for (size_t r = 0; r < result.costs.size(); ++r) {
      compare("log p of rollout ", r, result.log_probs[r], other.log_probs[r], kLogProbTolerance, 1e-2);
      compare("cost of rollout ", r, result.costs[r], other.costs[r], kCostTolerance);
    }
  }

  void compare_values(std::span<const float> values, const std::vector<float>& other) const {
    for (size_t s = 0; s < other.size(); ++s) {
      compare("critic value ", s, values[s], other[s], kValueTolerance);
    }
  }

  void compare_gradients(const SequenceBatch& sequences) const {
    std::set<int> sets;
    for (int s = 0; s < sequences.count; ++s) sets.insert(sequences.set_of(s));
    std::vector<float> a(layout_->size), b(layout_->size);
    for (const int set : sets) {
      first_->read_gradient(set, a);
      second_->read_gradient(set, b);
      for (const Tensor& tensor : layout_->tensors) compare_tensor(set, tensor, a, b);
    }
  }

  void compare_tensor(int set, const Tensor& tensor, const std::vector<float>& a,
                      const std::vector<float>& b) const {
    double largest = 0.0;
    for (size_t k = tensor.offset; k < tensor.offset + tensor.size; ++k)
      largest = std::max(largest, std::abs(static_cast<double>(a[k])));
    for (size_t k = tensor.offset; k < tensor.offset + tensor.size; ++k) {
      if (std::abs(static_cast<double>(a[k]) - b[k]) <= kGradientTolerance * largest) continue;
      differ("gradient of set " + std::to_string(set) + ", " + tensor.name + ", element " +
                 std::to_string(k - tensor.offset),
             number(a[k]), number(b[k]));
    }
  }

  const std::unique_ptr<Backend> first_, second_;
  const std::string first_name_, second_name_;
  std::optional<ParameterLayout> layout_;
};

}  // namespace

std::unique_ptr<Backend> make_check_backend(std::unique_ptr<Backend> first, std::unique_ptr<Backend> second) {
  return std::make_unique<CheckBackend>(std::move(first), std::move(second));
}

}  // namespace pointsman
