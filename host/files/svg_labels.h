// SPDX-License-Identifier: Apache-2.0
// Where the names of lines stand so that none covers another.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/files/svg_canvas.h"

namespace pointsman {

struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;  // pixels
};

using Segment = std::pair<Pixel, Pixel>;

// A line that wants its name beside it. One that ends at the right edge has it behind the edge.
struct NamedLine {
  std::string name;
  std::vector<Pixel> pixels;  // at least one, and one alone is a marker
  bool ends_at_edge = false;
};

struct LineName {
  Pixel at;
  Anchor anchor = Anchor::kStart;
  std::optional<Segment> leader;  // from the line to a name that does not touch it
};

inline constexpr double kNameSize = 13, kNameGap = 8;  // of the letters, and from a line to its name

// Heights as near to the wanted ones as a distance of `apart` allows, all within low and high, where there is
// room. They keep their order.
std::vector<double> pushed_apart(const std::vector<double>& wanted, double apart, double low, double high);

// One for each line. A name inside of the frame keeps off the lines and `obstacles` where it can, and never
// stands on another name; nothing: some name has no such place.
std::optional<std::vector<LineName>> place_names(const std::vector<NamedLine>& lines, const Box& frame,
                                                 const std::vector<Segment>& obstacles);

}  // namespace pointsman
