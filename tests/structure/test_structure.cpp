// SPDX-License-Identifier: Apache-2.0
// The house rules that a program can check (docs/layout.md, CONTRIBUTING.md): who may include whom, one
// licence line a file, include guards, no device in the preprocessor, no path of one machine, short
// functions, few places that know a problem, small rooms, pages with short lines, tests that mirror the
// rooms. Every rule is also tried on text that breaks it.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/structure/functions.h"

namespace {

namespace fs = std::filesystem;

struct SourceFile {
  std::string path;  // from the root of the repository
  std::string text;
};

using Violations = std::vector<std::string>;

bool starts_with(const std::string& text, const std::string& start) { return text.rfind(start, 0) == 0; }

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool is_header(const SourceFile& file) {
  return ends_with(file.path, ".h") || ends_with(file.path, ".hpp") || ends_with(file.path, ".cuh");
}
bool is_cpp(const SourceFile& file) {
  return is_header(file) || ends_with(file.path, ".cpp") || ends_with(file.path, ".cu");
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// ------------------------------------------------------------------ the include table

// The files of the folder `room` may include quoted paths of its own and of the folders `rooms`, the C++
// standard library, angle-bracket paths that start with one of `libraries`, and the system's <*.h> where
// `posix` is set.
struct Row {
  std::string room;
  std::vector<std::string> rooms, libraries;
  bool posix = false;
};

// The same table is in docs/layout.md.
const std::vector<Row> kTable = {
    {"kernels/common", {}, {}},
    {"kernels/tools", {}, {}},
    {"kernels/cpu", {"kernels/common", "kernels/tools"}, {"hwy/"}},
    {"kernels/cuda",
     {"kernels/common", "kernels/tools"},
     {"cuda_runtime.h", "cublas_v2.h", "cub/device/", "cxxabi.h"}},
    {"models/tools", {}, {"nlohmann/", "dlfcn.h", "link.h"}, true},
    {"models", {"kernels/common", "models/tools"}, {"nlohmann/", "nettle/"}},
    {"engine/problem", {"kernels/common", "kernels/tools"}, {}},
    {"engine/cluster", {"models/tools"}, {"dlfcn.h"}},
    {"engine/cluster/mpi", {"engine/cluster"}, {"mpi.h"}, true},
    {"engine/backend", {"kernels/common", "kernels/tools", "models/tools", "models"}, {"dlfcn.h"}},
    {"engine/backend/cpu",
     {"kernels/common", "kernels/tools", "kernels/cpu", "models", "engine/backend"},
     {}},
    {"engine/backend/cuda",
     {"kernels/common", "kernels/tools", "kernels/cuda", "models", "engine/cluster", "engine/backend"},
     {"cuda_runtime.h", "dlfcn.h"}},
    {"engine/backend/ranks", {"engine/cluster", "engine/backend", "engine/backend/cpu"}, {}},
    {"engine/search", {"kernels/common", "kernels/tools", "models", "engine/problem", "engine/backend"}, {}},
    {"engine/search/exact", {"engine/problem", "engine/search"}, {}},
    {"engine/search/local",
     {"kernels/tools", "models", "engine/problem", "engine/search", "engine/search/exact"},
     {}},
    {"engine/search/network", {"models", "engine/problem", "engine/search"}, {}},
    {"engine/training",
     {"kernels/common", "kernels/tools", "models/tools", "models", "engine/problem", "engine/backend",
      "engine/search"},
     {}},
    {"engine/schedule",
     {"kernels/tools", "models", "engine/problem", "engine/backend", "engine/search", "engine/search/local"},
     {}},
    {"engine",
     {"models", "engine/problem", "engine/backend", "engine/search", "engine/search/exact",
      "engine/search/local", "engine/training", "engine/schedule"},
     {}},
    {"host/formats", {"models/tools", "engine/problem"}, {"nlohmann/", "zip.h", "zlib.h"}, true},
    {"host/options",
     {"models/tools", "engine/problem", "engine/backend", "engine/training", "engine", "host/formats"},
     {}},
    {"host/run",
     {"models/tools", "models", "engine/problem", "engine/cluster", "engine/backend", "engine/backend/ranks",
      "engine/search", "engine/search/local", "engine/training", "engine/schedule", "engine", "host/formats",
      "host/options"},
     {"nlohmann/"},
     true},
    {"host/library/include", {}, {"pointsman.h", "stddef.h", "stdint.h"}},
    {"host/library",
     {"models/tools", "models", "engine/problem", "engine/search", "host/formats", "host/options", "host/run",
      "host/library/include"},
     {}},
    {"host/command",
     {"models/tools", "models", "engine/problem", "engine/cluster", "engine/backend", "engine/search",
      "engine", "host/formats", "host/options", "host/run"},
     {"CLI/", "nlohmann/"},
     true},
    {"host/python",
     {"models/tools", "models", "engine/problem", "engine/search", "engine", "host/formats", "host/options",
      "host/run"},
     {"nanobind/", "Python.h", "nlohmann/", "cxxabi.h", "pthread.h"},
     true},
};

// They may include anything, and nothing of the table includes them.
const std::vector<std::string> kOutside = {"bench/", "tests/"};

std::string folder_of(const std::string& path) { return fs::path(path).parent_path().generic_string(); }

bool starts_with_any(const std::string& path, const std::vector<std::string>& starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [&](const std::string& start) { return starts_with(path, start); });
}

bool may_include(const Row& row, const std::string& path, bool quoted) {
  if (quoted) {
    const std::string folder = folder_of(path);
    return folder == row.room || std::count(row.rooms.begin(), row.rooms.end(), folder) > 0;
  }
  static const std::regex standard("[a-z_0-9]+");
  static const std::regex posix("(dirent|fcntl|poll|sched|signal|spawn|unistd|sys/[a-z]+)\\.h");
  return std::regex_match(path, standard) || starts_with_any(path, row.libraries) ||
         (row.posix && std::regex_match(path, posix));
}

Violations check_includes(const SourceFile& file, const std::set<std::string>& tree) {
  if (!is_cpp(file) || starts_with(file.path, "docs/")) return {};  // examples lie outside the tree
  const bool is_outside = starts_with_any(file.path, kOutside);
  const auto row = std::find_if(kTable.begin(), kTable.end(),
                                [&](const Row& candidate) { return candidate.room == folder_of(file.path); });
  if (!is_outside && row == kTable.end()) return {file.path + ": belongs to no room of the table"};
  static const std::regex include(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"].*)");
  Violations violations;
  for (const std::string& line : lines_of(file.text)) {
    std::smatch match;
    if (!std::regex_match(line, match, include)) continue;
    const std::string path = match[2];
    const bool quoted = match[1] == "\"";
    if (!is_outside && !may_include(*row, path, quoted))
      violations.push_back(file.path + ": may not include " + path);
    if (quoted && tree.count(path) == 0)
      violations.push_back(file.path + ": not a path from the root: " + path);
  }
  return violations;
}

// ------------------------------------------------------------------ the other rules

bool needs_licence_line(const SourceFile& file) {
  const std::string name = fs::path(file.path).filename().string();
  return is_cpp(file) || ends_with(name, ".py") || ends_with(name, ".sh") || ends_with(name, ".cmake") ||
         name == "CMakeLists.txt" || file.path == ".ci/run";
}

Violations check_licence(const SourceFile& file) {
  if (!needs_licence_line(file)) return {};
  static const std::regex licence("(//|#) SPDX-License-Identifier: Apache-2\\.0");
  const std::vector<std::string> lines = lines_of(file.text);
  const size_t place = !lines.empty() && starts_with(lines[0], "#!") ? 1 : 0;
  const auto is_licence = [](const std::string& line) { return std::regex_match(line, licence); };
  if (place < lines.size() && is_licence(lines[place]) &&
      std::count_if(lines.begin(), lines.end(), is_licence) == 1) {
    return {};
  }
  return {file.path + ": expected one licence line, the first (after #!)"};
}

Violations check_guard(const SourceFile& file) {
  if (!is_header(file) || ends_with(file.path, "-inl.h"))
    return {};  // Highway includes those once per target
  const std::vector<std::string> lines = lines_of(file.text);
  if (std::count(lines.begin(), lines.end(), "#pragma once") == 1) return {};
  return {file.path + ": expected #pragma once"};
}

// Whether a device is there is known to CMake and to the registry of backends, and to nobody else.
Violations check_devices(const SourceFile& file) {
  if (!is_cpp(file) || file.path == "kernels/common/host_device.h" ||
      file.path == "engine/backend/registry.cpp") {
    return {};
  }
  static const std::regex conditional("\\s*#\\s*(if|ifdef|ifndef|elif)\\b.*(CUDA|NVCC).*");
  Violations violations;
  for (const std::string& line : lines_of(file.text)) {
    if (std::regex_match(line, conditional))
      violations.push_back(file.path + ": a device in the preprocessor: " + line);
  }
  return violations;
}

// Put together here, so that this file does not break its own rule.
const std::string kWorkplace = std::string("/") + "work", kNeighbour = std::string("../") + "shared";

Violations check_places(const SourceFile& file) {
  if (file.path == ".ci/run") return {};
  static const std::regex place(kWorkplace + "(?![A-Za-z0-9_-])|\\.\\./" + kNeighbour.substr(3));
  if (!std::regex_search(file.text, place)) return {};
  return {file.path + ": names a place that only one machine has"};
}

// CTest's lists break at these: a test of such a name is never run, and nobody is told.
Violations check_test_names(const SourceFile& file) {
  if (!is_cpp(file) || !starts_with(file.path, "tests/") || starts_with(file.path, "tests/structure/"))
    return {};
  static const std::regex name("TEST_CASE\\(\\s*\"([^\"]*)\"");
  Violations violations;
  for (std::sregex_iterator at(file.text.begin(), file.text.end(), name), end; at != end; ++at) {
    const std::string found = (*at)[1];
    if (found.find_first_of("[];") != std::string::npos) {
      violations.push_back(file.path + ": a test's name has one of [ ] ;: " + found);
    }
  }
  return violations;
}

// ------------------------------------------------------------------ functions and problems

constexpr int kMostLines = 48;      // of a function
constexpr int kMostParameters = 6;  // of a function outside kManyParameters
constexpr int kMostKindFiles = 22;  // that name a problem kind

bool is_product(const SourceFile& file) {
  return starts_with_any(file.path, {"kernels/", "models/", "engine/", "host/", "bench/"});
}

// Launchers of kernels, and the C interface, which has no structs of C++ to pass.
const std::vector<std::string> kManyParameters = {"kernels/cuda/", "host/library/"};

Violations check_functions(const SourceFile& file) {
  if (!is_product(file) || !is_cpp(file)) return {};
  const bool may_take_many = starts_with_any(file.path, kManyParameters);
  Violations violations;
  for (const Function& function : functions_of(file.text)) {
    const std::string place = file.path + ":" + std::to_string(function.line) + ": a function of ";
    if (function.lines > kMostLines) violations.push_back(place + std::to_string(function.lines) + " lines");
    if (function.parameters > kMostParameters && !may_take_many)
      violations.push_back(place + std::to_string(function.parameters) + " parameters");
  }
  return violations;
}

bool names_kind(const SourceFile& file) {
  static const std::regex kind("\\bProblemKind::k|\\bk(Tsp|Knapsack)\\b");
  return is_product(file) && is_cpp(file) && std::regex_search(code_of(file.text), kind);
}

// A third problem would silently become the second of the two. A switch without default does not compile
// then.
Violations check_kind_choices(const SourceFile& file) {
  static const std::regex choice("\\b(ProblemKind::k\\w+|kTsp|kKnapsack)\\s*\\)*\\s*\\?");
  if (!names_kind(file) || starts_with(file.path, "engine/problem/")) return {};
  if (!std::regex_search(code_of(file.text), choice)) return {};
  return {file.path + ": a ?: on a problem kind"};
}

// ------------------------------------------------------------------ the size of rooms

struct RoomLimit {
  std::string room;
  size_t lines;        // of all its product files
  std::string reason;  // what takes most of them
};

// The rooms of the include table. Raising a limit needs a reason.
const std::vector<RoomLimit> kRoomLimits = {
    {"kernels/common/", 2381, "arithmetic and rules that all devices share, and of users' own problems"},
    {"kernels/tools/", 250, "threads, stops, hashes"},
    {"kernels/cpu/", 2050, "the operations and their gradients, on rows"},
    {"kernels/cuda/", 7476, "the same on batches, for two families of GPUs and four precisions"},
    {"models/", 1570, "model files, their checks and the cards of the shipped models"},
    {"engine/problem/", 2680, "seven problems and a user's own: generators, metrics, validation"},
    {"engine/cluster/", 600, "ranks by MPI or in one process"},
    {"engine/backend/", 7465, "every call twice, for CPU and CUDA, of several ranks, and by stretches"},
    {"engine/search/", 5740,
     "sampling, active search, local searches of tours, routes, windows and orders, crossing, exact ones"},
    {"engine/training/", 1706, "trainer, baselines, what is learned from, checkpoints"},
    {"engine/schedule/", 600, "batches, limits, several devices"},
    {"engine/engine.", 461, "the facade"},
    {"host/formats/", 6280, "readers of two dozen formats and their habits, writers of seven"},
    {"host/options/", 1207, "the table of options and its types"},
    {"host/run/", 2492, "what the program and the libraries share"},
    {"host/library/", 2130, "the C interface, own problems, and its C++ header"},
    {"host/command/", 3150, "nine subcommands and their help"},
    {"host/python/", 3530, "the package, its bindings, own problems, and the files of other programs"},
    {"bench/paper/", 1550, "the cells of the paper and a dozen other solvers, measured and shown"},
    {"bench/", 4687, "the PyTorch twin, measurements of kernels, their reports and comparisons"},
};

bool counts_as_lines(const SourceFile& file) {
  return is_product(file) && (is_cpp(file) || ends_with(file.path, ".py") || ends_with(file.path, ".pyi") ||
                              ends_with(file.path, ".sh"));
}

Violations check_room_sizes(const std::vector<SourceFile>& files) {
  std::vector<size_t> lines(kRoomLimits.size());
  Violations violations;
  for (const SourceFile& file : files) {
    if (!counts_as_lines(file)) continue;
    const auto limit = std::find_if(kRoomLimits.begin(), kRoomLimits.end(), [&](const RoomLimit& candidate) {
      return starts_with(file.path, candidate.room);
    });
    if (limit == kRoomLimits.end()) {
      violations.push_back(file.path + ": belongs to no room that has a limit");
    } else {
      lines[static_cast<size_t>(limit - kRoomLimits.begin())] += lines_of(file.text).size();
    }
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i] <= kRoomLimits[i].lines) continue;
    violations.push_back(kRoomLimits[i].room + ": " + std::to_string(lines[i]) + " lines, at most " +
                         std::to_string(kRoomLimits[i].lines) + " for " + kRoomLimits[i].reason);
  }
  return violations;
}

