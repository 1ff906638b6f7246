// SPDX-License-Identifier: Apache-2.0
// The backend that compares two: silent when they agree, and naming the first difference when one of them is
// spoiled.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "engine/backend/backends.h"
#include "tests/catch.h"
#include "tests/engine/random_batch.h"

namespace pointsman {
namespace {

// The CPU's answers, each of which a test may change before they are seen.
class Spoiled final : public Backend, TwoOptDevice {
 public:
  std::function<void(RolloutResult&)> spoil_rollout = [](RolloutResult&) {};
  std::function<void(std::span<float>)> spoil_gradient = [](std::span<float>) {},
                                        spoil_values = spoil_gradient, spoil_parameters = spoil_gradient;
  std::function<void(GradientNorms&)> spoil_norms = [](GradientNorms&) {};
  std::function<void(TwoOptResult&)> spoil_tours = [](TwoOptResult&) {};

  DeviceInfo info() const override { return {"spoiled", "CPU", 1}; }
  void configure(const ModelConfig& config, int sets) override { cpu_->configure(config, sets); }
  void load_parameters(int set, std::span<const float> p) override { cpu_->load_parameters(set, p); }
  void read_parameters(int set, std::span<float> p) const override {
    cpu_->read_parameters(set, p);
    spoil_parameters(p);
  }
  void load_optimiser(int set, const OptimiserState& state) override { cpu_->load_optimiser(set, state); }
  OptimiserState read_optimiser(int set) const override { return cpu_->read_optimiser(set); }
  void rollout(const RolloutRequest& request, RolloutResult& result) override {
    cpu_->rollout(request, result);
    spoil_rollout(result);
  }
  TwoOptDevice* two_opt_device() override { return this; }
  void two_opt(const TwoOptRequest& request, TwoOptResult& result) override {
    cpu_->two_opt_device()->two_opt(request, result);
    spoil_tours(result);
  }
  void gradient(const GradientRequest& request) override { cpu_->gradient(request); }
  void critic_gradient(const SequenceBatch& sequences, std::span<const float> targets, float weight,
                       std::span<float> values, const StopToken& stop) override {
    cpu_->critic_gradient(sequences, targets, weight, values, stop);
    spoil_values(values);
  }
  void read_gradient(int set, std::span<float> gradient) const override {
    cpu_->read_gradient(set, gradient);
    spoil_gradient(gradient);
  }
  std::vector<GradientNorms> update(int first_set, int count, const UpdateRequest& request) override {
    std::vector<GradientNorms> norms = cpu_->update(first_set, count, request);
    for (GradientNorms& n : norms) spoil_norms(n);
    return norms;
  }

