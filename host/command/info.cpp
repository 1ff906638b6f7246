// SPDX-License-Identifier: Apache-2.0
// `pointsman info`: what this program is, what it runs on, and which models it finds.
#include <nlohmann/json.hpp>

#include "engine/cluster/communicator.h"
#include "engine/engine.h"
#include "engine/problem/problem.h"
#include "host/command/command.h"
#include "host/formats/text_scan.h"
#include "host/run/log.h"
#include "host/run/model_lookup.h"
#include "host/run/solve_totals.h"
#include "models/parameter_layout.h"

namespace pointsman {

namespace {

constexpr const char* kInfoExamples = R"(Examples:
  pointsman info                  version, device and models
  pointsman info tsp20            one model: how it was trained and its tensors
  pointsman info --format json)";

Json model_json(const Model& model, const std::string& path) {
  const ModelConfig& config = model.config;
  Json json = json_of({{"name", model.name},
                       {"path", path},
                       {"sha256", model.sha256},
                       {"problem", name_of(config.problem)},
                       {"n", config.n}});
  if (problem_of(config.problem).has_capacity) json["capacity"] = config.capacity;
  json.update(json_of({{"hidden", config.hidden}, {"encoder", name_of(config.encoder)}}));
  if (config.encoder == Encoder::kAttention) {
    json.update(
        json_of({{"layers", config.layers}, {"heads", config.heads}, {"feed_forward", config.feed_forward}}));
  }
  if (config.reread > 0) json["reread"] = config.reread;
  json.update(json_of({{"prior", config.has_prior},
                       {"glimpses", config.glimpses},
                       {"clip", config.clip},
                       {"centre_logits", config.centre_logits},
                       {"critic", config.has_critic},
                       {"learning_rate", config.learning_rate},
                       {"training_tours", config.training_tours},
                       {"seed", config.seed},
                       {"version", config.version}}));
  return json;
}

int describe_model(const std::string& name, const CommonOptions& common, OutputFile& file) {
  const auto path = find_model(name);
  const Model model = load_model(path, run_log());
  Json json = model_json(model, path.string());
  std::string text = as_text(json) + "tensors\n";
  Json tensors = Json::array();
  const ParameterLayout layout(model.config);
  for (const Tensor& tensor : layout.tensors) {
    tensors.push_back(json_of({{"name", tensor.name}, {"shape", tensor.shape}}));
    text += "  " + tensor.name + " " + Json(tensor.shape).dump() + "\n";
  }
  json["parameters"] = layout.size;
  json["tensors"] = tensors;
  write_answer(file, common, json_of({{"code", kExitDone}, {"model", json}}), text);
  return kExitDone;
}

std::string cuda_text(const CudaStatus& cuda) {
  if (cuda.module.empty()) return "not in this build";
  const std::string versions = "runtime " + cuda.runtime + ", driver for " + cuda.driver;
  return cuda.reason.empty() ? versions : cuda.reason;
}

int describe_program(const CommonOptions& common, OutputFile& file) {
  const DeviceInfo device = describe(make_backends(common.device));
  const CudaStatus cuda = cuda_status();
  const std::string mpi_module = find_mpi_module();  // not loaded: only a launcher's process needs it
  Json json = json_of({{"code", kExitDone},
                       {"version", POINTSMAN_VERSION},
                       {"device", device_text(device)},
                       {"threads", device.threads},
                       {"cuda", cuda_text(cuda)},
                       {"mpi", mpi_module.empty() ? "not in this build" : mpi_module}});
  std::string text = as_text(json).substr(as_text(json).find('\n') + 1);  // without the code
  json["cuda_module"] = cuda.module;
  Json& devices = json["cuda_devices"] = Json::array();
  for (const CudaStatus::Device& cuda_device : cuda.devices) {
    text += "  cuda:" + std::to_string(devices.size()) + "  " + cuda_device.name + ", " +
            cuda_device.architecture + ", " + std::to_string(cuda_device.memory >> 30) + " GiB\n";
    devices.push_back(json_of({{"name", cuda_device.name},
                               {"architecture", cuda_device.architecture},
                               {"memory", cuda_device.memory}}));
  }
  Json models = Json::array();
  text += "models\n";
  for (const ModelListing& listing : list_models()) {
    try {
      const Model model = read_model(listing.path);
      models.push_back(model_json(model, listing.path.string()));
      text += "  " + printable(model.name) + "  " + name_of(model.config.problem) +
              " n = " + std::to_string(model.config.n) + ", " + std::to_string(model.config.training_tours) +
              " training tours, sha256 " + model.sha256.substr(0, 12) + ", " +
              printable(listing.path.string()) + "\n";
    } catch (const ModelFileError& error) {
      log_warning(error.what());
    }
  }
  if (models.empty()) text += "  none found\n";
  json["models"] = models;
  Json& directories = json["model_directories"] = Json::array();
  for (const auto& directory : model_directories()) directories.push_back(directory.string());
  write_answer(file, common, json, text);
  return kExitDone;
}

}  // namespace

Command info_command() {
  auto model = std::make_shared<std::string>();
  Command command{"info", "Version, device and models; or one model in detail", kInfoExamples};
  command.options->add_model("MODEL", *model, "Model file or name");
  add_common_options(*command.options, *command.common, {"json", "text"});
  command.run = [=](const Command& self, const Words&) {
    OutputFile file = open_output(*self.common);
    return model->empty() ? describe_program(*self.common, file) : describe_model(*model, *self.common, file);
  };
  return command;
}

}  // namespace pointsman
