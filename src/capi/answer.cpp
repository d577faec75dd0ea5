#include "capi/answer.hpp"

#include <cstdlib>
#include <cstring>
#include <exception>

namespace hebe::capi {
namespace {

// malloc, as the caller frees it through hebe_free.
void give(char** out, const Json& value) {
  if (out == nullptr) return;
  const auto text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  *out = static_cast<char*>(std::malloc(text.size() + 1));
  if (*out != nullptr) std::memcpy(*out, text.c_str(), text.size() + 1);
}

Answer refused(const Refusal& refusal) {
  return {{{"refused", refusal_json(refusal)}}, static_cast<int>(exit_code_of(refusal.code))};
}

int answer_refusal(char** out, const Refusal& refusal) noexcept {
  try {
    const auto said = refused(refusal);
    give(out, said.json);
    return said.exit_code;
  } catch (...) { // no memory: the exit code alone
    return static_cast<int>(exit_code_of(refusal.code));
  }
}

} // namespace

Json refusal_json(const Refusal& r) {
  return {{"code", name_of(r.code)},
          {"what", r.what},
          {"where", r.where},
          {"next", r.next},
          {"not_written", r.not_written},
          {"exit", static_cast<int>(exit_code_of(r.code))}};
}

int answer(const char* request, char** out,
           const std::function<Result<Answer>(const Json& request)>& make) noexcept {
  if (out != nullptr) *out = nullptr;
  try {
    const auto made = [&]() -> Result<Answer> {
      HEBE_TRY(const auto json, parse_json(request == nullptr ? "" : request, "request"));
      if (!json.is_object())
        return refuse(RefusalCode::bad_argument, "the request is no JSON object", {}, "request");
      return make(json);
    };
    auto done = made();
    const auto said = done ? *std::move(done) : refused(done.error());
    give(out, said.json);
    return said.exit_code;
  } catch (const Json::exception& e) { // a member of another type than it must have
    return answer_refusal(out, {RefusalCode::bad_argument, e.what(), "request", {}, {}});
  } catch (const std::exception& e) {
    return answer_refusal(out, {RefusalCode::internal, e.what(), {}, "please report it", {}});
  } catch (...) {
    return static_cast<int>(ExitCode::bug);
  }
}

} // namespace hebe::capi
