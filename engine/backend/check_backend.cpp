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

constexpr double kLogProbTolerance = 1e-5;   // of the log p
constexpr double kCostTolerance = 1e-12;     // of the cost, or absolute below 1
constexpr double kValueTolerance = 1e-5;     // of the critic's value, or absolute below 1
constexpr double kGradientTolerance = 2e-4;  // of the tensor's largest element: each may be 1e-4 off

// By how much two numbers may differ: of the larger one or `least`, or at all.
auto within(double tolerance, double least = 1.0) {
  return [=](double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    return std::abs(a - b) <= tolerance * std::max({std::abs(a), std::abs(b), least});
  };
}
auto within_distance(double distance) {
  return [=](double a, double b) { return std::abs(a - b) <= distance; };
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
    compare_rollouts(request.sequences.steps(), result, other);
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
    compare("kicks of tour ", result.kicks, other.kicks, within(0.0));
  }

  void gradient(const GradientRequest& request) override {
    first_->gradient(on(request, &Tapes::first));
    second_->gradient(on(request, &Tapes::second));
    compare_gradients(request.sequences);
  }

  void critic_gradient(const SequenceBatch& sequences, std::span<const float> targets, float weight,
                       std::span<float> values, const StopToken& stop) override {
    stop.check();
    std::vector<float> other(sequences.count);
    first_->critic_gradient(sequences, targets, weight, values);
    second_->critic_gradient(sequences, targets, weight, other);
    compare("critic value ", values.first(other.size()), std::span<float>(other), within(kValueTolerance));
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
      const std::string of_set = " of set " + std::to_string(set);
      const auto compare_norms = [&](const char* whose, double a, double b) {
        if (!within(kGradientTolerance, 0.0)(a, b))
          differ(std::string("norm of the ") + whose + "'s gradient" + of_set, number(a), number(b));
      };
      compare_norms("actor", norms[i].actor, other[i].actor);
      compare_norms("critic", norms[i].critic, other[i].critic);
      first_->read_parameters(set, parameters);
      second_->read_parameters(set, others);
      compare("update" + of_set + ", parameter ", parameters, others,
              within_distance(2.0f * largest_step(request)));
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

  template <typename Numbers, typename Allowed>
  void compare(const std::string& what, const Numbers& a, const Numbers& b, const Allowed& allowed) const {
    for (size_t i = 0; i < a.size(); ++i) {
      if (!allowed(a[i], b[i])) differ(what + std::to_string(i), number(a[i]), number(b[i]));
    }
  }

  // How far Adam moves a parameter at most (Kingma & Ba, section 2.1): where a gradient is a rounding error,
  // that far in either direction.
  static float largest_step(const UpdateRequest& request) {
    return 1.01f * request.learning_rate *
           std::max(1.0f, (1.0f - request.beta1) / std::sqrt(1.0f - request.beta2));
  }

  void compare_orders(const char* what, int steps, const std::vector<int32_t>& orders,
                      const std::vector<int32_t>& others) const {
    const auto first = std::mismatch(orders.begin(), orders.end(), others.begin());
    if (first.first == orders.end()) return;
    const auto at = first.first - orders.begin();
    differ(what + (" " + std::to_string(at / steps)) + ", item of step " + std::to_string(at % steps),
           number(*first.first), number(*first.second));
  }

  void compare_rollouts(int steps, const RolloutResult& result, const RolloutResult& other) const {
    if (result.costs.size() != other.costs.size()) differ("the number of rollouts");
    if (result.winners.size() != other.winners.size()) differ("the number of best rollouts");
    compare("the best rollout of sequence ", result.winners, other.winners, within(0.0));
    compare_orders("rollout", steps, result.orders, other.orders);
    compare("log p of rollout ", result.log_probs, other.log_probs, within(kLogProbTolerance, 1e-2));
    compare("cost of rollout ", result.costs, other.costs, within(kCostTolerance));
  }

  void compare_gradients(const SequenceBatch& sequences) const {
    std::set<int> sets;
    for (int s = 0; s < sequences.count; ++s) sets.insert(sequences.set_of(s));
    std::vector<float> a(layout_->size), b(layout_->size);
    for (const int set : sets) {
      first_->read_gradient(set, a);
      second_->read_gradient(set, b);
      for (const Tensor& tensor : layout_->tensors) {
        const std::span of_a = std::span<const float>(a).subspan(tensor.offset, tensor.size);
        double largest = 0.0;
        for (const float x : of_a) largest = std::max(largest, std::abs(double{x}));
        compare("gradient of set " + std::to_string(set) + ", " + tensor.name + ", element ", of_a,
                std::span<const float>(b).subspan(tensor.offset, tensor.size),
                within_distance(kGradientTolerance * largest));
      }
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
