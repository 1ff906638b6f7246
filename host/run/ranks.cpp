// SPDX-License-Identifier: Apache-2.0
#include "host/run/ranks.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "engine/backend/ranks/asynchronous_backend.h"
#include "engine/backend/ranks/cluster_backend.h"
#include "engine/search/limits.h"
#include "engine/training/checkpoint.h"
#include "host/run/rank_messages.h"
#include "host/run/work_pieces.h"
#include "models/parameter_layout.h"

namespace pointsman {

namespace {

// Updates that others may make, each so many, while a rank computes a gradient. In step with each other each
// of them makes one.
constexpr int kMostStale = 4;

void tell(Communicator& ranks, const MessageWriter& message) {
  for (int rank = 1; rank < ranks.size(); ++rank) ranks.send(rank, message.bytes());
}

std::vector<double> work_of(const InstancePointers& instances) {
  std::vector<double> work;
  for (const Instance* instance : instances) work.push_back(rollout_work(instance->n()));
  return work;
}

template <typename T>
std::vector<T> chosen(std::span<const T> all, const std::vector<size_t>& places) {
  std::vector<T> some;
  for (const size_t place : places) some.push_back(all[place]);
  return some;
}

// Of two pieces of one run: what any of its instances had.
void merge(SolveReport& all, const SolveReport& piece) {
  all.mode = piece.mode;
  all.samples = std::max(all.samples, piece.samples);
  all.augment = std::max(all.augment, piece.augment);
  all.shuffle = all.shuffle || piece.shuffle;
  all.improve = all.improve || piece.improve;
  all.statistics += piece.statistics;
}

// Has all pieces of items of this work done, here by this thread and on the other ranks, which a second
// thread serves. message: what another rank is sent for a piece, and it answers with one message. answered:
// takes that answer. Both are called by the second thread. The first exception is thrown again.
void share_work(Communicator& ranks, std::vector<double> work,
                const std::function<void(const WorkPiece&)>& here,
                const std::function<std::string(const WorkPiece&)>& message,
                const std::function<void(const WorkPiece&, std::string_view)>& answered) {
  WorkPieces pieces(std::move(work), ranks.size());
  std::map<int, WorkPiece> under_way;  // by rank
  const auto hand_out = [&](int rank) {
    WorkPiece piece = pieces.take();
    if (piece.places.empty()) return;
    ranks.send(rank, message(piece));
    under_way[rank] = std::move(piece);
  };
  auto others = std::async(std::launch::async, [&] {
    try {
      for (int rank = 1; rank < ranks.size(); ++rank) hand_out(rank);
      while (!under_way.empty()) {
        const Communicator::Received answer = ranks.receive(Communicator::kAnyRank);
        const WorkPiece done = std::move(under_way.at(answer.from));
        under_way.erase(answer.from);
        hand_out(answer.from);
        answered(done, answer.bytes);
      }
    } catch (...) {
      ranks.mark_broken();
      pieces.drop();
      throw;
    }
  });
  try {
    for (WorkPiece piece = pieces.take(); !piece.places.empty(); piece = pieces.take()) here(piece);
  } catch (...) {
    pieces.drop();
    throw;
  }
  others.get();
}

// With its part of the time, in which all ranks work.
SolveJob job_of(const WorkPiece& piece, int ranks, const SolveJob& job) {
  SolveJob part = job.part(piece.places);
  part.control = share_time(job.control, ranks * piece.work, piece.work_left);
  if (!part.control.end) part.control.end = part.control.deadline;  // no instance is alone
  return part;
}

MessageWriter& put_instances(MessageWriter& message, const InstancePointers& instances) {
  message.put(static_cast<uint64_t>(instances.size()));
  for (const Instance* instance : instances) put(message, *instance);
  return message;
}

InstanceBatch take_instances(MessageReader& message) {
  InstanceBatch instances;
  for (auto left = message.next<uint64_t>(); left > 0; --left) instances.push_back(take_instance(message));
  return instances;
}

std::unique_ptr<AsynchronousBackend> asynchronous_backend(Communicator& ranks,
                                                          const BackendOptions& options) {
  return make_asynchronous_backend(ranks, make_backend(options_of_rank(options, ranks)),
                                   kMostStale * ranks.size());
}

// On rank 0: what all ranks compute on, a CPU or a CUDA device each. The others serve it as long as it lives.
std::unique_ptr<Backend> backend_of_all(Communicator& ranks, const BackendOptions& options) {
  const BackendOptions own = options_of_rank(options, ranks);
  auto backend = make_cluster_backend(ranks, own.device == "cpu" ? nullptr : make_backend(own), own.threads);
  tell(ranks, put(MessageWriter().put(RankCall::kBackend), options));
  return backend;
}

// Which of a machine's devices a rank takes.
size_t device_number(const Communicator& ranks, const CudaStatus& cuda) {
  return static_cast<size_t>(ranks.local_rank()) % cuda.devices.size();
}

// The CUDA device that a rank would take.
struct RankDevice {
  std::string identity, reason;  // reason: why there is none
};

RankDevice own_device(const Communicator& ranks) {
  const CudaStatus cuda = cuda_status();
  if (!cuda.reason.empty()) return {{}, cuda.reason};
  return {cuda.devices[device_number(ranks, cuda)].identity, {}};
}

// Why not every rank has a CUDA device of its own; empty: they have.
std::string missing_device(Communicator& ranks) {
  const RankDevice own = own_device(ranks);
  if (!own.reason.empty()) return own.reason;
  tell(ranks, MessageWriter().put(RankCall::kCudaDevice));
  std::map<std::string, int> owners{{own.identity, 0}};
  std::string reason;
  for (int rank = 1; rank < ranks.size(); ++rank) {
    const Communicator::Received answer = ranks.receive(rank);
    RankDevice theirs;
    MessageReader(answer.bytes).get(theirs.identity).get(theirs.reason);
    const auto [owner, is_new] = owners.try_emplace(theirs.identity, rank);
    if (!reason.empty()) continue;
    if (!theirs.reason.empty()) {
      reason = "rank " + std::to_string(rank) + ": " + theirs.reason;
    } else if (!is_new) {
      reason = "ranks " + std::to_string(owner->second) + " and " + std::to_string(rank) +
               " have one CUDA device (--device cuda shares it)";
    }
  }
  return reason;
}

// Why "auto" trains on no CUDA devices; empty: it does.
std::string why_not_cuda(Communicator& ranks, ProblemKind problem) {
  try {
    require_cuda_gradient(problem);
  } catch (const DeviceError& error) {
    return error.what();
  }
  return missing_device(ranks);
}

// What each rank of a training computes on: "cpu", or a CUDA device, "auto" where each has one of its own.
// note: why "auto" is the CPU where the program was built with CUDA.
BackendOptions training_options(Communicator& ranks, BackendOptions options, std::string& note) {
  if (options.device.starts_with("check"))
    throw DeviceError("device " + options.device + ": training on several ranks has no two devices a rank");
  std::string reason = "device cpu was asked for";
  if (options.device == "auto") {
    reason = why_not_cuda(ranks, options.learned.value());
    options.device = reason.empty() ? "cuda" : "cpu";
    if (!reason.empty() && !find_cuda_module().empty()) note = "using the CPU; " + reason;
  }
  if (options.device == "cpu" && options.precision != Precision::kFp32) {
    throw DeviceError(std::string("precision ") + name_of(options.precision) +
                      " needs a CUDA device on every rank: " + reason);
  }
  return options;
}

// The options alone, as what a rank is told of a training.
std::string untrained_checkpoint(const TrainOptions& options) {
  TrainState state;
  state.parameters.resize(ParameterLayout(options.model).size);
  state.optimiser.first_moment.resize(state.parameters.size());
  state.optimiser.second_moment.resize(state.parameters.size());
  return checkpoint_bytes(options, state);
}

// A rank that serves.
struct Server {
  Communicator& ranks;
  const std::function<bool()>& interrupted;
  std::optional<Engine> engine = {};
  std::vector<std::unique_ptr<Model>> models = {};

