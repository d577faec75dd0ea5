// A function made ready to run: a flat list of instructions for every block, values in numbered
// slots. In: a function of a module; out: a plan, or every operation that is not understood.
// Invariant: a plan never changes while it runs, so that all threads share it.
#pragma once

#include "ttgir/interpreter.hpp"
#include "ttgir/rounding.hpp"
#include "ttgir/run_program.hpp"

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace hebe::ttgir {

/// What an operation became. Families of operations derive from it, each in its own file.
class Instruction {
public:
  virtual ~Instruction() = default;
  [[nodiscard]] virtual Status run(Program& program) const = 0;
  /// Works element by element, so a combine region may run it for many elements at once.
  [[nodiscard]] virtual bool lanewise() const { return false; }

  const Operation* op = nullptr;
  std::uint32_t number = 0;
  std::uint8_t dying = 0; ///< bit i: operand i (of the first 8) is used here for the last time
  // What one execution is counted as.
  WorkKind work = WorkKind::none;
  std::string_view work_type{};
  std::uint64_t work_elements = 0;
};
using InstructionPtr = std::unique_ptr<Instruction>;

struct Step {
  InstructionPtr instruction;
  std::vector<Slot> dying; ///< values that nothing uses any more
};

/// How a block ends.
struct Ending {
  enum class Kind : std::uint8_t { none, yield, condition, give_back, branch } kind = Kind::none;
  const Operation* op = nullptr;
  std::vector<Slot> operands;
  std::vector<bool> last_use; ///< of the operand: it may be moved
  struct Target {
    std::uint32_t block = 0;            ///< number in its function
    std::uint32_t first = 0, count = 0; ///< operands that become its arguments
  };
  std::vector<Target> targets; ///< one, or two: if the first operand is true, else
};

struct Code {
  std::vector<Slot> arguments;
  std::vector<Step> steps;
  Ending ending;
  bool lanewise = false; ///< every instruction is
};

/// Blocks that branch to each other; the first is the entry.
using Blocks = std::vector<std::unique_ptr<Code>>;

struct FunctionCode {
  std::string_view name;
  Blocks blocks;
  std::uint32_t slots = 0;
};

struct Plan {
  std::vector<const Instruction*> instructions; ///< by number
  std::deque<FunctionCode> functions;           ///< the first is the entry
};

/// A value of numbers or pointers, as instructions see it.
struct Operand {
  Slot slot = 0;
  Lane lane = Lane::i64;
  Scalar scalar = Scalar::i64; ///< pointers: i64
  bool pointer = false;
  std::size_t elements = 0; ///< 0: as wide as the running combine region
  std::span<const std::int64_t> shape{};
  [[nodiscard]] std::size_t size() const { return size_of(lane); }
  [[nodiscard]] std::size_t count(const Program& p) const { return elements ? elements : p.width; }
};

class Compiler {
public:
  explicit Compiler(const Module& module) : module_(module) {}
  /// Null if anything is in `refusals`.
  [[nodiscard]] std::unique_ptr<Plan> compile(const Operation& function);
  std::vector<Refusal> refusals;

  // For the makers of instructions.
  [[nodiscard]] const Module& module() const { return module_; }
  [[nodiscard]] Slot slot(const Value& value);
  /// Nothing, after a refusal, where the value is not a scalar, a pointer or a tensor of them.
  [[nodiscard]] std::optional<Operand> operand(const Value& value, const Operation& op);
  [[nodiscard]] bool numeric(const Value& value) const;
  /// A region's block. `combine`: scalars in it stand for as many elements as it is run for.
  [[nodiscard]] std::unique_ptr<Code> code(const Block& block, bool combine = false);
  /// All blocks of a region.
  [[nodiscard]] Blocks blocks(const Region& region, bool combine = false);
  /// The function of that name, compiled once; null if there is none.
  [[nodiscard]] const FunctionCode* callee(std::string_view name);
  /// Says no to `op` and goes on, so that all that is missing is told.
  InstructionPtr unsupported(const Operation& op, std::string why);
  /// A slot that no value has, for results that an operation may lack.
  [[nodiscard]] Slot slot_for_nothing() { return next_slot_++; }
  [[nodiscard]] bool combining() const { return combine_ > 0; }

private:
  void compile_function(const Operation& op, FunctionCode& function);
  void find_last_uses(const Block& block, Code& code);
  void end_block(const Block& block, Code& code);

  const Module& module_;
  std::unique_ptr<Plan> plan_;
  std::unordered_map<const Value*, Slot> slots_;
  std::unordered_map<const Block*, std::uint32_t> block_numbers_;
  std::map<std::string_view, FunctionCode*> by_name_;
  std::vector<const Operation*> waiting_;
  std::uint32_t next_slot_ = 0;
  int combine_ = 0;
};

/// Makes the instruction for an operation; null after Compiler::unsupported.
using Make = InstructionPtr (*)(Compiler&, const Operation&);
[[nodiscard]] Make maker_of(Op op); ///< null: nobody knows how
using Makers = std::vector<Make>;   ///< by Op
// Each family enters what it makes.
void add_arithmetic(Makers& makers);
void add_comparisons(Makers& makers);
void add_constants(Makers& makers);
void add_conversions(Makers& makers);
void add_functions(Makers& makers);
void add_shapes(Makers& makers);
void add_memory(Makers& makers);
void add_atomics(Makers& makers);
void add_block_pointers(Makers& makers);
void add_descriptors(Makers& makers);
void add_reductions(Makers& makers);
void add_products(Makers& makers);
void add_scaled_products(Makers& makers);
void add_control(Makers& makers);
void add_shared_memory(Makers& makers);
void add_tensor_memory(Makers& makers);
void add_synchronisation(Makers& makers);

/// A result that may take over an operand's storage: of operands that are used for the last time
/// and that nobody else sees.
[[nodiscard]] Lanes result_lanes(Program& program, const Instruction& instruction,
                                 std::size_t bytes, std::span<const Operand> operands,
                                 std::size_t element_size);

} // namespace hebe::ttgir