// ------------------------------------------------------------------ pages

constexpr size_t kWidestPage = 160;  // characters of a line

size_t characters_of(const std::string& line) {  // of UTF-8
  return static_cast<size_t>(
      std::count_if(line.begin(), line.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

// Tables, code and links cannot be wrapped.
Violations check_page_width(const SourceFile& file) {
  if (!ends_with(file.path, ".md")) return {};
  static const std::regex link(
      "\\s*([-*] )?(!?\\[[^\\]]*\\](\\([^)]*\\)|: \\S+)|<?https?://\\S+)[.,;:]?\\s*");
  Violations violations;
  bool code = false;
  int number = 0;
  for (const std::string& line : lines_of(file.text)) {
    ++number;
    const size_t start = line.find_first_not_of(' ');
    if (start != std::string::npos && line.compare(start, 3, "```") == 0) code = !code;
    if (code || characters_of(line) <= kWidestPage || line[0] == '|' || std::regex_match(line, link))
      continue;
    violations.push_back(file.path + ":" + std::to_string(number) + ": a line of " +
                         std::to_string(characters_of(line)) + " characters, at most " +
                         std::to_string(kWidestPage));
  }
  return violations;
}

// ------------------------------------------------------------------ the tests' folders

// Folders of tests that are no room's.
const std::set<std::string> kOtherTests = {"bench",  "cuda_emulation", "data",
                                           "golden", "reference",      "structure"};

std::set<std::string> rooms_of(const std::vector<SourceFile>& files) {
  std::set<std::string> rooms;
  for (const SourceFile& file : files) {
    if (is_product(file)) rooms.insert(fs::path(file.path).parent_path().generic_string());
  }
  return rooms;
}

Violations check_test_place(const SourceFile& file, const std::set<std::string>& rooms) {
  static const std::regex test("tests/(?:(.*)/)?test_[^/]*\\.cpp");
  std::smatch match;
  if (!std::regex_match(file.path, match, test)) return {};
  const std::string folder = match[1];
  if (rooms.count(folder) > 0 || kOtherTests.count(folder.substr(0, folder.find('/'))) > 0) return {};
  return {file.path + ": its folder names no room"};
}

// ------------------------------------------------------------------ the tree

bool is_binary(const fs::path& path) {
  const std::string suffix = path.extension().string();
  return suffix == ".safetensors" || suffix == ".npy" || suffix == ".npz";
}

SourceFile read(const fs::path& root, const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {path.lexically_relative(root).generic_string(),
          std::string(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>())};
}

// What belongs to the repository: the files beside this list's folders and in them; not what a build or an
// editor leaves.
std::vector<SourceFile> read_tree(const fs::path& root) {
  std::vector<SourceFile> files;
  const auto add = [&](const fs::directory_entry& entry) {
    if (entry.is_regular_file() && !is_binary(entry.path())) files.push_back(read(root, entry.path()));
  };
  for (const auto& entry : fs::directory_iterator(root)) {
    if (entry.path().filename() != ".git") add(entry);  // a file in a linked working tree
  }
  for (const char* room : {".ci", "bench", "docs", "engine", "host", "kernels", "models", "tests"}) {
    if (!fs::is_directory(root / room)) continue;
    for (auto at = fs::recursive_directory_iterator(root / room); at != fs::recursive_directory_iterator();
         ++at) {
      if (at->path().filename() == "__pycache__") at.disable_recursion_pending();
      add(*at);
    }
  }
  return files;
}

const std::vector<SourceFile>& tree() {
  static const std::vector<SourceFile> files = read_tree(POINTSMAN_SOURCE_DIR);
  return files;
}

std::set<std::string> paths_of(const std::vector<SourceFile>& files) {
  std::set<std::string> paths;
  for (const SourceFile& file : files) paths.insert(file.path);
  return paths;
}

template <typename Check>
void require_none(Check check) {
  REQUIRE(tree().size() > 100);  // the tree was found
  std::string all;
  for (const SourceFile& file : tree()) {
    for (const std::string& violation : check(file)) all += violation + "\n";
  }
  INFO(all);
  CHECK(all.empty());
}

size_t include_violations(const std::string& path, const std::string& include) {
  const std::string name = include.substr(1, include.size() - 2);
  return check_includes({path, "#include " + include + "\n"}, {name}).size();
}

}  // namespace

TEST_CASE("every include keeps to the table") {
  const std::set<std::string> paths = paths_of(tree());
  require_none([&](const SourceFile& file) { return check_includes(file, paths); });
}

TEST_CASE("the table refuses what breaks it") {
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"kernels/common/network.h", "\"kernels/cpu/cpu_operations.h\""},
      {"kernels/common/tsp.h", "\"models/config.h\""},
      {"kernels/common/tsp.h", "<hwy/highway.h>"},
      {"kernels/cpu/lstm.cpp", "\"models/config.h\""},
      {"kernels/cpu/lstm.cpp", "\"engine/backend/backend.h\""},
      {"kernels/cpu/lstm.cpp", "<unistd.h>"},
      {"kernels/cuda/lstm.cu", "\"kernels/cpu/cpu_operations.h\""},
      {"kernels/cuda/lstm.cuh", "\"engine/backend/backend.h\""},
      {"kernels/cuda/lstm.cuh", "<cub/cub.cuh>"},
      {"models/config.h", "\"kernels/cpu/cpu_operations.h\""},
      {"models/config.h", "\"engine/problem/instance.h\""},
      {"engine/problem/problem.cpp", "\"models/config.h\""},
      {"engine/problem/problem.cpp", "\"kernels/cpu/cpu_operations.h\""},
      {"engine/cluster/communicator.cpp", "\"engine/backend/backend.h\""},
      {"engine/cluster/communicator.cpp", "<mpi.h>"},
      {"engine/search/network/sampling.cpp", "\"engine/cluster/communicator.h\""},
      {"host/command/train.cpp", "\"engine/backend/ranks/cluster_backend.h\""},
      {"engine/backend/registry.cpp", "\"kernels/cpu/cpu_operations.h\""},
      {"engine/backend/registry.cpp", "\"kernels/cuda/stream.h\""},
      {"engine/backend/registry.cpp", "<cuda_runtime.h>"},
      {"engine/backend/cpu/backend.cpp", "\"engine/search/search.h\""},
      {"engine/backend/cpu/backend.cpp", "<cuda_runtime.h>"},
      {"engine/backend/cuda/backend.cpp", "\"kernels/cpu/cpu_operations.h\""},
      {"engine/search/network/sampling.cpp", "\"engine/backend/cpu/network.h\""},
      {"engine/search/network/sampling.cpp", "\"engine/search/local/two_opt.h\""},
      {"engine/search/network/sampling.cpp", "\"engine/training/trainer.h\""},
      {"engine/training/trainer.cpp", "\"kernels/cpu/cpu_operations.h\""},
      {"engine/training/trainer.cpp", "\"engine/schedule/schedule.h\""},
      {"engine/schedule/schedule.cpp", "\"engine/backend/ranks/cluster_backend.h\""},
      {"engine/engine.cpp", "\"host/formats/formats.h\""},
      {"engine/engine.cpp", "<nlohmann/json.hpp>"},
      {"host/formats/tsplib.cpp", "\"host/options/option_set.h\""},
      {"host/formats/tsplib.cpp", "\"models/parameter_file.h\""},
      {"host/formats/tsplib.cpp", "<CLI/CLI.hpp>"},
      {"host/run/solve_run.cpp", "\"host/command/command.h\""},
      {"host/run/solve_run.cpp", "<CLI/CLI.hpp>"},
      {"host/library/solve.cpp", "\"host/command/command.h\""},
      {"host/library/solve.cpp", "\"engine/backend/backends.h\""},
      {"host/library/solve.cpp", "<unistd.h>"},
      {"host/library/include/pointsman.h", "\"engine/engine.h\""},
      {"host/library/include/pointsman.hpp", "\"host/run/failure.h\""},
      {"host/command/solve.cpp", "\"host/library/include/pointsman.h\""},
      {"host/command/solve.cpp", "\"kernels/common/problem_kind.h\""},
      {"host/command/solve.cpp", "\"engine/backend/cpu/network.h\""},
      {"host/command/solve.cpp", "<zlib.h>"},
      {"host/command/solve.cpp", "<hwy/highway.h>"},
      {"host/command/solve.cpp", "<cuda_runtime.h>"},
      {"host/command/solve.cpp", "\"tests/catch.h\""},
      {"engine/search/network/sampling.cpp", "\"bench/timer.h\""},
      {"attic/old.cpp", "<vector>"},
  };
  for (const auto& [path, include] : refused) {
    INFO(path << " includes " << include);
    CHECK(include_violations(path, include) > 0);
  }
  CHECK(check_includes({"attic/old.cpp", ""}, {}).size() == 1);
  // A path that is allowed but is not one from the root.
  CHECK(check_includes({"models/config.h", "#include \"models/absent.h\"\n"}, {}).size() == 1);
  CHECK(check_includes({"models/config.h", "#  include  \"config.h\"\n"}, {"models/config.h"}).size() == 2);
}

