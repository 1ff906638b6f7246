// SPDX-License-Identifier: Apache-2.0
// Distances for local search, as city_distance() gives them, made to be asked millions of times.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "engine/problem/instance.h"
#include "engine/problem/metric.h"
#include "kernels/tools/stop_token.h"

namespace pointsman {

// A sum of distances as a fixed-point number, which is exact.
__extension__ typedef __int128 WideLength;

// Numbers the cities along a Hilbert curve: near ones are near in memory. The instance must outlive it.
class Distances {
 public:
  // Throws CallStopped when `stop` says so first.
  Distances(const Instance& instance, const StopToken& stop);

  int n() const { return n_; }
  int32_t city(int place) const { return cities_[place]; }  // the instance's own number
  bool is_planar() const { return is_planar_; }             // the metric grows with the distance in the plane
  double x(int place) const { return points_[2 * place]; }
  double y(int place) const { return points_[2 * place + 1]; }

  // Largest rounding error of a gain, the difference of two sums of three distances. 0: doubles are exact.
  double rounding() const { return rounding_; }
  // Whether gains need WideLength: distances differ too much in size, or are integers too large for doubles.
  bool is_wide() const { return is_wide_; }

  // A distance, or a sum of them, as searches add it. WideLength has 126 bits for the sum of n distances:
  // what is smaller than 2^-126 of n times the largest is cut off.
  template <typename Length>
  Length as(double distance) const {
    if constexpr (std::is_same_v<Length, double>) {
      return distance;
    } else {
      return static_cast<Length>(distance * wide_unit_);
    }
  }
  double to_double(double length) const { return length; }
  double to_double(WideLength length) const { return static_cast<double>(length) / wide_unit_; }

  // Of the places a and b.
  double operator()(int a, int b) const {
    if (!matrix_.empty()) return matrix_[static_cast<size_t>(a) * n_ + b];
    if (!is_plain_) return city_distance(instance_, cities_[a], cities_[b]);
    return plain_distance(points_[2 * b] - points_[2 * a], points_[2 * b + 1] - points_[2 * a + 1]);
  }

 private:
  void choose_lengths();
  void find_range(double& least, double& largest) const;

  const Instance& instance_;
  const int n_;
  const bool is_plain_;  // the unrounded length
  bool is_planar_ = false, is_wide_ = false;
  double rounding_ = 0.0, wide_unit_ = 1.0;  // the latter of WideLength in one unit of length, a power of two
  std::vector<int32_t> cities_;
  std::vector<double> points_;  // [n][2]; empty where there are no coordinates
  std::vector<double> matrix_;  // [n][n]; empty where it would not pay
};

// The n cities along a Hilbert curve through their bounding square; by number where they have no coordinates.
// O(n log n).
std::vector<int32_t> along_curve(const Instance& instance);

}  // namespace pointsman
