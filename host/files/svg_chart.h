// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "host/files/svg_axes.h"

namespace pointsman {

struct ChartSeries {
  std::string label;
  std::vector<ChartPoint> points;  // joined in this order; at least one, and one alone is a marker
};

struct LineChart {
  std::string title;  // empty: none
  std::string x_label, y_label;
  bool logarithmic_x = false, logarithmic_y = false;  // from kSmallestLogarithmic; error bars lower
  bool has_dots = false;                              // where the points are few they are shown
  std::vector<ChartSeries> series;                    // at least one
  struct Reference {                                  // a horizontal line
    double y = 0;
    std::string label;
  };
  std::optional<Reference> reference;
};

// As an SVG document, in Okabe and Ito's colours for the colour-blind; after seven the lines are dashed, and
// the markers rings. Points that would fall together on the picture are written once, so that a file stays
// small however many there are. Up to ten lines are named beside them, more in a legend above.
std::string format_line_chart(const LineChart& chart);

}  // namespace pointsman
