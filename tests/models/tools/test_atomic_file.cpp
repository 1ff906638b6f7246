// SPDX-License-Identifier: Apache-2.0
// Output files: whole or absent, one writer at a time, nothing left behind.
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "models/tools/atomic_file.h"
#include "tests/catch.h"
#include "tests/temporary_folder.h"

using namespace pointsman;
namespace fs = std::filesystem;

namespace {

void put(const std::string& path, const std::string& bytes, bool force) {
  OutputFile file(path, force);
  file.write(bytes);
  file.commit();
}

// 0 when no error comes.
int error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::system_error& error) {
    return error.code().value();
  }
  return 0;
}

}  // namespace

TEST_CASE("a file is there whole or not at all, and nothing else is left") {
  const TemporaryFolder folder;
  const std::string path = (folder / "out.json").string();
  {
    OutputFile dropped(path, false);
    dropped.write("half");
    CHECK_FALSE(fs::exists(path));
  }
  CHECK(folder.entries() == 0);
  put(path, "one", false);
  CHECK(bytes_of(path) == "one");
  CHECK_THROWS_AS(OutputFile(path, false), OutputRefused);
  CHECK(::chmod(path.c_str(), 0600) == 0);
  put(path, "two", true);
  CHECK(bytes_of(path) == "two");
  CHECK((fs::status(path).permissions() & fs::perms::all) ==
        (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(folder.entries() == 1);
}

TEST_CASE("a file that comes in the meantime is not replaced without force") {
  const TemporaryFolder folder;
  OutputFile late(folder / "a", false);
  late.write("late");
  std::ofstream(folder / "a") << "first";
  CHECK_THROWS_AS(late.commit(), OutputRefused);
  CHECK(bytes_of(folder / "a") == "first");
}

TEST_CASE("symbolic links are followed, folders refused") {
  const TemporaryFolder folder;
  put(folder / "target", "old", false);
  fs::create_symlink("target", folder / "link");
  fs::create_symlink("new", folder / "dangling");
  put(folder / "link", "new bytes", true);
  put(folder / "dangling", "more", false);
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(bytes_of(folder / "target") == "new bytes");
  CHECK(bytes_of(folder / "new") == "more");
  CHECK_THROWS_AS(OutputFile(folder / ".", false), OutputRefused);
  CHECK_THROWS_AS(OutputFile(folder / "none/a", false), std::system_error);
}

TEST_CASE("what is not a regular file is written through and stays what it was") {
  const TemporaryFolder folder;
  const std::string fifo = (folder / "fifo").string();
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  std::string got;
  std::thread reader([&] { got = bytes_of(fifo); });
  put(fifo, "through", false);
  reader.join();
  CHECK(got == "through");
  CHECK(fs::is_fifo(fifo));
  put("/dev/null", "gone", false);
  CHECK(fs::is_character_file("/dev/null"));
}

TEST_CASE("a write that fails leaves the older file and nothing else") {
  const TemporaryFolder folder;
  const fs::path path = folder / "m";
  write_file_atomically(path, "old");
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit full{1000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &full);
  bool refused = false;
  try {
    write_file_atomically(path, std::string(5000, 'x'));
  } catch (const std::system_error& error) {
    refused = error.code() == std::errc::file_too_large;
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_DFL);
  CHECK(refused);
  CHECK(bytes_of(path) == "old");
  CHECK(folder.entries() == 1);
  CHECK_THROWS_AS(write_file_atomically(folder / "none/m", "x"), std::system_error);
  CHECK_THROWS_AS(write_file_atomically(folder.path(), "x"), std::system_error);
  CHECK_THROWS_AS(write_file_atomically("/dev/null", "x"), std::system_error);
  CHECK(fs::is_character_file("/dev/null"));
}

TEST_CASE("an atomic write follows links and takes a bare name") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "real", "old");
  fs::create_symlink("real", folder / "link");
  write_file_atomically(folder / "link", "new");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(bytes_of(folder / "real") == "new");
  fs::create_symlink("later", folder / "dangling");
  write_file_atomically(folder / "dangling", "there");
  CHECK(fs::is_symlink(folder / "dangling"));
  CHECK(bytes_of(folder / "later") == "there");
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  write_file_atomically("bare", std::string("\0x", 2));
  write_file_atomically("-", "a file");  // and not standard output
  CHECK_THROWS(write_file_atomically("", "nowhere"));
  fs::current_path(before);
  CHECK(bytes_of(folder / "bare") == std::string("\0x", 2));
  CHECK(bytes_of(folder / "-") == "a file");
  CHECK(folder.entries() == 6);
}

TEST_CASE("a file has one writer at a time") {
  const TemporaryFolder folder;
  const std::string path = (folder / "a").string();
  {
    OutputFile first(path, true);
    first.write("first");
    CHECK(error_of([&] { OutputFile second(path, true); }) == EBUSY);
    first.commit();
    CHECK(error_of([&] { OutputFile second(path, true); }) == 0);
  }
  CHECK(bytes_of(path) == "first");
  CHECK(folder.entries() == 1);
}

