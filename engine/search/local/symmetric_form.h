// SPDX-License-Identifier: Apache-2.0
// What local search on symmetric tours sees of an instance.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/problem/instance.h"
#include "kernels/tools/stop_token.h"

namespace pointsman {

// A symmetric TSP and fixed edges such that its tours with all of these are the answers of an instance. A TSP
// is its own.
// - A path gets one city more, number n, which is nowhere, as far from each city as from any other. Where the
//   tour passes it the path begins and ends; a given end is joined to it by a fixed edge. That it is about as
//   far as the tenth nearest city leaves the candidate lists to the ways that count, and still lets a search
//   move the ends: docs/experiments.md, "Local search".
// - Ways that differ from those back are edges of twice as many cities (Jonker & Volgenant 1983): the arrival
//   at city i is city i, the departure `cities` + i; a fixed edge of length 0 joins the two, the edge from
//   the departure of a to the arrival at b is as long as the way, and all others are so long that no move to
//   a shorter tour takes one.
// - A forbidden way is an edge longer than any tour without one: the shortest tour takes fewest of them.
// O(n^2) but for a TSP. The instance must outlive it.
class SymmetricForm {
 public:
  // A stop throws CallStopped.
  SymmetricForm(const Instance& instance, const StopToken& stop);

  const Instance& tsp() const { return own_ ? *own_ : instance_; }
  const std::vector<std::array<int32_t, 2>>& fixed() const { return fixed_; }

  // Of a tour's length that of its answer; infinite where it takes a forbidden way.
  double answer_length(double tour) const;
  bool has_forbidden() const { return has_forbidden_; }

  // Of the instance and the one that is nowhere; `way` from one to another of them, so long that it is never
  // taken to or from an end that is not the given one.
  int cities() const { return cities_; }
  double way(int from, int to) const;
  bool is_doubled() const { return is_doubled_; }

  // An order of the instance's cities as a tour of the form, and back.
  std::vector<int32_t> tour_of(std::vector<int32_t> order) const;
  std::vector<int32_t> order_of(std::vector<int32_t> tour) const;

 private:
  bool is_path() const { return cities_ > instance_.n(); }
  void measure_ways(StopMeter& meter);
  double own_way(int from, int to) const;
  DistanceMatrix edges(StopMeter& meter) const;

  const Instance& instance_;
  const int cities_;
  const bool is_doubled_, has_forbidden_;
  double forbidden_ = 0.0;  // the length of a forbidden way
  double never_ = 0.0;      // of edges that no tour takes which is better than one without
  double nowhere_ = 0.0;    // how far it is
  std::optional<Instance> own_;
  std::vector<std::array<int32_t, 2>> fixed_;
};

}  // namespace pointsman
