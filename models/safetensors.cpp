// SPDX-License-Identifier: Apache-2.0
#include "models/safetensors.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "models/parameter_file.h"
#include "models/tools/json_text.h"

namespace pointsman {

void throw_model_file_error(const std::string& path, const std::string& place, const std::string& expected,
                            const std::string& found) {
  throw ModelFileError(path, place + ": expected " + expected + ", found " + found);
}

std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text.substr(0, kMaxNameLength)) result += c >= ' ' && c <= '~' ? c : '?';
  return result + (text.size() > kMaxNameLength ? "..\"" : "\"");
}

namespace {

// Builds the header from the parser's events, so that nothing outside its narrow grammar is ever stored.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(const std::string& path) : path_(path) {}

  SafetensorsHeader header;

  bool start_object(std::size_t) override {
    if (depth_ > 1) unexpected("an object");
    if (++depth_ == 2 && !is_metadata()) header.tensors.emplace_back().name = key_;
    inner_keys_.clear();
    return true;
  }

  bool key(string_t& name) override {
    auto& seen = depth_ == 1 ? top_keys_ : inner_keys_;
    if (is_tensor() && name != "dtype" && name != "shape" && name != "data_offsets")
      fail("dtype, shape or data_offsets", "key " + in_quotes(name));
    if (name.empty() || name.size() > kMaxNameLength)
      fail("a name of 1 to 64 characters", in_quotes(name) + " of " + std::to_string(name.size()));
    if (!seen.insert(name).second) fail("every key once", "duplicate key " + in_quotes(name));
    if (seen.size() > kMaxTensors + 1) fail("at most 256 tensors", "more");
    (depth_ == 1 ? key_ : inner_key_) = name;
    return true;
  }

  bool end_object() override {
    if (is_tensor() && inner_keys_.size() != 3) fail("dtype, shape and data_offsets", "fewer keys");
    --depth_;
    return true;
  }

  bool start_array(std::size_t) override {
    if (!is_tensor() || inner_key_ == "dtype") unexpected("an array");
    ++depth_;
    numbers_.clear();
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (depth_ != 3) unexpected("a number");
    if (is_shape() && numbers_.size() == kMaxRank) fail("a rank of at most 4", "more dimensions");
    if (!is_shape() && numbers_.size() == 2) fail("two data_offsets", "more");
    numbers_.push_back(value);
    return true;
  }

  bool end_array() override {
    SafetensorsEntry& tensor = header.tensors.back();
    if (is_shape()) {
      tensor.shape = numbers_;
    } else {
      if (numbers_.size() != 2) fail("two data_offsets", std::to_string(numbers_.size()));
      tensor.begin = numbers_[0];
      tensor.end = numbers_[1];
    }
    --depth_;
    return true;
  }

  bool string(string_t& value) override {
    if (is_metadata()) {
      header.metadata[inner_key_] = value;
    } else if (is_tensor() && inner_key_ == "dtype") {
      header.tensors.back().dtype = value;
    } else {
      unexpected("a string");
    }
    return true;
  }

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a boolean"); }
  bool number_integer(number_integer_t) override { unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { unexpected("a fraction"); }
  bool binary(binary_t&) override { unexpected("binary data"); }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    throw_model_file_error(path_, "header", "JSON", "an error at byte " + std::to_string(8 + position));
  }

 private:
  bool is_metadata() const { return depth_ == 2 && key_ == "__metadata__"; }
  bool is_tensor() const { return depth_ == 2 && !is_metadata(); }
  bool is_shape() const { return inner_key_ == "shape"; }  // else data_offsets

  [[noreturn]] void fail(const std::string& expected, const std::string& found) const {
    throw_model_file_error(path_, depth_ == 1 ? "header" : "header: " + in_quotes(key_), expected, found);
  }

  [[noreturn]] void unexpected(const std::string& found) const {
    if (depth_ == 1) fail("an object for " + in_quotes(key_), found);
    if (depth_ == 3) fail("unsigned integers in " + inner_key_, found);
    if (is_metadata()) fail("a string for " + in_quotes(inner_key_), found);
    fail(inner_key_ == "dtype" ? "a string as dtype" : "an array as " + inner_key_, found);
  }

