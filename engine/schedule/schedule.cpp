// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/schedule.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>

#include "engine/problem/problem.h"
#include "engine/search/heuristics.h"
#include "engine/search/limits.h"
#include "kernels/tools/worker_threads.h"

namespace pointsman {

namespace {

// For parameters, gradients and moments of active search's instances: in the host's memory, in a device's
// own.
constexpr double kHostBytes = 128.0 * (1 << 20), kDeviceBytes = 32.0 * kHostBytes;
constexpr double kSearchShare = 0.9;  // of a batch's time, where improvement follows the search
constexpr double kStartShare = 0.25;  // the same where improvement goes on until the limit
constexpr int kSearchersBeside = 2;   // those in calls, for each device that leaves the host free
constexpr size_t kBatchesAhead = 2;   // of each device, searched and not yet improved
// For the only instance's first answer, less what a quick one of its items would take.
constexpr auto kPatience = std::chrono::nanoseconds(std::chrono::milliseconds(250)),
               kQuickItem = std::chrono::nanoseconds(500);

// How many instances like this one call of run_search() is given: enough to fill the device, few enough that
// memory stays bounded. share: of all instances, a device's.
int64_t chosen_batch_size(const DeviceInfo& device, const SolvePlan& plan, const Instance& instance,
                          int64_t share) {
  const int64_t largest = largest_call(problem_of(instance), instance.n());
  if (plan.batch_size) return *plan.batch_size;
  if (std::holds_alternative<TwoOptOptions>(plan.search)) return std::min(largest, share);
  if (const auto* active = std::get_if<ActiveSearchOptions>(&plan.search)) {
    const auto most = static_cast<int64_t>((device.uses_host ? kHostBytes : kDeviceBytes) /
                                           (4.0 * sizeof(float) * active->initial.size()));
    return std::clamp<int64_t>(device.rollouts / active->replicas, 1, std::max<int64_t>(most, 1));
  }
  const int64_t samples = std::get<SamplingOptions>(plan.search).samples;
  return std::clamp<int64_t>(largest / std::max<int64_t>(samples, 1), 1, 4096);
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
    if (found != open.end() && static_cast<int64_t>(batches[found->second].size()) <
                                   chosen_batch_size(device, plan, *instances[i], share)) {
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
  size_t number = 0;           // of the batch
  std::vector<size_t> places;  // in the input
  SearchBatch batch;           // empty where no search came to it
  SearchControl control;       // with the batch's part of the time
  SearchResult found;
  std::exception_ptr error;  // what the search threw
};

// The best answer after local search from each candidate; ties go to the one the network liked better. The
// first candidate is improved past the deadline too, until the run ends: that costs about as much as the one
// rollout behind it.
Solution improve_candidates(const Instance& instance, std::vector<Solution> candidates,
                            const ImproveOptions& options, const SearchControl& control,
                            WorkerThreads* workers) {
  if (!has_answer(candidates.front())) return std::move(candidates.front());
  const double network_objective = candidates.front().objective;
  SearchControl to_the_end = {control.last(), control.interrupted};
  to_the_end.report.on_best = control.report.on_best;
  std::unique_ptr<LocalSearch> search;
  try {
    search = make_local_search(instance, options, to_the_end);
  } catch (const CallStopped&) {  // no time for a first look: the network's answer stands
    candidates.front().status = control.check();
    return std::move(candidates.front());
  }
  bool finished = search->descend(candidates.front(), to_the_end);
  for (size_t i = 1; i < candidates.size() && finished; ++i)
    finished = search->descend(candidates[i], control);
  Solution best = std::move(*std::min_element(
      candidates.begin(), candidates.end(),
      [&](const Solution& a, const Solution& b) { return is_better(instance.problem, a, b); }));
  best.network_objective = network_objective;
  if (finished && options.kicks != 0) finished = search->improve(best, control, workers);
  if (!finished && best.status == Status::kDone) best.status = control.check();
  return best;
}

// How many instances the host's threads work on: one each, or all of them on each of a few large ones.
int searched_at_once(const WorkerThreads& workers, int64_t count, const Problem& problem, int largest) {
  return count < workers.count() && divides(problem, largest) ? 1 : workers.count();
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
void solve_one_by_one(int threads, const InstanceSearch& search, const SolveJob& job) {
  std::vector<double> work_left(job.size() + 1, 0.0);  // from each instance on
  int largest = 0;
  for (size_t i = job.size(); i-- > 0;) {
    work_left[i] = work_left[i + 1] + rollout_work(job.instances[i]->n());
    largest = std::max(largest, job.instances[i]->n());
  }
  const auto count = static_cast<int64_t>(job.size());
  WorkerThreads workers(threads);
  const int at_once = searched_at_once(workers, count, problem_of(*job.instances[0]), largest);
  AnswersInOrder out(job.sink);
  std::mutex mutex;
  std::vector<char> is_searched(job.size(), false);
  for_each_instance(workers, count, at_once, [&](int64_t i, WorkerThreads* helpers) {
    if (job.control.is_over()) return;  // a million at a limit would all wait for the lock
    const Instance& instance = *job.instances[i];
    const double work = at_once * rollout_work(instance.n());
    Solution answer = search(instance, instance_key(instance, job.rows[i]),
                             limit_each(share_time(job.control, work, work_left[i]), 1), helpers);
    is_searched[i] = true;
    const std::lock_guard lock(mutex);
    out.put(static_cast<size_t>(i), std::move(answer));
  });
  for (size_t i = 0; i < job.size(); ++i) {
    if (!is_searched[i]) out.put(i, unsolved());
  }
}

// What some threads leave for others, in order, at most `capacity` at once.
template <typename T>
class Handover {
 public:
  explicit Handover(size_t capacity = SIZE_MAX) : capacity_(capacity) {}

  // Waits for room, or for a stop.
  void put(T&& item, const std::stop_token& stop = {}) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [&] { return items_.size() < capacity_; });
    items_.push_back(std::move(item));
    changed_.notify_all();
  }

  // Waits for an item; none: the stop came first.
  std::optional<T> take(const std::stop_token& stop = {}) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [&] { return !items_.empty(); })) return std::nullopt;
    T item = std::move(items_.front());
    items_.pop_front();
    changed_.notify_all();
    return item;
  }

 private:
  const size_t capacity_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<T> items_;
};

