// SPDX-License-Identifier: Apache-2.0
#include "host/run/solve_rules.h"

#include <algorithm>
#include <limits>
#include <span>
#include <stdexcept>

#include "engine/problem/problem.h"
#include "host/run/failure.h"

namespace pointsman {

namespace {

// What means nothing without a network, and asks auto for one.
constexpr const char* kNetworkFlags[] = {"--model",   "--samples", "--first-sample",
                                         "--shuffle", "--augment", "--temperature",
                                         "--clip",    "--improve", "--stop-at-first-misfit"};

constexpr const char* kNotForActive[] = {"--samples", "--first-sample", "--shuffle", "--temperature"};
constexpr const char* kOnlyForActive[] = {"--steps", "--replicas", "--learn", "--learning-rate", "--entropy"};

void refuse_given(std::span<const char* const> flags, const IsGiven& is_given, const std::string& why) {
  for (const char* flag : flags) {
    if (is_given(flag)) throw std::invalid_argument(std::string(flag) + ": " + why);
  }
}

}  // namespace

bool asks_for_network(const IsGiven& is_given) {
  return std::any_of(std::begin(kNetworkFlags), std::end(kNetworkFlags), is_given);
}

void refuse_combinations(const SolveOptions& options, const IsGiven& is_given) {
  const ModeInfo& mode = info_of(options.mode);
  const bool active = options.mode == Mode::kActive;
  if (!mode.has_network) refuse_given(kNetworkFlags, is_given, std::string("is not for --mode ") + mode.name);
  if (active) {
    refuse_given(kNotForActive, is_given, "is not for --mode active");
  } else {
    refuse_given(kOnlyForActive, is_given, "is for --mode active");
  }
  if (options.untrained && !active) throw std::invalid_argument("--init random: is for --mode active");
  if (is_given("--kicks") && mode.number != ModeNumber::kKicks && !improves(options))
    throw std::invalid_argument("--kicks: needs --improve on");
  if (options.mode == Mode::kTwoOpt && options.kicks.value_or(0) > std::numeric_limits<int>::max()) {
    throw std::invalid_argument("--kicks: expected at most " +
                                std::to_string(std::numeric_limits<int>::max()) + " for --mode 2opt, found " +
                                std::to_string(*options.kicks));
  }
  const int64_t samples = options.samples.value_or(1), copies = options.augment.value_or(1);
  if (options.mode == Mode::kGreedy && samples > copies && !options.shuffle.value_or(false)) {
    throw std::invalid_argument("--samples " + std::to_string(samples) +
                                " --mode greedy: a greedy pass of the same input gives the same tour; add "
                                "--shuffle");
  }
}

std::pair<int, std::string> check_instance(const SolveOptions& options, const Instance& instance) {
  const std::string name = instance.id.empty() ? "" : instance.id + ": ";
  const Problem& problem = problem_of(instance);
  const ModeInfo& mode = info_of(options.mode);
  if (mode.needs != nullptr && !(problem.*mode.needs)) {
    return {kExitUsage, name + "--mode " + mode.name + ": is not for " + problem.title};
  }
  const bool in_plane = options.mode == Mode::kTwoOpt;
  if ((needs_network(options) || in_plane) && !instance.has_coordinates()) {
    return {kExitUsage, name + "--mode " + mode.name +
                            ": reads coordinates, and the instance has only distances; use local"};
  }
  if (in_plane && instance.n() > kMostTourCities) {
    return {kExitUsage, name + "--mode " + mode.name + ": expected at most " +
                            std::to_string(kMostTourCities) + " cities, found " +
                            std::to_string(instance.n()) + "; use local"};
  }
  if (!problem.has_symmetries && options.augment == 8) {
    return {kExitUsage,
            name + "--augment 8: turns the square, and " + problem.title + " has none; use --shuffle"};
  }
  if (!problem.has_capacity && options.policy.stop_at_first_misfit) {
    return {kExitUsage, name + "--stop-at-first-misfit: is a rule of KnapSack"};
  }
  return {0, ""};
}

void check_instances(const SolveOptions& options, const InstancePointers& instances) {
  for (const Instance* instance : instances) {
    const auto [code, message] = check_instance(options, *instance);
    if (code != kExitDone) throw std::invalid_argument(message);
  }
}

bool improves(const SolveOptions& options) {
  return options.mode == Mode::kLocal || options.improve.value_or(options.mode == Mode::kAuto);
}

}  // namespace pointsman
