#include "report/markup.hpp"

#include <fmt/format.h>

namespace hebe::report {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; } // UTF-8

} // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7F)
      out += "\uFFFD";
    else if (const auto three = text.substr(i, 3);
             three == "\xEF\xBF\xBE" || three == "\xEF\xBF\xBF")
      out += "\uFFFD", i += 2; // U+FFFE and U+FFFF are no characters of XML
    else
      out += text[i];
  }
  return out;
}

std::string shortened(std::string_view text, std::size_t characters) {
  std::size_t count = 0, last = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (continues(text[i])) continue;
    if (++count == characters) last = i;
    if (count > characters) return std::string(text.substr(0, last)) + "\u2026";
  }
  return std::string(text);
}

std::string unknown(std::string_view why) {
  return element("span", why.empty() ? "not known" : fmt::format("not known ({})", escaped(why)),
                 R"(class="unknown")");
}

std::string element(std::string_view tag, std::string_view body, std::string_view attributes) {
  return fmt::format("<{}{}{}>{}</{}>", tag, attributes.empty() ? "" : " ", attributes, body, tag);
}

} // namespace hebe::report
