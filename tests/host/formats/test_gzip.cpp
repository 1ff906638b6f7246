// SPDX-License-Identifier: Apache-2.0
// Files packed by gzip: every reader sees what they unpack to, and broken ones are told.
#include <sys/stat.h>

#include <chrono>
#include <string>
#include <thread>

#include "host/formats/formats.h"
#include "host/formats/input_file.h"
#include "host/formats/npy_array.h"
#include "host/formats/read_files.h"
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

// What packed input may take, for a test.
struct Limit {
  explicit Limit(uint64_t bytes) { set_input_limit(bytes); }
  ~Limit() { set_input_limit(*parse_size(kDefaultMaxInput)); }
};

// The message of what was refused; "" where it was not.
template <typename Read>
std::string too_large(Read read) {
  try {
    read();
  } catch (const InputTooLarge& error) {
    return error.what();
  }
  return "";
}

// An archive of one deflated array, as np.savez_compressed writes it.
std::string zip_deflated(const std::string& name, const std::string& bytes) {
  const std::string gzip = packed(bytes, 9), deflated = gzip.substr(10, gzip.size() - 18);
  std::string local, central, end;
  const auto append_common = [&](std::string& to) {
    append_bytes(to, uint16_t{20}, uint16_t{0}, uint16_t{8}, uint16_t{0}, uint16_t{0x21});
    to += gzip.substr(gzip.size() - 8, 4);  // the same CRC
    append_bytes(to, static_cast<uint32_t>(deflated.size()), static_cast<uint32_t>(bytes.size()),
                 static_cast<uint16_t>(name.size()), uint16_t{0});
  };
  append_bytes(local, uint32_t{0x04034b50});
  append_common(local);
  local += name + deflated;
  append_bytes(central, uint32_t{0x02014b50}, uint16_t{20});
  append_common(central);
  append_bytes(central, uint16_t{0}, uint16_t{0}, uint16_t{0}, uint32_t{0}, uint32_t{0});
  central += name;
  append_bytes(end, uint32_t{0x06054b50}, uint16_t{0}, uint16_t{0}, uint16_t{1}, uint16_t{1},
               static_cast<uint32_t>(central.size()), static_cast<uint32_t>(local.size()), uint16_t{0});
  return local + central + end;
}

