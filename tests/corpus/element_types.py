"""Values of Triton's element types as numpy holds them: `encode` rounds real numbers to the bytes that a buffer has,
`decode` gives them back exactly, in float64 or int64/uint64.

Rounding is to nearest, ties to even. bf16 and the fp8 types are bit patterns (uint16, uint8): numpy has no such types.
Out of range: infinity where the type has one, else (fp8e4nv) the largest value, as the hardware's saturating
conversion; a value that is not a number stays one.
"""

from __future__ import annotations

import functools

import numpy as np

#: Triton type -> what a buffer of it is in numpy.
STORAGE = {
    "fp64": np.float64, "fp32": np.float32, "fp16": np.float16, "bf16": np.uint16, "fp8e4nv": np.uint8,
    "fp8e5": np.uint8, "i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8, "u64": np.uint64,
    "u32": np.uint32, "u16": np.uint16, "u8": np.uint8, "i1": np.uint8, "u1": np.uint8,
}
#: (exponent bits, mantissa bits, has infinities)
FP8 = {"fp8e4nv": (4, 3, False), "fp8e5": (5, 2, True)}
#: Relative distance of neighbours.
EPSILON = {"fp64": 2.0**-52, "fp32": 2.0**-23, "fp16": 2.0**-10, "bf16": 2.0**-7, "fp8e4nv": 2.0**-3, "fp8e5": 2.0**-2}


def is_real(kind: str) -> bool:
    return kind in EPSILON


def encode(values: np.ndarray, kind: str) -> np.ndarray:
    values = np.asarray(values)
    if kind == "bf16":
        return _bf16_bits(values)
    if kind in FP8:
        return _fp8_bits(values, kind)
    if kind in ("i1", "u1"):
        return (values != 0).astype(np.uint8)
    with np.errstate(over="ignore"):
        return values.astype(STORAGE[kind])


def decode(bits: np.ndarray, kind: str) -> np.ndarray:
    if kind == "bf16":
        with np.errstate(invalid="ignore"):  # a signalling not-a-number
            return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if kind in FP8:
        return _fp8_values(kind)[bits]
    if is_real(kind):
        return bits.astype(np.float64)
    return bits.astype(np.uint64) if kind == "u64" else bits.astype(np.int64)


def _bf16_bits(values: np.ndarray) -> np.ndarray:
    """From float64 in one rounding: float32 rounded to odd in between, so that no tie is made."""
    exact = values.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        near = exact.astype(np.float32)
    bits = near.view(np.uint32).copy()
    with np.errstate(invalid="ignore"):
        back = near.astype(np.float64)
        finite = np.isfinite(near)
        away = finite & (np.abs(back) > np.abs(exact))
        inexact = finite & (back != exact)
    bits[away] -= 1  # toward zero
    bits[inexact] |= 1
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(exact), 0x7FC0, rounded).astype(np.uint16)


@functools.cache
def _fp8_values(kind: str) -> np.ndarray:
    exponent_bits, mantissa_bits, infinities = FP8[kind]
    bias = 2 ** (exponent_bits - 1) - 1
    made = np.empty(256)
    for bits in range(256):
        sign = -1.0 if bits >> 7 else 1.0
        exponent, mantissa = (bits & 0x7F) >> mantissa_bits, bits & (2**mantissa_bits - 1)
        if infinities and exponent == 2**exponent_bits - 1:
            made[bits] = sign * np.inf if mantissa == 0 else np.nan
        elif not infinities and bits & 0x7F == 0x7F:
            made[bits] = np.nan
        elif exponent == 0:
            made[bits] = sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
        else:
            made[bits] = sign * (1 + mantissa / 2**mantissa_bits) * 2.0 ** (exponent - bias)
    return made


def _fp8_bits(values: np.ndarray, kind: str) -> np.ndarray:
    table = _fp8_values(kind)[:128]
    finite = table[np.isfinite(table)]  # ascending
    exact = np.abs(values.astype(np.float64))
    exact_or_zero = np.where(np.isnan(exact), 0, exact)
    above = np.clip(np.searchsorted(finite, exact_or_zero), 1, len(finite) - 1)
    below = above - 1
    low, high = exact_or_zero - finite[below], finite[above] - exact_or_zero
    bits = np.where((low < high) | ((low == high) & (below % 2 == 0)), below, above)
    half_step = (finite[-1] - finite[-2]) / 2
    if FP8[kind][2]:
        bits = np.where(exact_or_zero >= finite[-1] + half_step, len(finite), bits)  # infinity follows the largest
    bits = np.where(np.isnan(exact), 0x7F, bits)
    return (bits | np.where(np.signbit(values.astype(np.float64)), 0x80, 0)).astype(np.uint8)
