// SPDX-License-Identifier: Apache-2.0
// The flags of `pointsman solve`.
#pragma once

#include <string>
#include <vector>

#include "host/command/options.h"
#include "host/options/call_options.h"
#include "host/options/solve_options.h"

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
  std::vector<std::string> files;
  InstanceOptions input;
  std::string ref, shard_text;
  Shard shard;
  bool resume = false;
  SolveRequest request;
};

void add_solve_flags(OptionSet& options, SolveFlags& flags);

// After the parse: what some flags say of others. Throws UsageError for combinations that mean nothing.
void finish_solve_flags(SolveFlags& flags, const OptionSet& options, const CommonOptions& common);

}  // namespace pointsman
