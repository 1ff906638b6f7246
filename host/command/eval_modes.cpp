// SPDX-License-Identifier: Apache-2.0
#include "host/command/eval_modes.h"

#include <cstdlib>
#include <sstream>

#include "engine/problem/problem.h"
#include "host/command/command.h"
#include "host/formats/text_scan.h"
#include "host/options/did_you_mean.h"

namespace pointsman {

namespace {

// 1 to 999,999,999; 0 for any other word.
int64_t number_in(const std::string& word) {
  int64_t number = 0;
  return word.size() < 10 && parse_integer(word, number) && number > 0 ? number : 0;
}

// "t1.5" -> 1.5, within what --temperature of solve takes; 0 for any other word.
double temperature_in(const std::string& word) {
  if (word.size() < 2 || word[0] != 't') return 0.0;
  char* end = nullptr;
  const double temperature = std::strtod(word.c_str() + 1, &end);
  return *end == '\0' && temperature >= 1e-3 && temperature <= 1e3 ? temperature : 0.0;
}

// The problems in which a mode means something, for a message: "TSP".
std::string problems_of(const ModeInfo& mode) {
  std::vector<std::string> titles;
  for_each_problem([&](ProblemKind kind) {
    const Problem& problem = problem_of(kind);
    if (problem.*mode.needs) titles.emplace_back(problem.title);
  });
  return joined(titles, ", ", {}, " and ");
}

void parse_rival(std::istringstream& words, const ModeInfo& info, ProblemKind problem, EvalMode& mode) {
  if (info.needs != nullptr && !(problem_of(problem).*info.needs)) {
    throw UsageError(std::string("--modes: ") + info.name + " is for " + problems_of(info));
  }
  const bool takes_number = info.number != ModeNumber::kNone;
  if (info.number == ModeNumber::kKicks) mode.options.kicks = 0;
  auto& counted = info.number == ModeNumber::kKicks ? mode.options.kicks : mode.options.samples;
  for (std::string word; std::getline(words, word, '+');) {
    const int64_t number = number_in(word);
    if (!takes_number || number == 0) {
      throw UsageError("--modes: " + mode.name + ": " + info.name + " takes " +
                       (takes_number ? "only +NUMBER" : "nothing") + ", found \"+" + word + "\"");
    }
    counted = number;
  }
}

// Active search draws its samples in steps.
void set_samples(EvalMode& mode, int64_t number) {
  SolveOptions& options = mode.options;
  options.samples = number;
  if (options.mode != Mode::kActive) return;
  const int replicas = ActiveSearchOptions().replicas;
  if (number % replicas != 0) {
    throw UsageError("--modes: " + mode.name + ": expected a multiple of the " + std::to_string(replicas) +
                     " samples of a step, found " + std::to_string(number));
  }
  options.steps = number / replicas;
}

void parse_network_mode(std::istringstream& words, const ModeInfo& info, EvalMode& mode) {
  SolveOptions& options = mode.options;
  if (info.mode != Mode::kAuto) {
    options.augment = 1;
    options.shuffle = options.improve = false;
  }
  for (std::string word; std::getline(words, word, '+');) {
    options.network = true;
    if (word == "x8") {
      options.augment = 8;
    } else if (word == "shuffle") {
      options.shuffle = true;
    } else if (word == "improve") {
      options.improve = true;
    } else if (const int64_t number = number_in(word); number > 0) {
      set_samples(mode, number);
    } else if (const double temperature = temperature_in(word); temperature > 0.0) {
      if (!info.draws) throw UsageError("--modes: " + mode.name + ": +" + word + " is for sample and auto");
      options.policy.temperature = static_cast<float>(mode.temperature = temperature);
    } else {
      throw UsageError("--modes: " + mode.name +
                       ": expected +NUMBER, +x8, +shuffle, +improve or +tNUMBER (0.001 to 1000), found \"+" +
                       word + "\"");
    }
  }
}

EvalMode parse_eval_mode(const std::string& text, ProblemKind problem, int64_t samples, uint64_t seed) {
  EvalMode mode;
  mode.name = text;
  mode.options.seed = seed;
  std::istringstream words(text);
  words.exceptions(std::ios::badbit);
  std::string strategy;
  std::getline(words, strategy, '+');
  const ModeInfo* info = find_mode(strategy);
  if (info == nullptr) {
    Words names;
    for (const ModeInfo& one : all_modes()) names.emplace_back(one.name);
    throw UsageError("--modes: expected " + joined(names, ", ", {}, " or ") + ", found \"" + strategy + "\"" +
                     did_you_mean(strategy, names));
  }
  mode.options.mode = info->mode;
  if (info->mode == Mode::kSample || info->mode == Mode::kRandom) mode.options.samples = samples;
  if (info->has_network) {
    parse_network_mode(words, *info, mode);
  } else {
    parse_rival(words, *info, problem, mode);
  }
  return mode;
}

}  // namespace

std::vector<EvalMode> parse_eval_modes(const std::string& list, ProblemKind problem, int64_t samples,
                                       uint64_t seed) {
  const std::string usual =
      problem_of(problem).has_symmetries ? "greedy,greedy+x8,sample+x8" : "greedy,sample";
  std::istringstream stream(list.empty() ? usual : list);
  stream.exceptions(std::ios::badbit);
  std::vector<EvalMode> modes;
  for (std::string text; std::getline(stream, text, ',');) {
    modes.push_back(parse_eval_mode(text, problem, samples, seed));
  }
  return modes;
}

}  // namespace pointsman
