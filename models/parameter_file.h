// SPDX-License-Identifier: Apache-2.0
// Model files: safetensors with string metadata (docs/file-formats.md). The reader trusts nothing in the
// file.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/config.h"
#include "models/tools/atomic_file.h"

namespace pointsman {

struct Model {
  ModelConfig config;
  std::vector<float> parameters;  // ParameterLayout(config).size floats
  std::string name;               // the file's stem, for messages
  std::string sha256;             // of the file's bytes, lower-case hex
  bool has_checksum = true;       // of a file: damage to it would have been found
};

// A file that is not a valid model. what() is "path: place: expected .., found ..".
struct ModelFileError : FileError {
  using FileError::FileError;
};

// Reads and checks a whole model file, with its checksum, which files of versions before 0.2 lack. Throws
// ModelFileError; allocates at most the file's size + 64 KiB before the header is validated.
Model read_model(const std::filesystem::path& path);

// A tensor of another program. values: row-major, as many as the shape says.
struct NamedTensor {
  std::string name;
  std::vector<uint64_t> shape;
  const float* values;
};

// A model of these tensors and this metadata (without checksum). Throws ModelFileError, naming the file as
// `name`, for what read_model() would refuse.
Model make_model(std::map<std::string, std::string> metadata, std::span<const NamedTensor> tensors,
                 const std::string& name);
// As make_model() takes it.
std::map<std::string, std::string> metadata_of(const ModelConfig& config);

// Problem and size, as the header of a model file claims them; nothing for a file without such a header.
struct ModelClaim {
  ProblemKind problem;
  int n;
  bool rereads;  // ModelConfig::reread is above 0
};
std::optional<ModelClaim> peek_model(const std::filesystem::path& path);

// The bytes of a model file. Throws ModelFileError, naming the file as `name`, for what read_model() would
// refuse.
std::string model_bytes(const ModelConfig& config, const std::vector<float>& parameters,
                        const std::string& name);

// Writes them atomically (write_file_atomically). Throws std::system_error when the disk refuses.
void write_model(const std::filesystem::path& path, const ModelConfig& config,
                 const std::vector<float>& parameters);

}  // namespace pointsman