TEST_CASE("a room includes only rooms above it in the table") {
  std::set<std::string> above;
  for (const Row& row : kTable) {
    for (const std::string& room : row.rooms) {
      INFO(row.room << " includes " << room);
      CHECK(above.count(room) == 1);
    }
    CHECK(above.insert(row.room).second);
  }
}

TEST_CASE("the table allows what keeps to it") {
  CHECK(include_violations("kernels/cpu/lstm.cpp", "<hwy/highway.h>") == 0);
  CHECK(include_violations("kernels/cuda/lstm.cu", "\"kernels/cuda/lstm.cuh\"") == 0);
  CHECK(include_violations("kernels/cuda/stream.h", "<cuda_runtime.h>") == 0);
  CHECK(include_violations("kernels/cuda/best_of.cuh", "<cub/device/device_segmented_reduce.cuh>") == 0);
  CHECK(include_violations("engine/backend/cuda/rollout.cpp", "\"kernels/cuda/cuda_operations.h\"") == 0);
  CHECK(include_violations("engine/backend/module.cpp", "<dlfcn.h>") == 0);
  CHECK(include_violations("models/tools/atomic_file.cpp", "<unistd.h>") == 0);
  CHECK(include_violations("engine/backend/cpu/backend.cpp", "\"kernels/cpu/cpu_operations.h\"") == 0);
  CHECK(include_violations("host/formats/npy_array.cpp", "<zip.h>") == 0);
  CHECK(include_violations("host/run/model_lookup.cpp", "<dirent.h>") == 0);
  CHECK(include_violations("host/library/include/pointsman.h", "<stdint.h>") == 0);
  CHECK(include_violations("host/library/include/pointsman.hpp", "<pointsman.h>") == 0);
  CHECK(include_violations("host/library/solve.cpp", "\"host/run/solve_run.h\"") == 0);
  CHECK(include_violations("host/command/main.cpp", "<CLI/CLI.hpp>") == 0);
  CHECK(include_violations("tests/kernels/common/test_philox.cpp", "\"kernels/common/philox.h\"") == 0);
}

