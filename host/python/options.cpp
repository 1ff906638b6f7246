// SPDX-License-Identifier: Apache-2.0
#include "host/python/options.h"

#include <algorithm>

#include "host/formats/text_scan.h"
#include "host/run/load.h"
#include "host/run/train_setup.h"
#include "models/tools/json_text.h"

namespace pointsman {

namespace {

void set_all(OptionSet& options, const Keywords& keywords) {
  for (const auto& [name, value] : keywords)
    options.set(name, std::visit([](const auto& held) { return OptionValue(held); }, value));
}

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

std::string type_of(const Option& option) {
  const OptionRow& row = option.row();
  const auto is_choice = [&](const char* word) {
    return std::count(row.choices.begin(), row.choices.end(), word) > 0;
  };
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
  if (is_choice("on")) return "bool";
  if (!option.has_all_choices()) return "str";
  return "Literal[" + joined(row.choices, ", ", [](const std::string& word) { return '"' + word + '"'; }) +
         "]";
}

}  // namespace

SolveRequest solve_request(SolveCalls& calls, const Keywords& keywords) {
  set_all(calls.begin(), keywords);
  return calls.finish();
}

BackendOptions device_request(const Keywords& keywords) {
  BackendOptions device;
  OptionSet options;
  add_device_options(options, device);
  set_all(options, keywords);
  return device;
}

InstanceOptions read_request(const Keywords& keywords) {
  InstanceOptions instances;
  OptionSet options;
  add_instance_options(options, instances);
  set_all(options, keywords);
  if (options.is_given("--capacity") && !(instances.capacity > 0 && instances.capacity <= kLargestNumber)) {
    throw UsageError("--capacity: expected a number above 0, up to 1e100, found " +
                     number_text(instances.capacity));
  }
  return instances;
}

GenerateRequest generate_request(const Keywords& keywords) {
  GenerateRequest request;
  OptionSet options;
  declare(options, request);
  set_all(options, keywords);
  check_generate_options(request.options, request.seed);
  return request;
}

PreparedTraining prepared_training(const Keywords& keywords) {
  PreparedTraining training;
  OptionSet options;
  declare(options, training);
  set_all(options, keywords);
  training.initial =
      prepare_training(training.request, options, training.device, training.request.options.seed);
  return training;
}

std::vector<std::pair<std::string, std::string>> keywords_of(const std::string& call) {
  SolveCalls calls;
  BackendOptions device;
  InstanceOptions instances;
  GenerateRequest generate;
  PreparedTraining training;
  OptionSet options;
  if (call == "device") add_device_options(options, device);
  if (call == "read") add_instance_options(options, instances);
  if (call == "generate") declare(options, generate);
  if (call == "train") declare(options, training);
  std::vector<std::pair<std::string, std::string>> keywords;
  for (const Option& option : call == "solve" ? calls.begin().all() : options.all())
    keywords.emplace_back(option.name(), type_of(option));
  return keywords;
}

}  // namespace pointsman
