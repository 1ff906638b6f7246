// SPDX-License-Identifier: Apache-2.0
// Pointsman as a C library (C99): the travelling salesman problem (TSP), 0-1 KnapSack, others that the
// program knows, and problems of the caller's own. It solves what the program `pointsman` solves, with the
// same bits: docs/command-line.md and docs/file-formats.md tell what the modes and formats are,
// docs/embedding.md shows how to begin.
//
// Rules of every function:
// - It returns a status, which is the exit code of the program: POINTSMAN_OK or what went wrong. Then
//   pointsman_last_error() tells more. Output arguments are written only where a function says so.
// - It prints nothing, ends no process, installs no signal handler and lets no C++ exception through. It
//   keeps nothing between calls but what its handles hold. Of the environment it reads POINTSMAN_MODEL_PATH,
//   POINTSMAN_CUDA_MODULE, POINTSMAN_SIMD and POINTSMAN_MAX_INPUT (bytes, or 512M, 4G: the memory that packed
//   input may take; beyond it reading gives POINTSMAN_RESOURCE).
// - A pointer that is passed is read or written during the call only; what must live longer is copied.
// - A solver serves one caller at a time. A call that comes while another runs, from another thread or from a
//   callback, is refused with POINTSMAN_USAGE and changes nothing. Any number of solvers may run on any
//   number of threads at once. Instances and answers are no part of a solver: several threads may read them
//   at once, while nobody adds to them.
// - Memory that cannot be had gives POINTSMAN_RESOURCE; the handles stay usable, and instances and answers
//   stay as they were.
//
// Every struct begins with its size, which its init function sets: so a program that was built with an older
// pointsman.h runs with a newer library. New members come at the end.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Of the binary interface. The major version changes when programs must be built anew, and with it the
// soname; the minor one when functions or members are added.
#define POINTSMAN_ABI_MAJOR 1
#define POINTSMAN_ABI_MINOR 3

#if defined(__GNUC__)
#define POINTSMAN_API __attribute__((visibility("default")))
#else
#define POINTSMAN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum {
  POINTSMAN_OK = 0,        // also when a time limit ended the search
  POINTSMAN_INTERNAL = 1,  // a defect of the library
  POINTSMAN_USAGE = 2,     // an argument or option, a combination of them, a file that is there already
  POINTSMAN_INPUT = 3,     // bad input or model
  POINTSMAN_RESOURCE = 4,  // memory, disk, device
  // The progress callback asked for it, or a function of an own problem. The answers hold the best so far; an
  // instance without any answer yet is POINTSMAN_UNSOLVED.
  POINTSMAN_CANCELLED = 130
};

// What an answer is.
enum {
  POINTSMAN_DONE = 0,
  POINTSMAN_TIME_LIMIT = 1,   // the best when the limit came
  POINTSMAN_INTERRUPTED = 2,  // the best when the progress callback cancelled
  POINTSMAN_UNSOLVED = 3,     // the limit or the cancel came before any answer
  POINTSMAN_INFEASIBLE = 4    // every tour or path found takes a forbidden way
};

typedef struct pointsman_solver pointsman_solver;        // a device, its threads, the models that were read
typedef struct pointsman_instances pointsman_instances;  // of any problems and sizes, in order
typedef struct pointsman_answers pointsman_answers;      // one for each instance, in their order

// How a solver is made.
typedef struct pointsman_solver_options {
  size_t size;
  const char* device;     // "auto", "cpu", "cuda", "cuda:1", "cuda:all"; NULL: "auto"
  const char* precision;  // of products: "fp32", and on CUDA "tf32", "tf32x3", "bf16"; NULL: "fp32"
  // Told, a line at a time, what the program would write on its log; NULL: nobody. Called by the thread that
  // uses the solver, during a call.
  void (*log)(void* user, const char* line);
  void* log_user;
  int32_t threads;   // of the CPU; 0: one a core
  int32_t reserved;  // 0
} pointsman_solver_options;

// What a call has done so far.
typedef struct pointsman_progress {
  size_t size;
  size_t instances, answered;  // of the call, and of these the answers that are final
  double seconds;              // since the call began
  int64_t step;                // active search: the last gradient step; else 0
} pointsman_progress;

