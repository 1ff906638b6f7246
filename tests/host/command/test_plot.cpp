// SPDX-License-Identifier: Apache-2.0
// `pointsman plot`: where the ink is, what the words say, and what is refused.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "host/files/svg_chart.h"
#include "host/files/svg_labels.h"
#include "host/files/svg_tour.h"
#include "tests/catch.h"
#include "tests/host/command/sandbox.h"

using namespace pointsman;

namespace {

const std::string kData = std::string(POINTSMAN_SOURCE_DIR) + "/tests/data/";

// Tags nest, attributes are quoted, and nothing stands unescaped. Enough XML for what the program writes.
bool is_well_formed(const std::string& svg) {
  static const std::regex tag(R"re(<(/?)([a-z]+)((?: [a-zA-Z:-]+="[^"<]*")*)(/?)>)re");
  static const std::regex loose(R"(&(?!(amp|lt|gt|quot);)|[<>\x01-\x08\x0B-\x1F\x7F])");
  std::vector<std::string> open;
  std::string words;
  auto last = svg.begin();
  for (std::sregex_iterator at(svg.begin(), svg.end(), tag), end; at != end; ++at) {
    words.append(last, svg.begin() + at->position());
    words += (*at)[3];
    last = svg.begin() + at->position() + at->length();
    if ((*at)[1].length() > 0) {
      if (open.empty() || open.back() != (*at)[2]) return false;
      open.pop_back();
    } else if ((*at)[4].length() == 0) {
      open.push_back((*at)[2]);
    }
  }
  words.append(last, svg.end());
  return open.empty() && !std::regex_search(words, loose);
}

struct Path {
  std::string attributes;
  std::vector<Pixel> pixels;
  bool has(const std::string& text) const { return attributes.find(text) != std::string::npos; }
};

// By hand: regular expressions of the standard library overflow the stack on long texts.
std::vector<Path> paths_of(const std::string& svg) {
  std::vector<Path> paths;
  for (size_t at = svg.find("<path "); at != std::string::npos; at = svg.find("<path ", at + 1)) {
    Path path{svg.substr(at, svg.find('>', at) - at), {}};
    const size_t data = path.attributes.find(" d=\"") + 4;
    std::string numbers = path.attributes.substr(data, path.attributes.find('"', data) - data);
    path.attributes.erase(data, numbers.find_last_not_of('Z') + 1);
    for (char& c : numbers) c = c == 'M' || c == 'L' || c == 'Z' || c == 'h' ? ' ' : c;
    const bool dots = path.has("linecap");  // "M x y h0"
    std::istringstream stream(numbers);
    double length;
    for (Pixel pixel; stream >> pixel.x >> pixel.y; path.pixels.push_back(pixel)) {
      if (dots) stream >> length;
    }
    paths.push_back(path);
  }
  return paths;
}

// The only one whose attributes have the text.
Path path_with(const std::string& svg, const std::string& text) {
  std::vector<Path> found;
  for (const Path& path : paths_of(svg)) {
    if (path.has(text)) found.push_back(path);
  }
  INFO(text);
  REQUIRE(found.size() == 1);
  return found[0];
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

bool shows(const std::string& svg, const std::string& words) {
  return count(svg, ">" + words + "</text>") == 1;
}

// The lines of a chart are thicker than everything else.
const std::string kLine = "stroke-width=\"1.80\"", kBlue = "#0072b2", kOrange = "#d55e00";

std::vector<Path> curves_of(const std::string& svg) {
  std::vector<Path> curves;
  for (const Path& path : paths_of(svg)) {
    const bool legend = path.pixels.size() == 2 && path.pixels[1].x - path.pixels[0].x == Approx(28);
    if (path.has(kLine) && !legend) curves.push_back(path);
  }
  return curves;
}

std::string triangle() { return "{\"id\":\"t\",\"problem\":\"tsp\",\"coordinates\":[[0,0],[3,0],[3,4]]}\n"; }

std::string result(const std::string& problem, const std::vector<std::string>& gaps, bool lines = false) {
  std::string out = lines ? "" : "{\"code\":0,\"summary\":{},\n \"solutions\":[";
  for (size_t i = 0; i < gaps.size(); ++i) {
    out += (i > 0 && !lines ? ",\n" : "") + std::string("{\"index\":") + std::to_string(i) +
           ",\"problem\":\"" + problem + "\",\"gap\":" + gaps[i] + "}" + (lines ? "\n" : "");
  }
  return lines ? out : out + "]}\n";
}

std::string log_line(const std::string& tours, const std::string& cost) {
  return "{\"step\":1,\"tours\":" + tours + ",\"seconds\":2.5,\"val_cost\":" + cost + ",\"entropy\":0.5}\n";
}

// A line of `eval --format ndjson`. `more` stands before the usual columns and takes their place.
std::string eval_row(const std::string& mode, int samples, const std::string& gap, nlohmann::json more = {}) {
  nlohmann::json row = {{"mode", mode},
                        {"augment", 1},
                        {"shuffle", false},
                        {"improve", false},
                        {"samples", samples},
                        {"temperature", 1.0},
                        {"mean_cost", 5.5},
                        {"gap", nlohmann::json::parse(gap)},
                        {"ms_per_instance", 2.5},
                        {"problem", "tsp"},
                        {"set", "tsp50_test.npy"},
                        {"device", "cpu"},
                        {"model", "tsp50"},
                        {"model_sha256", "0123456789abcdef"}};
  if (more.is_object()) row.update(more);
  return row.dump() + "\n";
}

}  // namespace

