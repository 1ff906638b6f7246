// SPDX-License-Identifier: Apache-2.0
// The manual page and the completions that the program makes of its own table of options.
#include <algorithm>
#include <optional>
#include <regex>
#include <set>

#include "tests/catch.h"
#include "tests/host/command/sandbox.h"

using namespace pointsman;

namespace {

const std::vector<std::string> kSubcommands = {"solve",    "train",  "score", "eval",
                                               "generate", "verify", "info"};

// Of the help of a subcommand: "-m", "--model", ...
std::set<std::string> flags_of(const std::string& help) {
  std::set<std::string> flags;
  for (const std::string& line : lines_of(help)) {
    if (line.rfind("  -", 0) != 0) continue;
    static const std::regex flag("(^  |, )(--?[a-zA-Z][a-z-]*)");
    for (std::sregex_iterator at(line.begin(), line.begin() + std::min<long>(30, line.size()), flag), end;
         at != end; ++at) {
      flags.insert((*at)[2]);
    }
  }
  return flags;
}

std::string with_dashes(const std::string& flag) { return std::regex_replace(flag, std::regex("-"), "\\-"); }

size_t position(const std::string& text, const std::string& part, size_t from = 0) {
  INFO(part);
  const size_t at = text.find(part, from);
  REQUIRE(at != std::string::npos);
  return at;
}

// What bash offers for the last of the words.
std::set<std::string> offered(const Sandbox& sandbox, const std::string& words) {
  sandbox.write("ask.sh", "PATH=" + fs::path(program()).parent_path().string() +
                              ":$PATH\n. ./pointsman.bash\nCOMP_WORDS=(" + words +
                              ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\ncompopt() { echo \"($*)\"; }\n"
                              "_pointsman pointsman\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n");
  const std::string command =
      "cd '" + sandbox.path("") + "' && POINTSMAN_MODEL_PATH=models bash ask.sh >offers";
  REQUIRE(std::system(command.c_str()) == 0);
  std::set<std::string> words_offered;
  for (const std::string& line : lines_of(sandbox.read("offers"))) {
    if (!line.empty()) words_offered.insert(line);
  }
  return words_offered;
}

// Beside the sandbox's models, empty files whose names a shell would run, split or expand.
const std::vector<std::string> kNames = {"$(touch pwned)",
                                         "`touch pwned`",
                                         "a;touch pwned",
                                         "two words",
                                         "it's",
                                         "say \"hi\"",
                                         "back\\slash",
                                         "*",
                                         "~",
                                         "?[a-z]{1,2}",
                                         "${HOME}",
                                         "<(touch pwned)"};

void add_names(const Sandbox& sandbox) {
  for (const std::string& name : kNames) sandbox.write("models/" + name + ".safetensors", "");
  for (const char* name : {"two\nlines", "tab\tbed", "\x1b[31mred", "\xc2\x9b\x33\x31m"})
    sandbox.write("models/" + std::string(name) + ".safetensors", "");
}

// The lines that a shell prints for a script; none where the shell is not installed.
std::optional<std::vector<std::string>> printed_by(const Sandbox& sandbox, const std::string& shell,
                                                   const std::string& script) {
  if (std::system(("command -v " + shell + " >/dev/null").c_str()) != 0) {
    std::puts(("skipped: no " + shell).c_str());
    return std::nullopt;
  }
  sandbox.write("ask", script);
  const std::string command = "cd '" + sandbox.path("") + "' && HOME=$PWD POINTSMAN_MODEL_PATH=models PATH=" +
                              fs::path(program()).parent_path().string() + ":$PATH " + shell + " ask >offers";
  REQUIRE(std::system(command.c_str()) == 0);
  return lines_of(sandbox.read("offers"));
}

}  // namespace

TEST_CASE("the manual page has every flag and only macros of man(7)") {
  const Sandbox sandbox;
  const Answer answer = sandbox.run("--man");
  REQUIRE(answer.code == 0);
  CHECK(answer.err.empty());
  const std::string& page = answer.out;
  CHECK(page == sandbox.run("--man", "POINTSMAN_SAMPLES=many").out);  // the environment is not told
  static const std::set<std::string> macros = {".TH", ".SH", ".SS", ".TP", ".PP", ".EX", ".EE", ".nf", ".fi"};
  for (const std::string& line : lines_of(page)) {
    INFO(line);
    CHECK((line[0] != '.' || macros.count(line.substr(0, line.find(' '))) == 1));
    CHECK(line[0] != '\'');
    CHECK(std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; }));
  }
  const size_t common = position(page, "\n.SH COMMON OPTIONS\n");
  for (const std::string& name : kSubcommands) {
    const size_t begin = position(page, "\n.SS pointsman " + name + "\n");
    const std::string own = page.substr(begin, page.find("\n.S", begin + 1) - begin);
    const std::string shared = page.substr(common);
    const std::set<std::string> flags = flags_of(sandbox.run(name + " --help").out);
    CHECK(flags.size() >= 18);
    for (const std::string& flag : flags) {
      INFO(name << " " << flag);
      const std::string tag = "\\fB" + with_dashes(flag) + "\\fR";
      CHECK((own.find(tag) != std::string::npos) != (shared.find(tag) != std::string::npos));
    }
  }
  position(page, ".SH EXIT STATUS\n.TP\n\\fB0\\fR\ndone\n");
  if (std::system("command -v groff >/dev/null") != 0) return;
  sandbox.write("pointsman.1", page);
  const std::string command =
      "groff -man -ww -Tascii '" + sandbox.path("pointsman.1") + "' 2>&1 >/dev/null | grep .";
  CHECK(std::system(command.c_str()) != 0);  // it has nothing to say
}

