#include "measure/response_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hebe::measure {
namespace {

constexpr double kWidth = 960, kHeight = 400;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

/// A frame with axes; data coordinates to picture coordinates.
struct Panel {
  double left, top, width, height, x0, x1, y0, y1;
  bool log_x = false;
  [[nodiscard]] double x(double v) const {
    const double share = log_x ? std::log(v / x0) / std::log(x1 / x0) : (v - x0) / (x1 - x0);
    return left + width * share;
  }
  [[nodiscard]] double y(double v) const {
    return top + height * (1 - (std::clamp(v, y0, y1) - y0) / (y1 - y0));
  }
  [[nodiscard]] std::string frame(const std::string& title, const std::string& x_label,
                                  const std::string& y_label) const {
    return fmt::format(
        R"(<rect x="{}" y="{}" width="{}" height="{}" fill="none" stroke="#888"/>)"
        R"(<text x="{}" y="{}" font-weight="bold">{}</text>)"
        R"(<text x="{}" y="{}" text-anchor="middle">{}</text>)"
        R"svg(<text transform="translate({},{}) rotate(-90)" text-anchor="middle">{}</text>)svg",
        left, top, width, height, left, top - 10, title, left + width / 2, top + height + 38,
        x_label, left - 52, top + height / 2, y_label);
  }
  [[nodiscard]] std::string x_tick(double v, const std::string& label) const {
    return fmt::format(R"(<line x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}" stroke="#ddd"/>)"
                       R"(<text x="{0:.1f}" y="{3}" text-anchor="middle">{4}</text>)",
                       x(v), top, top + height, top + height + 18, label);
  }
  [[nodiscard]] std::string y_tick(double v, const std::string& label) const {
    return fmt::format(R"(<line y1="{0:.1f}" y2="{0:.1f}" x1="{1}" x2="{2}" stroke="#ddd"/>)"
                       R"(<text x="{3}" y="{4:.1f}" text-anchor="end">{5}</text>)",
                       y(v), left, left + width, left - 6, y(v) + 4, label);
  }
};

std::string dots(const Panel& p, const Step& s, const char* colour, bool falling) {
  std::string out = fmt::format(R"(<g fill="{}" fill-opacity="0.45">)", colour);
  const std::size_t stride = std::max<std::size_t>(1, s.points.size() / 700);
  for (std::size_t i = 0; i < s.points.size(); i += stride) {
    const auto& d = s.points[i];
    if (d.t_s < p.x0 || d.t_s > p.x1) continue;
    out += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="2"/>)", p.x(d.t_s),
                       p.y(falling ? 1 - d.level : d.level));
  }
  return out + "</g>";
}

std::string step_panel(const SourceResponse& s) {
  const auto& f = *s.fit;
  Panel p{70, 70, 370, 250, -0.02, std::max(0.12, 1.6 * (f.delay_s + f.window_s)), -0.05, 1.1};
  std::string out;
  const double tick = p.x1 > 0.3 ? 0.1 : 0.02;
  for (double t = 0; t <= p.x1; t += tick) out += p.x_tick(t, fmt::format("{:.0f}", 1e3 * t));
  for (const double v : {0.0, 0.5, 1.0}) out += p.y_tick(v, fmt::format("{:.0f} %", 100 * v));
  out += dots(p, s.on, "#1f77b4", false) + dots(p, s.off, "#d62728", true);
  for (const bool falling : {false, true}) {
    const double a = falling ? 1 : 0, b = 1 - a;
    out += fmt::format(
        R"(<polyline fill="none" stroke="#000" stroke-width="1.5" points="{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}"/>)",
        p.x(p.x0), p.y(a), p.x(f.delay_s), p.y(a), p.x(f.delay_s + f.window_s), p.y(b), p.x(p.x1),
        p.y(b));
  }
  out += p.frame("Steps: seen after the edge", "ms since the edge", "share of the step");
  const double x = p.left + p.width - 8;
  const auto note = [&](int line, const std::string& text, const char* colour) {
    out += fmt::format(R"(<text x="{}" y="{}" text-anchor="end" fill="{}">{}</text>)", x,
                       p.top + p.height / 2 - 22 + 17 * line, colour, text);
  };
  note(0, "on", "#1f77b4");
  note(1, "off", "#d62728");
  note(2, fmt::format("fit: delay {:.1f} ms, window {:.1f} ms", 1e3 * f.delay_s, 1e3 * f.window_s),
       "#000");
  return out;
}

std::string aliasing_panel(const Response& r) {
  Panel p{550, 70, 370, 250, 0.018, 1.1, 0, 1.2, true};
  std::string out;
  for (const double t : {0.02, 0.05, 0.1, 0.2, 0.5, 1.0})
    out += p.x_tick(t, fmt::format("{:.0f}", 1e3 * t));
  for (const double v : {0.0, 0.5, 1.0}) out += p.y_tick(v, fmt::format("{:.0f} %", 100 * v));
  constexpr const char* kColours[] = {"#1f77b4", "#2ca02c", "#9467bd", "#8c564b", "#e377c2"};
  std::size_t colour = 0;
  for (const auto& s : r.sources) {
    if (!s.fit || s.aliasing.empty() || colour >= std::size(kColours)) continue;
    const char* c = kColours[colour];
    std::string curve;
    for (double t = p.x0; t <= p.x1; t *= 1.015) {
      const double x = std::numbers::pi * s.fit->window_s / t;
      curve += fmt::format("{:.1f},{:.1f} ", p.x(t), p.y(std::abs(std::sin(x) / x)));
    }
    out += fmt::format(R"(<polyline fill="none" stroke="{}" stroke-opacity="0.6" points="{}"/>)", c,
                       curve);
    for (const auto& a : s.aliasing) {
      if (a.duty != 0.5) continue;
      out +=
          a.aliases
              ? fmt::format(
                    R"(<path d="M{0:.1f} {1:.1f}l8 8m0 -8l-8 8" stroke="{2}" stroke-width="2"/>)",
                    p.x(a.period_s) - 4, p.y(a.apparent_ratio) - 4, c)
              : fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="3.5" fill="{}"/>)",
                            p.x(a.period_s), p.y(a.seen_ratio), c);
    }
    out += fmt::format(R"(<text x="{}" y="{}" fill="{}">{}</text>)",
                       70 + 300 * static_cast<double>(colour % 3),
                       kHeight - 22 + 18 * static_cast<double>(colour / 3), c, escaped(s.name));
    ++colour;
  }
  return out + p.frame("Square waves: seen (dot), alias (cross), box filter (line)",
                       "ms, period of the load", "share of the load's amplitude");
}

} // namespace

std::string response_svg(const Response& r, const std::string& title) {
  std::string body = fmt::format(
      R"(<text x="20" y="28" font-size="16" font-weight="bold">{}</text>)", escaped(title));
  const auto primary = std::find_if(r.sources.begin(), r.sources.end(),
                                    [&](auto& s) { return s.name == r.primary; });
  if (primary == r.sources.end())
    body += fmt::format(R"(<text x="20" y="60">{}</text>)", escaped(r.refusal));
  else
    body += step_panel(*primary);
  body += aliasing_panel(r);
  return fmt::format(
             R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}" )"
             R"(font-family="sans-serif" font-size="12"><rect width="{0}" height="{1}" fill="#fff"/>{2}</svg>)",
             kWidth, kHeight, body) +
         "\n";
}

} // namespace hebe::measure
