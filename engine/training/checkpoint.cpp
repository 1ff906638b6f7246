// SPDX-License-Identifier: Apache-2.0
#include "engine/training/checkpoint.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <new>
#include <type_traits>
#include <utility>

#include "engine/problem/problem.h"
#include "kernels/tools/fnv1a.h"
#include "models/parameter_layout.h"
#include "models/tools/json_text.h"

namespace pointsman {
namespace {

static_assert(std::endian::native == std::endian::little, "checkpoints are little-endian memory images");

constexpr std::string_view kMagic = "PNTSMNCK";
constexpr uint32_t kLstmVersion = 3,
                   kEncoderVersion = 4,    // what is neither attention nor prior stays readable
    kRereadVersion = 5;                    // likewise what reads an instance once
constexpr size_t kHeaderSize = 8 + 4 + 8;  // magic, version, size of the file
constexpr size_t kChecksumSize = 8;

// Behind the other fields, from kEncoderVersion on.
template <class Visitor, class Options>
void visit_encoder(Visitor& visit, Options& options) {
  visit("encoder", options.model.encoder);
  visit("layers", options.model.layers);
  visit("heads", options.model.heads);
  visit("feed_forward", options.model.feed_forward);
  visit("prior", options.model.has_prior);
  visit("symmetries", options.symmetries);
}

// Of a user's own problem, behind these.
template <class Visitor, class Options>
void visit_own(Visitor& visit, Options& options) {
  if (!is_own(options.model.problem)) return;
  visit("offsets", options.model.own.offsets);
  visit("scales", options.model.own.scales);
  visit("cost_unit", options.model.own.cost_unit);
}

// Of TSPTW, behind these.
template <class Visitor, class Options>
void visit_windows(Visitor& visit, Options& options) {
  if (!problem_of(options.model.problem).has_first) return;
  visit("infeasible", options.infeasible);
  visit("penalty", options.penalty);
  visit("penalty_rate", options.penalty_rate);
}

uint32_t version_of(const ModelConfig& model) {
  return model.reread > 0                                      ? kRereadVersion
         : model.encoder == Encoder::kLstm && !model.has_prior ? kLstmVersion
                                                               : kEncoderVersion;
}

// The one list of fields: written, read and compared from here, in this order. `visit(name, field)`.
template <class Visitor, class Options>
void visit_identity(Visitor& visit, Options& options) {
  visit("problem", options.model.problem);
  visit("n", options.model.n);
  visit("capacity", options.model.capacity);
  visit("hidden", options.model.hidden);
  visit("glimpses", options.model.glimpses);
  visit("clip", options.model.clip);
  visit("centre_logits", options.model.centre_logits);
  visit("has_critic", options.model.has_critic);
  visit("baseline", options.baseline);
  visit("examples", options.examples_fingerprint);
  visit("rollouts", options.rollouts);
  visit("batch", options.batch);
  visit("learning_rate", options.learning_rate);
  visit("decay", options.decay);
  visit("decay_steps", options.decay_steps);
  visit("entropy", options.entropy);
  visit("entropy_steps", options.entropy_steps);
  visit("max_norm", options.max_norm);
  visit("ema_decay", options.ema_decay);
  visit("validation_every", options.validation_every);
  visit("validation_instances", options.validation_instances);
  visit("seed", options.seed);
}

template <class Visitor, class State>
void visit_state(Visitor& visit, State& state) {
  visit("step", state.step);
  visit("tours", state.tours);
  visit("prior_tours", state.prior_tours);
  visit("seconds", state.seconds);
  visit("average_started", state.average_started);
  visit("average", state.average);
  visit("interval.steps", state.interval.steps);
  visit("interval.tours", state.interval.tours);
  visit("interval.cost", state.interval.cost);
  visit("interval.cross_entropy", state.interval.cross_entropy);
  visit("interval.baseline_loss", state.interval.baseline_loss);
  visit("interval.grad_norm", state.interval.grad_norm);
  visit("interval.entropy", state.interval.policy.entropy);
  visit("interval.mean_logit", state.interval.policy.mean_logit);
  visit("interval.saturated", state.interval.policy.saturated);
  visit("interval.decoding_steps", state.interval.policy.steps);
  visit("interval.start_seconds", state.interval.start_seconds);
  visit("parameters", state.parameters);
  visit("optimiser.first_moment", state.optimiser.first_moment);
  visit("optimiser.second_moment", state.optimiser.second_moment);
  visit("optimiser.actor_steps", state.optimiser.actor_steps);
  visit("optimiser.critic_steps", state.optimiser.critic_steps);
  visit("baseline_parameters", state.baseline_parameters);
}

template <class Visitor, class Options, class State>
void visit_file(Visitor& visit, uint32_t version, Options& options, State& state) {
  visit_identity(visit, options);
  visit("steps", options.steps);
  visit("checkpoint_every", options.checkpoint_every);
  visit_state(visit, state);
  if (version >= kEncoderVersion) visit_encoder(visit, options);
  if (version >= kEncoderVersion) visit_own(visit, options);
  if (version == kRereadVersion) visit("reread", options.model.reread);
  visit_windows(visit, options);
  if (problem_of(options.model.problem).has_first) visit("state.penalty", state.penalty);
}

struct Writer {
  std::string bytes;

