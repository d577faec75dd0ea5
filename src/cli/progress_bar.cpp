#include "cli/progress_bar.hpp"

#include "cli/context.hpp"

#include <fmt/format.h>

#include <cstdio>

#include <unistd.h>

namespace hebe::cli {

ProgressBar::ProgressBar(bool quiet) : quiet_(quiet), terminal_(::isatty(2) == 1) {}
ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::clear() {
  if (drawn_) tell("\r\x1b[K");
  drawn_ = false;
}

void ProgressBar::line(const std::string& text) {
  if (quiet_) return;
  clear();
  tell(text + "\n");
}

void ProgressBar::show(const measure::Progress& p) {
  if (quiet_) return;
  if (!p.text.empty()) line(p.text);
  const auto now = std::chrono::steady_clock::now();
  const auto pause = terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(15'000);
  if (now - last_ < pause) return;
  last_ = now;
  const auto left = static_cast<long>(p.left.value() + 0.5);
  if (!terminal_) {
    tell(fmt::format("{}: {:.0f} %, {} s left\n", p.stage, 100 * p.done, left));
    return;
  }
  constexpr int kWidth = 32;
  const int full = static_cast<int>(p.done * kWidth);
  tell(fmt::format("\r\x1b[K{:<8} [{:=<{}}{:<{}}] {:3.0f} %  {}:{:02} left", p.stage, "", full, "",
                   kWidth - full, 100 * p.done, left / 60, left % 60));
  std::fflush(stderr);
  drawn_ = true;
}

} // namespace hebe::cli
