// SPDX-License-Identifier: Apache-2.0
// Distances for local search, as city_distance() gives them, made to be asked millions of times.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/problem/instance.h"
#include "engine/problem/metric.h"
#include "kernels/common/stop_token.h"

namespace pointsman {

// The cities are numbered anew, along a Hilbert curve, so that near ones lie near each other in memory. The
// instance must outlive it.
class Distances {
 public:
  // Throws CallStopped when `stop` says so first.
  Distances(const Instance& instance, const StopToken& stop);

  int n() const { return n_; }
  int32_t city(int place) const { return cities_[place]; }  // the instance's own number
  bool is_planar() const { return is_planar_; }             // the metric grows with the distance in the plane
  double x(int place) const { return points_[2 * place]; }
  double y(int place) const { return points_[2 * place + 1]; }

  // Of the places a and b.
  double operator()(int a, int b) const {
    if (!matrix_.empty()) return matrix_[static_cast<size_t>(a) * n_ + b];
    if (!is_plain_) return city_distance(instance_, cities_[a], cities_[b]);
    return plain_distance(points_[2 * b] - points_[2 * a], points_[2 * b + 1] - points_[2 * a + 1]);
  }

 private:
  const Instance& instance_;
  const int n_;
  const bool is_plain_;  // the unrounded length
  bool is_planar_ = false;
  std::vector<int32_t> cities_;
  std::vector<double> points_;  // [n][2]; empty where there are no coordinates
  std::vector<double> matrix_;  // [n][n]; empty where it would not pay
};

}  // namespace pointsman
