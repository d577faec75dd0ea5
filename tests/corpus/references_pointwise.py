"""References of flag-gems' generated pointwise kernels: one numpy function a kernel, all shapes alike."""

from __future__ import annotations

import math
from typing import Any, Callable, Iterator

import numpy as np

import element_types
from launches import Launch
from references import REFERENCES, Maker, cdiv

erf = np.vectorize(math.erf, otypes=[float])


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _gelu_tanh(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _slope(f: Callable, x: np.ndarray, h: float = 1e-4) -> np.ndarray:
    return (f(x + h) - f(x - h)) / (2 * h)


def _nan_to_num(x: np.ndarray, nan: float, above: float, below: float) -> np.ndarray:
    return np.nan_to_num(x, nan=nan, posinf=above, neginf=below)


def _isclose(x: np.ndarray, y: np.ndarray, rtol: float, atol: float, equal_nan: bool, zero_tol: bool) -> np.ndarray:
    return np.isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan)


def _floor_mod(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x - y * (x // y)


#: kernel -> f(inputs..., scalars...), one array or a tuple of them.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs_func": np.abs, "add_func": lambda x, y, alpha: x + alpha * y, "sub_func": lambda x, y, alpha: x - alpha * y,
    "addcmul_forward": lambda x, a, b, value: x + value * a * b, "atan2_kernel": np.arctan2,
    "bitwise_and_func": np.bitwise_and, "bitwise_not_func": np.invert,
    "bitwise_left_shift_kernel": lambda x, y: (x << y).astype(np.int32), "bitwise_right_shift_kernel": lambda x, y: x >> y,
    "clamp_func": lambda x, low, high: np.clip(x, low, high), "clamp_func_tensor": lambda x, low, high: np.clip(x, low, high),
    "copysign_func": np.copysign, "cos_func": np.cos, "cosh_func": np.cosh, "true_div_func": np.divide,
    "trunc_div_func": lambda x, y: np.trunc(x / y),
    "trunc_div_int_func": lambda x, y: np.sign(x) * np.sign(y) * (abs(x) // abs(y)),
    "floor_div_func": lambda x, y: x // y, "rem_tt": _floor_mod, "erf_func": erf, "exp2_func": np.exp2,
    "expm1_func": np.expm1, "eq_func": np.equal, "fill_scalar_func": lambda x, value: np.full_like(x, value),
    "gelu_none": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))), "gelu_tanh": _gelu_tanh,
    "gelu_backward_tanh": lambda x, dy: dy * _slope(_gelu_tanh, x), "isinf_func": np.isinf, "isnan_func": np.isnan,
    "isclose_func": _isclose, "lerp_tensor_kernel": lambda x, y, w: x + w * (y - x),
    "log_sigmoid_forward": lambda x: -np.log1p(np.exp(-x)), "logaddexp_func": np.logaddexp,
    "logical_xor_func": np.not_equal, "masked_fill_kernel": lambda x, mask, value: np.where(mask, value, x),
    "maximum_kernel": np.fmax, "minimum_kernel": np.fmin,  # arith.maxnumf: a number wins over NaN
    "mul_complex_kernel": lambda ar, ai, br, bi: (ar * br - ai * bi, ar * bi + ai * br),
    "div_complex_kernel": lambda ar, ai, br, bi: (((ar + 1j * ai) / (br + 1j * bi)).real,
                                                  ((ar + 1j * ai) / (br + 1j * bi)).imag),
    "nan_to_num_func": _nan_to_num, "pow_func": np.power, "polar_kernel": lambda r, a: (r * np.cos(a), r * np.sin(a)),
    "relu_forward": lambda x: np.maximum(x, 0), "rsqrt_func": lambda x: 1 / np.sqrt(x), "sigmoid_forward": _sigmoid,
    "signbit_func": np.signbit, "silu_forward": lambda x: x * _sigmoid(x),
    "silu_backward_kernel": lambda x, dy: dy * _slope(lambda t: t * _sigmoid(t), x),
    "softplus_forward": lambda x, beta, threshold: np.where(x * beta > threshold, x, np.log1p(np.exp(x * beta)) / beta),
    "tan_func": np.tan, "tanh_kernel": np.tanh,
    "threshold_kernel": lambda x, threshold, value: np.where(x > threshold, x, value),
    "_to_copy_func": lambda x: x, "where_inner": lambda mask, x, y: np.where(mask, x, y),
}
#: Inputs of these are taken from another range than -3 to 3, by place; and what scalars are.
RANGES: dict[str, list[tuple[float, float]]] = {
    "true_div_func": [(-3, 3), (0.5, 3)], "trunc_div_func": [(-30, 30), (0.7, 3)], "floor_div_func": [(-30, 30), (0.7, 3)],
    "div_complex_kernel": [(-3, 3), (-3, 3), (1, 3), (1, 3)], "pow_func": [(0.1, 3), (-2, 2)], "rsqrt_func": [(0.1, 9)],
    "clamp_func_tensor": [(-3, 3), (-2, -1), (1, 2)], "tan_func": [(-1.2, 1.2)], "lerp_tensor_kernel": [(-3, 3)] * 2 + [(0, 1)],
    "bitwise_left_shift_kernel": [(-2**31, 2**31), (0, 20)], "bitwise_right_shift_kernel": [(-2**62, 2**62), (0, 40)],
    "bitwise_and_func": [(-2**7, 2**7)] * 2, "trunc_div_int_func": [(-1000, 1000), (1, 9)], "rem_tt": [(-2**40, 2**40), (1, 2**20)],
    "sub_func": [(-2**40, 2**40)] * 2,
}
SCALARS: dict[str, list[Any]] = {
    "add_func": [0.5], "sub_func": [3], "addcmul_forward": [0.25], "clamp_func": [-1.0, 1.5], "fill_scalar_func": [2.5],
    "isclose_func": [0.01, 0.001, True, False], "masked_fill_kernel": [-1.5], "nan_to_num_func": [0.5, 100.0, -100.0],
    "softplus_forward": [2.0, 4.0], "threshold_kernel": [0.5, -2.0],
}
#: These meet infinities, and what is not a number, on purpose.
SPECIAL = {"isinf_func", "isnan_func", "isclose_func", "nan_to_num_func", "maximum_kernel", "minimum_kernel", "signbit_func"}
SHAPES = {1: [(1,), (1000,), (2500,)], 2: [(1, 1), (17, 70), (33, 128)], 3: [(1, 1, 1), (5, 9, 33)], 4: [(1, 1, 1, 1), (3, 5, 9, 33)]}


