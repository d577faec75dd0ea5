"""y = softmax(x) over rows: `case` holds a row in registers, `multi_block` walks over it three times.

Invariant of both: one program makes one row, in fp32, whatever the element type. `multi_block` reads x again for the
row's maximum, for the sum of exponentials and for the result, so it moves up to three times the bytes that it must.
"""

import numpy as np
import triton
import triton.language as tl

from hebe.case import DTYPE_BYTES, Buffer, Case, CaseError, Normal, Scalar, Tolerance, Work

#: Half a unit in the last place, relative: what the store's rounding may cost.
ROUNDING = {"fp16": 2**-11, "bf16": 2**-8, "fp32": 2**-24}
WIDEST = 1 << 17  # elements of a row in registers


@triton.jit
def softmax_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < n
    x = tl.load(x_ptr + row * n + columns, mask=inside, other=float("-inf")).to(tl.float32)
    exponentials = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * n + columns, exponentials / tl.sum(exponentials, axis=0), mask=inside)


@triton.jit
def multi_block_softmax_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64)
    x_ptr += row * n
    y_ptr += row * n
    peaks = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
    for off in range(0, n, BLOCK):
        columns = off + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + columns, mask=columns < n, other=float("-inf")).to(tl.float32)
        peaks = tl.maximum(peaks, x)
    peak = tl.max(peaks, axis=0)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for off in range(0, n, BLOCK):
        columns = off + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + columns, mask=columns < n, other=float("-inf")).to(tl.float32)
        sums += tl.exp(x - peak)
    total = tl.sum(sums, axis=0)
    for off in range(0, n, BLOCK):
        columns = off + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + columns, mask=columns < n, other=float("-inf")).to(tl.float32)
        tl.store(y_ptr + columns, tl.exp(x - peak) / total, mask=columns < n)


def case(m: int = 8192, n: int = 4096, dtype: str = "fp32", num_warps: int = 8) -> Case:
    """A row at once, in a block of the next power of two."""
    if not 1 <= n <= WIDEST:
        raise CaseError(f"n: {n} is outside 1 to {WIDEST}, what one block holds; use multi_block")
    return _case("softmax", softmax_kernel, 1, m, n, dtype, triton.next_power_of_2(n), num_warps)


def multi_block(m: int = 2048, n: int = 32768, dtype: str = "fp32", block: int = 4096, num_warps: int = 8) -> Case:
    """Block by block, the row read three times."""
    if n < 1:
        raise CaseError(f"n: {n} is not positive")
    return _case("softmax_multi_block", multi_block_softmax_kernel, 2, m, n, dtype, block, num_warps)


def _case(name, kernel, exponentials, m, n, dtype, block, num_warps) -> Case:
    if dtype not in ROUNDING:
        raise CaseError(f"dtype: {dtype!r} is not one of {', '.join(ROUNDING)}")
    if block < 1 or block & (block - 1):
        raise CaseError(f"block: {block} is not a power of two")

    def reference(inputs):
        y = inputs["x_ptr"].astype(np.float64)
        y -= y.max(axis=1, keepdims=True)
        np.exp(y, out=y)
        y /= y.sum(axis=1, keepdims=True)
        return {"y_ptr": y.astype(np.float32)}

    size = m * n * DTYPE_BYTES[dtype]
    return Case(
        name=name,
        description=f"softmax of {m} rows of {n} {dtype} elements, blocks of {block}",
        kernel=kernel,
        arguments={
            # With this spread the largest of a row holds a few percent of its sum: both its maximum and its tail count.
            "x_ptr": Buffer((m, n), dtype, "in", Normal(1.0, 2.0, seed=1)),
            "y_ptr": Buffer((m, n), dtype, "out"),
            "n": Scalar(n),
        },
        constexprs={"BLOCK": block},
        grid=(m, 1, 1),
        options={"num_warps": num_warps},
        # The exponential's argument, up to some 20, is rounded to fp32, and a GPU's exponential is right to some units:
        # 4e-6 of the value. Smaller than fp16's normal numbers the store's rounding is absolute.
        tolerance=Tolerance(atol=2**-25 if dtype == "fp16" else 1e-12, rtol=ROUNDING[dtype] + 4e-6),
        reference=reference,
        # x once: what a further pass reads may come from a cache, or be kept.
        work=Work(bytes_read=size, bytes_written=size, operations={
            "fp32_max": m * (n - 1), "fp32_add": m * n + m * (n - 1) + (exponentials - 1) * m * n,
            "fp32_exp": exponentials * m * n, "fp32_div": m * n}),
    )
