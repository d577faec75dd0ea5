// What every rewrite shares: what is known of the launch, what was done, what was refused and why.
// In: a function of a module and facts; out: the module changed, and an account. Invariant: a pass
// changes nothing that it cannot argue for; what it assumes of the launch is a contract, which
// qualification checks and records.
#pragma once

#include "core/json.hpp"
#include "ttgir/ir.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hebe::rewrite {

/// How the candidate's bits relate to the original's, by argument (qualification compares them).
enum class Exactness {
  exact,       ///< the same operations on the same values
  exact_in_ir, ///< so in the IR, but the compiler below may contract products and sums otherwise
  approximate, ///< other operations, within a stated bound
};
[[nodiscard]] std::string_view name_of(Exactness exactness);

/// What is known of every launch of the candidate.
struct LaunchFacts {
  std::map<std::string, std::int64_t> scalars; ///< integer arguments that have one value
  std::array<std::uint32_t, 3> grid{};         ///< {0, 0, 0}: not known
  bool disjoint = false;                       ///< different arguments are different memory
  /// The launch's names of the function's arguments, in order; empty: the text's own. Triton names
  /// an argument after the last variable that held it, so that "n" of the text may be the launch's
  /// "m": passes see the launch's names.
  std::vector<std::string> arguments{};
};

/// What a candidate needs of its launches.
struct Contract {
  enum class Kind { scalar_equals, grid_equals, disjoint_arguments };
  Kind kind = Kind::disjoint_arguments;
  std::string argument; ///< of scalar_equals
  std::int64_t value = 0;
  std::string why; ///< the first thing that rests on it
};

struct Change {
  std::string pass;
  std::uint32_t line = 0; ///< of the text that the rewrite began with; 0: an operation made since
  std::string what;
};

/// Something that a pass looked at and left alone.
struct Refused {
  std::string pass;
  std::uint32_t line = 0;
  std::string op; ///< "tt.load %x"
  std::string why;
};

/// The account of a whole rewrite, pass after pass.
class Account {
public:
  std::vector<Change> changes;
  std::vector<Refused> refused;
  std::vector<Contract> contracts; ///< one a kind and argument
  std::vector<std::size_t> done;   ///< changes of each request, in order
  Exactness exactness = Exactness::exact;

  void begin(std::string pass) { pass_ = std::move(pass); }
  void changed(const ttgir::Operation& op, std::string what);
  void refuse(const ttgir::Operation& op, std::string why);
  void assume_scalar(const LaunchFacts& facts, const std::string& argument, std::string why);
  void assume_grid(std::string why);
  void assume_disjoint(std::string why);
  /// The rewrite is at best this exact from here on.
  void at_best(Exactness worst) { exactness = std::max(exactness, worst); }
  [[nodiscard]] std::size_t changes_of(std::string_view pass) const;

private:
  void assume(Contract contract);
  std::string pass_;
};
[[nodiscard]] Json to_json(const Account& account);

/// "tt.load %x_15", for messages.
[[nodiscard]] std::string describe(const ttgir::Operation& op);

/// What a pass works on.
struct Work {
  ttgir::Module& module;
  ttgir::Operation& function;
  const LaunchFacts& facts;
  Account& account;
};

struct PassOption {
  std::string_view name, what;
};

/// One row of the table of passes (passes.cpp).
struct Pass {
  std::string_view name;
  std::string_view what; ///< one line for people
  std::vector<PassOption> options;
  /// bad_spec: an option's value is wrong. A place that cannot be changed is refused in the
  /// account, not here.
  Status (*run)(Work& work, const Json& options);
};
[[nodiscard]] const std::vector<Pass>& passes();

struct PassRequest {
  std::string name;
  Json options = Json::object();
};
/// From JSON: "name", or {"pass": name, options…}. bad_spec names what is unknown, and what is
/// known.
[[nodiscard]] Result<std::vector<PassRequest>> requests_from(const Json& list,
                                                             std::string_view where);
[[nodiscard]] Json to_json(const std::vector<PassRequest>& requests);

/// Gives the function's arguments these names. abi_mismatch: it has another number of them.
[[nodiscard]] Status name_arguments(ttgir::Module& module, ttgir::Operation& function,
                                    const std::vector<std::string>& names);

struct Rewritten {
  std::string ttgir;
  Account account;
};

/// Applies the passes, in order, to the module's kernel. Refuses bad_ir (the text cannot be read),
/// unsupported (an operation that is not understood, or one with effects beyond memory: tt.print,
/// tt.assert), bad_spec (an option), internal (the result is not well formed). A text that no pass
/// changed is returned as it is.
[[nodiscard]] Result<Rewritten> apply(std::string ttgir, const std::vector<PassRequest>& requests,
                                      const LaunchFacts& facts, std::string_view where = "TTGIR");

} // namespace hebe::rewrite
