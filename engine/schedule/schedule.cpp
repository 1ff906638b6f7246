// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/schedule.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "engine/problem/problem.h"
#include "engine/schedule/answers_in_order.h"
#include "engine/search/heuristics.h"
#include "engine/search/limits.h"
#include "kernels/tools/worker_threads.h"

namespace pointsman {

namespace {

constexpr double kSearchShare = 0.9;  // of a batch's time, where improvement follows the search
constexpr double kStartShare = 0.25;  // the same where improvement goes on until the limit
constexpr int kSearchersBeside = 2;   // those in calls, for each device that leaves the host free
constexpr size_t kBatchesAhead = 2;   // of each device, searched and not yet improved
// For the only instance's first answer, less what a quick one of its items would take.
constexpr auto kPatience = std::chrono::nanoseconds(std::chrono::milliseconds(250)),
               kQuickItem = std::chrono::nanoseconds(500);

using Candidates = std::vector<Solution>;  // of one instance, best first

// share: of all instances, a device's.
int chosen_batch_size(const DeviceInfo& device, const SolvePlan& plan, int n, int64_t share) {
  if (plan.batch_size) return *plan.batch_size;
  if (const auto* active = std::get_if<ActiveSearchOptions>(&plan.search))
    return instances_at_once(*active, device);
  if (const auto* tours = std::get_if<TwoOptOptions>(&plan.search))
    return instances_at_once(*tours, n, share);
  return instances_at_once(std::get<SamplingOptions>(plan.search), n);
}

// Instances of one size, by their places in the input, in the order of their first ones.
std::vector<std::vector<size_t>> cut_batches(const DeviceInfo& device, size_t devices, const SolvePlan& plan,
                                             const InstancePointers& instances) {
  const auto share = static_cast<int64_t>((instances.size() + devices - 1) / devices);
  std::vector<std::vector<size_t>> batches;
  std::map<int, size_t> open;  // n -> the batch of that size that is not full
  for (size_t i = 0; i < instances.size(); ++i) {
    const int n = instances[i]->n();
    const auto found = open.find(n);
    if (found != open.end() &&
        static_cast<int>(batches[found->second].size()) < chosen_batch_size(device, plan, n, share)) {
      batches[found->second].push_back(i);
    } else {
      open[n] = batches.size();
      batches.push_back({i});
    }
  }
  return batches;
}

// Instances that are handled together, and what their search found.
struct SearchedBatch {
  size_t number;               // of the batch
  std::vector<size_t> places;  // in the input
  InstancePointers instances;  // empty where no search came to them
  std::vector<uint64_t> keys;
  SearchControl control;  // with the batch's part of the time
  std::vector<Candidates> candidates;
  PolicyStatistics statistics;
};

// The best answer after local search from each candidate; ties go to the one the network liked better. The
// first candidate is improved past the deadline too, until the run ends: that costs about as much as the one
// rollout behind it.
Solution improve_candidates(const Instance& instance, Candidates candidates, const ImproveOptions& options,
                            const SearchControl& control, WorkerThreads* workers) {
  if (candidates.front().status == Status::kUnsolved) return std::move(candidates.front());
  const double network_objective = candidates.front().objective;
  SearchControl to_the_end = {control.end ? control.end : control.deadline, control.interrupted};
  to_the_end.on_best = control.on_best;
  std::optional<TourSearch> search;
  try {
    search.emplace(instance, options, to_the_end);
  } catch (const CallStopped&) {  // no time for a first look: the network's answer stands
    candidates.front().status = control.check();
    return std::move(candidates.front());
  }
  bool finished = search->descend(candidates.front(), to_the_end);
  for (size_t i = 1; i < candidates.size() && finished; ++i)
    finished = search->descend(candidates[i], control);
  Solution best = std::move(
      *std::min_element(candidates.begin(), candidates.end(), [&](const Solution& a, const Solution& b) {
        return is_better(instance.problem, a.objective, b.objective);
      }));
  best.network_objective = network_objective;
  if (finished && options.kicks != 0) finished = search->improve(best, control, workers);
  if (!finished && best.status == Status::kDone) best.status = control.check();
  return best;
}

// Hands out an answer. An instance that no search came to, where only its own limit was too short, gets a
// quick one.
void hand_out(const SolvePlan& plan, const SolveJob& job, size_t place, Solution&& answer,
              AnswersInOrder& out) {
  if (answer.status == Status::kUnsolved && job.control.each && !job.control.is_over())
    answer = quick_answer(*job.instances[place], Status::kTimeLimit);
  if (plan.start != Start::kNone && answer.status != Status::kUnsolved) answer.start = plan.start;
  out.put(place, std::move(answer));
}

// How many instances the host's threads work on: one each, or all of them on each of a few large ones.
int searched_at_once(const WorkerThreads& workers, int64_t count, int largest) {
  return count < workers.count() && TourSearch::divides(largest) ? 1 : workers.count();
}

// Calls work(i, threads it may use or null) for each of `count` instances.
template <typename Work>
void for_each_instance(WorkerThreads& workers, int64_t count, int at_once, const Work& work) {
  if (at_once == workers.count()) {
    workers.for_each(count, [&](int64_t i, int) { work(i, nullptr); });
  } else {
    for (int64_t i = 0; i < count; ++i) work(i, &workers);
  }
}

// Takes instances of any sizes one by one. Each answer leaves as soon as it and those before it are there.
void solve_one_by_one(WorkerThreads& workers, const InstanceSearch& search, const SolvePlan& plan,
                      const SolveJob& job, AnswersInOrder& out) {
  std::vector<double> work_left(job.size() + 1, 0.0);  // from each instance on
  int largest = 0;
  for (size_t i = job.size(); i-- > 0;) {
    work_left[i] = work_left[i + 1] + rollout_work(job.instances[i]->n());
    largest = std::max(largest, job.instances[i]->n());
  }
  const auto count = static_cast<int64_t>(job.size());
  const int at_once = searched_at_once(workers, count, largest);
  std::mutex mutex;
  std::vector<char> is_searched(job.size(), false);
  for_each_instance(workers, count, at_once, [&](int64_t i, WorkerThreads* helpers) {
    if (job.control.is_over()) return;
    const Instance& instance = *job.instances[i];
    const double work = at_once * rollout_work(instance.n());
    Solution answer = search(instance, instance_key(instance, job.rows[i]),
                             limit_each(share_time(job.control, work, work_left[i]), 1), helpers);
    is_searched[i] = true;
    const std::lock_guard lock(mutex);
    hand_out(plan, job, static_cast<size_t>(i), std::move(answer), out);
  });
  for (size_t i = 0; i < job.size(); ++i) {
    if (!is_searched[i]) hand_out(plan, job, i, unsolved(), out);
  }
}

// Batches on their way from search to improvement, in memory for a few. Several threads may search at once:
// while one packs sequences or sorts out answers, another one's call keeps the device busy.
class BatchQueue {
 public:
  explicit BatchQueue(size_t capacity) : capacity_(capacity) {}

