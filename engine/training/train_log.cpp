// SPDX-License-Identifier: Apache-2.0
#include "engine/training/train_log.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "models/tools/atomic_file.h"
#include "models/tools/json_text.h"

namespace pointsman {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path) {
  throw DiskError(path.string(), errno, "cannot write the training log");
}

// Of a complete line that log_line wrote.
std::optional<int64_t> step_of(const std::string& line) {
  long long step = 0;
  char next = 0;
  const bool complete = std::sscanf(line.c_str(), "{\"step\":%lld%c", &step, &next) == 2 && next == ',';
  return complete && line.ends_with('}') ? std::optional<int64_t>(step) : std::nullopt;
}

std::string lines_up_to(int64_t last_step, std::istream& log) {
  std::string kept;
  for (std::string line; std::getline(log, line) && !log.eof();) {
    const std::optional<int64_t> step = step_of(line);
    if (!step || *step > last_step) break;
    kept += line + '\n';
  }
  return kept;
}

}  // namespace

std::string log_line(const TrainProgress& p) {
  JsonText seconds, cross_entropy, infeasible, penalty;
  if (!std::isnan(p.infeasible)) infeasible = p.infeasible;
  if (!std::isnan(p.penalty)) penalty = p.penalty;
  char text[32];
  seconds.text = {text, std::to_chars(text, text + sizeof text, p.seconds, std::chars_format::fixed, 3).ptr};
  if (!std::isnan(p.cross_entropy)) cross_entropy = p.cross_entropy;
  return json_object({{"step", p.step},
                      {"tours", p.tours},
                      {"seconds", seconds},
                      {"tours_per_second", std::round(p.tours_per_second)},
                      {"train_cost", p.train_cost},
                      {"val_cost", p.val_cost},
                      {"baseline_loss", p.baseline_loss},
                      {"grad_norm", p.grad_norm},
                      {"entropy", p.entropy},
                      {"mean_logit", p.mean_logit},
                      {"saturated", p.saturated},
                      {"learning_rate", p.learning_rate},
                      {"infeasible", infeasible},
                      {"penalty", penalty},
                      {"cross_entropy", cross_entropy}})
      .text;
}

TrainLog::TrainLog(const std::filesystem::path& path, std::optional<int64_t> last_step) : path_(path) {
  if (path_.empty()) return;
  if (last_step && std::filesystem::is_regular_file(path_)) {
    std::ifstream old(path_, std::ios::binary);
    if (!old) fail(path_);
    old.exceptions(std::ios::badbit);  // a line that has no memory is not the end
    const std::string kept = lines_up_to(*last_step, old);
    old.close();
    write_file_atomically(path_, kept);
  }
  file_.open(path_, std::ios::binary | (last_step ? std::ios::app : std::ios::trunc));
  if (!file_) fail(path_);
}

void TrainLog::write(const TrainProgress& progress) {
  if (path_.empty()) return;
  file_ << log_line(progress) << '\n' << std::flush;
  if (!file_) fail(path_);
}

}  // namespace pointsman
