// SPDX-License-Identifier: Apache-2.0
#include "host/command/answered_lines.h"

#include <algorithm>
#include <utility>

#include "host/command/options.h"
#include "host/files/text_scan.h"
#include "host/files/write_solutions.h"

namespace pointsman {

namespace {

// Of an answer that a limit or a signal kept from being final. Within a string the quotes would be escaped.
bool is_unfinished(const std::string& line) {
  const auto has = [&](Status status) {
    return line.find(std::string(",\"status\":\"") + name_of(status) + "\",") != std::string::npos;
  };
  return has(Status::kUnsolved) || has(Status::kInterrupted);
}

}  // namespace

AnsweredLines::AnsweredLines(std::string path, int64_t first)
    : path_(std::move(path)), first_(first), file_(path_, std::ios::binary) {
  if (file_.is_open()) read();
}

// What the next line starts with, whatever its instance is.
std::string AnsweredLines::start() const { return "{\"index\":" + std::to_string(first_ + count_) + ","; }

void AnsweredLines::read() {
  next_.clear();
  const bool is_whole = static_cast<bool>(std::getline(file_, next_)) && !file_.eof();
  if (next_.empty() && !is_whole) return;
  const size_t common = std::min(next_.size(), start().size());
  const bool is_answer = next_.compare(0, common, start(), 0, common) == 0 &&
                         (!is_whole || (common == start().size() && next_.ends_with('}')));
  if (!is_answer) {
    throw UsageError(place() + ": expected an answer of solve --format ndjson, " + shown(start()) +
                     ".., found " + shown(next_));
  }
  if (!is_whole || is_unfinished(next_)) {
    next_.clear();
  } else {
    next_ += '\n';
  }
}

bool AnsweredLines::take(int64_t index, const Instance* instance, const std::string& at) {
  if (!has_next()) return false;
  const std::string expected = instance != nullptr ? solution_start(index, *instance) : start() + "\"code\":";
  if (!next_.starts_with(expected)) {
    constexpr size_t kShown = 100;
    throw UsageError(place() + ": found " + next_.substr(0, kShown) + ".., expected the answer to " + at +
                     ", " + expected.substr(0, kShown) + "..");
  }
  bytes_ += next_.size();
  ++count_;
  read();
  return true;
}

}  // namespace pointsman
