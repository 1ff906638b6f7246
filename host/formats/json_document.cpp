// SPDX-License-Identifier: Apache-2.0
#include "host/formats/json_document.h"

#include <algorithm>
#include <cmath>
#include <istream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <streambuf>
#include <utility>

#include "host/formats/input_file.h"
#include "host/formats/text_scan.h"
#include "models/tools/json_text.h"

namespace pointsman {
namespace {

constexpr size_t kDeepest = 32;
constexpr size_t kForgottenBytes = 1 << 20;  // the least to forget at once, since the rest is moved

// "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error .." -> "syntax error .."
std::string plain_message(std::string_view what) {
  what.remove_prefix(what.find("] ") + 2);
  if (what.starts_with("parse error at")) what.remove_prefix(what.find(": ") + 2);
  std::string message(what);
  std::replace_if(
      message.begin(), message.end(), [](char c) { return c < 0x20 || c >= 0x7F; }, '?');
  return message;
}

std::string key_name(const std::string& key) {
  const auto is_plain = [](char c) { return is_letter(c) || is_digit(c) || c == '_'; };
  return std::ranges::all_of(key, is_plain) ? key : shown(key);
}

}  // namespace

// The parser's input and the receiver of its events.
struct JsonDocument::Builder : std::streambuf, nlohmann::json_sax<nlohmann::json> {
  using Kind = JsonValue::Kind;

  explicit Builder(JsonDocument& target) : document(target), watch(target.file_) {}

  bool null() override { return add_scalar(Kind::kNull, 0.0); }
  bool boolean(bool value) override { return add_scalar(Kind::kBoolean, value); }
  // Of a number with a sign, so that a 0 was -0.
  bool number_integer(number_integer_t value) override {
    return add_scalar(Kind::kNumber, value == 0 ? -0.0 : static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) override { return add_scalar(Kind::kNumber, value); }
  bool number_float(number_float_t value, const string_t&) override {
    return add_scalar(Kind::kNumber, value);
  }
  bool binary(binary_t&) override { return false; }
  bool string(string_t& value) override { return add_text(value) && end_value(); }
  bool start_object(size_t) override { return open(Kind::kObject); }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(Kind::kArray); }
  bool end_array() override { return close(); }
  bool key(string_t& value) override {
    if (!opened.back().keys.insert(value).second)
      document.fail_at(reached() - 1, "duplicate key " + shown(value));
    return add_text(value);
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception& error) override {
    document.fail_at(position - 1 - forgotten_bytes, plain_message(error.what()));
  }

  bool add_scalar(Kind kind, double number) {
    add(kind, number);
    return end_value();
  }

  bool add_text(std::string& value) {
    add(Kind::kString, 0.0);
    document.nodes_.back().text = static_cast<uint32_t>(document.texts_.size());
    document.texts_.push_back(std::move(value));
    return true;
  }

  void add(Kind kind, double number) {
    const size_t start = document.text_.find_first_not_of(" \t\r\n,:", behind);
    document.nodes_.push_back({.number = number,
                               .position = static_cast<uint32_t>(start),
                               .end = static_cast<uint32_t>(document.nodes_.size() + 1),
                               .kind = kind});
    behind = reached();  // the parser raises an event as soon as it has read the token
    watch.after(1);
  }

  bool open(Kind kind) {
    if (opened.size() == kDeepest)
      document.fail_at(reached() - 1, "nested deeper than " + std::to_string(kDeepest) + " levels");
    const auto node = static_cast<uint32_t>(document.nodes_.size());
    const bool is_member = opened.size() == 1 && document.nodes_[0].kind == Kind::kObject;
    const bool is_list = node == 0 || (is_member && document.texts_.back() == list);
    if (visit && kind == Kind::kArray && is_list) document.list_ = node;
    opened.push_back({node, {}});
    add(kind, 0.0);
    return true;
  }

  bool close() {
    document.nodes_[opened.back().node].end = static_cast<uint32_t>(document.nodes_.size());
    opened.pop_back();
    behind = reached();
    return end_value();
  }

