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
#include <map>
#include <new>

#include "kernels/common/rules.h"
#include "models/parameter_layout.h"
#include "models/safetensors.h"
#include "models/tools/atomic_file.h"
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

Strings to_metadata(const ModelConfig& config) {
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
                     {"version", config.version},
                     {kChecksum, std::string(kBlankChecksum)}};
  if (config.encoder == Encoder::kAttention) {
    strings["encoder"] = name_of(config.encoder);
    strings["layers"] = number_text(config.layers);
    strings["heads"] = number_text(config.heads);
    strings["feed_forward"] = number_text(config.feed_forward);
  }
  return strings;
}

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
    const std::optional<ProblemKind> kind = find_problem(name);
    if (!kind) fail("problem", problem_names(), in_quotes(name));
    return *kind;
  }

  template <typename Number>
  Number number(const std::string& key, Number low, Number high) {
    const std::string value = text(key);
    Number result{};
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (error != std::errc() || end != value.data() + value.size() || !(result >= low && result <= high)) {
      fail(key, "a number from " + number_text(low) + " to " + number_text(high), in_quotes(value));
    }
    return result;
  }

  int size() { return number("n", 1, 1'000'000'000); }

  // For what a file may say but this program computes in one way only.
  void supported(const std::string& key, const std::string& only, const std::string& alias) {
    const std::string value = text(key);
    if (value != only && value != alias) fail(key, only, in_quotes(value) + ", which is not supported");
  }

  std::optional<std::string> checksum() {
    if (!has(kChecksum)) return std::nullopt;
    const std::string value = text(kChecksum);
    if (value.size() != kBlankChecksum.size()) fail(kChecksum, "8 hexadecimal digits", in_quotes(value));
    return value;
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

// `checksum` becomes the file's, where it names one.
ModelConfig parse_metadata(Strings strings, const std::string& path, std::optional<std::string>& checksum) {
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
  checksum = reader.checksum();
  if (!checksum && !config.version.starts_with("0.1."))
    reader.fail(kChecksum, "one, as every version since 0.2 writes it", "none");
  reader.finish();
  return config;
}

// The metadata's, and what the tensors' names tell.
ModelConfig parse_config(const SafetensorsHeader& header, const std::string& path,
                         std::optional<std::string>& checksum) {
  ModelConfig config = parse_metadata(header.metadata, path, checksum);
  const auto has = [&](std::string_view beginning) {
    return std::any_of(header.tensors.begin(), header.tensors.end(),
                       [&](const auto& tensor) { return tensor.name.starts_with(beginning); });
  };
  config.has_critic = has("critic.");
  config.has_prior = has(kPrior);
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
    if (text(expected.shape) != text(tensor.shape)) {
      throw_model_file_error(path, in_quotes(tensor.name), text(expected.shape), text(tensor.shape));
    }
    in_file_order.push_back(std::move(expected));
  }
  if (!missing.empty())
    throw_model_file_error(path, in_quotes(missing.begin()->first), "this tensor", "none");
  return in_file_order;
}

void check_finite(const Tensor& tensor, const std::vector<float>& parameters, const std::string& path) {
  for (size_t i = 0; i < tensor.size; ++i) {
    const float value = parameters[tensor.offset + i];
    if (!std::isfinite(value)) {
      throw_model_file_error(path, in_quotes(tensor.name) + " element " + std::to_string(i),
                             "a finite weight", std::to_string(value));
    }
  }
}

// The bytes of a file, read forward and hashed on the way.
class HashedFile {
 public:
  explicit HashedFile(const std::filesystem::path& path) : path_(path.string()) {
    sha256_init(&hash_);
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) {
      throw_model_file_error(path_, "file", "a readable file", error ? error.message() : "something else");
    }
    size_ = std::filesystem::file_size(path, error);
    stream_.open(path, std::ios::binary);
    if (!stream_ && errno == ENOMEM) throw std::bad_alloc();
    if (error || !stream_) throw_model_file_error(path_, "file", "a readable file", std::strerror(errno));
  }

  uint64_t size() const { return size_; }

  void read(void* data, uint64_t bytes) {
    if (!stream_.read(static_cast<char*>(data), static_cast<std::streamsize>(bytes))) {
      throw_model_file_error(path_, "file", std::to_string(bytes) + " more bytes", "fewer");
    }
    sha256_update(&hash_, bytes, static_cast<const uint8_t*>(data));
  }

  // The SHA-256 of all that was read.
  std::string digest() {
    uint8_t bytes[SHA256_DIGEST_SIZE];
    sha256_digest(&hash_, sizeof bytes, bytes);
    std::string hex(2 * sizeof bytes, ' ');
    base16_encode_update(hex.data(), sizeof bytes, bytes);
    return hex;
  }

 private:
  std::string path_;
  std::ifstream stream_;
  uint64_t size_ = 0;
  sha256_ctx hash_{};
};

// The header's text. Its length is checked against the cap and the file before a byte is allocated for it.
std::string read_header(HashedFile& file, const std::string& path) {
  uint64_t length = 0;
  if (file.size() < sizeof length) {
    throw_model_file_error(path, "file", "a safetensors header", std::to_string(file.size()) + " bytes");
  }
  file.read(&length, sizeof length);
  if (length > kMaxHeaderBytes) {
    throw_model_file_error(path, "header length", "at most 1048576", std::to_string(length));
  }
  const uint64_t left = file.size() - sizeof length;
  if (length > left) {
    throw_model_file_error(path, "header", std::to_string(length) + " bytes",
                           std::to_string(left) + " before the file's end");
  }
  std::string header(length, '\0');
  file.read(header.data(), length);
  return header;
}

// Where the checksum's value begins in the text of a header that has one; anywhere else when its key is
// spelled in escapes, which no writer does.
size_t checksum_place(std::string_view header) {
  return header.find('"', header.find(':', header.find(in_quotes(kChecksum)))) + 1;
}

std::string checksum_text(uint32_t sum) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", sum);
  return text;
}