// How to solve or score: the flags of `pointsman solve`, by their names. Numbers that are not as the flag
// wants them are refused with POINTSMAN_USAGE.
typedef struct pointsman_solve_options {
  size_t size;
  const char* mode;   // "auto", "greedy", "sample", "active", "local", "2opt", "exact"; NULL: "auto"
  const char* model;  // a file, or a model's name; NULL: same problem, nearest size
  double time_limit;  // seconds from the beginning of the call; 0: none
  double limit_each;  // seconds for an instance from when its search begins; 0: none
  uint64_t seed;      // 1234
  // The place of the first instance in the caller's own series. Draws depend on the place of an instance, or
  // on its id where it has one.
  uint64_t first_row;
  int64_t samples;               // 0: the mode's own
  int64_t first_sample;          // 0
  int64_t kicks;                 // -1: the mode's own
  int64_t steps;                 // active search; 0: its own
  double temperature;            // 1
  double clip;                   // 0: the model's
  double learning_rate;          // active search; 0: its own
  double entropy;                // active search; -1: its own
  int32_t replicas;              // active search; 0: its own
  int32_t batch_size;            // instances solved at once; 0: automatic. Answers do not depend on it
  int32_t augment;               // 1 or 8; 0: the mode's own
  int32_t shuffle;               // 0 or 1; -1: the mode's own
  int32_t improve;               // 0 or 1; -1: the mode's own
  int32_t untrained;             // 1: active search from fresh parameters (--init random)
  int32_t stop_at_first_misfit;  // 1: the paper's rule for KnapSack
  int32_t learn;  // active search trains 1: all parameters, 2: the attention; 0: its own choice
  // Asked some hundred times a second whether to go on: any result but 0 cancels the call. NULL: nobody is
  // asked. Called by any thread of the solver, by one at a time; it must not use the solver.
  int (*progress)(void* user, const pointsman_progress* progress);
  void* progress_user;
} pointsman_solve_options;

// How a file of instances is read.
typedef struct pointsman_read_options {
  size_t size;
  // "tsplib", "npy", "npz", "json", "ndjson", "kp", "csv", "matrix", "lines"; NULL: what the file tells.
  const char* format;
  const char* problem;  // "tsp", "knapsack": what the instances are or must be; NULL: what the file says
  double capacity;      // KnapSack: where the file has none; 0: none
  // Since 1.2, of KnapSack text: "pairs", "two-lines", "solution", "capacity-last", "lists", "pisinger",
  // "rows"; NULL: the one that the file fits.
  const char* layout;
  // Since 1.2: "euclidean", "euc_2d", "haversine", "haversine_km" ..: how coordinates are measured; NULL: as
  // the file says.
  const char* metric;
  const char* columns;  // since 1.2, of a CSV, "x,y": names, or numbers from 0; NULL: as they are named
} pointsman_read_options;

// One instance, as its owner holds it.
typedef struct pointsman_instance {
  size_t size;
  const char* id;       // "" when it has none
  const char* problem;  // "tsp", "knapsack", "cvrp", "tsptw", "colouring" ..
  const char* metric;   // TSP: "EUCLIDEAN" (not rounded) or TSPLIB's name: "EUC_2D", .., "EXPLICIT"; else ""
  const double* items;  // as pointsman_add_items() takes them; NULL for a matrix of distances or a graph
  size_t n;
  double capacity;  // KnapSack, CVRP; else 0
} pointsman_instance;

// One answer, as its owner holds it. Costs and weights are in the instance's own units.
typedef struct pointsman_answer {
  size_t size;
  // [length] the tour, open and from 0, or the items taken in the order they were found; NULL when unsolved
  // or infeasible.
  const int32_t* order;
  size_t length;
  double cost;          // the length under the instance's metric; KnapSack: the packed value; colours
  double unrounded;     // TSP: the Euclidean length, which no metric rounds; of a matrix the cost
  double weight;        // KnapSack: packed
  double log_prob;      // of the network for the order that it drew; NaN: none did
  double network_cost;  // what the network reached before any improvement; NaN: none did
  // "greedy_edges", "nearest_neighbour", "network", "exact", "branch_and_bound", "savings", "closing_times",
  // "dsatur"; "" where the mode tells none
  const char* start;
  int64_t kicks;     // that the local search made
  int32_t status;    // POINTSMAN_DONE ..; when unsolved or infeasible the numbers above are NaN
  int32_t reserved;  // 0
  // Since 1.2, KnapSack: no packing's value is above it; NaN: the value is proved to be the best, or nothing
  // is known.
  double bound;
} pointsman_answer;

// "0.2.0": of the program that gives these answers.
POINTSMAN_API const char* pointsman_version(void);
// 65536 * major + minor of the binary interface that the library has.
POINTSMAN_API uint32_t pointsman_abi_version(void);

