"""y = (x - mean) * rstd * w + b over rows, where rstd = 1 / sqrt(variance + eps): layer normalisation, forward.

One program makes one row in three sibling loops over its blocks: for the mean, for the variance around that mean, and
for y. Each of them reads x again, so up to three times the bytes that must be read are; with one block to a row a loop
runs once. Computed in fp32, whatever the element type.
"""

import numpy as np
import triton
import triton.language as tl

from hebe.case import DTYPE_BYTES, Buffer, Case, CaseError, Normal, Scalar, Tolerance, Uniform, Work

#: Half a unit in the last place, relative: what the store's rounding may cost.
ROUNDING = {"fp16": 2**-11, "bf16": 2**-8, "fp32": 2**-24}


@triton.jit
def layer_norm_kernel(x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64)
    x_ptr += row * n
    y_ptr += row * n
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for off in range(0, n, BLOCK):
        columns = off + tl.arange(0, BLOCK)
        sums += tl.load(x_ptr + columns, mask=columns < n, other=0.0).to(tl.float32)
    mean = tl.sum(sums, axis=0) / n
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for off in range(0, n, BLOCK):
        columns = off + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + columns, mask=columns < n, other=0.0).to(tl.float32)
        centred = tl.where(columns < n, x - mean, 0.0)
        squares += centred * centred
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / n + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for off in range(0, n, BLOCK):
        columns = off + tl.arange(0, BLOCK)
        inside = columns < n
        w = tl.load(w_ptr + columns, mask=inside).to(tl.float32)
        b = tl.load(b_ptr + columns, mask=inside).to(tl.float32)
        x = tl.load(x_ptr + columns, mask=inside, other=0.0).to(tl.float32)
        tl.store(y_ptr + columns, (x - mean) * rstd * w + b, mask=inside)


def case(m: int = 2048, n: int = 8192, dtype: str = "fp16", block: int = 0, num_warps: int = 0,
         eps: float = 1e-5) -> Case:
    """Forward. block 0: the row, but at most 64 KiB of it; num_warps 0: one for 256 elements of a block, at most 8."""
    block, num_warps = launch_of(n, dtype, block, num_warps, eps)

    def reference(inputs):
        x = inputs["x_ptr"].astype(np.float64)
        mean = x.mean(axis=1)
        x -= mean[:, None]
        rstd = 1 / np.sqrt(np.square(x).mean(axis=1) + eps)
        x *= rstd[:, None]
        y = x * inputs["w_ptr"] + inputs["b_ptr"]
        return {name: value.astype(np.float32) for name, value in
                {"y_ptr": y, "mean_ptr": mean, "rstd_ptr": rstd}.items()}

    size = DTYPE_BYTES[dtype]
    return Case(
        name="layer_norm",
        description=f"layer norm of {m} rows of {n} {dtype} elements, blocks of {block}",
        kernel=layer_norm_kernel,
        arguments={
            "x_ptr": Buffer((m, n), dtype, "in", Normal(0.5, 1.5, seed=1)),  # a mean and a variance that show
            "y_ptr": Buffer((m, n), dtype, "out"),
            "w_ptr": Buffer((n,), dtype, "in", Uniform(0.5, 1.5, seed=2)),
            "b_ptr": Buffer((n,), dtype, "in", Uniform(-1.0, 1.0, seed=3)),
            "mean_ptr": Buffer((m,), "fp32", "out"),
            "rstd_ptr": Buffer((m,), "fp32", "out"),
            "n": Scalar(n),
            "eps": Scalar(float(eps)),
        },
        constexprs={"BLOCK": block},
        grid=(m, 1, 1),
        options={"num_warps": num_warps},
        # fp32 sums of n values of size 1, by lanes and then as a tree, are right to 1e-6; y may cancel against b.
        tolerance=Tolerance(atol=4e-6, rtol=ROUNDING[dtype] + 4e-6),
        reference=reference,
        # x once: what a further loop reads may come from a cache, or be kept.
        work=Work(bytes_read=(m * n + 2 * n) * size, bytes_written=m * n * size + 8 * m, operations={
            "fp32_add": 5 * m * n, "fp32_mul": 3 * m * n, "fp32_div": 3 * m, "fp32_sqrt": m}),
    )


def launch_of(n: int, dtype: str, block: int = 0, num_warps: int = 0, eps: float = 0.0) -> tuple[int, int]:
    """The block and the warps of a row of n elements, with 0 resolved."""
    if dtype not in ROUNDING:
        raise CaseError(f"dtype: {dtype!r} is not one of {', '.join(ROUNDING)}")
    if n < 1:
        raise CaseError(f"n: {n} is not positive")
    if eps < 0:
        raise CaseError(f"eps: {eps} is negative")
    if block < 0 or block & (block - 1):
        raise CaseError(f"block: {block} is neither 0 nor a power of two")
    block = block or min(65536 // DTYPE_BYTES[dtype], triton.next_power_of_2(n))
    return block, num_warps or min(max(block // 256, 1), 8)
