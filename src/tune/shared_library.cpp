#include "tune/shared_library.hpp"

#include <dlfcn.h>
#include <link.h>

namespace hebe::tune {
namespace fs = std::filesystem;
namespace {

fs::path file_of(void* handle) {
  link_map* map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return {};
  std::error_code ec;
  auto file = fs::canonical(map->l_name, ec);
  return ec ? fs::path(map->l_name) : file;
}

} // namespace

Result<SharedLibrary> SharedLibrary::open(const LibrarySearch& search) {
  std::vector<fs::path> tries;
  if (!search.file.empty()) {
    tries.push_back(search.file);
  } else {
    for (const auto& name : search.names) tries.emplace_back(name);
    for (const auto& folder : search.folders)
      for (const auto& name : search.names) tries.push_back(folder / name);
  }
  std::string why;
  for (const auto& file : tries) {
    if (void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr)
      return SharedLibrary(handle, file_of(handle));
    const char* text = ::dlerror();
    why += (why.empty() ? "" : "; ") + std::string(text != nullptr ? text : "no reason was given");
  }
  return refuse(RefusalCode::toolchain_unavailable, "the library could not be loaded: " + why,
                "install it, or name its file (library = \"…\")",
                tries.empty() ? std::string() : tries.front().string());
}

void* SharedLibrary::symbol(const char* name) const { return ::dlsym(handle_, name); }

} // namespace hebe::tune