TEST_CASE("a tour is drawn true to scale with north up") {
  const Sandbox sandbox;
  sandbox.write("t.json", triangle());
  sandbox.write("s.json", "{\"solutions\":[{\"tour\":[0,1,2]}]}");
  const Answer answer = sandbox.run("plot tour t.json s.json");
  REQUIRE(answer.code == 0);
  CHECK(answer.err.empty());
  CHECK(is_well_formed(answer.out));
  CHECK(answer.out.find("fill=\"#fff\"") != std::string::npos);
  CHECK(std::regex_search(answer.out, std::regex("<svg [^>]*font-family=\"[^\",]+, [^\"]+, sans-serif\"")));
  CHECK(shows(answer.out, "t: 3 cities, length 12"));
  CHECK(shows(answer.out, "x"));
  const Path tour = path_with(answer.out, kBlue);
  CHECK(tour.has(" d=\"Z\""));  // and home again
  REQUIRE(tour.pixels.size() == 3);
  CHECK(path_with(answer.out, "stroke-linecap=\"round\"").pixels.size() == 3);
  const double pixels = (tour.pixels[1].x - tour.pixels[0].x) / 3;
  CHECK(pixels > 50);
  CHECK(tour.pixels[1].y == tour.pixels[0].y);
  CHECK(tour.pixels[2].x == tour.pixels[1].x);
  CHECK(tour.pixels[1].y - tour.pixels[2].y == Approx(4 * pixels).margin(0.3));  // pixels are told to 0.1
}

TEST_CASE("a geographic tour has east on the right") {
  const Sandbox sandbox;
  const Answer answer = sandbox.run("plot tour " + kData + "capitals.tsp " + kData + "capitals.opt.tour");
  REQUIRE(answer.code == 0);
  CHECK(is_well_formed(answer.out));
  CHECK(shows(answer.out, "longitude (degrees east)"));
  const Path tour = path_with(answer.out, kBlue);
  REQUIRE(tour.pixels.size() == 45);
  // The place of a city in the tour file, counted from its section on.
  std::ifstream file(kData + "capitals.opt.tour");
  std::string word;
  while (file >> word && word != "TOUR_SECTION") {
  }
  std::vector<int> order;
  for (int city; file >> city && city > 0;) order.push_back(city);
  const auto at = [&](int city) {
    return tour.pixels[std::find(order.begin(), order.end(), city) - order.begin()];
  };
  for (const Pixel& pixel : tour.pixels) {
    CHECK(pixel.x >=
          at(30).x);  // Reykjavik is the most western and northern, Moscow the most eastern, Nicosia
    CHECK(pixel.y >= at(30).y);  // the most southern
    CHECK(pixel.x <= at(23).x);
    CHECK(pixel.y <= at(24).y);
  }
  // Moscow is 59.58 degrees east of Reykjavik, which is 28.98 degrees north of Nicosia, the map's middle
  // at 49.65.
  const double shape = (at(23).x - at(30).x) / (at(24).y - at(30).y);
  CHECK(shape == Approx(59.58 / 28.98 * std::cos(49.65 * 3.14159265 / 180)).epsilon(0.01));
}

TEST_CASE("several tours stand side by side") {
  const Sandbox sandbox;
  sandbox.write("two.ndjson", triangle() + triangle());
  sandbox.write("a.ndjson", "{\"tour\":[0,1,2]}\n{\"tour\":[2,1,0]}\n");
  sandbox.write("b.ndjson", "{\"tour\":[0,2,1]}\n{\"tour\":[1,2,0]}\n");
  const Answer four = sandbox.run("plot tour two.ndjson a.ndjson b.ndjson --title '4 maps'");
  REQUIRE(four.code == 0);
  CHECK(count(four.out, "length 12</text>") == 4);
  CHECK(shows(four.out, "4 maps"));
  std::set<std::pair<double, double>> corners;
  for (const Path& path : paths_of(four.out)) {
    if (path.has(kBlue)) corners.insert({path.pixels[0].x, path.pixels[0].y});
  }
  CHECK(corners.size() == 4);
  const Answer one = sandbox.run("plot tour two.ndjson a.ndjson b.ndjson --index 1 --label old --label new");
  REQUIRE(one.code == 0);
  CHECK(shows(one.out, "old: 3 cities, length 12"));
  CHECK(shows(one.out, "new: 3 cities, length 12"));
}

TEST_CASE("ratios are sorted over the share of the instances") {
  const Sandbox sandbox;
  sandbox.write("greedy.json", result("tsp", {"0.1", "0", "0.3", "0.2"}));
  sandbox.write("best.ndjson",
                result("tsp", {"0.05", "0"}, true) + "{\"index\":2,\"code\":3,\"error\":\"no\"}\n");
  const Answer answer = sandbox.run("plot ratio greedy.json best.ndjson");
  REQUIRE(answer.code == 0);
  CHECK(is_well_formed(answer.out));
  CHECK(answer.err.find("best.ndjson: 1 lines hold errors") != std::string::npos);
  CHECK(shows(answer.out, "greedy"));
  CHECK(shows(answer.out, "best"));
  CHECK(shows(answer.out, "ratio to optimal (tour length / reference)"));
  const std::vector<Path> curves = curves_of(answer.out);
  REQUIRE(curves.size() == 2);
  const std::vector<Pixel>& greedy = curves[0].pixels;
  const std::vector<Pixel>& best = curves[1].pixels;
  REQUIRE(greedy.size() == 8);  // two ends for each of the four
  REQUIRE(best.size() == 4);
  CHECK(curves[0].has(kBlue));
  CHECK(curves[1].has(kOrange));
  const double width = greedy.back().x - greedy.front().x, tenth = (greedy[0].y - greedy[7].y) / 3;
  CHECK(tenth > 20);
  for (size_t i = 0; i < 4; ++i) {
    CHECK(greedy[2 * i + 1].x == Approx(greedy[0].x + width * (static_cast<double>(i) + 1) / 4).margin(0.2));
    CHECK(greedy[2 * i].y == Approx(greedy[0].y - tenth * static_cast<double>(i)).margin(0.2));
  }
  CHECK(best[0].y == greedy[0].y);
  CHECK(best[2].y == Approx(greedy[0].y - tenth / 2).margin(0.2));
  CHECK(best.back().x == greedy.back().x);  // half as many instances fill the same width
  std::vector<Path> reference;
  for (const Path& path : paths_of(answer.out)) {
    if (path.has("#666") && path.pixels[1].x - path.pixels[0].x > 100) reference.push_back(path);
  }
  REQUIRE(reference.size() == 1);
  CHECK(reference[0].pixels[0].y == greedy[0].y);
}

