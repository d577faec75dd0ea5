// Draws a ladder's response: runs with their intervals, the line, and the residuals below. In: JSON
// of schema hebe.analysis.ladder/1; out: SVG with no reference to anything outside itself.
#include "evidence/ladder_analysis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hebe::evidence {
namespace {

constexpr double kLeft = 84, kRight = 860, kTop = 84, kBottom = 400, kResidualTop = 456,
                 kResidualBottom = 566;
constexpr const char* kEnergy = "#0b5394";
constexpr const char* kLatency = "#b45f06";

// A round step that cuts `span` into about five.
double step_of(double span) {
  const double rough = span / 5, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double m : {1.0, 2.0, 5.0})
    if (rough <= 1.3 * m * power) return m * power;
  return 10 * power;
}

struct Axis {
  double from, to, low, high; ///< pixels, values
  [[nodiscard]] double at(double v) const { return from + (v - low) / (high - low) * (to - from); }
};

class Plot {
public:
  explicit Plot(const Json& ladder) : ladder_(ladder) {
    double most = 0, low = 0, high = 0, worst = 1e-9;
    for (const auto& p : ladder.at("points")) {
      most = std::max(most, p.at("fraction").get<double>());
      for (const char* q : {"energy", "latency"}) {
        low = std::min(low, p.at(q).at("effect_percent").get<double>());
        high = std::max(high, p.at(q).at("effect_percent").get<double>());
      }
    }
    for (const char* q : {"energy", "latency"})
      for (const double r : ladder.at(q).at("residuals_percent"))
        worst = std::max(worst, std::abs(r));
    const double room = 0.08 * std::max(high - low, 1e-9);
    x_ = {kLeft, kRight, -0.03 * most, 1.03 * most};
    y_ = {kBottom, kTop, low - room, high + room};
    residual_ = {kResidualBottom, kResidualTop, -1.2 * worst, 1.2 * worst};
  }

  std::string draw() {
    out_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 900 640\" width=\"900\" "
           "height=\"640\" font-family=\"sans-serif\" font-size=\"14\">\n"
           "<rect width=\"900\" height=\"640\" fill=\"white\"/>\n";
    title();
    grid(y_, kTop, kBottom, "%", "effect of the extra traffic");
    grid(residual_, kResidualTop, kResidualBottom, "%", "residuals");
    series("latency", kLatency, 4);
    series("energy", kEnergy, -4);
    text(0.5 * (kLeft + kRight), 622, "extra memory traffic, % of the plain traffic", "middle", 14);
    return out_ + "</svg>\n";
  }

private:
  void text(double x, double y, const std::string& words, const char* anchor, int size,
            const char* colour = "#222", const char* extra = "") {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\" "
                        "fill=\"{}\"{}>{}</text>\n",
                        x, y, anchor, size, colour, extra, words);
  }
  void line(double x1, double y1, double x2, double y2, const char* colour, double width) {
    out_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" "
                        "stroke=\"{}\" stroke-width=\"{}\"/>\n",
                        x1, y1, x2, y2, colour, width);
  }

  void title() {
    text(kLeft, 26,
         fmt::format("Control ladder, {} runs ({}, {})", ladder_.at("points").size(),
                     ladder_.at("provenance").get<std::string>(),
                     ladder_.at("label").get<std::string>()),
         "start", 17);
    double y = 48;
    for (const auto& [q, colour] : {std::pair("energy", kEnergy), std::pair("latency", kLatency)}) {
      const auto& r = ladder_.at(q);
      text(kLeft, y,
           fmt::format("{}: {:.2f} ± {:.2f} % per 100 % extra, intercept {:+.3f} %, R² {}", q,
                       r.at("slope_percent_per_100_percent").get<double>(),
                       r.at("slope_standard_error").get<double>(),
                       r.at("intercept_percent").get<double>(),
                       r.at("r_squared").is_null()
                           ? std::string("-")
                           : fmt::format("{:.6f}", r.at("r_squared").get<double>())),
           "start", 14, colour);
      y += 19;
    }
  }

  void grid(const Axis& axis, double top, double bottom, const char* unit, const char* name) {
    const double step = step_of(axis.high - axis.low);
    for (double v = std::ceil(axis.low / step) * step; v <= axis.high; v += step) {
      const double value = std::abs(v) < step / 1e6 ? 0 : v;
      line(kLeft, axis.at(value), kRight, axis.at(value), value == 0 ? "#888" : "#e2e2e2", 1);
      text(kLeft - 8, axis.at(value) + 5, fmt::format("{:.6g} {}", value, unit), "end", 12);
    }
    const double across = step_of(x_.high - x_.low);
    for (double v = 0; v <= x_.high; v += across) {
      line(x_.at(v), top, x_.at(v), bottom, "#e2e2e2", 1);
      text(x_.at(v), bottom + 17, fmt::format("{:.6g}", 100 * v), "middle", 12);
    }
    text(18, 0.5 * (top + bottom), name, "middle", 13, "#222",
         fmt::format(" transform=\"rotate(-90 18 {:.1f})\"", 0.5 * (top + bottom)).c_str());
  }

  void series(const char* quantity, const char* colour, double aside) {
    const auto& r = ladder_.at(quantity);
    const double slope = r.at("slope_percent_per_100_percent"), base = r.at("intercept_percent");
    const double end = x_.high / 1.03;
    line(x_.at(0), y_.at(base), x_.at(end), y_.at(base + slope * end), colour, 1.5);
    std::size_t i = 0;
    for (const auto& p : ladder_.at("points")) {
      const double x = x_.at(p.at("fraction")) + aside;
      const auto& e = p.at(quantity);
      const auto clamp = [&](double v) { return std::clamp(v, y_.low, y_.high); };
      line(x, y_.at(clamp(e.at("low_percent"))), x, y_.at(clamp(e.at("high_percent"))), colour, 1);
      for (const double y : {y_.at(e.at("effect_percent")),
                             residual_.at(r.at("residuals_percent").at(i).get<double>())})
        out_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\" "
                            "fill-opacity=\"0.75\"/>\n",
                            x, y, colour);
      ++i;
    }
  }

  const Json& ladder_;
  Axis x_{}, y_{}, residual_{};
  std::string out_;
};

} // namespace

std::string ladder_plot(const Json& ladder) { return Plot(ladder).draw(); }

} // namespace hebe::evidence