TEST_CASE("every source file names its licence once") {
  require_none(check_licence);
  const std::string line = "// SPDX-License-Identifier: Apache-2.0\n";
  CHECK(check_licence({"a.h", line + "#pragma once\n"}).empty());
  CHECK(check_licence({"a.sh", "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n"}).empty());
  CHECK(check_licence({"a.h", "#pragma once\n"}).size() == 1);
  CHECK(check_licence({"a.h", "#pragma once\n" + line}).size() == 1);
  CHECK(check_licence({"a.cpp", line + line}).size() == 1);
  CHECK(check_licence({"room/CMakeLists.txt", "add_library(a)\n"}).size() == 1);
}

TEST_CASE("every header guards itself") {
  require_none(check_guard);
  CHECK(check_guard({"a.h", "#pragma once\n"}).empty());
  CHECK(check_guard({"a.h", "#ifndef A_H\n"}).size() == 1);
  CHECK(check_guard({"kernels/cpu/simd-inl.h", ""}).empty());
}

TEST_CASE("no device is named in the preprocessor") {
  require_none(check_devices);
  CHECK(check_devices({"engine/a.cpp", "#ifdef POINTSMAN_CUDA\n"}).size() == 1);
  CHECK(check_devices({"engine/a.cpp", "  #  if defined(__CUDACC__)\n"}).size() == 1);
  CHECK(check_devices({"engine/a.cpp", "#elif __NVCC__\n"}).size() == 1);
  CHECK(check_devices({"engine/a.cpp", "// without CUDA\n#if HWY_ONCE\n"}).empty());
}

