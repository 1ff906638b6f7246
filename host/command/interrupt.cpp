// SPDX-License-Identifier: Apache-2.0
#include "host/command/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace pointsman {

namespace {

std::atomic<int> arrived{0}, told{0};  // here, and at another rank
static_assert(std::atomic<int>::is_always_lock_free);

void on_signal(int signal) {
  int none = 0;
  if (!arrived.compare_exchange_strong(none, signal)) _exit(128 + signal);
}

}  // namespace

void install_signal_handlers() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  // No SA_RESTART: a blocking read of stdin must return, so that what was read so far is answered.
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGHUP, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

int arrived_signal() { return arrived; }

void tell_signal(int signal) { told = signal; }

int interrupt_exit_code() {
  const int signal = arrived != 0 ? arrived : told;
  return signal == 0 ? 0 : 128 + signal;
}

}  // namespace pointsman
