// SPDX-License-Identifier: Apache-2.0
// From files to instances. Every reader is written for hostile input: memory grows with the bytes really
// there, never with a number a file claims; what is wrong is an InputError, and only a failing disk is a
// std::system_error.
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
  // What the instances must be, and what they are where the file does not say it: TSP or KnapSack, by the
  // numbers that it has, unless this names another. An .npy file is TSP unless this is set.
  std::optional<ProblemKind> problem;
  std::optional<double> capacity;  // where the file has none of its own
  std::function<bool()> stop;      // beside the run's (input_file.h); may be empty
  bool is_packed = false;          // the bytes were packed: what they take is checked (input_limit.h)
};

struct InstanceFile {
  InstanceBatch instances;            // at least one
  std::vector<std::string> warnings;  // for a person, complete with the file's name
};

// One line of an NDJSON stream: either an instance or what is wrong with the line.
struct InstanceLine {
  int64_t line = 0;  // 1-based in the file
  std::optional<Instance> instance;
  std::optional<InputError> error;
};

// An opened input. The format is the forced one, else told by the first bytes (npy, npz), the suffix, the
// first line.
class InstanceInput {
 public:
  // path "-" is standard input. Throws InputError when it cannot be opened or its kind cannot be told. All of
  // it throws InputStopped.
  explicit InstanceInput(const std::string& path, const ReadOptions& options = {});

  // True for NDJSON: then next_line() may be used, so that a bad line does not end the run.
  bool is_stream() const { return format_ == InputFormat::kNdjson; }

  // The next line that is not blank; nothing at the end. Blocks until a whole line has come. The lines before
  // need not be held any more.
  std::optional<InstanceLine> next_line();

  // Everything that is left; throws at the first thing wrong, and when there is no instance.
  InstanceFile read_all();

 private:
  std::optional<InstanceLine> take_line();
  InstanceFile read_lines();

  ReadOptions options_;
  InputFormat format_ = InputFormat::kAuto;
  InputFile file_;
  std::optional<std::string> head_;  // the first line with its newline, where it was read to tell the format
  int64_t line_ = 0;
};

InstanceFile read_instances(const std::string& path, const ReadOptions& options = {});

// The same from bytes in memory; `name` stands for the path (its suffix counts).
InstanceFile parse_instances(std::string_view bytes, const std::string& name,
                             const ReadOptions& options = {});

}  // namespace pointsman
