// The same for a Status, which has no value to miss.
#include "core/files.hpp"

int main() {
#ifdef TWIN
  return hebe::sync_directory("runs") ? 0 : 1;
#else
  hebe::sync_directory("runs");
#endif
}