  // False: it was the last call.
  bool serve_next() {
    const Communicator::Received received = ranks.receive(0);
    MessageReader message(received.bytes);
    const auto call = message.next<RankCall>();
    if (call == RankCall::kEnd) return false;
    if (call == RankCall::kEngine) {
      engine.emplace(options_of_rank(take_backend_options(message), ranks));
    } else if (call == RankCall::kModel) {
      models.push_back(std::make_unique<Model>(take_model(message)));
    } else if (call == RankCall::kSolve) {
      solve(message);
    } else if (call == RankCall::kScore) {
      score(message);
    } else if (call == RankCall::kCudaDevice) {
      const RankDevice own = own_device(ranks);
      ranks.send(0, MessageWriter().put(own.identity).put(own.reason).bytes());
    } else if (call == RankCall::kBackend) {
      serve_backend(options_of_rank(take_backend_options(message), ranks));
    } else if (call == RankCall::kTrainAlone) {
      train_alone(message);
    } else {
      throw std::logic_error("no such call of another rank");
    }
    return true;
  }

  const Model* take_model_number(MessageReader& message) {
    const auto number = message.next<int32_t>();
    return number < 0 ? nullptr : models.at(static_cast<size_t>(number)).get();
  }

  void solve(MessageReader& message) {
    const Model* const model = take_model_number(message);
    const SolveOptions options = take_solve_options(message);
    SearchControl control = take_limits(message);
    control.interrupted = interrupted;
    auto rows = message.next<std::vector<uint64_t>>();
    const InstanceBatch instances = take_instances(message);
    MessageWriter solutions;
    SolveJob job(instances, 0, options, control,
                 [&](size_t, Solution&& solution) { put(solutions, solution); });
    job.rows = std::move(rows);
    const SolveReport report = engine.value().solve(model, job);
    ranks.send(0, MessageWriter().put(report).bytes() + solutions.bytes());
  }