// Batches on their way from search to improvement, in memory for a few. Several threads may search at once:
// while one packs sequences or sorts out answers, another one's call keeps the device busy.
using BatchQueue = Handover<SearchedBatch>;

// What the searchers of a device share: as many callers as the device takes calls at once. They answer in the
// order in which the searchers come, so that under a time limit each has its turns. A caller begins the next
// call in the moment in which one ends; a searcher's own thread would first have to be woken.
class SharedDevice {
 public:
  SharedDevice(Backend& device, bool has_callers) : backend(device) {
    if (!has_callers) return;
    for (int i = 0; i < backend.info().calls; ++i) {
      callers_.emplace_back([this](const std::stop_token& stop) {
        while (auto call = waiting_.take(stop)) (*call)();
      });
    }
  }

  void rollout(const RolloutRequest& request, RolloutResult& result) {
    if (callers_.empty()) return backend.rollout(request, result);
    std::packaged_task<void()> call([&] { backend.rollout(request, result); });
    std::future<void> answer = call.get_future();
    waiting_.put(std::move(call));
    answer.get();
  }

  Backend& backend;

 private:
  Handover<std::packaged_task<void()>> waiting_;
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
    // Sampling alone has work for the host between two calls, which another searcher's call fills.
    const bool ahead = !info_.uses_host && std::holds_alternative<SamplingOptions>(plan.search);
    const auto most = static_cast<size_t>(ahead ? info_.calls + kSearchersBeside : 1);  // of a device
    searchers_ = static_cast<int>(std::clamp<size_t>(cut_.size(), 1, devices.size() * most));
    const bool shared = searchers_ > static_cast<int>(devices.size());
    for (Backend* device : devices) devices_.emplace_back(*device, shared);
    for (const Instance* instance : job.instances) work_left_ += rollout_work(instance->n());
  }

  PolicyStatistics run() {
    AnswersInOrder out(job_.sink);
    if (searchers_ > 1) {
      run_ahead(out);
    } else {
      while (auto batch = next_batch()) {
        search(*batch, devices_[0]);
        finish(std::move(*batch), out);
      }
    }
    PolicyStatistics all;
    for (const PolicyStatistics& statistics : statistics_) all += statistics;
    return all;
  }

 private:
  // The devices' threads search batches, this one improves them and hands them out.
  void run_ahead(AnswersInOrder& out) {
    BatchQueue queue(kBatchesAhead * devices_.size());
    std::vector<std::jthread> searchers;  // which end before the queue
    for (int i = 0; i < searchers_; ++i) {
      SharedDevice& device = devices_[i % devices_.size()];
      searchers.emplace_back([&](const std::stop_token& stop) { search_all(device, queue, stop); });
    }
    try {
      for (size_t i = 0; i < cut_.size(); ++i) finish(*queue.take(), out);
    } catch (...) {
      for (std::jthread& searcher : searchers) searcher.request_stop();  // all, before one is waited for
      throw;
    }
  }

  void search_all(SharedDevice& device, BatchQueue& queue, const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      SearchedBatch searched;
      try {
        auto next = next_batch();
        if (!next) return;
        searched = std::move(*next);
        search(searched, device);
      } catch (...) {
        searched.error = std::current_exception();
      }
      const bool failed = searched.error != nullptr;
      queue.put(std::move(searched), stop);
      if (failed) return;
    }
  }

  // The next one and its part of the time, in which all searchers share the devices.
  std::optional<SearchedBatch> next_batch() {
    const std::lock_guard lock(next_mutex_);
    if (next_ == cut_.size()) return std::nullopt;
    SearchedBatch next;
    next.number = next_++;
    next.places = std::move(cut_[next.number]);
    const Instance& first = *job_.instances[next.places[0]];
    const int n = first.n();
    const auto count = static_cast<int64_t>(next.places.size());
    const double work = static_cast<double>(count) * rollout_work(n);
    const int at_once = searched_at_once(workers_, count, problem_of(first), n);
    next.control =
        limit_each(share_time(job_.control, searchers_ * work, work_left_), (count + at_once - 1) / at_once);
    work_left_ -= work;
    if (job_.control.report.trace)
      job_.control.report.trace("batch: " + std::to_string(count) + " instances of n = " + std::to_string(n));
    return next;
  }

  // Samplers, as many as there are threads of them, call the device by turns; any other search has it alone.
  void search(SearchedBatch& searched, SharedDevice& device) {
    if (searched.control.is_over()) return;
    SearchBatch& batch = searched.batch;
    for (const size_t place : searched.places) {
      batch.instances.push_back(job_.instances[place]);
      batch.keys.push_back(instance_key(*job_.instances[place], job_.rows[place]));
    }
    SearchControl control = searched.control;
    if (improves(*batch.instances[0])) {
      const bool until_limit = !plan_.improve->kicks && plan_.improve->fills_limit;
      control = share_time(control, until_limit ? kStartShare : kSearchShare, 1.0);
    }
    if (const auto* active = std::get_if<ActiveSearchOptions>(&plan_.search)) {
      ActiveSearchOptions options = *active;
      if (active->on_step) {
        const auto report = [this, active](const ActiveSearchProgress& progress) {
          const std::lock_guard lock(report_mutex_);
          active->on_step(progress);
        };
        options.on_step = report_places(report, searched.places);
      }
      searched.found = run_search(device.backend, config_, batch, options, control);
    } else if (const auto* tours = std::get_if<TwoOptOptions>(&plan_.search)) {
      searched.found = run_search(device.backend, batch, *tours, control);
    } else {
      const RolloutCall rollout = [&](const auto& request, auto& result) { device.rollout(request, result); };
      searched.found = run_search(rollout, config_, batch, std::get<SamplingOptions>(plan_.search), control);
    }
  }

  bool improves(const Instance& instance) const {
    return plan_.improve && problem_of(instance).has_local_search;
  }

  // Improves a batch.
  void finish(SearchedBatch&& searched, AnswersInOrder& out) {
    if (searched.error) std::rethrow_exception(searched.error);
    statistics_[searched.number] = searched.found.statistics;
    if (searched.batch.instances.empty()) {  // the end of the run came before its search
      for (const size_t place : searched.places) out.put(place, unsolved());
      return;
    }
    const Instance& first = *searched.batch.instances[0];
    SolutionBatch answers(searched.places.size());
    const auto count = static_cast<int64_t>(answers.size());
    const int at_once = searched_at_once(workers_, count, problem_of(first), first.n());
    for_each_instance(workers_, count, at_once, [&](int64_t i, WorkerThreads* helpers) {
      const Instance& instance = *searched.batch.instances[i];
      std::vector<Solution>& found = searched.found.candidates[i];
      const SearchControl turn = share_time(searched.control, at_once, static_cast<double>(count - i));
      answers[i] = improves(instance)
                       ? improve_candidates(instance, std::move(found), *plan_.improve, turn, helpers)
                       : std::move(found.front());
    });
    for (size_t i = 0; i < answers.size(); ++i) out.put(searched.places[i], std::move(answers[i]));
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

}  // namespace

