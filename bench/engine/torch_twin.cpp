// SPDX-License-Identifier: Apache-2.0
#include "bench/engine/torch_twin.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "models/parameter_layout.h"

namespace pointsman::bench {

// --- The process ---

namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// In quotes for the shell.
std::string word(std::string text) {
  for (size_t at = 0; (at = text.find('\'', at)) != text.npos; at += 4) text.replace(at, 1, "'\\''");
  return "'" + text + "'";
}

// A child in a session of its own: Ctrl-C is for this program, which then ends its child. The pipe is its
// stdout.
FILE* start(const std::string& command) {
  FILE* const pipe = popen(("exec setsid " + command).c_str(), "re");
  if (pipe == nullptr) fail("popen");
  return pipe;
}

bool has_torch(const std::string& python) {
  return pclose(start(word(python) + " -c 'import torch, numpy' 2>/dev/null")) == 0;
}

}  // namespace

TorchTwin::TorchTwin() {
  std::string name = (std::filesystem::temp_directory_path() / "pointsman-bench-XXXXXX").string();
  if (!mkdtemp(name.data())) fail(name);
  folder_ = name;
}

TorchTwin::TorchTwin(const std::string& python, const std::string& script, const Model& model) : TorchTwin() {
  const std::string file = folder() / "model.safetensors", commands = folder() / "commands";
  write_model(file, model.config, model.parameters);
  if (mkfifo(commands.c_str(), 0600) != 0) fail(commands);
  answers_ = start(word(python) + " " + word(script) + " --model " + word(file) + " <" + word(commands));
  commands_.open(commands);  // returns once the child has opened its end
  settings_ = read_answer();
}

TorchTwin::~TorchTwin() {
  commands_.close();  // the end of its input ends it
  if (answers_ != nullptr) pclose(answers_);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

nlohmann::json TorchTwin::ask(const nlohmann::json& command) {
  commands_ << command.dump() << std::endl;  // where it has gone, the answer's absence tells
  return read_answer();
}

void TorchTwin::load(const Caller& caller) {
  const std::filesystem::path file = folder() / "features.bin";
  const std::vector<float>& features = caller.features;
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(features.data()),
             static_cast<std::streamsize>(features.size() * sizeof(float)));
  ask({{"do", "load"},
       {"features", file.string()},
       {"count", features.size() / (2 * caller.n)},
       {"n", caller.n}});
}

nlohmann::json TorchTwin::read_answer() {
  std::string line;
  for (int c; (errno = 0, c = std::getc(answers_)) != '\n';) {
    if (c != EOF) {
      line += static_cast<char>(c);
    } else if (errno == EINTR) {
      std::clearerr(answers_);
    } else {
      throw std::runtime_error("the PyTorch twin stopped without an answer (see its message above)");
    }
  }
  return nlohmann::json::parse(line);
}

std::string find_torch_python(const std::string& wanted) {
  const std::vector<std::string> names =
      wanted.empty() ? std::vector<std::string>{"python3", "/usr/bin/python3"} : std::vector{wanted};
  const auto found = std::find_if(names.begin(), names.end(), has_torch);
  return found == names.end() ? std::string() : *found;
}

// --- Its answers beside ours ---

namespace {

Json rows_of(const std::vector<int32_t>& orders, int n) {
  Json rows = Json::array();
  for (auto row = orders.begin(); row != orders.end(); row += n) {
    rows.push_back(std::vector<int32_t>(row, row + n));
  }
  return rows;
}

void show_relative(Worst& worst, double ours, double theirs) {
  worst.show((ours - theirs) / std::max(1.0, std::abs(theirs)));
}

// Asks about the last result's tours and compares their log p.
nlohmann::json compare_log_probs(const char* command, const Caller& caller, TorchTwin& twin, Worst& worst) {
  const nlohmann::json theirs =
      twin.ask({{"do", command}, {"orders", rows_of(caller.result.orders, caller.n)}});
  for (size_t r = 0; r < caller.result.log_probs.size(); ++r) {
    show_relative(worst, caller.result.log_probs[r], theirs["log_probs"][r]);
  }
  return theirs;
}

// Two float32 gradients: 1e-3 of the tensor's largest magnitude, plus the rounding of what cancels in tensors
// whose gradient is next to nothing at the initial weights.
void compare_gradients(const ParameterLayout& layout, const std::vector<float>& ours,
                       const std::vector<float>& theirs) {
  const auto largest = [&](size_t first, size_t size) {
    Worst worst;
    for (size_t k = first; k < first + size; ++k) worst.show(static_cast<double>(theirs[k]));
    return worst.value;
  };
  const double actor = largest(0, layout.actor_size),
               critic = largest(layout.actor_size, layout.size - layout.actor_size);
  for (const Tensor& slot : layout.tensors) {
    const double bound =
        1e-3 * largest(slot.offset, slot.size) + 1e-6 * (slot.offset < layout.actor_size ? actor : critic);
    Worst worst;
    for (size_t k = slot.offset; k < slot.offset + slot.size; ++k) {
      worst.show(static_cast<double>(ours[k]) - static_cast<double>(theirs[k]));
    }
    if (worst.value <= bound && std::isfinite(worst.value)) continue;
    throw CheckFailure(slot.name + ": a gradient " + Json(worst.value).dump() + " from the twin's");
  }
}

}  // namespace

TwinDifference compare_tours(Caller& caller, TorchTwin& twin, int greedy, int samples) {
  TwinDifference difference;
  caller.greedy(greedy);
  const nlohmann::json judged = compare_log_probs("judge_greedy", caller, twin, difference.log_prob);
  for (const nlohmann::json& worst : judged["worst"]) difference.choice.show(worst);
  caller.sample(samples);
  compare_log_probs("score", caller, twin, difference.log_prob);
  return difference;
}

void check_gradient(Caller& caller, TorchTwin& twin, int count) {
  const ParameterLayout layout(caller.model.config);
  caller.add_gradient(count, nullptr);
  std::vector<float> ours(layout.size), theirs(layout.size);
  caller.backend->read_gradient(0, ours);
  const std::filesystem::path file = twin.folder() / "gradient.bin";
  const nlohmann::json answer = twin.ask({{"do", "gradient"},
                                          {"orders", rows_of(caller.result.orders, caller.n)},
                                          {"weights", caller.weights},
                                          {"targets", caller.targets},
                                          {"rollouts", caller.rollouts()},
                                          {"out", file.string()}});
  Worst values;
  for (size_t s = 0; s < caller.values.size(); ++s) {
    show_relative(values, static_cast<double>(caller.values[s]), answer["values"][s]);
  }
  if (values.value > kLogProbBound) {
    throw CheckFailure("critic: a value " + Json(values.value).dump() + " from the twin's");
  }
  std::ifstream(file, std::ios::binary)
      .read(reinterpret_cast<char*>(theirs.data()),
            static_cast<std::streamsize>(theirs.size() * sizeof(float)));
  compare_gradients(layout, ours, theirs);
}

}  // namespace pointsman::bench
