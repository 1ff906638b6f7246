// SPDX-License-Identifier: Apache-2.0
// One subcommand of the program, each in a file of its own, and what they share: the common flags, which
// format the answer has and where it goes.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/search/limits.h"
#include "host/formats/input_file.h"
#include "host/formats/write_solutions.h"
#include "host/options/option_set.h"
#include "host/run/failure.h"

namespace pointsman {

using Words = std::vector<std::string>;
using Json = nlohmann::ordered_json;

struct CommonOptions {
  std::string output;  // file; empty: stdout
  bool force = false;  // replace an existing output file
  std::string format;  // of the output; empty: see output_format()
  uint64_t seed = kDefaultSeed;
  double time_limit = 0;  // seconds from the start of the process; 0: none
  BackendOptions device;
  bool quiet = false;
  bool verbose = false;
  std::string log_format = "text";
  std::string max_input = kDefaultMaxInput;
  std::string config;             // applied after the parse of the words (parser.cpp)
  Words suffixes;                 // no flag: those of -o that tell a format
  bool answer_on_stdout = false;  // no flag: -o is something else than the answer (train: the model)

  bool is_on_stdout() const { return output.empty() || output == "-"; }
};

struct Command;

// A flag of the program itself that prints a text and ends it, as --version does.
struct TextFlag {
  std::string name, description;
  std::function<std::string(const Command& program, const std::string& choice)> text;
  Words choices = {};  // of its value; none: it takes none
};

// A subcommand, or the program itself.
struct Command {
  std::string name, description, footer;
  std::shared_ptr<CommonOptions> common = std::make_shared<CommonOptions>();
  std::shared_ptr<OptionSet> options = std::make_shared<OptionSet>();
  // After the parse; returns the exit code, throws on failure. words: of `has_own_parser` all that follow.
  std::function<int(const Command& self, const Words& words)> run = {};
  bool has_own_parser = false;            // another program knows its options
  std::vector<TextFlag> texts = {};       // of the program
  std::vector<Command> subcommands = {};  // of the program

  std::vector<OptionRow> rows() const;  // positionals in their order, then --help and the others
};

Command solve_command();
Command train_command();
Command score_command();
Command eval_command();
Command generate_command();
Command verify_command();
Command bench_command();
Command info_command();

// The flags that every subcommand has; `formats` are the values of its --format.
void add_common_options(OptionSet& set, CommonOptions& options, const Words& formats);

// The deadline and the signals of this process. limit_each: seconds of one instance; 0: none.
SearchControl search_control(const CommonOptions& options, double limit_each = 0.0);

// What --format says, else the suffix of -o, else text on a terminal and JSON off one. An MPI launcher's
// output is none.
OutputFormat output_format(const CommonOptions& options);

// The answer is JSON and goes to stdout, so a failure is told there too.
bool is_json_on_stdout(const CommonOptions& options);

// UsageError: the suffix of -o is none that the subcommand writes.
[[noreturn]] void refuse_suffix(const CommonOptions& options);

// Opens -o or stdout. Call it before the work: throws UsageError for a suffix that tells no format where
// --format does not either, OutputRefused for a file that is there already without --force.
// std::system_error when the disk refuses, then and later.
OutputFile open_output(const CommonOptions& options, Appearance appearance = Appearance::kWhole);

// Throws UsageError when -o is one of the files that are read, by whatever name; "-" is the file at stdin.
void refuse_inputs(const CommonOptions& options, const Words& inputs);

// The answer of the subcommands that have no format of their own: `json` indented, or `text` as it is.
void write_answer(OutputFile& file, const CommonOptions& options, const Json& json, const std::string& text);

// An object of these members, in this order. The list constructor of nlohmann::json loses what it has where
// memory fails it halfway.
Json json_of(std::initializer_list<std::pair<const char*, Json>> members);

// An integer where the instance's metric makes it one.
Json objective_json(const Instance& instance, double objective);

// A line for each member of an object that is no list and no object itself.
std::string as_text(const Json& object);

}  // namespace pointsman
