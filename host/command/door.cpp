// SPDX-License-Identifier: Apache-2.0
#include "host/command/door.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <system_error>

#include "host/command/process_ranks.h"

namespace pointsman {

namespace {

[[noreturn]] void go_through(Door door, const std::vector<std::string>& more) {
  door.words.insert(door.words.end(), more.begin(), more.end());
  std::vector<char*> argv;
  for (std::string& word : door.words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  throw std::system_error(errno, std::generic_category(), door.missing + ": " + door.words[0]);
}

}  // namespace

Command add_door(CLI::App& parent, const std::string& name, const std::string& what, Door (*door)()) {
  CLI::App* app = parent.add_subcommand(name, what);
  app->set_help_flag();
  app->prefix_command();
  return {app, std::make_shared<CommonOptions>(), [=]() -> int {
            if (process_ranks().size() > 1) throw UsageError(name + ": is for one process");
            go_through(door(), app->remaining());
          }};
}

}  // namespace pointsman