  template <class T>
  void operator()(const char* name, const T& value) {
    if constexpr (std::is_same_v<T, ProblemKind>) {
      (*this)(name, std::string(name_of(value)));
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    } else {  // a string or numbers, after how many there are
      (*this)(name, static_cast<uint64_t>(value.size()));
      bytes.append(reinterpret_cast<const char*>(value.data()), value.size() * sizeof value[0]);
    }
  }
};

struct Reader {
  std::string_view rest;
  const std::string& file;

  [[noreturn]] void refuse(const char* name, const char* why) const {
    throw CheckpointError(file, std::string(name) + ": " + why);
  }
  void take(const char* name, void* to, size_t size) {
    if (rest.size() < size) refuse(name, "the file ends too early");
    if (size > 0) std::memcpy(to, rest.data(), size);
    rest.remove_prefix(size);
  }

  template <class T>
  void operator()(const char* name, T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      take(name, &value, sizeof value);
    } else {
      uint64_t count = 0;
      take(name, &count, sizeof count);
      if (count > rest.size() / sizeof value[0]) refuse(name, "longer than the file");
      value.resize(count);
      take(name, value.data(), count * sizeof value[0]);
    }
  }
  template <class T, class Number>
  void choose(const char* name, T& value, Number last, const char* why) {
    Number number = 0;
    take(name, &number, sizeof number);
    if (number > last) refuse(name, why);
    value = static_cast<T>(number);
  }
  void operator()(const char* name, bool& value) { choose(name, value, uint8_t{1}, "neither 0 nor 1"); }
  void operator()(const char* name, Baseline& value) {
    choose(name, value, static_cast<uint32_t>(Baseline::kRollout), "unknown baseline");
  }
  void operator()(const char* name, Infeasible& value) {
    choose(name, value, static_cast<uint32_t>(Infeasible::kBoth), "unknown choice");
  }
  void operator()(const char* name, Encoder& value) {
    choose(name, value, static_cast<uint32_t>(Encoder::kAttention), "unknown encoder");
  }
  void operator()(const char* name, ProblemKind& problem) {
    std::string text;
    (*this)(name, text);
    const std::optional<ProblemKind> kind = find_learned_problem(text);
    if (!kind) refuse(name, "unknown problem");
    problem = *kind;
  }
};

// Every option that shapes the training, as text.
std::vector<std::pair<std::string, std::string>> described(const TrainOptions& options) {
  std::vector<std::pair<std::string, std::string>> fields;
  const auto describe = [&]<class T>(const char* name, const T& value) {
    constexpr const char* kBaselines[] = {"shared", "critic", "ema", "rollout"};
    constexpr const char* kChoices[] = {"mask", "penalty", "both"};
    if constexpr (std::is_same_v<T, bool>) {
      fields.emplace_back(name, value ? "on" : "off");
    } else if constexpr (std::is_same_v<T, Baseline>) {
      fields.emplace_back(name, kBaselines[static_cast<int>(value)]);
    } else if constexpr (std::is_same_v<T, Infeasible>) {
      fields.emplace_back(name, kChoices[static_cast<int>(value)]);
    } else if constexpr (std::is_enum_v<T>) {
      fields.emplace_back(name, name_of(value));
    } else if constexpr (std::is_same_v<T, std::vector<double>>) {
      fields.emplace_back(name, numbers_text(value));
    } else {
      fields.emplace_back(name, number_text(value));
    }
  };
  visit_identity(describe, options);
  visit_encoder(describe, options);
  visit_own(describe, options);
  visit_windows(describe, options);
  describe("reread", options.model.reread);
  return fields;
}

// Returns the bytes between header and checksum.
std::string_view checked_fields(std::string_view bytes, const std::string& name, uint32_t& version) {
  if (bytes.size() < kHeaderSize + kChecksumSize || !bytes.starts_with(kMagic)) {
    throw CheckpointError(name, "not a checkpoint of pointsman");
  }
  const auto expect = [&](const char* what, uint64_t expected, uint64_t found, const char* unit) {
    if (expected == found) return;
    throw CheckpointError(name, std::string(what) + ": expected " + std::to_string(expected) + unit +
                                    ", found " + std::to_string(found));
  };
  const std::string_view covered = bytes.substr(0, bytes.size() - kChecksumSize);
  Reader header{bytes.substr(kMagic.size()), name}, end{bytes.substr(covered.size()), name};
  uint64_t size = 0, checksum = 0;
  header("version", version);
  header("size", size);
  end("checksum", checksum);
  if (version != kEncoderVersion && version != kRereadVersion) expect("version", kLstmVersion, version, "");
  expect("size", size, bytes.size(), " bytes");
  if (fnv1a(covered) != checksum) throw CheckpointError(name, "checksum: the file is damaged");
  return covered.substr(kHeaderSize);
}

// A checksum is no proof of origin: what sizes memory or indexes it is checked as well.
void check_values(const Checkpoint& checkpoint, const Reader& reader) {
  const ModelConfig& model = checkpoint.options.model;
  const TrainState& state = checkpoint.state;
  const OptimiserState& optimiser = state.optimiser;
  const auto require = [&](bool holds, const char* name, const char* why) {
    if (!holds) reader.refuse(name, why);
  };
  const auto is_between = [](int low, int number, int high) { return low <= number && number <= high; };
  const auto is_finite = [](double value) { return std::isfinite(value); };
  const auto are_finite = [&](const std::vector<float>& values) {
    return std::all_of(values.begin(), values.end(), is_finite);
  };
  require(model.n >= 1, "n", "not positive");
  require(is_between(1, model.hidden, 65536), "hidden", "not in 1 .. 65536");
  require(is_between(1, model.layers, 64), "layers", "not in 1 .. 64");
  require(model.own.width() <= kMostOwnFeatures && model.own.scales.size() == model.own.offsets.size(),
          "offsets, scales", "not as many as a problem may have");
  require(is_between(16, model.feed_forward, 65536), "feed_forward", "not in 16 .. 65536");
  require(is_between(0, model.glimpses, 4), "glimpses", "not in 0 .. 4");
  require(model.reread == 0 || (is_between(1, model.reread, kMostReread) && can_reread(model)), "reread",
          "not what a network can do");
  require(state.step >= 0 && state.tours >= 0 && state.prior_tours >= 0, "step, tours", "negative");
  require(optimiser.actor_steps >= 0 && optimiser.critic_steps >= 0,
          "optimiser.actor_steps, optimiser.critic_steps", "negative");
  const size_t size = ParameterLayout(model).size;
  require(state.parameters.size() == size, "parameters", "not the size of the model");
  require(optimiser.first_moment.size() == size && optimiser.second_moment.size() == size, "optimiser",
          "not the size of the model");
  require(are_finite(state.parameters) && are_finite(state.baseline_parameters), "parameters", "not finite");
  const std::vector<float>& squares = optimiser.second_moment;
  require(are_finite(optimiser.first_moment) && are_finite(squares) &&
              std::none_of(squares.begin(), squares.end(), [](float square) { return square < 0.0f; }),
          "optimiser", "no moments");
  require(is_finite(state.average) && is_finite(state.seconds) && is_finite(state.penalty),
          "average, seconds, penalty", "not finite");
  const bool has_baseline = checkpoint.options.baseline == Baseline::kRollout;
  require(state.baseline_parameters.size() == (has_baseline ? size : 0), "baseline_parameters",
          "not the size that the baseline needs");
}

}  // namespace

