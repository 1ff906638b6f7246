// SPDX-License-Identifier: Apache-2.0
#include "host/command/process_ranks.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <thread>

#include "host/command/interrupt.h"
#include "host/run/failure.h"
#include "host/run/log.h"
#include "host/run/ranks.h"

namespace pointsman {

namespace {

// Between the ranks' start and their end: a signal to one of them is one to all.
class SignalExchange {
 public:
  explicit SignalExchange(Communicator& ranks) : thread_([this, &ranks] { run(ranks); }) {}
  ~SignalExchange() {
    ended_ = true;
    thread_.join();
  }
  SignalExchange(const SignalExchange&) = delete;
  SignalExchange& operator=(const SignalExchange&) = delete;

 private:
  void run(Communicator& ranks) {
    constexpr std::chrono::milliseconds kBetween{20};
    try {
      for (; !ended_; std::this_thread::sleep_for(kBetween)) {
        if (const int signal = ranks.share_signal(arrived_signal()); signal != 0) tell_signal(signal);
      }
    } catch (const ClusterError&) {  // the run's own calls fail too, and say so
    }
  }

  std::atomic<bool> ended_{false};
  std::thread thread_;
};

std::unique_ptr<SignalExchange> exchange;

std::unique_ptr<Communicator> join_all_ranks() {
  auto ranks = join_ranks();
  if (ranks) exchange = std::make_unique<SignalExchange>(*ranks);
  return ranks;
}

}  // namespace

Communicator& process_ranks() {
  static const std::unique_ptr<Communicator> joined = join_all_ranks();
  return joined ? *joined : one_process();
}

int end_process(int code) noexcept {
  exchange.reset();
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
    exchange.reset();
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
