#include "capi/request.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <limits>
#include <utility>

namespace hebe::capi {
namespace {

template <class T> constexpr bool kIsList = false;
template <class T> constexpr bool kIsList<std::vector<T>> = true;

// What a member must be; and whether it is that, to the last digit: nlohmann's get() cuts 2.5 to 2
// and turns -3 into 4294967293.
template <class T> std::string wanted() {
  if constexpr (kIsList<T>)
    return "a list, each " + wanted<typename T::value_type>();
  else if constexpr (std::is_integral_v<T>)
    return fmt::format("a whole number from {} to {}", std::numeric_limits<T>::min(),
                       std::numeric_limits<T>::max());
  else if constexpr (std::is_floating_point_v<T>)
    return "a number";
  else
    return "a text";
}

template <class T> bool holds(const Json& json) {
  if constexpr (kIsList<T>) {
    return json.is_array() &&
           std::ranges::all_of(json, [](auto& e) { return holds<typename T::value_type>(e); });
  } else if constexpr (std::is_integral_v<T>) {
    if (json.is_number_unsigned()) return std::in_range<T>(json.get<std::uint64_t>());
    return json.is_number_integer() && std::in_range<T>(json.get<std::int64_t>());
  } else if constexpr (std::is_floating_point_v<T>) {
    return json.is_number() && std::isfinite(json.get<double>());
  } else {
    return json.is_string();
  }
}

// By name where it is not what is wanted.
template <class T> Result<T> value_of(const Json& request, const char* name, T otherwise) {
  const auto found = request.find(name);
  if (found == request.end() || found->is_null()) return otherwise;
  if (holds<T>(*found)) return found->get<T>();
  const auto shown = found->dump(-1, ' ', false, Json::error_handler_t::replace);
  return refuse(RefusalCode::bad_argument, fmt::format("\"{}\" cannot be {}", name, shown),
                "give " + wanted<T>(), name);
}

// Of a room that does not know which member it was.
template <class T> Result<T> named(const char* name, Result<T> value) {
  if (!value && value.error().where.empty()) value.error().where = name;
  return value;
}

// A text, for JSON numbers hold 53 bits.
Result<std::optional<std::uint64_t>> seed_of(const Json& request) {
  HEBE_TRY(const auto text, value_of(request, "seed", std::string()));
  if (text.empty()) return std::nullopt;
  std::uint64_t seed = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (ec != std::errc{} || end != text.data() + text.size())
    return refuse(RefusalCode::bad_argument, "\"" + text + "\" is no seed",
                  "give a whole number from 0 to 2^64 - 1", "seed");
  return seed;
}

// Absent or null: not known. An empty text is none: it would be checked against nothing.
Result<std::optional<std::string>> text_or_none(const Json& request, const char* name) {
  if (!request.contains(name) || request.at(name).is_null()) return std::nullopt;
  HEBE_TRY(auto text, value_of(request, name, std::string()));
  if (!text.empty()) return text;
  return refuse(RefusalCode::bad_argument, fmt::format("\"{}\" is empty", name),
                "give its name, or leave it out: it is not checked then", name);
}

} // namespace

Status only_members(const Json& request, std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : request.items())
    if (std::find(known.begin(), known.end(), name) == known.end())
      return refuse(RefusalCode::bad_argument, "a request has no \"" + name + "\"",
                    "see docs/python.md", name);
  return {};
}

Result<campaign::MachineRequest> machine_of(const Json& request) {
  campaign::MachineRequest m;
  HEBE_TRY(m.selector, value_of(request, "device", std::string("auto")));
  HEBE_TRY(const auto faults, value_of(request, "faults", std::vector<std::string>()));
  for (const auto& text : faults) {
    HEBE_TRY(const auto fault, named("faults", gpu::fault_from(text)));
    m.faults.push_back(fault);
  }
  if (request.contains("stream") && !request.at("stream").is_null()) {
    HEBE_TRY(const auto handle, value_of(request, "stream", std::uint64_t{0}));
    m.stream = reinterpret_cast<void*>(static_cast<std::uintptr_t>(handle));
  }
  return m;
}