// Of the file with this header and these tensors, which stand in the file one after the other.
std::string checksum_of(std::string header, const std::vector<Tensor>& in_file_order,
                        const std::vector<float>& parameters) {
  const uint64_t length = header.size();
  const size_t place = checksum_place(header);
  header.replace(place, kBlankChecksum.size(), kBlankChecksum);
  uint32_t sum = crc32c(&length, sizeof length);
  sum = crc32c(header.data(), header.size(), sum);
  for (const Tensor& tensor : in_file_order)
    sum = crc32c(parameters.data() + tensor.offset, tensor.size * sizeof(float), sum);
  return checksum_text(sum);
}

}  // namespace

Model read_model(const std::filesystem::path& path) {
  const std::string name = path.string();
  HashedFile file(path);
  const std::string json = read_header(file, name);
  const SafetensorsHeader header = parse_safetensors_header(json, file.size() - 8 - json.size(), name);

  Model model;
  std::optional<std::string> checksum;
  model.config = parse_config(header, name, checksum);
  const ParameterLayout layout(model.config);
  const auto in_file_order = match_tensors(header, layout, name);
  model.parameters.resize(layout.size);
  for (const Tensor& tensor : in_file_order) {
    file.read(model.parameters.data() + tensor.offset, tensor.size * sizeof(float));
    check_finite(tensor, model.parameters, name);
  }
  model.has_checksum = checksum.has_value();
  if (model.has_checksum) {
    const std::string sum = checksum_of(json, in_file_order, model.parameters);
    if (*checksum != sum)
      throw_model_file_error(name, "checksum", *checksum + ", as the header says",
                             sum + ": the file is damaged");
  }
  model.name = path.stem().string();
  model.sha256 = file.digest();
  return model;
}

std::map<std::string, std::string> metadata_of(const ModelConfig& config) {
  Strings metadata = to_metadata(config);
  metadata.erase(kChecksum);
  return metadata;
}

Model make_model(std::map<std::string, std::string> metadata, std::span<const NamedTensor> tensors,
                 const std::string& name) {
  SafetensorsHeader header{std::move(metadata), {}};
  header.metadata.emplace(kChecksum, kBlankChecksum);
  for (const NamedTensor& tensor : tensors) header.tensors.push_back({tensor.name, "F32", tensor.shape});
  Model model;
  std::optional<std::string> checksum;
  model.config = parse_config(header, name, checksum);
  const ParameterLayout layout(model.config);
  const auto in_order = match_tensors(header, layout, name);
  model.parameters.resize(layout.size);
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::copy_n(tensors[i].values, in_order[i].size, model.parameters.data() + in_order[i].offset);
    check_finite(in_order[i], model.parameters, name);
  }
  return model;
}

std::optional<ModelClaim> peek_model(const std::filesystem::path& path) {
  try {
    const std::string name = path.string();
    HashedFile file(path);
    MetadataReader reader(parse_safetensors_json(read_header(file, name), name).metadata, name);
    return ModelClaim{reader.problem(), reader.size()};
  } catch (const ModelFileError&) {
    return std::nullopt;
  }
}

std::string model_bytes(const ModelConfig& config, const std::vector<float>& parameters,
                        const std::string& name) {
  const Strings metadata = to_metadata(config);
  std::optional<std::string> checksum;
  parse_metadata(metadata, name, checksum);  // never write what read_model would refuse
  const ParameterLayout layout(config);
  if (parameters.size() != layout.size) {
    throw_model_file_error(name, "parameters", std::to_string(layout.size),
                           std::to_string(parameters.size()));
  }
  for (const Tensor& tensor : layout.tensors) check_finite(tensor, parameters, name);
  std::string bytes = make_safetensors_header(metadata, layout.tensors);
  bytes.append(reinterpret_cast<const char*>(parameters.data()), parameters.size() * sizeof(float));
  bytes.replace(checksum_place(bytes), kBlankChecksum.size(),
                checksum_text(crc32c(bytes.data(), bytes.size())));
  return bytes;
}

void write_model(const std::filesystem::path& path, const ModelConfig& config,
                 const std::vector<float>& parameters) {
  write_file_atomically(path, model_bytes(config, parameters, path.string()));
}

}  // namespace pointsman
