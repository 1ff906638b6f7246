// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace pointsman {

// A malformed input file; exit code 3. what() is one of
//   berlin52.tsp:11: NODE_COORD_SECTION: expected "id x y", found "4 17.0"
//   batch.json:3:14: instances[2].id: expected a string, found 7
//   set.npz: expected ..
class InputError : public std::runtime_error {
 public:
  // line and column (in bytes) count from 1; 0: unknown, or the format has none.
  InputError(std::string file, int64_t line, const std::string& message, int64_t column = 0)
      : std::runtime_error(file + (line > 0 ? ":" + std::to_string(line) : "") +
                           (line > 0 && column > 0 ? ":" + std::to_string(column) : "") + ": " + message),
        file_(std::move(file)),
        line_(line) {}

  const std::string& file() const { return file_; }
  int64_t line() const { return line_; }

 private:
  std::string file_;
  int64_t line_;
};

// Packed input needs more memory than --max-input allows; exit code 4.
class InputTooLarge : public std::runtime_error {
 public:
  InputTooLarge(std::string file, const std::string& message)
      : std::runtime_error(file + ": " + message), file_(std::move(file)) {}

  const std::string& file() const { return file_; }

 private:
  std::string file_;
};

}  // namespace pointsman
