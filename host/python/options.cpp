// SPDX-License-Identifier: Apache-2.0
#include "host/python/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "host/command/flags.h"
#include "host/formats/text_scan.h"
#include "models/tools/json_text.h"

namespace pointsman {

namespace {

// The environment is the program's: a variable that sets a flag there sets none in a library.
void parse(CLI::App& app, Arguments arguments) {
  for (CLI::Option* const option : app.get_options()) option->envname("");
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants a vector
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
}

}  // namespace

SolveRequest parse_solve(const Arguments& arguments) {
  SolveRequest request;
  CLI::App app;
  add_solve_flags(app, request.flags);
  add_common_options(app, request.common, {});
  Arguments all = arguments;
  all.emplace_back("array");  // the one FILE that there must be
  parse(app, all);
  finish_solve_flags(request.flags, app, request.common);
  return request;
}

GenerateRequest parse_generate(const Arguments& arguments) {
  GenerateRequest request;
  CLI::App app;
  add_generate_flags(app, request.flags);
  add_common_options(app, request.common, {});
  parse(app, arguments);
  check_generate_flags(request.flags, request.common.seed);
  return request;
}

TrainRequest parse_train(const Arguments& arguments) {
  TrainRequest request;
  request.common.answer_on_stdout = true;
  CLI::App app;
  add_train_flags(app, request.flags);
  add_common_options(app, request.common, {});
  parse(app, arguments);
  request.initial = finish_train_flags(request.flags, app, request.common);
  return request;
}

InstanceFlags parse_read(const Arguments& arguments) {
  InstanceFlags flags;
  CLI::App app;
  add_instance_options(app, flags);
  parse(app, arguments);
  const bool has_capacity = app.count("--capacity") > 0;  // one of 0 is the program's for none
  if (has_capacity && !(flags.capacity > 0 && flags.capacity <= kLargestNumber)) {
    throw UsageError("--capacity: expected a number above 0, up to 1e100, found " +
                     number_text(flags.capacity));
  }
  return flags;
}

CommonOptions parse_common(const Arguments& arguments) {
  CommonOptions common;
  CLI::App app;
  add_common_options(app, common, {});
  parse(app, arguments);
  return common;
}

}  // namespace pointsman
