// A sound row of a profile for tests: an H200's matrix product, measured.
#pragma once

#include "tune/profile.hpp"

namespace hebe::tune::test {

inline ProfileRow sound_row(std::string shape = "m<=256,n=4096,k=4096") {
  ProfileRow row;
  row.key = {"matmul", std::move(shape), "bf16", "NVIDIA H200"};
  row.implementation = {
      "triton.matmul", {{"BLOCK_M", 128}, {"num_warps", 8}}, std::string(64, 'a')};
  row.energy_nj = {12'655'000, 12'600'000.5, 12'710'000.25};
  row.time_ns = {24'734, 24'730.1, 24'738.2};
  row.meter = {"nvml.samples.total_power", "primary", Provenance::measured};
  row.idle = Idle::context_open;
  row.platform = {"GPU-1", "580.159.04", "Debian 12", "0.1.0", "3.5.1"};
  row.date = "2026-11-30T04:20:00Z";
  row.study = "tune-1";
  row.runs = {std::string(64, 'b')};
  row.baseline = Baseline{{"cublaslt", Json::object(), std::nullopt},
                          {13'000'000, 12'900'000, 13'100'000},
                          {24'000, 23'990, 24'010}};
  row.verdict = "lower";
  return row;
}

inline Profile profile_of(std::initializer_list<ProfileRow> rows) {
  Profile out;
  for (const auto& row : rows)
    if (const auto taken = out.record(row, "test"); !taken) throw to_text(taken.error());
  return out;
}

} // namespace hebe::tune::test