TEST_CASE("a knapsack's ratio is at most 1") {
  const Sandbox sandbox;
  sandbox.write("k.json", result("knapsack", {"0", "0.25"}));
  const Answer answer = sandbox.run("plot ratio k.json");
  REQUIRE(answer.code == 0);
  CHECK(shows(answer.out, "ratio to optimal (packed value / reference)"));
  CHECK(shows(answer.out, "0.75"));
  CHECK(shows(answer.out, "1.00"));
  const std::vector<Path> curves = curves_of(answer.out);
  REQUIRE(curves.size() == 1);
  CHECK(curves[0].pixels.front().y > curves[0].pixels.back().y);
}

TEST_CASE("a training curve skips what was not measured") {
  const Sandbox sandbox;
  sandbox.write("run.jsonl", log_line("100", "8") + log_line("500", "null") + log_line("1000", "6") + "\n" +
                                 log_line("10000", "4"));
  const Answer answer = sandbox.run("plot curve run.jsonl --log-x --ref 3.5");
  REQUIRE(answer.code == 0);
  CHECK(is_well_formed(answer.out));
  CHECK(answer.err.empty());
  for (const char* words : {"run", "reference 3.5", "tours seen in training",
                            "mean cost of the validation set", "100", "1k", "10k", "4", "8"}) {
    INFO(words);
    CHECK(shows(answer.out, words));
  }
  const std::vector<Path> curves = curves_of(answer.out);
  REQUIRE(curves.size() == 1);
  const std::vector<Pixel>& pixels = curves[0].pixels;
  REQUIRE(pixels.size() == 3);
  CHECK(pixels[1].x - pixels[0].x == Approx(pixels[2].x - pixels[1].x).margin(0.2));  // one decade each
  CHECK(pixels[1].y - pixels[0].y == Approx(pixels[2].y - pixels[1].y).margin(0.2));
  CHECK(pixels[2].y > pixels[0].y);
  const std::string linear = sandbox.run("plot curve run.jsonl").out;
  CHECK(shows(linear, "2000"));
  const std::vector<Pixel> straight = curves_of(linear).at(0).pixels;
  CHECK(straight[2].x - straight[1].x == Approx(10 * (straight[1].x - straight[0].x)).epsilon(0.02));

  const Answer entropy = sandbox.run("plot curve run.jsonl --y entropy --x seconds");
  REQUIRE(entropy.code == 0);
  CHECK(shows(entropy.out, "mean entropy of a step (nats)"));
  CHECK(shows(entropy.out, "training time (seconds)"));

  const std::string supervised = POINTSMAN_SOURCE_DIR "/bench/results/curves/tsp50-lstm_2_supervised.jsonl";
  const Answer given = sandbox.run("plot curve --y cross_entropy " + supervised);
  REQUIRE(given.code == 0);
  CHECK(shows(given.out, "-log p of a given answer (nats)"));
  CHECK(sandbox.run("plot curve run.jsonl --y cross_entropy").code == 3);  // no such column there
}

TEST_CASE("a line that is still being written is left out") {
  const Sandbox sandbox;
  sandbox.write("run.jsonl", log_line("100", "8") + "{\"step\":2,\"tou");
  const Answer answer = sandbox.run("plot curve run.jsonl");
  CHECK(answer.code == 0);
  CHECK(answer.err.find("the last line is cut short") != std::string::npos);
  sandbox.write("run.jsonl", log_line("100", "8") + "{\"step\":2,\"tou\n");
  CHECK(sandbox.run("plot curve run.jsonl").code == 3);
}

