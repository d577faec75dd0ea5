#include "core/crash_point.hpp"

namespace hebe {
namespace {
CrashPointListener& listener() {
  static CrashPointListener l;
  return l;
}
} // namespace

void crash_point(std::string_view name) {
  if (listener()) listener()(name);
}

void listen_at_crash_points(CrashPointListener l) { listener() = std::move(l); }

} // namespace hebe
