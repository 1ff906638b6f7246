// SPDX-License-Identifier: Apache-2.0
// Chooses the model of a run: -m as a path or a name, else the shipped model of the nearest size.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/problem/instance.h"
#include "host/run/log.h"
#include "models/parameter_file.h"

namespace pointsman {

// The search path: the directories of POINTSMAN_MODEL_PATH (colon-separated), <prefix>/share/pointsman/models
// of each of install_prefixes(), and in the build tree the source tree.
std::vector<std::filesystem::path> model_directories();

// A model file as its header describes it; read_model() may still refuse it.
struct ModelListing {
  std::filesystem::path path;
  std::string name;  // the file's stem
  ProblemKind problem;
  int n = 0;
  bool rereads = false;  // it is taken where it is named, or alone
};

// Every readable model of the search path; the first of several with one name.
std::vector<ModelListing> list_models();

// The names of the files on the search path, sorted. The files are not opened.
std::vector<std::string> model_names();

// The file of a path or of a name on the search path. Throws ModelFileError if there is none.
std::filesystem::path find_model(const std::string& model);

// read_model(), with a log line if the file has no checksum.
Model load_model(const std::filesystem::path& path, const RunLog& log);

// The models of a run, each read once.
class ModelStore {
 public:
  // requested: -m. If it is empty, problem and size choose the model, or `untrained` makes one of the
  // instance's size with initial parameters.
  ModelStore(std::string requested, bool untrained, RunLog log)
      : requested_(std::move(requested)), untrained_(untrained), log_(std::move(log)) {}

  // Changes the request; models that were read stay.
  void request(std::string requested, bool untrained = false);

  // The model for an instance of this problem and size. Logs each model once. Throws ModelFileError, also if
  // the requested model is for another problem.
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
  // For this request, by problem and, without -m, by size.
  std::map<std::pair<ProblemKind, int>, const Model*> known_;
};

}  // namespace pointsman
