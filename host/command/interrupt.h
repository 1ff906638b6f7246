// SPDX-License-Identifier: Apache-2.0
// SIGINT, SIGTERM and SIGHUP: the first asks the search to stop and keep its best, the second ends the
// process at once.
#pragma once

namespace pointsman {

// Installs the handlers; ignores SIGPIPE and SIGXFSZ, so that a closed stdout and a file that may not grow
// are write errors like any other.
void install_signal_handlers();

// The signal that arrived in this process, 0 while none has.
int arrived_signal();

// Another rank had this signal: the search stops. The first that arrives here then still does not end the
// process.
void tell_signal(int signal);

// 128 + the signal that arrived or was told of (130, 143, 129), 0 while none has. Safe from any thread.
int interrupt_exit_code();

}  // namespace pointsman