TEST_CASE("bash completes subcommands, flags, values, files and models") {
  const Sandbox sandbox;
  sandbox.write("pointsman.bash", sandbox.run("--completion bash").out);
  using Words = std::set<std::string>;
  const Words files = {"(-o default)"};
  for (const std::string& name : kSubcommands) {
    CHECK(offered(sandbox, "pointsman " + name.substr(0, 3)).count(name) == 1);
    CHECK(offered(sandbox, "pointsman " + name + " -") == flags_of(sandbox.run(name + " --help").out));
  }
  CHECK(offered(sandbox, "pointsman --comp") == Words{"--completion"});
  CHECK(offered(sandbox, "pointsman --completion ''") == Words{"bash", "zsh", "fish"});
  CHECK(offered(sandbox, "pointsman solve --format n") == Words{"ndjson", "npy", "npz"});
  CHECK(offered(sandbox, "pointsman solve --format = t") == Words{"tour", "text"});
  CHECK(offered(sandbox, "pointsman solve --format =") == offered(sandbox, "pointsman solve --format ''"));
  CHECK(offered(sandbox, "pointsman solve -m kn") == Words{"(-o default)", "knap100", "knap100-lstm",
                                                           "knap200", "knap200-lstm", "knap50", "knap50-lstm",
                                                           "knapsack50"});
  CHECK(offered(sandbox, "pointsman solve --samples ''").empty());
  for (const char* words : {"solve ''", "solve x.tsp ''", "solve -o ''", "verify x ''",
                            "train tsp --instances ''", "verify --format = text x ''"}) {
    INFO(words);
    CHECK(offered(sandbox, std::string("pointsman ") + words) == files);
  }
  CHECK(offered(sandbox, "pointsman train ''") ==
        Words{"tsp", "knapsack", "cvrp", "atsp", "path", "tsptw", "colouring"});
  for (const char* flags : {"--log x", "--log = x", "-q"})
    CHECK(offered(sandbox, std::string("pointsman train ") + flags + " k") == Words{"knapsack"});
}