TEST_CASE("progress has a line for each strategy, and a marker where there is one row") {
  const Sandbox sandbox;
  const nlohmann::json none = {{"model", nullptr}, {"model_sha256", nullptr}};
  const nlohmann::json varied = {{"augment", 8}, {"shuffle", true}, {"improve", true}, {"temperature", 1.5}};
  sandbox.write("a.jsonl", eval_row("sample", 12800, "0.02") + eval_row("sample", 128, "0.04") +
                               eval_row("greedy", 1, "null") + eval_row("sample", 1280, "0.03", varied));
  sandbox.write("b.jsonl", eval_row("sample", 1280, "0.03") + eval_row("local", 51, "0.01", none) +
                               eval_row("local", 501, "0", none) + "\n");
  const Answer answer = sandbox.run("plot progress a.jsonl b.jsonl --ref 1");
  REQUIRE(answer.code == 0);
  CHECK(answer.err.empty());
  CHECK(is_well_formed(answer.out));
  for (const char* words : {"tsp50 sample", "tsp50 sample x8 shuffle improve T 1.5", "local search",
                            "reference 1", "samples of an instance", "mean gap to the reference (%)"}) {
    INFO(words);
    CHECK(shows(answer.out, words));
  }
  CHECK(!shows(answer.out, "tsp50 greedy"));  // its gap is null
  sandbox.write("c.jsonl", eval_row("2opt", 51, "0.01", {{"model", nullptr}, {"improve", true}}));
  const Answer tours = sandbox.run("plot progress c.jsonl");
  CHECK(shows(tours.out, "2opt search"));
  CHECK(!shows(tours.out, "improve"));
  const std::vector<Path> curves = curves_of(answer.out);
  REQUIRE(curves.size() == 2);
  const std::vector<Pixel>& sample = curves[0].pixels;
  REQUIRE(sample.size() == 3);  // from both files, by their samples
  CHECK(sample[1].x - sample[0].x == Approx(sample[2].x - sample[1].x).margin(0.2));  // a decade each
  CHECK(sample[2].y - sample[1].y == Approx(sample[1].y - sample[0].y).margin(0.2));
  const std::vector<Pixel>& local = curves[1].pixels;
  REQUIRE(local.size() == 2);
  CHECK(local[1].y - sample[2].y == Approx(sample[2].y - sample[0].y).margin(0.2));  // 4%, 2%, 0
  for (const Path& path : paths_of(answer.out)) {
    if (path.has("#666") && path.pixels[1].x - path.pixels[0].x > 100) {
      CHECK(path.pixels[0].y == local[0].y);  // in percent
    }
  }
  std::vector<Path> markers;
  for (const Path& path : paths_of(answer.out)) {
    if (path.has("stroke-width=\"9.00\"")) markers.push_back(path);
  }
  REQUIRE(markers.size() == 1);
  CHECK(markers[0].pixels[0].x == sample[1].x);
  CHECK(markers[0].pixels[0].y == sample[1].y);

  const Answer time = sandbox.run("plot progress a.jsonl --x ms_per_instance --y mean_cost");
  REQUIRE(time.code == 0);
  CHECK(shows(time.out, "time per instance (ms)"));
  CHECK(shows(time.out, "tsp50 greedy"));
}

TEST_CASE("strategies of one name are told apart by what differs") {
  const Sandbox sandbox;
  sandbox.write("rows.jsonl", eval_row("greedy", 1, "0.3", {{"set", "tsp20.npy"}}) +
                                  eval_row("greedy", 1, "0.2", {{"device", "cuda:0"}}) +
                                  eval_row("greedy", 1, "0.1", {{"model_sha256", "fedcba9876543210"}}) +
                                  eval_row("greedy", 1, "0.1") + eval_row("sample", 8, "0.1"));
  const std::string svg = sandbox.run("plot progress rows.jsonl").out;
  for (const char* name : {"tsp50 greedy, tsp20.npy", "tsp50 greedy, tsp50_test.npy, cuda:0",
                           "tsp50 greedy, tsp50_test.npy, cpu, 01234567",
                           "tsp50 greedy, tsp50_test.npy, cpu, fedcba98", "tsp50 sample"}) {
    INFO(name);
    CHECK(shows(svg, name));
  }
  std::string many;
  for (int samples = 1; samples <= 8; ++samples) {
    many += eval_row("sample", samples, "0.1", {{"temperature", 1 + 0.5 * samples}});
  }
  sandbox.write("many.jsonl", many);
  const std::string rings = sandbox.run("plot progress many.jsonl").out;
  CHECK(count(rings, "stroke=\"#fff\"") == 1);  // the eighth has the first one's colour, and a hole
}

TEST_CASE("a row that is still being written is left out") {
  const Sandbox sandbox;
  sandbox.write("rows.jsonl", eval_row("greedy", 1, "0.3") + "{\"mode\":\"sam");
  const Answer answer = sandbox.run("plot progress rows.jsonl");
  CHECK(answer.code == 0);
  CHECK(answer.err.find("rows.jsonl: the last line is cut short") != std::string::npos);
}

TEST_CASE("words are escaped, and labels that cannot be shown are not lost") {
  const Sandbox sandbox;
  sandbox.write("a<b>&\".jsonl", log_line("1", "8"));
  sandbox.write("b\xFF.jsonl", log_line("1", "8"));
  const Answer names = sandbox.run("plot curve 'a<b>&\".jsonl' 'b\xFF.jsonl' --title '\xC3\xA9\x01<'");
  REQUIRE(names.code == 0);
  CHECK(is_well_formed(names.out));
  CHECK(shows(names.out, "a&lt;b&gt;&amp;&quot;"));
  CHECK(shows(names.out, "b\xEF\xBF\xBD"));
  CHECK(shows(names.out, "\xC3\xA9\xEF\xBF\xBD&lt;"));
}

TEST_CASE("files of one name are told apart by their folders") {
  const Sandbox sandbox;
  fs::create_directory(sandbox.path("x"));
  fs::create_directory(sandbox.path("y"));
  sandbox.write("x/log.jsonl", log_line("1", "8"));
  sandbox.write("y/log.jsonl", log_line("1", "8"));
  const Answer answer = sandbox.run("plot curve x/log.jsonl y/log.jsonl");
  CHECK(shows(answer.out, "x/log.jsonl"));
  CHECK(shows(answer.out, "y/log.jsonl"));
  CHECK(shows(sandbox.run("plot curve - <x/log.jsonl").out, "stdin"));
}

