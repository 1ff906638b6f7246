// SPDX-License-Identifier: Apache-2.0
// The binary interface of the C library. What this test refuses breaks programs that were built before: a
// change of a member or function that is there needs a new POINTSMAN_ABI_MAJOR and soname; a new one at the
// end a new POINTSMAN_ABI_MINOR, and its row here.
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <type_traits>

#include "host/library/include/pointsman.h"
#include "tests/catch.h"

namespace {

// In the struct, at this place, a member of this type.
#define AT(in, member, place, ...) \
  static_assert(offsetof(in, member) == (place) && std::is_same_v<decltype(in::member), __VA_ARGS__>)

static_assert(sizeof(pointsman_solver_options) == 48);
AT(pointsman_solver_options, size, 0, size_t);
AT(pointsman_solver_options, device, 8, const char*);
AT(pointsman_solver_options, precision, 16, const char*);
AT(pointsman_solver_options, log, 24, void (*)(void*, const char*));
AT(pointsman_solver_options, log_user, 32, void*);
AT(pointsman_solver_options, threads, 40, int32_t);
AT(pointsman_solver_options, reserved, 44, int32_t);

static_assert(sizeof(pointsman_progress) == 40);
AT(pointsman_progress, size, 0, size_t);
AT(pointsman_progress, instances, 8, size_t);
AT(pointsman_progress, answered, 16, size_t);
AT(pointsman_progress, seconds, 24, double);
AT(pointsman_progress, step, 32, int64_t);

static_assert(sizeof(pointsman_solve_options) == 168);
AT(pointsman_solve_options, size, 0, size_t);
AT(pointsman_solve_options, mode, 8, const char*);
AT(pointsman_solve_options, model, 16, const char*);
AT(pointsman_solve_options, time_limit, 24, double);
AT(pointsman_solve_options, limit_each, 32, double);
AT(pointsman_solve_options, seed, 40, uint64_t);
AT(pointsman_solve_options, first_row, 48, uint64_t);
AT(pointsman_solve_options, samples, 56, int64_t);
AT(pointsman_solve_options, first_sample, 64, int64_t);
AT(pointsman_solve_options, kicks, 72, int64_t);
AT(pointsman_solve_options, steps, 80, int64_t);
AT(pointsman_solve_options, temperature, 88, double);
AT(pointsman_solve_options, clip, 96, double);
AT(pointsman_solve_options, learning_rate, 104, double);
AT(pointsman_solve_options, entropy, 112, double);
AT(pointsman_solve_options, replicas, 120, int32_t);
AT(pointsman_solve_options, batch_size, 124, int32_t);
AT(pointsman_solve_options, augment, 128, int32_t);
AT(pointsman_solve_options, shuffle, 132, int32_t);
AT(pointsman_solve_options, improve, 136, int32_t);
AT(pointsman_solve_options, untrained, 140, int32_t);
AT(pointsman_solve_options, stop_at_first_misfit, 144, int32_t);
AT(pointsman_solve_options, learn, 148, int32_t);
AT(pointsman_solve_options, progress, 152, int (*)(void*, const pointsman_progress*));
AT(pointsman_solve_options, progress_user, 160, void*);

static_assert(sizeof(pointsman_read_options) == 56);
AT(pointsman_read_options, size, 0, size_t);
AT(pointsman_read_options, format, 8, const char*);
AT(pointsman_read_options, problem, 16, const char*);
AT(pointsman_read_options, capacity, 24, double);
AT(pointsman_read_options, layout, 32, const char*);
AT(pointsman_read_options, metric, 40, const char*);
AT(pointsman_read_options, columns, 48, const char*);

static_assert(sizeof(pointsman_instance) == 56);
AT(pointsman_instance, size, 0, size_t);
AT(pointsman_instance, id, 8, const char*);
AT(pointsman_instance, problem, 16, const char*);
AT(pointsman_instance, metric, 24, const char*);
AT(pointsman_instance, items, 32, const double*);
AT(pointsman_instance, n, 40, size_t);
AT(pointsman_instance, capacity, 48, double);

static_assert(sizeof(pointsman_answer) == 96);
AT(pointsman_answer, size, 0, size_t);
AT(pointsman_answer, order, 8, const int32_t*);
AT(pointsman_answer, length, 16, size_t);
AT(pointsman_answer, cost, 24, double);
AT(pointsman_answer, unrounded, 32, double);
AT(pointsman_answer, weight, 40, double);
AT(pointsman_answer, log_prob, 48, double);
AT(pointsman_answer, network_cost, 56, double);
AT(pointsman_answer, start, 64, const char*);
AT(pointsman_answer, kicks, 72, int64_t);
AT(pointsman_answer, status, 80, int32_t);
AT(pointsman_answer, reserved, 84, int32_t);
AT(pointsman_answer, bound, 88, double);

static_assert(sizeof(pointsman_problem_options) == 80);
AT(pointsman_problem_options, size, 0, size_t);
AT(pointsman_problem_options, width, 8, size_t);
AT(pointsman_problem_options, cost, 16,
   int (*)(void*, const double*, const int64_t*, size_t, size_t, double*));
AT(pointsman_problem_options, draw, 24, int (*)(void*, uint64_t, uint64_t, size_t, size_t, double*));
AT(pointsman_problem_options, user, 32, void*);
AT(pointsman_problem_options, before, 40, const int32_t*);
AT(pointsman_problem_options, pairs, 48, size_t);
AT(pointsman_problem_options, capacity, 56, double);
AT(pointsman_problem_options, weight, 64, int32_t);
AT(pointsman_problem_options, first, 68, int32_t);
AT(pointsman_problem_options, last, 72, int32_t);
AT(pointsman_problem_options, maximise, 76, int32_t);

static_assert(sizeof(pointsman_train_options) == 48);
AT(pointsman_train_options, size, 0, size_t);
AT(pointsman_train_options, minutes, 8, double);
AT(pointsman_train_options, init, 16, const pointsman_model*);
AT(pointsman_train_options, options, 24, const char* const*);
AT(pointsman_train_options, progress, 32, int (*)(void*, const pointsman_training*));
AT(pointsman_train_options, progress_user, 40, void*);

static_assert(sizeof(pointsman_training) == 64);
AT(pointsman_training, size, 0, size_t);
AT(pointsman_training, step, 8, int64_t);
AT(pointsman_training, orders, 16, int64_t);
AT(pointsman_training, seconds, 24, double);
AT(pointsman_training, train_cost, 32, double);
AT(pointsman_training, val_cost, 40, double);
AT(pointsman_training, learning_rate, 48, double);
AT(pointsman_training, callback_seconds, 56, double);

static_assert(POINTSMAN_OK == 0 && POINTSMAN_INTERNAL == 1 && POINTSMAN_USAGE == 2 && POINTSMAN_INPUT == 3);
static_assert(POINTSMAN_RESOURCE == 4 && POINTSMAN_CANCELLED == 130);
static_assert(POINTSMAN_DONE == 0 && POINTSMAN_TIME_LIMIT == 1 && POINTSMAN_INTERRUPTED == 2 &&
              POINTSMAN_UNSOLVED == 3);

// The function, with this result and these arguments.
#define IS(function, ...) static_assert(std::is_same_v<decltype(function), __VA_ARGS__>)

IS(pointsman_version, const char*());
IS(pointsman_abi_version, uint32_t());
IS(pointsman_solver_options_init, int(pointsman_solver_options*, size_t));
IS(pointsman_solve_options_init, int(pointsman_solve_options*, size_t));
IS(pointsman_read_options_init, int(pointsman_read_options*, size_t));
IS(pointsman_instance_init, int(pointsman_instance*, size_t));
IS(pointsman_answer_init, int(pointsman_answer*, size_t));
IS(pointsman_solver_create, int(const pointsman_solver_options*, pointsman_solver**));
IS(pointsman_solver_free, void(pointsman_solver*));
IS(pointsman_device, const char*(const pointsman_solver*));
IS(pointsman_last_error, const char*(const pointsman_solver*));
IS(pointsman_last_error_file, const char*(const pointsman_solver*, int64_t*));
IS(pointsman_instances_create, int(pointsman_solver*, pointsman_instances**));
IS(pointsman_instances_free, void(pointsman_instances*));
IS(pointsman_instances_count, size_t(const pointsman_instances*));
IS(pointsman_instances_get, int(const pointsman_instances*, size_t, pointsman_instance*));
IS(pointsman_add_items,
   int(pointsman_solver*, pointsman_instances*, const char*, const double*, size_t, double, const char*));
IS(pointsman_add_matrix, int(pointsman_solver*, pointsman_instances*, const double*, size_t, const char*));
IS(pointsman_read_instances,
   int(pointsman_solver*, const char*, const pointsman_read_options*, pointsman_instances**));
IS(pointsman_parse_instances, int(pointsman_solver*, const void*, size_t, const char*,
                                  const pointsman_read_options*, pointsman_instances**));
IS(pointsman_write_instances,
   int(pointsman_solver*, const pointsman_instances*, const char*, const char*, int));
IS(pointsman_format_instances,
   int(pointsman_solver*, const pointsman_instances*, const char*, const void**, size_t*));
IS(pointsman_set_option, int(pointsman_solver*, const char*, const char*));
IS(pointsman_solve,
   int(pointsman_solver*, const pointsman_instances*, const pointsman_solve_options*, pointsman_answers**));
IS(pointsman_answers_create, int(pointsman_solver*, pointsman_answers**));
IS(pointsman_add_answer,
   int(pointsman_solver*, pointsman_answers*, const pointsman_instances*, const int32_t*, size_t));
IS(pointsman_answers_free, void(pointsman_answers*));
IS(pointsman_answers_count, size_t(const pointsman_answers*));
IS(pointsman_answers_get, int(const pointsman_answers*, size_t, pointsman_answer*));
IS(pointsman_score, int(pointsman_solver*, const pointsman_instances*, const pointsman_answers*,
                        const pointsman_solve_options*, double*));
IS(pointsman_problem_options_init, int(pointsman_problem_options*, size_t));
IS(pointsman_train_options_init, int(pointsman_train_options*, size_t));
IS(pointsman_training_init, int(pointsman_training*, size_t));
IS(pointsman_problem_create, int(pointsman_solver*, const pointsman_problem_options*, pointsman_problem**));
IS(pointsman_problem_free, void(pointsman_problem*));
IS(pointsman_problem_train, int(pointsman_solver*, const pointsman_problem*, size_t,
                                const pointsman_train_options*, pointsman_model**));
IS(pointsman_model_read, int(pointsman_solver*, const char*, pointsman_model**));
IS(pointsman_model_write, int(pointsman_solver*, const pointsman_model*, const char*, int));
IS(pointsman_model_free, void(pointsman_model*));
IS(pointsman_model_training, int(const pointsman_model*, pointsman_training*));
IS(pointsman_problem_solve,
   int(pointsman_solver*, const pointsman_problem*, const pointsman_model*, const double*, size_t, size_t,
       const pointsman_solve_options*, pointsman_answers**));
IS(pointsman_problem_costs,
   int(pointsman_solver*, const pointsman_problem*, const double*, const int32_t*, size_t, size_t, double*));
IS(pointsman_problem_score,
   int(pointsman_solver*, const pointsman_problem*, const pointsman_model*, const double*, const int32_t*,
       size_t, size_t, const pointsman_solve_options*, double*));
IS(pointsman_read_answers,
   int(pointsman_solver*, const pointsman_instances*, const char*, pointsman_answers**));
IS(pointsman_parse_answers,
   int(pointsman_solver*, const pointsman_instances*, const void*, size_t, const char*, pointsman_answers**));
IS(pointsman_write_answers, int(pointsman_solver*, const pointsman_instances*, const pointsman_answers*,
                                const char*, const char*, int));
IS(pointsman_format_answers, int(pointsman_solver*, const pointsman_instances*, const pointsman_answers*,
                                 const char*, const void**, size_t*));

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  REQUIRE(pipe != nullptr);
  std::string text;
  for (int c; (c = std::fgetc(pipe.get())) != EOF;) text += static_cast<char>(c);
  return text;
}

}  // namespace