TEST_CASE("no file names a place that only one machine has") {
  require_none(check_places);
  CHECK(check_places({"README.md", "in " + kWorkplace + "/main\n"}).size() == 1);
  CHECK(check_places({"README.md", "`" + kWorkplace + "`\n"}).size() == 1);
  CHECK(check_places({"bench/a.py", kNeighbour + "/data\n"}).size() == 1);
  CHECK(check_places({".ci/run", kNeighbour + "/data\n"}).empty());
  CHECK(check_places({"README.md", "kernels/cpu" + kWorkplace + "er_threads.h\n"}).empty());
}

TEST_CASE("no test has a name that CTest cannot hold") {
  require_none(check_test_names);
  CHECK(check_test_names({"tests/a.cpp", "TEST_CASE(\"x in [0, 1)\") {\n"}).size() == 1);
  CHECK(check_test_names({"tests/a.cpp", "TEST_CASE(\n    \"x; y\", \"[.]\") {\n"}).size() == 1);
  CHECK(check_test_names({"tests/a.cpp", "TEST_CASE(\"x from 0 to 1\", \"[.][tag]\") {\n"}).empty());
}

TEST_CASE("no function is longer than a screen or takes many parameters") {
  require_none(check_functions);
  const auto function = [](int lines) {
    std::string text = "namespace a {\n/* { */\ntemplate <int N = 2>\nint f(int x) {";
    for (int line = 3; line < lines; ++line) text += "  if (x > '{') x += \"}\"[0];\n";
    return text + "\n}\n}\n";
  };
  CHECK(check_functions({"engine/a.cpp", function(kMostLines)}).empty());
  const Violations longer = check_functions({"kernels/cuda/a.cu", function(kMostLines + 1)});
  REQUIRE(longer.size() == 1);
  CHECK_THAT(longer[0], has_text("a.cu:3: a function of 49 lines"));
  CHECK(check_functions({"tests/a.cpp", function(kMostLines + 1)}).empty());
  const std::string six = "int a, int b = f(1, 2), std::map<int, int> c, int d, void (*e)(int, int), int";
  CHECK(check_functions({"host/run/a.h", "void f(" + six + ");\n"}).empty());
  CHECK(check_functions({"host/run/a.h", "void f(" + six + ", int g);\n"}).size() == 1);
  CHECK(check_functions({"host/library/a.h", "void f(" + six + ", int g);\n"}).empty());
  CHECK(check_functions({"kernels/cuda/a.cuh", "void f(" + six + ", int g);\n"}).empty());
  CHECK(check_functions({"host/a.h", "class A {\n public:\n  A(" + six + ", int g) : a_(a), b_{b} {}\n};\n"})
            .size() == 1);
}

