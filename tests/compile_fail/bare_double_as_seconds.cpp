// A bare number has no unit: saying which is the caller's duty.
#include "core/units.hpp"

double rounded(hebe::Seconds s) { return s.value(); }

int main() {
#ifdef TWIN
  return static_cast<int>(rounded(hebe::Seconds(0.5)));
#else
  return static_cast<int>(rounded(0.5));
#endif
}
