// SPDX-License-Identifier: Apache-2.0
// The training log: JSON lines, one object a line (docs/file-formats.md). Costs are in the user's sense: the
// length of a tour, or the packed value (positive, larger is better). A number that was not measured is null.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "engine/training/trainer.h"

namespace pointsman {

// One line, without the end of line. Numbers are the shortest decimals that read back as the same double.
std::string log_line(const TrainProgress& progress);

class TrainLog {
 public:
  // Starts a new file, replacing an older one. An empty path writes nothing.
  explicit TrainLog(const std::filesystem::path& path);
  // Continues a file after a checkpoint at `step`: drops what was written later, a torn last line, and, when
  // `keep_step` is false, the line of `step` itself.
  TrainLog(const std::filesystem::path& path, int64_t step, bool keep_step);

  // Throws std::runtime_error when the disk refuses.
  void write(const TrainProgress& progress);

 private:
  void open(std::ios::openmode mode);

  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace pointsman
