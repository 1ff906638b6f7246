// SPDX-License-Identifier: Apache-2.0
#include "host/files/svg_canvas.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "host/files/text_scan.h"
#include "models/json_text.h"

namespace pointsman {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD", kEllipsis = "\xE2\x80\xA6";
// A page that shows the picture may have none of its own; no two systems have the same.
constexpr const char* kFonts = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";

// A tenth of a pixel is more than an eye sees.
std::string pixel_text(double value) { return number_text(std::round(value * 10) / 10 + 0.0); }

std::string pixel_text(Pixel at) { return pixel_text(at.x) + " " + pixel_text(at.y); }

// Control characters, and the two non-characters that XML 1.0 names.
bool is_xml(std::string_view character) {
  const auto byte = static_cast<unsigned char>(character[0]);
  if (byte < 0x20) return byte == '\t';
  return byte != 0x7F && character != "\xEF\xBF\xBE" && character != "\xEF\xBF\xBF";
}

// Of the letter size. East Asian letters and pictures are square.
double character_width(std::string_view character) {
  if (character.size() >= 3 && static_cast<unsigned char>(character[0]) >= 0xE3) return 1.0;
  if (character.size() > 1) return 0.7;
  if (std::string_view("MW@%mw").find(character) != std::string_view::npos) return 0.98;
  if (std::string_view(" .,:;'|!ijl()[]").find(character) != std::string_view::npos) return 0.4;
  return 0.66;
}

// What is not UTF-8 becomes the replacement character.
std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> characters;
  for (size_t length; !text.empty(); text.remove_prefix(std::max<size_t>(length, 1))) {
    length = utf8_length(text);
    characters.push_back(length == 0 ? kReplacement : text.substr(0, length));
  }
  return characters;
}

}  // namespace

std::string xml_text(std::string_view text) {
  static constexpr std::pair<std::string_view, std::string_view> kEscapes[] = {
      {"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}};
  std::string out;
  for (std::string_view character : characters_of(text)) {
    for (const auto& [plain, escaped] : kEscapes) {
      if (character == plain) character = escaped;
    }
    out += is_xml(character) ? character : kReplacement;
  }
  return out;
}

double text_width(std::string_view text, double size) {
  double width = 0;
  for (const std::string_view character : characters_of(text)) width += character_width(character);
  return width * size;
}

std::string fitting_text(std::string_view text, double width, double size) {
  if (text_width(text, size) <= width) return std::string(text);
  std::string out;
  double left = width - text_width(kEllipsis, size);
  for (const std::string_view character : characters_of(text)) {
    left -= text_width(character, size);
    if (left >= 0) out += character;
  }
  return out.append(kEllipsis);
}

std::string decimal_text(double value, std::chars_format format, int decimals) {
  char text[512];  // a double has at most 309 digits before the point
  return {text, std::to_chars(text, text + sizeof text, value, format, decimals).ptr};
}

std::string fixed_text(double value, int decimals) {
  const std::string text = decimal_text(value, std::chars_format::fixed, decimals);
  return text[0] == '-' && text.find_first_not_of("-0.") == std::string::npos ? text.substr(1) : text;
}

SvgCanvas::SvgCanvas(double width, double height, const std::string& title, const std::string& otherwise) {
  const std::string w = pixel_text(std::ceil(width)), h = pixel_text(std::ceil(height));
  out_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + w + "\" height=\"" + h + "\" viewBox=\"0 0 " +
         w + " " + h + "\" font-family=\"" + kFonts + "\">\n<title>" +
         xml_text(title.empty() ? otherwise : title) + "</title>\n<rect width=\"" + w + "\" height=\"" + h +
         "\" fill=\"#fff\"/>\n";
  constexpr double kSize = 16;
  if (title.empty()) return;
  text({width / 2, kBorder / 2 + 14}, fitting_text(title, width - 2 * kBorder, kSize),
       {Anchor::kMiddle, kSize});
}

void SvgCanvas::stroke(const Stroke& stroke) {
  out_ += "\" fill=\"none\" stroke=\"" + stroke.colour + "\" stroke-width=\"" + fixed_text(stroke.width, 2) +
          "\" stroke-linejoin=\"round\"";
  if (!stroke.dashes.empty()) out_ += " stroke-dasharray=\"" + stroke.dashes + "\"";
  out_ += "/>\n";
}

void SvgCanvas::lines(const std::vector<std::pair<Pixel, Pixel>>& lines, const Stroke& style) {
  if (lines.empty()) return;
  out_ += "<path d=\"";
  for (const auto& [from, to] : lines) out_ += "M" + pixel_text(from) + "L" + pixel_text(to);
  stroke(style);
}

void SvgCanvas::path(const std::vector<Pixel>& pixels, const Stroke& style, bool closed) {
  if (pixels.empty()) return;
  out_ += "<path d=\"M";
  for (size_t i = 0; i < pixels.size(); ++i) out_ += (i > 0 ? "L" : "") + pixel_text(pixels[i]);
  if (closed) out_ += "Z";
  stroke(style);
}

// Lines of no length with round ends: a third of the bytes of as many circles.
void SvgCanvas::dots(const std::vector<Pixel>& pixels, double radius, const std::string& colour) {
  if (pixels.empty()) return;
  out_ += "<path stroke-linecap=\"round\" d=\"";
  for (const Pixel& at : pixels) out_ += "M" + pixel_text(at) + "h0";
  stroke({colour, 2 * radius, ""});
}

void SvgCanvas::text(Pixel at, std::string_view text, const TextStyle& style) {
  static const char* const kAnchors[] = {"start", "middle", "end"};
  // Not every viewer knows dominant-baseline; small letters are about 0.7 of the size high with their
  // ascenders.
  const double shift = 0.35 * style.size;
  out_ += "<text ";
  if (style.upwards) {
    out_ += "transform=\"translate(" + pixel_text({at.x + shift, at.y}) + ") rotate(-90)\"";
  } else {
    out_ += "x=\"" + pixel_text(at.x) + "\" y=\"" + pixel_text(at.y + shift) + "\"";
  }
  out_ += " font-size=\"" + pixel_text(style.size) + "\" fill=\"" + style.colour + "\" text-anchor=\"" +
          kAnchors[static_cast<int>(style.anchor)] + "\">" + xml_text(text) + "</text>\n";
}

std::string SvgCanvas::finish() && { return std::move(out_) + "</svg>\n"; }

}  // namespace pointsman
