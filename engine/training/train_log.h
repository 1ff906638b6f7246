// SPDX-License-Identifier: Apache-2.0
// The training log: JSON lines (docs/file-formats.md). Costs are tour lengths or packed values; null:
// unknown.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "engine/training/trainer.h"

namespace pointsman {

// One line, without the end of line. Numbers are the shortest decimals that read back as the same double.
std::string log_line(const TrainProgress& progress);

class TrainLog {
 public:
  // Starts a new file, replacing an older one, or with `last_step` continues one: later lines and an
  // incomplete one are dropped. An empty path writes nothing.
  explicit TrainLog(const std::filesystem::path& path, std::optional<int64_t> last_step = {});

  // Throws std::runtime_error when the disk refuses.
  void write(const TrainProgress& progress);

 private:
  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace pointsman
