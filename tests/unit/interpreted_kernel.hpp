// A kernel in a test: its text, its buffers, one launch. In: TTIR text and vectors; out: the
// vectors as the kernel left them. Invariant: a text that cannot be read, or a launch that is
// refused where the test did not ask for it, fails the test with the refusal's words.
#pragma once

#include "ttgir/interpreter.hpp"
#include "ttgir/reader.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace hebe::ttgir::testing_kernels {

template <class T>
BufferArgument buffer(std::vector<T>& values, bool writable = true, std::string name = {}) {
  return {std::as_writable_bytes(std::span(values)), writable, std::move(name)};
}
inline ScalarArgument scalar(std::int32_t value) {
  return {Scalar::i32, static_cast<std::uint32_t>(value)};
}
inline ScalarArgument scalar(std::int64_t value) {
  return {Scalar::i64, static_cast<std::uint64_t>(value)};
}
inline ScalarArgument scalar(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return {Scalar::f32, bits};
}

inline std::unique_ptr<Module> module_of(const std::string& text) {
  auto module = read_module(text);
  EXPECT_TRUE(module) << to_text(module.error());
  return module ? std::move(*module) : nullptr;
}

inline Result<Outcome> launch(const std::string& text, std::vector<LaunchArgument> arguments,
                              std::array<std::uint32_t, 3> grid = {1, 1, 1}, unsigned threads = 1,
                              InterpretOptions options = {}, Limits limits = {}) {
  const auto module = module_of(text);
  if (!module) return refuse(RefusalCode::bad_ir, "no module");
  Launch l;
  l.grid = grid;
  l.arguments = std::move(arguments);
  l.threads = threads;
  l.limits = limits;
  return interpret(*module, "", l, options);
}

inline void run(const std::string& text, std::vector<LaunchArgument> arguments,
                std::array<std::uint32_t, 3> grid = {1, 1, 1}, unsigned threads = 1) {
  const auto outcome = launch(text, std::move(arguments), grid, threads);
  EXPECT_TRUE(outcome) << to_text(outcome.error()) << "\n" << text;
}

inline std::string refusal(const std::string& text, std::vector<LaunchArgument> arguments,
                           std::array<std::uint32_t, 3> grid = {1, 1, 1}) {
  const auto outcome = launch(text, std::move(arguments), grid);
  return outcome ? "no refusal"
                 : std::string(name_of(outcome.error().code)) + ": " + outcome.error().what;
}

inline std::string function(const std::string& parameters, const std::string& body) {
  return "module {\n  tt.func public @kernel(" + parameters + ") {\n" + body +
         "    tt.return\n  }\n}\n";
}

/// `body` makes %r from %x (and %y, %z), tensors of n elements; the buffers are x, (y, z,) r in
/// order.
inline std::string by_element(std::size_t n, const std::vector<std::string>& inputs,
                              const std::string& result, const std::string& body) {
  const auto shape = std::to_string(n) + "x";
  std::string parameters, loads;
  const auto tensor = [&](const std::string& element) { return "tensor<" + shape + element + ">"; };
  const char* names[] = {"x", "y", "z"};
  const auto pointer_to = [&](const std::string& name, const std::string& type) {
    return "    %" + name + "s = tt.splat %" + name + "p : !tt.ptr<" + type + "> -> " +
           tensor("!tt.ptr<" + type + ">") + "\n    %" + name + "a = tt.addptr %" + name +
           "s, %i : " + tensor("!tt.ptr<" + type + ">") + ", " + tensor("i32") + "\n";
  };
  loads = "    %i = tt.make_range {end = " + std::to_string(n) +
          " : i32, start = 0 : i32} : " + tensor("i32") + "\n";
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    parameters += std::string("%") + names[k] + "p: !tt.ptr<" + inputs[k] + ">, ";
    loads += pointer_to(names[k], inputs[k]) + "    %" + names[k] + " = tt.load %" + names[k] +
             "a : " + tensor("!tt.ptr<" + inputs[k] + ">") + "\n";
  }
  parameters += "%rp: !tt.ptr<" + result + ">";
  return function(parameters, loads + body + pointer_to("r", result) + "    tt.store %ra, %r : " +
                                  tensor("!tt.ptr<" + result + ">") + "\n");
}

} // namespace hebe::ttgir::testing_kernels
