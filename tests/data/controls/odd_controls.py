"""Traffic cases that are not what a control should be, for tests of it: each fails it in its own way, by what its kernel does.
"""

import triton
import triton.language as tl

from hebe.case import Buffer, Case, Scalar, Tolerance, Uniform, Work


@triton.jit
def odd_kernel(x_ptr, out_ptr, n, extra, rounds, scale, BLOCK: tl.constexpr):
    """Copies x, times `scale`; reads `extra` elements more (at most 2 n) and computes `rounds` products and sums an element."""
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    more = tl.load(x_ptr + at, mask=(at < n) & (at < extra), other=0.0)
    more += tl.load(x_ptr + at, mask=(at < n) & (at + n < extra), other=0.0)
    for _ in range(rounds):
        more = more * 0.5 + 0.25
    tl.store(out_ptr + at, tl.where(more > 1000.0, more, x * scale), mask=at < n)


def made(name: str, n: int, extra: int, declared: Work | None, rounds: int = 0, scale: float = 1.0, seed: int = 1) -> Case:
    return Case(
        name=name, kernel=odd_kernel,
        arguments={"x_ptr": Buffer((n,), "fp32", "in", Uniform(-1.0, 1.0, seed=seed)), "out_ptr": Buffer((n,), "fp32", "out"),
                   "n": Scalar(n), "extra": Scalar(extra), "rounds": Scalar(rounds), "scale": Scalar(scale)},
        constexprs={"BLOCK": 1024}, grid=(triton.cdiv(n, 1024),), tolerance=Tolerance(0.0, 0.0),
        reference=lambda inputs: {"out_ptr": inputs["x_ptr"] * inputs["x_ptr"].dtype.type(scale)}, work=declared)


def traffic(n: int, fraction: float, **operations: int) -> Work:
    return Work(round(4 * n + 8 * n * fraction), 4 * n, operations)


def useless(n: int = 1 << 20, fraction: float = 0.0) -> Case:
    """The extra traffic is asked for and never made: there is some, always the same."""
    return made("useless", n, n // 2, Work(6 * n, 4 * n))


def falling(n: int = 1 << 20, fraction: float = 0.0) -> Case:
    """The more extra traffic is asked for, the less there is."""
    extra = round(n / 2 * (1 - fraction))
    return made("falling", n, extra, Work(4 * (n + extra), 4 * n))


def bent(n: int = 1 << 20, fraction: float = 0.0) -> Case:
    """As asked up to 0.9; beyond, far more work than the traffic."""
    rounds = 160 if fraction > 0.9 else 0
    return made("bent", n, round(2 * n * fraction), traffic(n, fraction, fp32=2 * n * rounds), rounds)


def silent(n: int = 1 << 20, fraction: float = 0.0) -> Case:
    """Declares nothing."""
    return made("silent", n, round(2 * n * fraction), None)


def other_inputs(n: int = 1 << 20, fraction: float = 0.0) -> Case:
    """Its inputs are other values at another fraction."""
    return made("other_inputs", n, round(2 * n * fraction), traffic(n, fraction), seed=1 + round(100 * fraction))


def other_shape(n: int = 1 << 20, fraction: float = 0.0) -> Case:
    """Its buffers are another size at another fraction."""
    return made("other_shape", n + round(1024 * fraction), 0, Work(4 * n, 4 * n))


def other_bits(n: int = 1 << 20, fraction: float = 0.0) -> Case:
    """Right by its own reference at every fraction, but not the same bits."""
    return made("other_bits", n, round(2 * n * fraction), traffic(n, fraction), scale=1 + 1e-3 * fraction)
