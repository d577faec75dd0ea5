"""Small kernels for tests of qualification: one that reads a row three times, and ones that must be refused."""

import triton
import triton.language as tl

from hebe.case import Buffer, Case, Constant, Normal, Scalar, Tolerance, Uniform


@triton.jit
def centre(x_ptr, y_ptr, mean_ptr, n, BLOCK: tl.constexpr, PRINT: tl.constexpr, CHECK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, n, BLOCK):
        columns = off + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * n + columns, mask=columns < n, other=0.0)
    mean = tl.sum(total, axis=0) / n
    tl.store(mean_ptr + row, mean)
    if PRINT:
        tl.device_print("mean", mean)
    if CHECK:
        tl.device_assert(mean < 1e30)
    for off in range(0, n, BLOCK):
        columns = off + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + columns, mask=columns < n, other=0.0)
        tl.store(y_ptr + row * n + columns, x - mean, mask=columns < n)


def case(m: int = 5, n: int = 256, block: int = 256, says: bool = False, checks: bool = False, value: float = 0.0,
         num_warps: int = 4) -> Case:
    """y = x - mean(x) of each row, fp32. `value` other than 0: every x is it."""

    def reference(inputs):
        mean = inputs["x_ptr"].astype("f8").mean(axis=1)
        return {"y_ptr": (inputs["x_ptr"] - mean[:, None]).astype("f4"), "mean_ptr": mean.astype("f4")}

    return Case(
        name="centre",
        kernel=centre,
        arguments={
            "x_ptr": Buffer((m, n), "fp32", "in", Constant(value) if value != 0 else Normal(1.0, 1.0, seed=1)),
            "y_ptr": Buffer((m, n), "fp32", "out"), "mean_ptr": Buffer((m,), "fp32", "out"), "n": Scalar(n),
        },
        constexprs={"BLOCK": block, "PRINT": says, "CHECK": checks},
        grid=(m,),
        options={"num_warps": num_warps, **({"debug": True} if checks else {})},
        tolerance=Tolerance(1e-5, 1e-5),
        reference=reference,
    )


@triton.jit
def grow(x_ptr, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + columns, mask=columns < n)
    tl.store(x_ptr + columns, x + 1.0, mask=columns < n)


def in_place(n: int = 256) -> Case:
    """x += 1, in place: launched twice it is another x."""
    return Case(
        name="grow", kernel=grow, arguments={"x_ptr": Buffer((n,), "fp32", "inout", Uniform(0.0, 1.0, seed=1)), "n": Scalar(n)},
        constexprs={"BLOCK": 256}, grid=(1,), tolerance=Tolerance(0.0, 0.0),
        reference=lambda inputs: {"x_ptr": inputs["x_ptr"] + inputs["x_ptr"].dtype.type(1)})


@triton.jit
def wide(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], dtype=tl.float32)
    row = tl.program_id(0)
    for off in range(0, n, BLOCK):
        columns = off + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * n + columns)
    mean = tl.sum(total, axis=0) / n
    for off in range(0, n, BLOCK):
        columns = off + tl.arange(0, BLOCK)
        tl.store(y_ptr + row * n + columns, tl.load(x_ptr + row * n + columns) - mean)


def few_registers(m: int = 2, n: int = 16384, block: int = 2048, registers: int = 40) -> Case:
    """Four warps and few registers: a whole row cannot be retained without spilling it."""

    def reference(inputs):
        x = inputs["x_ptr"].astype("f8")
        return {"y_ptr": (x - x.mean(axis=1, keepdims=True)).astype("f4")}

    return Case(
        name="wide", kernel=wide,
        arguments={"x_ptr": Buffer((m, n), "fp32", "in", Normal(0.0, 1.0, seed=1)), "y_ptr": Buffer((m, n), "fp32", "out"),
                   "n": Scalar(n)},
        constexprs={"BLOCK": block}, grid=(m,), options={"num_warps": 4, "maxnreg": registers},
        tolerance=Tolerance(1e-5, 1e-5), reference=reference)