PolicyStatistics solve_instances(const Devices& devices, const ModelConfig& config, const SolvePlan& plan,
                                 const SolveJob& job) {
  SolveJob told = job;
  const bool is_alone = job.size() == 1 && job.control.deadline && !job.control.end;
  if (is_alone) {
    const auto quick = job.instances[0]->n() * kQuickItem;
    told.control.end = *job.control.deadline + std::max(kPatience - quick, std::chrono::nanoseconds(0));
  }
  told.sink = [&](size_t i, Solution&& answer) {
    const auto answer_quickly = [&](bool may) {
      if (may && answer.status == Status::kUnsolved)
        answer = quick_answer(*job.instances[i], Status::kTimeLimit);
    };
    answer_quickly(job.control.each && !told.control.is_over());  // only its own limit was too short
    if (plan.start != Start::kNone && has_answer(answer)) answer.start = plan.start;
    answer_quickly(is_alone && job.control.check() == Status::kTimeLimit);
    if (answer.violation > 0) {
      // Infeasible is said after a search that was not cut short, or not before its default number of kicks.
      const int64_t wanted = default_kicks(problem_of(*job.instances[i]), job.instances[i]->n());
      const bool was_searched =
          answer.status == Status::kDone || (answer.status == Status::kTimeLimit && answer.kicks >= wanted);
      const int64_t redrawn = answer.redrawn;
      answer = was_searched ? infeasible(answer.violation) : unsolved();
      answer.redrawn = redrawn;
    }
    job.sink(i, std::move(answer));
  };
  const auto* const one_by_one = std::get_if<InstanceSearch>(&plan.search);
  if (one_by_one == nullptr) return Scheduler(devices, config, plan, told).run();
  solve_one_by_one(std::max(devices.front()->info().threads, 1), *one_by_one, told);
  return {};
}

}  // namespace pointsman
