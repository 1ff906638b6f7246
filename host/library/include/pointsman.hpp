// SPDX-License-Identifier: Apache-2.0
// The C library (pointsman.h, which tells what everything means) for C++17: handles that free themselves, and
// exceptions in place of statuses. Header only.
#pragma once

#include <pointsman.h>

#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace pointsman {

// Names of its own, which a static library's cannot meet.
inline namespace cpp_api {

// code(): POINTSMAN_INTERNAL .. POINTSMAN_CANCELLED; what(): the message; file() and line() where it was
// found, "" and 0 when not known.
class Error : public std::runtime_error {
 public:
  Error(int code, const std::string& message, std::string file = {}, int64_t line = 0)
      : std::runtime_error(message), code_(code), file_(std::move(file)), line_(line) {}
  int code() const { return code_; }
  const std::string& file() const { return file_; }
  int64_t line() const { return line_; }

 private:
  int code_;
  std::string file_;
  int64_t line_;
};

// All members as pointsman_solver_options and pointsman_read_options have them.
struct SolverOptions : pointsman_solver_options {
  SolverOptions() : pointsman_solver_options() { pointsman_solver_options_init(this, sizeof *this); }
};
struct ReadOptions : pointsman_read_options {
  ReadOptions() : pointsman_read_options() { pointsman_read_options_init(this, sizeof *this); }
};

// All members as pointsman_solve_options has them. on_progress, where it is set, takes the place of its
// callback: false cancels the call, which then answers with the best so far. What it throws cancels too and
// is thrown again by the call.
struct SolveOptions : pointsman_solve_options {
  SolveOptions() : pointsman_solve_options() {
    pointsman_solve_options_init(this, sizeof(pointsman_solve_options));
  }
  std::function<bool(const pointsman_progress&)> on_progress;
};

// Frees with itself what the C library made.
template <typename Own, void (*kFree)(Own*)>
class Handle {
 public:
  explicit Handle(Own* own = nullptr) : own_(own) {}
  Own* get() const { return own_.get(); }

 private:
  struct Free {
    void operator()(Own* own) const { kFree(own); }
  };
  std::unique_ptr<Own, Free> own_;
};

// A series of instances.
struct Instances : Handle<pointsman_instances, pointsman_instances_free> {
  using Handle::Handle;

  size_t size() const { return pointsman_instances_count(get()); }
  // What it points to lives as long as this and until something is added.
  pointsman_instance operator[](size_t index) const {
    pointsman_instance instance;
    pointsman_instance_init(&instance, sizeof instance);
    if (pointsman_instances_get(get(), index, &instance) != POINTSMAN_OK)
      throw std::out_of_range("pointsman::Instances");
    return instance;
  }
};

// An answer that stands for itself: as pointsman_answer, with the order as a vector.
struct Answer : pointsman_answer {
  std::vector<int32_t> items;  // the tour or the items taken; empty when unsolved or infeasible
};

// The answers to a series.
struct Answers : Handle<pointsman_answers, pointsman_answers_free> {
  using Handle::Handle;

  size_t size() const { return pointsman_answers_count(get()); }
  Answer operator[](size_t index) const {
    Answer answer;
    pointsman_answer_init(&answer, sizeof(pointsman_answer));
    if (pointsman_answers_get(get(), index, &answer) != POINTSMAN_OK)
      throw std::out_of_range("pointsman::Answers");
    if (answer.order != nullptr) answer.items.assign(answer.order, answer.order + answer.length);
    answer.order = nullptr;  // of the handle, which may go first
    return answer;
  }
};

class Model;

// As pointsman_problem_options, with functions of C++ in place of its own, and pairs in place of `before`.
// What a function throws ends the call, and is thrown again by it.
struct ProblemOptions : pointsman_problem_options {
  ProblemOptions() : pointsman_problem_options() {
    pointsman_problem_options_init(this, sizeof(pointsman_problem_options));
  }
  std::function<void(const double* items, const int64_t* orders, size_t count, size_t n, double* costs)>
      on_cost;
  std::function<void(uint64_t seed, uint64_t first, size_t count, size_t n, double* items)> on_draw;
  std::vector<std::pair<int32_t, int32_t>> pairs_before;
};

// As pointsman_train_options: `flags` in place of its `options`, `from` of its `init`, on_progress of its
// callback; false ends the training.
struct TrainOptions : pointsman_train_options {
  TrainOptions() : pointsman_train_options() {
    pointsman_train_options_init(this, sizeof(pointsman_train_options));
  }
  std::vector<std::string> flags;  // names and values by turns: {"steps", "300", "layers", "1"}
  const Model* from = nullptr;
  std::function<bool(const pointsman_training&)> on_progress;
};

// One caller at a time; instances and answers may outlive it. All of it throws Error, and std::bad_alloc
// where there is no memory for it.
class Solver : public Handle<pointsman_solver, pointsman_solver_free> {
 public:
  explicit Solver(const SolverOptions& options = SolverOptions()) {
    pointsman_solver* own = nullptr;
    const int status = pointsman_solver_create(&options, &own);
    Handle::operator=(Handle(own));
    if (own == nullptr) throw std::bad_alloc();
    check(status);
  }

  std::string device() const { return pointsman_device(get()); }

  // pointsman_set_option(); an empty value is the default again.
  void set_option(const std::string& name, const std::string& value) {
    check(pointsman_set_option(get(), name.c_str(), value.empty() ? nullptr : value.c_str()));
  }

  Instances instances() {
    pointsman_instances* own = nullptr;
    check(pointsman_instances_create(get(), &own));
    return Instances(own);
  }
  // coordinates: x, y of one city after the other.
  void add_tsp(Instances& to, const std::vector<double>& coordinates, const std::string& id = {}) {
    check(pointsman_add_items(get(), to.get(), "tsp", coordinates.data(), coordinates.size() / 2, 0.0,
                              id.c_str()));
  }
  // items: weight, value of one item after the other.
  void add_knapsack(Instances& to, const std::vector<double>& items, double capacity,
                    const std::string& id = {}) {
    check(pointsman_add_items(get(), to.get(), "knapsack", items.data(), items.size() / 2, capacity,
                              id.c_str()));
  }
  // distances: [n][n].
  void add_matrix(Instances& to, const std::vector<double>& distances, size_t n, const std::string& id = {}) {
    if (distances.size() != n * n) throw Error(POINTSMAN_USAGE, "add_matrix: expected n * n distances");
    check(pointsman_add_matrix(get(), to.get(), distances.data(), n, id.c_str()));
  }

  Instances read(const std::string& path, const ReadOptions& options = ReadOptions()) {
    pointsman_instances* own = nullptr;
    check(pointsman_read_instances(get(), path.c_str(), &options, &own));
    return Instances(own);
  }
  Instances parse(const std::string& bytes, const std::string& name,
                  const ReadOptions& options = ReadOptions()) {
    pointsman_instances* own = nullptr;
    check(pointsman_parse_instances(get(), bytes.data(), bytes.size(), name.c_str(), &options, &own));
    return Instances(own);
  }
  Answers read_answers(const Instances& to, const std::string& path) {
    pointsman_answers* own = nullptr;
    check(pointsman_read_answers(get(), to.get(), path.c_str(), &own));
    return Answers(own);
  }
  // The format is told by the path's suffix.
  void write(const Instances& instances, const std::string& path, bool replace = false) {
    check(pointsman_write_instances(get(), instances.get(), path.c_str(), nullptr, replace ? 1 : 0));
  }
  void write(const Instances& instances, const Answers& answers, const std::string& path,
             bool replace = false) {
    check(pointsman_write_answers(get(), instances.get(), answers.get(), path.c_str(), nullptr,
                                  replace ? 1 : 0));
  }
  // The bytes of such a file.
  std::string format(const Instances& instances, const std::string& format) {
    const void* bytes = nullptr;
    size_t size = 0;
    check(pointsman_format_instances(get(), instances.get(), format.c_str(), &bytes, &size));
    return {static_cast<const char*>(bytes), size};
  }
  std::string format(const Instances& instances, const Answers& answers, const std::string& format) {
    const void* bytes = nullptr;
    size_t size = 0;
    check(pointsman_format_answers(get(), instances.get(), answers.get(), format.c_str(), &bytes, &size));
    return {static_cast<const char*>(bytes), size};
  }

  // A call that was cancelled answers with the best so far, and the answers' status says so. An instance
  // without any answer yet is POINTSMAN_UNSOLVED.
  Answers solve(const Instances& instances, const SolveOptions& options = SolveOptions()) {
    Watched watched(options);
    pointsman_answers* own = nullptr;
    const int status = pointsman_solve(get(), instances.get(), &watched.options, &own);
    Answers answers(own);
    watched.rethrow();
    if (status != POINTSMAN_CANCELLED) check(status);
    return answers;
  }

  // Answers of the caller's own, one for each instance.
  Answers answers(const Instances& to, const std::vector<std::vector<int32_t>>& orders) {
    pointsman_answers* own = nullptr;
    check(pointsman_answers_create(get(), &own));
    Answers answers(own);
    for (const std::vector<int32_t>& order : orders)
      check(pointsman_add_answer(get(), own, to.get(), order.data(), order.size()));
    return answers;
  }
  std::vector<double> score(const Instances& instances, const Answers& answers,
                            const SolveOptions& options = SolveOptions()) {
    Watched watched(options);
    std::vector<double> log_probs(instances.size() + 1);  // never without a place, for no instance either
    const int status =
        pointsman_score(get(), instances.get(), answers.get(), &watched.options, log_probs.data());
    watched.rethrow();
    check(status);
    log_probs.pop_back();
    return log_probs;
  }

 private:
  friend struct ProblemFunctions;
  friend class Model;

  // Options whose callback asks on_progress and keeps what it throws.
  struct Watched {
    explicit Watched(const SolveOptions& given) : options(given), ask(given.on_progress) {
      if (!ask) return;
      options.progress = [](void* user, const pointsman_progress* progress) {
        auto& self = *static_cast<Watched*>(user);
        try {
          return self.ask(*progress) ? 0 : 1;
        } catch (...) {
          self.thrown = std::current_exception();
          return 1;
        }
      };
      options.progress_user = this;
    }
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;
    void rethrow() const {
      if (thrown) std::rethrow_exception(thrown);
    }

    pointsman_solve_options options;
    const std::function<bool(const pointsman_progress&)>& ask;
    std::exception_ptr thrown;
  };

  void check(int status) const { check(get(), status); }
  static void check(pointsman_solver* solver, int status) {
    if (status == POINTSMAN_OK) return;
    int64_t line = 0;
    const std::string file = pointsman_last_error_file(solver, &line);
    const std::string message = pointsman_last_error(solver);
    throw Error(status, message.empty() ? "cancelled" : message, file, line);
  }
};

// What Problem and its models share, and nobody else needs: the functions, and what one of them threw.
struct ProblemFunctions {
  template <typename Work>
  int call(const Work& work) {
    try {
      work();
      return 0;
    } catch (...) {
      thrown = std::current_exception();
      return 1;
    }
  }
  // Throws what a function threw in this call, else as Solver.
  void check(int status, bool may_be_cancelled = false) {
    if (thrown) std::rethrow_exception(std::exchange(thrown, nullptr));
    if (!may_be_cancelled || status != POINTSMAN_CANCELLED) Solver::check(solver, status);
  }
  pointsman_solver* begin_call() {
    thrown = nullptr;
    return solver;
  }
  // How many instances of n items there are.
  size_t count(const std::vector<double>& items, size_t n) const {
    const size_t each = n * options.width;
    if (each == 0 || items.size() % each != 0)
      throw Error(POINTSMAN_USAGE, "items: expected n * width numbers an instance");
    return items.size() / each;
  }
  size_t count(const std::vector<double>& items, const std::vector<int32_t>& orders, size_t n) const {
    const size_t found = count(items, n);
    if (orders.size() != found * n) throw Error(POINTSMAN_USAGE, "orders: expected n items an instance");
    return found;
  }

  pointsman_solver* solver;  // which the Solver may have handed on
  ProblemOptions options;
  Handle<pointsman_problem, pointsman_problem_free> problem;
  std::exception_ptr thrown;
};

// A network for a problem of the caller's own. It may outlive its Problem, not the solver.
class Model {
 public:
  // items: [count][n][width].
  Answers solve(const std::vector<double>& items, size_t n,
                const SolveOptions& options = SolveOptions()) const {
    Solver::Watched watched(options);
    pointsman_answers* own = nullptr;
    const int status =
        pointsman_problem_solve(functions_->begin_call(), functions_->problem.get(), own_.get(), items.data(),
                                functions_->count(items, n), n, &watched.options, &own);
    Answers answers(own);
    watched.rethrow();
    functions_->check(status, true);
    return answers;
  }
  // log p of orders [count][n], -1 behind the last item.
  std::vector<double> score(const std::vector<double>& items, const std::vector<int32_t>& orders, size_t n,
                            const SolveOptions& options = SolveOptions()) const {
    Solver::Watched watched(options);
    const size_t count = functions_->count(items, orders, n);
    std::vector<double> log_probs(count + 1);  // never without a place, for no instance either
    const int status =
        pointsman_problem_score(functions_->begin_call(), functions_->problem.get(), own_.get(), items.data(),
                                orders.data(), count, n, &watched.options, log_probs.data());
    watched.rethrow();
    functions_->check(status);
    log_probs.pop_back();
    return log_probs;
  }
  void save(const std::string& path, bool replace = false) const {
    functions_->check(
        pointsman_model_write(functions_->begin_call(), own_.get(), path.c_str(), replace ? 1 : 0));
  }
  pointsman_training training() const {
    pointsman_training training;
    pointsman_training_init(&training, sizeof training);
    pointsman_model_training(own_.get(), &training);
    return training;
  }

 private:
  friend class Problem;
  Model(std::shared_ptr<ProblemFunctions> functions, pointsman_model* own)
      : functions_(std::move(functions)), own_(own, pointsman_model_free) {}

  std::shared_ptr<ProblemFunctions> functions_;
  std::shared_ptr<const pointsman_model> own_;
};

// A problem of the caller's own. It and its models serve one caller at a time; the solver must outlive them.
class Problem {
 public:
  Problem(Solver& solver, const ProblemOptions& options)
      : functions_(std::make_shared<ProblemFunctions>(ProblemFunctions{
            solver.get(), options, Handle<pointsman_problem, pointsman_problem_free>(), nullptr})) {
    pointsman_problem_options given = functions_->options;
    given.user = functions_.get();
    given.cost = options.on_cost ? ask_cost : nullptr;
    given.draw = options.on_draw ? ask_draw : nullptr;
    std::vector<int32_t> pairs;
    for (const auto& pair : options.pairs_before) pairs.insert(pairs.end(), {pair.first, pair.second});
    given.before = pairs.data();
    given.pairs = options.pairs_before.size();
    pointsman_problem* own = nullptr;
    const int status = pointsman_problem_create(solver.get(), &given, &own);
    functions_->problem = Handle<pointsman_problem, pointsman_problem_free>(own);
    functions_->check(status);
  }

  // A network trained on instances of n items. Where an exception ends the training, trained() has the model
  // up to then.
  Model train(size_t n, const TrainOptions& options = TrainOptions()) {
    Told told{*functions_, options};
    pointsman_train_options given = options;
    std::vector<const char*> flags;
    for (const std::string& flag : options.flags) flags.push_back(flag.c_str());
    flags.push_back(nullptr);
    given.options = flags.data();
    given.init = options.from ? options.from->own_.get() : nullptr;
    given.progress = options.on_progress ? Told::tell : nullptr;
    given.progress_user = &told;
    pointsman_model* own = nullptr;
    const int status =
        pointsman_problem_train(functions_->begin_call(), functions_->problem.get(), n, &given, &own);
    trained_.reset();
    if (own != nullptr) trained_ = Model(functions_, own);
    functions_->check(status, own != nullptr);
    return *trained_;
  }
  // Of the last training.
  const std::optional<Model>& trained() const { return trained_; }
  Model load(const std::string& path) {
    pointsman_model* own = nullptr;
    const int status = pointsman_model_read(functions_->begin_call(), path.c_str(), &own);
    const Model model(functions_, own);
    functions_->check(status);
    return model;
  }

  // What orders [count][n] of items [count][n][width] cost, -1 behind the last item of an order.
  std::vector<double> costs(const std::vector<double>& items, const std::vector<int32_t>& orders, size_t n) {
    const size_t count = functions_->count(items, orders, n);
    std::vector<double> costs(count + 1);  // never without a place, for no instance either
    functions_->check(pointsman_problem_costs(functions_->begin_call(), functions_->problem.get(),
                                              items.data(), orders.data(), count, n, costs.data()));
    costs.pop_back();
    return costs;
  }

 private:
  struct Told {
    static int tell(void* user, const pointsman_training* training) {
      auto& self = *static_cast<Told*>(user);
      bool goes_on = false;
      self.functions.call([&] { goes_on = self.options.on_progress(*training); });
      return goes_on ? 0 : 1;
    }

    ProblemFunctions& functions;
    const TrainOptions& options;
  };

  static int ask_cost(void* user, const double* items, const int64_t* orders, size_t count, size_t n,
                      double* costs) {
    auto& functions = *static_cast<ProblemFunctions*>(user);
    return functions.call([&] { functions.options.on_cost(items, orders, count, n, costs); });
  }
  static int ask_draw(void* user, uint64_t seed, uint64_t first, size_t count, size_t n, double* items) {
    auto& functions = *static_cast<ProblemFunctions*>(user);
    return functions.call([&] { functions.options.on_draw(seed, first, count, n, items); });
  }

  std::shared_ptr<ProblemFunctions> functions_;
  std::optional<Model> trained_;
};

}  // namespace cpp_api

}  // namespace pointsman
