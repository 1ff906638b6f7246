// SPDX-License-Identifier: Apache-2.0
#include "host/files/svg_axes.h"

#include <algorithm>
#include <cmath>

namespace pointsman {
namespace {

constexpr double kTickSize = 12, kLabelSize = 13;  // of the letters
constexpr double kSmallest = 1e-90;                // what is nearer to 0 is drawn as 0

// multiple * 10^exponent, rounded once where the power is exact.
double decimal(double multiple, int exponent) {
  return exponent >= 0 ? multiple * std::pow(10.0, exponent) : multiple / std::pow(10.0, -exponent);
}

int exponent_of(double value) {
  const int exponent = static_cast<int>(std::floor(std::log10(value)));
  if (decimal(1, exponent + 1) <= value) return exponent + 1;
  return decimal(1, exponent) > value ? exponent - 1 : exponent;
}

// A number whose last digit that counts is that of 10^exponent, on an axis up to `largest`.
std::string tick_label(double value, double largest, int exponent, double shortened_from) {
  if (value == 0) return "0";
  const int leading = exponent_of(largest);
  if (largest >= 1e15 || exponent < -6) {
    const int digits = std::clamp(exponent_of(std::abs(value)) - exponent, 0, 16);
    return decimal_text(value, std::chars_format::scientific, digits);
  }
  const int unit = leading / 3 * 3;  // of k, M, G, T
  if (largest < shortened_from || unit - exponent > 4) return fixed_text(value, std::max(0, -exponent));
  return fixed_text(value / std::pow(10.0, unit), std::max(0, unit - exponent)) + " kMGT"[unit / 3];
}

std::vector<Tick> linear_ticks(const Scale& scale, int wanted) {
  const double least = (scale.high - scale.low) / wanted;
  int exponent = exponent_of(least);
  int multiple = decimal(1, exponent) >= least ? 1 : decimal(2, exponent) >= least ? 2 : 5;
  if (decimal(multiple, exponent) < least) multiple = 1, ++exponent;
  const double step = decimal(multiple, exponent);
  std::vector<Tick> ticks;
  for (double i = std::ceil(scale.low / step); i <= std::floor(scale.high / step); ++i) {
    ticks.push_back({decimal(i * multiple, exponent), ""});
  }
  double largest = 0;
  for (const Tick& tick : ticks) largest = std::max(largest, std::abs(tick.value));
  for (Tick& tick : ticks) tick.label = tick_label(tick.value, largest, exponent, 1e5);
  return ticks;
}

// Powers of ten; over few of them their 2- and 5-fold too.
std::vector<Tick> logarithmic_ticks(const Scale& scale, int wanted) {
  const int first = exponent_of(scale.low), last = exponent_of(scale.high);
  const int decades = last - first + 1, stride = (decades + wanted - 1) / wanted;
  std::vector<Tick> ticks;
  for (int exponent = first; exponent <= last; exponent += stride) {
    for (const int multiple : {1, 2, 5}) {
      const double value = decimal(multiple, exponent);
      if (value < scale.low || value > scale.high || (multiple > 1 && 3 * decades > 2 * wanted)) continue;
      ticks.push_back({value, tick_label(value, value, exponent, 1e3)});
    }
  }
  return ticks;
}

}  // namespace

double Scale::fraction(double value) const {
  if (!logarithmic) return (value - low) / (high - low);
  return std::log(value / low) / std::log(high / low);
}

Scale make_scale(double low, double high, bool logarithmic, double margin) {
  if (logarithmic) {
    if (high / low < 1.01) return {low / 2, high * 2, true};
    const double factor = std::pow(high / low, margin);
    return {low / factor, high * factor, true};
  }
  const double size = std::max(std::abs(low), std::abs(high));
  const bool is_one = size < kSmallest || high - low <= 1e-9 * size;
  const double room = !is_one ? margin * (high - low) : size < kSmallest ? 0.5 : 0.05 * size;
  return {low - room, high + room, false};
}

Axis make_axis(const std::string& label, const Scale& scale, int wanted) {
  std::vector<Tick> ticks = scale.logarithmic ? logarithmic_ticks(scale, wanted) : std::vector<Tick>();
  if (ticks.size() < 3) ticks = linear_ticks(scale, wanted);
  return {label, scale, ticks};
}

Pixel Frame::at(ChartPoint point) const {
  return {left + width * x.scale.fraction(point.x), bottom() - height * y.scale.fraction(point.y)};
}

double space_left_of(const Axis& y) {
  double widest = 0;
  for (const Tick& tick : y.ticks) widest = std::max(widest, text_width(tick.label, kTickSize));
  return 36 + widest;
}

void draw_axes(SvgCanvas& canvas, const Frame& frame) {
  std::vector<std::pair<Pixel, Pixel>> grid, axes;
  for (const Tick& tick : frame.x.ticks) {
    const double x = frame.at({tick.value, frame.y.scale.low}).x;
    grid.push_back({{x, frame.top}, {x, frame.bottom()}});
    axes.push_back({{x, frame.bottom()}, {x, frame.bottom() + 5}});
    canvas.text({x, frame.bottom() + 15}, tick.label, {Anchor::kMiddle, kTickSize});
  }
  for (const Tick& tick : frame.y.ticks) {
    const double y = frame.at({frame.x.scale.low, tick.value}).y;
    grid.push_back({{frame.left, y}, {frame.right(), y}});
    axes.push_back({{frame.left - 5, y}, {frame.left, y}});
    canvas.text({frame.left - 8, y}, tick.label, {Anchor::kEnd, kTickSize});
  }
  axes.push_back({{frame.left, frame.top}, {frame.left, frame.bottom()}});
  axes.push_back({{frame.left, frame.bottom()}, {frame.right(), frame.bottom()}});
  canvas.lines(grid, {"#e2e2e2", 1, ""});
  canvas.lines(axes, {"#555", 1, ""});
  canvas.text({frame.left + frame.width / 2, frame.bottom() + 36}, frame.x.label,
              {Anchor::kMiddle, kLabelSize});
  canvas.text({frame.left - space_left_of(frame.y) + 14, frame.top + frame.height / 2}, frame.y.label,
              {Anchor::kMiddle, kLabelSize, true});
}

}  // namespace pointsman
