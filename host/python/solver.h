// SPDX-License-Identifier: Apache-2.0
// Instances, answers, the solver and a training, as Python calls them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <semaphore>
#include <string>
#include <vector>

#include "engine/search/limits.h"
#include "host/formats/write_solutions.h"
#include "host/python/options.h"
#include "host/run/solve_run.h"

namespace pointsman {

// C-ordered numbers of 1, 2, 4 or 8 bytes in the machine's byte order.
using AnyArray = nanobind::ndarray<nanobind::ro, nanobind::c_contig, nanobind::device::cpu>;

void write_file(const std::string& path, bool force, const std::string& bytes);  // whole or not at all

// Nobody changes them, so that answers may keep their instances.
struct Instances {
  explicit Instances(InstanceBatch batch) : shared(std::make_shared<InstanceBatch>(std::move(batch))) {}

  const InstanceBatch& all() const { return *shared; }
  // By the path's suffix; as the program, without a clock.
  void write(const std::string& path, bool force) const;

  std::shared_ptr<const InstanceBatch> shared;
};

// As the functions of host/formats/formats.h, of one array or of several.
// The options' problem, and the ends of a path.
Instances instances_from_points(const std::vector<AnyArray>& points, const Keywords& keywords);
Instances instances_from_matrices(const std::vector<AnyArray>& matrices, const Keywords& keywords);
Instances instances_from_items(const std::vector<AnyArray>& weights, const std::vector<AnyArray>& values,
                               const AnyArray& capacity);

struct Answers {
  Instances instances;
  SolutionBatch solutions;
  SolveSummary summary;

  void write(const std::string& path, bool force) const;
};

// Of a file, to these instances.
Answers read_answers(const Instances& instances, const std::string& path);

// A run of the program that answers many calls. One call at a time; others wait, as long as their limit lets
// them.
class Solver {
 public:
  // model: as -m; empty: by problem and size. keywords: of the device.
  Solver(std::string model, const Keywords& keywords);
  ~Solver();
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  // first_row: of the first instance, in the run that these are a part of. init: solutions to start from, as
  // those of score(); empty: none.
  Answers solve(const Instances& instances, const Keywords& keywords, uint64_t first_row,
                const std::vector<AnyArray>& init);
  // solutions: of the instances, (B, n) or a list of one row each. [instances]
  std::vector<double> score(const Instances& instances, const std::vector<AnyArray>& solutions,
                            float temperature);
  std::string device() const;

 private:
  struct Release {
    void operator()(std::binary_semaphore* held) const { held->release(); }
  };
  using Turn = std::unique_ptr<std::binary_semaphore, Release>;

  // While it is held no other call runs. Waiting for the call of another thread throws CallStopped where that
  // is interrupted, UsageError at the deadline and in a handler, for which that call may be waiting.
  Turn turn(const SearchControl& control, bool in_handler);
  SolveRequest request_of(const Keywords& keywords);
  void require_own_process() const;

  std::string model_;
  std::mutex calls_mutex_;
  SolveCalls calls_;
  std::binary_semaphore is_free_{1};  // turn(); no mutex, as a handler may ask in the thread that holds it
  std::unique_ptr<SolveRun> run_;
  pid_t process_ = getpid();
};

// As the line of --log has it.
nanobind::dict dict_of(const TrainProgress& line);

// Calls work(interrupted, tell) without the interpreter's lock but in Python's own thread, so that `callback`
// may do what only that thread can: unless None, it gets a dict for each line that is told, and what it
// throws interrupts. Then, with the lock, `done`, and throws again what callback or a handler of signals
// threw.
using TrainingWork = std::function<void(const std::function<bool()>& interrupted,
                                        const std::function<void(const TrainProgress&)>& tell)>;
void run_training(const nanobind::object& callback, const TrainingWork& work,
                  const std::function<void()>& done);

// What `pointsman train` does with these options. What `callback` throws ends the training after its model is
// written. Returns the program's summary as JSON.
std::string train_by_options(const Keywords& keywords, const nanobind::object& callback);

}  // namespace pointsman
