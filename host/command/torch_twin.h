// SPDX-License-Identifier: Apache-2.0
// The PyTorch twin (bench/torch_twin.py) as a child process that answers one JSON command a line.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace pointsman {

class TorchTwin {
 public:
  // Starts the twin on a model file; it inherits the caller's CPU affinity. Throws std::runtime_error when it
  // does not come up.
  TorchTwin(const std::string& python, const std::filesystem::path& script,
            const std::filesystem::path& model);
  ~TorchTwin();  // ends it
  TorchTwin(const TorchTwin&) = delete;
  TorchTwin& operator=(const TorchTwin&) = delete;

  // What it runs on: torch version and kernels chosen.
  const nlohmann::json& settings() const { return settings_; }

  // One command, one answer. Throws std::runtime_error when the twin has gone.
  nlohmann::json ask(const nlohmann::json& command);

 private:
  nlohmann::json read_answer();

  pid_t process_ = -1;
  int to_ = -1, from_ = -1;  // its stdin and stdout
  std::string received_;     // beyond the last answer
  nlohmann::json settings_;
};

// The first of the interpreters that can import torch and numpy: `wanted` alone when it is not empty, else
// python3, then /usr/bin/python3. Empty when none can.
std::string find_torch_python(const std::string& wanted);

// bench/torch_twin.py of the source tree this program was built from.
std::filesystem::path default_twin_script();

}  // namespace pointsman
