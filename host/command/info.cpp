// SPDX-License-Identifier: Apache-2.0
// `pointsman info`: what this program is, what it runs on, and which models it finds.
#include <nlohmann/json.hpp>

#include "engine/problem/problem.h"
#include "host/command/command.h"
#include "host/command/log.h"
#include "host/command/model_lookup.h"
#include "host/command/output.h"
#include "models/parameter_layout.h"

namespace pointsman {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExamples = R"(Examples:
  pointsman info                  version, device and models
  pointsman info tsp20            one model: how it was trained and its tensors
  pointsman info --format json)";

Json model_json(const Model& model, const std::string& path) {
  const ModelConfig& config = model.config;
  Json json = {{"name", model.name},
               {"path", path},
               {"sha256", model.sha256},
               {"problem", name_of(config.problem)},
               {"n", config.n}};
  if (problem_of(config.problem).has_capacity) json["capacity"] = config.capacity;
  json.update({{"hidden", config.hidden},
               {"glimpses", config.glimpses},
               {"clip", config.clip},
               {"centre_logits", config.centre_logits},
               {"critic", config.has_critic},
               {"learning_rate", config.learning_rate},
               {"training_tours", config.training_tours},
               {"seed", config.seed},
               {"version", config.version}});
  return json;
}

int describe_model(const std::string& name, const CommonOptions& common, OutputFile& file) {
  const auto path = find_model(name);
  const Model model = read_model(path);
  Json json = model_json(model, path.string());
  std::string text = as_text(json) + "tensors\n";
  Json tensors = Json::array();
  const ParameterLayout layout(model.config);
  for (const Tensor& tensor : layout.tensors) {
    tensors.push_back({{"name", tensor.name}, {"shape", tensor.shape}});
    text += "  " + tensor.name + " " + Json(tensor.shape).dump() + "\n";
  }
  json["parameters"] = layout.size;
  json["tensors"] = tensors;
  write_answer(file, common, {{"code", kExitDone}, {"model", json}}, text);
  return kExitDone;
}

std::string cuda_text(const CudaStatus& cuda) {
  if (cuda.module.empty()) return "not in this build";
  const std::string versions = "runtime " + cuda.runtime + ", driver for " + cuda.driver;
  return cuda.reason.empty() ? versions : cuda.reason;
}

Json cuda_devices_json(const CudaStatus& cuda) {
  Json devices = Json::array();
  for (const CudaStatus::Device& device : cuda.devices) {
    devices.push_back(
        {{"name", device.name}, {"architecture", device.architecture}, {"memory", device.memory}});
  }
  return devices;
}

std::string cuda_devices_text(const CudaStatus& cuda) {
  std::string text;
  for (size_t i = 0; i < cuda.devices.size(); ++i) {
    const CudaStatus::Device& device = cuda.devices[i];
    text += "  cuda:" + std::to_string(i) + "  " + device.name + ", " + device.architecture + ", " +
            std::to_string(device.memory >> 30) + " GiB\n";
  }
  return text;
}

int describe_program(const CommonOptions& common, OutputFile& file) {
  const DeviceInfo device = make_backend(backend_options(common))->info();
  const CudaStatus cuda = cuda_status();
  Json json = {{"code", kExitDone},
               {"version", POINTSMAN_VERSION},
               {"device", device_text(device)},
               {"threads", device.threads},
               {"cuda", cuda_text(cuda)}};
  std::string text = as_text(json).substr(as_text(json).find('\n') + 1);  // without the code
  text += cuda_devices_text(cuda);
  json["cuda_module"] = cuda.module;
  json["cuda_devices"] = cuda_devices_json(cuda);
  Json models = Json::array();
  text += "models\n";
  for (const ModelListing& listing : list_models()) {
    try {
      const Model model = read_model(listing.path);
      models.push_back(model_json(model, listing.path.string()));
      text += "  " + model.name + "  " + name_of(model.config.problem) +
              " n = " + std::to_string(model.config.n) + ", " + std::to_string(model.config.training_tours) +
              " training tours, sha256 " + model.sha256.substr(0, 12) + ", " + listing.path.string() + "\n";
    } catch (const ModelFileError& error) {
      log_warning("%s", error.what());
    }
  }
  if (models.empty()) text += "  none found\n";
  json["models"] = models;
  Json directories = Json::array();
  for (const auto& directory : model_directories()) directories.push_back(directory.string());
  json["model_directories"] = directories;
  write_answer(file, common, json, text);
  return kExitDone;
}

}  // namespace

Command add_info(CLI::App& parent) {
  auto model = std::make_shared<std::string>();
  auto common = std::make_shared<CommonOptions>();
  CLI::App* app = parent.add_subcommand("info", "Version, device and models; or one model in detail");
  app->footer(kExamples);
  app->add_option("MODEL", *model, "Model file or name");
  add_common_options(*app, *common, {"json", "text"});
  return {app, common, [=] {
            OutputFile file = open_output(*common);
            return model->empty() ? describe_program(*common, file) : describe_model(*model, *common, file);
          }};
}

}  // namespace pointsman
