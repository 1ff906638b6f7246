// SPDX-License-Identifier: Apache-2.0
// Reads instances from files. The readers accept hostile input: they allocate memory in proportion to the
// bytes of the file, not to a number that the file claims. Malformed input is an InputError; a failing disk
// is a std::system_error.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/problem/instance.h"
#include "host/formats/input_error.h"
#include "host/formats/input_file.h"

namespace pointsman {

enum class InputFormat { kAuto, kTsplib, kNpy, kNpz, kJson, kNdjson, kKnapsackText, kCsv, kMatrix };

struct ReadOptions {
  InputFormat format = InputFormat::kAuto;
  // The problem that the instances must have, and the one of files that do not name it. Without it such a
  // file is TSP or KnapSack, by its numbers; .npy is TSP.
  std::optional<ProblemKind> problem;
  std::optional<double> capacity;  // of files that have none
  std::function<bool()> stop;      // beside the run's (input_file.h); may be empty
  bool is_packed = false;          // the bytes were packed: check_input_size() limits the instances too
};

struct InstanceFile {
  InstanceBatch instances;            // at least one
  std::vector<std::string> warnings;  // with file and line
};

// One line of an NDJSON stream: an instance or an error.
struct InstanceLine {
  int64_t line = 0;  // in the file, from 1
  std::optional<Instance> instance;
  std::optional<InputError> error;
};

// An open input file. Its format is the one in the options, else follows from the first bytes (npy, npz), the
// suffix or the first line.
class InstanceInput {
 public:
  // path "-" is standard input. Throws InputError if the file cannot be opened or its format is unknown. All
  // functions throw InputStopped.
  explicit InstanceInput(const std::string& path, const ReadOptions& options = {});

  // Whether the format is NDJSON: then next_line() lets a run go on after a bad line.
  bool is_stream() const { return format_ == InputFormat::kNdjson; }

  // The next line that is not blank; nothing at the end. Blocks until a whole line has arrived. The limit on
  // packed input assumes that the caller has released the lines before.
  std::optional<InstanceLine> next_line();

  // Everything that is left. Throws at the first error, and if there is no instance.
  InstanceFile read_all();

 private:
  std::optional<InstanceLine> take_line();
  InstanceFile read_lines();

  ReadOptions options_;
  InputFormat format_ = InputFormat::kAuto;
  InputFile file_;
  std::optional<std::string> head_;  // the first line, if it was read to detect the format
  int64_t line_ = 0;
};

InstanceFile read_instances(const std::string& path, const ReadOptions& options = {});

// Parses bytes in memory. `name` is used as the path, for its suffix and in messages.
InstanceFile parse_instances(std::string_view bytes, const std::string& name,
                             const ReadOptions& options = {});

}  // namespace pointsman