  // For searching threads. False when nobody waits for batches any more, or a search failed.
  bool put(SearchedBatch&& batch) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_ || batches_.size() < capacity_; });
    if (ended_) return false;
    batches_.push_back(std::move(batch));
    changed_.notify_all();
    return true;
  }
  void fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
    ended_ = true;
    changed_.notify_all();
  }

  // For the thread that improves. Rethrows what a search threw, after the batches that came before it.
  SearchedBatch take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return error_ || !batches_.empty(); });
    if (batches_.empty()) std::rethrow_exception(error_);
    SearchedBatch batch = std::move(batches_.front());
    batches_.pop_front();
    changed_.notify_all();
    return batch;
  }
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

 private:
  const size_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<SearchedBatch> batches_;
  std::exception_ptr error_;
  bool ended_ = false;
};

// What the searchers of a device share: as many callers as the device takes calls at once. They answer in the
// order in which the searchers come, so that under a time limit each has its turns. A caller begins the next
// call in the moment in which one ends; a searcher's own thread would first have to be woken.
class SharedDevice {
 public:
  SharedDevice(Backend& device, bool has_callers) : backend(device) {
    if (!has_callers) return;
    for (int i = 0; i < backend.info().calls; ++i)
      callers_.emplace_back([this](const std::stop_token& stop) { answer_calls(stop); });
  }

  void rollout(const RolloutRequest& request, RolloutResult& result) {
    if (callers_.empty()) return backend.rollout(request, result);
    Call call = {request, result};
    std::unique_lock lock(mutex_);
    waiting_.push_back(&call);
    called_.notify_one();
    call.answered.wait(lock, [&] { return call.is_answered; });
    if (call.error) std::rethrow_exception(call.error);
  }

  Backend& backend;

 private:
  struct Call {
    const RolloutRequest& request;
    RolloutResult& result;
    std::condition_variable answered{};
    bool is_answered = false;
    std::exception_ptr error = nullptr;
  };

