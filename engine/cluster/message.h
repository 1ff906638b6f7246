// SPDX-License-Identifier: Apache-2.0
// Messages between ranks, as bytes. All ranks run the same version of the program on the same kind of
// processor, so numbers are sent as they lie in memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace pointsman {

class MessageWriter {
 public:
  template <typename T>
  requires std::is_trivially_copyable_v<T> MessageWriter& put(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  template <typename T>
  MessageWriter& put_all(std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    put(static_cast<uint64_t>(values.size()));
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    return *this;
  }
  template <typename T>
  MessageWriter& put(const std::vector<T>& values) {
    return put_all(std::span<const T>(values));
  }
  MessageWriter& put(const std::string& text) { return put_all(std::span<const char>(text)); }

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Reads in the order of writing. std::runtime_error where a message ends too early.
class MessageReader {
 public:
  // bytes must outlive it.
  explicit MessageReader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  requires std::is_trivially_copyable_v<T> MessageReader& get(T& value) { return take(&value, sizeof value); }
  // A vector or a string.
  template <typename Values>
  requires(!std::is_trivially_copyable_v<Values>) MessageReader& get(Values& values) {
    using T = typename Values::value_type;
    static_assert(std::is_trivially_copyable_v<T>);
    const auto count = next<uint64_t>();
    if (count > bytes_.size() / sizeof(T)) throw std::runtime_error(kCut);
    values.resize(count);
    return take(values.data(), count * sizeof(T));
  }
  template <typename T>
  T next() {
    T value{};
    get(value);
    return value;
  }
  bool at_end() const { return bytes_.empty(); }

 private:
  static constexpr const char* kCut = "a message of another rank is cut";
  MessageReader& take(void* to, size_t size) {
    if (size > bytes_.size()) throw std::runtime_error(kCut);
    if (size > 0) std::memcpy(to, bytes_.data(), size);
    bytes_.remove_prefix(size);
    return *this;
  }

  std::string_view bytes_;
};

}  // namespace pointsman
