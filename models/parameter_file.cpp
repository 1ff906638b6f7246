// SPDX-License-Identifier: Apache-2.0
#include "models/parameter_file.h"

#include <nettle/base16.h>
#include <nettle/sha2.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <new>

#include "kernels/common/rules.h"
#include "models/parameter_layout.h"
#include "models/safetensors.h"
#include "models/tools/crc32c.h"
#include "models/tools/json_text.h"

namespace pointsman {
namespace {

static_assert(std::endian::native == std::endian::little, "model files are read as little-endian floats");

using Strings = std::map<std::string, std::string>;

// The CRC32C of the whole file, in hex, with these blanks in its own place.
constexpr const char* kChecksum = "checksum";
constexpr const char* kPrior = "actor.prior.weight";
constexpr std::string_view kBlankChecksum = "        ";

// Takes the metadata apart key by key; what is left over at the end is unknown.
class MetadataReader {
 public:
  MetadataReader(Strings strings, const std::string& path) : strings_(std::move(strings)), path_(path) {}

  bool has(const std::string& key) const { return strings_.contains(key); }

  std::string text(const std::string& key) {
    const auto found = strings_.extract(key);
    if (found.empty()) fail(key, "a value", "none");
    return found.mapped();
  }

  ProblemKind problem() {
    const std::string name = text("problem");
    const std::optional<ProblemKind> kind = find_learned_problem(name);
    if (!kind) fail("problem", problem_names(), in_quotes(name));
    return *kind;
  }

  template <typename Number>
  Number number(const std::string& key, Number low, Number high) {
    const std::string value = text(key);
    Number result{};
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (error != std::errc() || end != value.data() + value.size() || !(result >= low && result <= high))
      fail(key, "a number from " + number_text(low) + " to " + number_text(high), in_quotes(value));
    return result;
  }

  std::vector<double> numbers(const std::string& key) {
    const std::string value = text(key);
    std::vector<double> found;
    for (const char *at = value.data(), *const last = at + value.size(); at <= last; ++at) {
      const auto [end, error] = std::from_chars(at, last, found.emplace_back());
      if (error != std::errc() || !std::isfinite(found.back()) || (end != last && *end != ','))
        fail(key, "finite numbers, a comma between two", in_quotes(value));
      at = end;
    }
    return found;
  }

