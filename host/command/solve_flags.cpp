// SPDX-License-Identifier: Apache-2.0
#include "host/command/solve_flags.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "host/command/output.h"

namespace pointsman {

namespace {

constexpr int64_t kMostShards = 1 << 20;

// --resume needs a file whose lines stay.
void check_resume(const CommonOptions& common) {
  std::error_code absent;
  const auto type = std::filesystem::status(common.output, absent).type();
  if (common.output.empty() || common.output == "-" || common.output == "/dev/stdout")
    throw UsageError("--resume: needs -o FILE");
  if (output_format(common) != OutputFormat::kNdjson)
    throw UsageError("--resume: goes on with lines; needs --format ndjson, or -o FILE.ndjson");
  if (type != std::filesystem::file_type::regular && type != std::filesystem::file_type::not_found)
    throw UsageError("--resume: -o " + common.output + ": is not a regular file");
}

Shard parse_shard(const std::string& text) {
  Shard shard;
  const char* const last = text.data() + text.size();
  const auto [slash, number_wrong] = std::from_chars(text.data(), last, shard.number);
  const bool has_slash = number_wrong == std::errc() && slash != last && *slash == '/';
  const auto [end, of_wrong] = std::from_chars(has_slash ? slash + 1 : last, last, shard.of);
  if (!has_slash || of_wrong != std::errc() || end != last || shard.number < 1 || shard.number > shard.of ||
      shard.of > kMostShards) {
    throw UsageError("--shard: expected I/N, 1/N to N/N, found \"" + text + "\"");
  }
  return shard;
}

// Its outputs can be joined, and its input can be read twice: once to count the instances.
void check_shard(const SolveFlags& flags, const CommonOptions& common) {
  const OutputFormat format = output_format(common);
  if (format != OutputFormat::kNdjson && format != OutputFormat::kNpy && format != OutputFormat::kNpz)
    throw UsageError("--shard: needs --format ndjson, npy or npz, whose outputs can be joined");
  if (!flags.request.init.empty() && !flags.request.options.untrained)
    throw UsageError("--shard: is not for --init FILE");
  std::error_code absent;
  for (const std::string& path : flags.files) {
    const auto type =
        path == "-" ? std::filesystem::file_type::fifo : std::filesystem::status(path, absent).type();
    if (type != std::filesystem::file_type::regular && type != std::filesystem::file_type::not_found)
      throw UsageError("--shard: " + path + " is not a regular file, which it takes to count the instances");
  }
}

}  // namespace

void add_solve_flags(OptionSet& options, SolveFlags& flags) {
  options
      .add("FILE", flags.files,
           "TSPLIB, .npy, .npz, JSON, NDJSON, CSV or KnapSack text, also .gz; - is stdin")
      .required();
  options.add("--resume", flags.resume,
              "Go on behind the last whole line that an earlier run left in -o FILE, an output of --format "
              "ndjson");
  options
      .add("--shard", flags.shard_text,
           "I/N: solve part I of N parts of the input, 1/N to N/N; their outputs joined are the whole run's "
           "(--format ndjson, npy, npz)")
      .type_name("I/N");
  options.add("--ref", flags.ref, "Reference costs for the gap: a number, .npy, .tour or JSON");
  add_solve_options(options, flags.request);
  add_instance_options(options, flags.input);
}

void finish_solve_flags(SolveFlags& flags, const OptionSet& options, const CommonOptions& common) {
  flags.request.options.seed = common.seed;
  flags.request.time_limit = common.time_limit;
  finish_solve_options(options, flags.request);
  if (flags.resume) check_resume(common);
  if (!flags.shard_text.empty()) {
    flags.shard = parse_shard(flags.shard_text);
    check_shard(flags, common);
  }
  if (std::count(flags.files.begin(), flags.files.end(), "-") > 1)
    throw UsageError("- (stdin) can be read only once");
}

}  // namespace pointsman
