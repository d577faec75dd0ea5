#include "cli/case_name.hpp"

#include <algorithm>

namespace hebe::cli {

Result<kernel::CaseRequest> case_named(const Context& c, const std::string& name,
                                       const std::filesystem::path& base) {
  kernel::CaseRequest r;
  std::string file = name;
  if (const auto colon = name.rfind(':'); colon != std::string::npos) {
    r.function = name.substr(colon + 1);
    file = name.substr(0, colon);
  }
  if (file.find('/') == std::string::npos && !file.ends_with(".py")) {
    std::replace(file.begin(), file.end(), '-', '_');
    r.file = c.home() / "kernels" / (file + ".py");
  } else {
    r.file = (base / file).lexically_normal();
  }
  std::error_code ec;
  if (std::filesystem::is_regular_file(r.file, ec)) return r;
  std::string known;
  for (const auto& entry : std::filesystem::directory_iterator(c.home() / "kernels", ec))
    if (entry.path().extension() == ".py")
      known += (known.empty() ? "" : ", ") + entry.path().stem().string();
  std::replace(known.begin(), known.end(), '_', '-');
  return refuse(RefusalCode::case_not_found, "no case \"" + name + "\"",
                "cases here: " + known + "; or give a file.py[:function]", r.file.string());
}

} // namespace hebe::cli
