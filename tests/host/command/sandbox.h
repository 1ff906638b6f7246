// SPDX-License-Identifier: Apache-2.0
// The program run in a folder of its own, for the tests of its subcommands.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "models/parameter_file.h"
#include "models/parameter_layout.h"
#include "tests/catch.h"
#include "tests/temporary_folder.h"

namespace pointsman {

namespace fs = std::filesystem;
using nlohmann::json;

struct Answer {
  int code;  // exit code; -1 when a signal killed the process
  std::string out, err;
  json parsed() const { return json::parse(out); }
};

inline std::string read_file(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// The program that is tested: the one built beside the tests, or another, say one with sanitizers.
inline std::string program() {
  const char* const other = std::getenv("POINTSMAN_TEST_PROGRAM");
  return other != nullptr ? other : POINTSMAN_BINARY;
}

// A folder of its own with two untrained models, and the program run in it.
class Sandbox {
 public:
  Sandbox() {
    fs::create_directory(folder_ / "models");
    add_model("tsp", 20, 0.0);
    add_model("knapsack", 50, 12.5);
  }

  // Starts `environment pointsman arguments` in the folder. The shell's own redirections may follow in
  // `arguments`.
  pid_t start(const std::string& arguments, const std::string& environment = "") const {
    const pid_t child = fork();
    if (child == 0) {
      const std::string command = "cd '" + folder_.path().string() +
                                  "' && export POINTSMAN_MODEL_PATH=models " + environment + " && exec '" +
                                  program() + "' >out 2>err </dev/null " + arguments;
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    return child;
  }

  Answer finish(pid_t child) const {
    int status = 0;
    waitpid(child, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(folder_ / "out"),
            read_file(folder_ / "err")};
  }

  Answer run(const std::string& arguments, const std::string& environment = "") const {
    return finish(start(arguments, environment));
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  std::string read(const std::string& name) const { return read_file(folder_ / name); }
  bool exists(const std::string& name) const { return fs::exists(folder_ / name); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  void add_model(const std::string& problem, int n, double capacity, uint64_t seed = 1) const {
    ModelConfig config;
    config.problem = pointsman::find_problem(problem).value();
    config.n = n;
    config.capacity = capacity;
    config.has_critic = false;
    write_model(folder_ / "models" / (problem + std::to_string(n) + ".safetensors"), config,
                initial_parameters(config, seed));
  }

 private:
  TemporaryFolder folder_;
};

// For a program's standard streams.
class Terminal {
 public:
  Terminal() : terminal_(posix_openpt(O_RDWR | O_NOCTTY)) {
    REQUIRE((terminal_ >= 0 && grantpt(terminal_) == 0 && unlockpt(terminal_) == 0));
    name_ = ptsname(terminal_);
    other_end_ = open(name_.c_str(), O_RDWR | O_NOCTTY);  // keeps what was written until it is read
  }
  ~Terminal() {
    close(other_end_);
    close(terminal_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  const std::string& name() const { return name_; }

  // What was written since the last call. Lines end in "\r\n".
  std::string shown() const {
    fcntl(terminal_, F_SETFL, O_NONBLOCK);
    std::string text;
    char bytes[4096];
    for (ssize_t length; (length = ::read(terminal_, bytes, sizeof bytes)) > 0;)
      text.append(bytes, static_cast<size_t>(length));
    return text;
  }

 private:
  int terminal_, other_end_ = -1;
  std::string name_;
};

inline const std::string kMap = "'" POINTSMAN_SOURCE_DIR "/tests/data/capitals.tsp'";
inline const std::string kMapTour = "'" POINTSMAN_SOURCE_DIR "/tests/data/capitals.opt.tour'";
inline const std::string kKnapsack = "'" POINTSMAN_SOURCE_DIR "/tests/data/knapsack50.txt'";

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

inline std::string triangle(const std::string& id) {
  return "{\"id\":\"" + id + "\",\"problem\":\"tsp\",\"coordinates\":[[0,0],[3,0],[3,4]]}\n";
}

}  // namespace pointsman
