// SPDX-License-Identifier: Apache-2.0
// Which format the answer has and where it goes.
#pragma once

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "host/command/options.h"
#include "host/formats/write_solutions.h"

namespace pointsman {

// What --format says, else the suffix of -o, else text on a terminal and JSON off one. An
// MPI launcher's output is none.
OutputFormat output_format(const CommonOptions& options);

// The answer is JSON and goes to stdout, so a failure is told there too.
bool is_json_on_stdout(const CommonOptions& options);

// UsageError: the suffix of -o is none that the subcommand writes.
[[noreturn]] void refuse_suffix(const CommonOptions& options);

// Opens -o or stdout. Call it before the work: throws UsageError for a suffix that tells no format where
// --format does not either, OutputRefused for a file that is there already without
// --force. std::system_error when the disk refuses, then and later.
OutputFile open_output(const CommonOptions& options, Appearance appearance = Appearance::kWhole);

// Throws UsageError when -o is one of the files that are read, by whatever name; "-" is the file at stdin.
void refuse_inputs(const CommonOptions& options, const std::vector<std::string>& inputs);

// The answer of the subcommands that have no format of their own: `json` indented, or `text` as it is.
void write_answer(OutputFile& file, const CommonOptions& options, const nlohmann::ordered_json& json,
                  const std::string& text);

// An object of these members, in this order. The list constructor of nlohmann::json loses what it has where
// memory fails it halfway.
nlohmann::ordered_json json_of(std::initializer_list<std::pair<const char*, nlohmann::ordered_json>> members);

// An integer where the instance's metric makes it one.
nlohmann::ordered_json objective_json(const Instance& instance, double objective);

// A line for each member of an object that is no list and no object itself.
std::string as_text(const nlohmann::ordered_json& object);

}  // namespace pointsman
