// SPDX-License-Identifier: Apache-2.0
// An SVG document as it grows: lines, dots and words on white. The same calls give the same bytes on every
// machine, whatever its locale.
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

namespace pointsman {

// Pixels from the upper left corner.
struct Pixel {
  double x = 0, y = 0;
};

struct Stroke {
  std::string colour;
  double width = 1;
  std::string dashes;  // as stroke-dasharray has them; empty: solid
};

enum class Anchor { kStart, kMiddle, kEnd };

struct TextStyle {
  Anchor anchor = Anchor::kStart;
  double size = 13;      // pixels
  bool upwards = false;  // turned to read from below
  const char* colour = "#222";
};

inline constexpr double kBorder = 16;  // of every picture

class SvgCanvas {
 public:
  // White, with the title above; without one viewers tell `otherwise` when the picture cannot be seen.
  SvgCanvas(double width, double height, const std::string& title, const std::string& otherwise);

  // Lines that share a stroke, each from its first to its second pixel.
  void lines(const std::vector<std::pair<Pixel, Pixel>>& lines, const Stroke& stroke);
  void path(const std::vector<Pixel>& pixels, const Stroke& stroke, bool closed = false);
  void dots(const std::vector<Pixel>& pixels, double radius, const std::string& colour);
  // The middle of the text's small letters stands at the pixel's height.
  void text(Pixel at, std::string_view text, const TextStyle& style = {});

  std::string finish() &&;

 private:
  void stroke(const Stroke& stroke);

  std::string out_;
};

// Escaped for XML 1.0; what is not UTF-8 or has no place in XML becomes the replacement character.
std::string xml_text(std::string_view text);

// Never less than what the usual sans-serif fonts need; which one a viewer takes cannot be known.
double text_width(std::string_view text, double size);

// The text, or as much of its start as fits in `width` with an ellipsis.
std::string fitting_text(std::string_view text, double width, double size);

// With exactly `decimals` digits after the point.
std::string decimal_text(double value, std::chars_format format, int decimals);
// Likewise, and never "-0".
std::string fixed_text(double value, int decimals);

}  // namespace pointsman
