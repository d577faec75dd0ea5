// A Result that nobody looks at is a failure that nobody hears of.
#include "core/files.hpp"

int main() {
#ifdef TWIN
  return hebe::read_file("plan.json") ? 0 : 1;
#else
  hebe::read_file("plan.json");
#endif
}