TEST_CASE("the library exports the functions of its list and nothing else") {
  std::ifstream list(POINTSMAN_SOURCE_DIR "/tests/host/library/symbols.txt");
  const std::string expected(std::istreambuf_iterator<char>(list), {});
  CHECK(expected.size() > 500);
  const std::string library = POINTSMAN_LIBRARY;
  CHECK(output_of("nm -D --defined-only '" + library + "' | awk '{ print $NF }' | LC_ALL=C sort") ==
        expected);
  CHECK_THAT(output_of("readelf -d '" + library + "'"),
             has_text("[libpointsman.so." + std::to_string(POINTSMAN_ABI_MAJOR) + "]"));
}

TEST_CASE("each function of the list stands above with its type") {
  std::ifstream file(__FILE__), list(POINTSMAN_SOURCE_DIR "/tests/host/library/symbols.txt");
  const std::string source(std::istreambuf_iterator<char>(file), {});
  int functions = 0;
  for (std::string line; std::getline(list, line);) {
    const size_t end = line.find("@@");
    if (end == std::string::npos) continue;  // the version's own name
    CHECK_THAT(source, has_text("\nIS(" + line.substr(0, end) + ","));
    ++functions;
  }
  CHECK(functions > 30);
}

TEST_CASE("the library has the version of its header") {
  CHECK(pointsman_abi_version() == (POINTSMAN_ABI_MAJOR << 16 | POINTSMAN_ABI_MINOR));
}