  int size() { return number("n", 1, 1'000'000'000); }

  // For what a file may say but this program computes in one way only.
  void supported(const std::string& key, const std::string& only, const std::string& alias) {
    const std::string value = text(key);
    if (value != only && value != alias) fail(key, only, in_quotes(value) + ", which is not supported");
  }

  void finish() const {
    if (!strings_.empty()) fail(strings_.begin()->first, "no such key", "it");
  }

  [[noreturn]] void fail(const std::string& key, const std::string& expected,
                         const std::string& found) const {
    throw_model_file_error(path_, "metadata " + in_quotes(key), expected, found);
  }

 private:
  Strings strings_;
  const std::string& path_;
};

// The encoder's kind and shape; files of the paper's network do not name them.
void parse_encoder(MetadataReader& reader, ModelConfig& config) {
  if (!reader.has("encoder")) return;
  const std::string encoder = reader.text("encoder");
  if (encoder == name_of(Encoder::kLstm)) return;
  if (encoder != name_of(Encoder::kAttention))
    reader.fail("encoder", "attention or lstm", in_quotes(encoder));
  config.encoder = Encoder::kAttention;
  config.layers = reader.number("layers", 1, 64);
  config.heads = reader.number("heads", 1, kHidden / 16);
  if (kHidden / 16 % config.heads != 0) reader.fail("heads", "1, 2, 4 or 8", number_text(config.heads));
  config.feed_forward = reader.number("feed_forward", 16, 1 << 16);
  if (config.feed_forward % 16 != 0)
    reader.fail("feed_forward", "a multiple of 16", number_text(config.feed_forward));
}

OwnScaling parse_own(MetadataReader& reader) {
  OwnScaling own{reader.numbers("offsets"), reader.numbers("scales"),
                 reader.number("cost_unit", 1e-300, 1e300)};
  if (own.offsets.size() > kMostOwnFeatures)
    reader.fail("offsets", "at most " + number_text(kMostOwnFeatures), number_text(own.offsets.size()));
  if (own.scales.size() != own.offsets.size())
    reader.fail("scales", number_text(own.offsets.size()) + " numbers, as offsets",
                number_text(own.scales.size()));
  return own;
}

ModelConfig parse_metadata(Strings strings, const std::string& path) {
  constexpr double kLargest = 1e300;
  MetadataReader reader(std::move(strings), path);
  ModelConfig config;
  config.problem = reader.problem();
  config.n = reader.size();
  config.capacity = reader.number("capacity", has_capacity(config.problem) ? 1e-300 : 0.0, kLargest);
  reader.supported("hidden", number_text(kHidden), number_text(kHidden));
  parse_encoder(reader, config);
  config.glimpses = reader.number("glimpses", 0, 4);
  reader.supported("glimpse_values", "raw", "raw");
  reader.supported("attention_bias", "false", "none");
  config.clip = reader.number("clip", 1e-6, 1e6);
  const std::string centre = reader.text("centre_logits");
  if (centre != "true" && centre != "false") reader.fail("centre_logits", "true or false", in_quotes(centre));
  config.centre_logits = centre == "true";
  config.learning_rate = reader.number("learning_rate", 0.0, kLargest);
  config.training_tours = reader.number<int64_t>("training_tours", 0, std::numeric_limits<int64_t>::max());
  config.seed = reader.number<uint64_t>("seed", 0, std::numeric_limits<uint64_t>::max());
  config.version = reader.text("version");
  if (reader.has("reread")) config.reread = reader.number("reread", 1, kMostReread);
  if (config.reread > 0 && !can_reread(config))
    reader.fail("reread", "none, as only an attention encoder for tsp re-reads", "one");
  if (is_own(config.problem)) {
    config.own = parse_own(reader);
    if (config.encoder != Encoder::kAttention)
      reader.fail("encoder", name_of(Encoder::kAttention), "another");
  }
  if (!reader.has(kChecksum)) {
    if (!config.version.starts_with("0.1."))
      reader.fail(kChecksum, "one, as every version since 0.2 writes it", "none");
  } else if (const std::string value = reader.text(kChecksum); value.size() != kBlankChecksum.size()) {
    reader.fail(kChecksum, "8 hexadecimal digits", in_quotes(value));
  }
  reader.finish();
  return config;
}

// The tensors must be those of the layout; returns where each one, in file order, belongs. A prior may be
// shorter, as files have it that know fewer of its numbers: the weights of the others are 0.
std::vector<Tensor> match_tensors(const SafetensorsHeader& header, const ParameterLayout& layout,
                                  const std::string& path) {
  std::map<std::string, const Tensor*> missing;
  for (const Tensor& tensor : layout.tensors) missing[tensor.name] = &tensor;
  std::vector<Tensor> in_file_order;
  for (const SafetensorsEntry& tensor : header.tensors) {
    const auto found = missing.extract(tensor.name);
    if (found.empty())
      throw_model_file_error(path, in_quotes(tensor.name), "no such tensor in this model", "it");
    Tensor expected = *found.mapped();
    if (tensor.name == kPrior && tensor.shape.size() == 1 && tensor.shape[0] >= 1 &&
        std::cmp_less(tensor.shape[0], expected.size)) {
      expected.shape[0] = static_cast<int>(tensor.shape[0]);
      expected.size = static_cast<size_t>(tensor.shape[0]);
    }
    const auto text = [](const auto& shape) {
      std::string result;
      for (const auto extent : shape) result += (result.empty() ? "" : ", ") + std::to_string(extent);
      return "shape [" + result + "]";
    };
    if (text(expected.shape) != text(tensor.shape))
      throw_model_file_error(path, in_quotes(tensor.name), text(expected.shape), text(tensor.shape));
    in_file_order.push_back(std::move(expected));
  }
  if (!missing.empty())
    throw_model_file_error(path, in_quotes(missing.begin()->first), "this tensor", "none");
  return in_file_order;
}

void check_finite(const Tensor& tensor, const std::vector<float>& parameters, const std::string& path) {
  for (size_t i = 0; i < tensor.size; ++i) {
    const float value = parameters[tensor.offset + i];
    if (!std::isfinite(value))
      throw_model_file_error(path, in_quotes(tensor.name) + " element " + std::to_string(i),
                             "a finite weight", std::to_string(value));
  }
}

// Makes a model of these tensors; data(i) are the bytes of the i-th.
template <typename Data>
Model model_of(const SafetensorsHeader& header, const std::string& path, Data data) {
  Model model;
  model.config = parse_metadata(header.metadata, path);
  const auto has = [&](std::string_view beginning) {
    return std::ranges::any_of(header.tensors,
                               [&](const auto& tensor) { return tensor.name.starts_with(beginning); });
  };
  model.config.has_critic = has("critic.");
  model.config.has_prior = has(kPrior);
  model.has_checksum = header.metadata.contains(kChecksum);
  const ParameterLayout layout(model.config);
  const std::vector<Tensor> in_file_order = match_tensors(header, layout, path);
  model.parameters.resize(layout.size);
  for (size_t i = 0; i < in_file_order.size(); ++i) {
    const Tensor& tensor = in_file_order[i];
    std::memcpy(model.parameters.data() + tensor.offset, data(i), tensor.size * sizeof(float));
    check_finite(tensor, model.parameters, path);
  }
  return model;
}

// A file that is read forward. At first its header, whose length is checked against the cap and the file
// before a byte is allocated for it.
class ModelFile {
 public:
  explicit ModelFile(const std::filesystem::path& path) : path_(path.string()) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error))
      throw_model_file_error(path_, "file", "a readable file", error ? error.message() : "something else");
    size_ = std::filesystem::file_size(path, error);
    stream_.open(path, std::ios::binary);
    if (!stream_ && errno == ENOMEM) throw std::bad_alloc();
    if (error || !stream_) throw_model_file_error(path_, "file", "a readable file", std::strerror(errno));
    if (size_ < kLengthBytes)
      throw_model_file_error(path_, "file", "a safetensors header", std::to_string(size_) + " bytes");
    read_to(kLengthBytes);
    uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    if (length > kMaxHeaderBytes)
      throw_model_file_error(path_, "header length", "at most 1048576", std::to_string(length));
    if (length > data_size())
      throw_model_file_error(path_, "header", std::to_string(length) + " bytes",
                             std::to_string(data_size()) + " before the file's end");
    read_to(kLengthBytes + length);
    header_size_ = length;
  }

