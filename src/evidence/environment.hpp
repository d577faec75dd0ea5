// What a measurement happened on and with: every fact with its source, or unavailable with the
// reason. In: the machine; out: a list of facts (schema hebe.environment/1). Invariant: nothing is
// guessed.
#pragma once

#include "core/fact.hpp"
#include "gpu/device.hpp"
#include "meter/board_meter.hpp"

#include <map>

namespace hebe::evidence {

[[nodiscard]] std::vector<Fact> build_facts();
/// Kernel, distribution, CPU, memory, host name, container, Slurm ids. A simulated run leaves out
/// what changes between runs, so that equal seeds give equal records.
using Variables = std::map<std::string, std::string,
                           std::less<>>; ///< the process's environment, as the caller read it
[[nodiscard]] std::vector<Fact> host_facts(bool simulated, const Variables& variables);
[[nodiscard]] std::vector<Fact> device_facts(const gpu::DeviceInfo& device);
[[nodiscard]] std::vector<Fact> meter_facts(meter::BoardMeter& meter);
/// From the compile worker's hello; without one, why there is none.
[[nodiscard]] std::vector<Fact> toolchain_facts(const Json& hello,
                                                const std::string& no_hello = {});
/// Changes with every start of the kernel.
[[nodiscard]] Result<std::string> boot_id();

[[nodiscard]] Json environment_json(const std::vector<Fact>& facts);
/// Host name, UUIDs and serial-like values become "sha256:…" (first 16 digits): equal stays equal.
void redact(std::vector<Fact>& facts);
/// The same of one identity (a board's UUID) wherever a text of the record has it: a refusal names
/// the board that it is about.
void redact(Json& record, const std::string& identity);
/// What stands for it.
[[nodiscard]] std::string redacted(const std::string& identity);

} // namespace hebe::evidence
