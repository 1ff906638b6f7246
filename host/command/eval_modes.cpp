// SPDX-License-Identifier: Apache-2.0
#include "host/command/eval_modes.h"

#include <cstdlib>
#include <sstream>

#include "host/command/options.h"
#include "host/command/solve_flags.h"
#include "host/command/solve_run.h"

namespace pointsman {

namespace {

struct RivalName {
  const char* name;
  Rival rival;
  bool tsp, knapsack, takes_number;
};

constexpr RivalName kRivals[] = {{"local", Rival::kLocal, true, false, true},
                                 {"random", Rival::kRandom, true, true, true},
                                 {"ratio", Rival::kRatio, false, true, false},
                                 {"exact", Rival::kExact, false, true, false}};

// 1 to 999,999,999; 0 for any other word.
int64_t number_in(const std::string& word) {
  const bool digits = word.find_first_not_of("0123456789") == std::string::npos;
  return digits && !word.empty() && word.size() < 10 ? std::stoll(word) : 0;
}

// "t1.5" -> 1.5, within what --temperature of solve takes; 0 for any other word.
double temperature_in(const std::string& word) {
  if (word.size() < 2 || word[0] != 't') return 0.0;
  char* end = nullptr;
  const double temperature = std::strtod(word.c_str() + 1, &end);
  return *end == '\0' && temperature >= 1e-3 && temperature <= 1e3 ? temperature : 0.0;
}

void parse_rival(std::istringstream& words, const RivalName& rival, ProblemKind problem, EvalMode& mode) {
  if (!(problem == ProblemKind::kTsp ? rival.tsp : rival.knapsack)) {
    throw UsageError("--modes: " + mode.strategy + " is for " + (rival.tsp ? "TSP" : "KnapSack"));
  }
  mode.rival = rival.rival;
  for (std::string word; std::getline(words, word, '+');) {
    const int64_t number = number_in(word);
    if (!rival.takes_number || number == 0) {
      throw UsageError("--modes: " + mode.name + ": " + mode.strategy + " takes " +
                       (rival.takes_number ? "only +NUMBER" : "nothing") + ", found \"+" + word + "\"");
    }
    mode.options.samples = number;
  }
}

// Active search draws its samples in steps of active_batch.
void set_samples(EvalMode& mode, int64_t number) {
  SolveOptions& options = mode.options;
  options.samples = number;
  if (options.mode != Mode::kActive) return;
  if (number % options.active_batch != 0) {
    throw UsageError("--modes: " + mode.name + ": expected a multiple of the " +
                     std::to_string(options.active_batch) + " samples of a step, found " +
                     std::to_string(number));
  }
  options.steps = number / options.active_batch;
}

void parse_network_mode(std::istringstream& words, EvalMode& mode) {
  SolveOptions& options = mode.options;
  options.mode = parse_mode(mode.strategy);
  options.augment = options.mode == Mode::kAuto ? 0 : 1;
  options.shuffle = options.improve = options.mode == Mode::kAuto ? -1 : 0;
  const bool draws = options.mode == Mode::kSample || options.mode == Mode::kAuto;
  for (std::string word; std::getline(words, word, '+');) {
    if (word == "x8") {
      options.augment = 8;
    } else if (word == "shuffle") {
      options.shuffle = 1;
    } else if (word == "improve") {
      options.improve = 1;
    } else if (const int64_t number = number_in(word); number > 0) {
      set_samples(mode, number);
    } else if (const double temperature = temperature_in(word); temperature > 0.0) {
      if (!draws) throw UsageError("--modes: " + mode.name + ": +" + word + " is for sample and auto");
      options.temperature = static_cast<float>(mode.temperature = temperature);
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
  std::getline(words, mode.strategy, '+');
  if (mode.strategy == "sample" || mode.strategy == "random") mode.options.samples = samples;
  for (const RivalName& rival : kRivals) {
    if (mode.strategy == rival.name) {
      parse_rival(words, rival, problem, mode);
      return mode;
    }
  }
  if (mode.strategy != "greedy" && mode.strategy != "sample" && mode.strategy != "active" &&
      mode.strategy != "auto") {
    throw UsageError(
        "--modes: expected greedy, sample, active, auto, local, random, ratio or exact, found \"" +
        mode.strategy + "\"");
  }
  parse_network_mode(words, mode);
  return mode;
}

}  // namespace

std::vector<EvalMode> parse_eval_modes(const std::string& list, ProblemKind problem, int64_t samples,
                                       uint64_t seed) {
  const std::string usual =
      problem == ProblemKind::kTsp ? "greedy,greedy+x8,sample+x8+shuffle" : "greedy,sample+shuffle";
  std::istringstream stream(list.empty() ? usual : list);
  std::vector<EvalMode> modes;
  for (std::string text; std::getline(stream, text, ',');) {
    modes.push_back(parse_eval_mode(text, problem, samples, seed));
  }
  return modes;
}

}  // namespace pointsman
