// SPDX-License-Identifier: Apache-2.0
#include "host/files/svg_tour.h"

#include <algorithm>
#include <cmath>

#include "host/files/svg_axes.h"

namespace pointsman {
namespace {

constexpr double kTitle = 30, kCaption = 26, kCaptionSize = 13;

// DDD.MM to degrees (TSPLIB95, section 2).
double degrees(double degrees_minutes) {
  const double whole = std::trunc(degrees_minutes);
  return whole + (degrees_minutes - whole) * 5 / 3;
}

std::vector<ChartPoint> positions(const Instance& instance) {
  std::vector<ChartPoint> out;
  for (int i = 0; i < instance.n(); ++i) {
    const double x = instance.first(i), y = instance.second(i);
    out.push_back(instance.metric == Metric::kGeo ? ChartPoint{degrees(y), degrees(x)} : ChartPoint{x, y});
  }
  return out;
}

// Around the middle of the range: all of it and a margin, and at least `length`.
Scale make_span(const Range& range, double margin, double length) {
  const double half = std::max((range.high - range.low) / 2 + margin, length / 2);
  const double middle = range.low / 2 + range.high / 2;
  return {middle - half, middle + half, false};
}

struct Map {
  std::vector<ChartPoint> cities;
  Frame frame;  // its place is not set
};

// A frame of at most pixels x pixels with the shape of the map, but no thinner than 1 to 3.
Map make_map(const Instance& instance, double pixels) {
  constexpr double kThinnest = 1.0 / 3;
  Map map{positions(instance), {}};
  Range across, up;
  for (const ChartPoint& city : map.cities) {
    across.add(city.x);
    up.add(city.y);
  }
  const bool geographic = instance.metric == Metric::kGeo;
  constexpr double kRadian = 3.14159265358979323846 / 180;
  // What one step along x is worth in steps along y; near the poles a map must not collapse.
  const double ratio =
      geographic ? std::max(0.05, std::cos(std::clamp((up.low + up.high) / 2, -90.0, 90.0) * kRadian)) : 1.0;
  const double size =
      std::max({std::abs(across.low), std::abs(up.low), std::abs(across.high), std::abs(up.high)});
  double span = std::max((across.high - across.low) * ratio, up.high - up.low);
  if (span <= 1e-9 * size || span < 1e-90) span = std::max(0.1 * size, 1e-80);  // one place
  const double margin = 0.04 * span;
  const Scale x = make_span(across, margin / ratio, span * kThinnest / ratio);
  const Scale y = make_span(up, margin, span * kThinnest);
  const double width = (x.high - x.low) * ratio, height = y.high - y.low;
  map.frame.width = pixels * width / std::max(width, height);
  map.frame.height = pixels * height / std::max(width, height);
  map.frame.x = make_axis(geographic ? "longitude (degrees east)" : "x", x,
                          std::max(2, static_cast<int>(map.frame.width / 75)));
  map.frame.y = make_axis(geographic ? "latitude (degrees north)" : "y", y,
                          std::max(2, static_cast<int>(map.frame.height / 55)));
  return map;
}

void draw_map(SvgCanvas& canvas, const Map& map, const std::vector<int32_t>& tour) {
  draw_axes(canvas, map.frame);
  std::vector<Pixel> pixels;
  for (const int32_t city : tour) pixels.push_back(map.frame.at(map.cities[city]));
  // A city's share of the picture decides how large its dot may be.
  const double spacing = std::sqrt(map.frame.width * map.frame.height / static_cast<double>(tour.size()));
  const double radius = std::clamp(0.1 * spacing, 0.4, 3.5);
  canvas.path(pixels, {"#0072b2", std::clamp(0.6 * radius, 0.4, 1.8), ""}, true);
  canvas.dots(pixels, radius, "#222");
}

}  // namespace

std::string format_tour_maps(const std::vector<TourMap>& tours, const std::string& title) {
  const auto columns = static_cast<size_t>(std::ceil(std::sqrt(static_cast<double>(tours.size()))));
  const size_t rows = (tours.size() + columns - 1) / columns;
  const double pixels = columns == 1 ? 600 : columns == 2 ? 420 : 300;
  std::vector<Map> maps;
  double left = 0, width = 280, height = 0;  // the largest, so that all stand in line
  for (const TourMap& tour : tours) {
    const Map& map = maps.emplace_back(make_map(*tour.instance, pixels));
    left = std::max(left, space_left_of(map.frame.y));
    width = std::max(width, map.frame.width);
    height = std::max(height, map.frame.height);
  }
  const double top = kBorder / 2 + (title.empty() ? 0 : kTitle);
  const double cell_width = left + width + 1.5 * kBorder, cell_height = kCaption + height + kSpaceBelow;
  const double whole = static_cast<double>(columns) * cell_width + kBorder / 2;
  SvgCanvas canvas(whole, top + static_cast<double>(rows) * cell_height, title, tours[0].caption);
  for (size_t i = 0; i < maps.size(); ++i) {
    Frame& frame = maps[i].frame;
    frame.left =
        kBorder / 2 + static_cast<double>(i % columns) * cell_width + left + (width - frame.width) / 2;
    frame.top = top + static_cast<double>(i / columns) * cell_height + kCaption;
    draw_map(canvas, maps[i], tours[i].tour);
    canvas.text({frame.left + frame.width / 2, frame.top - kCaption / 2},
                fitting_text(tours[i].caption, width + kBorder, kCaptionSize),
                {Anchor::kMiddle, kCaptionSize});
  }
  return std::move(canvas).finish();
}

}  // namespace pointsman
