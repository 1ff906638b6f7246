// SPDX-License-Identifier: Apache-2.0
// Axes with round ticks, for every picture that has them.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "host/files/svg_canvas.h"

namespace pointsman {

// The least number that a logarithmic axis shows.
inline constexpr double kSmallestLogarithmic = 1e-90;

// Finite and within ±1e100, in the units of the axes.
struct ChartPoint {
  double x = 0, y = 0;
  double error = 0;  // half the length of its error bar; 0: none
};

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;  // empty
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// The numbers that an axis shows, low to high. Finite and within ±1e100; from half of
// kSmallestLogarithmic where logarithmic.
struct Scale {
  double low = 0, high = 1;
  bool logarithmic = false;

  double fraction(double value) const;  // 0 at low, 1 at high
};

// From `low` to `high` and on both ends `margin` of the length more; around a single number some room.
Scale make_scale(double low, double high, bool logarithmic, double margin);

struct Tick {
  double value = 0;
  std::string label;
};

// One axis of a frame.
struct Axis {
  std::string label;
  Scale scale;
  std::vector<Tick> ticks;
};

// With ticks at 1, 2 or 5 times a power of ten, about `wanted` of them, all within the scale. Large numbers
// have k, M, G or T (thousand to million million), others as many digits as tell neighbours apart.
Axis make_axis(const std::string& label, const Scale& scale, int wanted);

// A rectangle with an axis below and one on its left.
struct Frame {
  double left = 0, top = 0, width = 0, height = 0;  // pixels
  Axis x, y;

  Pixel at(ChartPoint point) const;
  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

// Pixels that the axes need outside of the frame.
double space_left_of(const Axis& y);
inline constexpr double kSpaceBelow = 50;

// Grid, axes, ticks and labels.
void draw_axes(SvgCanvas& canvas, const Frame& frame);

}  // namespace pointsman
