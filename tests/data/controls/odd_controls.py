"""Traffic cases that are not what they say, for tests of the control: each fails it in its own way.

The simulated GPU prices a launch by its declared work, so the declarations are where these lie.
"""

import triton
import triton.language as tl

from hebe.case import Buffer, Case, Scalar, Tolerance, Uniform, Work


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)


def made(name: str, n: int, work: Work, seed: int = 1) -> Case:
    return Case(
        name=name, kernel=copy_kernel,
        arguments={"x_ptr": Buffer((n,), "fp32", "in", Uniform(-1.0, 1.0, seed=seed)),
                   "out_ptr": Buffer((n,), "fp32", "out"), "n": Scalar(n)},
        constexprs={"BLOCK": 1024}, grid=(triton.cdiv(n, 1024),), tolerance=Tolerance(0.0, 0.0),
        reference=lambda inputs: {"out_ptr": inputs["x_ptr"]}, work=work)


def useless(n: int = 1 << 20, fraction: float = 0.0) -> Case:
    """The extra traffic is asked for and never made."""
    return made("useless", n, Work(4 * n, 4 * n, {"none": round(8 * n * fraction * 0)}))


def falling(n: int = 1 << 20, fraction: float = 0.0) -> Case:
    """The more extra traffic is asked for, the less there is."""
    return made("falling", n, Work(round(4 * n * (1 - 0.5 * fraction)), 4 * n))


def bent(n: int = 1 << 20, fraction: float = 0.0) -> Case:
    """As declared up to 0.9; beyond, far more work than the traffic."""
    return made("bent", n, Work(round(4 * n + 8 * n * fraction), 4 * n, {"fp32_mul": 300 * n if fraction > 0.9 else n}))


def silent(n: int = 1 << 20, fraction: float = 0.0) -> Case:
    """Declares nothing."""
    return made("silent", n, None)


def other_inputs(n: int = 1 << 20, fraction: float = 0.0) -> Case:
    """Its inputs are other values at another fraction."""
    return made("other_inputs", n, Work(round(4 * n + 8 * n * fraction), 4 * n), seed=1 + round(100 * fraction))


def other_shape(n: int = 1 << 20, fraction: float = 0.0) -> Case:
    """Its buffers are another size at another fraction."""
    return made("other_shape", n + round(1024 * fraction), Work(4 * n, 4 * n))


def other_bits(n: int = 1 << 20, fraction: float = 0.0) -> Case:
    """Right within its tolerance at every fraction, but not the same bits."""
    case = made("other_bits", n, Work(round(4 * n + 8 * n * fraction), 4 * n))
    scale = 1 + 1e-3 * fraction
    object.__setattr__(case, "tolerance", Tolerance(0.1, 0.0))
    object.__setattr__(case, "reference", lambda inputs: {"out_ptr": inputs["x_ptr"] * inputs["x_ptr"].dtype.type(scale)})
    return case
