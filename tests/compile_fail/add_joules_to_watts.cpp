// Joules and watts do not add up.
#include "core/units.hpp"

int main() {
  const hebe::Joules energy(2);
#ifdef TWIN
  const hebe::Joules other(3);
#else
  const hebe::Watts other(3);
#endif
  return static_cast<int>((energy + other).value());
}