Result<evidence::DataRoot> data_root_of(const Json& request) {
  HEBE_TRY(const auto path, value_of(request, "data_root", std::string()));
  if (path.empty())
    return refuse(RefusalCode::bad_argument, "no data root was given", {}, "data_root");
  return evidence::DataRoot(std::filesystem::absolute(path));
}

Result<campaign::CallableRequest> callables_of(const Json& request) {
  campaign::CallableRequest r;
  HEBE_TRY(r.machine, machine_of(request));
  HEBE_TRY(const auto tier, value_of(request, "tier", std::string("smoke-v1")));
  HEBE_TRY(r.tier, named("tier", measure::tier_named(tier)));
  HEBE_TRY(r.pairs, value_of(request, "pairs", r.tier.min_pairs));
  HEBE_TRY(const auto window, value_of(request, "window_s", r.tier.min_window.value()));
  HEBE_TRY(const auto warm_up, value_of(request, "warm_up_s", r.tier.min_warm_up.value()));
  HEBE_TRY(const auto idle, value_of(request, "idle_s", 0.0));
  if (!(idle >= 0 && idle <= 600))
    return refuse(RefusalCode::bad_argument, fmt::format("an idle window of {} s", idle),
                  "give 0 (none) to 600 s", "idle_s");
  r.window = Seconds(window);
  r.warm_up = Seconds(warm_up);
  r.idle = Seconds(idle);
  HEBE_TRY(r.seed, seed_of(request));
  HEBE_TRY(r.margins.energy_percent,
           value_of(request, "energy_margin_percent", r.margins.energy_percent));
  HEBE_TRY(r.margins.latency_percent,
           value_of(request, "latency_margin_percent", r.margins.latency_percent));
  HEBE_TRY(const auto calls,
           value_of(request, "calls_per_enqueue", std::vector<std::uint32_t>{1, 1}));
  if (calls.size() != 2 || calls[0] == 0 || calls[1] == 0)
    return refuse(RefusalCode::bad_argument, "two arms have two numbers of calls, each above 0", {},
                  "calls_per_enqueue");
  for (std::size_t a = 0; a < 2; ++a) r.arms[a].launches_per_call = calls[a];
  return r;
}

Result<std::string> file_of(const Json& request) {
  HEBE_TRY(auto file, text_or_none(request, "file"));
  if (file) return *std::move(file);
  return refuse(RefusalCode::bad_argument, "no file was given", {}, "file");
}

Result<tune::PlacementNow> placement_now_of(const Json& request) {
  tune::PlacementNow now;
  HEBE_TRY(now.cpu, text_or_none(request, "cpu"));
  HEBE_TRY(now.gpu.board, text_or_none(request, "board"));
  HEBE_TRY(now.gpu.board_uuid, text_or_none(request, "board_uuid"));
  HEBE_TRY(now.gpu.driver, text_or_none(request, "driver"));
  HEBE_TRY(now.gpu.os, text_or_none(request, "os"));
  HEBE_TRY(now.gpu.hebe, text_or_none(request, "hebe"));
  HEBE_TRY(now.gpu.triton, text_or_none(request, "triton"));
  if (request.contains("days") && !request.at("days").is_null()) {
    HEBE_TRY(now.gpu.most_days, value_of(request, "days", std::int64_t{0}));
  }
  if (const auto meters = request.find("meters"); meters != request.end() && !meters->is_null()) {
    const bool texts = meters->is_object() && std::ranges::all_of(*meters, [](const Json& status) {
                         return status.is_string();
                       });
    if (!texts)
      return refuse(RefusalCode::bad_argument, "\"meters\" is not names with their statuses",
                    "give an object: each meter's name and its status, both texts", "meters");
    now.gpu.meters = meters->get<std::map<std::string, std::string>>();
  }
  HEBE_TRY(const auto date, text_or_none(request, "date"));
  now.gpu.date =
      date.value_or(fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))));
  return now;
}

campaign::JobCallbacks callbacks_of(hebe_interrupted interrupted, void* user) {
  campaign::JobCallbacks out;
  if (interrupted != nullptr)
    out.interrupted = [interrupted, user] { return interrupted(user) != 0; };
  return out;
}

} // namespace hebe::capi
