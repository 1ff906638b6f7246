// SPDX-License-Identifier: Apache-2.0
// Files packed by gzip: every reader sees what they unpack to, and broken ones are told.
#include <sys/stat.h>

#include <chrono>
#include <string>
#include <thread>

#include "host/files/formats.h"
#include "host/files/gzip.h"
#include "host/files/input_file.h"
#include "host/files/npz_file.h"
#include "host/files/read_solutions.h"
#include "tests/catch.h"
#include "tests/packed.h"
#include "tests/temporary_folder.h"

using namespace pointsman;

namespace {

// What the file unpacks to, in pieces of `size`.
std::string unpacked(const std::string& file, size_t size) {
  GzipUnpacker unpacker("a.gz");
  std::string out;
  for (size_t at = 0; at < file.size(); at += size) unpacker.unpack(file.substr(at, size), out);
  unpacker.end();
  return out;
}

std::string error_of(const std::string& file, size_t size = 1 << 20) {
  try {
    unpacked(file, size);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

const std::string kTsp = "DIMENSION: 2\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n1 0 0\n2 3 4\nEOF\n";

std::string numbers(size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += std::to_string(i * 7919 % 1000003) + "\n";
  return text;
}

}  // namespace

TEST_CASE("gzip in pieces of any size, stored or packed, one member or several") {
  const std::string text = numbers(50000);  // several pieces of the unpacker's own
  for (const int level : {0, 1, 9}) {
    const std::string file = packed(text, level);
    for (const size_t size : {size_t{1}, size_t{7}, size_t{4096}, file.size()})
      CHECK((unpacked(file, size) == text));
  }
  const std::string exact(128 * 1024, 'x');  // fills its pieces to the last byte
  const std::string members = packed(kTsp) + packed("") + packed(text) + packed(exact, 0);
  for (const size_t size : {size_t{1}, size_t{1000}, members.size()})
    CHECK((unpacked(members, size) == kTsp + text + exact));
  CHECK(unpacked(packed(""), 3).empty());
}

TEST_CASE("broken gzip is told") {
  const std::string file = packed(numbers(100));
  for (size_t size = 1; size < file.size(); ++size)
    CHECK(error_of(file.substr(0, size)) == "a.gz: gzip: the file ends within it; was it cut short?");
  const auto changed = [&](size_t at, char by) {
    std::string bytes = file;
    bytes[at] = static_cast<char>(bytes[at] ^ by);
    return bytes;
  };
  CHECK(error_of(changed(2, 1)) == "a.gz: gzip: is damaged (unknown compression method)");
  CHECK(error_of(changed(file.size() - 8, 1)) == "a.gz: gzip: is damaged (incorrect data check)");
  CHECK(error_of(changed(file.size() - 1, 1)) == "a.gz: gzip: is damaged (incorrect length check)");
  CHECK(error_of(file + "more") == "a.gz: gzip: is damaged (incorrect header check)");
  CHECK(error_of(file + file.substr(0, 12)).find("the file ends within it") != std::string::npos);
}

TEST_CASE("what unpacks to far more than it is packed in is refused before the memory is taken") {
  const std::string bomb = packed(std::string(64 << 20, '0'), 9);
  CHECK(bomb.size() < 70000);
  CHECK(error_of(bomb) == "a.gz: gzip: unpacks to more than 256 times its size; unpack it first");
  std::string out;
  CHECK_THROWS_AS(GzipUnpacker("a.gz").unpack(bomb, out), InputError);
  CHECK(out.size() <= kGzipHead + kGzipRatio * bomb.size() + (1 << 17));
  CHECK((unpacked(packed(std::string(kGzipHead, '0')), 1 << 20) == std::string(kGzipHead, '0')));
}

TEST_CASE("every format is read from .gz, its kind told by the name before .gz or by the first bytes") {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& name, const std::string& bytes) {
    write_bytes(folder / name, bytes);
    return read_instances(folder / name).instances;
  };
  std::string npy = npy_header("<f8", {1, 2});
  append_bytes(npy, 1.0, 2.0);
  const std::string json = "{\"problem\":\"tsp\",\"coordinates\":[[1,2]]}\n";
  const InstanceBatch map = read("map.tsp.gz", packed(kTsp));
  CHECK(map.at(0).n() == 2);
  CHECK(map.at(0).id == "map");
  CHECK(read("MAP.TSP.GZ", packed(kTsp)).size() == 1);
  CHECK(read("points.csv.gz", packed("x,y\n1,2\n")).at(0).id == "points");
  CHECK(read("sack.txt.gz", packed("1 5\n2 3\n")).at(0).problem == ProblemKind::kKnapsack);
  CHECK(read("a.json.gz", packed("[" + json + "]")).size() == 1);
  CHECK(read("a.ndjson.gz", packed(json + json)).size() == 2);
  for (const char* name : {"a.npy.gz", "a.gz", "no_suffix"})
    CHECK(read(name, packed(npy)).at(0).values == std::vector<double>{1, 2});
  CHECK(read("a.npz.gz", packed(zip_stored({{"locs.npy", npy}}))).size() == 1);
  CHECK(read("unpacked_already.tsp.gz", kTsp).size() == 1);
  const std::string whole = packed(kTsp);
  write_bytes(folder / "cut.tsp.gz", whole.substr(0, whole.size() - 4));
  CHECK_THROWS_WITH(read_instances(folder / "cut.tsp.gz"),
                    (folder / "cut.tsp.gz").string() + ": gzip: the file ends within it; was it cut short?");
  write_bytes(folder / "bad.tsp.gz", packed("NAME: a\nx\n"));
  CHECK_THROWS_WITH(read_instances(folder / "bad.tsp.gz"),
                    (folder / "bad.tsp.gz").string() + ":2: expected \"KEY: value\", found \"x\"");
}

TEST_CASE("answers and references are read from .gz") {
  const TemporaryFolder folder;
  Instance square;
  square.values = {0, 0, 1, 0, 1, 1, 0, 1};
  write_bytes(folder / "ref.txt.gz", packed("4.5\n"));
  CHECK(read_reference(folder / "ref.txt.gz", {square}) == std::vector<double>{4.5});
  write_bytes(folder / "a.ndjson.gz", packed("{\"tour\":[0,1,2,3]}\n"));
  CHECK(read_solutions(folder / "a.ndjson.gz", {square}).at(0).order.size() == 4);
  const std::string line = "{\"tour\":[0,1,2,3]}\n";
  write_bytes(folder / "b.ndjson.gz", packed("\n" + line + line));  // a blank first line tells nothing
  CHECK(read_solutions(folder / "b.ndjson.gz", {square, square}).size() == 2);
  write_bytes(folder / "a.tour.gz", packed("TYPE: TOUR\nTOUR_SECTION\n1 2 3 4 -1\n"));
  CHECK(read_reference(folder / "a.tour.gz", {square}) == std::vector<double>{4});
}

TEST_CASE("a packed stream gives its lines as they come, also where one byte comes at a time") {
  const TemporaryFolder folder;
  const std::string fifo = folder / "lines.ndjson.gz";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  const std::string json = "{\"problem\":\"tsp\",\"coordinates\":[[1,2]]}\n";
  const std::string bytes = packed(json) + packed(json + json);
  std::thread writer([&] {
    std::ofstream out(fifo, std::ios::binary);
    for (const char byte : bytes) {
      out << byte << std::flush;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  InstanceInput input(fifo);
  REQUIRE(input.is_stream());
  int count = 0;
  while (const auto line = input.next_line()) {
    CHECK(line->instance.has_value());
    ++count;
  }
  CHECK(count == 3);
  writer.join();
}
