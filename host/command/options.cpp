// SPDX-License-Identifier: Apache-2.0
#include "host/command/options.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include "host/command/flags.h"
#include "host/command/interrupt.h"
#include "host/command/log.h"
#include "host/command/memory_failure.h"
#include "host/formats/formats.h"

namespace pointsman {

namespace {

// As near to the start of the process as the program itself can get: static initialisation.
const Clock::time_point kProcessStart = Clock::now();

std::string check_device(const std::string& device) {
  for (const char* name : {"auto", "cpu", "cuda", "cuda:all", "check"}) {
    if (device == name) return {};
  }
  if (device.rfind("check:", 0) == 0) return {};  // the registry knows the names behind it
  if (device.rfind("cuda:", 0) == 0 && device.size() > 5 && device.size() < 9 &&
      device.find_first_not_of("0123456789", 5) == std::string::npos) {
    return {};
  }
  return "expected auto, cpu, cuda, cuda:NUMBER or cuda:all, found \"" + device + "\"";
}

std::string check_seconds(const std::string& text) {
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(seconds) || seconds < 0) {
    return "expected a number of seconds >= 0, found \"" + text + "\"";
  }
  return {};
}

std::string check_size(const std::string& text) {
  if (parse_size(text)) return {};
  return "expected a number of bytes above 0 such as 512M or 4G, found \"" + text + "\"";
}

}  // namespace

void add_common_options(CLI::App& app, CommonOptions& options, const std::vector<std::string>& formats) {
  options.suffixes = suffixes_of(answer_formats(), formats);
  begin_group(app, kCommonGroup);
  add_option(app, "-o,--output", options.output, "Write the result here instead of to stdout")
      .type_name(kFileValue);
  add_flag(app, "-f,--force", options.force, "Replace an existing output file");
  add_option(app, "--format", options.format,
             "Output format; default: by the suffix of -o, else a table on a "
             "terminal and JSON off one",
             one_of(formats));
  add_option(app, "-s,--seed", options.seed, "Seed of every random number");
  add_option(app, "-t,--threads", options.threads, "CPU threads; 0: all", within(0, 4096));
  add_option(app, "-l,--time-limit", options.time_limit,
             "Seconds from the start of the program, then the best so far "
             "is the answer; 0: none",
             judged_by(check_seconds))
      .type_name("SECONDS");
  add_option(
      app, "--device", options.device,
      "Where to compute; cuda:1 is the second of its kind, cuda:all all of them; auto may fall back and "
      "says so",
      judged_by(check_device))
      .type_name("{auto,cpu,cuda}");
  add_option(app, "--precision", options.precision,
             "Of rollouts: fp32; tf32, tf32x3 and bf16 use tensor cores and need a CUDA device",
             one_of(std::vector<std::string>(std::begin(kPrecisionNames), std::end(kPrecisionNames))));
  add_flag(app, "-q,--quiet", options.quiet, "No log on stderr except errors");
  add_flag(app, "-v,--verbose", options.verbose, "Also log models, batches and backend calls");
  add_option(app, "--log-format", options.log_format, "Log lines as text or as JSON",
             one_of({"text", "json"}));
  add_option(app, "--max-input", options.max_input,
             "Memory that packed input (gzip, .npz) may take; K, M, G and T are powers of 1024",
             judged_by(check_size))
      .type_name("SIZE");
  add_option(app, "--config", options.config,
             "Read flags from this file: \"samples = 64\" lines, [solve] sections; "
             "flags and environment come first")
      .type_name(kFileValue);
}

BackendOptions backend_options(const CommonOptions& options) {
  const auto name = std::find(std::begin(kPrecisionNames), std::end(kPrecisionNames), options.precision);
  return {options.device, options.threads, static_cast<Precision>(name - std::begin(kPrecisionNames))};
}

SearchControl search_control(const CommonOptions& options) {
  SearchControl control;
  if (options.time_limit > 0) control.deadline = process_start() + duration_of(options.time_limit);
  control.interrupted = [] { return interrupt_exit_code() != 0; };
  if (options.verbose) control.trace = log_debug;
  control.warn = [](const std::string& what) {
    memory_failed = false;  // what is tried again is no failure of the run
    log_warning(what);
  };
  return control;
}

Clock::time_point process_start() { return kProcessStart; }

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

}  // namespace pointsman
