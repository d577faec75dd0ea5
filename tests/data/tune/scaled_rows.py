"""y = 2 x, row by row: a case whose configurations cost what they say, for tests of tuning.

`passes` reads as many rows of x for each row, `block` is the tile, `wrong` adds one to the first element, `refuse` is a
case's own no, `adds` is how many zeros are added to each element. One launch with passes = 1 costs least.
"""

import numpy as np
import triton
import triton.language as tl

from hebe.case import Buffer, Case, CaseError, Normal, Scalar, Tolerance, Work


@triton.jit
def scaled_rows_kernel(x_ptr, y_ptr, m, n, PASSES: tl.constexpr, BLOCK: tl.constexpr, WRONG: tl.constexpr,
                       ADDS: tl.constexpr):
    row = tl.program_id(axis=0)
    columns = tl.arange(0, BLOCK)
    inside = columns < n
    x = tl.load(x_ptr + row * n + columns, mask=inside, other=0.0)
    y = x + x
    for p in range(1, PASSES):
        other = tl.load(x_ptr + (row + p) % m * n + columns, mask=inside, other=0.0)
        y = tl.where(other != other, other, y)  # no input is NaN, which the compiler cannot know
    for _ in range(ADDS):
        y = y + 0.0  # of -0 it makes 0, so that the compiler keeps it
    if WRONG:
        y = tl.where((columns == 0) & (row == 0), y + 1.0, y)
    tl.store(y_ptr + row * n + columns, y, mask=inside)


def case(m: int = 64, n: int = 4096, passes: int = 1, block: int = 4096, wrong: bool = False, refuse: bool = False,
         adds: int = 0, num_warps: int = 4) -> Case:
    if refuse:
        raise CaseError("refuse: this configuration does not exist")
    if block < n:
        raise CaseError(f"block: {block} does not hold a row of {n}")
    return Case(
        name="scaled_rows",
        description=f"{m} rows of {n}, read {passes} times",
        kernel=scaled_rows_kernel,
        arguments={"x_ptr": Buffer((m, n), "fp32", "in", Normal(0.0, 1.0, seed=1)), "y_ptr": Buffer((m, n), "fp32", "out"),
                   "m": Scalar(m), "n": Scalar(n)},
        constexprs={"PASSES": passes, "BLOCK": block, "WRONG": wrong, "ADDS": adds},
        grid=(m, 1, 1),
        options={"num_warps": num_warps},
        tolerance=Tolerance(atol=1e-6, rtol=1e-6),
        reference=lambda inputs: {"y_ptr": 2 * inputs["x_ptr"]},
        work=Work(bytes_read=4 * m * n * passes, bytes_written=4 * m * n, operations={"fp32_add": m * n * (1 + adds)}),
    )
