// The one table that a process dispatches by, behind the public C++ and C interfaces.
#include "tune/dispatch_table.hpp"

#include <hebe/hebe.h>

#include <cstring>
#include <deque>
#include <exception>
#include <mutex>

namespace hebe::dispatch {
namespace {

struct Listener {
  Missing tell = nullptr;
  void* user = nullptr;
};

std::atomic<const tune::DispatchTable*> current{nullptr};
std::atomic<const Listener*> listener{nullptr};

// Whatever was published may still be read by a thread that looked it up before: it is kept. Loads
// are few, and profiles small. Never destroyed either, for threads may outlive static storage.
template <class T> const T* keep(std::unique_ptr<const T> value) {
  static auto* const kept = new std::deque<std::unique_ptr<const T>>;
  static std::mutex guard;
  const std::lock_guard lock(guard);
  return kept->emplace_back(std::move(value)).get();
}

Loaded refused(const Refusal& refusal) {
  return {false, to_text(refusal), static_cast<int>(exit_code_of(refusal.code))};
}

} // namespace

Loaded load(const std::string& file, const std::string& board) {
  try {
    const auto profile = tune::read_profile(file);
    if (!profile) return refused(profile.error());
    auto table = tune::DispatchTable::of(*profile, board);
    if (!table) return refused(table.error());
    current.store(keep(*std::move(table)), std::memory_order_release);
    return {true, {}, 0};
  } catch (const std::exception& e) {
    return {false, std::string("a bug in Hebe: ") + e.what(), static_cast<int>(ExitCode::bug)};
  }
}

void unload() { current.store(nullptr, std::memory_order_release); }

const Choice* find(std::string_view operation, std::span<const std::int64_t> sizes,
                   std::string_view dtype, Miss* why) noexcept {
  if (why != nullptr) *why = Miss::no_row;
  const auto* table = current.load(std::memory_order_acquire);
  if (table == nullptr) return nullptr;
  bool other_sizes = false;
  if (const auto* choice = table->find(operation, sizes, dtype, other_sizes)) return choice;
  if (other_sizes && why != nullptr) {
    *why = Miss::bad_argument; // the caller's slip: no missing row, and not told as one
    return nullptr;
  }
  if (table->first_miss(operation, dtype))
    if (const auto* who = listener.load(std::memory_order_acquire); who != nullptr && who->tell) {
      const std::string name(operation), type(dtype); // they need not end with 0
      who->tell(name.c_str(), type.c_str(), who->user);
    }
  return nullptr;
}

std::vector<std::string> dimensions(std::string_view operation, std::string_view dtype) {
  const auto* table = current.load(std::memory_order_acquire);
  return table == nullptr ? std::vector<std::string>() : table->dimensions(operation, dtype);
}

std::vector<std::string> names() {
  const auto* table = current.load(std::memory_order_acquire);
  return table == nullptr ? std::vector<std::string>() : table->names();
}

void on_missing(Missing tell, void* user) {
  listener.store(keep(std::unique_ptr<const Listener>(new Listener{tell, user})),
                 std::memory_order_release);
}

} // namespace hebe::dispatch

int hebe_dispatch_load(const char* file, const char* board, char* why, size_t why_size) {
  hebe::dispatch::Loaded loaded;
  try {
    loaded = file == nullptr || board == nullptr
                 ? hebe::dispatch::refused(
                       {hebe::RefusalCode::bad_argument,
                        file == nullptr ? "no profile was named" : "no board was named",
                        {},
                        "give a profile's file and the name of the board that it is used on",
                        {}})
                 : hebe::dispatch::load(file, board);
  } catch (const std::exception&) { // no memory
    loaded.exit_code = static_cast<int>(hebe::ExitCode::bug);
  }
  if (why != nullptr && why_size > 0) {
    const auto n = std::min(why_size - 1, loaded.why.size());
    std::memcpy(why, loaded.why.data(), n);
    why[n] = '\0';
  }
  return loaded.exit_code;
}

void hebe_dispatch_unload(void) { hebe::dispatch::unload(); }

int hebe_dispatch_find(const char* operation, const int64_t* sizes, size_t count, const char* dtype,
                       hebe_choice* out) {
  if (operation == nullptr || dtype == nullptr || (sizes == nullptr && count > 0)) return 0;
  auto why = hebe::dispatch::Miss::no_row;
  const auto* c = hebe::dispatch::find(operation, {sizes, count}, dtype, &why);
  if (c == nullptr)
    return why == hebe::dispatch::Miss::bad_argument
               ? -static_cast<int>(exit_code_of(hebe::RefusalCode::bad_argument))
               : 0;
  if (out != nullptr)
    *out = {c->index,
            c->name.c_str(),
            c->configuration.c_str(),
            c->artifact_sha256.c_str(),
            c->shape.c_str(),
            c->provenance.c_str(),
            c->energy_nj};
  return 1;
}

void hebe_dispatch_on_missing(hebe_missing tell, void* user) {
  hebe::dispatch::on_missing(tell, user);
}

size_t hebe_dispatch_dimensions(const char* operation, const char* dtype, char* names,
                                size_t names_size) {
  if (operation == nullptr || dtype == nullptr) return 0;
  try {
    const auto found = hebe::dispatch::dimensions(operation, dtype);
    std::string text;
    for (const auto& name : found) text += (text.empty() ? "" : ",") + name;
    if (names != nullptr && names_size > 0) {
      const auto n = std::min(names_size - 1, text.size());
      std::memcpy(names, text.data(), n);
      names[n] = '\0';
    }
    return found.size();
  } catch (const std::exception&) { // no memory: as without a row
    return 0;
  }
}
