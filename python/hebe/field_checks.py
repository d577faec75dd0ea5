"""Checks of a case's fields, each of which returns the plain value or raises `CaseError`, and the element types."""

from __future__ import annotations

import math
import numbers
import operator
from typing import Any

#: Element types by Triton's own short names, with the bytes that one element takes in memory.
DTYPE_BYTES = {
    "fp16": 2, "bf16": 2, "fp32": 4, "fp64": 8, "i1": 1,
    "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u8": 1, "u16": 2, "u32": 4, "u64": 8,
}
#: The greatest finite value of a floating-point type.
GREATEST = {"fp16": 65504.0, "bf16": 255 * 2.0**120, "fp32": (2 - 2.0**-23) * 2.0**127}


class CaseError(ValueError):
    """A field of a case is wrong. The text names the field, what it was and what it may be."""


def integer_range(dtype: str) -> tuple[int, int] | None:
    """Least and greatest value of an integer type; None for a floating-point type."""
    if dtype[0] not in "iu":
        return None
    bits = int(dtype[1:])
    if dtype == "i1":
        return 0, 1
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if dtype[0] == "i" else (0, (1 << bits) - 1)


def integer(name: str, value: Any, low: int, high: int | None = None) -> int:
    """`value` as a plain int within [low, high]; numpy integers are welcome, bools and floats are not."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise CaseError(f"{name}: {value!r} is not an integer") from None
    if number < low or (high is not None and number > high):
        raise CaseError(f"{name}: {number} is outside {low} to {'any' if high is None else high}")
    return number


def real(name: str, value: Any) -> float:
    """`value` as a finite float."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise CaseError(f"{name}: {value!r} is not a finite number")
    return float(value)


def number(name: str, value: Any) -> int | float | bool:
    """`value` as a plain number; infinities and NaN are legitimate here."""
    if isinstance(value, bool):
        return value
    if isinstance(value, numbers.Integral):
        return integer(name, value, -(2**63), 2**64 - 1)
    if isinstance(value, numbers.Real):
        return float(value)
    raise CaseError(f"{name}: {value!r} is not an int, a float or a bool")


def element_type(name: str, value: Any) -> str:
    if value not in DTYPE_BYTES:
        raise CaseError(f"{name}: {value!r} is not an element type; choose from {', '.join(DTYPE_BYTES)}")
    return str(value)


def store(instance: Any, **values: Any) -> None:
    """Store normalised values in a frozen dataclass while it is being made."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)
