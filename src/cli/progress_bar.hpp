// Progress on stderr: a bar with the time left on a terminal, a line now and then elsewhere.
#pragma once

#include "measure/experiment.hpp"

#include <chrono>

namespace hebe::cli {

class ProgressBar {
public:
  explicit ProgressBar(bool quiet);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  void show(const measure::Progress& progress);
  void line(const std::string& text); ///< above the bar
  void finish() { clear(); }          ///< before results are printed

private:
  void clear();
  bool quiet_, terminal_, drawn_ = false;
  std::chrono::steady_clock::time_point last_{};
};

} // namespace hebe::cli
