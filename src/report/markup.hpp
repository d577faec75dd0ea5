// Text as markup. In: text that users wrote; out: XML and HTML that shows it. Invariant: nothing in
// it is taken for a tag, an attribute's end or an entity, and characters that XML forbids are
// replaced.
#pragma once

#include <string>
#include <string_view>

namespace hebe::report {

[[nodiscard]] std::string escaped(std::string_view text);
/// At most `characters` of it, with an ellipsis in place of the rest; not escaped.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t characters);
/// "not known" with the reason; the reason is escaped here.
[[nodiscard]] std::string unknown(std::string_view why);
/// <tag attributes>body</tag>; `body` is markup.
[[nodiscard]] std::string element(std::string_view tag, std::string_view body,
                                  std::string_view attributes = {});

} // namespace hebe::report
