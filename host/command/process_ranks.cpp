// SPDX-License-Identifier: Apache-2.0
#include "host/command/process_ranks.h"

#include <exception>
#include <memory>
#include <string>

#include "host/command/interrupt.h"
#include "host/command/log.h"
#include "host/run/failure.h"
#include "host/run/ranks.h"

namespace pointsman {

Communicator& process_ranks() {
  static const std::unique_ptr<Communicator> joined = join_ranks();
  return joined ? *joined : one_process();
}

int end_process(int code) noexcept {
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
