// SPDX-License-Identifier: Apache-2.0
// Which model file a run uses: -m as a path or a name, else the shipped one of the nearest size.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/problem/instance.h"
#include "host/run/run_log.h"
#include "models/parameter_file.h"

namespace pointsman {

// Where models are looked for, in order: the directories of POINTSMAN_MODEL_PATH (colon-separated),
// <prefix>/share/pointsman/models of each of install_prefixes(), and in the build tree the source tree.
std::vector<std::filesystem::path> model_directories();

// A model file by what its header claims; the strict reader has the last word.
struct ModelListing {
  std::filesystem::path path;
  std::string name;  // the file's stem
  ProblemKind problem;
  int n = 0;
};

// Every readable model in the directories; of two with one name the first found.
std::vector<ModelListing> list_models();

// What the files in the directories are called, sorted; they are not opened.
std::vector<std::string> model_names();

// The file that `model` means: a path when it names a file or has a slash or suffix, else a name looked up in
// the directories. Throws ModelFileError when there is none, naming the places looked in.
std::filesystem::path find_model(const std::string& model);

// As read_model(); tells when the file has no checksum.
Model load_model(const std::filesystem::path& path, const RunLog& log);

// Models by request. A run looks for each file once and reads it once.
class ModelStore {
 public:
  // requested: -m; empty: by problem and size, or with `untrained` one of fresh parameters of the instance's
  // size.
  ModelStore(std::string requested, bool untrained, RunLog log)
      : requested_(std::move(requested)), untrained_(untrained), log_(std::move(log)) {}

  // From now on as if made with this request; models that were read stay.
  void request(std::string requested, bool untrained = false);

  // The model for an instance of this problem and size. Tells, once a model, which one was chosen
  // and when it was trained on another size. Throws ModelFileError, also when the requested model is of the
  // other problem.
  const Model& get(ProblemKind problem, int n);

 private:
  std::filesystem::path choose(ProblemKind problem, int n);
  const Model& load(ProblemKind problem, int n);
  const Model& fresh(ProblemKind problem, int n);

  std::string requested_;
  bool untrained_;
  RunLog log_;
  std::optional<std::vector<ModelListing>> listings_;
  std::map<std::filesystem::path, std::unique_ptr<Model>> models_;
  // Of this request, by problem and, without -m, size.
  std::map<std::pair<ProblemKind, int>, const Model*> known_;
};

}  // namespace pointsman