 private:
  std::unique_ptr<Backend> cpu_ = make_cpu_backend(1);
};

// A training step of both networks. Returns what the check said; empty: nothing.
std::string verdict(const std::function<void(Spoiled&)>& spoil) {
  const RandomBatch batch(ProblemKind::kTsp, 6, 4, 31);
  const ModelConfig config = config_for(ProblemKind::kTsp, 6);
  auto spoiled = std::make_unique<Spoiled>();
  spoil(*spoiled);
  const auto check = make_check_backend(make_cpu_backend(1), std::move(spoiled));
  try {
    check->configure(config, 2);
    for (int set : {0, 1}) check->load_parameters(set, scaled_parameters(config, 3.0f));
    const std::vector<int32_t> sets{1, 1, 1, 1};
    RolloutRequest request;
    request.sequences = batch.batch();
    request.sequences.parameter_sets = sets.data();
    const RolloutResult result = roll_out(*check, request);
    request.best_only = true;
    roll_out(*check, request);
    const std::vector<float> weights(4, 0.5f), targets(4, 1.0f);
    std::vector<float> values(4);
    GradientRequest gradient;
    gradient.sequences = request.sequences;
    gradient.orders = result.orders.data();
    gradient.weights = weights.data();
    check->gradient(gradient);
    check->critic_gradient(request.sequences, targets, 0.25f, values);
    check->update(1, 1, {});
    const RandomBatch cities(ProblemKind::kTsp, 12, 2, 32);
    TwoOptResult tours;
    TwoOptRequest search;
    search.sequences = cities.batch();
    search.instance_keys = cities.keys.data();
    search.kicks = 3;
    check->two_opt_device()->two_opt(search, tours);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

TEST_CASE("check: two backends that agree pass, also where they differ by less than is promised") {
  CHECK(verdict([](Spoiled&) {}) == "");
  CHECK(verdict([](Spoiled& s) {
          s.spoil_rollout = [](RolloutResult& r) { r.log_probs[2] *= 1.0 + 5e-6; };
          s.spoil_gradient = [](std::span<float> g) {
            for (float& x : g) x *= 1.00005f;
          };
          s.spoil_parameters = [](std::span<float> p) { p[7] += 1e-3f; };  // the learning rate
        }) == "");
}

TEST_CASE("check: the first difference is named") {
  CHECK(says(verdict([](Spoiled& s) {
               s.spoil_tours = [](TwoOptResult& r) { std::swap(r.orders[12 + 2], r.orders[12 + 5]); };
             }),
             "tour 1, item of step 2: cpu says "));
  CHECK(says(verdict([](Spoiled& s) { s.spoil_tours = [](TwoOptResult& r) { r.kicks[1] = 2; }; }),
             "kicks of tour 1: cpu says 3, spoiled says 2"));
  CHECK(says(verdict([](Spoiled& s) {
               s.spoil_rollout = [](RolloutResult& r) {
                 if (!r.winners.empty()) r.winners[3] = 1;
               };
             }),
             "the best rollout of sequence 3: cpu says 0, spoiled says 1"));
  CHECK(says(verdict([](Spoiled& s) {
               s.spoil_rollout = [](RolloutResult& r) { std::swap(r.orders[6 + 1], r.orders[6 + 4]); };
             }),
             "rollout 1, item of step 1: cpu says "));
  CHECK(says(
      verdict([](Spoiled& s) { s.spoil_rollout = [](RolloutResult& r) { r.log_probs[2] *= 1.0 + 1e-4; }; }),
      "log p of rollout 2: "));
  CHECK(says(
      verdict([](Spoiled& s) { s.spoil_rollout = [](RolloutResult& r) { r.log_probs[3] = std::nan(""); }; }),
      "log p of rollout 3: "));
  CHECK(says(verdict([](Spoiled& s) { s.spoil_rollout = [](RolloutResult& r) { r.costs[0] += 1e-9; }; }),
             "cost of rollout 0: "));
  CHECK(
      says(verdict([](Spoiled& s) { s.spoil_values = [](std::span<float> values) { values[1] += 0.01f; }; }),
           "critic value 1: "));
  const ParameterLayout layout(config_for(ProblemKind::kTsp, 6));
  CHECK(says(verdict([&](Spoiled& s) {
               s.spoil_gradient = [&](std::span<float> g) { g[layout.pointer.v + 5] += 1.0f; };
             }),
             "gradient of set 1, actor.pointer.v, element 5: "));
  CHECK(says(verdict([&](Spoiled& s) {
               s.spoil_gradient = [&](std::span<float> g) { g[layout.critic.fc2_bias] = std::nanf(""); };
             }),
             "gradient of set 1, critic.head.fc2.bias, element 0: "));
  CHECK(says(verdict([](Spoiled& s) { s.spoil_norms = [](GradientNorms& n) { n.actor *= 1.01; }; }),
             "norm of the actor's gradient of set 1: "));
  CHECK(says(verdict([](Spoiled& s) { s.spoil_parameters = [](std::span<float> p) { p[40] += 0.1f; }; }),
             "update of set 1, parameter 40: "));
}

}  // namespace
}  // namespace pointsman