  std::string_view header() const { return std::string_view(bytes).substr(kLengthBytes, header_size_); }
  uint64_t data_size() const { return size_ - kLengthBytes - header_size_; }

  // Reads on and returns what stands at `begin` of the tensors' data, up to `end`.
  const char* data(uint64_t begin, uint64_t end) {
    read_to(kLengthBytes + header_size_ + end);
    return bytes.data() + kLengthBytes + header_size_ + begin;
  }

  std::string bytes;  // read so far

 private:
  static constexpr uint64_t kLengthBytes = sizeof(uint64_t);

  void read_to(uint64_t end) {
    const size_t held = bytes.size();
    bytes.resize(end);
    if (!stream_.read(bytes.data() + held, static_cast<std::streamsize>(end - held)))
      throw_model_file_error(path_, "file", std::to_string(end - held) + " more bytes", "fewer");
  }

  std::string path_;
  std::ifstream stream_;
  uint64_t size_ = 0, header_size_ = 0;
};

std::string sha256_of(std::string_view bytes) {
  sha256_ctx hash;
  sha256_init(&hash);
  sha256_update(&hash, bytes.size(), reinterpret_cast<const uint8_t*>(bytes.data()));
  uint8_t digest[SHA256_DIGEST_SIZE];
  sha256_digest(&hash, sizeof digest, digest);
  std::string hex(2 * sizeof digest, ' ');
  base16_encode_update(hex.data(), sizeof digest, digest);
  return hex;
}

// Puts a checksum's value into the bytes of a file that has one; to any other place when its key is spelled
// in escapes, which no writer does.
void set_checksum(std::string& bytes, std::string_view value) {
  const size_t key = bytes.find(in_quotes(kChecksum));
  bytes.replace(bytes.find('"', bytes.find(':', key)) + 1, value.size(), value);
}

// What the checksum must be; blanks its value.
std::string checksum_of(std::string& bytes) {
  set_checksum(bytes, kBlankChecksum);
  char text[9];
  std::snprintf(text, sizeof text, "%08x", crc32c(bytes.data(), bytes.size()));
  return text;
}

}  // namespace

