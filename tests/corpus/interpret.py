"""Runs the references' launches in Triton's own CPU interpreter: python tests/corpus/interpret.py [REGEX].

It shows that the references say what the kernels compute, by a program that has nothing to do with ours. Triton's
interpreter computes on numpy; only its argument handling asks for torch tensors, which `Pointer` stands in for.
Exits with 1 if an output differs; a kernel that the interpreter itself cannot run is listed and does not count.
"""

from __future__ import annotations

import ast
import builtins
import functools
import hashlib
import math
import os
import re
import sys
import time
import warnings
from typing import Any

import numpy as np

import corpus


TYPES = {"i1": "int1", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16",
         "u32": "uint32", "u64": "uint64", "fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64",
         "fp8e5": "float8e5", "fp8e4nv": "float8e4nv"}
ZONE = 1 << 16  # bytes around a buffer that nothing may write


class Pointer:
    """A buffer as the interpreter takes it: an address and an element type."""

    def __init__(self, array: np.ndarray, kind: str) -> None:
        self.array, self.kind = array, kind
        self.whole = np.full(array.nbytes + 2 * ZONE, 0xA5, np.uint8)
        self.whole[ZONE:ZONE + array.nbytes] = array.view(np.uint8).ravel()

    def data_ptr(self) -> int:
        return self.whole.ctypes.data + ZONE

    def finish(self) -> bool:
        """Bring the contents back; says whether the zones are as they were."""
        inside = self.whole[ZONE:ZONE + self.array.nbytes]
        self.array.view(np.uint8).ravel()[:] = inside
        return bool((self.whole[:ZONE] == 0xA5).all() and (self.whole[ZONE + self.array.nbytes:] == 0xA5).all())


def run(entry: corpus.Entry, function: Any, launch: Any, buffers: dict[str, np.ndarray]) -> None:
    """One launch; the buffers are written in place."""
    import triton.language as tl
    from triton.runtime import interpreter

    def convert(value: Any) -> Any:
        if isinstance(value, Pointer):
            kind = tl.pointer_type(getattr(tl, TYPES[value.kind]))  # kernels compare types by identity
            return tl.tensor(interpreter.TensorHandle(np.array([value.data_ptr()], np.uint64), kind), kind)
        return original(value)

    class Executor(interpreter.GridExecutor):
        def _init_args_hst(self, given: Any, keywords: Any) -> Any:
            return given, keywords

        def _restore_args_dev(self, *unused: Any) -> None:
            return None

    original = interpreter._implicit_cvt
    interpreter._implicit_cvt = convert
    try:
        values = {parameter: corpus.decode(entry.constexprs[parameter]) for parameter in entry.constexprs}
        for name, kind in entry.args.items():
            values[name] = Pointer(buffers[name], kind.partition(":")[0][1:]) if kind[0] == "*" else _scalar(
                launch.args[name], kind.partition(":")[0])
        executor = Executor(interpreted(function).rewrite(), function.arg_names, tuple(launch.full_grid))
        os.environ["TRITON_INTERPRET"] = "1"  # constexpr functions look
        executor(**values)
        for name, value in values.items():
            if isinstance(value, Pointer) and not value.finish():
                raise RuntimeError(f"a write outside of {name}")
    finally:
        os.environ.pop("TRITON_INTERPRET", None)
        interpreter._implicit_cvt = original


@functools.cache
def interpreted(function: Any) -> Any:
    import triton.language as tl
    from triton.runtime.interpreter import InterpretedFunction

    if not any(value is tl for value in function.fn.__globals__.values()):
        function.fn.__globals__["_corpus_tl"] = tl  # the interpreter asks that a function's module knows it
    return InterpretedFunction(function.fn)


