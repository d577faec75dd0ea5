"""The vocabulary of a case: one kernel, one set of arguments, one grid, one expected answer.

A case file is a Python file that defines a Triton kernel and a function returning a `Case`:

    def case(n: int = 1 << 20) -> Case: ...

Every class here is frozen and checks itself when it is made, so a wrong field is reported at the line that wrote it.
All checks raise `CaseError`, whose text starts with the field's name. Nothing here imports Triton or numpy.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping

from hebe.field_checks import (
    DTYPE_BYTES, GREATEST, CaseError, element_type, integer, integer_range, number, real, store)
from hebe.kernel_source import CheckoutKernel, PackageKernel

__all__ = [
    "DTYPE_BYTES", "Buffer", "Case", "CaseError", "CheckoutKernel", "CompiledKernel", "Constant", "Normal",
    "PackageKernel", "Scalar", "Tolerance", "Uniform", "Work", "Zeros", "integer_range",
]

ROLES = ("in", "out", "inout")
GRID_LIMITS = (2**31 - 1, 65535, 65535)  # what CUDA accepts in x, y, z


@dataclass(frozen=True)
class Uniform:
    """Independent values, uniform over the half-open range [low, high); `seed` is 0 to 2**64-1."""

    low: float
    high: float
    seed: int

    def __post_init__(self) -> None:
        store(self, low=real("Uniform.low", self.low), high=real("Uniform.high", self.high),
              seed=integer("Uniform.seed", self.seed, 0, 2**64 - 1))
        if not self.low < self.high:
            raise CaseError(f"Uniform.high: {self.high} is not greater than low = {self.low}")


@dataclass(frozen=True)
class Normal:
    """Independent normal values with this mean and standard deviation; floating-point buffers only."""

    mean: float
    std: float
    seed: int

    def __post_init__(self) -> None:
        store(self, mean=real("Normal.mean", self.mean), std=real("Normal.std", self.std),
              seed=integer("Normal.seed", self.seed, 0, 2**64 - 1))
        if self.std < 0:
            raise CaseError(f"Normal.std: {self.std} is negative")


@dataclass(frozen=True)
class Zeros:
    """Every byte zero."""


@dataclass(frozen=True)
class Constant:
    """Every element this value, rounded to the buffer's type; a floating-point buffer may hold infinities and NaN."""

    value: int | float | bool

    def __post_init__(self) -> None:
        store(self, value=number("Constant.value", self.value))

    def in_type(self, dtype: str) -> int | float | bool:
        """The value as a number of this type; raises CaseError where it is none."""
        limits = integer_range(dtype)
        if limits is None:
            wide = float(self.value)
            if math.isfinite(wide) and abs(wide) > GREATEST.get(dtype, math.inf):
                raise CaseError(f"Buffer.init: Constant({self.value!r}) does not fit {dtype}")
            return wide
        if isinstance(self.value, float) or not limits[0] <= self.value <= limits[1]:
            raise CaseError(f"Buffer.init: Constant({self.value!r}) does not fit {dtype}")
        return bool(self.value) if dtype == "i1" else int(self.value)


Initialiser = Uniform | Normal | Zeros | Constant


@dataclass(frozen=True)
class Buffer:
    """Device memory that the kernel gets as a pointer: contiguous, row-major, 256-byte aligned.

    `in` and `inout` buffers have an initialiser. An `out` buffer has none: it is poisoned before the launch.
    """

    shape: tuple[int, ...]
    dtype: str
    role: str
    init: Initialiser | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.shape, (tuple, list)) or not self.shape:
            raise CaseError(f"Buffer.shape: {self.shape!r} is not a tuple of one or more positive integers")
        store(self, shape=tuple(integer("Buffer.shape", size, 1) for size in self.shape))
        element_type("Buffer.dtype", self.dtype)
        if self.role not in ROLES:
            raise CaseError(f"Buffer.role: {self.role!r} is not one of {', '.join(ROLES)}")
        if self.role == "out" and self.init is not None:
            raise CaseError("Buffer.init: an 'out' buffer takes no initialiser; use 'inout' if the kernel reads it")
        if self.role != "out" and not isinstance(self.init, Initialiser):
            raise CaseError(f"Buffer.init: a buffer with role {self.role!r} needs Uniform, Normal, Constant or Zeros, "
                            f"found {self.init!r}")
        if isinstance(self.init, Constant):
            self.init.in_type(self.dtype)
        limits = integer_range(self.dtype)
        if limits and isinstance(self.init, Normal):
            raise CaseError(f"Buffer.init: Normal cannot fill {self.dtype}; use Uniform or Zeros")
        if limits and isinstance(self.init, Uniform):
            low, high = self.init.low, self.init.high
            if not (low.is_integer() and high.is_integer()):
                raise CaseError(f"Buffer.init: Uniform bounds of {self.dtype} must be whole, found {low}, {high}")
            if low < limits[0] or high > limits[1] + 1:
                raise CaseError(f"Buffer.init: Uniform [{low:g}, {high:g}) does not fit {self.dtype}")

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.elements * DTYPE_BYTES[self.dtype]


@dataclass(frozen=True)
class Scalar:
    """A number passed by value.

    With `dtype` None the type is the one that Triton's JIT gives (i32, i64 or u64 by size; fp32; i1 for a bool; or the
    kernel's annotation). A `dtype` that Triton would not use is refused at compile time, never converted.
    """

    value: int | float | bool
    dtype: str | None = None

    def __post_init__(self) -> None:
        store(self, value=number("Scalar.value", self.value))
        if self.dtype is not None:
            element_type("Scalar.dtype", self.dtype)


