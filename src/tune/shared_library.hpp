// A vendor's library, found and loaded at run time. In: a file that was named, or names to look for
// and the folders of the caller; out: the library with its file and digest. Invariant: a file that
// was named is never replaced by another; what is not there is a refusal with every try's reason;
// nothing is ever unloaded, for the libraries leave threads and handlers behind.
#pragma once

#include "core/result.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace hebe::tune {

struct LibrarySearch {
  std::filesystem::path file;                 ///< given: this one or none
  std::vector<std::string> names;             ///< "libcublasLt.so.13", as the loader looks for them
  std::vector<std::filesystem::path> folders; ///< tried after the loader's own path, in this order
};

class SharedLibrary {
public:
  /// toolchain_unavailable: none of them loads.
  [[nodiscard]] static Result<SharedLibrary> open(const LibrarySearch& search);
  /// The address of a symbol, or null.
  [[nodiscard]] void* symbol(const char* name) const;
  /// Where the loader found it, links followed.
  [[nodiscard]] const std::filesystem::path& file() const { return file_; }

private:
  SharedLibrary(void* handle, std::filesystem::path file)
      : handle_(handle), file_(std::move(file)) {}
  void* handle_ = nullptr;
  std::filesystem::path file_;
};

} // namespace hebe::tune