std::string zeros(const std::vector<size_t>& shape, size_t count) {
  return npy_header("|i1", shape) + std::string(count, '\0');
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

TEST_CASE("gzip that unpacks to more than the limit is refused, however much was packed") {
  const Limit limit(1 << 20);
  const std::string bomb = packed(std::string(64 << 20, '0'), 9);
  CHECK(bomb.size() < 70000);
  std::string out;
  const std::string message = too_large([&] { GzipUnpacker("a.gz").unpack(bomb, out); });
  CHECK(message.starts_with("a.gz: gzip: what it unpacks to takes at least 11"));
  CHECK(message.ends_with(
      " bytes; expected at most 1048576, --max-input SIZE or POINTSMAN_MAX_INPUT raises it"));
  CHECK(out.size() <= (1 << 20) + (1 << 17));
  // Thinned with bytes that do not pack, so that it is never more than 256 times its size.
  std::string thinned, noise;
  uint32_t state = 1;
  for (int i = 0; i < 8192; ++i) noise += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  for (int i = 0; i < 4; ++i) thinned += packed(noise) + packed(std::string(1 << 20, '\xff'), 9);
  CHECK(too_large([&] { unpacked(thinned, 1 << 16); }) != "");
  set_input_limit(16 << 20);
  CHECK(unpacked(thinned, 1 << 16).size() == 4 * ((1 << 20) + 8192));
}

TEST_CASE("a value of packed text counts what it takes once it is parsed, an array's byte one byte") {
  const Limit limit(100'000);
  std::string values;
  for (int i = 0; i < 4000; ++i) values += "0,";
  CHECK(too_large([&] { unpacked(packed(values), 1 << 20); }) != "");
  CHECK(too_large([&] { unpacked(packed(values.substr(0, 7600)), 1 << 20); }) == "");  // 7600 + 3800 * 24
  CHECK(too_large([&] { unpacked(packed("\x93NUMPY" + values), 7); }) == "");
  CHECK(too_large([&] { unpacked(packed("PK\x03\x04" + values), 7); }) == "");
}

TEST_CASE("packed arrays of bytes count as the doubles and instances that they become") {
  const Limit limit(1 << 20);
  const TemporaryFolder folder;
  const auto read = [&](const std::string& name, const std::string& bytes) {
    write_bytes(folder / name, bytes);
    return read_instances(folder / name).instances.size();
  };
  const std::string fits = zeros({2, 16000, 2}, 64000), large = zeros({2, 33000, 2}, 132000),
                    many = zeros({12000, 1, 2}, 24000);
  for (const auto& [name, of] : std::vector<std::pair<std::string, std::string (*)(const std::string&)>>{
           {"a.npz", [](const std::string& npy) { return zip_deflated("locs.npy", npy); }},
           {"a.npy.gz", [](const std::string& npy) { return packed(npy); }},
           {"a.npz.gz", [](const std::string& npy) {
              return packed(zip_stored({{"locs.npy", npy}}));
            }}}) {
    CAPTURE(name);
    CHECK(read(name, of(fits)) == 2);
    CHECK(too_large([&] { read(name, of(large)); }).find("; expected at most 1048576,") != std::string::npos);
    CHECK(too_large([&] { read(name, of(many)); }).find("12000 instances of (12000, 1, 2) take ") !=
          std::string::npos);
  }
  CHECK(read("a.npy", large) == 2);  // their bytes are really there
  CHECK(read("a.npz", zip_stored({{"locs.npy", large}})) == 2);
  set_input_limit(4 << 20);
  CHECK(read("a.npz", zip_deflated("locs.npy", large)) == 2);
}

TEST_CASE("the default refuses 195 kB of zeros by the header, before they are unpacked") {
  const std::string npz = zip_deflated("locs.npy", zeros({100'000'000, 2}, 1000));
  CHECK(
      too_large([&] { parse_instances(npz, "a.npz"); }) ==
      "a.npz: locs: (100000000, 2) takes 1600000000 bytes; expected at most 1073741824, --max-input SIZE or "
      "POINTSMAN_MAX_INPUT raises it");
}

TEST_CASE("lines of a packed stream count while they are held, those of a document all together") {
  const Limit limit(1 << 20);
  const TemporaryFolder folder;
  const std::string line = "{\"problem\":\"tsp\",\"coordinates\":[[1,2]]}\n", path = folder / "a.ndjson.gz";
  std::string file;
  for (int i = 0; i < 6000; ++i) file += packed(line, 0);
  write_bytes(path, file);
  CHECK(too_large([&] { read_instances(path); }) != "");
  InstanceInput input(path);
  int count = 0;
  while (input.next_line()) ++count;
  CHECK(count == 6000);
  write_bytes(path, packed(line + std::string(2 << 20, '0') + "\n"));
  CHECK(too_large([&] {
          InstanceInput long_line(path);
          while (long_line.next_line()) {
          }
        }) != "");
}

TEST_CASE("sizes are bytes, or with a letter powers of 1024") {
  CHECK(parse_size("1") == 1);
  CHECK(parse_size("12345678901") == 12345678901);
  CHECK(parse_size("3K") == 3072);
  CHECK(parse_size("512M") == 512 << 20);
  CHECK(parse_size("1G") == 1 << 30);
  CHECK(parse_size("2T") == int64_t{2} << 40);
  CHECK(parse_size("16777215T") == 16777215ull << 40);
  for (const char* wrong :
       {"", "0", "0G", "G", "-1", "1g", "1GB", "1.5G", " 1", "16777216T", "99999999999999999999"})
    CHECK_FALSE(parse_size(wrong));
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