  void answer_calls(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (called_.wait(lock, stop, [&] { return !waiting_.empty(); })) {
      Call& call = *waiting_.front();
      waiting_.pop_front();
      lock.unlock();
      try {
        backend.rollout(call.request, call.result);
      } catch (...) {
        call.error = std::current_exception();
      }
      lock.lock();
      call.is_answered = true;
      call.answered.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any called_;
  std::deque<Call*> waiting_;
  std::vector<std::jthread> callers_;
};

class Scheduler {
 public:
  Scheduler(const Devices& devices, const ModelConfig& config, const SolvePlan& plan, const SolveJob& job)
      : config_(config),
        plan_(plan),
        job_(job),
        info_(devices.at(0)->info()),
        workers_(std::max(info_.threads, 1)),
        cut_(cut_batches(info_, devices.size(), plan, job.instances)),
        statistics_(cut_.size()) {
    searchers_ = static_cast<int>(std::clamp<size_t>(cut_.size(), 1, devices.size() * most_searchers()));
    const bool shared = searchers_ > static_cast<int>(devices.size());
    for (Backend* device : devices) devices_.emplace_back(*device, shared);
    for (const Instance* instance : job.instances) work_left_ += rollout_work(instance->n());
  }

  PolicyStatistics run() {
    AnswersInOrder out(job_.sink);
    if (searchers_ > 1) {
      run_ahead(out);
    } else {
      while (auto batch = next_batch()) finish(search(std::move(*batch), devices_[0]), out);
    }
    PolicyStatistics all;
    for (const PolicyStatistics& statistics : statistics_) all += statistics;
    return all;
  }

 private:
  // Of each device. Sampling alone has work for the host between two calls, which another searcher's call
  // fills.
  size_t most_searchers() const {
    const bool ahead = !info_.uses_host && std::holds_alternative<SamplingOptions>(plan_.search);
    return static_cast<size_t>(ahead ? info_.calls + kSearchersBeside : 1);
  }

  // The devices' threads search batches, this one improves them and hands them out.
  void run_ahead(AnswersInOrder& out) {
    BatchQueue queue(kBatchesAhead * devices_.size());
    std::vector<std::thread> searchers;
    const auto join = [&] {
      queue.end();
      for (std::thread& searcher : searchers) searcher.join();
    };
    try {
      for (int i = 0; i < searchers_; ++i) {
        SharedDevice& device = devices_[i % devices_.size()];
        searchers.emplace_back([&] { search_all(device, queue); });
      }
      for (size_t i = 0; i < cut_.size(); ++i) finish(queue.take(), out);
    } catch (...) {
      join();
      throw;
    }
    join();
  }

  void search_all(SharedDevice& device, BatchQueue& queue) {
    try {
      while (auto batch = next_batch()) {
        if (!queue.put(search(std::move(*batch), device))) return;
      }
    } catch (...) {
      queue.fail(std::current_exception());
    }
  }

  // The next one and its part of the time, in which all searchers share the devices.
  std::optional<SearchedBatch> next_batch() {
    const std::lock_guard lock(next_mutex_);
    if (next_ == cut_.size()) return std::nullopt;
    SearchedBatch next;
    next.number = next_++;
    next.places = std::move(cut_[next.number]);
    const int n = job_.instances[next.places[0]]->n();
    const double work = static_cast<double>(next.places.size()) * rollout_work(n);
    next.control = share_time(job_.control, searchers_ * work, work_left_);
    const auto count = static_cast<int64_t>(next.places.size());
    const int at_once = searched_at_once(workers_, count, n);
    next.control = limit_each(next.control, (count + at_once - 1) / at_once);
    work_left_ -= work;
    if (job_.control.trace) {
      job_.control.trace("batch: " + std::to_string(next.places.size()) +
                         " instances of n = " + std::to_string(n));
    }
    return next;
  }

  SearchedBatch search(SearchedBatch searched, SharedDevice& device) {
    if (searched.control.is_over()) return searched;
    for (const size_t place : searched.places) {
      searched.instances.push_back(job_.instances[place]);
      searched.keys.push_back(instance_key(*job_.instances[place], job_.rows[place]));
    }
    const SearchControl searching = improves(*searched.instances[0])
                                        ? share_time(searched.control, search_share(), 1.0)
                                        : searched.control;
    if (const auto* active = std::get_if<ActiveSearchOptions>(&plan_.search)) {
      search(searched, *active, searching, device);
    } else if (const auto* tours = std::get_if<TwoOptOptions>(&plan_.search)) {
      take(run_search(device.backend, batch_of(searched), *tours, searching), searched);
    } else {
      search(searched, std::get<SamplingOptions>(plan_.search), searching, device);
    }
    return searched;
  }

  // As many samplers as there are threads of them call the device by turns.
  void search(SearchedBatch& searched, const SamplingOptions& options, const SearchControl& control,
              SharedDevice& device) {
    const RolloutCall rollout = [&device](const RolloutRequest& request, RolloutResult& result) {
      device.rollout(request, result);
    };
    take(run_search(rollout, config_, batch_of(searched), options, control), searched);
  }

  // The only searcher of its device.
  void search(SearchedBatch& searched, ActiveSearchOptions options, const SearchControl& control,
              SharedDevice& device) {
    if (options.on_step) {
      options.on_step = [this, report = std::move(options.on_step)](const ActiveSearchProgress& progress) {
        const std::lock_guard lock(report_mutex_);
        report(progress);
      };
    }
    options.on_step = report_places(std::move(options.on_step), searched.places);
    take(run_search(device.backend, config_, batch_of(searched), options, control), searched);
  }

  static SearchBatch batch_of(const SearchedBatch& searched) { return {searched.instances, searched.keys}; }
  static void take(SearchResult&& result, SearchedBatch& searched) {
    searched.candidates = std::move(result.candidates);
    searched.statistics = result.statistics;
  }

  double search_share() const {
    return plan_.improve->kicks || !plan_.improve->fills_limit ? kSearchShare : kStartShare;
  }

  bool improves(const Instance& instance) const {
    return plan_.improve && problem_of(instance).has_local_search;
  }

  // Improves a batch.
  void finish(SearchedBatch&& searched, AnswersInOrder& out) {
    statistics_[searched.number] = searched.statistics;
    if (searched.instances.empty()) {  // the end of the run came before its search
      for (const size_t place : searched.places) hand_out(plan_, job_, place, unsolved(), out);
      return;
    }
    SolutionBatch answers(searched.candidates.size());
    const auto count = static_cast<int64_t>(answers.size());
    const int at_once = searched_at_once(workers_, count, searched.instances[0]->n());
    for_each_instance(workers_, count, at_once, [&](int64_t i, WorkerThreads* helpers) {
      const Instance& instance = *searched.instances[i];
      Candidates& found = searched.candidates[i];
      const SearchControl turn = share_time(searched.control, at_once, static_cast<double>(count - i));
      answers[i] = improves(instance)
                       ? improve_candidates(instance, std::move(found), *plan_.improve, turn, helpers)
                       : std::move(found.front());
    });
    for (size_t i = 0; i < answers.size(); ++i)
      hand_out(plan_, job_, searched.places[i], std::move(answers[i]), out);
  }

  const ModelConfig& config_;
  const SolvePlan& plan_;
  const SolveJob& job_;
  const DeviceInfo info_;  // of the first device
  WorkerThreads workers_;
  std::deque<SharedDevice> devices_;
  std::mutex report_mutex_;  // of active search's steps
  std::mutex next_mutex_;    // of the batches not yet begun
  std::vector<std::vector<size_t>> cut_;
  int searchers_ = 1;  // at once
  size_t next_ = 0;
  double work_left_ = 0.0;                    // of these
  std::vector<PolicyStatistics> statistics_;  // [batches], summed in their order
};

PolicyStatistics solve_all(const Devices& devices, const ModelConfig& config, const SolvePlan& plan,
                           const SolveJob& job) {
  const auto* const one_by_one = std::get_if<InstanceSearch>(&plan.search);
  if (one_by_one == nullptr) return Scheduler(devices, config, plan, job).run();
  WorkerThreads workers(std::max(devices.front()->info().threads, 1));
  AnswersInOrder out(job.sink);
  solve_one_by_one(workers, *one_by_one, plan, job, out);
  return {};
}

}  // namespace

void share_out(const Devices& devices, int64_t items,
               const std::function<void(int64_t item, Backend& device)>& work) {
  WorkerThreads callers(static_cast<int>(devices.size()));
  callers.for_each(items, [&](int64_t item, int caller) { work(item, *devices[caller]); });
}

PolicyStatistics solve_instances(const Devices& devices, const ModelConfig& config, const SolvePlan& plan,
                                 const SolveJob& job) {
  if (job.size() != 1 || !job.control.deadline || job.control.end)
    return solve_all(devices, config, plan, job);
  SolveJob patient = job;
  const Instance& instance = *job.instances[0];
  patient.control.end =
      *job.control.deadline + std::max(kPatience - instance.n() * kQuickItem, std::chrono::nanoseconds(0));
  patient.sink = [&](size_t, Solution&& solution) {
    if (solution.status == Status::kUnsolved && job.control.check() == Status::kTimeLimit)
      solution = quick_answer(instance, Status::kTimeLimit);
    job.sink(0, std::move(solution));
  };
  return solve_all(devices, config, plan, patient);
}

}  // namespace pointsman
