// SPDX-License-Identifier: Apache-2.0
// Finds the functions of a C++ or CUDA file by its brackets and the words before them. That is enough for
// code that clang-format has laid out.
#pragma once

#include <algorithm>
#include <cctype>
#include <regex>
#include <string>
#include <vector>

struct Function {
  int line;   // of its first word, from 1
  int lines;  // to its closing brace; 0 if it is only declared
  int parameters;
};

// Where what starts at `from` ends, if that is a comment, a literal or a preprocessor line; else `from`.
inline size_t end_of_skipped(const std::string& text, size_t from) {
  const auto end_after = [&](const std::string& closing, size_t start) {
    const size_t found = text.find(closing, start);
    return found == std::string::npos ? text.size() : found + closing.size();
  };
  if (text[from] == '#' || text.compare(from, 2, "//") == 0) {
    size_t end = text.find('\n', from);
    while (end != std::string::npos && text[end - 1] == '\\') end = text.find('\n', end + 1);
    return std::min(end, text.size());
  }
  if (text.compare(from, 2, "/*") == 0) return end_after("*/", from + 2);
  if (text.compare(from, 2, "R\"") == 0) {
    const size_t open = text.find('(', from);
    return end_after(")" + text.substr(from + 2, open - from - 2) + "\"", open);
  }
  const bool separates_digits =
      text[from] == '\'' && from > 0 && std::isxdigit(static_cast<unsigned char>(text[from - 1]));
  if ((text[from] != '"' && text[from] != '\'') || separates_digits) return from;
  size_t at = from + 1;
  while (at < text.size() && text[at] != text[from]) at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

// The text with all that blanked out; every line keeps its number.
inline std::string code_of(const std::string& text) {
  std::string code = text;
  for (size_t at = 0; at < text.size();) {
    const size_t end = end_of_skipped(text, at);
    std::replace_if(
        code.begin() + at, code.begin() + end, [](char c) { return c != '\n'; }, ' ');
    at = std::max(end, at + 1);
  }
  return code;
}

// The place of the bracket that closes the one at `open`.
inline size_t closing_of(const std::string& code, size_t open) {
  int depth = 0;
  for (size_t at = open; at < code.size(); ++at) {
    if (code[at] == '(' || code[at] == '{') ++depth;
    if ((code[at] == ')' || code[at] == '}') && --depth == 0) return at;
  }
  return code.size();
}

// How many things the commas between the parentheses at `open` separate, those within inner brackets aside.
inline int count_listed(const std::string& code, size_t open) {
  const size_t close = closing_of(code, open);
  if (code.find_first_not_of(" \n", open + 1) >= close) return 0;
  int depth = 0, commas = 0;
  for (size_t at = open + 1; at < close; ++at) {
    const char c = code[at];
    if (c == '(' || c == '{' || c == '[' || c == '<') ++depth;
    if (c == ')' || c == '}' || c == ']' || (c == '>' && code[at - 1] != '-')) --depth;
    if (c == ',' && depth == 0) ++commas;
  }
  return commas + 1;
}

// The place of the bracket that ends a `template <...>` at `at`; else `at`.
inline size_t end_of_template(const std::string& code, size_t at) {
  if (code.compare(at, 10, "template <") != 0) return at;
  int depth = 0;
  do {
    at = code.find_first_of("<>", at + 1);
    if (at == std::string::npos) return code.size();
    depth += code[at] == '<' ? 1 : -1;
  } while (depth > 0);
  return at;
}

// The most parameters that a (...) of code[from, to) lists before a constructor's initialisers or a value; -1
// if there is no (...).
inline int parameters_of(const std::string& code, size_t from, size_t to) {
  int most = -1;
  for (size_t at = end_of_template(code, from); at < to; ++at) {
    if (code.compare(at, 3, " : ") == 0 || code.compare(at, 3, " = ") == 0) break;
    if (code[at] != '(') continue;
    most = std::max(most, count_listed(code, at));
    at = closing_of(code, at);
  }
  return most;
}

enum class Brace { kScope, kBody, kValue };  // of a namespace or a type; of a function; of an initialiser

inline Brace brace_after(const std::string& head) {
  const size_t template_end = end_of_template(head, 0);
  const std::string rest = head.substr(template_end == 0 ? 0 : template_end + 1);
  static const std::regex scope(R"(^\s*(inline\s+)?(namespace|struct|class|union|enum|extern\s*$))");
  if (std::regex_search(rest, scope)) return Brace::kScope;
  if (parameters_of(rest, 0, rest.size()) < 0) return Brace::kValue;
  static const std::regex member(R"(\s:\s[^]*[A-Za-z0-9_>]$)");  // of a constructor: its body follows ) or }
  return std::regex_search(rest, member) ? Brace::kValue : Brace::kBody;
}

// The place of the ; or { or } or access label's colon that ends the declaration, or its part before the
// body.
inline size_t end_of_declaration(const std::string& code, size_t start) {
  static const std::regex label("(public|private|protected)\\s*");
  for (size_t at = start; at < code.size(); ++at) {
    const char c = code[at];
    if (c == ';' || c == '}') return at;
    const std::string head = c == '{' || c == ':' ? code.substr(start, at - start) : "";
    if (c == ':' && std::regex_match(head, label)) return at;
    const bool value = c == '{' && brace_after(head) == Brace::kValue;
    if (c == '{' && !value) return at;
    if (c == '(' || value) at = closing_of(code, at);
  }
  return code.size();
}

// The functions that the file declares or defines in namespaces and classes. A lambda's lines are its
// function's.
inline std::vector<Function> functions_of(const std::string& text) {
  const std::string code = code_of(text);
  const auto line_at = [&](size_t at) {
    return static_cast<int>(std::count(code.begin(), code.begin() + at, '\n')) + 1;
  };
  std::vector<Function> found;
  for (size_t at = 0; (at = code.find_first_not_of(" \n;}", at)) < code.size();) {
    const size_t start = at, end = end_of_declaration(code, start);
    const bool body = code[end] == '{' && brace_after(code.substr(start, end - start)) == Brace::kBody;
    at = body ? closing_of(code, end) : end + 1;
    const int parameters = parameters_of(code, start, end);
    if (parameters < 0 || (!body && code[end] != ';')) continue;
    found.push_back({line_at(start), body ? line_at(at) - line_at(start) + 1 : 0, parameters});
  }
  return found;
}
