// Values of two units have no order.
#include "core/units.hpp"

int main() {
  const hebe::Seconds duration(1);
#ifdef TWIN
  return duration < hebe::Seconds(2) ? 0 : 1;
#else
  return duration < hebe::Joules(2) ? 0 : 1;
#endif
}
