// SPDX-License-Identifier: Apache-2.0
// SIGINT and SIGTERM: the first asks the search to stop and keep its best, the second ends the process at
// once.
#pragma once

namespace pointsman {

// Installs the handlers; ignores SIGPIPE, so that a closed stdout is a write error like any other.
void install_signal_handlers();

// 128 + the signal that arrived (130, 143), 0 while none has. Safe from any thread.
int interrupt_exit_code();

}  // namespace pointsman
