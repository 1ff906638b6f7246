// SPDX-License-Identifier: Apache-2.0
// Exit codes, and what went wrong as the program and the library tell it.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

namespace pointsman {

// The process's exit code is the `code` of its JSON answer; an interrupted run answers 130 (SIGINT) or 143
// (SIGTERM).
enum ExitCode : int {
  kExitDone = 0,  // also when the time limit ended the search
  kExitInternal = 1,
  kExitUsage = 2,
  kExitInput = 3,     // bad input, model or checkpoint file
  kExitResource = 4,  // memory, disk, device; output that was not whole when the run was over
  kExitCheck = 5,     // a verification or a bench check failed
};

// As the error JSON says it; the message is one line.
struct Failure {
  int code = kExitInternal;
  std::string message, file;
  int64_t line = 0;
};

// Of an exception. That memory failed is thrown again: it is told without taking any.
Failure failure_of(const std::exception_ptr& error);

}  // namespace pointsman