def _input(m: Maker, name: str, place: int, shape: tuple[int, ...]) -> np.ndarray:
    kernel, kind = m.entry.kernel, m.kind(name)
    if kind == "i1":
        return m.whole(*shape, low=0, high=2).astype(bool)
    ranges = RANGES.get(kernel)
    low, high = ranges[place] if ranges and place < len(ranges) else (-3, 3)
    if not element_types.is_real(kind):
        return m.whole(*shape, low=math.ceil(max(low, 0) if kind[0] == "u" else low), high=math.ceil(high) + (low >= 0))
    x = m.real(name, *shape, low=low, high=high)
    if kernel in SPECIAL:
        for value in (np.inf, -np.inf, np.nan, -0.0):
            x[m.random.random(shape) < 0.05] = value
    if kernel in ("eq_func", "isclose_func") and place == 1:
        x = np.where(m.random.random(shape) < 0.5, m.first, x)
    m.first = x
    return x


def pointwise(m: Maker) -> Iterator[Launch]:
    rank, args = m.entry.pointwise, m.entry.args
    inputs = [name for name in args if name.startswith("in") and name.endswith("_ptr")]
    outs = [name for name in args if name.startswith("out") and name.endswith("_ptr")]
    tile = [m[f"tile_size{i}"] for i in range(rank)] if rank > 1 or "tile_size0" in m.entry.constexprs else [m["tile_size"]]
    one = m["one_tile_per_cta"]
    for shape in SHAPES[rank]:
        tiles = math.prod(cdiv(s, t) for s, t in zip(shape, tile))
        programs = tiles if one else 2
        whole = (*shape[:-1], shape[-1] if rank == 1 else cdiv(shape[-1] + 1, 16) * 16)  # the last axis has room
        inside = tuple(slice(0, s) for s in shape)
        values = {name: _input(m, name, place, whole) for place, name in enumerate(inputs)}
        scalars = SCALARS.get(m.entry.kernel, [])
        with np.errstate(all="ignore"):
            found = FUNCTIONS[m.entry.kernel](*(values[name][inside] for name in inputs), *scalars)
        expected = {}
        for name, result in zip(outs, found if isinstance(found, tuple) else (found,)):
            expected[name] = m.blank(*whole) if m.kind(name) != "u8" else m.blank(*whole)
            expected[name] = expected[name].astype(np.int64) if m.kind(name)[0] in "iu" else expected[name]
            expected[name][inside] = result
        given: dict[str, Any] = {**values, **{f"val{i}": value for i, value in enumerate(scalars)},
                                 **{f"s{i}": s for i, s in enumerate(shape)}, "num_tasks": math.prod(shape)}
        if not one:
            given["tiles_per_cta"] = cdiv(tiles, programs)
        for name in (*inputs, *outs):
            for axis in range(rank):
                given[f"{name[:-4]}_stride{axis}"] = math.prod(whole[axis + 1:])
        given = {name: value for name, value in given.items() if name in args}
        yield Launch("x".join(map(str, shape)), (programs,), given, expected, **_tolerance(m))


def _tolerance(m: Maker) -> dict[str, float]:
    """Functions of a GPU's library may be a few roundings off; the rest of the error is fp32's, whatever is stored."""
    return {"atol": 4e-6, "rtol": 4e-6}


def add_all(ids: list[tuple[str, str]]) -> None:
    for id_, kernel in ids:
        if kernel in FUNCTIONS:
            REFERENCES[id_] = pointwise


def _register() -> None:
    import corpus

    add_all([(entry.id, entry.kernel) for entry in corpus.entries() if entry.pointwise])


_register()
