// SPDX-License-Identifier: Apache-2.0
// What local search on symmetric tours sees of an instance.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "engine/problem/instance.h"

namespace pointsman {

// A symmetric TSP and fixed edges such that its tours with all of these are the answers of an instance. A TSP
// is its own. An ATSP has 2n cities (Jonker & Volgenant 1983): the arrival at city i is city i, the departure
// n + i; a fixed edge of length 0 joins the two, the edge from n + a to b is as long as the way from a to b,
// and all others are so long that no move to a shorter tour takes one. The instance must outlive it.
class SymmetricForm {
 public:
  explicit SymmetricForm(const Instance& instance);

  const Instance& tsp() const { return doubled_ ? *doubled_ : instance_; }
  const std::vector<std::array<int32_t, 2>>& fixed() const { return fixed_; }

  // An order of the instance's items as a tour of the form, and back.
  std::vector<int32_t> tour_of(const std::vector<int32_t>& order) const;
  std::vector<int32_t> order_of(std::vector<int32_t> tour) const;

 private:
  const Instance& instance_;
  std::optional<Instance> doubled_;
  std::vector<std::array<int32_t, 2>> fixed_;
};

}  // namespace pointsman