TEST_CASE("bash quotes the names of models and runs nothing of them") {
  const Sandbox sandbox;
  sandbox.write("pointsman.bash", sandbox.run("--completion bash").out);
  add_names(sandbox);
  std::vector<std::string> words;
  for (const std::string& offer : offered(sandbox, "pointsman solve -m ''")) {
    if (offer == "(-o default)") continue;
    sandbox.write("unquote.sh", "printf %s " + offer);
    REQUIRE(std::system(("cd '" + sandbox.path("") + "' && bash unquote.sh >word").c_str()) == 0);
    words.push_back(sandbox.read("word"));
  }
  CHECK_FALSE(sandbox.exists("pwned"));
  std::sort(words.begin(), words.end());
  CHECK(words == lines_of(sandbox.run("--models").out));
  for (const std::string& name : kNames) {
    INFO(name);
    CHECK(std::count(words.begin(), words.end(), name) == 1);
  }
  CHECK(offered(sandbox, "pointsman solve -m '\\$\\(to'").count("\\$\\(touch\\ pwned\\)") == 1);
}

TEST_CASE("zsh and fish offer the names of models and run nothing of them") {
  const Sandbox sandbox;
  sandbox.write("_pointsman", sandbox.run("--completion zsh").out);
  sandbox.write("pointsman.fish", sandbox.run("--completion fish").out);
  add_names(sandbox);
  const std::vector<std::string> names = lines_of(sandbox.run("--models").out);
  const auto zsh = printed_by(sandbox, "zsh",
                              "compdef() {}\n_call_program() { shift; eval \"$@\" }\n. ./_pointsman\n"
                              "_alternative() { print -rl -- $names }\n_pointsman_models\n");
  if (zsh) CHECK(*zsh == names);
  const auto fish =
      printed_by(sandbox, "fish",
                 ". ./pointsman.fish\ncomplete -C 'pointsman solve -m ' | string replace -r '\\t.*' ''\n");
  for (const std::string& name : fish ? names : std::vector<std::string>()) {
    INFO(name);
    CHECK(std::count(fish->begin(), fish->end(), name) == 1);
  }
  CHECK_FALSE(sandbox.exists("pwned"));
}

TEST_CASE("zsh and fish know every flag too") {
  const Sandbox sandbox;
  const std::string zsh = sandbox.run("--completion zsh").out, fish = sandbox.run("--completion fish").out;
  CHECK(zsh.rfind("#compdef pointsman\n", 0) == 0);
  for (const std::string& name : kSubcommands) {
    const size_t begin = position(zsh, "\n        " + name + ")\n");
    const std::string arm = zsh.substr(begin, zsh.find("\n          ;;\n", begin) - begin);
    const std::string seen = "complete -c pointsman -n '__fish_seen_subcommand_from " + name + "'";
    std::string lines;
    for (const std::string& line : lines_of(fish)) {
      if (line.rfind(seen, 0) == 0) lines += line + "\n";
    }
    for (const std::string& flag : flags_of(sandbox.run(name + " --help").out)) {
      INFO(name << " " << flag);
      CHECK(std::regex_search(arm, std::regex("[ ')},{*]" + flag + "[=+ '},\\[]")));
      const std::string option = flag.rfind("--", 0) == 0 ? " -l " + flag.substr(2) : " -s " + flag.substr(1);
      CHECK(lines.find(option + " ") != std::string::npos);
    }
  }
  position(zsh, ":TEXT:(auto ", position(zsh, "'(--mode)--mode=["));
  position(zsh, "'(-m --model)'{-m+,--model=}'[");
  position(fish, " -l mode -x -a 'auto ");
}

TEST_CASE("models are named a line each") {
  const Sandbox sandbox;
  const std::vector<std::string> names = lines_of(sandbox.run("--models").out);
  CHECK(std::is_sorted(names.begin(), names.end()));
  for (const char* name : {"tsp20", "tsp50", "knapsack50"})
    CHECK(std::count(names.begin(), names.end(), name) == 1);
  add_names(sandbox);
  // One that no line can hold, or that a terminal obeys, is left out.
  CHECK(lines_of(sandbox.run("--models").out).size() == names.size() + kNames.size());
}
