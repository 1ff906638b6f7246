// SPDX-License-Identifier: Apache-2.0
// The ranks of which the program's process is one (engine/cluster/communicator.h).
#pragma once

#include "engine/cluster/communicator.h"

namespace pointsman {

// Joins them at the first call, from main(). Throws ClusterError, then and at every later call.
Communicator& process_ranks();

// The end of rank 0 with its exit code, which it returns, and of the other ranks: also where an exception
// left them within a call.
int end_process(int code) noexcept;

// All of another rank's process: serves rank 0, says nothing, returns the exit code. A failure is told on
// stderr with the rank and ends every rank.
int run_as_server();

}  // namespace pointsman
