// SPDX-License-Identifier: Apache-2.0
// JSON as a flat list of nodes with their places in the text, for error messages. Stricter than JSON: at most
// 32 levels, no duplicate keys, no byte order mark, valid UTF-8, finite numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pointsman {

class JsonDocument;

// A value of a document, which must outlive it. Conversions throw an InputError with the value's line, column
// and path ("batch.json:3:14: instances[2].id: expected a string, found 7").
class JsonValue {
 public:
  enum class Kind : uint8_t { kNull, kBoolean, kNumber, kString, kArray, kObject };

  Kind kind() const;
  bool is_array() const { return kind() == Kind::kArray; }
  bool is_object() const { return kind() == Kind::kObject; }
  bool is_number() const { return kind() == Kind::kNumber; }

  std::vector<JsonValue> elements() const;  // of an array

  // The member of an object.
  std::optional<JsonValue> find(std::string_view key) const;
  JsonValue get(std::string_view key) const;  // throws if it is missing

  bool boolean() const;
  double number() const;
  double bounded_number() const;  // within +-1e100
  int32_t index() const;          // an integer of at least 0
  const std::string& text() const;
  std::string_view word() const;  // a number as it is written

  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void fail_expected(const std::string& what) const;  // "expected WHAT, found .."

 private:
  friend class JsonDocument;
  JsonValue(const JsonDocument* document, uint32_t node) : document_(document), node_(node) {}
  std::string describe() const;

  const JsonDocument* document_;
  uint32_t node_;
};

class JsonDocument {
 public:
  // Parses `text`, which must outlive the document and starts on line `first_line` of the file. Throws
  // InputError.
  JsonDocument(std::string_view text, std::string file, int64_t first_line = 1);
  // Parses a long text in pieces; next_piece() is empty at the end. Calls `visit` with each element of the
  // root's array `list`, or of the root if that is an array, and then forgets the element and its text.
  JsonDocument(std::function<std::string()> next_piece, std::string file, std::string list,
               std::function<void(const JsonValue&)> visit);
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  JsonValue root() const { return JsonValue(this, 0); }

 private:
  friend class JsonValue;
  struct Node {
    double number = 0.0;    // 0 or 1 for a boolean
    uint32_t position = 0;  // where the value starts in text_
    uint32_t end = 0;       // the first node after this value
    uint32_t text = 0;      // index in texts_ of a string
    JsonValue::Kind kind = JsonValue::Kind::kNull;
  };
  struct Builder;

  size_t column_of(size_t position) const;  // from 0
  [[noreturn]] void fail_at(size_t position, const std::string& message) const;
  std::string path_of(uint32_t node) const;

  std::string_view text_;  // what is not forgotten
  std::string pieces_;     // owns text_ if that comes in pieces
  std::string file_;
  int64_t first_line_ = 1;   // of text_
  size_t first_column_ = 0;  // of text_, from 0
  std::vector<Node> nodes_;  // an object's children alternate between keys and values
  std::vector<std::string> texts_;
  static constexpr uint32_t kNoNode = ~uint32_t{0};
  uint32_t list_ = kNoNode;     // the array whose elements are visited
  size_t forgotten_count_ = 0;  // of its elements
};

// Whether the line is a whole JSON object without this key.
bool is_json_object_without(std::string_view key, std::string_view line, const std::string& file);

}  // namespace pointsman
