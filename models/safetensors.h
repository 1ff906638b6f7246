// SPDX-License-Identifier: Apache-2.0
// The container of a model file: 8 bytes of header length, a JSON header, then the tensors' bytes without
// gaps. Only what models need: F32 tensors and string metadata.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/parameter_layout.h"

namespace pointsman {

struct SafetensorsEntry {
  std::string name;
  std::string dtype;
  std::vector<uint64_t> shape;
  uint64_t begin = 0, end = 0;  // bytes from the start of the data
};

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<SafetensorsEntry> tensors;  // in the order of their bytes
};

// Caps of the reader, and so of the writer.
inline constexpr uint64_t kMaxHeaderBytes = uint64_t{1} << 20;
inline constexpr size_t kMaxRank = 4;
inline constexpr size_t kMaxTensors = 256;
inline constexpr size_t kMaxNameLength = 64;

// Throws ModelFileError "path: place: expected .., found ..". Names from the file are made printable.
[[noreturn]] void throw_model_file_error(const std::string& path, const std::string& place,
                                         const std::string& expected, const std::string& found);

// A string from a file, quoted, printable and cut to a readable length.
std::string in_quotes(std::string_view text);

// Parses the header alone: its grammar and the caps are checked, its tensors not. Throws ModelFileError.
SafetensorsHeader parse_safetensors_json(std::string_view json, const std::string& path);

// Parses and checks the header: the tensors are F32, their byte ranges agree with their shapes and tile
// [0, data_size) exactly. Throws ModelFileError.
SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t data_size,
                                           const std::string& path);

// Length field and header, padded with spaces so that the data starts at a multiple of 64 bytes.
std::string make_safetensors_header(const std::map<std::string, std::string>& metadata,
                                    const std::vector<Tensor>& tensors);

}  // namespace pointsman
