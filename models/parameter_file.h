// SPDX-License-Identifier: Apache-2.0
// Model files: safetensors with string metadata (docs/file-formats.md). The reader trusts nothing in the
// file.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/config.h"

namespace pointsman {

struct Model {
  ModelConfig config;
  std::vector<float> parameters;  // ParameterLayout(config).size floats
  std::string name;               // the file's stem, for messages
  std::string sha256;             // of the file's bytes, lower-case hex
  bool has_checksum = true;       // of a file: damage to it would have been found
};

// A file that is not a valid model. what() is "path: place: expected .., found ..".
class ModelFileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ModelFileError(const std::string& file, const std::string& why)
      : std::runtime_error(file + ": " + why), file_(file) {}

  const std::string& file() const { return file_; }  // empty: there is none

 private:
  std::string file_;
};

// Reads and checks a whole model file, its checksum too where it has one: files that versions before 0.2
// wrote have none. Throws ModelFileError; never allocates more than the file's size + 64 KiB before the
// header is validated.
Model read_model(const std::filesystem::path& path);

// A tensor that another program made. values: as many floats as the shape says, row-major.
struct NamedTensor {
  std::string name;
  std::vector<uint64_t> shape;
  const float* values;
};

// A model of these tensors and this metadata of a model file, without its checksum. Throws ModelFileError,
// naming the file as `name`, for what read_model() would refuse in a file.
Model make_model(std::map<std::string, std::string> metadata, std::span<const NamedTensor> tensors,
                 const std::string& name);
// As make_model() takes it.
std::map<std::string, std::string> metadata_of(const ModelConfig& config);

// Problem and size, as the header of a model file claims them; nothing for a file without such a header.
// read_model() has the last word.
struct ModelClaim {
  ProblemKind problem;
  int n;
};
std::optional<ModelClaim> peek_model(const std::filesystem::path& path);

// The bytes of a model file. Throws ModelFileError, naming the file as `name`, for what read_model() would
// refuse.
std::string model_bytes(const ModelConfig& config, const std::vector<float>& parameters,
                        const std::string& name);

// Writes them atomically (temporary file in the same directory, fsync, rename, fsync of the directory).
// Throws std::system_error when the disk refuses; an older file of that name then stays intact.
void write_model(const std::filesystem::path& path, const ModelConfig& config,
                 const std::vector<float>& parameters);

}  // namespace pointsman
