// SPDX-License-Identifier: Apache-2.0
#include "host/command/answered_lines.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "engine/problem/instance.h"
#include "host/formats/text_scan.h"

namespace pointsman {

namespace {

// Of both lines so many bytes are shown, from shortly before where they part.
constexpr size_t kShown = 100, kBefore = 40, kAfter = 20;

}  // namespace

AnsweredLines::AnsweredLines(std::string path, int64_t first, bool keeps_limited)
    : path_(std::move(path)), first_(first), keeps_limited_(keeps_limited), file_(path_, std::ios::binary) {
  if (file_.is_open()) read();
}

// What the next line starts with, whatever its instance is.
std::string AnsweredLines::start() const { return "{\"index\":" + std::to_string(first_ + count_) + ","; }

void AnsweredLines::refuse(const std::string& message) const {
  throw ResumeRefused(path_, count_ + 1, message);
}

// By its status. Within a string the quotes would be escaped.
bool AnsweredLines::is_cut_short() const {
  const auto has = [&](Status status) {
    return next_.find(std::string(",\"status\":\"") + name_of(status) + "\",") != std::string::npos;
  };
  return has(Status::kUnsolved) || has(Status::kInterrupted) || (has(Status::kTimeLimit) && !keeps_limited_);
}

void AnsweredLines::read() {
  next_.clear();
  is_whole_ = static_cast<bool>(std::getline(file_, next_)) && !file_.eof();
  if (next_.empty() && !is_whole_) return;
  const size_t common = std::min(next_.size(), start().size());
  const bool is_answer = next_.compare(0, common, start(), 0, common) == 0 &&
                         (!is_whole_ || (common == start().size() && next_.ends_with('}')));
  if (!is_answer) {
    refuse("expected an answer of solve --format ndjson, " + shown(start()) + ".., found " + shown(next_));
  }
  if (is_whole_) next_ += '\n';
}

bool AnsweredLines::take(const std::string& expected, const std::string& place) {
  if (!has_next()) return false;
  const size_t size = is_whole_ ? expected.size() : std::min(next_.size(), expected.size());
  if (next_.compare(0, size, expected, 0, size) != 0) {
    const auto parted = std::mismatch(expected.begin(), expected.end(), next_.begin(), next_.end()).first;
    const auto at = static_cast<size_t>(parted - expected.begin());
    const size_t from = at + kAfter <= kShown ? 0 : at - kBefore;
    const std::string dots = from > 0 ? ".." : "";
    const bool is_old = next_.find(",\"instance\":\"") == std::string::npos;
    refuse(
        "found " + dots + printable(std::string_view(next_).substr(from, kShown)) +
        ".., expected the answer to " + place + ", " + dots +
        printable(std::string_view(expected).substr(from, kShown)) + ".." +
        (is_old ? "; lines of an earlier version do not tell their instance: solve into another file" : ""));
  }
  if (!is_whole_ || is_cut_short()) {
    next_.clear();
    return false;
  }
  bytes_ += next_.size();
  ++count_;
  read();
  return true;
}

}  // namespace pointsman
