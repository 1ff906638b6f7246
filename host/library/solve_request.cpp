// SPDX-License-Identifier: Apache-2.0
// The options of a call, by the table that the command line has.
#include "host/library/solve_request.h"

#include "host/library/handles.h"

namespace pointsman {

namespace {

constexpr int32_t kOwnChoice = -1;  // of a switch

constexpr pointsman_solve_options kDefaults = {.size = sizeof(pointsman_solve_options),
                                               .mode = nullptr,
                                               .model = nullptr,
                                               .time_limit = 0.0,
                                               .limit_each = 0.0,
                                               .seed = kDefaultSeed,
                                               .first_row = 0,
                                               .samples = 0,
                                               .first_sample = 0,
                                               .kicks = -1,
                                               .steps = 0,
                                               .temperature = 1.0,
                                               .clip = 0.0,
                                               .learning_rate = 0.0,
                                               .entropy = -1.0,
                                               .replicas = 0,
                                               .batch_size = 0,
                                               .augment = 0,
                                               .shuffle = kOwnChoice,
                                               .improve = kOwnChoice,
                                               .untrained = 0,
                                               .stop_at_first_misfit = 0,
                                               .learn = 0,
                                               .progress = nullptr,
                                               .progress_user = nullptr};

// A member of the struct beside the option of its name.
template <typename T>
struct Member {
  const char* name;
  T pointsman_solve_options::*member;
};

constexpr Member<int64_t> kIntegers[] = {{"samples", &pointsman_solve_options::samples},
                                         {"first_sample", &pointsman_solve_options::first_sample},
                                         {"kicks", &pointsman_solve_options::kicks},
                                         {"steps", &pointsman_solve_options::steps}};
constexpr Member<double> kReals[] = {{"time_limit", &pointsman_solve_options::time_limit},
                                     {"limit_each", &pointsman_solve_options::limit_each},
                                     {"temperature", &pointsman_solve_options::temperature},
                                     {"clip", &pointsman_solve_options::clip},
                                     {"learning_rate", &pointsman_solve_options::learning_rate},
                                     {"entropy", &pointsman_solve_options::entropy}};
constexpr Member<int32_t> kSmallIntegers[] = {
    {"replicas", &pointsman_solve_options::replicas},
    {"batch_size", &pointsman_solve_options::batch_size},
    {"augment", &pointsman_solve_options::augment},
    {"shuffle", &pointsman_solve_options::shuffle},
    {"improve", &pointsman_solve_options::improve},
    {"stop_at_first_misfit", &pointsman_solve_options::stop_at_first_misfit}};

template <typename Value, typename T, size_t N>
void set_members(const Member<T> (&members)[N], const pointsman_solve_options& given, OptionSet& options) {
  for (const auto& [name, member] : members) {
    if (given.*member != kDefaults.*member) options.set(name, Value(given.*member));
  }
}

void set_all(const pointsman_solve_options& given, OptionSet& options) {
  if (given.mode != nullptr) options.set("mode", given.mode);
  if (given.model != nullptr) options.set("model", given.model);
  if (given.seed != kDefaults.seed) options.set("seed", given.seed);
  set_members<int64_t>(kIntegers, given, options);
  set_members<double>(kReals, given, options);
  set_members<int64_t>(kSmallIntegers, given, options);
  if (given.untrained != kDefaults.untrained) {
    if (given.untrained != 1)
      throw UsageError("--untrained: expected 0 or 1, found " + std::to_string(given.untrained));
    options.set("init", "random");
  }
  if (given.learn != kDefaults.learn) {
    const std::vector<std::string>& words = options.find("learn")->row().choices;
    if (given.learn < 0 || static_cast<size_t>(given.learn) > words.size())
      throw UsageError("--learn: expected 0, 1 or 2, found " + std::to_string(given.learn));
    options.set("learn", words[static_cast<size_t>(given.learn) - 1]);
  }
}

}  // namespace

pointsman_solve_options solve_options_of(const pointsman_solve_options* given) {
  return taken(given, kDefaults);
}

SolveRequest solve_request(pointsman_solver& solver, const pointsman_solve_options& given) {
  SolveCalls& calls = solver.ready_calls();
  OptionSet& options = calls.begin();
  for (const auto& [name, value] : solver.settings) options.set(name, value);
  set_all(given, options);
  const std::string& init = calls.request().init;
  if (!init.empty() && init != "random")
    throw UsageError("--init: expected \"random\", found \"" + init + "\"");
  return calls.finish();
}

SolveRequest score_request(pointsman_solver& solver, const pointsman_solve_options& given) {
  SolveCalls& calls = solver.ready_calls();
  OptionSet& options = calls.begin();
  for (const char* name : {"model", "temperature"}) {
    if (const auto found = solver.settings.find(name); found != solver.settings.end())
      options.set(name, found->second);
  }
  if (given.model != nullptr) options.set("model", given.model);
  if (given.temperature != kDefaults.temperature) options.set("temperature", given.temperature);
  return calls.request();
}

}  // namespace pointsman

extern "C" int pointsman_solve_options_init(pointsman_solve_options* options, size_t size) {
  return pointsman::give(pointsman::kDefaults, options, size);
}
