// SPDX-License-Identifier: Apache-2.0
#include "host/python/options.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "host/formats/text_scan.h"
#include "host/run/load.h"
#include "host/run/train_setup.h"
#include "models/tools/json_text.h"

namespace pointsman {

namespace {

void declare(OptionSet& options, BackendOptions& device) { add_device_options(options, device); }
void declare(OptionSet& options, InstanceOptions& instances) { add_instance_options(options, instances); }

void declare(OptionSet& options, GenerateRequest& request) {
  add_generate_options(options, request.options);
  add_seed(options, request.seed);
}

void declare(OptionSet& options, PreparedTraining& training) {
  add_train_options(options, training.request);
  add_output(options, training.request.output, training.request.force);
  add_seed(options, training.request.options.seed);
  add_time_limit(options, training.time_limit);
  add_device_options(options, training.device);
}

// A call's request by its keywords, and the options that are bound to it.
template <typename Request>
struct Call {
  explicit Call(const Keywords& keywords = {}) {
    declare(options, request);
    set_all(options, keywords);
  }

  Request request;
  OptionSet options;
};

std::string type_of(const Option& option) {
  const OptionRow& row = option.row();
  switch (option.type()) {
    case OptionType::kSwitch:
      return "bool";
    case OptionType::kInteger:
    case OptionType::kUnsigned:
      return row.choices.empty() ? "int" : "Literal[" + joined(row.choices, ", ") + "]";
    case OptionType::kReal:
      return "float";
    case OptionType::kText:
    case OptionType::kTexts:
      break;
  }
  if (row.value == kFileValue || row.value == kModelValue) return "str | os.PathLike[str]";
  if (std::ranges::count(row.choices, "on") > 0) return "bool";
  if (!option.has_all_choices()) return "str";
  return "Literal[" + joined(row.choices, ", ", [](const std::string& word) { return '"' + word + '"'; }) +
         "]";
}

}  // namespace

void set_all(OptionSet& options, const Keywords& keywords) {
  for (const auto& [name, value] : keywords)
    options.set(name, std::visit([](const auto& held) { return OptionValue(held); }, value));
}

SolveRequest solve_request(SolveCalls& calls, const Keywords& keywords) {
  set_all(calls.begin(), keywords);
  return calls.finish();
}

BackendOptions device_request(const Keywords& keywords) { return Call<BackendOptions>(keywords).request; }

InstanceOptions read_request(const Keywords& keywords) {
  const Call<InstanceOptions> call(keywords);
  const double capacity = call.request.capacity;
  if (call.options.is_given("--capacity") && !(capacity > 0 && capacity <= kLargestNumber))
    throw UsageError("--capacity: expected a number above 0, up to 1e100, found " + number_text(capacity));
  return call.request;
}

GenerateRequest generate_request(const Keywords& keywords) {
  const Call<GenerateRequest> call(keywords);
  check_generate_options(call.request.options, call.request.seed);
  return call.request;
}

PreparedTraining prepared_training(const Keywords& keywords) {
  Call<PreparedTraining> call(keywords);
  PreparedTraining& training = call.request;
  training.initial =
      prepare_training(training.request, call.options, training.device, training.request.options.seed);
  return std::move(training);
}

std::vector<std::pair<std::string, std::string>> keywords_of(const std::string& call) {
  const auto described = [](const OptionSet& options) {
    std::vector<std::pair<std::string, std::string>> keywords;
    for (const Option& option : options.all()) keywords.emplace_back(option.name(), type_of(option));
    return keywords;
  };
  if (call == "device") return described(Call<BackendOptions>().options);
  if (call == "read") return described(Call<InstanceOptions>().options);
  if (call == "generate") return described(Call<GenerateRequest>().options);
  if (call == "train") return described(Call<PreparedTraining>().options);
  if (call == "solve") return described(SolveCalls().begin());
  throw std::logic_error("no call " + call);
}

}  // namespace pointsman