  const std::string& path_;
  int depth_ = 0;  // 1: in the file's object, 2: in metadata or a tensor, 3: in a tensor's array
  std::string key_, inner_key_;  // the last seen at depth 1 and 2
  std::set<std::string> top_keys_, inner_keys_;
  std::vector<uint64_t> numbers_;
};

void check_shape(const SafetensorsEntry& tensor, const std::string& path) {
  const std::string place = in_quotes(tensor.name);
  if (tensor.dtype != "F32") throw_model_file_error(path, place, "dtype F32", in_quotes(tensor.dtype));
  uint64_t bytes = sizeof(float);
  bool overflow = false;
  for (const uint64_t extent : tensor.shape) overflow |= __builtin_mul_overflow(bytes, extent, &bytes);
  if (overflow) throw_model_file_error(path, place, "a shape that fits in 64 bits", "an overflow");
  if (tensor.end < tensor.begin || tensor.end - tensor.begin != bytes)
    throw_model_file_error(path, place,
                           "data_offsets " + std::to_string(bytes) + " bytes apart, as the shape says",
                           std::to_string(tensor.begin) + " to " + std::to_string(tensor.end));
}

void check_tiling(const std::vector<SafetensorsEntry>& tensors, uint64_t data_size, const std::string& path) {
  uint64_t covered = 0;
  for (const SafetensorsEntry& tensor : tensors) {
    if (tensor.begin != covered)
      throw_model_file_error(
          path, in_quotes(tensor.name), "its data at byte " + std::to_string(covered),
          (tensor.begin < covered ? "an overlap at " : "a hole before ") + std::to_string(tensor.begin));
    covered = tensor.end;
  }
  if (covered != data_size)
    throw_model_file_error(path, "data", std::to_string(covered) + " bytes as the header says",
                           std::to_string(data_size));
}

}  // namespace

SafetensorsHeader parse_safetensors_json(std::string_view json, const std::string& path) {
  if (json.empty() || json[0] != '{')
    throw_model_file_error(path, "header", "\"{\" at byte 8", "another byte");
  // The JSON parser takes a NUL for the end of the text and would not look at what follows.
  const size_t nul = json.find('\0');
  if (nul != json.npos)
    throw_model_file_error(path, "header", "text", "NUL at byte " + std::to_string(8 + nul));
  HeaderReader reader(path);
  nlohmann::json::sax_parse(json.begin(), json.end(), &reader);
  return std::move(reader.header);
}

SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t data_size,
                                           const std::string& path) {
  SafetensorsHeader header = parse_safetensors_json(json, path);
  for (const SafetensorsEntry& tensor : header.tensors) check_shape(tensor, path);
  const auto range = [](const SafetensorsEntry& tensor) { return std::pair(tensor.begin, tensor.end); };
  std::ranges::sort(header.tensors, {}, range);
  check_tiling(header.tensors, data_size, path);
  return header;
}

std::string make_safetensors_header(const std::map<std::string, std::string>& metadata,
                                    const std::vector<Tensor>& tensors) {
  std::string json = "{\"__metadata__\":{";
  for (const auto& [key, value] : metadata) {
    if (json.back() != '{') json += ',';
    json += quoted_json(key) + ":" + quoted_json(value);
  }
  json += '}';
  for (const Tensor& tensor : tensors) {
    const size_t offsets[] = {tensor.offset * sizeof(float), (tensor.offset + tensor.size) * sizeof(float)};
    const JsonText shape = json_array(tensor.shape.size(), [&](size_t i) { return tensor.shape[i]; });
    const JsonText entry =
        json_object({{"dtype", "F32"}, {"shape", shape}, {"data_offsets", json_array(2, [&](size_t i) {
                                                            return offsets[i];
                                                          })}});
    json += "," + quoted_json(tensor.name) + ":" + entry.text;
  }
  json += '}';
  json.append((64 - (8 + json.size()) % 64) % 64, ' ');
  const uint64_t length = json.size();  // little-endian, as the machine is (parameter_file.cpp)
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + json;
}

}  // namespace pointsman