TEST_CASE("up to ten lines are named beside their ends, and no name covers another") {
  LineChart chart;
  chart.x_label = "x";
  chart.y_label = "y";
  chart.reference = {0.5, "reference"};
  for (int i = 0; i < 10; ++i) {  // all end within a pixel or two of each other
    chart.series.push_back({"name " + std::to_string(i), {{0, 1.0 * i}, {1, 0.5 + 0.01 * ((7 * i) % 10)}}});
  }
  chart.series[3].label = std::string(500, 'm');
  const std::string svg = format_line_chart(chart);
  CHECK(is_well_formed(svg));
  static const std::regex label(
      "<text x=\"([0-9.]+)\" y=\"([0-9.]+)\"[^>]*>(name [0-9]|m+\xE2\x80\xA6|reference)<");
  std::map<std::string, Pixel> names;
  for (std::sregex_iterator at(svg.begin(), svg.end(), label), end; at != end; ++at) {
    names[(*at)[3]] = {std::stod((*at)[1]), std::stod((*at)[2])};
    CHECK(std::stod((*at)[1]) + text_width((*at)[3].str(), 13) <= 800);
  }
  REQUIRE(names.size() == 11);
  const std::vector<Path> curves = curves_of(svg);
  REQUIRE(curves.size() == 10);
  std::vector<double> heights;
  for (const auto& [name, at] : names) {
    CHECK(at.x > curves[0].pixels.back().x);
    heights.push_back(at.y);
  }
  std::sort(heights.begin(), heights.end());
  for (size_t i = 1; i < heights.size(); ++i) CHECK(heights[i] - heights[i - 1] >= 15.9);
  // Names stand in the order of the ends: 0 ends lowest, 7 ends highest (7 * 7 % 10 = 9).
  CHECK(names.at("name 7").y == heights.front());
  CHECK(names.at("name 1").y < names.at("name 0").y);
  chart.series.push_back(chart.series[0]);  // the eleventh
  CHECK(curves_of(format_line_chart(chart)).at(0).pixels.back().x > curves[0].pixels.back().x);
}

TEST_CASE("names inside of the frame keep off lines, markers and each other") {
  const Box frame{0, 0, 600, 400};
  std::vector<NamedLine> lines = {{"a line", {{50, 50}, {300, 200}}}, {"across", {{0, 190}, {599, 190}}}};
  for (int i = 0; i < 6; ++i) lines.push_back({"marker " + std::to_string(i), {{200.0 + i, 300.0 + 3 * i}}});
  const auto names = place_names(lines, frame, {});
  REQUIRE(names);
  std::vector<Box> boxes;
  for (size_t i = 0; i < lines.size(); ++i) {
    const LineName& name = names->at(i);
    const double width = text_width(lines[i].name, kNameSize);
    const double left = name.at.x - width * static_cast<int>(name.anchor) / 2.0;
    const Box box{left, name.at.y - 8, left + width, name.at.y + 8};
    INFO(lines[i].name << " " << box.left << " " << box.top);
    CHECK((box.left >= 0 && box.right <= 600 && box.top >= 0 && box.bottom <= 400));
    for (const Box& other : boxes) {
      CHECK((box.right <= other.left || other.right <= box.left || box.bottom <= other.top ||
             other.bottom <= box.top));
    }
    boxes.push_back(box);
    CHECK((box.top > 190 || box.bottom < 190));
    for (int k = 0; k < 6; ++k) {
      const Pixel marker{200.0 + k, 300.0 + 3 * k};
      CHECK((marker.x < box.left || marker.x > box.right || marker.y < box.top || marker.y > box.bottom));
    }
  }
  lines.push_back({std::string(500, 'm'), {{300, 300}}});
  CHECK(!place_names(lines, frame, {}));  // too wide for any place
}

TEST_CASE("heights are pushed apart no further than they must") {
  using Heights = std::vector<double>;
  CHECK(pushed_apart({}, 10, 0, 100).empty());
  CHECK(pushed_apart({5, 50, 95}, 10, 0, 100) == Heights{5, 50, 95});
  CHECK(pushed_apart({50, 50}, 10, 0, 100) == Heights{45, 55});
  CHECK(pushed_apart({50, 50, 53}, 10, 0, 100) == Heights{41, 51, 61});
  CHECK(pushed_apart({-5, 0, 2}, 10, 0, 100) == Heights{0, 10, 20});
  CHECK(pushed_apart({80, 99, 100}, 10, 0, 100) == Heights{80, 90, 100});
  CHECK(pushed_apart({20, 90, 99, 100}, 10, 0, 100) == Heights{20, 80, 90, 100});
}

TEST_CASE("error bars show the 95% confidence interval of a row") {
  const Sandbox sandbox;
  sandbox.write("rows.jsonl", eval_row("sample", 1, "0.2", {{"gap_ci95", 0.05}}) +
                                  eval_row("sample", 10, "0.1", {{"gap_ci95", nullptr}}) +
                                  eval_row("sample", 100, "0.05", {{"gap_ci95", 0.1}}));
  const Answer linear = sandbox.run("plot progress rows.jsonl");
  REQUIRE(linear.code == 0);
  CHECK(is_well_formed(linear.out));
  const std::vector<Pixel> points = curves_of(linear.out).at(0).pixels;
  const double unit = (points[1].y - points[0].y) / 10;  // a percent in pixels
  const Path bars = path_with(linear.out, "stroke-width=\"1.10\"");
  REQUIRE(bars.pixels.size() == 12);  // two bars with two ends
  CHECK(bars.pixels[0].x == points[0].x);
  CHECK(bars.pixels[0].y == Approx(points[0].y + 5 * unit).margin(0.2));
  CHECK(bars.pixels[1].y == Approx(points[0].y - 5 * unit).margin(0.2));
  CHECK(bars.pixels[6].x == points[2].x);
  CHECK(bars.pixels[6].y == Approx(points[2].y + 10 * unit).margin(0.2));
  CHECK(count(sandbox.run("plot progress rows.jsonl --y mean_cost").out, "stroke-width=\"1.10\"") == 0);

  const Answer logarithmic = sandbox.run("plot progress rows.jsonl --log-y");
  REQUIRE(logarithmic.code == 0);
  const std::vector<Pixel> halves = curves_of(logarithmic.out).at(0).pixels;
  CHECK(halves[1].y - halves[0].y == Approx(halves[2].y - halves[1].y).margin(0.2));  // by half each
  const Path clipped = path_with(logarithmic.out, "stroke-width=\"1.10\"");
  CHECK(clipped.pixels.size() == 10);  // the last ends below the frame, without a cap
  for (const Pixel& pixel : clipped.pixels) CHECK(pixel.y < halves[0].y + 401);
  sandbox.write("wrong.jsonl", eval_row("sample", 1, "0.2", {{"gap_ci95", -0.05}}));
  CHECK(sandbox.run("plot progress wrong.jsonl").code == 3);
}

