// What the two probe commands share. In: options and records; out: a request, a verification told.
#pragma once

#include "campaign/probe_session.hpp"
#include "cli/context.hpp"

namespace hebe::cli {

struct ProbeOptions {
  std::string subject = "vector-add";
  std::vector<std::string> parameters;
  std::optional<std::uint64_t> seed;
};

void add_probe_options(CLI::App& app, ProbeOptions& o);
[[nodiscard]] Result<campaign::ProbeRequest> probe_request(const Context& c, const ProbeOptions& o);
/// The refusal, naming what was therefore not written.
[[nodiscard]] Refusal with_not_written(Refusal refusal);
[[nodiscard]] int refused_probe(const Context& c, Refusal refusal);
/// An empty name: the newest record of each board.
[[nodiscard]] int verify_qualification(const Context& c, evidence::QualificationKind kind,
                                       const std::string& name, const evidence::FindAgain& find);

} // namespace hebe::cli