// Set all members of a struct of `size` bytes (sizeof) to what they are when nobody says anything.
// POINTSMAN_USAGE for a size that no version of it has; then nothing is written.
POINTSMAN_API int pointsman_solver_options_init(pointsman_solver_options* options, size_t size);
POINTSMAN_API int pointsman_solve_options_init(pointsman_solve_options* options, size_t size);
POINTSMAN_API int pointsman_read_options_init(pointsman_read_options* options, size_t size);
POINTSMAN_API int pointsman_instance_init(pointsman_instance* instance, size_t size);
POINTSMAN_API int pointsman_answer_init(pointsman_answer* answer, size_t size);

// *solver becomes a new solver, also where this fails: then it can only tell its last error and be freed.
// NULL only where there is no memory for it. options: NULL for none.
POINTSMAN_API int pointsman_solver_create(const pointsman_solver_options* options, pointsman_solver** solver);
// Waits for nothing: no call may be running. NULL is passed over, here and below.
POINTSMAN_API void pointsman_solver_free(pointsman_solver* solver);
// "cpu (AVX-512, 2 threads)"; lives as long as the solver. "" of one that could not be made.
POINTSMAN_API const char* pointsman_device(const pointsman_solver* solver);

// What the last call with this solver found wrong, "" when it succeeded; a line without a newline, as the
// program tells it ("map.tsp:11: .., expected .., found .."). Valid until the next call with the solver.
POINTSMAN_API const char* pointsman_last_error(const pointsman_solver* solver);
// The file that it is about, "" for none, likewise; *line is counted from 1, 0 where it is not known.
POINTSMAN_API const char* pointsman_last_error_file(const pointsman_solver* solver, int64_t* line);

// *instances become a new, empty series. It may outlive the solver and be used with others.
POINTSMAN_API int pointsman_instances_create(pointsman_solver* solver, pointsman_instances** instances);
POINTSMAN_API void pointsman_instances_free(pointsman_instances* instances);
POINTSMAN_API size_t pointsman_instances_count(const pointsman_instances* instances);
// Fills *instance, whose init function set its size. What it points to lives as long as `instances` and until
// something is added to them.
POINTSMAN_API int pointsman_instances_get(const pointsman_instances* instances, size_t index,
                                          pointsman_instance* instance);

// Add one instance at the end. problem: "tsp": items [n][2] are x, y, within +-1e100; "knapsack": weight,
// value, from 0 to 1e100, as is the capacity; "cvrp": items [n][3] are x, y, demand, the depot with demand 0
// first, and no demand above the capacity; "tsptw": items [n][5] are x, y, when the place opens and closes
// (HUGE_VAL: never), and how long a visit takes, the depot first. id: NULL or "" for none. POINTSMAN_INPUT
// where a number is not so.
POINTSMAN_API int pointsman_add_items(pointsman_solver* solver, pointsman_instances* instances,
                                      const char* problem, const double* items, size_t n, double capacity,
                                      const char* id);
// Distances [n][n] from each city (row) to each, from 0 to 1e100; the diagonal is not read. A TSP, or where
// two ways differ in length an ATSP.
POINTSMAN_API int pointsman_add_matrix(pointsman_solver* solver, pointsman_instances* instances,
                                       const double* distances, size_t n, const char* id);

// Read instances from a file ("-": standard input), which gzip may have packed, or from `size` bytes in
// memory; `name` stands for their file in messages, and its suffix tells the format. *instances become a new
// series. options: NULL for none.
POINTSMAN_API int pointsman_read_instances(pointsman_solver* solver, const char* path,
                                           const pointsman_read_options* options,
                                           pointsman_instances** instances);
POINTSMAN_API int pointsman_parse_instances(pointsman_solver* solver, const void* bytes, size_t size,
                                            const char* name, const pointsman_read_options* options,
                                            pointsman_instances** instances);
// Write instances to a file ("-": standard output), whole or not at all. format: "tsplib", "npy", "npz",
// "json", "ndjson" or "kp"; NULL: by the suffix. POINTSMAN_USAGE where the file is there already and
// `replace` is 0, and for what the format cannot hold.
POINTSMAN_API int pointsman_write_instances(pointsman_solver* solver, const pointsman_instances* instances,
                                            const char* path, const char* format, int replace);
// The same bytes in memory, [*size] at *bytes: the solver's, until the next call with it ends. That call may
// read them, as pointsman_parse_instances() does.
POINTSMAN_API int pointsman_format_instances(pointsman_solver* solver, const pointsman_instances* instances,
                                             const char* format, const void** bytes, size_t* size);

