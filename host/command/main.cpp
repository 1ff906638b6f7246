// SPDX-License-Identifier: Apache-2.0
// The program `pointsman`: parses the command line, runs one subcommand and turns every failure into one line
// on stderr, the JSON error where JSON was asked for, and the documented exit code.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <new>
#include <span>
#include <string_view>
#include <system_error>

#include "host/command/manual.h"
#include "host/command/parser.h"
#include "host/command/process.h"
#include "host/formats/input_file.h"
#include "host/formats/text_scan.h"
#include "host/run/log.h"
#include "host/run/model_lookup.h"
#include "models/tools/atomic_file.h"

namespace pointsman {

namespace {

// Behind a limit that comes while a document is loaded: what takes no longer is still loaded and answered.
// The answers to a million rows, all unsolved, take some 0.3 s more.
constexpr auto kLoadingPatience = std::chrono::milliseconds(100);

constexpr const char* kExamples = R"(Examples:
  pointsman solve berlin52.tsp                        a tour as JSON, or a table on a terminal
  pointsman solve berlin52.tsp -o berlin52.tour -l 5  at most five seconds
  pointsman generate tsp -n 20 -b 1000 -o set.npy     a thousand random instances
  pointsman solve set.npy --mode greedy -o tours.npy  all of them in one pass of the network
  producer | pointsman solve - --format ndjson        a stream, a solution a line
  pointsman train tsp -n 20 -o my20.safetensors       a model of your own
`pointsman SUBCOMMAND --help` shows the flags. Each flag can also be given as POINTSMAN_FLAG in the environment or in a --config file.)";

// The value of --format before the parse, by which a failure of it is told; null: none. Takes no memory.
const char* raw_format(int argc, char** argv) {
  for (int i = 1; i < argc && argv[i] != std::string_view("--"); ++i) {
    const std::string_view word = argv[i], flag = "--format";
    if (word == flag && i + 1 < argc) return argv[i + 1];
    if (word.starts_with("--format=")) return argv[i] + flag.size() + 1;
  }
  const char* value = std::getenv("POINTSMAN_FORMAT");
  return value && *value ? value : nullptr;
}

// The next file that is opened would take the place of a standard stream that is closed, and what is meant
// for the stream would be written into it. The null device takes it, opened the wrong way round: the stream
// still fails with EBADF.
void occupy_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    if (open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) != stream)
      throw std::system_error(errno, std::generic_category(), "/dev/null, in place of a closed stream");
  }
}

[[noreturn]] void on_new_failure() {
  memory_failed = true;
  throw std::bad_alloc();
}

// After what may have swallowed it.
void require_memory() {
  if (memory_failed) throw std::bad_alloc();
}

// JSON was asked for on stdout, so a failure is told there too. Guessed until the parse knows it.
bool as_json = false;

int report(const Failure& failure) {
  const std::string json =
      as_json ? error_json(failure.code, failure.message, failure.file, failure.line) : "";
  log_error(failure.message);
  if (as_json && reader_takes(STDOUT_FILENO)) {
    std::puts(json.c_str());
    std::fflush(stdout);
  }
  return failure.code;
}

// Without taking memory.
int report_out_of_memory() noexcept {
  log_out_of_memory();
  if (as_json && reader_takes(STDOUT_FILENO)) {
    std::printf("{\"code\":%d,\"error\":\"%s\"}\n", kExitResource, kOutOfMemory);
    std::fflush(stdout);
  }
  return kExitResource;
}

// The exception that is being handled. A failure after memory failed, or one that cannot be told for want of
// it, is memory's.
int report_exception() noexcept {
  try {
    require_memory();
    Failure failure = failure_of(std::current_exception());
    // Whatever a signal broke off (a file half read from a pipe) failed because of the signal.
    if (interrupt_exit_code() != 0) failure.code = interrupt_exit_code();
    return report(failure);
  } catch (...) {
    return report_out_of_memory();
  }
}

// For want of memory also where no exception may pass (destructors of nlohmann::json allocate) the program
// ends as it does elsewhere. Outputs stay as they are; the next run removes a temporary file.
[[noreturn]] void on_terminate() {
  if (memory_failed) _exit(report_out_of_memory());
  std::abort();
}

std::string version_text() {
  const DeviceInfo device = make_backend({"cpu", 1})->info();
  const std::string module = find_cuda_module();  // not loaded: that takes longer than the rest
  return std::string("pointsman ") + POINTSMAN_VERSION + "\ncpu: " + device.detail +
         "\ncuda: " + (module.empty() ? "not in this build" : module) + "\n";
}

std::vector<TextFlag> text_flags() {
  const auto models = [](const auto&...) {
    Words names = model_names();
    std::erase_if(names, [](const std::string& name) { return printable(name) != name; });
    return joined(names, "\n") + "\n";
  };
  return {{"--version", "Version and what it runs on", [](const auto&...) { return version_text(); }},
          {"--models", "Names of the models that -m finds, a line each", models},
          {"--man", "The manual page: pointsman --man | man -l -",
           [](const Command& program, const auto&) { return man_page(program); }},
          {"--completion",
           "Completion for a shell: source <(pointsman --completion bash)",
           completion,
           {"bash", "zsh", "fish"}}};
}

Command make_program() {
  const auto text = [](const auto& meaning) { return std::string(meaning.first) + " " + meaning.second; };
  Command program{"pointsman",
                  "Pointer networks for the travelling salesman and the knapsack: solve, search, train.",
                  kExamples + ("\nExit codes: " + joined(std::span(kExitMeanings), ", ", text) + ".")};
  program.texts = text_flags();
  program.subcommands = {solve_command(),    train_command(),  score_command(), eval_command(),
                         generate_command(), verify_command(), bench_command(), info_command()};
  return program;
}

int main_program(int argc, char** argv) {
  CommonOptions guess;
  if (const char* format = raw_format(argc, argv)) guess.format = format;
  as_json = is_json_on_stdout(guess);
  const Command program = make_program();
  const Parsed parsed = parse(program, Words(argv + 1, argv + argc));
  require_memory();
  if (parsed.command == nullptr) {
    std::cout << parsed.text << std::flush;
    if (!std::cout)
      throw std::system_error(errno != 0 ? errno : EIO, std::generic_category(), "standard output");
    return kExitDone;
  }
  const CommonOptions& common = *parsed.command->common;
  configure_log(common.quiet, common.verbose, common.log_format == "json");
  as_json = is_json_on_stdout(common);
  set_input_limit(parse_size(common.max_input).value());
  SearchControl loading = search_control(common);
  if (loading.deadline) loading.end = *loading.deadline + kLoadingPatience;
  set_run_stop([control = search_control(common)] { return control.is_over(); },
               [loading] { return loading.is_over(); });
  set_output_stop([control = search_control(common)] { return control.is_over(); });
  const int code = parsed.command->run(*parsed.command, parsed.words);
  require_memory();
  return code;
}

}  // namespace

}  // namespace pointsman

int main(int argc, char** argv) {
  pointsman::install_signal_handlers();
  std::set_new_handler(pointsman::on_new_failure);
  std::set_terminate(pointsman::on_terminate);
  int code = 0;
  try {
    pointsman::occupy_standard_streams();
    if (pointsman::process_ranks().rank() > 0) return pointsman::run_as_server();
    code = pointsman::main_program(argc, argv);
  } catch (...) {
    code = pointsman::report_exception();
  }
  return pointsman::end_process(code);
}
