// SPDX-License-Identifier: Apache-2.0
// The program's process: its signals, its memory, and the ranks of which it is one
// (engine/cluster/communicator.h).
#pragma once

#include <atomic>

#include "engine/cluster/communicator.h"

namespace pointsman {

// Of SIGINT, SIGTERM and SIGHUP the first asks the search to stop and keep its best, the second ends the
// process at once. Ignores SIGPIPE and SIGXFSZ, so that a closed stdout and a file that may not grow are
// write errors like any other.
void install_signal_handlers();

// 128 + the signal that arrived here or, then the first here does not end the process either, at another rank
// (130, 143, 129); 0 while none has. Safe from any thread.
int interrupt_exit_code();

// An allocation failed, and nobody has yet made up for it. Set by the new-handler, because CLI11 and the
// standard streams swallow the exception.
inline std::atomic<bool> memory_failed{false};

// Joins the ranks at the first call, from main(). Throws ClusterError, then and at every later call.
Communicator& process_ranks();

// The end of rank 0 with its exit code, which it returns, and of the other ranks: also where an exception
// left them within a call.
int end_process(int code) noexcept;

// All of another rank's process: serves rank 0, says nothing, returns the exit code. A failure is told on
// stderr with the rank and ends every rank.
int run_as_server();

}  // namespace pointsman
