// SPDX-License-Identifier: Apache-2.0
#include "host/formats/read_instances.h"

#include <utility>

#include "host/formats/formats.h"
#include "host/formats/npy_array.h"

namespace pointsman {
namespace {

// By the first bytes, else by the suffix; null if neither matches.
const InstanceFormat* told_format(const std::string& name, std::string_view head) {
  const InstanceFormat* const told = format_by_magic(instance_formats(), head);
  return told ? told : format_by_suffix(instance_formats(), unpacked_name(name));
}

// By told_format(), else by the first line. more: whether the file goes on after it.
InputFormat detect_format(const std::string& name, std::string_view head, bool more) {
  if (const InstanceFormat* const told = told_format(name, head)) return told->kind;
  const std::string_view text = trim(head);
  const char first = text.empty() ? '\0' : text.front();
  if (first == '{' || first == '[') {
    const bool is_stream = more && is_json_object_without("instances", text, name);
    return is_stream ? InputFormat::kNdjson : InputFormat::kJson;
  }
  if (first >= '0' && first <= '9') return InputFormat::kKnapsackText;
  if (first >= 'A' && first <= 'Z') return InputFormat::kTsplib;
  throw InputError(name, 1,
                   "expected " + joined(instance_formats(), ", ", &InstanceFormat::title, " or ") +
                       ", found " + (head.empty() ? "an empty file" : shown(text)) + "; pass --input-format");
}

void check_problem(const Instance& instance, const ReadOptions& options, const std::string& name,
                   int64_t line) {
  if (!options.problem || instance.problem == *options.problem) return;
  throw InputError(name, line,
                   std::string("expected a ") + problem_of(*options.problem).title + " instance, found a " +
                       problem_of(instance).title + " one");
}

InstanceFile checked(InstanceFile file, const ReadOptions& options, const std::string& name) {
  for (const Instance& instance : file.instances) check_problem(instance, options, name, 0);
  return file;
}

}  // namespace

std::string read_file(const std::string& path) { return InputFile(path, {}).read_rest(); }

InstanceInput::InstanceInput(const std::string& path, const ReadOptions& options)
    : options_(options), format_(options.format), file_(path, options.stop) {
  if (format_ != InputFormat::kAuto) return;  // does not wait for a stream's first line
  // The first line may be the whole file, so it is read only if nothing else identifies the format.
  if (const InstanceFormat* const told = told_format(file_.name(), file_.peek(kNpyMagic.size()))) {
    format_ = told->kind;
    return;
  }
  file_.read_line(head_.emplace());
  format_ = detect_format(file_.name(), *head_, head_->ends_with('\n'));
}

std::optional<InstanceLine> InstanceInput::next_line() {
  file_.forget_lines();
  return take_line();
}

std::optional<InstanceLine> InstanceInput::take_line() {
  std::string text;
  do {
    if (head_) {
      text = std::move(*head_);
      head_.reset();
    } else if (!file_.read_line(text)) {
      return std::nullopt;
    }
    ++line_;
  } while (trim(text).empty());
  InstanceLine out;
  out.line = line_;
  try {
    if (text.back() == '\n') text.pop_back();
    out.instance = parse_json_instance(text, file_.name(), line_);
    check_problem(*out.instance, options_, file_.name(), line_);
  } catch (const InputError& error) {
    out.instance.reset();
    out.error = error;
  }
  return out;
}

InstanceFile InstanceInput::read_all() {
  if (is_stream()) return read_lines();
  const std::string head = std::exchange(head_, std::nullopt).value_or("");
  if (format_ == InputFormat::kJson) {
    bool is_first = true;
    const auto next_piece = [&] {
      return std::exchange(is_first, false) && !head.empty() ? head : file_.read_piece();
    };
    return checked(read_json(next_piece, file_.name()), options_, file_.name());
  }
  ReadOptions options = options_;
  options.format = format_;
  const std::string bytes = head + file_.read_rest();
  options.is_packed = file_.is_packed();
  return parse_instances(bytes, file_.name(), options);
}

InstanceFile InstanceInput::read_lines() {
  InstanceFile out;
  LoadingWatch watch(file_.name());
  while (std::optional<InstanceLine> line = take_line()) {
    if (line->error) throw *line->error;
    watch.after(static_cast<size_t>(line->instance->n()));
    out.instances.push_back(std::move(*line->instance));
  }
  if (out.instances.empty()) throw InputError(file_.name(), 0, "expected at least one instance, found none");
  return out;
}

InstanceFile read_instances(const std::string& path, const ReadOptions& options) {
  return InstanceInput(path, options).read_all();
}

InstanceFile parse_instances(std::string_view bytes, const std::string& name, const ReadOptions& options) {
  InputFormat format = options.format;
  if (format == InputFormat::kAuto) {
    const size_t end = bytes.find('\n');
    format = detect_format(name, bytes.substr(0, end), end != std::string_view::npos);
  }
  return checked(format_of_kind(instance_formats(), format).parse(bytes, name, options), options, name);
}

}  // namespace pointsman