  // Visits and forgets the element of the list that ends here, if any.
  bool end_value() {
    if (opened.empty() || opened.back().node != document.list_) return true;
    auto& nodes = document.nodes_;
    nodes[0].end = nodes[document.list_].end = static_cast<uint32_t>(nodes.size());
    visit(JsonValue(&document, document.list_ + 1));
    nodes.resize(document.list_ + 1);
    // Keeps the texts up to the list's key, if it has one.
    document.texts_.resize(document.list_ == 0 ? 0 : nodes[document.list_ - 1].text + 1);
    ++document.forgotten_count_;
    if (behind >= std::max(kForgottenBytes, document.text_.size() / 2)) forget_text();
    return true;
  }

  void forget_text() {
    const std::string_view gone = document.text_.substr(0, behind);
    document.first_column_ = document.column_of(behind);
    document.first_line_ += std::count(gone.begin(), gone.end(), '\n');
    forgotten_bytes += behind;
    document.pieces_.erase(0, behind);
    set_text(document.pieces_, reached() - std::exchange(behind, 0));
    for (uint32_t node = 0; node <= document.list_; ++node) document.nodes_[node].position = 0;
  }

  size_t reached() const { return static_cast<size_t>(gptr() - eback()); }  // by the parser, in text_

  void set_text(std::string_view text, size_t reached) {
    document.text_ = text;
    char* const begin = const_cast<char*>(text.data());  // the parser only reads it
    setg(begin, begin + reached, begin + text.size());
  }

  // The next piece; false at the end.
  bool fetch() {
    const std::string piece = next_piece ? next_piece() : std::string();
    document.pieces_ += piece;
    if (!piece.empty()) set_text(document.pieces_, reached());
    check_text(document.text_.size() - piece.size());
    return !piece.empty();
  }
  int_type underflow() override { return fetch() ? traits_type::to_int_type(*gptr()) : traits_type::eof(); }

  void check_text(size_t start) const {
    const std::string_view text = document.text_;
    if (text.size() >= std::numeric_limits<uint32_t>::max())
      document.fail_at(0, "JSON of 4 GiB or more; use .npy");
    // The parser would read a NUL byte as the end of the text.
    const size_t nul = text.find('\0', start);
    if (nul != std::string_view::npos) document.fail_at(nul, "a NUL byte");
  }

  void parse() {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    while (document.text_.size() < kByteOrderMark.size() && fetch()) {
    }
    if (document.text_.starts_with(kByteOrderMark))
      document.fail_at(0, "starts with a byte order mark; save it as plain UTF-8");
    std::istream input(this);
    nlohmann::json::sax_parse(input, this);
  }

  struct Opened {
    uint32_t node;
    std::set<std::string> keys;
  };

