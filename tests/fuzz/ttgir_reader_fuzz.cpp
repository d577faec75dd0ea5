// Fuzz target of the reader. In: any bytes; out: nothing. Invariants that end the run: no crash, no
// hang, no leak; what is read prints as the same bytes; what its structure prints is read again
// and, where nothing is carried, then prints the same.
#include "ttgir/printer.hpp"
#include "ttgir/reader.hpp"
#include "ttgir/verify.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hebe::ttgir;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const bool carry = size % 2 == 0; // both ways, an input each
  const auto wrong = [](const char* what) {
    std::fprintf(stderr, "fuzz: %s\n", what);
    std::abort();
  };
  const auto module = read_module(text, {carry, "fuzz"});
  if (!module) return 0;
  if (print(**module) != text) wrong("an untouched module printed other bytes");
  (void)verify(**module);
  const auto structure = print_structure(**module);
  const auto again = read_module(structure, {carry, "fuzz"});
  if (!again) {
    std::fprintf(stderr, "%s\n%s\n", to_text(again.error()).c_str(), structure.c_str());
    wrong("what was printed cannot be read");
  }
  // Carried text may be understood once it stands alone, and is then printed in its own syntax.
  if (!carry && print_structure(**again) != structure) wrong("printing is not stable");
  return 0;
}
