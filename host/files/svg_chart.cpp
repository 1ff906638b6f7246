// SPDX-License-Identifier: Apache-2.0
#include "host/files/svg_chart.h"

#include <algorithm>
#include <cmath>

#include "host/files/svg_labels.h"

namespace pointsman {
namespace {

constexpr double kWidth = 800, kPlotHeight = 400, kRow = 22;
constexpr double kLegendSize = 13, kSample = 28;  // letters, and a legend's piece of line
constexpr size_t kMostDots = 60;
constexpr double kDot = 2.6, kMarker = 4.5;          // radii
constexpr size_t kMostNames = 10;                    // beside their lines
constexpr double kWidestName = 230, kAtEdge = 0.95;  // of the width: what ends behind it ends at the edge

constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000"};
constexpr const char* kInks[] = {"#00578a", "#a84a00", "#00694d", "#9a3f72", "#8a6000", "#2c7da6", "#000"};

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
      const double lower = point.y - point.error;
      // On a logarithmic axis an error as large as its number has no lower end.
      y.add(chart.logarithmic_y ? std::max(lower, point.y / 2) : lower);
      y.add(point.y + point.error);
    }
  }
  if (chart.reference) y.add(chart.reference->y);
  if (!chart.logarithmic_x && x.low > 0 && x.low < x.high / 2) x.low = 0;
  const double margin = chart.logarithmic_x ? 0.02 : 0;
  frame.x = make_axis(chart.x_label, make_scale(x.low, x.high, chart.logarithmic_x, margin), 8);
  frame.y = make_axis(chart.y_label, make_scale(y.low, y.high, chart.logarithmic_y, 0.05), 8);
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

std::vector<Segment> error_bars(const ChartSeries& series, const Frame& frame) {
  constexpr double kCap = 3;  // half the width of its ends
  std::vector<Segment> bars;
  for (const ChartPoint& point : series.points) {
    if (point.error == 0) continue;
    const double low = std::max(point.y - point.error, frame.y.scale.low);  // it may end below the frame
    const Pixel from = frame.at({point.x, low}), to = frame.at({point.x, point.y + point.error});
    bars.push_back({from, to});
    bars.push_back({{to.x - kCap, to.y}, {to.x + kCap, to.y}});
    if (low == point.y - point.error) bars.push_back({{from.x - kCap, from.y}, {from.x + kCap, from.y}});
  }
  return bars;
}

// Where everything stands. Either `names` or `legend` is empty.
struct Layout {
  Frame frame;
  std::vector<NamedLine> lines;  // the series, then the reference
  std::vector<LineName> names;
  std::vector<LegendEntry> legend;
};

double top_of(const LineChart& chart) { return kBorder / 2 + (chart.title.empty() ? 0 : 28); }

std::vector<NamedLine> lines_of(const LineChart& chart, const Frame& frame) {
  std::vector<NamedLine> lines;
  for (const ChartSeries& series : chart.series) {
    NamedLine line{series.label, {}, frame.x.scale.fraction(series.points.back().x) > kAtEdge};
    for (const ChartPoint& point : series.points) line.pixels.push_back(frame.at(point));
    line.pixels = thin_out(line.pixels);
    if (line.ends_at_edge) line.name = fitting_text(line.name, kWidestName, kNameSize);
    lines.push_back(std::move(line));
  }
  if (chart.reference) {
    const double y = frame.at({frame.x.scale.low, chart.reference->y}).y;
    lines.push_back({fitting_text(chart.reference->label, kWidestName, kNameSize),
                     {{frame.left, y}, {frame.right(), y}},
                     true});
  }
  return lines;
}

// With every line's name beside it, where there are few lines and a place for each name.
bool lay_out_names(const LineChart& chart, Layout& layout) {
  if (chart.series.size() > kMostNames) return false;
  Frame& frame = layout.frame;
  frame.top = top_of(chart) + 10;
  double room = 2 * kBorder;
  for (const NamedLine& line : lines_of(chart, frame)) {
    if (line.ends_at_edge) room = std::max(room, text_width(line.name, kNameSize) + 3 * kNameGap);
  }
  frame.width = kWidth - frame.left - room;
  layout.lines = lines_of(chart, frame);
  std::vector<Segment> bars;
  for (const ChartSeries& series : chart.series) {
    const std::vector<Segment> own = error_bars(series, frame);
    bars.insert(bars.end(), own.begin(), own.end());
  }
  auto names = place_names(layout.lines, {frame.left, frame.top, frame.right(), frame.bottom()}, bars);
  if (names) layout.names = std::move(*names);
  return names.has_value();
}

Layout lay_out(const LineChart& chart) {
  Layout layout;
  Frame& frame = layout.frame;
  choose_scales(chart, frame);
  frame.left = kBorder / 2 + space_left_of(frame.y);
  frame.height = kPlotHeight;
  if (lay_out_names(chart, layout)) return layout;
  frame.width = kWidth - frame.left - 2 * kBorder;
  layout.legend = place_legend(chart, frame.left, top_of(chart));
  frame.top = layout.legend.back().at.y + kRow / 2 + 10;
  layout.lines = lines_of(chart, frame);
  return layout;
}

void draw_series(SvgCanvas& canvas, const Layout& layout, const LineChart& chart) {
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const std::vector<Pixel>& pixels = layout.lines[i].pixels;
    Stroke stroke = series_stroke(i);
    canvas.lines(error_bars(chart.series[i], layout.frame), {stroke.colour, 1.1, ""});
    if (pixels.size() == 1) {
      draw_marker(canvas, pixels[0], i);
      continue;
    }
    canvas.path(pixels, stroke);
    if (chart.has_dots && chart.series[i].points.size() <= kMostDots)
      canvas.dots(pixels, kDot, stroke.colour);
  }
}

void draw_legend(SvgCanvas& canvas, const Layout& layout, const LineChart& chart) {
  for (size_t i = 0; i < layout.legend.size(); ++i) {
    const LegendEntry& entry = layout.legend[i];
    if (i < chart.series.size() && chart.series[i].points.size() == 1) {
      draw_marker(canvas, {entry.at.x + kSample / 2, entry.at.y}, i);
    } else {
      canvas.lines({{entry.at, {entry.at.x + kSample, entry.at.y}}}, entry.stroke);
    }
    canvas.text({entry.at.x + kSample + 6, entry.at.y}, entry.label, {Anchor::kStart, kLegendSize});
  }
}

void draw_names(SvgCanvas& canvas, const Layout& layout, const LineChart& chart) {
  for (size_t i = 0; i < layout.names.size(); ++i) {
    const LineName& name = layout.names[i];
    const char* ink = i < chart.series.size() ? kInks[i % std::size(kInks)] : "#444";
    if (name.leader) canvas.lines({*name.leader}, {ink, 0.7, ""});
    canvas.text(name.at, layout.lines[i].name, {name.anchor, kNameSize, false, ink});
  }
}

}  // namespace

std::string format_line_chart(const LineChart& chart) {
  const Layout layout = lay_out(chart);
  const Frame& frame = layout.frame;
  SvgCanvas canvas(kWidth, frame.bottom() + kSpaceBelow, chart.title,
                   chart.y_label + " against " + chart.x_label);
  draw_axes(canvas, frame);
  if (chart.reference) {
    const std::vector<Pixel>& ends = layout.lines.back().pixels;
    canvas.lines({{ends.front(), ends.back()}}, reference_stroke());
  }
  draw_series(canvas, layout, chart);
  draw_legend(canvas, layout, chart);
  draw_names(canvas, layout, chart);
  return std::move(canvas).finish();
}

}  // namespace pointsman
