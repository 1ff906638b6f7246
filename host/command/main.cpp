// SPDX-License-Identifier: Apache-2.0
// The program `pointsman`: parses the command line, runs one subcommand and turns every failure into one line
// on stderr, the JSON error where JSON was asked for, and the documented exit code.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <new>
#include <optional>
#include <system_error>

#include "engine/training/trainer.h"
#include "host/command/command.h"
#include "host/command/interrupt.h"
#include "host/command/log.h"
#include "host/command/output.h"
#include "host/files/input_file.h"
#include "host/files/text_scan.h"
#include "models/parameter_file.h"

namespace pointsman {

namespace {

constexpr const char* kExamples = R"(Examples:
  pointsman solve berlin52.tsp                        a tour as JSON, or a table on a terminal
  pointsman solve berlin52.tsp -o berlin52.tour -l 5  at most five seconds
  pointsman generate tsp -n 20 -b 1000 -o set.npy     a thousand random instances
  pointsman solve set.npy --mode greedy -o tours.npy  all of them in one pass of the network
  producer | pointsman solve - --format ndjson        a stream, a solution a line
  pointsman train tsp -n 20 -o my20.safetensors       a model of your own
`pointsman SUBCOMMAND --help` shows the flags. Each flag can also be given as POINTSMAN_FLAG in the environment or in a
--config file. Exit codes: 0 done, 1 internal, 2 usage, 3 bad input or model, 4 memory, disk or device, 5 a check
failed, 130/143/129 interrupted with the best kept.)";

// What went wrong, as the error JSON says it.
struct Failure {
  int code = kExitInternal;
  std::string message, file;
  int64_t line = 0;
};

// Flags are the same with "_" and "-": --time_limit is --time-limit. Values and everything after "--" stay.
std::vector<std::string> normalise_flags(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  for (std::string& argument : arguments) {
    if (argument == "--") break;
    if (argument.rfind("--", 0) != 0) continue;
    const auto end =
        argument.begin() + static_cast<std::ptrdiff_t>(std::min(argument.find('='), argument.size()));
    std::replace(argument.begin(), end, '_', '-');
  }
  return arguments;
}

// The value of a flag before the parse (--config decides what the parse sees; --format how its failure is
// told).
std::optional<std::string> raw_value(const std::vector<std::string>& arguments, const std::string& flag,
                                     const char* variable) {
  for (size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    if (arguments[i] == flag && i + 1 < arguments.size()) return arguments[i + 1];
    if (arguments[i].rfind(flag + "=", 0) == 0) return arguments[i].substr(flag.size() + 1);
  }
  const char* value = std::getenv(variable);
  return value && *value ? std::optional<std::string>(value) : std::nullopt;
}

// CLI11 would only say that a subcommand is missing. Null where flags come first.
const Command* find_command(const std::vector<std::string>& arguments, const std::vector<Command>& commands) {
  if (arguments.empty() || arguments[0].rfind('-', 0) == 0) return nullptr;
  const auto name = [](const Command& command) { return command.app->get_name(); };
  for (const Command& command : commands) {
    if (name(command) == arguments[0]) return &command;
  }
  throw UsageError("unknown subcommand \"" + arguments[0] + "\": expected one of " +
                   joined(commands, ", ", name));
}

// What the section of another program may hold, that program knows.
bool is_known(const CLI::App& root, const std::string& section, const std::string& key) {
  for (const CLI::App* subcommand : root.get_subcommands([](const CLI::App*) { return true; })) {
    const bool named = subcommand->get_name() == section;
    if ((named || section.empty()) && subcommand->get_option_no_throw("--" + key)) return true;
    if (named && subcommand->get_prefix_command()) return true;
  }
  return false;
}

// The --config file: lines "samples = 64", comments with #, and sections named after a subcommand. Its values
// go into the environment where the user's own environment has none, so "flag > environment > file > default"
// is one mechanism. Throws UsageError for a file that cannot be read, a section that is no subcommand or a
// key that no flag has.
void apply_config_file(const std::string& path, const CLI::App& root, const CLI::App& subcommand) {
  if (subcommand.get_prefix_command()) return;  // the program behind it reads the file
  std::ifstream file(path);
  if (!file) throw UsageError("--config " + path + ": cannot be read");
  std::vector<CLI::ConfigItem> items = CLI::ConfigTOML().from_config(file);
  // A section's own values come before the file's general ones, and the first to reach the environment stays.
  std::stable_sort(items.begin(), items.end(), [](const CLI::ConfigItem& a, const CLI::ConfigItem& b) {
    return a.parents.size() > b.parents.size();
  });
  for (const CLI::ConfigItem& item : items) {
    if (item.name == "++" || item.name == "--") continue;  // CLI11's own section marks
    std::string key = item.name;
    std::replace(key.begin(), key.end(), '_', '-');
    const std::string section = item.parents.empty() ? "" : item.parents.front();
    if (item.parents.size() > 1 || !is_known(root, section, key)) {
      throw UsageError("--config " + path + ": unknown key \"" + item.fullname() + "\"");
    }
    if (!section.empty() && section != subcommand.get_name()) continue;
    const CLI::Option* option = subcommand.get_option_no_throw("--" + key);
    if (option) setenv(option->get_envname().c_str(), joined(item.inputs, ",").c_str(), 0);
  }
}

Failure describe(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const InputError& e) {
    return {kExitInput, e.what(), e.file(), e.line()};
  } catch (const std::invalid_argument& e) {  // a UsageError, or an option that only the engine could judge
    return {kExitUsage, e.what(), "", 0};
  } catch (const OutputRefused& e) {
    return {kExitUsage, e.what(), "", 0};
  } catch (const ModelFileError& e) {
    return {kExitInput, e.what(), "", 0};
  } catch (const CheckpointError& e) {
    return {kExitInput, e.what(), "", 0};
  } catch (const DeviceError& e) {
    return {kExitResource, e.what(), "", 0};
  } catch (const std::bad_alloc&) {
    return {kExitResource, "out of memory; try a smaller --batch-size", "", 0};
  } catch (const std::system_error& e) {
    return {kExitResource, e.what(), "", 0};
  } catch (const std::exception& e) {
    return {kExitInternal, std::string("internal error: ") + e.what(), "", 0};
  }
}