// Sets an option of pointsman_solve() and pointsman_score() for all later calls with this solver, by its name
// in `pointsman solve --help` with _ for -: "replicas", "first_sample". value: as the command line takes it
// ("64", "on"); NULL: the default again. Members of pointsman_solve_options that are not as their init
// function sets them come first. POINTSMAN_USAGE for a name or value that is none.
POINTSMAN_API int pointsman_set_option(pointsman_solver* solver, const char* name, const char* value);

// Solves. *answers become new answers with POINTSMAN_OK and POINTSMAN_CANCELLED. options: NULL for none.
POINTSMAN_API int pointsman_solve(pointsman_solver* solver, const pointsman_instances* instances,
                                  const pointsman_solve_options* options, pointsman_answers** answers);

// *answers become new and empty: answers of the caller's own, to be scored or written.
POINTSMAN_API int pointsman_answers_create(pointsman_solver* solver, pointsman_answers** answers);
// Adds the answer to the next instance, order [length], and measures it. POINTSMAN_INPUT where it is none:
// not all cities once, an item that does not exist, more than the capacity.
POINTSMAN_API int pointsman_add_answer(pointsman_solver* solver, pointsman_answers* answers,
                                       const pointsman_instances* instances, const int32_t* order,
                                       size_t length);
POINTSMAN_API void pointsman_answers_free(pointsman_answers* answers);
POINTSMAN_API size_t pointsman_answers_count(const pointsman_answers* answers);
// As pointsman_instances_get().
POINTSMAN_API int pointsman_answers_get(const pointsman_answers* answers, size_t index,
                                        pointsman_answer* answer);

// log p of each answer under the model, log_probs [instances]; NaN where no network could have chosen the
// order. POINTSMAN_USAGE, with the first named, where the answers are none to these instances. Of the options
// it reads the model, the temperature and the progress callback, which ends the call without any number
// (POINTSMAN_CANCELLED).
POINTSMAN_API int pointsman_score(pointsman_solver* solver, const pointsman_instances* instances,
                                  const pointsman_answers* answers, const pointsman_solve_options* options,
                                  double* log_probs);

// Read the answers to these instances, each of which is measured, from a file or from memory: JSON, NDJSON,
// TSPLIB tour, .npy or .npz. POINTSMAN_INPUT also for an answer that is none.
POINTSMAN_API int pointsman_read_answers(pointsman_solver* solver, const pointsman_instances* instances,
                                         const char* path, pointsman_answers** answers);
POINTSMAN_API int pointsman_parse_answers(pointsman_solver* solver, const pointsman_instances* instances,
                                          const void* bytes, size_t size, const char* name,
                                          pointsman_answers** answers);
// As pointsman_write_instances(). format: "json", "ndjson", "tour", "npy", "npz", "text". Answers that are
// none to these instances are refused as by pointsman_score().
POINTSMAN_API int pointsman_write_answers(pointsman_solver* solver, const pointsman_instances* instances,
                                          const pointsman_answers* answers, const char* path,
                                          const char* format, int replace);
POINTSMAN_API int pointsman_format_answers(pointsman_solver* solver, const pointsman_instances* instances,
                                           const pointsman_answers* answers, const char* format,
                                           const void** bytes, size_t* size);

// A problem of the caller's own, since 1.3: items of `width` numbers each, and functions that say what an
// order of them costs and make instances to train a network on. docs/own-problems.md tells how it works. It
// is computed on the CPU, by as many threads as the solver has.
typedef struct pointsman_problem pointsman_problem;  // nobody changes it: several solvers may use it at once
typedef struct pointsman_model pointsman_model;      // a network for such a problem; likewise

enum { POINTSMAN_NO_ITEM = -2147483647 - 1 };

// Its functions are called during a call, by any thread of the solver, within a call by one at a time; they
// must not use the solver, and must be functions of their arguments alone. Any result but 0 ends the call
// with POINTSMAN_CANCELLED.
typedef struct pointsman_problem_options {
  size_t size;
  size_t width;  // numbers an item, 1 to 16
  // costs: [count] becomes what the orders cost, finite numbers, less being better. items: [count][n][width];
  // orders: [count][n], -1 behind the last item.
  int (*cost)(void* user, const double* items, const int64_t* orders, size_t count, size_t n, double* costs);
  // items: [count][n][width] becomes instances first .. first + count - 1 of an endless series, a function of
  // (seed, place in the series). NULL: the problem has none to train on.
  int (*draw)(void* user, uint64_t seed, uint64_t first, size_t count, size_t n, double* items);
  void* user;
  const int32_t* before;  // [pairs][2] item a of a pair (a, b) comes before item b
  size_t pairs;
  double capacity;      // with `weight`: an order takes items as long as one fits
  int32_t weight;       // which number of an item, from 0, is its weight; -1: none
  int32_t first, last;  // the item that an order begins and ends with, -1 the last one; POINTSMAN_NO_ITEM
  int32_t maximise;     // 1: more is better
} pointsman_problem_options;

