// SPDX-License-Identifier: Apache-2.0
// Graphs as the DIMACS challenges have them (.col): "p edge NODES EDGES", then a line "e A B" for each edge,
// nodes counted from 1.
#include <string>
#include <utility>

#include "engine/problem/graph.h"
#include "host/formats/formats.h"
#include "host/formats/input_file.h"
#include "models/tools/json_text.h"

namespace pointsman {
namespace {

class GraphText {
 public:
  GraphText(std::string_view text, const std::string& file, const ReadOptions& options)
      : file_(file), lines_(text, file), instance_(unnamed_instance(file, ItemFields::kEdges, options)) {}

  InstanceFile read() {
    for (std::string_view line; lines_.next_row(line);) read_line(trim(line));
    if (graph_.n == 0) lines_.fail("expected \"p edge NODES EDGES\", found none");
    instance_.metric = Metric::kExplicit;
    instance_.matrix = std::make_shared<const DistanceMatrix>(std::move(graph_));
    instance_.first_id = 1;
    InstanceFile out = lines_.finish({std::move(instance_)});
    if (loops_ > 0) {
      out.warnings.push_back(
          lines_.warning(std::to_string(loops_) + " edges join a node with itself and are left out"));
    }
    if (edges_ != told_ && 2 * edges_ != told_) {  // some files count each edge twice
      out.warnings.push_back(lines_.warning("expected " + std::to_string(told_) + " edges, found " +
                                            std::to_string(edges_) +
                                            (edges_ < told_ ? "; was the file cut short?" : "")));
    }
    return out;
  }

 private:
  void read_line(std::string_view line) {
    std::string_view rest = line;
    const std::string_view kind = take_word(rest);
    if (kind.starts_with('c')) return;  // a comment
    if ((kind == "n" || kind == "d" || kind == "v" || kind == "x") && graph_.n > 0)
      return;  // weights, places
    if (kind == "p" && graph_.n == 0) {
      take_word(rest);  // edge or col
      const char* const kExpected = "\"p edge NODES EDGES\"";
      const int64_t nodes = number(rest, line, kExpected), edges = number(rest, line, kExpected);
      if (nodes < 1 || nodes > kMostGraphNodes || edges < 0)
        fail_expected("from 1 to " + std::to_string(kMostGraphNodes) + " nodes and a number of edges", line);
      uint64_t bytes = 0;
      graph_ = claimed_graph(static_cast<int>(nodes), bytes, file_);
      told_ = edges;
    } else if (kind == "e" && graph_.n > 0) {
      const int64_t a = number(rest, line, "two integers"), b = number(rest, line, "two integers");
      if (a < 1 || b < 1 || a > graph_.n || b > graph_.n)
        fail_expected("two nodes from 1 to " + std::to_string(graph_.n), line);
      ++edges_;
      if (a == b) {
        ++loops_;
      } else {
        join(graph_, static_cast<int>(a) - 1, static_cast<int>(b) - 1);
      }
    } else {
      fail_expected(graph_.n == 0 ? "\"p edge NODES EDGES\"" : "\"e A B\"", line);
    }
    if (!trim(rest).empty()) fail_expected("no more on this line", line);
  }

  int64_t number(std::string_view& rest, std::string_view line, const char* expected) {
    int64_t value = 0;
    if (!parse_integer(take_word(rest), value)) fail_expected(expected, line);
    return value;
  }
  [[noreturn]] void fail_expected(const std::string& expected, std::string_view line) {
    lines_.fail("expected " + expected + ", found " + shown(line));
  }

  const std::string& file_;
  TextReader lines_;
  Instance instance_;
  DistanceMatrix graph_;
  int64_t told_ = 0, edges_ = 0, loops_ = 0;
};

}  // namespace

DistanceMatrix claimed_graph(int n, uint64_t& bytes, const std::string& file) {
  bytes += static_cast<uint64_t>(n) * static_cast<uint64_t>(n) / 2 * sizeof(double);
  check_input_size(bytes, file, "graphs take");
  return empty_graph(n);
}

bool begins_graph_text(std::string_view line) {
  const std::string_view first = take_word(line), second = take_word(line);
  return first == "c" || (first == "p" && (second == "edge" || second == "edges" || second == "col"));
}

InstanceFile parse_graph_text(InputFile& file, const ReadOptions& options) {
  return GraphText(file.read_rest(), file.name(), options).read();
}

std::string write_graph_text(const InstanceBatch& instances) {
  if (instances.size() != 1 || !is_graph(instances[0].problem))
    throw OutputRefused("a .col file holds one graph; use json or ndjson");
  const auto edges = edges_of(*instances[0].matrix);
  std::string out = "p edge " + std::to_string(instances[0].n()) + " " + std::to_string(edges.size()) + "\n";
  for (const auto& [a, b] : edges) out += "e " + std::to_string(a + 1) + " " + std::to_string(b + 1) + "\n";
  return out;
}

}  // namespace pointsman
