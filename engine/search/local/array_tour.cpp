// SPDX-License-Identifier: Apache-2.0
#include "engine/search/local/array_tour.h"

#include <algorithm>

namespace pointsman {

void ArrayTour::load(const std::vector<int32_t>& order) {
  tour_ = order;
  for (int i = 0; i < n_; ++i) position_[tour_[i]] = i;
  keep();
}

void ArrayTour::choose(Exchange& exchange, int j, int city, bool next) const {
  const int position = position_[city];
  const int cut = next ? position : before(position);
  exchange.set(j, city, tour_[next ? after(position) : cut], cut, next);
}

// The removed edges cut the tour into as many paths; path p ends at the p-th cut. Walking them along the new
// edges gives the new tour, unless the walk returns before it has seen them all.
bool ArrayTour::apply(const Exchange& exchange) {
  constexpr int kMost = Exchange::kMostEdges;
  const int size = exchange.size;
  int by_cut[kMost], rank[kMost];
  for (int j = 0; j < size; ++j) {
    int place = j;
    for (; place > 0 && exchange.cut[by_cut[place - 1]] > exchange.cut[j]; --place)
      by_cut[place] = by_cut[place - 1];
    by_cut[place] = j;
  }
  for (int p = 0; p < size; ++p) rank[by_cut[p]] = p;

  // End 2p is the first city of path p, end 2p + 1 its last.
  const auto end_of = [&](int j, bool first_city) {
    if (first_city == exchange.is_ahead[j]) return 2 * rank[j] + 1;
    return rank[j] + 1 < size ? 2 * rank[j] + 2 : 0;
  };
  int joined[2 * kMost];
  for (int j = 0; j < size; ++j) {
    const int from = end_of(j, false), to = end_of(j + 1 < size ? j + 1 : 0, true);
    joined[from] = to;
    joined[to] = from;
  }
  Piece pieces[kMost];
  int end = 0, seen = 0;
  do {
    const int path = end / 2, before_path = path > 0 ? path - 1 : size - 1;
    const int first = after(exchange.cut[by_cut[before_path]]);
    const int length = exchange.cut[by_cut[path]] - first + 1;
    pieces[seen++] = {first, length > 0 ? length : length + n_, end % 2 != 0};
    end = joined[end ^ 1];
  } while (end != 0 && seen < size);
  if (end != 0 || seen != size) return false;
  rearrange(pieces, size);
  return true;
}

void ArrayTour::bridge(const int (&cuts)[4]) {
  Piece pieces[4];
  for (int i = 0; i < 4; ++i) {  // the path before the first cut, then the others from the last one back
    const int path = (4 - i) % 4;
    const int first = after(cuts[(path + 3) % 4]);
    const int length = cuts[path] - first + 1;
    pieces[i] = {first, length > 0 ? length : length + n_};
  }
  rearrange(pieces, 4);
}

bool ArrayTour::apply_elsewhere(Exchange exchange) {
  for (int j = 0; j < exchange.size; ++j) {
    const int32_t city = exchange.t[2 * j], other = exchange.t[2 * j + 1];
    const bool is_ahead = next(city) == other;
    if (!is_ahead && previous(city) != other) return false;
    choose(exchange, j, city, is_ahead);
  }
  return apply(exchange);
}

// Read backwards a double bridge is one too, so the edges may all be turned.
bool ArrayTour::bridge_elsewhere(const int32_t (&ends)[8]) {
  const bool is_ahead = next(ends[0]) == ends[1];
  int cuts[4];
  for (int i = 0; i < 4; ++i) {
    const int32_t first = ends[is_ahead ? 2 * i : 7 - 2 * i], second = ends[is_ahead ? 2 * i + 1 : 6 - 2 * i];
    if (next(first) != second) return false;
    cuts[i] = position_[first];
  }
  const auto least = std::min_element(cuts, cuts + 4);
  std::rotate(cuts, least, cuts + 4);
  if (!std::is_sorted(cuts, cuts + 4)) return false;  // other paths lie between them
  bridge(cuts);
  return true;
}

// Writes the paths one behind the other. The longest stays where it is, and so do those beside it that would
// only be copied onto themselves.
void ArrayTour::rearrange(const Piece* pieces, int count) {
  int longest = 0;
  for (int i = 1; i < count; ++i) {
    if (pieces[i].length > pieces[longest].length) longest = i;
  }
  const bool turns = pieces[longest].is_reversed;  // then the whole walk is read backwards
  Piece moved[Exchange::kMostEdges];
  const int others = count - 1;
  for (int i = 0; i < others; ++i) {
    moved[i] = pieces[(turns ? longest + count - 1 - i : longest + 1 + i) % count];
    moved[i].is_reversed = moved[i].is_reversed != turns;
  }
  int first = (pieces[longest].first + pieces[longest].length) % n_, last = pieces[longest].first;
  int begin = 0, end = others;
  for (; begin < end && !moved[begin].is_reversed && moved[begin].first == first; ++begin)
    first = (first + moved[begin].length) % n_;
  for (; end > begin && !moved[end - 1].is_reversed &&
         (moved[end - 1].first + moved[end - 1].length) % n_ == last;
       --end)
    last = moved[end - 1].first;

  int total = 0;
  for (int i = begin; i < end; ++i) total += moved[i].length;
  int written = 0;
  for (int i = begin; i < end; written += moved[i++].length) copy_piece(moved[i], &scratch_[written]);
  if (writes_journal_) {
    journal_.push_back({first, total});
    overwritten_.resize(overwritten_.size() + total);
    copy_piece({first, total}, overwritten_.data() + overwritten_.size() - total);
  }
  write(first, scratch_.data(), total);
  if (overwritten_.size() > kMostOverwritten * tour_.size()) shorten_journal();
}

// In place of many changes the whole tour as it was before them.
void ArrayTour::shorten_journal() {
  const std::vector<int32_t> now = tour_;
  undo();
  journal_.push_back({0, n_});
  overwritten_ = tour_;
  write(0, now.data(), n_);
}

void ArrayTour::copy_piece(const Piece& piece, int32_t* to) const {
  const int whole = std::min(piece.length, n_ - piece.first);  // up to the end of the array
  const auto begin = tour_.begin() + piece.first;
  const int rest = piece.length - whole;
  if (piece.is_reversed) {
    std::reverse_copy(tour_.begin(), tour_.begin() + rest, to);
    std::reverse_copy(begin, begin + whole, to + rest);
  } else {
    std::copy(begin, begin + whole, to);
    std::copy(tour_.begin(), tour_.begin() + rest, to + whole);
  }
}

void ArrayTour::write(int first, const int32_t* cities, int count) {
  int position = first;
  for (int i = 0; i < count; ++i) {
    tour_[position] = cities[i];
    position_[cities[i]] = position;
    position = after(position);
  }
}

void ArrayTour::undo() {
  for (; !journal_.empty(); journal_.pop_back()) {
    const Piece& change = journal_.back();
    write(change.first, overwritten_.data() + overwritten_.size() - change.length, change.length);
    overwritten_.resize(overwritten_.size() - change.length);
  }
}

}  // namespace pointsman
