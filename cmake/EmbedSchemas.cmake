# schemas/*.json -> core/embedded_schemas.hpp, so that one binary checks what it reads.
file(GLOB files CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/schemas/*.json")
set(rows "")
foreach(file ${files})
  file(READ "${file}" text)
  string(JSON id GET "${text}" "$id")
  string(APPEND rows "    {\"${id}\", R\"hebe_schema(${text})hebe_schema\"},\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
endforeach()
file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/generated/core/embedded_schemas.hpp" CONTENT
"// Generated from schemas/*.json.
#pragma once
#include <span>
#include <string_view>
#include <utility>
namespace hebe {
inline std::span<const std::pair<std::string_view, std::string_view>> embedded_schemas() {
  static constexpr std::pair<std::string_view, std::string_view> kAll[] = {
@rows@  };
  return kAll;
}
} // namespace hebe
" @ONLY)