  JsonDocument& document;
  LoadingWatch watch;
  std::function<std::string()> next_piece;
  std::string list;
  std::function<void(const JsonValue&)> visit;  // empty without a list
  size_t forgotten_bytes = 0;
  size_t behind = 0;           // end of the last event's token
  std::vector<Opened> opened;  // arrays and objects that have not ended
};

JsonDocument::JsonDocument(std::string_view text, std::string file, int64_t first_line)
    : file_(std::move(file)), first_line_(first_line) {
  Builder builder(*this);
  builder.set_text(text, 0);
  builder.check_text(0);
  builder.parse();
}

JsonDocument::JsonDocument(std::function<std::string()> next_piece, std::string file, std::string list,
                           std::function<void(const JsonValue&)> visit)
    : file_(std::move(file)) {
  Builder builder(*this);
  builder.next_piece = std::move(next_piece);
  builder.list = std::move(list);
  builder.visit = std::move(visit);
  builder.parse();
}

size_t JsonDocument::column_of(size_t position) const {
  const size_t newline = text_.substr(0, position).rfind('\n');
  return newline == std::string_view::npos ? first_column_ + position : position - newline - 1;
}

void JsonDocument::fail_at(size_t position, const std::string& message) const {
  const std::string_view before = text_.substr(0, position);
  throw InputError(file_, first_line_ + std::count(before.begin(), before.end(), '\n'), message,
                   static_cast<int64_t>(column_of(position)) + 1);
}

std::string JsonDocument::path_of(uint32_t target) const {
  std::string path;
  uint32_t at = 0;
  while (at != target) {
    uint32_t child = at + 1;
    if (nodes_[at].kind == JsonValue::Kind::kObject) {
      while (nodes_[child + 1].end <= target) child = nodes_[child + 1].end;
      if (!path.empty()) path += '.';
      path += key_name(texts_[nodes_[child].text]);
      if (child == target) return path;
      at = child + 1;
    } else {
      size_t index = at == list_ ? forgotten_count_ : 0;
      for (; nodes_[child].end <= target; ++index) child = nodes_[child].end;
      path.append("[").append(std::to_string(index)).append("]");
      at = child;
    }
  }
  return path;
}

JsonValue::Kind JsonValue::kind() const { return document_->nodes_[node_].kind; }

std::vector<JsonValue> JsonValue::elements() const {
  if (!is_array()) fail_expected("an array");
  std::vector<JsonValue> out;
  const auto& nodes = document_->nodes_;
  for (uint32_t child = node_ + 1; child < nodes[node_].end; child = nodes[child].end)
    out.push_back(JsonValue(document_, child));
  return out;
}

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  if (!is_object()) fail_expected("an object");
  const auto& nodes = document_->nodes_;
  for (uint32_t child = node_ + 1; child < nodes[node_].end; child = nodes[child + 1].end) {
    if (document_->texts_[nodes[child].text] == key) return JsonValue(document_, child + 1);
  }
  return std::nullopt;
}

JsonValue JsonValue::get(std::string_view key) const {
  const std::optional<JsonValue> found = find(key);
  if (!found) fail("expected the key \"" + std::string(key) + "\", found none");
  return *found;
}

bool JsonValue::boolean() const {
  if (kind() != Kind::kBoolean) fail_expected("true or false");
  return document_->nodes_[node_].number != 0.0;
}

double JsonValue::number() const {
  if (!is_number()) fail_expected("a number");
  return document_->nodes_[node_].number;
}

double JsonValue::bounded_number() const {
  if (std::fabs(number()) > kLargestNumber) fail_expected("a number within +-1e100");
  return number();
}

int32_t JsonValue::index() const {
  const double value = is_number() ? number() : -1.0;
  if (!(value >= 0.0 && value <= std::numeric_limits<int32_t>::max()) || value != std::floor(value))
    fail_expected("an integer of at least 0");
  return static_cast<int32_t>(value);
}

const std::string& JsonValue::text() const {
  if (kind() != Kind::kString) fail_expected("a string");
  return document_->texts_[document_->nodes_[node_].text];
}

std::string_view JsonValue::word() const {
  const std::string_view rest = document_->text_.substr(document_->nodes_[node_].position);
  return rest.substr(0, rest.find_first_not_of("+-.0123456789eE"));
}

std::string JsonValue::describe() const {
  if (is_object()) return "an object";
  if (is_array()) return "an array of " + std::to_string(elements().size());
  if (is_number()) return number_text(number());
  if (kind() == Kind::kString) return "the string " + shown(text());
  if (kind() == Kind::kNull) return "null";
  return boolean() ? "true" : "false";
}

void JsonValue::fail(const std::string& message) const {
  const std::string path = document_->path_of(node_);
  document_->fail_at(document_->nodes_[node_].position, path.empty() ? message : path + ": " + message);
}

void JsonValue::fail_expected(const std::string& what) const {
  fail("expected " + what + ", found " + describe());
}

bool is_json_object_without(std::string_view key, std::string_view line, const std::string& file) {
  try {
    const JsonDocument document(line, file);
    return document.root().is_object() && !document.root().find(key);
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace pointsman