def _scalar(value: Any, kind: str) -> Any:
    import triton.language as tl
    from triton.runtime import interpreter

    types = {"i1": (np.bool_, tl.int1), "i32": (np.int32, tl.int32), "i64": (np.int64, tl.int64),
             "fp32": (np.float32, tl.float32), "fp64": (np.float64, tl.float64)}
    storage, made = types[kind]
    return tl.tensor(interpreter.TensorHandle(np.array([value], storage), made), made)


#: What Triton 3.6's interpreter gets wrong, by element type.
NOT_JUDGED = {"bf16": "Triton's interpreter computes with the bits of bf16",
              "fp8": "Triton's interpreter loses the carry of a rounding to fp8: 1.99 becomes 1.0"}
#: And by function.
NOT_JUDGED_FUNCTIONS = {name: "Triton's interpreter lets NaN win in arith.maxnumf and arith.minnumf"
                        for name in ("maximum_kernel", "minimum_kernel")}
#: libdevice's functions in numpy: the interpreter has none of them.
LIBDEVICE = {
    "tanh": np.tanh, "rsqrt": lambda x: 1 / np.sqrt(x), "exp": np.exp, "exp2": np.exp2, "log1p": np.log1p, "log": np.log,
    "atan2": np.arctan2, "atan": np.arctan, "acos": np.arccos, "cosh": np.cosh, "sinh": np.sinh, "tan": np.tan,
    "erf": np.vectorize(math.erf, otypes=[np.float32]), "expm1": np.expm1, "pow": np.power, "copysign": np.copysign,
    "fmod": np.fmod, "trunc": np.trunc, "rint": np.rint, "isinf": np.isinf, "isnan": np.isnan, "signbit": np.signbit,
    "isfinited": np.isfinite, "finitef": np.isfinite, "isnanf": np.isnan, "div_rn": np.divide, "sqrt_rn": np.sqrt,
    "div_rz": lambda x, y: _toward_zero(x, y), "fast_expf": np.exp, "floor": np.floor, "ceil": np.ceil, "round": np.round,
    "nearbyint": np.rint, "cos": np.cos, "sin": np.sin,
}


_replacements: dict[int, Any] = {}


def replace_libdevice() -> None:
    """In all modules so far: only once they are imported, as Triton's JIT refuses kernels that call plain functions."""
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if id(value) in _replacements:
                setattr(module, name, _replacements[id(value)])


def _toward_zero(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    near, exact = x / y, x.astype(np.float64) / y
    return np.where(np.abs(near) > np.abs(exact), np.nextafter(near, np.float32(0)), near)


def mend_interpreter() -> None:
    """What Triton 3.6's interpreter lacks here: libdevice, and integers of one-element arrays, which numpy 2.4 refuses."""
    import triton.language as tl
    from triton.language.extra import libdevice
    from triton.language.extra.cuda import libdevice as cuda_libdevice
    from triton.runtime import JITFunction, interpreter

    def of_numpy(function: Any) -> Any:
        def call(*values: Any) -> Any:
            given = [value.handle.data if isinstance(value, tl.tensor) else np.float32(value) for value in values]
            like = next(value for value in values if isinstance(value, tl.tensor))
            with np.errstate(all="ignore"):
                made = function(*given)
            if made.dtype == bool:
                kind, storage = tl.int32, np.int32
            else:
                kind, storage = like.dtype, given[0].dtype
            shaped = tl.block_type(kind, list(like.shape)) if like.type.is_block() else kind
            return tl.tensor(interpreter.TensorHandle(made.astype(storage), kind), shaped)

        return call

    for name, function in LIBDEVICE.items():
        for module in (libdevice, cuda_libdevice):
            if hasattr(module, name):
                _replacements[id(getattr(module, name))] = of_numpy(function)
    original = interpreter._patch_lang_tensor

    def patch(tensor: Any, scope: Any) -> None:
        original(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))
        scope.set_attr(tensor, "__bool__",
                       lambda self: bool(self.handle.data.item()) if self.handle.data.size == 1 else True)

    interpreter._patch_lang_tensor = patch
    _mend_logic(interpreter)
    # The real one reads the library's functions, which are the interpreter's here; flag-gems asks for it at import.
    JITFunction.cache_key = property(lambda self: hashlib.sha256(self.src.encode()).hexdigest())
    JITFunction.__call__ = lambda self, *values, **named: interpreted(self)(*values, **named)  # device functions