TEST_CASE("the functions of a file are found") {
  const std::vector<Function> found = functions_of(R"(
#define TWICE(x) { x; \
                   x; }
struct A : B {
  A(int a) : a_{a}, b_(a) {}
  virtual void f(int, int) const = 0;
  std::vector<int> x = {1, 2};

 private:
  template <int (*kCall)(int, int)>
  bool operator()(int a) const {
    return a > 1'000;  // }
  }
};
const std::vector<int> kList = {1, 2};
extern "C" {
int main() {
  const auto f = [](int a, int b, int c) {
    return a;
  };
}
}
)");
  const auto text = [](const Function& f) {
    return std::to_string(f.line) + " " + std::to_string(f.lines) + " " + std::to_string(f.parameters);
  };
  std::vector<std::string> texts;
  for (const Function& function : found) texts.push_back(text(function));
  CHECK(texts == std::vector<std::string>{"5 1 1", "6 0 2", "10 4 1", "17 5 0"});
}

TEST_CASE("no file outside engine/problem chooses by ?: on a problem kind") {
  require_none(check_kind_choices);
}

TEST_CASE("few files name a problem kind") {
  std::string names;
  int count = 0;
  for (const SourceFile& file : tree()) {
    if (!names_kind(file)) continue;
    ++count;
    names += file.path + "\n";
  }
  INFO(names);
  CHECK(count <= kMostKindFiles);
}

