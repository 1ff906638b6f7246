// SPDX-License-Identifier: Apache-2.0
#include "host/files/svg_labels.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pointsman {
namespace {

constexpr double kNameHeight = 16, kDotRoom = 5;
constexpr int kMostSteps = 8;  // by which a name may be pushed off

bool overlap(const Box& a, const Box& b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

bool is_inside(const Box& inner, const Box& outer) {
  return inner.left >= outer.left && inner.right <= outer.right && inner.top >= outer.top &&
         inner.bottom <= outer.bottom;
}

// The part of the segment within each pair of edges in turn (Liang and Barsky).
bool crosses(const Segment& segment, const Box& box) {
  const auto& [from, to] = segment;
  const double dx = to.x - from.x, dy = to.y - from.y;
  double first = 0, last = 1;
  const std::pair<double, double> edges[] = {
      {-dx, from.x - box.left}, {dx, box.right - from.x}, {-dy, from.y - box.top}, {dy, box.bottom - from.y}};
  for (const auto& [speed, room] : edges) {
    if (speed == 0) {
      if (room < 0) return false;
    } else if (speed < 0) {
      first = std::max(first, room / speed);
    } else {
      last = std::min(last, room / speed);
    }
  }
  return first <= last;
}

Box box_of(const LineName& name, double width) {
  const double left = name.at.x - (name.anchor == Anchor::kStart    ? 0
                                   : name.anchor == Anchor::kMiddle ? width / 2
                                                                    : width);
  return {left, name.at.y - kNameHeight / 2, left + width, name.at.y + kNameHeight / 2};
}

// Places around the pixel, the best first.
void add_places(Pixel at, std::vector<LineName>& places) {
  const double near = kNameGap * 0.75, far = kNameHeight * 0.8;
  places.push_back({{at.x + kNameGap, at.y}, Anchor::kStart, {}});
  places.push_back({{at.x + near, at.y - far}, Anchor::kStart, {}});
  places.push_back({{at.x + near, at.y + far}, Anchor::kStart, {}});
  places.push_back({{at.x, at.y - far}, Anchor::kMiddle, {}});
  places.push_back({{at.x, at.y + far}, Anchor::kMiddle, {}});
  places.push_back({{at.x - kNameGap, at.y}, Anchor::kEnd, {}});
  places.push_back({{at.x - near, at.y - far}, Anchor::kEnd, {}});
  places.push_back({{at.x - near, at.y + far}, Anchor::kEnd, {}});
}

// Around the end of the line, its start and what lies between, then further and further off the end.
std::vector<LineName> places_for(const NamedLine& line) {
  std::vector<LineName> places;
  const std::vector<Pixel>& pixels = line.pixels;
  const Pixel end = pixels.back();
  add_places(end, places);
  const size_t between = std::max<size_t>(1, pixels.size() / 8);
  if (pixels.size() > 1) add_places(pixels.front(), places);
  for (size_t i = between; i + 1 < pixels.size(); i += between) add_places(pixels[i], places);
  for (int step = 2; step <= kMostSteps; ++step) {
    for (const double side : {1.0, -1.0}) {
      for (const double direction : {-1.0, 1.0}) {
        const Pixel at{end.x + side * 2 * kNameGap, end.y + direction * step * kNameHeight};
        places.push_back(
            {at, side > 0 ? Anchor::kStart : Anchor::kEnd, Segment{end, {at.x - side * 3, at.y}}});
      }
    }
  }
  return places;
}

std::vector<Segment> segments_of(const std::vector<NamedLine>& lines) {
  std::vector<Segment> segments;
  for (const NamedLine& line : lines) {
    for (size_t i = 1; i < line.pixels.size(); ++i) segments.push_back({line.pixels[i - 1], line.pixels[i]});
    const Pixel end = line.pixels.back();  // its dot or marker
    segments.push_back({{end.x - kDotRoom, end.y}, {end.x + kDotRoom, end.y}});
    segments.push_back({{end.x, end.y - kDotRoom}, {end.x, end.y + kDotRoom}});
  }
  return segments;
}

void place_at_edge(const std::vector<NamedLine>& lines, const Box& frame, std::vector<LineName>& names) {
  std::vector<size_t> order;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].ends_at_edge) order.push_back(i);
  }
  const auto height = [&](size_t i) { return lines[i].pixels.back().y; };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return height(a) < height(b); });
  std::vector<double> wanted;
  for (const size_t i : order) wanted.push_back(height(i));
  const std::vector<double> heights = pushed_apart(wanted, kNameHeight, frame.top, frame.bottom);
  for (size_t k = 0; k < order.size(); ++k) {
    const Pixel end = lines[order[k]].pixels.back(), at{frame.right + 2 * kNameGap, heights[k]};
    names[order[k]] = {at, Anchor::kStart, Segment{end, {at.x - 3, at.y}}};
  }
}

}  // namespace

std::vector<double> pushed_apart(const std::vector<double>& wanted, double apart, double low, double high) {
  // Blocks of names that touch: each stands where the sum of its members' ways is 0.
  struct Block {
    double sum = 0;  // of the members' wanted tops of the block
    size_t size = 0;
  };
  std::vector<Block> blocks;
  const auto top = [&](const Block& block) {
    const double length = apart * static_cast<double>(block.size - 1);
    return std::clamp(block.sum / static_cast<double>(block.size), low, std::max(low, high - length));
  };
  for (const double height : wanted) {
    blocks.push_back({height, 1});
    while (blocks.size() > 1) {
      Block& upper = blocks[blocks.size() - 2];
      const Block& lower = blocks.back();
      const double length = apart * static_cast<double>(upper.size);
      if (top(upper) + length <= top(lower)) break;
      upper.sum += lower.sum - length * static_cast<double>(lower.size);
      upper.size += lower.size;
      blocks.pop_back();
    }
  }
  std::vector<double> heights;
  for (const Block& block : blocks) {
    for (size_t i = 0; i < block.size; ++i) heights.push_back(top(block) + apart * static_cast<double>(i));
  }
  return heights;
}

std::optional<std::vector<LineName>> place_names(const std::vector<NamedLine>& lines, const Box& frame,
                                                 const std::vector<Segment>& obstacles) {
  std::vector<LineName> names(lines.size());
  place_at_edge(lines, frame, names);
  std::vector<Segment> segments = segments_of(lines);
  segments.insert(segments.end(), obstacles.begin(), obstacles.end());
  std::vector<Box> taken;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].ends_at_edge) continue;
    const double width = text_width(lines[i].name, kNameSize);
    std::optional<Box> best;
    std::ptrdiff_t fewest = 0;
    for (const LineName& place : places_for(lines[i])) {
      const Box box = box_of(place, width);
      const auto covers = [&](const Box& other) { return overlap(box, other); };
      if (!is_inside(box, frame) || std::any_of(taken.begin(), taken.end(), covers)) continue;
      const auto hits = std::count_if(segments.begin(), segments.end(),
                                      [&](const Segment& segment) { return crosses(segment, box); });
      if (best && hits >= fewest) continue;
      best = box;
      fewest = hits;
      names[i] = place;
      if (hits == 0) break;
    }
    if (!best) return std::nullopt;
    taken.push_back(*best);
  }
  return names;
}

}  // namespace pointsman
