// SPDX-License-Identifier: Apache-2.0
// What an earlier run of `solve --format ndjson` left in its output, for --resume.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "host/formats/input_file.h"

namespace pointsman {

// The output of --resume has other lines than the answers of this run. It is left as it is.
class ResumeRefused : public InputError {
 public:
  using InputError::InputError;
};

// The answers that stay, in order: all whole lines before the first that a limit or a signal cut short. A
// last line that is torn does not stay. Holds one line at a time.
class AnsweredLines {
 public:
  // first: index of the run's first instance. keeps_limited: answers at a time limit stay, since every
  // instance has a limit of its own. A file that is not there has no answers. Throws ResumeRefused for one
  // that is no such output; so does take().
  AnsweredLines(std::string path, int64_t first, bool keeps_limited);

  bool has_next() const { return !next_.empty(); }  // also one that does not stay
  int64_t count() const { return count_; }          // of those taken
  uint64_t bytes() const { return bytes_; }         // that these have in the file

  // Takes the next answer, which must begin with `expected`, of the instance that stands at `place`. False
  // where there is none that stays: then none of those behind it does. Throws ResumeRefused for the answer to
  // another instance.
  bool take(const std::string& expected, const std::string& place);

  // Throws ResumeRefused at the next answer.
  [[noreturn]] void refuse(const std::string& message) const;

 private:
  void read();
  std::string start() const;
  bool is_cut_short() const;

  std::string path_;
  int64_t first_;
  bool keeps_limited_;
  std::ifstream file_;
  std::string next_;       // with its newline, where it has one; empty: there is none
  bool is_whole_ = false;  // has it one?
  int64_t count_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace pointsman