def _mend_logic(interpreter: Any) -> None:
    """`a and b`, `a or b`, `not a` of tensors, element by element, as Triton's compiler takes them; the interpreter
    leaves them to Python, which gives one of the operands."""
    import triton.language as tl

    def block(value: Any) -> bool:
        return isinstance(value, tl.tensor) and value.type.is_block()

    def logic(both: bool, first: Any, later: Any) -> Any:
        if not isinstance(first, tl.tensor):
            return (first and later()) if both else (first or later())
        second = later()
        if not block(first) and not block(second):
            return (first and second) if both else (first or second)
        semantic = interpreter.interpreter_semantic
        join = semantic.logical_and if both else semantic.logical_or
        return join(first, semantic.to_tensor(second))

    def inverse(value: Any) -> Any:
        return interpreter.interpreter_semantic.not_(value) if block(value) else not value

    class Transformer(interpreter.ASTTransformer):
        def visit_Assign(self, node: ast.Assign) -> Any:
            node.value = self.visit(node.value)
            return super().visit_Assign(node)

        def visit_BoolOp(self, node: ast.BoolOp) -> Any:
            self.generic_visit(node)
            made = node.values[0]
            for value in node.values[1:]:
                later = ast.Lambda(ast.arguments([], [], None, [], [], None, []), value)
                made = ast.Call(ast.Name("_corpus_logic", ast.Load()),
                                [ast.Constant(isinstance(node.op, ast.And)), made, later], [])
            return made

        def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
            self.generic_visit(node)
            if isinstance(node.op, ast.Not):
                return ast.Call(ast.Name("_corpus_not", ast.Load()), [node.operand], [])
            return node

    builtins._corpus_logic, builtins._corpus_not = logic, inverse
    interpreter.FunctionRewriter.ast_transformer = Transformer()


def main() -> int:
    match = sys.argv[1] if len(sys.argv) > 1 else ""
    warnings.simplefilter("ignore")
    corpus.prepare(90, corpus.ROOT / "build" / "corpus", interpreted=True)
    mend_interpreter()
    import launches
    import references

    wrong, unable, done, count = [], [], 0, 0
    chosen = [entry for entry in corpus.entries() if entry.id in references.REFERENCES and re.search(match, entry.id)]
    functions = {entry.id: corpus.function_of(entry) for entry in chosen}
    replace_libdevice()
    for entry in chosen:
        began = time.monotonic()
        failed = None
        for launch in references.launches_of(entry):
            launches.check_arguments(entry, launch)
            buffers = launches.buffers(entry, launch)
            try:
                with np.errstate(all="ignore"):
                    run(entry, functions[entry.id], launch, buffers)
            except Exception as error:
                failed = f"{entry.id} {launch.name}: {type(error).__name__}: {str(error)[:200]}"
                break
            different = launches.differences(entry, launch, buffers)
            reason = next((why for kind, why in NOT_JUDGED.items() if kind in str(entry.args)),
                          NOT_JUDGED_FUNCTIONS.get(entry.function.rpartition(":")[2]))
            if different and reason:
                failed = f"{entry.id} {launch.name}: {reason}"
                break
            wrong += different
            count += 1
        if failed:
            unable.append(failed)
        done += failed is None
        print(f"{entry.id}: {failed or 'done'}, {time.monotonic() - began:.1f} s", flush=True)
    for text in unable:
        print(f"not run: {text}")
    for text in wrong:
        print(f"WRONG {text}")
    print(f"{done} kernels' entries run, {count} launches, {len(wrong)} buffers wrong, {len(unable)} not run")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
