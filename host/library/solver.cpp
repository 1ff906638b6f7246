// SPDX-License-Identifier: Apache-2.0
// Solvers: how they are made, and what they tell of a failure.
#include <new>

#include "host/library/handles.h"
#include "host/options/call_options.h"
#include "host/run/solve_totals.h"

namespace pointsman {

namespace {

BackendOptions backend_options(const pointsman_solver_options& given) {
  BackendOptions device;
  OptionSet options;
  add_device_options(options, device);
  if (given.device != nullptr) options.set("device", given.device);
  if (given.precision != nullptr) options.set("precision", given.precision);
  options.set("threads", int64_t{given.threads});
  return device;
}

RunLog log_of(const pointsman_solver_options& options) {
  if (options.log == nullptr) return {};
  return {[log = options.log, user = options.log_user](const std::string& line) { log(user, line.c_str()); }};
}

}  // namespace

}  // namespace pointsman

using namespace pointsman;

int pointsman_solver::remember_failure() noexcept {
  try {
    failure = failure_of(std::current_exception());
    if (failure.code == kExitUsage) failure.message = in_library_names(failure.message);
    return failure.code;
  } catch (...) {
    memory_failed = true;
    return POINTSMAN_RESOURCE;
  }
}

void pointsman_solver::give_bytes(std::string made, const void** data, size_t* size) {
  bytes = std::make_unique<const std::string>(std::move(made));
  *data = bytes->data();
  *size = bytes->size();
}

SolveRun& pointsman_solver::ready_run() {
  if (!run) throw std::invalid_argument("the solver could not be made");
  return *run;
}

Engine& pointsman_solver::cpu_engine() {
  SolveRun& run_here = ready_run();
  if (run_here.engine.device().name == "cpu") return run_here.engine;
  if (!cpu) {
    BackendOptions options;
    options.device = "cpu";
    options.threads = static_cast<int>(threads);
    cpu.emplace(options);
  }
  return *cpu;
}

extern "C" {

const char* pointsman_version() { return POINTSMAN_VERSION; }

uint32_t pointsman_abi_version() { return POINTSMAN_ABI_MAJOR << 16 | POINTSMAN_ABI_MINOR; }

int pointsman_solver_options_init(pointsman_solver_options* options, size_t size) {
  return give(pointsman_solver_options{}, options, size);
}

int pointsman_solver_create(const pointsman_solver_options* options, pointsman_solver** solver) {
  if (solver == nullptr) return POINTSMAN_USAGE;
  *solver = new (std::nothrow) pointsman_solver;
  if (*solver == nullptr) return POINTSMAN_RESOURCE;
  return call_with(*solver, [&, made = *solver] {
    const pointsman_solver_options own = taken(options, pointsman_solver_options{});
    made->log = log_of(own);
    made->threads = own.threads;
    SolveRun& run = made->run.emplace(backend_options(own), "", false, made->log);
    try {
      made->device = device_text(run.engine.device());
    } catch (...) {
      made->run.reset();
      throw;
    }
  });
}

void pointsman_solver_free(pointsman_solver* solver) { delete solver; }

const char* pointsman_device(const pointsman_solver* solver) {
  return solver == nullptr ? "" : solver->device.c_str();
}

const char* pointsman_last_error(const pointsman_solver* solver) {
  if (solver == nullptr) return "no solver";
  if (solver->is_busy) return "the solver is in use: one call at a time";
  return solver->memory_failed ? "out of memory" : solver->failure.message.c_str();
}

const char* pointsman_last_error_file(const pointsman_solver* solver, int64_t* line) {
  const bool has_place = solver != nullptr && !solver->is_busy;
  if (line != nullptr) *line = has_place ? solver->failure.line : 0;
  return has_place ? solver->failure.file.c_str() : "";
}
}
