// SPDX-License-Identifier: Apache-2.0
#include "host/command/options.h"

#include "host/command/interrupt.h"
#include "host/command/memory_failure.h"
#include "host/formats/formats.h"
#include "host/options/run_options.h"
#include "host/run/log.h"

namespace pointsman {

void add_common_options(OptionSet& set, CommonOptions& options, const std::vector<std::string>& formats) {
  options.suffixes = suffixes_of(answer_formats(), formats);
  set.begin_group(kCommonGroup);
  add_output(set, options.output, options.force);
  set.add("--format", options.format,
          "Output format; default: by the suffix of -o, else a table on a terminal and JSON off one")
      .choices(formats);
  add_seed(set, options.seed);
  add_time_limit(set, options.time_limit);
  add_device_options(set, options.device);
  set.add("-q,--quiet", options.quiet, "No log on stderr except errors");
  set.add("-v,--verbose", options.verbose, "Also log models, batches and backend calls");
  set.add("--log-format", options.log_format, "Log lines as text or as JSON").choices({"text", "json"});
  set.add("--max-input", options.max_input,
          "Memory that packed input (gzip, .npz) may take; K, M, G and T are powers of 1024")
      .type_name("SIZE")
      .judged_by([](const std::string& text) {
        return parse_size(text)
                   ? ""
                   : "expected a number of bytes above 0 such as 512M or 4G, found \"" + text + "\"";
      });
  set.add("--config", options.config,
          "Read flags from this file: \"samples = 64\" lines, [solve] sections; flags and environment come "
          "first")
      .type_name(kFileValue);
}

SearchControl search_control(const CommonOptions& options, double limit_each) {
  SearchControl control = within_limits(process_start(), options.time_limit, limit_each);
  control.interrupted = [] { return interrupt_exit_code() != 0; };
  if (options.verbose) control.trace = log_debug;
  control.warn = [](const std::string& what) {
    memory_failed = false;  // what is tried again is no failure of the run
    log_warning(what);
  };
  return control;
}

}  // namespace pointsman
