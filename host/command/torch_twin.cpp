// SPDX-License-Identifier: Apache-2.0
#include "host/command/torch_twin.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <system_error>
#include <vector>

extern char** environ;

namespace pointsman {

namespace {

pid_t spawn(std::vector<std::string> arguments, posix_spawn_file_actions_t& actions) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t process = -1;
  const int error = posix_spawnp(&process, argv[0], &actions, nullptr, argv.data(), environ);
  return error == 0 ? process : -1;
}

int wait_for(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

bool has_torch(const std::string& python) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0);
  }
  const pid_t process = spawn({python, "-c", "import torch, numpy"}, actions);
  posix_spawn_file_actions_destroy(&actions);
  return process >= 0 && wait_for(process) == 0;
}

}  // namespace

TorchTwin::TorchTwin(const std::string& python, const std::filesystem::path& script,
                     const std::filesystem::path& model) {
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe");
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
  process_ = spawn({python, script.string(), "--model", model.string()}, actions);
  posix_spawn_file_actions_destroy(&actions);
  close(to[0]);
  close(from[1]);
  to_ = fdopen(to[1], "w");
  from_ = fdopen(from[0], "r");
  settings_ = read_answer();
}

TorchTwin::~TorchTwin() {
  std::fclose(to_);  // the end of its input ends it
  std::fclose(from_);
  if (process_ >= 0) wait_for(process_);
}

nlohmann::json TorchTwin::ask(const nlohmann::json& command) {
  std::fputs((command.dump() + "\n").c_str(), to_);
  std::fflush(to_);
  return read_answer();
}

nlohmann::json TorchTwin::read_answer() {
  char* line = nullptr;
  size_t capacity = 0;
  const ssize_t length = getline(&line, &capacity, from_);
  const std::string text(line ? line : "", length > 0 ? static_cast<size_t>(length) : 0);
  std::free(line);
  if (text.empty())
    throw std::runtime_error("the PyTorch twin stopped without an answer (see its message above)");
  return nlohmann::json::parse(text);
}

std::string find_torch_python(const std::string& wanted) {
  const std::vector<std::string> candidates = wanted.empty()
                                                  ? std::vector<std::string>{"python3", "/usr/bin/python3"}
                                                  : std::vector<std::string>{wanted};
  for (const std::string& python : candidates) {
    if (has_torch(python)) return python;
  }
  return {};
}

std::filesystem::path default_twin_script() {
  return std::filesystem::path(POINTSMAN_SOURCE_MODELS).parent_path().parent_path() / "bench" /
         "torch_twin.py";
}

}  // namespace pointsman