TEST_CASE("what a killed writer left is gone after the next one") {
  const TemporaryFolder folder;
  const std::string path = (folder / "a").string();
  const pid_t child = ::fork();
  if (child == 0) {
    OutputFile file(path, false);
    file.write("half");
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  CHECK(fs::exists(folder / ".a.tmp"));
  put(path, "whole", false);
  CHECK(bytes_of(path) == "whole");
  CHECK(folder.entries() == 1);
}

TEST_CASE("what others put under the temporary name is never written to") {
  const TemporaryFolder folder;
  const std::string path = (folder / "a").string();
  const auto write = [&] { put(path, "own", true); };

  std::ofstream(folder / "victim") << "";  // empty, as a file that was just made
  fs::create_hard_link(folder / "victim", folder / ".a.tmp");
  CHECK(error_of(write) == 0);
  CHECK(bytes_of(folder / "victim").empty());
  CHECK(bytes_of(path) == "own");

  fs::create_symlink("victim", folder / ".a.tmp");
  CHECK(error_of(write) == ELOOP);
  CHECK_THROWS_WITH(put(path, "own", true), has_text(".a.tmp; remove it"));
  CHECK(bytes_of(folder / "victim").empty());
  fs::remove(folder / ".a.tmp");

  REQUIRE(::mkfifo((folder / ".a.tmp").c_str(), 0600) == 0);
  ::alarm(5);  // an open() that waits for a reader would never end
  CHECK(error_of(write) == ENXIO);
  ::alarm(0);
  fs::remove(folder / ".a.tmp");

  fs::create_directory(folder / ".a.tmp");
  CHECK(error_of(write) == EISDIR);
}

TEST_CASE("writers that find the file of a killed one at the same time do not mix") {
  const TemporaryFolder folder;
  for (int round = 0; round < 200; ++round) {
    std::ofstream(folder / ".a.tmp") << "left";
    std::atomic<int> written{0};
    std::vector<std::thread> writers;
    for (const char byte : {'x', 'y', 'z'}) {
      writers.emplace_back([&, byte] {
        const int error = error_of([&] { put(folder / "a", std::string(3000, byte), true); });
        if (error == 0) ++written;
        if (error != 0 && error != EBUSY) written = -100;
      });
    }
    for (std::thread& writer : writers) writer.join();
    REQUIRE(written >= 1);
    const std::string bytes = bytes_of(folder / "a");
    REQUIRE(bytes == std::string(3000, bytes[0]));
    REQUIRE(folder.entries() == 1);
  }
}

TEST_CASE("a file that is saved several times is whole each time, also after a save that failed") {
  const TemporaryFolder folder;
  const std::string path = (folder / "a").string();
  {
    OutputFile file(path, false);
    file.save("one, the longest");
    CHECK(bytes_of(path) == "one, the longest");
    CHECK(error_of([&] { OutputFile second(path, true); }) == EBUSY);
    file.save("two");
    CHECK(bytes_of(path) == "two");
    fs::remove(path);
    fs::create_directories(path + "/in the way");
    CHECK(error_of([&] { file.save("three"); }) == EISDIR);
    fs::remove_all(path);
    file.save("four");
    CHECK(bytes_of(path) == "four");
  }
  CHECK(folder.entries() == 1);
}

TEST_CASE("a growing file holds what is written, behind what it keeps of an older one") {
  const TemporaryFolder folder;
  const std::string path = (folder / "a").string();
  { const OutputFile unused(path, false, Appearance::kGrowing); }
  CHECK(folder.entries() == 0);
  {
    OutputFile file(path, false, Appearance::kGrowing);
    CHECK(bytes_of(path).empty());
    file.write("one\n");
    CHECK(bytes_of(path) == "one\n");
    CHECK(error_of([&] { OutputFile second(path, true); }) == EBUSY);
    CHECK(error_of([&] { OutputFile second(path, true, Appearance::kGrowing); }) == EBUSY);
    file.write("tw");  // and no commit
  }
  CHECK(bytes_of(path) == "one\ntw");
  CHECK_THROWS_AS(OutputFile(path, false, Appearance::kGrowing), OutputRefused);
  { const OutputFile unused(path, true, Appearance::kGrowing); }
  CHECK(bytes_of(path) == "one\ntw");
  CHECK(::chmod(path.c_str(), 0600) == 0);
  fs::create_symlink("a", folder / "link");
  {
    OutputFile file(folder / "link", true, Appearance::kGrowing);
    file.keep(4);
    file.write("2\n");
    file.commit();
  }
  CHECK(bytes_of(path) == "one\n2\n");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK((fs::status(path).permissions() & fs::perms::all) ==
        (fs::perms::owner_read | fs::perms::owner_write));
  OutputFile empty(path, true, Appearance::kGrowing);
  empty.commit();
  CHECK(bytes_of(path).empty());
  CHECK(folder.entries() == 2);
}

TEST_CASE("a growing file needs a folder and no regular file") {
  const TemporaryFolder folder;
  CHECK_THROWS_AS(OutputFile(folder / "none/a", false, Appearance::kGrowing), std::system_error);
  CHECK_THROWS_AS(OutputFile(folder / ".", true, Appearance::kGrowing), OutputRefused);
  put("/dev/null", "gone", false);
  OutputFile device("/dev/null", false, Appearance::kGrowing);
  device.write("gone");
  device.commit();
  CHECK(fs::is_character_file("/dev/null"));
}
