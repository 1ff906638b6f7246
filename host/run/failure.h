// SPDX-License-Identifier: Apache-2.0
// Exit codes and error reports, for the program and the library.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

namespace pointsman {

// The exit code is the `code` of the JSON output. An interrupted run has 130 (SIGINT) or 143 (SIGTERM).
enum ExitCode : int {
  kExitDone = 0,  // also at the time limit
  kExitInternal = 1,
  kExitUsage = 2,
  kExitInput = 3,     // bad input, model or checkpoint file
  kExitResource = 4,  // memory, disk, device; output that was incomplete at the end of the run
  kExitCheck = 5,     // a verification or a bench check failed
};

// The content of the error JSON; the message is one line.
struct Failure {
  int code = kExitInternal;
  std::string message, file;
  int64_t line = 0;
};

// Describes an exception. Rethrows std::bad_alloc, which must be reported without allocating memory.
Failure failure_of(const std::exception_ptr& error);

}  // namespace pointsman
