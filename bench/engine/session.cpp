// SPDX-License-Identifier: Apache-2.0
#include "bench/engine/session.h"

#include <unistd.h>

#include <fstream>

#include "bench/engine/baseline.h"
#include "host/command/process.h"
#include "host/formats/text_scan.h"
#include "host/run/log.h"
#include "host/run/model_lookup.h"
#include "host/run/solve_totals.h"
#include "kernels/cpu/cpu_operations.h"
#include "models/parameter_layout.h"
#include "models/tools/install_prefixes.h"

namespace pointsman::bench {

namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "unknown";
}

constexpr const char* kColumns[] = {
    "name",  "variant", "encoder",    "n",        "batch",  "ours", "ms",      "per_second",
    "torch", "ratio",   "per_gflops", "of_floor", "spread", "pass", "skipped", "evaluations_per_step"};

std::string text_of(const Json& value) {
  if (value.is_null()) return "-";
  if (!value.is_number_float()) return value.is_string() ? value.get<std::string>() : value.dump();
  const double number = value.get<double>();
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", number < 100.0 ? 3 : 1, number);
  return text;
}

// The answer for readers. A column that no row has is left out.
std::string table_of(const Json& answer) {
  const Json &machine = answer["machine"], &rows = answer["rows"];
  std::string text = text_of(machine["cpu"]) + ", " + text_of(machine["cores"]) + " cores, " +
                     text_of(machine["device"]) + "; fma peak " + text_of(answer["fma_peak_gflops"]) +
                     " GFLOP/s\ntorch: " + text_of(answer["torch"]) + "\n";
  std::vector<std::string> lines(rows.size() + 1);
  for (const char* key : kColumns) {
    if (std::none_of(rows.begin(), rows.end(), [&](const Json& row) { return row.contains(key); })) continue;
    std::vector<std::string> cells = {key};
    for (const Json& row : rows) cells.push_back(text_of(row.value(key, Json())));
    size_t width = 0;
    for (const std::string& cell : cells) width = std::max(width, cell.size() + 2);
    for (size_t k = 0; k < lines.size(); ++k)
      lines[k] += cells[k] + std::string(width - cells[k].size(), ' ');
  }
  for (const std::string& line : lines) text += line + "\n";
  return text + "ours, torch: tours a second. Rows *_threads: by the wall clock, ratio to one thread.\n";
}

// A fresh model. Its spread-out policy shares the least work, which a prior of the weight that training
// starts from would not leave: this one's is small. The LSTM network is the paper's, with its critic.
Model fresh_model(Encoder encoder, uint64_t seed) {
  Model model;
  model.config.encoder = encoder;
  model.config.has_critic = encoder == Encoder::kLstm;
  model.config.has_prior = encoder == Encoder::kAttention;
  model.parameters = initial_parameters(model.config, seed);
  if (model.config.has_prior) model.parameters[ParameterLayout(model.config).prior] = 1.0f;
  return model;
}

Model bench_model(const Flags& flags, uint64_t seed) {
  if (flags.model.empty())
    return fresh_model(flags.encoder == name_of(Encoder::kAttention) ? Encoder::kAttention : Encoder::kLstm,
                       seed);
  if (!flags.encoder.empty()) throw UsageError("--encoder: comes from the model; leave it out");
  Model model = read_model(find_model(flags.model));
  if (model.config.problem != ProblemKind::kTsp) throw UsageError("--model: the bench needs a model for tsp");
  // Beside an LSTM encoder the bench trains with a critic, a fresh one where the model has none.
  model.config.has_critic = model.config.encoder == Encoder::kLstm;
  std::vector<float> parameters = initial_parameters(model.config, seed);
  std::copy_n(model.parameters.begin(), std::min(parameters.size(), model.parameters.size()),
              parameters.begin());
  model.parameters = parameters;
  return model;
}

}  // namespace

Session::Session(const Flags& flags_, const CommonOptions& common_)
    : flags(flags_),
      common(common_),
      model(bench_model(flags, common.seed)),
      answer(
          {{"code", 0},
           {"machine", {{"cpu", processor_name()}, {"cores", sysconf(_SC_NPROCESSORS_ONLN)}, {"device", ""}}},
           {"model", flags.model.empty() ? "fresh parameters" : flags.model},
           {"fma_peak_gflops", 0.0},
           {"torch", nullptr}}),
      control_(search_control(common)),
      file_(open_output(common)),
      as_lines_(output_format(common) == OutputFormat::kNdjson) {
  if (flags.check.empty()) return;
  baseline_ = read_baseline(flags.check);
  if (baseline_["model"] != answer["model"])
    throw UsageError("--check: " + flags.check + " has rows of " + baseline_["model"].dump() +
                     ", this run measures " + answer["model"].dump() + "; pass the same --model");
}

