// SPDX-License-Identifier: Apache-2.0
#include "host/command/output.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

namespace pointsman {

OutputFormat output_format(const CommonOptions& options) {
  if (!options.format.empty()) {
    if (const auto format = parse_output_format(options.format)) return *format;
  }
  if (!options.output.empty() && !options.answer_on_stdout) {
    return output_format_of(options.output).value_or(OutputFormat::kJson);
  }
  return isatty(STDOUT_FILENO) ? OutputFormat::kText : OutputFormat::kJson;
}

bool is_json_on_stdout(const CommonOptions& options) {
  const OutputFormat format = output_format(options);
  if (format != OutputFormat::kJson && format != OutputFormat::kNdjson) return false;
  return options.answer_on_stdout || options.output.empty() || options.output == "-";
}

OutputFile open_output(const CommonOptions& options) {
  return OutputFile(options.answer_on_stdout ? std::string() : options.output, options.force);
}

void write_answer(OutputFile& file, const CommonOptions& options, const nlohmann::ordered_json& json,
                  const std::string& text) {
  if (output_format(options) == OutputFormat::kText) {
    file.write(text);
  } else {
    file.write(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }
  file.commit();
}

std::string device_text(const DeviceInfo& device) { return device.name + " (" + device.detail + ")"; }

}  // namespace pointsman