int report(const Failure& failure, bool as_json) {
  std::string message = failure.message.substr(0, failure.message.find_last_not_of('\n') + 1);
  std::replace(message.begin(), message.end(), '\n', ' ');
  log_error(message);
  if (as_json) {
    std::puts(error_json(failure.code, message, failure.file, failure.line).c_str());
    std::fflush(stdout);
  }
  return failure.code;
}

std::string version_text() {
  const DeviceInfo device = make_backend({"cpu", 1})->info();
  const std::string module = find_cuda_module();  // not loaded: that takes longer than the rest
  return std::string("pointsman ") + POINTSMAN_VERSION + "\ncpu: " + device.detail +
         "\ncuda: " + (module.empty() ? "not in this build" : module);
}

int run(const Command& command) {
  const CommonOptions& common = *command.common;
  configure_log(common.quiet, common.verbose, common.log_format == "json");
  const bool as_json = is_json_on_stdout(common);
  set_run_stop([control = search_control(common)] { return control.is_over(); });
  try {
    return command.run();
  } catch (...) {
    Failure failure = describe(std::current_exception());
    // Whatever a signal broke off (a file half read from a pipe) failed because of the signal.
    if (interrupt_exit_code() != 0) failure.code = interrupt_exit_code();
    return report(failure, as_json);
  }
}

// Prints what --help and --version asked for; true when the error was one of the two.
bool answered(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() != 0) return false;
  app.exit(error);
  std::cout.flush();
  if (!std::cout)
    throw std::system_error(errno != 0 ? errno : EIO, std::generic_category(), "standard output");
  return true;
}

int main_program(int argc, char** argv) {
  CLI::App app("Pointer networks for the travelling salesman and the knapsack: solve, search, train.",
               "pointsman");
  app.footer(kExamples);
  app.require_subcommand(1);
  app.set_version_flag("--version", version_text, "Version and what it runs on");
  const std::vector<Command> commands = {add_solve(app), add_train(app),    add_score(app),
                                         add_eval(app),  add_generate(app), add_verify(app),
                                         add_bench(app), add_info(app),     add_plot(app)};
  std::vector<std::string> arguments = normalise_flags(argc, argv);
  CommonOptions guess;  // how to tell a failure of the parse
  guess.format = raw_value(arguments, "--format", "POINTSMAN_FORMAT").value_or("");
  try {
    const Command* const chosen = find_command(arguments, commands);
    // CLI11 reads the environment for every subcommand, and what is right for one may be an error for
    // another.
    for (const Command& command : commands) {
      if (&command == chosen) continue;
      for (CLI::Option* option : command.app->get_options()) option->envname("");
    }
    const auto config = raw_value(arguments, "--config", "POINTSMAN_CONFIG");
    if (config && chosen) apply_config_file(*config, app, *chosen->app);
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants a vector
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    try {
      if (answered(app, error)) return kExitDone;
    } catch (const std::system_error&) {
      return report(describe(std::current_exception()), false);
    }
    return report({kExitUsage, std::string(error.what()) + " (see --help)", "", 0}, is_json_on_stdout(guess));
  } catch (...) {
    return report(describe(std::current_exception()), is_json_on_stdout(guess));
  }
  for (const Command& command : commands) {
    if (command.app->parsed()) return run(command);
  }
  return kExitUsage;
}

}  // namespace

}  // namespace pointsman

int main(int argc, char** argv) {
  pointsman::install_signal_handlers();
  return pointsman::main_program(argc, argv);
}