std::string checkpoint_bytes(const TrainOptions& options, const TrainState& state) {
  Writer writer;
  writer.bytes = kMagic;
  writer("version", version_of(options.model));
  writer("size", uint64_t{0});
  visit_file(writer, version_of(options.model), options, state);
  const uint64_t size = writer.bytes.size() + kChecksumSize;
  std::memcpy(writer.bytes.data() + 12, &size, sizeof size);
  writer("checksum", fnv1a(writer.bytes));
  return std::move(writer.bytes);
}

Checkpoint parse_checkpoint(std::string_view bytes, const std::string& name) {
  uint32_t version = 0;
  Reader reader{checked_fields(bytes, name, version), name};
  Checkpoint checkpoint;
  visit_file(reader, version, checkpoint.options, checkpoint.state);
  if (!reader.rest.empty()) reader.refuse("end", "bytes left over");
  if (version != version_of(checkpoint.options.model)) reader.refuse("version", "not that of its network");
  check_values(checkpoint, reader);
  return checkpoint;
}

Checkpoint read_checkpoint(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file && errno == ENOMEM) throw std::bad_alloc();
  if (!file || !std::filesystem::is_regular_file(path)) {
    throw CheckpointError(path.string(), "cannot be read: not a file, or not allowed");
  }
  std::string bytes(std::filesystem::file_size(path), '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file) throw CheckpointError(path.string(), "cannot be read");
  return parse_checkpoint(bytes, path.string());
}

void require_same_training(const TrainOptions& saved, const TrainOptions& asked, const std::string& name) {
  const auto ours = described(asked), theirs = described(saved);
  for (size_t i = 0; i < ours.size(); ++i) {
    if (theirs[i] == ours[i]) continue;
    throw CheckpointError(name, ours[i].first + ": the checkpoint was made with " + theirs[i].second +
                                    ", asked for " + ours[i].second);
  }
}

}  // namespace pointsman
