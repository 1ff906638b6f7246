// SPDX-License-Identifier: Apache-2.0
#include "host/files/svg_chart.h"

#include <algorithm>
#include <cmath>

namespace pointsman {
namespace {

constexpr double kWidth = 800, kPlotHeight = 400, kRow = 22;
constexpr double kLegendSize = 13, kSample = 28;  // letters, and a legend's piece of line
constexpr size_t kMostDots = 60;
constexpr double kDot = 2.6, kMarker = 4.5;  // radii

constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000"};

Stroke series_stroke(size_t index) {
  static const char* const kDashes[] = {"", "8 4", "2 3", "9 3 2 3"};
  return {kColours[index % std::size(kColours)], 1.8,
          kDashes[index / std::size(kColours) % std::size(kDashes)]};
}

// Where a single point is all that a series has. The hole tells the second seven from the first, and so on.
void draw_marker(SvgCanvas& canvas, Pixel at, size_t index) {
  static const double kHoles[] = {0, 3.2, 1.4, 2.3};
  canvas.dots({at}, kMarker, kColours[index % std::size(kColours)]);
  const double hole = kHoles[index / std::size(kColours) % std::size(kHoles)];
  if (hole > 0) canvas.dots({at}, hole, "#fff");
}

Stroke reference_stroke() { return {"#666", 1.4, "5 4"}; }

// The part of both axes that the chart needs. Amounts that start near 0 start at 0.
void choose_scales(const LineChart& chart, Frame& frame) {
  Range x, y;
  for (const ChartSeries& series : chart.series) {
    for (const ChartPoint& point : series.points) {
      x.add(point.x);
      y.add(point.y);
    }
  }
  if (chart.reference) y.add(chart.reference->y);
  if (!chart.logarithmic_x && x.low > 0 && x.low < x.high / 2) x.low = 0;
  const double margin = chart.logarithmic_x ? 0.02 : 0;
  frame.x = make_axis(chart.x_label, make_scale(x.low, x.high, chart.logarithmic_x, margin), 8);
  frame.y = make_axis(chart.y_label, make_scale(y.low, y.high, false, 0.05), 8);
}

struct LegendEntry {
  std::string label;
  Stroke stroke;
  Pixel at;
};

// Above the plot, where it covers nothing, as many a row as fit.
std::vector<LegendEntry> place_legend(const LineChart& chart, double left, double top) {
  std::vector<LegendEntry> entries;
  for (size_t i = 0; i < chart.series.size(); ++i)
    entries.push_back({chart.series[i].label, series_stroke(i), {}});
  if (chart.reference) entries.push_back({chart.reference->label, reference_stroke(), {}});
  const double room = kWidth - kBorder - left;
  Pixel at{left, top + kRow / 2};
  for (LegendEntry& entry : entries) {
    entry.label = fitting_text(entry.label, room - kSample - 6, kLegendSize);
    const double width = kSample + 6 + text_width(entry.label, kLegendSize);
    if (at.x > left && at.x + width > left + room) at = {left, at.y + kRow};
    entry.at = at;
    at.x += width + 14;
  }
  return entries;
}

// Of all points within one column of pixels the first, the lowest, the highest and the last draw the same.
std::vector<Pixel> thin_out(const std::vector<Pixel>& pixels) {
  std::vector<Pixel> out;
  for (size_t begin = 0; begin < pixels.size();) {
    size_t end = begin, low = begin, high = begin;
    for (; end < pixels.size() && std::floor(pixels[end].x) == std::floor(pixels[begin].x); ++end) {
      if (pixels[end].y < pixels[low].y) low = end;
      if (pixels[end].y > pixels[high].y) high = end;
    }
    std::vector<size_t> kept = {begin, std::min(low, high), std::max(low, high), end - 1};
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    for (const size_t i : kept) out.push_back(pixels[i]);
    begin = end;
  }
  return out;
}

void draw_series(SvgCanvas& canvas, const Frame& frame, const LineChart& chart) {
  for (size_t i = 0; i < chart.series.size(); ++i) {
    std::vector<Pixel> pixels;
    for (const ChartPoint& point : chart.series[i].points) pixels.push_back(frame.at(point));
    if (pixels.size() == 1) {
      draw_marker(canvas, pixels[0], i);
      continue;
    }
    const Stroke stroke = series_stroke(i);
    canvas.path(thin_out(pixels), stroke);
    if (chart.has_dots && pixels.size() <= kMostDots) canvas.dots(pixels, kDot, stroke.colour);
  }
}

}  // namespace

std::string format_line_chart(const LineChart& chart) {
  Frame frame;
  choose_scales(chart, frame);
  frame.left = kBorder / 2 + space_left_of(frame.y);
  frame.width = kWidth - frame.left - 2 * kBorder;
  frame.height = kPlotHeight;
  const double legend_top = kBorder / 2 + (chart.title.empty() ? 0 : 28);
  const std::vector<LegendEntry> legend = place_legend(chart, frame.left, legend_top);
  frame.top = legend.back().at.y + kRow / 2 + 10;

  SvgCanvas canvas(kWidth, frame.bottom() + kSpaceBelow, chart.title,
                   chart.y_label + " against " + chart.x_label);
  draw_axes(canvas, frame);
  if (chart.reference) {
    const double y = frame.at({frame.x.scale.low, chart.reference->y}).y;
    canvas.lines({{{frame.left, y}, {frame.right(), y}}}, reference_stroke());
  }
  draw_series(canvas, frame, chart);
  for (size_t i = 0; i < legend.size(); ++i) {
    const LegendEntry& entry = legend[i];
    if (i < chart.series.size() && chart.series[i].points.size() == 1) {
      draw_marker(canvas, {entry.at.x + kSample / 2, entry.at.y}, i);
    } else {
      canvas.lines({{entry.at, {entry.at.x + kSample, entry.at.y}}}, entry.stroke);
    }
    canvas.text({entry.at.x + kSample + 6, entry.at.y}, entry.label, {Anchor::kStart, kLegendSize});
  }
  return std::move(canvas).finish();
}

}  // namespace pointsman
