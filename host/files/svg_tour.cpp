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
    if (instance.metric == Metric::kGeo) {
      out.push_back({degrees(instance.second(i)), degrees(instance.first(i))});
    } else {
      out.push_back({instance.first(i), instance.second(i)});
    }
  }
  return out;
}

// Around the middle of low and high: both and a margin, and at least `length`.
Scale make_span(double low, double high, double margin, double length) {
  const double half = std::max((high - low) / 2 + margin, length / 2), middle = low / 2 + high / 2;
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
  ChartPoint low = map.cities[0], high = map.cities[0];
  for (const ChartPoint& city : map.cities) {
    low = {std::min(low.x, city.x), std::min(low.y, city.y)};
    high = {std::max(high.x, city.x), std::max(high.y, city.y)};
  }
  const bool geographic = instance.metric == Metric::kGeo;
  constexpr double kRadian = 3.14159265358979323846 / 180;
  // What one step along x is worth in steps along y; near the poles a map must not collapse.
  const double ratio =
      geographic ? std::max(0.05, std::cos(std::clamp((low.y + high.y) / 2, -90.0, 90.0) * kRadian)) : 1.0;
  const double size = std::max({std::abs(low.x), std::abs(low.y), std::abs(high.x), std::abs(high.y)});
  double span = std::max((high.x - low.x) * ratio, high.y - low.y);
  if (span <= 1e-9 * size || span < 1e-90) span = std::max(0.1 * size, 1e-80);  // one place
  const double margin = 0.04 * span;
  const Scale x = make_span(low.x, high.x, margin / ratio, span * kThinnest / ratio);
  const Scale y = make_span(low.y, high.y, margin, span * kThinnest);
  const double width = (x.high - x.low) * ratio, height = y.high - y.low;
  map.frame.width = pixels * width / std::max(width, height);
  map.frame.height = pixels * height / std::max(width, height);
  map.frame.x = {geographic ? "longitude (degrees east)" : "x", x,
                 make_ticks(x, std::max(2, static_cast<int>(map.frame.width / 75)))};
  map.frame.y = {geographic ? "latitude (degrees north)" : "y", y,
                 make_ticks(y, std::max(2, static_cast<int>(map.frame.height / 55)))};
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
  const double top = title.empty() ? kBorder / 2 : kBorder / 2 + kTitle;
  const double cell_width = left + width + 1.5 * kBorder, cell_height = kCaption + height + kSpaceBelow;
  const double whole = static_cast<double>(columns) * cell_width + kBorder / 2;
  SvgCanvas canvas(whole, top + static_cast<double>(rows) * cell_height,
                   title.empty() ? tours[0].caption : title);
  draw_title(canvas, whole, title);
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