@dataclass(frozen=True)
class Tolerance:
    """|output - reference| <= atol + rtol * |reference|; 0 and 0 mean equal, bit for bit but for the sign of zero."""

    atol: float
    rtol: float

    def __post_init__(self) -> None:
        store(self, atol=real("Tolerance.atol", self.atol), rtol=real("Tolerance.rtol", self.rtol))
        if self.atol < 0 or self.rtol < 0:
            raise CaseError(f"Tolerance: atol = {self.atol}, rtol = {self.rtol}; neither may be negative")


@dataclass(frozen=True)
class Work:
    """What one launch must do at the least, in bytes of global memory and operations by kind (e.g. "fp32_add")."""

    bytes_read: int
    bytes_written: int
    operations: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.operations, Mapping) or not all(isinstance(kind, str) for kind in self.operations):
            raise CaseError("Work.operations: not a dict from the operation's name to a count")
        store(self, bytes_read=integer("Work.bytes_read", self.bytes_read, 0),
              bytes_written=integer("Work.bytes_written", self.bytes_written, 0),
              operations={kind: integer(f"Work.operations[{kind!r}]", count, 0)
                          for kind, count in self.operations.items()})


@dataclass(frozen=True)
class CompiledKernel:
    """What a grid function is told of the kernel: registers of a thread, dynamic shared memory of a block, warps of a
    block, and 4-byte words of local memory of a thread (what Triton calls n_spills)."""

    registers: int
    shared_bytes: int
    num_warps: int
    spills: int


def _grid_of(value: Any) -> tuple[int, int, int]:
    """Three positive integers that CUDA takes as a grid."""
    if not isinstance(value, (tuple, list)) or not 1 <= len(value) <= 3:
        raise CaseError(f"Case.grid: {value!r} is not a tuple of one to three integers")
    sizes = tuple(value) + (1,) * (3 - len(value))
    x, y, z = (integer(f"Case.grid.{axis}", size, 1, limit) for axis, size, limit in zip("xyz", sizes, GRID_LIMITS))
    return x, y, z


@dataclass(frozen=True)
class Case:
    """One kernel ready to be compiled, launched and checked.

    kernel      a @triton.jit function, a PackageKernel or a CheckoutKernel; @triton.autotune and @triton.heuristics
                around it are taken off
    arguments   parameter name -> Buffer, Scalar or None, for every parameter that is not a tl.constexpr
    constexprs  parameter name -> value, for every tl.constexpr parameter without a default
    grid        one to three positive integers, or a function of the CompiledKernel that returns them (for a kernel
                whose host code asks for its registers or shared memory)
    options     Triton's compile options (num_warps, num_stages, ...)
    reference   {buffer name: numpy array} of the in and inout buffers -> the same for the out and inout buffers;
                None means that there is no oracle
    """

    name: str
    kernel: Any
    arguments: Mapping[str, Buffer | Scalar | None]
    grid: tuple[int, ...] | Callable[[CompiledKernel], tuple[int, ...]]
    tolerance: Tolerance
    constexprs: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    reference: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    work: Work | None = None
    description: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", self.name):
            raise CaseError(f"Case.name: {self.name!r} is not made of letters, digits, '_', '.' and '-'")
        for name in ("arguments", "constexprs", "options"):
            value = getattr(self, name)
            if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
                raise CaseError(f"Case.{name}: not a dict with names as keys")
            store(self, **{name: dict(value)})
        for name, argument in self.arguments.items():
            self._check_argument(name, argument)
        for name in self.arguments.keys() & self.constexprs.keys():
            raise CaseError(f"Case.constexprs: {name!r} is also in arguments")
        if not any(isinstance(a, Buffer) and a.role != "in" for a in self.arguments.values()):
            raise CaseError("Case.arguments: no 'out' or 'inout' buffer, so there is nothing to check")
        if not callable(self.grid):
            store(self, grid=_grid_of(self.grid))
        if not isinstance(self.tolerance, Tolerance):
            raise CaseError(f"Case.tolerance: {self.tolerance!r} is not a Tolerance")
        if self.reference is not None and not callable(self.reference):
            raise CaseError(f"Case.reference: {self.reference!r} cannot be called")
        if self.work is not None and not isinstance(self.work, Work):
            raise CaseError(f"Case.work: {self.work!r} is not a Work")
        if not isinstance(self.description, str):
            raise CaseError(f"Case.description: {self.description!r} is not a str")

    def grid_for(self, compiled: CompiledKernel) -> tuple[int, int, int]:
        """The launch grid, once the kernel is compiled."""
        return _grid_of(self.grid(compiled) if callable(self.grid) else self.grid)

    @staticmethod
    def _check_argument(name: str, argument: Any) -> None:
        if argument is None or isinstance(argument, (Buffer, Scalar)):
            return
        if "descriptor" in type(argument).__name__.lower():
            raise CaseError(f"Case.arguments[{name!r}]: tensor descriptors are not supported yet; pass a Buffer")
        if isinstance(argument, (bool, int, float)):
            raise CaseError(f"Case.arguments[{name!r}]: write Scalar({argument!r}) for a number")
        raise CaseError(f"Case.arguments[{name!r}]: {type(argument).__name__} is not a Buffer, a Scalar or None")
