// SPDX-License-Identifier: Apache-2.0
#include "host/run/model_lookup.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <set>
#include <sstream>
#include <tuple>

#include "engine/problem/problem.h"
#include "host/formats/text_scan.h"
#include "host/options/did_you_mean.h"
#include "models/parameter_layout.h"
#include "models/tools/install_prefixes.h"

namespace pointsman {
namespace {

namespace fs = std::filesystem;
constexpr const char* kSuffix = ".safetensors";
constexpr const char* kPaperSuffix = "-lstm";  // a model that is chosen by size only if there is no other

std::string join_directories() {
  return joined(model_directories(), ", ", [](const fs::path& directory) { return directory.string(); });
}

// All models of the search path, in each directory sorted by name. Uses readdir(), since std::filesystem's
// iterator ends the process if memory runs out.
std::vector<fs::path> model_files() {
  std::vector<fs::path> files;
  for (const fs::path& directory : model_directories()) {
    const size_t first = files.size();
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(directory.c_str()), ::closedir);
    if (!entries && errno == ENOMEM) throw std::bad_alloc();
    while (const dirent* entry = entries ? ::readdir(entries.get()) : nullptr) {
      fs::path file = directory / entry->d_name;
      if (file.extension() == kSuffix) files.push_back(std::move(file));
    }
    std::sort(files.begin() + static_cast<ptrdiff_t>(first), files.end());
  }
  return files;
}

}  // namespace

std::vector<fs::path> model_directories() {
  std::vector<fs::path> directories;
  if (const char* variable = std::getenv("POINTSMAN_MODEL_PATH")) {
    std::istringstream list(variable);
    list.exceptions(std::ios::badbit);
    for (std::string entry; std::getline(list, entry, ':');) {
      if (!entry.empty()) directories.emplace_back(entry);
    }
  }
  for (const fs::path& prefix : install_prefixes())
    directories.push_back(prefix / "share" / "pointsman" / "models");
  if (is_in_build_tree()) directories.emplace_back(POINTSMAN_SOURCE_MODELS);
  return directories;
}

std::vector<ModelListing> list_models() {
  std::vector<ModelListing> listings;
  std::set<std::string> names;
  for (const fs::path& file : model_files()) {
    const auto claim = peek_model(file);
    if (claim && names.insert(file.stem()).second)
      listings.push_back({file, file.stem(), claim->problem, claim->n, claim->rereads});
  }
  return listings;
}

std::vector<std::string> model_names() {
  std::set<std::string> names;
  for (const fs::path& file : model_files()) names.insert(file.stem());
  return {names.begin(), names.end()};
}

fs::path find_model(const std::string& model) {
  std::error_code error;
  if (fs::is_regular_file(model, error)) return model;
  if (model.find('/') == std::string::npos) {
    for (const fs::path& directory : model_directories()) {
      for (const char* suffix : {kSuffix, ""}) {
        const fs::path path = directory / (model + suffix);
        if (fs::is_regular_file(path, error)) return path;
      }
    }
  }
  throw ModelFileError(model + ": expected a model file, or a model's name in one of " + join_directories() +
                       "; found none (`pointsman info` lists the models)" +
                       did_you_mean(model, model_names()));
}

Model load_model(const fs::path& path, const RunLog& log) {
  Model model = read_model(path);
  if (!model.has_checksum) {
    log.info(path.string() + ": has no checksum, since version " + model.config.version +
             " wrote it; damaged weights are not detected");
  }
  return model;
}

fs::path ModelStore::choose(ProblemKind problem, int n) {
  if (!listings_) listings_ = list_models();
  const auto rank = [&](const ModelListing& of) {
    return std::tuple(of.problem != problem, of.rereads, std::abs(of.n - n), of.name.ends_with(kPaperSuffix));
  };
  const auto best = std::ranges::min_element(*listings_, {}, rank);
  if (best == listings_->end() || best->problem != problem) {
    throw ModelFileError(std::string("no ") + name_of(problem) + " model found in " + join_directories() +
                         "; name one with -m, or train one with `pointsman train`");
  }
  return best->path;
}

const Model& ModelStore::fresh(ProblemKind problem, int n) {
  auto model = std::make_unique<Model>();
  ModelConfig& config = model->config;
  model->name = "untrained";
  config.problem = problem;
  config.n = n;
  config.capacity = problem_of(problem).default_capacity(n);
  config.has_critic = false;
  config.encoder = Encoder::kAttention;
  config.has_prior = true;
  model->parameters = initial_parameters(config, config.seed);
  return *(models_[std::string("untrained ") + name_of(problem) + std::to_string(n)] = std::move(model));
}

const Model& ModelStore::load(ProblemKind problem, int n) {
  if (requested_.empty() && untrained_) return fresh(problem, n);
  const fs::path path = requested_.empty() ? choose(problem, n) : find_model(requested_);
  std::unique_ptr<Model>& model = models_[path];
  if (!model) {
    model = std::make_unique<Model>(load_model(path, log_));
    log_.info(printed("model %s: %s, trained on n = %d%s", model->name.c_str(),
                      name_of(model->config.problem), model->config.n,
                      requested_.empty() ? (model->config.n == n ? " (the instance's own size)"
                                                                 : " (nearest to the instance's)")
                                         : ""));
    log_.debug(printed("model %s: %s, sha256 %s, %d glimpses, C = %g", model->name.c_str(), path.c_str(),
                       model->sha256.c_str(), model->config.glimpses, model->config.clip));
  }
  if (model->config.problem != problem)
    throw ModelFileError(path.string(), std::string("expected a model for ") + name_of(problem) +
                                            ", found one for " + name_of(model->config.problem));
  return *model;
}

const Model& ModelStore::get(ProblemKind problem, int n) {
  const Model*& known = known_[{problem, requested_.empty() ? n : 0}];
  if (!known) known = &load(problem, n);
  return *known;
}

void ModelStore::request(std::string requested, bool untrained) {
  if (requested == requested_ && untrained == untrained_) return;
  requested_ = std::move(requested);
  untrained_ = untrained;
  known_.clear();
}

}  // namespace pointsman
