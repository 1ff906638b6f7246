// SPDX-License-Identifier: Apache-2.0
// A tour as an array of cities with their positions. Its edges are exchanged, and exchanges undone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pointsman {

// Some edges leave the tour: of edge j the cities t[2j] and t[2j + 1]. The edges (t[1], t[2]), (t[3], t[4]),
// .., (t[2 size - 1], t[0]) come.
struct Exchange {
  static constexpr int kMostEdges = 4;

  int size = 0;
  int32_t t[2 * kMostEdges];
  int32_t cut[kMostEdges];    // the position before edge j
  bool is_ahead[kMostEdges];  // does the tour walk edge j from t[2j] to t[2j + 1]?

  void set(int j, int32_t city, int32_t other, int32_t cut_of_edge, bool ahead) {
    t[2 * j] = city;
    t[2 * j + 1] = other;
    cut[j] = cut_of_edge;
    is_ahead[j] = ahead;
  }
};

class ArrayTour {
 public:
  explicit ArrayTour(int n) : n_(n), position_(static_cast<size_t>(n)), scratch_(position_.size()) {}

  void load(const std::vector<int32_t>& order);  // [n], each city once; empties the journal
  const std::vector<int32_t>& order() const { return tour_; }

  int n() const { return n_; }
  int32_t at(int position) const { return tour_[position]; }
  int position(int city) const { return position_[city]; }
  int after(int position) const { return position + 1 < n_ ? position + 1 : 0; }
  int before(int position) const { return position > 0 ? position - 1 : n_ - 1; }
  int32_t next(int city) const { return tour_[after(position_[city])]; }
  int32_t previous(int city) const { return tour_[before(position_[city])]; }

  // Sets edge j, the one that joins `city` to its next or previous city.
  void choose(Exchange& exchange, int j, int city, bool next) const;

  // Makes the exchange and returns true, unless it would leave several cycles.
  bool apply(const Exchange& exchange);

  // Reverses the order of the three paths between four edges, each keeping its direction: a double bridge
  // (Martin, Otto & Felten 1991). cuts: [4], ascending, each the position before an edge.
  void bridge(const int (&cuts)[4]);

  // The same by the ends of the edges, as in another tour. Returns false and changes nothing if this one
  // lacks such an edge or no tour would be left.
  bool apply_elsewhere(Exchange exchange);
  bool bridge_elsewhere(const int32_t (&ends)[8]);

  // Undoes all exchanges in the journal, which holds at most kMostOverwritten n cities and one change.
  void undo();
  void keep() { journal_.clear(), overwritten_.clear(); }  // empties the journal
  void set_journal(bool on) { writes_journal_ = on; }      // off: nothing can be undone

 private:
  // So many that a kick and its repair hardly ever reach it.
  static constexpr size_t kMostOverwritten = 64;
  struct Piece {
    int first, length;  // from this position on
    bool is_reversed = false;
  };

  void shorten_journal();
  void rearrange(const Piece* pieces, int count);
  void copy_piece(const Piece& piece, int32_t* to) const;
  void write(int first, const int32_t* cities, int count);

  const int n_;
  bool writes_journal_ = true;
  std::vector<int32_t> tour_, position_;
  std::vector<int32_t> scratch_;
  std::vector<Piece> journal_;
  std::vector<int32_t> overwritten_;  // what stood where the journal's changes were made, one after the other
};

}  // namespace pointsman
