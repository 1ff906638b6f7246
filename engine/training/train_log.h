// SPDX-License-Identifier: Apache-2.0
// The training log: JSON lines (docs/file-formats.md). Costs are tour lengths or packed values. A number that
// was not measured is null.
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
  // Continues a file after a checkpoint at `step`: drops later lines, an incomplete one, and unless
  // `keep_step` the line of `step`.
  TrainLog(const std::filesystem::path& path, int64_t step, bool keep_step);

  // Throws std::runtime_error when the disk refuses.
  void write(const TrainProgress& progress);

 private:
  void open(std::ios::openmode mode);

  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace pointsman