std::vector<Encoder> Session::encoders() const {
  if (flags.model.empty() && flags.encoder.empty()) return {Encoder::kLstm, Encoder::kAttention};
  return {model.config.encoder};
}

void Session::start_over(Encoder encoder) {
  if (model.config.encoder != encoder) model = fresh_model(encoder, common.seed);
}

Caller Session::caller(int n, int count, int threads) {
  BackendOptions options = common.device;
  options.threads = threads;
  Caller caller(options, model, n, count, common.seed);
  Json& device = answer["machine"]["device"];
  if (device == "") device = device_text(caller.backend->info());
  return caller;
}

Peaks Session::measure_peaks(const Caller& caller) {
  const std::string device = caller.backend->info().name;
  const bool cuda = device.rfind("cuda", 0) == 0;
  const Peaks peaks = cuda ? cuda_peaks(device == "cuda" ? 0 : std::stoi(device.substr(5)))
                           : Peaks{0.5e9 * cpu::fma_peak_gflops(), 0.0};
  answer["fma_peak_gflops"] = std::max(answer["fma_peak_gflops"].get<double>(), 2e-9 * peaks.fp32);
  return peaks;
}

std::unique_ptr<TorchTwin> Session::start_twin() {
  const std::string own = is_in_build_tree() ? POINTSMAN_TORCH_TWIN : "";
  const std::string script = flags.twin.empty() ? own : flags.twin;
  const auto skip = [&](const std::string& why) {
    answer["torch"] = "skipped: " + why;
    log_warning("PyTorch twin skipped: " + why);
    return nullptr;
  };
  if (flags.torch == "none") return skip("--torch none");
  if (script.empty()) return skip("an installed program has no script of it; name one with --twin");
  if (!std::filesystem::is_regular_file(script)) return skip("no " + script + "; name it with --twin");
  const std::string python = find_torch_python(flags.torch);
  if (python.empty()) return skip("no python3 with torch and numpy; name one with --torch");
  auto twin = std::make_unique<TorchTwin>(python, script, model);
  answer["torch"] = twin->settings();
  return twin;
}

void Session::add(const Json& row) {
  if (as_lines_) {
    file_.write(row.dump() + "\n");
  } else {
    log_info(row.dump());
  }
  rows_.push_back(row);
}

std::string Session::check_failure() {
  Json measured = answer;
  measured["rows"] = rows_;
  const Comparison comparison = compare_with_baseline(measured, baseline_);
  const Json &here = answer["machine"]["cpu"], &there = baseline_["machine"]["cpu"];
  if (here != there)
    log_warning("--check: this is " + here.dump() + ", " + flags.check + " was measured on " + there.dump());
  if (!comparison.unpaired.empty())
    log_warning("--check: not compared: " + joined(comparison.unpaired, ", "));
  if (comparison.compared == 0) return "no row can be compared with " + flags.check;
  const std::string rows = std::to_string(comparison.compared) + " rows compared with " + flags.check + ", " +
                           std::to_string(comparison.fallen.size()) + " fell by more than 10%";
  if (!comparison.fallen.empty()) return rows + ": " + joined(comparison.fallen, "; ");
  log_info(rows);
  return "";
}

int Session::finish(std::string failure) {
  if (failure.empty() && !baseline_.is_null() && interrupt_exit_code() == 0) failure = check_failure();
  const bool passed =
      std::all_of(rows_.begin(), rows_.end(), [](const Json& row) { return row.value("pass", true); });
  const int code = failure.empty() && passed ? interrupt_exit_code() : kExitCheck;
  if (!failure.empty()) {
    log_error("bench check failed: " + failure);
    answer["error"] = failure;
  }
  answer["code"] = code;
  if (as_lines_) {
    Json last = {{"name", "answer"}};
    last.update(answer);
    file_.write(last.dump() + "\n");
    file_.commit();
  } else {
    answer["rows"] = rows_;
    write_answer(file_, common, answer, table_of(answer));
  }
  return code;
}

}  // namespace pointsman::bench