TEST_CASE("a logarithmic side axis leaves out what is not above 0, and says so") {
  const Sandbox sandbox;
  sandbox.write("rows.jsonl", eval_row("sample", 1, "0.1") + eval_row("exact", 1, "1e-17") +
                                  eval_row("sample", 10, "-0.01") + eval_row("greedy", 1, "0.2"));
  const Answer rows = sandbox.run("plot progress rows.jsonl --log-y --ref 0.05");
  REQUIRE(rows.code == 0);
  CHECK(rows.err.find("rows.jsonl: --log-y has no place for a gap of 0 or less; lines left out: 2") !=
        std::string::npos);
  CHECK(!shows(rows.out, "exact"));
  CHECK(shows(rows.out, "0.05"));
  sandbox.write("run.jsonl",
                log_line("1", "100") + log_line("2", "10") + log_line("3", "0") + log_line("4", "1"));
  const Answer curve = sandbox.run("plot curve run.jsonl --log-y");
  CHECK(curve.err.find("left out: 1") != std::string::npos);
  const std::vector<Pixel> pixels = curves_of(curve.out).at(0).pixels;
  REQUIRE(pixels.size() == 3);
  CHECK(pixels[1].y - pixels[0].y == Approx(pixels[2].y - pixels[1].y).margin(0.2));
  CHECK(pixels[2].x - pixels[1].x == Approx(2 * (pixels[1].x - pixels[0].x)).margin(0.2));
  CHECK(sandbox.run("plot curve run.jsonl --log-y --ref 0").code == 2);
  CHECK(sandbox.run("plot ratio run.jsonl --log-y").code == 2);
  sandbox.write("zero.jsonl", log_line("1", "0"));
  const Answer none = sandbox.run("plot curve zero.jsonl --log-y");
  CHECK(none.code == 3);
  CHECK(none.err.find("expected at least one line with a number above 0 in val_cost") != std::string::npos);
}

TEST_CASE("a legend covers nothing however many lines it has") {
  LineChart chart;
  chart.x_label = "x";
  chart.y_label = "y";
  for (int i = 0; i < 30; ++i) {
    chart.series.push_back(
        {"a rather long name " + std::to_string(i), {{0, 0}, {1, static_cast<double>(i)}}});
  }
  chart.series[0].label = std::string(500, 'm');
  const std::string svg = format_line_chart(chart);
  CHECK(is_well_formed(svg));
  const std::vector<Path> curves = curves_of(svg);
  REQUIRE(curves.size() == 30);
  double top = 1e9;
  std::set<std::string> styles;
  for (const Path& curve : curves) {
    for (const Pixel& pixel : curve.pixels) top = std::min(top, pixel.y);
    styles.insert(curve.attributes.substr(curve.attributes.find("stroke=")));
  }
  CHECK(styles.size() == 28);  // seven colours, four dashes
  static const std::regex label(
      "<text x=\"([0-9.]+)\" y=\"([0-9.]+)\"[^>]*>(a rather long name [0-9]+|m+\xE2\x80\xA6)<");
  std::set<std::pair<std::string, std::string>> places;
  for (std::sregex_iterator at(svg.begin(), svg.end(), label), end; at != end; ++at) {
    CHECK(std::stod((*at)[2]) < top);
    CHECK(std::stod((*at)[1]) + text_width((*at)[3].str(), 13) <= 800);
    places.insert({(*at)[1], (*at)[2]});
  }
  CHECK(places.size() == 30);
}

TEST_CASE("many points make a small file that still has the peaks") {
  LineChart chart;
  chart.x_label = "x";
  chart.y_label = "y";
  chart.series.push_back({"s", {}});
  for (int i = 0; i < 200000; ++i)
    chart.series[0].points.push_back({static_cast<double>(i), std::sin(0.1 * i)});
  chart.series[0].points[77777].y = 9;
  const std::string svg = format_line_chart(chart);
  CHECK(svg.size() < 60000);
  const std::vector<Pixel> pixels = curves_of(svg).at(0).pixels;
  const auto lower = [](Pixel a, Pixel b) { return a.y < b.y; };
  const auto [top, bottom] = std::minmax_element(pixels.begin(), pixels.end(), lower);
  // Peak and trough are 10 apart, and 5% of that is free at either end of 400 pixels.
  CHECK(bottom->y - top->y == Approx(400 / 1.1).margin(0.2));
  CHECK(top->x == Approx(pixels[0].x + (pixels.back().x - pixels[0].x) * 77777 / 199999).margin(0.2));
  CHECK(format_line_chart(chart) == svg);
}

