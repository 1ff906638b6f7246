// SPDX-License-Identifier: Apache-2.0
// One run of the bench: its flags, its model, and the answer that grows row by row.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/engine/caller.h"
#include "bench/engine/torch_twin.h"
#include "bench/measure.h"
#include "host/command/command.h"

namespace pointsman::bench {

struct Flags {
  std::vector<std::string> names = {"decode"};
  bool json = false, small = false;
  std::string torch, twin, model, encoder, check;
  int turns = 5;
  double seconds = 0.5;
};

class Session {
 public:
  Session(const Flags& flags, const CommonOptions& common);

  bool goes_on() const { return control_.check() == Status::kDone; }  // no signal, no time limit
  // Both encoders, or the one of -m or --encoder: what decode measures one after the other.
  std::vector<Encoder> encoders() const;
  void start_over(Encoder encoder);  // with fresh parameters, unless the model has that encoder already

  Caller caller(int n, int count, int threads);

  // What the caller's device does now: one thread of a CPU, or the whole of a GPU. A CPU's units are not
  // those of bench/floors.h: its copy rate stays 0, and its rows have no floor.
  Peaks measure_peaks(const Caller& caller);

  // Null where there is no twin; answer["torch"] says why, or what it runs on.
  std::unique_ptr<TorchTwin> start_twin();

  void add(const Json& row);

  // Writes the answer; returns the exit code.
  int finish(std::string failure);

  const Flags& flags;
  const CommonOptions& common;
  Model model;
  Json answer;

 private:
  std::string check_failure();  // of --check; empty where it passes

  SearchControl control_;
  OutputFile file_;
  bool as_lines_;
  Json rows_ = Json::array();
  Json baseline_;  // of --check, or null
};

inline constexpr int kSizes[] = {20, 50, 100};  // cities of an instance

// The benches; each adds its rows.
void bench_decode(Session& session);
void bench_compare(Session& session);
void bench_sample(Session& session);
void bench_greedy(Session& session);
void bench_train(Session& session);
void bench_active(Session& session);
void bench_torch(Session& session);

}  // namespace pointsman::bench