// What a training has done so far.
typedef struct pointsman_training {
  size_t size;
  int64_t step;
  int64_t orders;     // seen in training, also those of the model that it began with
  double seconds;     // since its first step
  double train_cost;  // mean of the last step's orders
  double val_cost;    // of greedy orders of instances of their own; NaN: not measured
  double learning_rate;
  double callback_seconds;  // that the problem's functions took; 0 while the training runs
} pointsman_training;

typedef struct pointsman_train_options {
  size_t size;
  double minutes;               // how long; not read where `options` name steps. 2
  const pointsman_model* init;  // to start from; NULL: fresh parameters
  // Names and values of options by turns: "steps", "300", "layers", "1", "force", "true", NULL; of `pointsman
  // train` those that docs/own-problems.md lists. NULL: none.
  const char* const* options;
  // Told every 100 steps and after each validation, by the thread that made the call; any result but 0 ends
  // the training. NULL: nobody is told.
  int (*progress)(void* user, const pointsman_training* training);
  void* progress_user;
} pointsman_train_options;

POINTSMAN_API int pointsman_problem_options_init(pointsman_problem_options* options, size_t size);
POINTSMAN_API int pointsman_train_options_init(pointsman_train_options* options, size_t size);
POINTSMAN_API int pointsman_training_init(pointsman_training* training, size_t size);

// *problem becomes new. It may outlive the solver; what `user` points to must outlive it.
POINTSMAN_API int pointsman_problem_create(pointsman_solver* solver, const pointsman_problem_options* options,
                                           pointsman_problem** problem);
POINTSMAN_API void pointsman_problem_free(pointsman_problem* problem);

// Trains a network on instances of n items by policy gradient. *model becomes a new model also where the
// training ends early: with POINTSMAN_CANCELLED, or because a cost was not finite (POINTSMAN_INPUT). NULL
// where it ended before its first step could begin, or could not write its checkpoint or log.
POINTSMAN_API int pointsman_problem_train(pointsman_solver* solver, const pointsman_problem* problem,
                                          size_t n, const pointsman_train_options* options,
                                          pointsman_model** model);
POINTSMAN_API int pointsman_model_read(pointsman_solver* solver, const char* path, pointsman_model** model);
POINTSMAN_API int pointsman_model_write(pointsman_solver* solver, const pointsman_model* model,
                                        const char* path, int replace);
POINTSMAN_API void pointsman_model_free(pointsman_model* model);
// What its training had done in the end; of a model that was read, only `orders`.
POINTSMAN_API int pointsman_model_training(const pointsman_model* model, pointsman_training* training);

// Solves instances of n items, items [count][n][width]. Modes: "greedy", "sample", "active"; NULL: active
// with `steps`, sample with `samples`, else greedy. What pointsman_set_option() set applies. With `improve` a
// local search by the cost follows, with `kicks` (0) random changes after its first optimum. `model` of the
// options is not read. *answers as pointsman_solve() gives them, `cost` in the caller's sense.
POINTSMAN_API int pointsman_problem_solve(pointsman_solver* solver, const pointsman_problem* problem,
                                          const pointsman_model* model, const double* items, size_t count,
                                          size_t n, const pointsman_solve_options* options,
                                          pointsman_answers** answers);
// What orders of such instances cost, costs [count]. orders: [count][n], -1 behind the last item.
// POINTSMAN_USAGE for one that is not as declared.
POINTSMAN_API int pointsman_problem_costs(pointsman_solver* solver, const pointsman_problem* problem,
                                          const double* items, const int32_t* orders, size_t count, size_t n,
                                          double* costs);
// log p of such orders under the model, log_probs [count]; NaN of one that the network cannot make. Of the
// options it reads the temperature and the progress callback.
POINTSMAN_API int pointsman_problem_score(pointsman_solver* solver, const pointsman_problem* problem,
                                          const pointsman_model* model, const double* items,
                                          const int32_t* orders, size_t count, size_t n,
                                          const pointsman_solve_options* options, double* log_probs);

#ifdef __cplusplus
}
#endif