TEST_CASE("ticks are round and labels tell them apart") {
  const auto labels = [](double low, double high, bool logarithmic, int wanted) {
    std::string out;
    for (const Tick& tick : make_axis("", {low, high, logarithmic}, wanted).ticks) out += tick.label + " ";
    return out;
  };
  CHECK(labels(0, 1, false, 5) == "0 0.2 0.4 0.6 0.8 1.0 ");
  CHECK(labels(-0.3, 1.2, false, 3) == "0 0.5 1.0 ");
  CHECK(labels(7400, 7850, false, 5) == "7400 7500 7600 7700 7800 ");
  CHECK(labels(0, 4.6e6, false, 5) == "0 1M 2M 3M 4M ");
  CHECK(labels(0, 1.2e6, false, 8) == "0 0.2M 0.4M 0.6M 0.8M 1.0M 1.2M ");
  CHECK(labels(2e4, 1.9e6, true, 8) == "20k 50k 100k 200k 500k 1M ");
  CHECK(labels(10, 9e7, true, 8) == "10 100 1k 10k 100k 1M 10M ");
  CHECK(labels(110, 190, true, 4) == "120 140 160 180 ");
  for (const bool logarithmic : {false, true}) {
    for (int exponent = -90; exponent <= 100; ++exponent) {
      for (const double span : {1.000001, 1.01, 1.7, 3.0, 40.0, 1e5}) {
        const double low = std::pow(10.0, exponent) / span;
        const Scale scale = make_scale(low, low * span, logarithmic, 0.05);
        INFO(low << " to " << low * span << (logarithmic ? ", logarithmic" : ""));
        const std::vector<Tick> ticks = make_axis("", scale, 8).ticks;
        CHECK(ticks.size() >= 2);
        CHECK(ticks.size() <= 16);
        std::set<std::string> seen;
        for (const Tick& tick : ticks) {
          CHECK(scale.fraction(tick.value) >= -1e-9);  // powers of ten are rounded
          CHECK(scale.fraction(tick.value) <= 1 + 1e-9);
          seen.insert(tick.label);
          CHECK(tick.label.size() <= 16);
        }
        CHECK(seen.size() == ticks.size());
      }
    }
  }
}

TEST_CASE("one number, one place and the largest numbers have a picture") {
  for (const double value : {0.0, 5.0, -1e9, 1e100, 1e-300}) {
    INFO(value);
    LineChart chart;
    chart.x_label = chart.y_label = "v";
    chart.has_dots = true;
    chart.series = {{"s", {{value, value}}}};
    const std::string svg = format_line_chart(chart);
    CHECK(is_well_formed(svg));
    CHECK(count(svg, "nan") + count(svg, "inf") + count(svg, "null") == 0);
    Instance instance;
    instance.values = {value, 1, value, 1};
    const std::string map = format_tour_maps({{&instance, {0, 1}, "c"}}, "");
    CHECK(count(map, "nan") + count(map, "inf") + count(map, "null") == 0);
    CHECK(path_with(map, kBlue).pixels.size() == 2);
  }
}

TEST_CASE("a picture has finite numbers whatever the range of its values is") {
  const Sandbox sandbox;
  const std::pair<const char*, const char*> ranges[] = {
      {"3", "3"}, {"1e-90", "1e100"}, {"5e-324", "1e-300"}, {"5e-324", "4"}};
  for (const auto& [low, high] : ranges) {
    sandbox.write("run.jsonl", log_line("1", low) + log_line("2", high));
    sandbox.write("rows.jsonl", eval_row("sample", 1, low) + eval_row("sample", 10, high));
    for (const char* reference : {"5e-324", "1e-90", "3", "1e100"}) {
      for (const char* log : {"", " --log-y"}) {
        for (const char* what : {"curve run.jsonl --ref ", "progress rows.jsonl --ref "}) {
          INFO(what << reference << log << ", values " << low << " and " << high);
          const Answer answer = sandbox.run(std::string("plot ") + what + reference + log);
          const bool is_refused = *log != '\0' && *reference == '5';
          const bool is_empty = *log != '\0' && std::string(high) == "1e-300";  // nothing to draw: 3
          CHECK((answer.code == 0) == (!is_refused && !is_empty));
          if (is_refused && !is_empty)
            CHECK(answer.err.find("expected a number from 1e-90") != std::string::npos);
          CHECK(count(answer.out, "nan") + count(answer.out, "inf") + count(answer.out, "null") == 0);
        }
      }
    }
  }
}

