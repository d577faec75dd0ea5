#include "ttgir/floor.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace hebe::ttgir {
namespace {

constexpr std::array kBoards = {
#define HEBE_BOARD(...) Board{__VA_ARGS__},
#include "ttgir/boards.def"
#undef HEBE_BOARD
};

/// Multiply-adds per second of a dot with these inputs; 0 where the board has no such unit.
double tensor_rate(const Board& board, std::string_view type) {
  if (type == "f16" || type == "bf16") return board.tensor16_mac;
  if (type == "tf32") return board.tf32_mac;
  if (type == "i8" || type.starts_with("f8")) return board.tensor8_mac;
  if (type == "f32") return board.fp32_mac;     // input precision "ieee": no tensor cores
  if (type == "f64") return 2 * board.fp64_mac; // its tensor cores double the rate of its cores
  return 0;
}

} // namespace

std::vector<const Board*> boards() {
  std::vector<const Board*> all;
  for (const Board& board : kBoards) all.push_back(&board);
  return all;
}

Result<const Board*> board_named(std::string_view name) {
  std::string known;
  for (const Board& board : kBoards) {
    if (name.find(board.name) != std::string_view::npos) return &board;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", board.name);
  }
  return refuse(RefusalCode::not_found, fmt::format("no ceilings of a board \"{}\"", name),
                "one of: " + known);
}

Demand demand_of(const Counts& counts) {
  Demand demand;
  for (const auto& a : counts.arguments) {
    demand.unique_loaded += static_cast<double>(a.unique_loaded);
    demand.unique_stored += static_cast<double>(a.unique_stored);
    demand.moved += static_cast<double>(a.loaded + a.stored + 2 * a.atomic);
  }
  for (const auto& [what, count] : counts.operations) {
    const auto& [kind, type] = what;
    const auto n = static_cast<double>(count);
    if (kind == WorkKind::product)
      demand.products[type.substr(0, type.find('*'))] += n;
    else if (type == "f64" || type == "f32" || type == "f16" || type == "bf16")
      demand.operations[type] +=
          (kind == WorkKind::fma ? 2 : 1) *
          (kind == WorkKind::compare || kind == WorkKind::select || kind == WorkKind::convert ? 0
                                                                                              : n);
  }
  return demand;
}

Floor floor_of(const Demand& demand, const Board& board) {
  Floor floor;
  const double unique = demand.unique_loaded + demand.unique_stored;
  const double warm_bytes = std::max(0.0, unique - board.l2_bytes);
  const auto bound = [&](std::string what, double amount, double rate) {
    if (amount <= 0) return;
    if (rate <= 0)
      floor.left_out.push_back(std::move(what));
    else
      floor.bounds.push_back({std::move(what), Seconds(amount / rate)});
  };
  double macs16 = 0, operations = 0;
  for (const auto& [type, macs] : demand.products) {
    bound(fmt::format("products of {}", type), macs, tensor_rate(board, type));
    operations += 2 * macs;
    if (type == "f16" || type == "bf16") macs16 += macs;
  }
  // A board's cores do half types at twice the rate of fp32 at most; one operation is counted as
  // half a multiply-add, since two may have become one.
  for (const auto& [type, count] : demand.operations) {
    const double rate = type == "f64"   ? board.fp64_mac
                        : type == "f32" ? board.fp32_mac
                                        : 2 * board.fp32_mac;
    bound(fmt::format("operations on {}", type), count / 2, rate);
    operations += count;
  }
  Seconds compute{0};
  for (const Bound& each : floor.bounds) compute = std::max(compute, each.time);
  bound("DRAM", unique, board.dram_bytes_per_s);
  std::ranges::stable_sort(floor.bounds,
                           [](const Bound& a, const Bound& b) { return a.time > b.time; });
  floor.cold = floor.bounds.empty() ? Seconds(0) : floor.bounds.front().time;
  floor.limit = floor.bounds.empty() ? "nothing" : floor.bounds.front().what;
  floor.warm = std::max(compute, Seconds(warm_bytes / board.dram_bytes_per_s));
  if (board.idle_w > 0 && board.j_per_byte > 0) {
    // Products of other types and work outside them have no measured energy: they cost time at idle
    // power only.
    const double products_j = macs16 * board.j_per_mac;
    floor.cold_j =
        Joules(board.idle_w * floor.cold.value() + unique * board.j_per_byte + products_j);
    floor.warm_j =
        Joules(board.idle_w * floor.warm.value() + warm_bytes * board.j_per_byte + products_j);
  }
  floor.intensity = unique > 0 ? operations / unique : 0;
  floor.redundancy = unique > 0 ? demand.moved / unique : 0;
  return floor;
}

Json to_json(const Floor& floor, const Board& board) {
  Json bounds = Json::array();
  for (const Bound& each : floor.bounds)
    bounds.push_back({{"what", each.what}, {"time_s", each.time.value()}});
  Json json = {{"board", board.name},
               {"provenance", "estimated"},
               {"source", board.source},
               {"limit", floor.limit},
               {"bounds", bounds},
               {"time_cold_s", floor.cold.value()},
               {"time_warm_s", floor.warm.value()},
               {"operations_per_unique_byte", floor.intensity},
               {"moved_per_unique_byte", floor.redundancy},
               {"left_out", floor.left_out}};
  json["energy_cold_j"] = floor.cold_j ? Json(floor.cold_j->value()) : Json(nullptr);
  json["energy_warm_j"] = floor.warm_j ? Json(floor.warm_j->value()) : Json(nullptr);
  return json;
}

} // namespace hebe::ttgir
