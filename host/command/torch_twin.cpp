// SPDX-License-Identifier: Apache-2.0
#include "host/command/torch_twin.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <vector>

extern char** environ;

namespace pointsman {

namespace {

// In a process group of its own: Ctrl-C is for this program, which then ends its child.
pid_t spawn(std::vector<std::string> arguments, posix_spawn_file_actions_t& actions) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t process = -1;
  const int error = posix_spawnp(&process, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
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
  to_ = to[1];
  from_ = from[0];
  settings_ = read_answer();
}

TorchTwin::~TorchTwin() {
  close(to_);  // the end of its input ends it
  close(from_);
  if (process_ >= 0) wait_for(process_);
}

nlohmann::json TorchTwin::ask(const nlohmann::json& command) {
  const std::string text = command.dump() + "\n";
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = write(to_, text.data() + done, text.size() - done);
    if (written < 0 && errno != EINTR) break;  // it has gone: the answer's absence tells
    if (written > 0) done += static_cast<size_t>(written);
  }
  return read_answer();
}

nlohmann::json TorchTwin::read_answer() {
  char bytes[4096];
  size_t end;
  while ((end = received_.find('\n')) == std::string::npos) {
    const ssize_t length = read(from_, bytes, sizeof bytes);
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
