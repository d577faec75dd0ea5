// Draws a study's effects: A/A and contrasts on one scale, the control, which is far larger, on its
// own with the range that was predicted.
#include "report/study_page.hpp"

#include "report/markup.hpp"
#include "report/members.hpp"
#include "report/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace hebe::report {
namespace {

// As narrow as a phone: words above the marks, numbers beside them.
constexpr double kWidth = 440, kEdge = 10, kLeft = 70, kRight = 254, kLine = 19;
constexpr std::array kQuantities = {"energy", "latency", "power"};
constexpr std::size_t kLongestName = 58;

// Light on paper and in print, whatever the screen has.
constexpr const char* kStyle = R"(<style>
.forest { --ground: #ffffff; --ink: #1c2126; --faint: #5b6570; --grid: #dfe3e7; --zero: #7d8790; --band: #e6dcc3;
 --energy: #0b5394; --latency: #a6470a; --power: #2f6f2f; }
@media screen and (prefers-color-scheme: dark) { .forest { --ground: #161a1e; --ink: #e8eaed; --faint: #a3adb8;
 --grid: #333a41; --zero: #8b95a0; --band: #4a4226; --energy: #7db7f0; --latency: #f2a66a; --power: #8ccf8c; } }
.forest text { fill: var(--ink); font-family: system-ui, sans-serif; font-size: 12px; }
.forest .name { font-weight: 600; } .forest .row { paint-order: stroke; stroke: var(--ground); stroke-width: 5px; } .forest .small { fill: var(--faint); font-size: 11px; }
.forest .number { font-size: 11px; font-variant-numeric: tabular-nums; }
.forest .ground { fill: var(--ground); } .forest .band { fill: var(--band); }
.forest .grid { stroke: var(--grid); } .forest .zero { stroke: var(--zero); }
.forest .energy { fill: var(--energy); stroke: var(--energy); } .forest .latency { fill: var(--latency); stroke: var(--latency); }
.forest .power { fill: var(--power); stroke: var(--power); } .forest .interval { stroke-width: 2; }
</style>
)";

struct Row {
  std::string name;
  const Json* effects;   ///< has energy, latency, power
  const Json* predicted; ///< the same, or null
};

std::vector<Row> rows_of(const Json& study) {
  static const Json kNone;
  std::vector<Row> rows;
  if (const auto& aa = member(study, {"aa"}); aa.is_object())
    rows.push_back({"A/A (nothing differs)", &aa, &kNone});
  if (const auto& contrasts = member(study, {"contrasts"}); contrasts.is_array())
    for (const auto& c : contrasts)
      rows.push_back({fmt::format("{}: {} against {}{}", text(member(c, {"point"})),
                                  text(member(c, {"b"})), text(member(c, {"a"})),
                                  text(member(c, {"role"})) == "primary" ? " (primary)" : ""),
                      &c, &kNone});
  return rows;
}

// From the lowest to the highest end, with 0 between them.
struct Scale {
  double low = 0, high = 0;
  void include(const Json& range) {
    for (const char* end : {"low_percent", "high_percent", "effect_percent"})
      if (const auto v = number(member(range, {end}))) {
        low = std::min(low, *v);
        high = std::max(high, *v);
      }
  }
  [[nodiscard]] double at(double v) const {
    return kLeft + (v - low) / (high - low) * (kRight - kLeft);
  }
};

Scale scale_of(const std::vector<Row>& rows) {
  Scale scale;
  for (const auto& row : rows)
    for (const char* q : kQuantities) {
      scale.include(member(*row.effects, {q}));
      scale.include(member(*row.predicted, {q}));
    }
  const double room = std::max(0.05 * (scale.high - scale.low), 1e-6);
  scale.low -= room;
  scale.high += room;
  return scale;
}

// 1, 2 or 5 times a power of ten, so that at most four labels stand side by side.
double tick_step(double span) {
  double step = std::pow(10, std::floor(std::log10(span)) - 1);
  for (int i = 0; span / step > 4.5; ++i) step *= i % 3 == 1 ? 2.5 : 2;
  return step;
}

class Picture {
public:
  void panel(const std::string& title, const std::vector<Row>& rows) {
    if (rows.empty()) return;
    scale_ = scale_of(rows);
    y_ += 26;
    words(kEdge, y_, "name", title);
    const double top = y_ + 8;
    const auto marks = std::exchange(out_, {}); // the grid lies below them
    y_ += 6;
    for (const auto& row : rows) draw(row);
    const auto drawn = std::exchange(out_, marks);
    grid(top, y_ + 4);
    out_ += drawn;
    y_ += 22;
  }
  [[nodiscard]] std::string finished(const std::string& name) const {
    const auto shown = escaped(name);
    return fmt::format(R"(<svg xmlns="http://www.w3.org/2000/svg" class="forest" role="img" )"
                       R"(viewBox="0 0 {0} {1}" width="{0}" height="{1}"><title>{2}</title>{3})"
                       R"(<rect class="ground" width="{0}" height="{1}"/>{4}</svg>)",
                       kWidth, y_ + 12, shown, kStyle, out_) +
           "\n";
  }

private:
  void words(double x, double y, const char* kind, const std::string& content,
             const char* anchor = "start") {
    out_ +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n",
                    x, y, kind, anchor, escaped(content));
  }

  void grid(double top, double bottom) {
    const double step = tick_step(scale_.high - scale_.low);
    for (double i = std::ceil(scale_.low / step); i * step <= scale_.high; ++i) {
      const double x = scale_.at(i * step);
      out_ += fmt::format(R"(<line class="{}" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>)",
                          i == 0 ? "zero" : "grid", x, x, top, bottom);
      words(x, bottom + 14, "small",
            i == 0 ? "0" : fmt::format("{}{:.6g} %", i < 0 ? "\u2212" : "+", std::abs(i * step)),
            "middle");
    }
  }

  void draw(const Row& row) {
    y_ += kLine + 4;
    out_ += "<g><title>" + escaped(row.name) + "</title>";
    words(kEdge, y_, "row", shortened(row.name, kLongestName));
    for (const char* quantity : kQuantities)
      if (const auto& effect = member(*row.effects, {quantity});
          !effect.is_null() || row.effects->contains(quantity))
        effect_line(quantity, effect, member(*row.predicted, {quantity}));
    out_ += "</g>\n";
  }

  void effect_line(const char* quantity, const Json& effect, const Json& predicted) {
    y_ += kLine;
    const double middle = y_ - 4;
    words(kEdge + 10, y_, "small", quantity);
    band(predicted, middle);
    const auto shown = effect_text(effect);
    if (!shown) return words(kWidth - kEdge, y_, "number", "not known", "end");
    words(kWidth - kEdge, y_, "number", shown->effect + " " + shown->interval, "end");
    const double x = scale_.at(*number(member(effect, {"effect_percent"})));
    out_ += fmt::format(
        R"(<line class="{} interval" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>)", quantity,
        scale_.at(*number(member(effect, {"low_percent"}))),
        scale_.at(*number(member(effect, {"high_percent"}))), middle, middle);
    mark(quantity, x, middle);
  }

  // A shape a quantity, for whom colours do not tell.
  void mark(std::string_view quantity, double x, double y) {
    if (quantity == "energy")
      out_ += fmt::format(R"(<circle class="energy" cx="{:.1f}" cy="{:.1f}" r="3.6"/>)", x, y);
    else if (quantity == "latency")
      out_ += fmt::format(R"(<rect class="latency" x="{:.1f}" y="{:.1f}" width="6" height="6"/>)",
                          x - 3, y - 3);
    else
      out_ += fmt::format(R"(<path class="power" d="M{:.1f} {:.1f}l4 4l-4 4l-4 -4z"/>)", x, y - 4);
  }

  void band(const Json& predicted, double y) {
    const auto low = number(member(predicted, {"low_percent"}));
    const auto high = number(member(predicted, {"high_percent"}));
    if (!low || !high) return;
    out_ += fmt::format(R"(<rect class="band" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="12"/>)",
                        scale_.at(*low), y - 6, scale_.at(*high) - scale_.at(*low));
  }

  Scale scale_;
  double y_ = 0;
  std::string out_;
};

} // namespace

std::string study_svg(const Json& study) {
  Picture picture;
  picture.panel("Effect of B against A, with 95 % intervals", rows_of(study));
  if (const auto& control = member(study, {"control"}); control.is_object())
    picture.panel("Control; shaded: what was predicted",
                  {{"extra traffic against none", &control, &member(control, {"predicted"})}});
  return picture.finished("Effects of study " + text(member(study, {"study", "name"})));
}

} // namespace hebe::report
