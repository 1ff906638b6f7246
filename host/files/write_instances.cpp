// SPDX-License-Identifier: Apache-2.0
#include "host/files/write_instances.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "host/files/formats.h"
#include "host/files/npy_array.h"
#include "host/files/text_scan.h"
#include "host/files/zip_archive.h"

namespace pointsman {

namespace {

constexpr double kTsplibScale = 1e6;  // of coordinates whose metric TSPLIB does not have

std::string column_json(const Instance& instance, int column) {
  std::string out = "[";
  for (int i = 0; i < instance.n(); ++i) {
    if (i > 0) out += ',';
    out += number_text(column == 0 ? instance.first(i) : instance.second(i));
  }
  return out + "]";
}

std::string instance_json(const Instance& instance) {
  std::string out = "{";
  if (instance.has_id) out += "\"id\":" + json_text(instance.id) + ",";
  if (instance.problem == ProblemKind::kKnapsack) {
    return out + "\"problem\":\"knapsack\",\"capacity\":" + number_text(instance.capacity) +
           ",\"weights\":" + column_json(instance, 0) + ",\"values\":" + column_json(instance, 1) + "}";
  }
  out += "\"problem\":\"tsp\",";
  if (instance.metric != Metric::kEuclidean) {
    out += std::string("\"edge_weight_type\":\"") + metric_name(instance.metric) + "\",";
  }
  out += "\"coordinates\":[";
  for (int i = 0; i < instance.n(); ++i) {
    out += i > 0 ? ",[" : "[";
    out += number_text(instance.first(i)) + "," + number_text(instance.second(i)) + "]";
  }
  return out + "]}";
}

std::string format_json(const InstanceBatch& instances) {
  if (instances.size() == 1) return instance_json(instances[0]) + "\n";
  std::string out = "{\"instances\":[";
  for (size_t i = 0; i < instances.size(); ++i) out += (i > 0 ? ",\n" : "\n") + instance_json(instances[i]);
  return out + "]}\n";
}

std::string format_ndjson(const InstanceBatch& instances) {
  std::string out;
  for (const Instance& instance : instances) out += instance_json(instance) + "\n";
  return out;
}

void check_one_size(const InstanceBatch& instances) {
  for (const Instance& instance : instances) {
    if (instance.n() != instances[0].n() || instance.problem != instances[0].problem) {
      throw OutputRefused("an array holds instances of one problem and one size; use json or ndjson");
    }
    if (instance.metric != Metric::kEuclidean) {
      throw OutputRefused("an array holds no edge weight type; use json, ndjson or tsplib");
    }
  }
  if (instances.empty()) throw OutputRefused("an array cannot be empty; use json or ndjson");
}

// (B, n, 2)
std::string pairs_npy(const InstanceBatch& instances) {
  std::string out = npy_header("<f8", {instances.size(), static_cast<size_t>(instances[0].n()), 2});
  for (const Instance& instance : instances) {
    for (const double value : instance.values) append_bytes(out, value);
  }
  return out;
}

// (B, n)
std::string column_npy(const InstanceBatch& instances, int column) {
  std::string out = npy_header("<f8", {instances.size(), static_cast<size_t>(instances[0].n())});
  for (const Instance& instance : instances) {
    for (int i = 0; i < instance.n(); ++i) {
      append_bytes(out, column == 0 ? instance.first(i) : instance.second(i));
    }
  }
  return out;
}

// (B,) of UTF-8 byte strings
std::string ids_npy(const InstanceBatch& instances) {
  size_t longest = 1;
  for (const Instance& instance : instances) longest = std::max(longest, instance.id.size());
  std::string out = npy_header("|S" + std::to_string(longest), {instances.size()});
  for (const Instance& instance : instances) {
    out += instance.id;
    out.append(longest - instance.id.size(), '\0');
  }
  return out;
}

std::string format_npz(const InstanceBatch& instances) {
  check_one_size(instances);
  std::vector<std::pair<std::string, std::string>> arrays;
  bool any_id = false;
  for (const Instance& instance : instances) any_id = any_id || instance.has_id;
  if (instances[0].problem == ProblemKind::kTsp) {
    arrays.emplace_back("locs.npy", pairs_npy(instances));
  } else {
    arrays.emplace_back("weights.npy", column_npy(instances, 0));
    arrays.emplace_back("values.npy", column_npy(instances, 1));
    std::string capacities = npy_header("<f8", {instances.size()});
    for (const Instance& instance : instances) append_bytes(capacities, instance.capacity);
    arrays.emplace_back("capacity.npy", capacities);
  }
  if (any_id) arrays.emplace_back("ids.npy", ids_npy(instances));
  return zip_stored(arrays);
}

std::string format_tsplib(const InstanceBatch& instances) {
  if (instances.size() != 1 || instances[0].problem != ProblemKind::kTsp) {
    throw OutputRefused("a TSPLIB file holds one TSP instance; use npy, npz, json or ndjson");
  }
  const Instance& instance = instances[0];
  const bool scaled = instance.metric == Metric::kEuclidean;
  const double scale = scaled ? kTsplibScale : 1.0;
  std::string name;
  for (const char c : instance.id.empty() ? "pointsman" : instance.id)
    name += c == '\n' || c == '\r' ? ' ' : c;
  std::string out = "NAME : " + name + "\nTYPE : TSP\n";
  if (scaled) out += "COMMENT : coordinates times 1000000, since EUC_2D rounds each distance to an integer\n";
  out += "DIMENSION : " + std::to_string(instance.n()) +
         "\nEDGE_WEIGHT_TYPE : " + (scaled ? "EUC_2D" : metric_name(instance.metric)) +
         "\nNODE_COORD_SECTION\n";
  for (int i = 0; i < instance.n(); ++i) {
    out += std::to_string(i + 1) + " " + number_text(scale * instance.first(i)) + " " +
           number_text(scale * instance.second(i)) + "\n";
  }
  return out + "EOF\n";
}

std::string format_knapsack_text(const InstanceBatch& instances) {
  if (instances.size() != 1 || instances[0].problem != ProblemKind::kKnapsack) {
    throw OutputRefused("a KnapSack text holds one KnapSack instance; use npz, json or ndjson");
  }
  const Instance& instance = instances[0];
  std::string out = std::to_string(instance.n()) + " " + number_text(instance.capacity) + "\n";
  for (int i = 0; i < instance.n(); ++i) {
    out += number_text(instance.second(i)) + " " + number_text(instance.first(i)) + "\n";
  }
  return out;
}

}  // namespace

std::optional<InputFormat> instance_format_of(const std::string& path) {
  return format_of_suffix(file_suffix(path));
}

std::string format_instances(InputFormat format, const InstanceBatch& instances) {
  switch (format) {
    case InputFormat::kTsplib:
      return format_tsplib(instances);
    case InputFormat::kNpy:
      check_one_size(instances);
      return pairs_npy(instances);
    case InputFormat::kNpz:
      return format_npz(instances);
    case InputFormat::kJson:
      return format_json(instances);
    case InputFormat::kNdjson:
      return format_ndjson(instances);
    case InputFormat::kKnapsackText:
      return format_knapsack_text(instances);
    case InputFormat::kAuto:
      break;
  }
  throw OutputRefused("no format was named for the instances");
}

}  // namespace pointsman