TEST_CASE("the rules on problem kinds refuse what breaks them") {
  CHECK(names_kind({"engine/a.cpp", "f(ProblemKind::kPath);\n"}));
  CHECK(names_kind({"kernels/cuda/a.cuh", "f(kKnapsack);\n"}));
  CHECK_FALSE(names_kind({"engine/a.cpp", "ProblemKind kind;  // kTsp\n"}));
  CHECK_FALSE(names_kind({"tests/a.cpp", "f(kTsp);\n"}));
  const auto choices = [](const std::string& text, const std::string& path = "engine/backend/a.cpp") {
    return check_kind_choices({path, text}).size();
  };
  CHECK(choices("x = (kind == ProblemKind::kTsp) ? 1 : 2;\n") == 1);
  CHECK(choices("x = kind == kTsp\n        ? 1 : 2;\n") == 1);
  CHECK(choices("x = kind != ProblemKind::kPath ? 1 : 2;\n") == 1);
  CHECK(choices("switch (kind) { case ProblemKind::kTsp: return a ? 1 : 2; }\n") == 0);
  CHECK(choices("x = kind == kTsp ? 1 : 2;\n", "engine/problem/a.cpp") == 0);
}

TEST_CASE("no room has more lines than its limit") {
  std::string all;
  for (const std::string& violation : check_room_sizes(tree())) all += violation + "\n";
  INFO(all);
  CHECK(all.empty());
  const auto lines = [](size_t count) {
    std::string text;
    while (count-- > 0) text += "x\n";
    return text;
  };
  const size_t most = kRoomLimits[0].lines;
  CHECK(check_room_sizes({{"kernels/common/a.h", lines(most)}}).empty());
  CHECK(
      check_room_sizes({{"kernels/common/a.h", lines(most - 1)}, {"kernels/common/b.py", lines(1)}}).empty());
  const Violations larger =
      check_room_sizes({{"kernels/common/a.h", lines(most)}, {"kernels/common/b.sh", lines(1)}});
  REQUIRE(larger.size() == 1);
  CHECK_THAT(larger[0], has_text("kernels/common/: 2382 lines, at most 2381"));
  CHECK(check_room_sizes({{"kernels/common/CMakeLists.txt", lines(most + 1)}}).empty());
  CHECK(check_room_sizes({{"tests/kernels/common/a.h", lines(most + 1)}}).empty());
  CHECK(check_room_sizes({{"engine/attic/a.h", lines(1)}}).size() == 1);
}

