// SPDX-License-Identifier: Apache-2.0
#include "host/command/command.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/cluster/communicator.h"
#include "host/command/process.h"
#include "host/formats/formats.h"
#include "host/formats/text_scan.h"
#include "host/options/call_options.h"
#include "host/options/did_you_mean.h"
#include "host/run/log.h"

namespace pointsman {

std::vector<OptionRow> Command::rows() const {
  if (has_own_parser) return {};
  std::vector<OptionRow> rows;
  const auto add = [&](const Words& names, const std::string& about, const Words& choices = {}) {
    rows.push_back({names, choices.empty() ? "" : "TEXT", choices, {}, {}, {}, about, "Options"});
  };
  add({"-h", "--help"}, "Print this help message and exit");
  for (const TextFlag& flag : texts) add({flag.name}, flag.description, flag.choices);
  for (const Option& option : options->all()) rows.push_back(option.row());
  std::stable_partition(rows.begin(), rows.end(), [](const OptionRow& row) { return row.is_positional; });
  return rows;
}

void add_common_options(OptionSet& set, CommonOptions& options, const Words& formats) {
  options.suffixes = suffixes_of(answer_formats(), formats);
  set.begin_group("Common options");
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
  set.add_file("--config", options.config,
               "Read flags from this file: \"samples = 64\" lines, [solve] sections; flags and environment "
               "come first");
}

SearchControl search_control(const CommonOptions& options, double limit_each) {
  SearchControl control = within_limits(process_start(), options.time_limit, limit_each);
  control.interrupted = [] { return interrupt_exit_code() != 0; };
  if (options.verbose) control.report.trace = log_debug;
  control.report.warn = [](const std::string& what) {
    memory_failed = false;  // what is tried again is no failure of the run
    log_warning(what);
  };
  return control;
}

OutputFormat output_format(const CommonOptions& options) {
  if (const AnswerFormat* named = format_named(answer_formats(), options.format)) return named->kind;
  if (!options.output.empty() && !options.answer_on_stdout) {
    const AnswerFormat* const told = format_by_suffix(answer_formats(), options.output);
    return told ? told->kind : OutputFormat::kJson;
  }
  return isatty(STDOUT_FILENO) && !is_launched() ? OutputFormat::kText : OutputFormat::kJson;
}

bool is_json_on_stdout(const CommonOptions& options) {
  const OutputFormat format = output_format(options);
  if (format != OutputFormat::kJson && format != OutputFormat::kNdjson) return false;
  return options.answer_on_stdout || options.is_on_stdout();
}

void refuse_suffix(const CommonOptions& options) {
  const std::string suffix = file_suffix(options.output);
  throw UsageError("-o " + options.output + ": expected a suffix out of " + joined(options.suffixes, ", ") +
                   ", or --format, found " + (suffix.empty() ? "none" : shown(suffix)) +
                   did_you_mean(suffix, options.suffixes));
}

OutputFile open_output(const CommonOptions& options, Appearance appearance) {
  const std::string suffix = file_suffix(options.output);
  if (!suffix.empty() && options.format.empty() && !options.answer_on_stdout &&
      std::ranges::count(options.suffixes, suffix) == 0) {
    refuse_suffix(options);
  }
  return OutputFile(options.answer_on_stdout ? std::string() : options.output, options.force, appearance);
}

void refuse_inputs(const CommonOptions& options, const Words& inputs) {
  std::error_code absent;
  if (!std::filesystem::is_regular_file(options.output, absent)) return;  // a terminal is both
  for (const std::string& input : inputs) {
    if (std::filesystem::equivalent(options.output, input == "-" ? "/dev/stdin" : input, absent))
      throw UsageError("-o " + options.output + ": is read as " + input);
  }
}

void write_answer(OutputFile& file, const CommonOptions& options, const Json& json, const std::string& text) {
  const bool as_text = output_format(options) == OutputFormat::kText;
  file.write(as_text ? text : json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  file.commit();
}

Json json_of(std::initializer_list<std::pair<const char*, Json>> members) {
  Json object = Json::object();
  for (const auto& [key, value] : members) object[key] = value;
  return object;
}

Json objective_json(const Instance& instance, double objective) {
  const std::optional<int64_t> integer = integer_objective(instance, objective);
  return integer ? Json(*integer) : Json(objective);
}

std::string as_text(const Json& object) {
  std::string text;
  for (const auto& [key, value] : object.items()) {
    if (value.is_structured()) continue;
    text += key + std::string(18 - std::min<size_t>(key.size(), 17), ' ') +
            (value.is_string() ? printable(value.get<std::string>()) : value.dump()) + "\n";
  }
  return text;
}

}  // namespace pointsman
