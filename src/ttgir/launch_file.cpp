#include "ttgir/launch_file.hpp"

#include "core/files.hpp"
#include "ttgir/rounding.hpp"

#include <cstring>
#include <limits>

#include <fmt/format.h>

namespace hebe::ttgir {
namespace {

std::unexpected<Refusal> wrong(std::string what, const std::string& where) {
  return refuse(RefusalCode::bad_spec, std::move(what), "docs/interpreter.md has the format",
                where);
}

std::optional<Scalar> scalar_named(std::string_view name) {
  constexpr std::pair<std::string_view, Scalar> names[] = {
      {"i1", Scalar::i1},     {"u1", Scalar::i1},   {"i8", Scalar::i8},    {"u8", Scalar::i8},
      {"i16", Scalar::i16},   {"u16", Scalar::i16}, {"i32", Scalar::i32},  {"u32", Scalar::i32},
      {"i64", Scalar::i64},   {"u64", Scalar::i64}, {"f16", Scalar::f16},  {"fp16", Scalar::f16},
      {"bf16", Scalar::bf16}, {"f32", Scalar::f32}, {"fp32", Scalar::f32}, {"f64", Scalar::f64},
      {"fp64", Scalar::f64}};
  for (const auto& [text, scalar] : names)
    if (text == name) return scalar;
  return std::nullopt;
}

/// A number, or a string for what JSON has no number for: "nan", "-inf", integers beyond 2^53.
Result<ScalarArgument> scalar_of(const Json& entry, const std::string& where) {
  const auto type =
      entry["scalar"].is_string() ? scalar_named(entry["scalar"].get<std::string>()) : std::nullopt;
  if (!type) return wrong(fmt::format("no scalar type {}", entry["scalar"].dump()), where);
  if (!entry.contains("value")) return wrong("a scalar without a value", where);
  const Json& value = entry["value"];
  ScalarArgument scalar{*type, 0};
  if (is_float(*type)) {
    double number = 0;
    if (value.is_number())
      number = value.get<double>();
    else if (!value.is_string() ||
             std::sscanf(value.get<std::string>().c_str(), "%lf", &number) != 1)
      return wrong(fmt::format("{} is not a number", value.dump()), where);
    std::byte memory[8] = {};
    if (*type == Scalar::f64) {
      std::memcpy(memory, &number, sizeof number);
    } else {
      float lane = *type == Scalar::f32 ? static_cast<float>(number) : to_odd(number);
      if (const auto round = rounding_to(*type)) round(&lane, 1);
      encoder (*type)(&lane, memory, 1);
    }
    std::memcpy(&scalar.bits, memory, sizeof memory);
    return scalar;
  }
  if (value.is_boolean()) {
    scalar.bits = value.get<bool>();
  } else if (value.is_number_unsigned()) {
    scalar.bits = value.get<std::uint64_t>();
  } else if (value.is_number_integer() || value.is_string()) {
    HEBE_TRY(const auto number, integer_from(value, where));
    scalar.bits = static_cast<std::uint64_t>(number);
  } else {
    return wrong(fmt::format("{} is not a whole number", value.dump()), where);
  }
  const unsigned width = bits_of(*type);
  const auto fits = [&] { // as a signed number or as an unsigned one
    const auto number = static_cast<std::int64_t>(scalar.bits);
    return scalar.bits >> width == 0 || (number < 0 && number >= -(std::int64_t{1} << (width - 1)));
  };
  if (width < 64 && !fits())
    return wrong(fmt::format("{} does not fit {}", value.dump(), spelling(*type)), where);
  return scalar;
}

Result<std::vector<std::int64_t>> numbers_of(const Json& entry, const char* key,
                                             const std::string& where) {
  std::vector<std::int64_t> numbers;
  if (!entry.contains(key) || !entry[key].is_array())
    return wrong(fmt::format("a descriptor without {}", key), where);
  for (const Json& each : entry[key]) {
    HEBE_TRY(const auto number, integer_from(each, where));
    numbers.push_back(number);
  }
  return numbers;
}

} // namespace

Result<std::size_t> LaunchFile::add_buffer(const std::filesystem::path& folder,
                                           const std::string& file, const Json& entry,
                                           const std::string& where) {
  Buffer buffer;
  buffer.path = folder / file;
  HEBE_TRY(const std::string bytes, read_given_file(buffer.path));
  if (entry.contains("bytes") && entry["bytes"] != Json(bytes.size()))
    return wrong(fmt::format("{} has {} bytes, not {}", buffer.path.string(), bytes.size(),
                             entry["bytes"].dump()),
                 where);
  buffer.bytes.resize(bytes.size());
  std::memcpy(buffer.bytes.data(), bytes.data(), bytes.size());
  buffer.out = entry.value("out", false);
  buffer.name = entry.value("name", std::string());
  buffers_.push_back(std::move(buffer));
  return buffers_.size() - 1;
}

Result<LaunchFile> LaunchFile::read(const std::filesystem::path& path) {
  HEBE_TRY(const std::string text, read_given_file(path));
  HEBE_TRY(const Json json, parse_json(text, path.string()));
  LaunchFile file;
  const auto folder = path.parent_path();
  if (!json.is_object() || !json.contains("args") || !json["args"].is_array())
    return wrong("a launch is an object with \"grid\" and \"args\"", path.string());
  try {
    file.function_ = json.value("function", std::string());
    if (json.contains("grid")) {
      const Json& grid = json["grid"];
      if (!grid.is_array() || grid.empty() || grid.size() > 3)
        return wrong("\"grid\" is a list of one to three sizes", path.string());
      for (std::size_t i = 0; i < grid.size(); ++i) {
        HEBE_TRY(const auto size, integer_from(grid[i], path.string()));
        if (size < 0 || size > std::numeric_limits<std::int32_t>::max())
          return wrong(fmt::format("grid size {}", size), path.string());
        file.grid_[i] = static_cast<std::uint32_t>(size);
      }
    }
    for (std::size_t i = 0; i < json["args"].size(); ++i) {
      const Json& entry = json["args"][i];
      const auto where = fmt::format("{}: args[{}]", path.string(), i);
      Argument argument;
      if (entry.contains("buffer")) {
        HEBE_TRY(argument.buffer,
                 file.add_buffer(folder, entry["buffer"].get<std::string>(), entry, where));
      } else if (entry.contains("scalar")) {
        argument.kind = Argument::Kind::scalar;
        HEBE_TRY(argument.scalar, scalar_of(entry, where));
      } else if (entry.contains("descriptor")) {
        argument.kind = Argument::Kind::descriptor;
        HEBE_TRY(argument.buffer,
                 file.add_buffer(folder, entry["descriptor"].get<std::string>(), entry, where));
        HEBE_TRY(argument.shape, numbers_of(entry, "shape", where));
        HEBE_TRY(argument.strides, numbers_of(entry, "strides", where));
        argument.nan_padding = entry.value("padding", std::string("zero")) == "nan";
      } else {
        return wrong("an argument is a \"buffer\", a \"scalar\" or a \"descriptor\"", where);
      }
      file.arguments_.push_back(std::move(argument));
    }
    for (const Json& entry : json.value("reachable", Json::array())) {
      HEBE_TRY(const auto number, file.add_buffer(folder, entry.at("buffer").get<std::string>(),
                                                  entry, path.string()));
      file.reachable_.push_back(number);
    }
  } catch (const Json::exception& error) {
    return wrong(error.what(), path.string());
  }
  return file;
}

BufferArgument LaunchFile::argument_of(Buffer& buffer) const {
  return {buffer.bytes, buffer.out, buffer.name};
}

Result<Launch> LaunchFile::launch(const Module& module) {
  const Operation* function = module.function(function_);
  const std::size_t parameters =
      function && !function->regions.empty() && !function->regions[0]->blocks.empty()
          ? function->regions[0]->front().arguments.size()
          : 0;
  std::size_t hidden = 0; // arguments behind descriptors
  for (const Argument& each : arguments_) hidden += each.shape.size() + each.strides.size();
  const bool expand = hidden > 0 && parameters == arguments_.size() + hidden;
  Launch launch;
  launch.grid = grid_;
  for (const Argument& each : arguments_) {
    switch (each.kind) {
    case Argument::Kind::buffer:
      launch.arguments.emplace_back(argument_of(buffers_[each.buffer]));
      break;
    case Argument::Kind::scalar:
      launch.arguments.emplace_back(each.scalar);
      break;
    case Argument::Kind::descriptor:
      launch.arguments.emplace_back(DescriptorArgument{argument_of(buffers_[each.buffer]),
                                                       each.shape, each.strides, each.nan_padding});
      if (!expand) break;
      for (const auto size : each.shape)
        launch.arguments.emplace_back(
            ScalarArgument{Scalar::i32, static_cast<std::uint64_t>(size)});
      for (const auto stride : each.strides)
        launch.arguments.emplace_back(
            ScalarArgument{Scalar::i64, static_cast<std::uint64_t>(stride)});
      break;
    }
  }
  for (const std::size_t number : reachable_)
    launch.reachable.push_back(argument_of(buffers_[number]));
  return launch;
}

Result<std::vector<std::filesystem::path>> LaunchFile::write_outputs() const {
  std::vector<std::filesystem::path> written;
  for (const Buffer& buffer : buffers_) {
    if (!buffer.out) continue;
    auto path = buffer.path;
    path += ".out";
    HEBE_CHECK(write_file_whole(
        path, {reinterpret_cast<const char*>(buffer.bytes.data()), buffer.bytes.size()}));
    written.push_back(std::move(path));
  }
  return written;
}

} // namespace hebe::ttgir
