// SPDX-License-Identifier: Apache-2.0
// Reads instances, solutions and reference costs from files. The readers accept hostile input: they allocate
// memory in proportion to the bytes of the file, not to a number that the file claims. Malformed input is an
// InputError; a failing disk is a std::system_error.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/problem/instance.h"
#include "host/formats/input_file.h"

namespace pointsman {

enum class InputFormat {
  kAuto,
  kTsplib,
  kNpy,
  kNpz,
  kJson,
  kNdjson,
  kKnapsackText,
  kTimedText,
  kGraphText,
  kCsv,
  kMatrix,
  kTourLines
};

// How the numbers of a KnapSack text stand in its lines (docs/file-formats.md).
enum class KnapsackLayout { kAuto, kPairs, kTwoLines, kSolution, kCapacityLast, kLists, kPisinger, kRows };

struct ReadOptions {
  InputFormat format = InputFormat::kAuto;
  KnapsackLayout layout = KnapsackLayout::kAuto;  // of KnapSack text; kAuto: the one that the file fits
  // The problem that the instances must have, and the one of files that do not name it. Without it such a
  // file is TSP or KnapSack, by its numbers; .npy is TSP.
  std::optional<ProblemKind> problem;
  std::optional<double> capacity;  // of files that have none
  int32_t start = -1, end = -1;    // of paths that have none of their own; -1: any
  std::optional<Metric> metric;    // in place of the file's own
  std::string first_city;          // its id: where tours begin; empty: anywhere
  std::string columns;         // of a CSV, "x,y"; "none": the first line is a row; empty: as they are named
  std::function<bool()> stop;  // beside the run's (input_file.h); may be empty
};

// Checks an instance's problem against that of the options, gives it their metric, a tour the city that it
// begins at and a path its ends. Returns a warning where its numbers hardly mean what its metric reads;
// empty: none. Throws InputError.
std::string complete_instance(Instance& instance, const ReadOptions& options, const std::string& file,
                              int64_t line);

struct InstanceFile {
  InstanceBatch instances;            // at least one
  std::vector<std::string> warnings;  // with file and line
};

// One line of an NDJSON stream: an instance or an error.
struct InstanceLine {
  int64_t line = 0;  // in the file, from 1
  std::optional<Instance> instance;
  std::optional<InputError> error;
  std::string warning = {};  // of the first line that has one
};

// An open input file. Its format is the one in the options, else follows from the first bytes (npy, npz), the
// suffix or the first line.
class InstanceInput {
 public:
  // path "-" is standard input. Throws InputError if the file cannot be opened or its format is unknown. All
  // functions throw InputStopped.
  explicit InstanceInput(const std::string& path, const ReadOptions& options = {})
      : InstanceInput(std::make_unique<InputFile>(path, options.stop), options) {}
  // An open file, of which nothing was read.
  InstanceInput(std::unique_ptr<InputFile> file, const ReadOptions& options);

  // Whether the format is NDJSON: then next_line() lets a run go on after a bad line.
  bool is_stream() const { return options_.format == InputFormat::kNdjson; }

  // The next line that is not blank; nothing at the end. Blocks until a whole line has arrived. The limit on
  // packed input assumes that the caller has released the lines before.
  std::optional<InstanceLine> next_line();

  // Everything that is left; nothing can be read after it. Throws at the first error, and if there is no
  // instance.
  InstanceFile read_all();

 private:
  ReadOptions options_;
  std::unique_ptr<InputFile> file_;
  bool has_warned_ = false;
};

InstanceFile read_instances(const std::string& path, const ReadOptions& options = {});

// Parses bytes in memory. `name` is used as the path, for its suffix and in messages.
InstanceFile parse_instances(std::string_view bytes, const std::string& name,
                             const ReadOptions& options = {});

// `what` as a number; nothing if it is none. Throws as read_reference().
std::optional<double> reference_number(const std::string& what);

// The reference costs, [instances]. `what` is a number, which holds for every instance, or a file:
//   .npy    (B,) floats
//   text    one number a line
//   .json   {"costs":[..]}
//   any file that read_solutions() reads; the costs of its solutions are computed
// Throws InputError for a negative cost or NaN in a file, std::invalid_argument for a negative number.
std::vector<double> read_reference(const std::string& what, const InstanceBatch& instances);

// The solutions of a file, [instances]: our own output (JSON or NDJSON), a TSPLIB tour, .npy (tours: (B,n) or
// (n) integers, from 0; selections: (B,n) or (n) uint8 or bool, 1 for a chosen item), .npz with `tours` or
// `selections`. Sets what ParseAnswers sets. Throws InputError.
SolutionBatch read_solutions(const std::string& path, const InstanceBatch& instances);
// Parses bytes in memory. `name` is used as the path.
SolutionBatch parse_solutions(std::string_view bytes, const std::string& name,
                              const InstanceBatch& instances);

// Validates the solutions of a file and sets their objectives. Throws InputError for the first invalid one.
void check_solutions(SolutionBatch& solutions, const InstanceBatch& instances, const std::string& path);

}  // namespace pointsman
