// SPDX-License-Identifier: Apache-2.0
#include "bench/engine/baseline.h"

#include <algorithm>
#include <cstdio>

#include "host/formats/input_file.h"

namespace pointsman::bench {

namespace {

constexpr const char *kRatio = "ratio", *kPerGflops = "per_gflops";

bool is_of_threads(const Json& row) { return row.contains("threads"); }

std::string name_of_row(const Json& row) {
  return row.at("name").get<std::string>() + " " + row.at("encoder").get<std::string>() +
         " n=" + row.at("n").dump() + " batch=" + row.at("batch").dump();
}

const Json* find_row(const Json& rows, const std::string& name) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Json& row) {
    return !is_of_threads(row) && name_of_row(row) == name;
  });
  return found == rows.end() ? nullptr : &*found;
}

// What can be compared of both rows; null: nothing. A row without PyTorch has no ratio.
const char* key_of(const Json& found, const Json& expected, bool same_instructions) {
  const auto both_have = [&](const char* key) {
    return found.at(key).is_number() && expected.at(key).is_number();
  };
  if (both_have(kRatio)) return kRatio;
  return same_instructions && both_have(kPerGflops) ? kPerGflops : nullptr;
}

std::string short_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

// Empty unless it fell.
std::string fall_of(const std::string& key, const Json& found, const Json& expected) {
  const double value = found.at(key).get<double>(), before = expected.at(key).get<double>();
  if (value >= (1.0 - kMostFall) * before) return "";
  std::string text = name_of_row(found) + ": " + key + " " + short_text(value) + ", expected " +
                     short_text(before) + " (" + short_text(100.0 * (1.0 - value / before)) + "% less)";
  double spread = 0.0;
  for (const Json* row : {&found, &expected}) {
    spread = std::max(spread, row->at("spread").get<double>());
    if (key == kRatio) spread = std::max(spread, row->value("torch_spread", 0.0));
  }
  if (spread > kMostFall)
    text += ", but with a spread of " + short_text(100.0 * spread) + "%: measure again on an idle machine";
  return text;
}

}  // namespace

Json read_baseline(const std::string& file) {
  InputFile input(file);
  try {
    const Json baseline = Json::parse(input.read_rest());
    for (const Json& row : baseline.at("rows")) {
      if (is_of_threads(row)) continue;
      name_of_row(row);
      row.at("spread").get<double>(), row.value("torch_spread", 0.0);
      for (const char* key : {kRatio, kPerGflops})
        if (!row.at(key).is_null()) row.at(key).get<double>();
    }
    for (const char* key : {"cpu", "device"}) baseline.at("machine").at(key).get<std::string>();
    baseline.at("model").get<std::string>();
    return baseline;
  } catch (const nlohmann::json::exception& error) {
    throw InputError(file, 0, std::string("expected what `bench decode --json` writes: ") + error.what());
  }
}

Comparison compare_with_baseline(const Json& answer, const Json& baseline) {
  const bool same_instructions = answer.at("machine").at("device") == baseline.at("machine").at("device");
  Comparison comparison;
  for (const Json& row : answer.at("rows")) {
    if (is_of_threads(row)) continue;
    const Json* const expected = find_row(baseline.at("rows"), name_of_row(row));
    const char* const key = expected ? key_of(row, *expected, same_instructions) : nullptr;
    if (!key) {
      comparison.unpaired.push_back(name_of_row(row));
      continue;
    }
    ++comparison.compared;
    if (const std::string fall = fall_of(key, row, *expected); !fall.empty())
      comparison.fallen.push_back(fall);
  }
  for (const Json& row : baseline.at("rows")) {
    if (!is_of_threads(row) && !find_row(answer.at("rows"), name_of_row(row)))
      comparison.unpaired.push_back(name_of_row(row));
  }
  return comparison;
}

}  // namespace pointsman::bench
