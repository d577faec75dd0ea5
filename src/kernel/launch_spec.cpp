#include "kernel/launch_spec.hpp"

#include "core/schema.hpp"

#include <charconv>
#include <cstring>
#include <limits>

namespace hebe::kernel {
namespace {

// integer_from for values that may take all 64 bits (seeds, u64 scalars).
Result<std::uint64_t> unsigned_from(const Json& value, std::string_view where) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (value.is_string()) {
    const auto& s = value.get_ref<const std::string&>();
    std::uint64_t out = 0;
    const auto [end, ec] = std::from_chars(s.data(), s.data() + s.size(), out);
    if (ec == std::errc{} && end == s.data() + s.size()) return out;
  }
  HEBE_TRY(const auto small, integer_from(value, where));
  if (small >= 0) return static_cast<std::uint64_t>(small);
  return refuse(RefusalCode::bad_schema, "required 0 or more, found " + value.dump(), {},
                std::string(where));
}

// JSON has no infinities: the worker writes them as words.
std::optional<double> number_from(const Json& j) {
  if (j == "inf") return std::numeric_limits<double>::infinity();
  if (j == "-inf") return -std::numeric_limits<double>::infinity();
  if (j == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (j.is_boolean()) return j.get<bool>() ? 1.0 : 0.0;
  if (!j.is_number()) return std::nullopt;
  return j.get<double>();
}

Result<Initialiser> initialiser_from(const Json& j) {
  Initialiser init;
  const auto kind = j.at("kind").get<std::string>();
  if (kind == "zeros") return init;
  if (kind == "constant") {
    init.kind = Initialiser::Kind::constant;
    init.first = number_from(j.at("value")).value(); // the schema has seen it
    return init;
  }
  init.kind = kind == "uniform" ? Initialiser::Kind::uniform : Initialiser::Kind::normal;
  init.first = j.at(kind == "uniform" ? "low" : "mean").get<double>();
  init.second = j.at(kind == "uniform" ? "high" : "std").get<double>();
  HEBE_TRY(init.seed, unsigned_from(j.at("seed"), "init.seed"));
  return init;
}

Result<Argument> argument_from(const Json& j) {
  Argument a;
  a.name = j.at("name").get<std::string>();
  a.is_buffer = j.at("kind") == "buffer";
  HEBE_TRY(a.dtype, dtype_from(j.at("dtype").get<std::string>()));
  if (!a.is_buffer) {
    a.value = j.at("value");
    return a;
  }
  a.shape = j.at("shape").get<std::vector<std::int64_t>>();
  std::uint64_t bytes = size_of(a.dtype);
  for (const auto extent : a.shape)
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes) ||
        bytes > (1ULL << 60))
      return refuse(RefusalCode::bad_spec, "buffer \"" + a.name + "\" is larger than any memory",
                    "make its shape smaller");
  const auto role = j.at("role").get<std::string>();
  a.role = role == "in" ? Role::in : role == "out" ? Role::out : Role::inout;
  if (const auto& init = j.at("init"); !init.is_null()) {
    HEBE_TRY(a.init, initialiser_from(init));
  } else if (a.role != Role::out) {
    return refuse(RefusalCode::bad_spec, "buffer \"" + a.name + "\" is read but has no initialiser",
                  "give it one: inputs must be fixed and recorded");
  }
  return a;
}

Result<DeclaredWork> work_from(const Json& j) {
  DeclaredWork work;
  HEBE_TRY(const auto read, integer_from(j.at("bytes_read"), "work.bytes_read"));
  HEBE_TRY(const auto written, integer_from(j.at("bytes_written"), "work.bytes_written"));
  work.read = {static_cast<std::uint64_t>(read)};
  work.written = {static_cast<std::uint64_t>(written)};
  for (const auto& [kind, count] : j.at("operations").items()) {
    HEBE_TRY(const auto n, integer_from(count, "work.operations." + kind));
    work.operations[kind] = static_cast<double>(n);
  }
  return work;
}

Result<Scratch> scratch_from(const Json& j) {
  return Scratch{j.at("bytes").get<std::uint64_t>(), j.at("align").get<std::uint64_t>()};
}

} // namespace

