// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace pointsman {

// A file that the user gave is not what it should be; exit code 3. what() reads
//   berlin52.tsp:11: NODE_COORD_SECTION: expected "id x y", found "4 17.0"
//   batch.json:3:14: instances[2].id: expected a string, found 7
// with the line left out where the format has none.
class InputError : public std::runtime_error {
 public:
  // column: the byte in the line, from 1; 0 when not known.
  InputError(std::string file, int64_t line, const std::string& message, int64_t column = 0)
      : std::runtime_error(file + place(line, column) + ": " + message),
        file_(std::move(file)),
        line_(line) {}

  const std::string& file() const { return file_; }
  int64_t line() const { return line_; }  // 1-based; 0 when the format has no lines

 private:
  static std::string place(int64_t line, int64_t column) {
    if (line <= 0) return "";
    const std::string text = ":" + std::to_string(line);
    return column > 0 ? text + ":" + std::to_string(column) : text;
  }

  std::string file_;
  int64_t line_;
};

// Packed input takes more memory than --max-input allows; exit code 4. what() reads
//   set.npz: locs: (100000000, 2) takes 1600000000 bytes; expected at most 1073741824, --max-input ..
class InputTooLarge : public std::runtime_error {
 public:
  InputTooLarge(std::string file, const std::string& message)
      : std::runtime_error(file + ": " + message), file_(std::move(file)) {}

  const std::string& file() const { return file_; }

 private:
  std::string file_;
};

}  // namespace pointsman