  void score(MessageReader& message) {
    const Model* const model = take_model_number(message);
    const auto temperature = message.next<float>();
    const InstanceBatch instances = take_instances(message);
    SolutionBatch solutions;
    for (size_t i = 0; i < instances.size(); ++i) solutions.push_back(take_solution(message));
    const std::vector<double> scores =
        engine.value().score(*model, instances, solutions, temperature, StopToken(interrupted));
    ranks.send(0, MessageWriter().put(scores).bytes());
  }

  void serve_backend(const BackendOptions& own) {
    serve_cluster_backend(ranks, own.device == "cpu" ? nullptr : make_backend(own), own.threads);
  }

  // Writes nothing and validates nothing to speak of: rank 0 does.
  void train_alone(MessageReader& message) {
    const auto backend = asynchronous_backend(ranks, take_backend_options(message));
    const Checkpoint told = parse_checkpoint(message.next<std::string>(), "the options of rank 0");
    TrainOptions options = told.options;
    options.validation_instances = 2;
    options.validation_every = std::numeric_limits<int64_t>::max();
    options.checkpoint_every = std::numeric_limits<int>::max();
    // A signal that rank 0 has, too, must end it with the steps that were made.
    train(*backend, {options, told.state.parameters, {}, {}, {}, backend.get()});
  }
};

}  // namespace

BackendOptions options_of_rank(BackendOptions options, const Communicator& ranks) {
  if (ranks.local_size() == 1) return options;
  const int cores = static_cast<int>(std::thread::hardware_concurrency());  // that this process may use
  if (options.threads == 0 && cores >= sysconf(_SC_NPROCESSORS_ONLN))
    options.threads = std::max(1, cores / ranks.local_size());
  if ((options.device == "auto" || options.device == "cuda") && !find_cuda_module().empty()) {
    const CudaStatus cuda = cuda_status();
    if (cuda.devices.empty()) return options;
    options.auto_index = static_cast<int>(device_number(ranks, cuda));
    if (options.device == "cuda") options.device += ":" + std::to_string(options.auto_index);
  }
  return options;
}

int32_t Ranks::number_of(const Model* model) {
  if (!std::exchange(is_open_, true)) tell(ranks_, put(MessageWriter().put(RankCall::kEngine), options_));
  if (model == nullptr) return -1;
  const auto [at, is_new] = known_.try_emplace(model, static_cast<int32_t>(known_.size()));
  if (is_new) tell(ranks_, put(MessageWriter().put(RankCall::kModel), *model));
  return at->second;
}

SolveReport Ranks::solve(Engine& own, const Model* model, const SolveJob& job) {
  if (is_alone(job.size())) {
    if (ranks_.size() == 1 || job.options.mode != Mode::kActive ||
        !own.learns_on_cpu(job.instances[0]->problem))
      return own.solve(model, job);
    std::vector<std::unique_ptr<Backend>> all;
    all.push_back(backend_of_all(ranks_, {"cpu", options_.threads}));
    return Engine(std::move(all)).solve(model, job);
  }
  const Clock::time_point start = Clock::now();
  const int32_t number = number_of(model);
  std::mutex mutex;  // of what follows
  AnswersInOrder answers(job.sink);
  SolveReport report;
  const auto here = [&](const WorkPiece& piece) {
    SolveJob part = job_of(piece, ranks_.size(), job);
    part.sink = [&](size_t i, Solution&& solution) {
      const std::lock_guard lock(mutex);
      answers.put(piece.places[i], std::move(solution));
    };
    const SolveReport done = own.solve(model, part);
    const std::lock_guard lock(mutex);
    merge(report, done);
  };
  const auto message = [&](const WorkPiece& piece) {
    const SolveJob part = job_of(piece, ranks_.size(), job);
    MessageWriter writer;
    put(put(writer.put(RankCall::kSolve).put(number), part.options), part.control);
    writer.put(part.rows);
    return put_instances(writer, part.instances).bytes();
  };
  share_work(ranks_, work_of(job.instances), here, message,
             [&](const WorkPiece& piece, std::string_view bytes) {
               MessageReader reader(bytes);
               const std::lock_guard lock(mutex);
               merge(report, reader.next<SolveReport>());
               for (const size_t place : piece.places) answers.put(place, take_solution(reader));
             });
  report.solving_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  return report;
}

std::vector<double> Ranks::score(Engine& own, const Model& model, std::span<const Instance> instances,
                                 std::span<const Solution> solutions, float temperature,
                                 const StopToken& stop) {
  if (is_alone(instances.size())) return own.score(model, instances, solutions, temperature, stop);
  const int32_t number = number_of(&model);
  const InstancePointers pointers = pointers_to(instances);
  std::vector<double> scores(instances.size());
  const auto take = [&](const WorkPiece& piece, const std::vector<double>& part) {
    for (size_t i = 0; i < piece.places.size(); ++i) scores[piece.places[i]] = part.at(i);
  };
  const auto here = [&](const WorkPiece& piece) {
    take(piece, own.score(model, chosen(instances, piece.places), chosen(solutions, piece.places),
                          temperature, stop));
  };
  const auto message = [&](const WorkPiece& piece) {
    MessageWriter writer;
    writer.put(RankCall::kScore).put(number).put(temperature);
    put_instances(writer, chosen(std::span(pointers), piece.places));
    for (const size_t place : piece.places) put(writer, solutions[place]);
    return writer.bytes();
  };
  share_work(ranks_, work_of(pointers), here, message, [&](const WorkPiece& piece, std::string_view bytes) {
    take(piece, MessageReader(bytes).next<std::vector<double>>());
  });
  return scores;
}

void serve_rank(Communicator& ranks, const std::function<bool()>& interrupted) {
  Server server{ranks, interrupted};
  while (server.serve_next()) {
  }
}

RankedTraining ranked_training(Communicator& ranks, const BackendOptions& options,
                               const TrainOptions* asynchronous) {
  if (ranks.size() == 1) return {Engine(options)};
  std::string note;
  const BackendOptions each = training_options(ranks, options, note);
  std::vector<std::unique_ptr<Backend>> backends;
  SharedSteps* shared = nullptr;
  if (asynchronous == nullptr) {
    backends.push_back(backend_of_all(ranks, each));
  } else {
    MessageWriter message;
    put(message.put(RankCall::kTrainAlone), each).put(untrained_checkpoint(*asynchronous));
    auto backend = asynchronous_backend(ranks, each);
    shared = backend.get();
    backends.push_back(std::move(backend));
    tell(ranks, message);
  }
  return {Engine(std::move(backends), note), shared};
}

void end_ranks(Communicator& ranks) { tell(ranks, MessageWriter().put(RankCall::kEnd)); }

}  // namespace pointsman
