// SPDX-License-Identifier: Apache-2.0
// What an earlier run of `solve --format ndjson` left in its output, for --resume.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "engine/problem/instance.h"

namespace pointsman {

// The answers that stay, in order: all whole lines before the first that a limit or a signal left unsolved or
// interrupted. A last line that is torn does not stay. Holds one line at a time.
class AnsweredLines {
 public:
  // first: index of the run's first instance. A file that is not there has none. Throws UsageError for one
  // that is no such output; so does take().
  AnsweredLines(std::string path, int64_t first);

  bool has_next() const { return !next_.empty(); }
  int64_t count() const { return count_; }   // of those taken
  uint64_t bytes() const { return bytes_; }  // that these have in the file

  // The next answer, where there is one: that to the instance of this index, `instance`; null: an error.
  // Throws UsageError when it is to another one; `place` tells where the instance stands.
  bool take(int64_t index, const Instance* instance, const std::string& place);

  // "out.ndjson:3", of the next answer.
  std::string place() const { return path_ + ":" + std::to_string(count_ + 1); }

 private:
  void read();
  std::string start() const;

  std::string path_;
  int64_t first_;
  std::ifstream file_;
  std::string next_;  // with its newline; empty: there is none
  int64_t count_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace pointsman
