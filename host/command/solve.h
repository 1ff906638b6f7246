// SPDX-License-Identifier: Apache-2.0
// The flags of `pointsman solve`, and its answers to a stream.
#pragma once

#include <string>

#include "host/command/command.h"
#include "host/options/call_options.h"
#include "host/options/solve_options.h"
#include "host/run/solve_totals.h"

namespace pointsman {

// One of several runs that share the instances of an input: part `number` of `of` parts of consecutive
// instances, which differ by at most one in length.
struct Shard {
  int64_t number = 1, of = 1;

  bool is_all() const { return of == 1; }
  // The first instance of the part, of `count` in all; the end is that of the next part.
  int64_t begin(int64_t count) const { return part_begin(number - 1, count); }
  int64_t end(int64_t count) const { return part_begin(number, count); }

 private:
  int64_t part_begin(int64_t part, int64_t count) const { return count / of * part + count % of * part / of; }
};

struct SolveFlags {
  Words files;
  InstanceOptions input;
  std::string ref, shard_text;
  Shard shard;
  bool resume = false;
  SolveRequest request;
};

// NDJSON answers: a solution or an error a line, in input order, written to `file` as they become final. Bad
// lines, or a bad file, are answered with their code and the run goes on. Throws UsageError for flags that
// are for a document, InputError where --resume finds other lines in the output than these answers.
SolveTotals solve_stream(SolveRun& run, const SolveFlags& flags, const CommonOptions& common,
                         const SearchControl& control, OutputFile& file);

}  // namespace pointsman