TEST_CASE("bad files are named with their line, exit code 3") {
  const Sandbox sandbox;
  sandbox.write("t.json", triangle());
  sandbox.write("twice.json", "{\"solutions\":[{\"tour\":[0,1,1]}]}");
  sandbox.write("short.json", "{\"solutions\":[]}");
  sandbox.write("noref.json", result("tsp", {"0.1", "null"}));
  sandbox.write("mixed.ndjson", result("tsp", {"0.1"}, true) + result("knapsack", {"0.1"}, true));
  sandbox.write("tsp.json", result("tsp", {"0.1"}));
  sandbox.write("knapsack.json", result("knapsack", {"0.1"}));
  sandbox.write("none.json", "{\"rows\":[]}");
  sandbox.write("huge.json", result("tsp", {"1e200"}));
  sandbox.write("empty.jsonl", "");
  sandbox.write("null.jsonl", log_line("1", "null"));
  sandbox.write("text.jsonl", log_line("1", "8") + log_line("2", "\"x\"") + log_line("3", "8"));
  sandbox.write("zero.jsonl", log_line("0", "8"));
  sandbox.write("key.jsonl", "{\"tours\":1}\n");
  sandbox.write("array.jsonl", "[]\n");
  sandbox.write("gapless.jsonl", eval_row("greedy", 1, "null"));
  sandbox.write("unsampled.jsonl", eval_row("greedy", 0, "0.1"));
  sandbox.write("unsure.jsonl", "\n" + eval_row("greedy", 1, "0.1", {{"shuffle", 1}}));
  sandbox.write("packed.jsonl", eval_row("greedy", 1, "0.1", {{"problem", "knapsack"}}));
  sandbox.write("rows.jsonl", eval_row("greedy", 1, "0.1"));
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"tour t.json twice.json", "twice.json: solution 0: "},
      {"tour t.json short.json", "short.json: expected 1 solution"},
      {"tour t.json missing.tour", "missing.tour: "},
      {"ratio noref.json",
       "noref.json:3:34: solutions[1].gap: expected a number (of solve --ref), found null"},
      {"ratio mixed.ndjson",
       "mixed.ndjson:2:22: problem: expected the same problem throughout, found the string"},
      {"ratio tsp.json knapsack.json", "knapsack.json:2:"},
      {"ratio none.json", "none.json:1:1: expected the key \"solutions\", found none"},
      {"ratio short.json", "short.json: expected at least one solution, found none"},
      {"ratio huge.json", "huge.json:2:"},
      {"ratio missing.json", "missing.json: "},
      {"curve empty.jsonl", "empty.jsonl: expected at least one line with a number in val_cost, found none"},
      {"curve null.jsonl", "null.jsonl: expected at least one line with a number in val_cost, found none"},
      {"curve text.jsonl", "text.jsonl:2:46: val_cost: expected a number, found the string \"x\""},
      {"curve zero.jsonl --log-x",
       "zero.jsonl:1:19: tours: expected a number above 0 (the axis is logarithmic), found 0"},
      {"progress gapless.jsonl",
       "gapless.jsonl: expected at least one line with a number in gap, found none"},
      {"progress rows.jsonl --y shortfall", "rows.jsonl:1:1: expected the key \"shortfall\", found none"},
      {"progress unsampled.jsonl", "unsampled.jsonl:1:"},
      {"progress unsure.jsonl", "unsure.jsonl:2:"},
      {"progress rows.jsonl packed.jsonl", "packed.jsonl:1:"},
      {"progress array.jsonl",
       "array.jsonl:1:1: expected a row of eval --format ndjson (an object), found an array of 0"},
      {"curve key.jsonl", "key.jsonl:1:1: expected the key \"val_cost\", found none"},
      {"curve array.jsonl",
       "array.jsonl:1:1: expected a line of a training log (an object), found an array of 0"}};
  for (const auto& [arguments, message] : cases) {
    INFO(arguments);
    const Answer answer = sandbox.run("plot -o never.svg " + arguments);
    INFO(answer.err);
    CHECK(answer.code == 3);
    CHECK(answer.err.find("error: " + message) != std::string::npos);
    CHECK(!sandbox.exists("never.svg"));
  }
  CHECK(nlohmann::json::parse(sandbox.run("plot ratio noref.json").out).at("line") == 3);
}

TEST_CASE("a wrong plot command ends with 2") {
  const Sandbox sandbox;
  sandbox.write("t.json", triangle());
  sandbox.write("k.json", "{\"problem\":\"knapsack\",\"capacity\":1,\"weights\":[1],\"values\":[1]}");
  sandbox.write("s.json", "{\"solutions\":[{\"tour\":[0,1,2],\"items\":[0]}]}");
  sandbox.write("run.jsonl", log_line("1", "8"));
  sandbox.write("rows.jsonl", eval_row("greedy", 1, "0.1"));
  std::string many, answers;
  for (int i = 0; i < 26; ++i) {
    many += triangle();
    answers += "{\"tour\":[0,1,2]}\n";
  }
  sandbox.write("many.ndjson", many);
  sandbox.write("answers.ndjson", answers);
  for (const char* arguments : {"plot",
                                "plot pie t.json",
                                "plot tour",
                                "plot tour t.json",
                                "plot tour k.json s.json",
                                "plot tour t.json s.json --index 1",
                                "plot tour many.ndjson answers.ndjson",
                                "plot tour t.json s.json --log-x",
                                "plot ratio s.json --ref 1",
                                "plot curve run.jsonl --index 0",
                                "plot curve run.jsonl --y nope",
                                "plot curve run.jsonl --y gap",
                                "plot curve run.jsonl --x samples",
                                "plot progress rows.jsonl --x tours",
                                "plot progress rows.jsonl --y val_cost",
                                "plot progress rows.jsonl --log-x",
                                "plot progress rows.jsonl --label a",
                                "plot progress rows.jsonl --index 0",
                                "plot progress - -",
                                "plot curve run.jsonl --ref x",
                                "plot curve run.jsonl --label a --label b",
                                "plot curve - -",
                                "plot curve run.jsonl -o run.png",
                                "plot curve run.jsonl --format json"}) {
    INFO(arguments);
    const Answer answer = sandbox.run(arguments);
    CHECK(answer.code == 2);
    CHECK(answer.err.find("pointsman: error: ") != std::string::npos);
  }
  CHECK(sandbox.run("plot tour many.ndjson answers.ndjson --index 25").code == 0);
  CHECK(sandbox.run("plot tour t.json s.json", "POINTSMAN_LOG_X=1").code == 0);  // meant for plot curve
  CHECK(sandbox.run("plot --help").out.find("Examples:") != std::string::npos);
}

TEST_CASE("a picture is kept as every other output is") {
  const Sandbox sandbox;
  sandbox.write("run.jsonl", log_line("1", "8") + log_line("2", "7.5"));
  const std::string svg = sandbox.run("plot curve run.jsonl").out;
  REQUIRE(svg.substr(0, 5) == "<svg ");
  CHECK(sandbox.run("plot curve run.jsonl -o run.svg").code == 0);
  CHECK(sandbox.read("run.svg") == svg);
  sandbox.write("run.svg", "precious");
  CHECK(sandbox.run("plot curve run.jsonl -o run.svg").code == 2);
  CHECK(sandbox.read("run.svg") == "precious");
  CHECK(sandbox.run("plot curve run.jsonl -f -o run.svg", "LC_ALL=de_DE.UTF-8").code == 0);
  CHECK(sandbox.read("run.svg") == svg);
  CHECK(sandbox.run("plot curve run.jsonl -o plain.txt --format svg").code == 0);
  CHECK(sandbox.run("plot curve run.jsonl -o /dev/full").code == 4);
}
