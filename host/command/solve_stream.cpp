// SPDX-License-Identifier: Apache-2.0
#include "host/command/solve_stream.h"

#include "host/command/line_queue.h"
#include "host/command/log.h"
#include "host/command/options.h"
#include "host/files/write_solutions.h"

namespace pointsman {

namespace {

constexpr size_t kLinesAtOnce = 1024;  // when the stream runs ahead of the search
constexpr size_t kFlushBytes = 1 << 16;
constexpr auto kFlushAfter = std::chrono::milliseconds(100);

}  // namespace

bool SolveStream::stopped() const { return control_.check() != Status::kDone; }

void SolveStream::solve_file(const std::string& path, const ReadOptions& options) {
  next_row_ = 0;
  try {
    auto input = std::make_unique<InstanceInput>(path, options);
    if (!input->is_stream()) {
      InstanceFile whole = input->read_all();
      for (const std::string& warning : whole.warnings) log_warning("%s", warning.c_str());
      std::vector<InstanceLine> lines;
      for (Instance& instance : whole.instances) lines.push_back({0, std::move(instance), std::nullopt});
      solve_lines(std::move(lines));
      return;
    }
    const size_t at_once = options_.batch_size ? static_cast<size_t>(*options_.batch_size) : kLinesAtOnce;
    LineQueue queue(std::move(input), 2 * at_once);
    for (;;) {
      std::vector<InstanceLine> lines = queue.take(at_once, control_);
      if (lines.empty()) return;
      solve_lines(std::move(lines));
    }
  } catch (const InputError& error) {
    write_error(kExitInput, error.what(), error.file(), error.line(), next_index_++);
    write_errors_before(next_index_);
    flush();
  }
}

void SolveStream::solve_lines(std::vector<InstanceLine> lines) {
  InstanceBatch instances;
  std::vector<uint64_t> rows;
  std::vector<int64_t> indices;
  for (InstanceLine& line : lines) {
    const int64_t index = next_index_++;
    const uint64_t row = next_row_++;
    if (line.error) {
      write_error(kExitInput, line.error->what(), line.error->file(), line.error->line(), index);
      continue;
    }
    const auto [code, message] = check_(*line.instance);
    if (code != 0) {
      write_error(code, message, "", line.line, index);
      continue;
    }
    instances.push_back(std::move(*line.instance));
    rows.push_back(row);
    indices.push_back(index);
  }
  run_.solve(instances, rows, options_, control_, [&](size_t i, Solution&& solution) {
    write_errors_before(indices[i]);
    const double gap = gap_of_(instances[i], solution.objective);
    pending_ += solution_json(indices[i], instances[i], solution, gap) + "\n";
    totals_.add(instances[i], solution, gap);
    if (pending_.size() >= kFlushBytes || Clock::now() - flushed_ >= kFlushAfter) flush();
  });
  write_errors_before(next_index_);
  flush();
}

void SolveStream::write_error(int code, const std::string& message, const std::string& file, int64_t line,
                              int64_t index) {
  log_warning("%s", message.c_str());
  ++totals_.failed;
  errors_.emplace_back(index, error_json(code, message, file, line, index) + "\n");
}

void SolveStream::write_errors_before(int64_t index) {
  for (; !errors_.empty() && errors_.front().first < index; errors_.pop_front())
    pending_ += errors_.front().second;
}

void SolveStream::flush() {
  if (!pending_.empty()) file_.write(pending_);
  pending_.clear();
  flushed_ = Clock::now();
}

}  // namespace pointsman