TEST_CASE("no page has a line that must be scrolled") {
  require_none(check_page_width);
  const std::string widest(kWidestPage, 'x'), wide = widest + "x", url = "https://example.org/" + wide;
  CHECK(check_page_width({"docs/a.md", widest + "\n"}).empty());
  const Violations wider = check_page_width({"README.md", "a\n" + wide + "\n"});
  REQUIRE(wider.size() == 1);
  CHECK_THAT(wider[0], has_text("README.md:2: a line of 161 characters"));
  CHECK(check_page_width({"docs/a.md", "```\n" + wide + "\n```\n| " + wide + " |\n"}).empty());
  CHECK(check_page_width({"docs/a.md", "```\ncode\n```\n" + wide + "\n"}).size() == 1);
  CHECK(check_page_width({"docs/a.md", "[a](" + url + ").\n![a](" + url + ")\n[a]: " + url + "\n"}).empty());
  CHECK(check_page_width({"docs/a.md", "- <" + url + ">\n"}).empty());
  CHECK(check_page_width({"docs/a.md", "See [a](" + url + ") for\n"}).size() == 1);
  CHECK(check_page_width({"engine/a.cpp", wide + "\n"}).empty());
}

TEST_CASE("the tests mirror the rooms") {
  const std::set<std::string> rooms = rooms_of(tree());
  require_none([&](const SourceFile& file) { return check_test_place(file, rooms); });
  CHECK(check_test_place({"tests/engine/search/test_a.cpp", ""}, {"engine/search"}).empty());
  CHECK(check_test_place({"tests/engine/search/test_a.cpp", ""}, {"engine/backend", "engine"}).size() == 1);
  CHECK(check_test_place({"tests/test_a.cpp", ""}, {"engine"}).size() == 1);
  CHECK(check_test_place({"tests/golden/test_a.cpp", ""}, {}).empty());
  CHECK(check_test_place({"tests/engine/search/helper.cpp", ""}, {}).empty());
}