Model read_model(const std::filesystem::path& path) {
  const std::string name = path.string();
  ModelFile file(path);
  const SafetensorsHeader header = parse_safetensors_header(file.header(), file.data_size(), name);
  file.bytes.reserve(file.bytes.size() + file.data_size());  // which the tensors fill, as was checked
  Model model = model_of(header, name,
                         [&](size_t i) { return file.data(header.tensors[i].begin, header.tensors[i].end); });
  model.name = path.stem().string();
  model.sha256 = sha256_of(file.bytes);
  if (model.has_checksum) {
    const std::string& told = header.metadata.at(kChecksum);
    const std::string sum = checksum_of(file.bytes);
    if (told != sum)
      throw_model_file_error(name, "checksum", told + ", as the header says", sum + ": the file is damaged");
  }
  return model;
}

std::map<std::string, std::string> metadata_of(const ModelConfig& config) {
  Strings strings = {{"problem", name_of(config.problem)},
                     {"n", number_text(config.n)},
                     {"capacity", number_text(config.capacity)},
                     {"hidden", number_text(config.hidden)},
                     {"glimpses", number_text(config.glimpses)},
                     {"glimpse_values", "raw"},
                     {"attention_bias", "false"},
                     {"clip", number_text(config.clip)},
                     {"centre_logits", config.centre_logits ? "true" : "false"},
                     {"learning_rate", number_text(config.learning_rate)},
                     {"training_tours", number_text(config.training_tours)},
                     {"seed", number_text(config.seed)},
                     {"version", config.version}};
  if (config.encoder == Encoder::kAttention) {
    strings["encoder"] = name_of(config.encoder);
    strings["layers"] = number_text(config.layers);
    strings["heads"] = number_text(config.heads);
    strings["feed_forward"] = number_text(config.feed_forward);
  }
  if (config.reread > 0) strings["reread"] = number_text(config.reread);
  if (is_own(config.problem)) {
    strings["offsets"] = numbers_text(config.own.offsets);
    strings["scales"] = numbers_text(config.own.scales);
    strings["cost_unit"] = number_text(config.own.cost_unit);
  }
  return strings;
}

Model make_model(std::map<std::string, std::string> metadata, std::span<const NamedTensor> tensors,
                 const std::string& name) {
  SafetensorsHeader header{std::move(metadata), {}};
  header.metadata.emplace(kChecksum, kBlankChecksum);
  for (const NamedTensor& tensor : tensors) header.tensors.push_back({tensor.name, "F32", tensor.shape});
  return model_of(header, name, [&](size_t i) { return tensors[i].values; });
}

std::optional<ModelClaim> peek_model(const std::filesystem::path& path) {
  try {
    const std::string name = path.string();
    MetadataReader reader(parse_safetensors_json(ModelFile(path).header(), name).metadata, name);
    return ModelClaim{reader.problem(), reader.size(), reader.has("reread")};
  } catch (const ModelFileError&) {
    return std::nullopt;
  }
}

std::string model_bytes(const ModelConfig& config, const std::vector<float>& parameters,
                        const std::string& name) {
  Strings metadata = metadata_of(config);
  metadata.emplace(kChecksum, kBlankChecksum);
  parse_metadata(metadata, name);  // never write what read_model would refuse
  const ParameterLayout layout(config);
  if (parameters.size() != layout.size)
    throw_model_file_error(name, "parameters", std::to_string(layout.size),
                           std::to_string(parameters.size()));
  for (const Tensor& tensor : layout.tensors) check_finite(tensor, parameters, name);
  std::string bytes = make_safetensors_header(metadata, layout.tensors);
  bytes.append(reinterpret_cast<const char*>(parameters.data()), parameters.size() * sizeof(float));
  set_checksum(bytes, checksum_of(bytes));
  return bytes;
}

void write_model(const std::filesystem::path& path, const ModelConfig& config,
                 const std::vector<float>& parameters) {
  write_file_atomically(path, model_bytes(config, parameters, path.string()));
}

}  // namespace pointsman
