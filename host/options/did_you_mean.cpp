// SPDX-License-Identifier: Apache-2.0
#include "host/options/did_you_mean.h"

#include <algorithm>

#include "host/formats/text_scan.h"

namespace pointsman {
namespace {

constexpr size_t kLongestWord = 64;  // longer text is not a mistyped word
constexpr size_t kShortestStart = 3;

// The number of letters to change, delete, insert or swap with their neighbour to turn one word into the
// other; each letter is touched once.
int edit_distance(std::string_view a, std::string_view b) {
  // before[i][j]: the distance between the first i letters of a and the first j of b.
  std::vector<std::vector<int>> before(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      int& least = before[i][j];
      if (i == 0 || j == 0) {
        least = static_cast<int>(i + j);
        continue;
      }
      const int change = a[i - 1] == b[j - 1] ? 0 : 1;
      least = std::min({before[i - 1][j] + 1, before[i][j - 1] + 1, before[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        least = std::min(least, before[i - 2][j - 2] + 1);
    }
  }
  return before[a.size()][b.size()];
}

}  // namespace

std::string nearest_word(std::string_view word, const std::vector<std::string>& known) {
  if (word.empty() || word.size() > kLongestWord) return {};
  const std::string wanted = lower_case(word);
  std::string nearest;
  int least = static_cast<int>(kLongestWord);
  for (const std::string& candidate : known) {
    const std::string other = lower_case(candidate);
    const bool is_start = wanted.size() >= kShortestStart && other.starts_with(wanted);
    const int distance = is_start ? std::min(1, edit_distance(wanted, other)) : edit_distance(wanted, other);
    const int allowed = is_start ? 1 : static_cast<int>(std::max(wanted.size(), other.size()) / 3);
    if (distance > allowed || distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const std::string nearest = nearest_word(word, known);
  return nearest.empty() ? "" : "; did you mean " + nearest + "?";
}

}  // namespace pointsman
