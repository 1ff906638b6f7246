// SPDX-License-Identifier: Apache-2.0
#include "host/command/process.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "host/run/failure.h"
#include "host/run/log.h"
#include "host/run/ranks.h"

namespace pointsman {

namespace {

std::atomic<int> arrived{0}, told{0};  // here, and at another rank
static_assert(std::atomic<int>::is_always_lock_free);

void on_signal(int signal) {
  int none = 0;
  if (!arrived.compare_exchange_strong(none, signal)) _exit(128 + signal);
}

// Between the ranks' start and their end: a signal to one of them is one to all.
std::jthread signal_exchange;

void exchange_signals(const std::stop_token& end, Communicator& ranks) {
  constexpr std::chrono::milliseconds kBetween{20};
  try {
    for (; !end.stop_requested(); std::this_thread::sleep_for(kBetween)) {
      if (const int signal = ranks.share_signal(arrived); signal != 0) told = signal;
    }
  } catch (const ClusterError&) {  // the run's own calls fail too, and say so
  }
}

}  // namespace

void install_signal_handlers() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  // No SA_RESTART: a blocking read of stdin must return, so that what was read so far is answered.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
  for (const int ignored : {SIGPIPE, SIGXFSZ}) signal(ignored, SIG_IGN);
}

int interrupt_exit_code() {
  const int signal = arrived != 0 ? arrived : told;
  return signal == 0 ? 0 : 128 + signal;
}

Communicator& process_ranks() {
  static const std::unique_ptr<Communicator> joined = [] {
    auto ranks = join_ranks();
    if (ranks) signal_exchange = std::jthread(exchange_signals, std::ref(*ranks));
    return ranks;
  }();
  return joined ? *joined : one_process();
}

int end_process(int code) noexcept {
  signal_exchange = {};
  try {
    Communicator& ranks = process_ranks();
    if (ranks.is_broken()) ranks.abort(code);
    end_ranks(ranks);
    ranks.finish();
  } catch (const ClusterError&) {  // there were none, or they are gone: told before
    return code != 0 ? code : kExitResource;
  } catch (...) {
    return code != 0 ? code : kExitInternal;
  }
  return code;
}

int run_as_server() {
  Communicator& ranks = process_ranks();
  try {
    serve_rank(ranks, [] { return interrupt_exit_code() != 0; });
    signal_exchange = {};
    ranks.finish();
  } catch (const std::bad_alloc&) {
    log_out_of_memory();
    ranks.abort(kExitResource);
  } catch (...) {
    const Failure failure = failure_of(std::current_exception());
    log_error("rank " + std::to_string(ranks.rank()) + ": " + failure.message);
    ranks.abort(failure.code);
  }
  return kExitDone;
}

}  // namespace pointsman
