// SPDX-License-Identifier: Apache-2.0
#include "bench/engine/torch_twin.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "models/parameter_layout.h"

namespace pointsman::bench {

// --- The process ---

namespace {

int require(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

// In a process group of its own: Ctrl-C is for this program, which then ends its child.
pid_t spawn(std::vector<std::string> words, int channel, int errors) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t process = require(fork(), "fork");
  if (process != 0) return process;
  setpgid(0, 0);
  dup2(channel, STDIN_FILENO);
  dup2(channel, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  execvp(argv[0], argv.data());
  _exit(127);
}

int wait_for(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

bool has_torch(const std::string& python) {
  const int nothing = require(open("/dev/null", O_RDWR | O_CLOEXEC), "/dev/null");
  const pid_t process = spawn({python, "-c", "import torch, numpy"}, nothing, nothing);
  close(nothing);
  return wait_for(process) == 0;
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "pointsman-bench-XXXXXX").string();
  if (!mkdtemp(name.data())) throw std::system_error(errno, std::generic_category(), name);
  path = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

TorchTwin::TorchTwin(const std::string& python, const std::string& script, const Model& model) {
  const std::filesystem::path file = folder() / "model.safetensors";
  write_model(file, model.config, model.parameters);
  int ends[2];
  require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), "socketpair");
  channel_ = ends[0];
  process_ = spawn({python, script, "--model", file.string()}, ends[1], STDERR_FILENO);
  close(ends[1]);
  settings_ = read_answer();
}

TorchTwin::~TorchTwin() {
  close(channel_);  // the end of its input ends it
  wait_for(process_);
}

nlohmann::json TorchTwin::ask(const nlohmann::json& command) {
  const std::string text = command.dump() + "\n";
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = write(channel_, text.data() + done, text.size() - done);
    if (written < 0 && errno != EINTR) break;  // it has gone: the answer's absence tells
    if (written > 0) done += static_cast<size_t>(written);
  }
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
  char bytes[4096];
  size_t end;
  while ((end = received_.find('\n')) == std::string::npos) {
    const ssize_t length = read(channel_, bytes, sizeof bytes);
    if (length < 0 && errno == EINTR) continue;
    if (length <= 0) {
      throw std::runtime_error("the PyTorch twin stopped without an answer (see its message above)");
    }
    received_.append(bytes, static_cast<size_t>(length));
  }
  const std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
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
  caller.greedy(count);
  caller.add_gradient(count, nullptr);
  std::vector<float> ours(layout.size), theirs(layout.size);
  caller.backend->read_gradient(0, ours);
  const std::filesystem::path file = twin.folder() / "gradient.bin";
  const nlohmann::json answer = twin.ask({{"do", "gradient"},
                                          {"orders", rows_of(caller.result.orders, caller.n)},
                                          {"weights", caller.weights},
                                          {"targets", caller.targets},
                                          {"out", file.string()}});
  Worst values;
  for (size_t s = 0; s < caller.values.size(); ++s) {
    show_relative(values, static_cast<double>(caller.values[s]), answer["values"][s]);
  }
  if (values.value > kLogProbBound) {
    throw CheckFailure("critic: a value " + Json(values.value).dump() + " from the twin's");
  }
  std::ifstream stream(file, std::ios::binary);
  for (const std::string name : answer["names"]) {
    const auto slot = std::find_if(layout.tensors.begin(), layout.tensors.end(),
                                   [&](const Tensor& tensor) { return tensor.name == name; });
    stream.read(reinterpret_cast<char*>(&theirs[slot->offset]),
                static_cast<std::streamsize>(slot->size * sizeof(float)));
  }
  compare_gradients(layout, ours, theirs);
}

}  // namespace pointsman::bench
