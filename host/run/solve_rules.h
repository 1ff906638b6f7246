// SPDX-License-Identifier: Apache-2.0
// Which options of a solve mean something, alone and together. Messages name them as the command line does.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "engine/engine.h"

namespace pointsman {

// What the numbers may be; where the least is said to mean "none", that is the caller's business.
namespace ranges {

template <typename Number>
struct Range {
  Number low, high;
};

inline constexpr Range<int64_t> kSamples{0, int64_t{1} << 31};
inline constexpr Range<int> kBatchSize{0, 1 << 20};
inline constexpr Range<double> kTemperature{1e-3, 1e3};
inline constexpr Range<double> kClip{0.0, 1e3};
inline constexpr Range<int64_t> kKicks{-1, int64_t{1} << 40};
inline constexpr Range<double> kSeconds{0.0, 1e9};
inline constexpr Range<int64_t> kSteps{0, int64_t{1} << 31};
inline constexpr Range<int> kReplicas{2, 1 << 16};
inline constexpr Range<double> kLearningRate{0.0, 1.0};
inline constexpr Range<double> kEntropy{-1.0, 1e6};

}  // namespace ranges

// Whether the caller said anything about "--samples", ..
using IsGiven = std::function<bool(const char* flag)>;

// Whether any option is one of the network, which asks auto for it.
bool asks_for_network(const IsGiven& is_given);

// Throws std::invalid_argument for combinations that mean nothing.
void refuse_combinations(const SolveOptions& options, const IsGiven& is_given);

// Why these options cannot solve this instance, as exit code and message; code 0: they can.
std::pair<int, std::string> check_instance(const SolveOptions& options, const Instance& instance);

// Throws std::invalid_argument where they cannot solve one of these.
void check_instances(const SolveOptions& options, const InstancePointers& instances);

// Whether the mode improves tours without being told.
bool improves(const SolveOptions& options);

}  // namespace pointsman