std::size_t Argument::elements() const {
  std::size_t n = 1;
  for (const auto extent : shape) n *= static_cast<std::size_t>(extent);
  return n;
}

std::uint64_t LaunchSpec::programs() const { return std::uint64_t{grid[0]} * grid[1] * grid[2]; }

Result<LaunchSpec> LaunchSpec::from_json(const Json& j, std::string_view where) {
  HEBE_CHECK(check_schema(j, "hebe.launch/1", where));
  LaunchSpec s;
  s.json = j;
  s.name = j.at("name").get<std::string>();
  s.entry = j.at("entry").get<std::string>();
  s.arch = j.at("target").at("arch").get<int>();
  s.grid = j.at("grid").get<std::array<std::uint32_t, 3>>();
  s.num_warps = j.at("num_warps").get<std::uint32_t>();
  s.num_ctas = j.at("num_ctas").get<std::uint32_t>();
  s.shared_bytes = j.at("shared_bytes").get<std::uint32_t>();
  s.cooperative = j.at("cooperative").get<bool>();
  s.pdl = j.at("pdl").get<bool>();
  HEBE_TRY(s.global_scratch, scratch_from(j.at("global_scratch")));
  HEBE_TRY(s.profile_scratch, scratch_from(j.at("profile_scratch")));
  for (const auto& argument : j.at("arguments")) {
    HEBE_TRY(auto parsed, argument_from(argument));
    s.arguments.push_back(std::move(parsed));
  }
  s.atol = j.at("tolerance").at("atol").get<double>();
  s.rtol = j.at("tolerance").at("rtol").get<double>();
  s.has_reference = j.at("oracle").at("kind") == "case-reference";
  if (!j.at("work").is_null()) {
    HEBE_TRY(s.work, work_from(j.at("work")));
  }
  if (std::uint64_t{s.grid[0]} * s.num_ctas > 0x7FFFFFFF)
    return refuse(RefusalCode::bad_spec, "grid x times num_ctas is beyond 2^31 - 1",
                  "make the grid smaller", std::string(where));
  if (s.programs() == 0)
    return refuse(RefusalCode::bad_spec, "the grid has a zero dimension: nothing would be launched",
                  "give every grid dimension at least 1", std::string(where));
  return s;
}

Result<std::vector<PackedParameter>> pack_parameters(const LaunchSpec& spec,
                                                     const std::vector<std::uint64_t>& pointers,
                                                     std::uint64_t global_scratch,
                                                     std::uint64_t profile_scratch) {
  std::vector<PackedParameter> out;
  const auto add_pointer = [&](std::string name, std::uint64_t address) {
    PackedParameter p{std::move(name), 8, {}};
    std::memcpy(p.value.data(), &address, 8);
    out.push_back(std::move(p));
  };
  std::size_t next = 0;
  for (const auto& a : spec.arguments) {
    if (a.is_buffer) {
      if (next == pointers.size())
        return refuse(RefusalCode::internal, "fewer device buffers than buffer arguments");
      add_pointer(a.name, pointers[next++]);
      continue;
    }
    PackedParameter p{a.name, size_of(a.dtype), {}};
    if (is_float(a.dtype)) {
      const auto v = number_from(a.value);
      if (!v)
        return refuse(RefusalCode::bad_schema, "required a number, found " + a.value.dump(), {},
                      "argument " + a.name);
      store(*v, a.dtype, p.value.data());
    } else if (a.value.is_boolean()) {
      p.value[0] = static_cast<std::byte>(a.value.get<bool>());
    } else if (a.dtype == DType::u64) {
      HEBE_TRY(const auto u, unsigned_from(a.value, "argument " + a.name));
      std::memcpy(p.value.data(), &u, p.size);
    } else {
      HEBE_TRY(const auto i, integer_from(a.value, "argument " + a.name));
      std::memcpy(p.value.data(), &i, p.size); // little-endian two's complement: the low bytes
    }
    out.push_back(std::move(p));
  }
  add_pointer("global_scratch", global_scratch);
  add_pointer("profile_scratch", profile_scratch);
  return out;
}

} // namespace hebe::kernel
