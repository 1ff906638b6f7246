// SPDX-License-Identifier: Apache-2.0
#include "host/command/output.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/cluster/communicator.h"
#include "host/formats/formats.h"
#include "host/formats/text_scan.h"
#include "host/options/did_you_mean.h"

namespace pointsman {

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
  return options.answer_on_stdout || options.output.empty() || options.output == "-";
}

void refuse_suffix(const CommonOptions& options) {
  const std::string suffix = file_suffix(options.output);
  throw UsageError("-o " + options.output + ": expected a suffix out of " + joined(options.suffixes, ", ") +
                   ", or --format, found " + (suffix.empty() ? "none" : shown(suffix)) +
                   did_you_mean(suffix, options.suffixes));
}

OutputFile open_output(const CommonOptions& options, Appearance appearance) {
  const std::string suffix = file_suffix(options.output);
  const std::vector<std::string>& known = options.suffixes;
  if (!suffix.empty() && options.format.empty() && !options.answer_on_stdout &&
      std::find(known.begin(), known.end(), suffix) == known.end()) {
    refuse_suffix(options);
  }
  return OutputFile(options.answer_on_stdout ? std::string() : options.output, options.force, appearance);
}

void refuse_inputs(const CommonOptions& options, const std::vector<std::string>& inputs) {
  std::error_code absent;
  if (!std::filesystem::is_regular_file(options.output, absent)) return;  // a terminal is both
  for (const std::string& input : inputs) {
    if (std::filesystem::equivalent(options.output, input == "-" ? "/dev/stdin" : input, absent))
      throw UsageError("-o " + options.output + ": is read as " + input);
  }
}

void write_answer(OutputFile& file, const CommonOptions& options, const nlohmann::ordered_json& json,
                  const std::string& text) {
  const bool as_text = output_format(options) == OutputFormat::kText;
  file.write(as_text ? text : json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  file.commit();
}

nlohmann::ordered_json json_of(
    std::initializer_list<std::pair<const char*, nlohmann::ordered_json>> members) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [key, value] : members) object[key] = value;
  return object;
}

nlohmann::ordered_json objective_json(const Instance& instance, double objective) {
  const std::optional<int64_t> integer = integer_objective(instance, objective);
  return integer ? nlohmann::ordered_json(*integer) : nlohmann::ordered_json(objective);
}

std::string as_text(const nlohmann::ordered_json& object) {
  std::string text;
  for (const auto& [key, value] : object.items()) {
    if (value.is_structured()) continue;
    text += key + std::string(18 - std::min<size_t>(key.size(), 17), ' ') +
            (value.is_string() ? printable(value.get<std::string>()) : value.dump()) + "\n";
  }
  return text;
}

}  // namespace pointsman
