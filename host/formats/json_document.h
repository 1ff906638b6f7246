// SPDX-License-Identifier: Apache-2.0
// A JSON text as a flat list of nodes, read without recursion: at most 32 levels deep, no duplicate keys, no
// byte order mark, valid UTF-8 only, every number finite. Knows where in the text each value stands.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace pointsman {

class JsonDocument;

// A value of a document that outlives it.
class JsonValue {
 public:
  enum class Kind : uint8_t { kNull, kBoolean, kNumber, kString, kArray, kObject };

  Kind kind() const;
  bool is_array() const { return kind() == Kind::kArray; }
  bool is_object() const { return kind() == Kind::kObject; }
  bool is_string() const { return kind() == Kind::kString; }
  bool is_number() const { return kind() == Kind::kNumber; }

  // The elements of an array; throws when it is none.
  std::vector<JsonValue> elements() const;
  size_t size() const { return elements().size(); }

  // The member of an object; has(key) first, or get() throws that it is missing. Throws when this is no
  // object.
  bool has(std::string_view key) const;
  JsonValue get(std::string_view key) const;

  // Throw "expected a number, found .." and so on.
  bool boolean() const;
  double number() const;
  double bounded_number() const;  // within ±1e100
  int32_t index() const;          // an integer of at least 0
  const std::string& text() const;
  std::string_view word() const;  // a number as it is written

  // Throws an InputError at this value's line and column, naming its place ("instances[2].id").
  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void fail_expected(const std::string& what) const;  // ", found .." is added

 private:
  friend class JsonDocument;
  JsonValue(const JsonDocument* document, uint32_t node) : document_(document), node_(node) {}
  std::string describe() const;
  uint32_t find(std::string_view key) const;  // its value's node; 0 when there is none

  const JsonDocument* document_;
  uint32_t node_;
};

class JsonDocument {
 public:
  // `first_line` is the line of the file on which the text starts. Throws InputError.
  JsonDocument(std::string_view text, std::string file, int64_t first_line = 1);
  // A long text, read piece by piece: next_piece() is empty at its end. Each element of the root's array
  // `list`, or of the root where this is an array, is given to `visit` as soon as it is whole; it is then
  // forgotten together with its text, so the array stays empty.
  JsonDocument(std::function<std::string()> next_piece, std::string file, std::string list,
               std::function<void(const JsonValue&)> visit);
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  JsonValue root() const { return JsonValue(this, 0); }

 private:
  friend class JsonValue;
  struct Node {
    double number = 0.0;    // of a number; 0 or 1 of a boolean
    uint32_t position = 0;  // where the value starts in text_
    uint32_t end = 0;       // the node after this one and all that is in it
    uint32_t text = 0;      // of a string: index in texts_
    JsonValue::Kind kind = JsonValue::Kind::kNull;
  };
  struct Builder;

  void parse(Builder& builder);
  size_t column_of(size_t position) const;  // from 0
  [[noreturn]] void fail_at(size_t position, const std::string& message) const;
  std::string path_of(uint32_t node) const;

  std::string_view text_;  // what is not forgotten of it
  std::string pieces_;     // these bytes, where they came in pieces
  std::string file_;
  int64_t first_line_;       // that text_ starts on
  size_t first_column_ = 0;  // bytes of that line before text_
  std::vector<Node> nodes_;  // an object's children alternate key, value
  std::vector<std::string> texts_;
  static constexpr uint32_t kNoNode = ~uint32_t{0};
  uint32_t list_ = kNoNode;     // the array whose elements are visited
  size_t forgotten_count_ = 0;  // of its elements
};

// Calls visit(root of the line) for each line with something on it.
void for_each_json_line(std::string_view text, const std::string& file,
                        const std::function<void(const JsonValue&)>& visit);

}  // namespace pointsman
