"""c = a @ b in fp16 with sums in fp32: `case` tile by tile on tensor cores, `vector` row by row without them.

Invariant of `case`: one program makes one block_m x block_n tile of c. Programs are numbered so that `group` tiles of rows
go through all columns before the next rows begin: programs that run together then share tiles of a and b in the L2.

Invariant of `vector`: one program makes block_n columns of one row of c, every sum in one fixed order, so that equal inputs
give equal bits. It is for few rows: each reads all of b. k is split over the threads of a program and not over programs: their
parts could be added in one launch only as they arrive, or through a buffer that no other candidate has.
"""

import numpy as np
import triton
import triton.language as tl

from hebe.case import GRID_LIMITS, Buffer, Case, CaseError, Scalar, Tolerance, Uniform, Work


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
                  GROUP: tl.constexpr):
    program = tl.program_id(axis=0)
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    first = program // (GROUP * tiles_n) * GROUP
    height = tl.minimum(tiles_m - first, GROUP)  # the last group may be lower
    within = program % (GROUP * tiles_n)
    rows = ((first + within % height) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    columns = (within // height * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    steps = tl.arange(0, BLOCK_K)
    a_tile = a_ptr + rows.to(tl.int64) * k + steps[None, :]
    b_tile = b_ptr + steps[:, None].to(tl.int64) * n + columns
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for off in range(0, k, BLOCK_K):
        a = tl.load(a_tile, mask=(rows < m) & (steps[None, :] < k - off), other=0.0)
        b = tl.load(b_tile, mask=(steps[:, None] < k - off) & (columns < n), other=0.0)
        sums = tl.dot(a, b, sums)
        a_tile += BLOCK_K
        b_tile += BLOCK_K * n
    tl.store(c_ptr + rows.to(tl.int64) * n + columns, sums.to(tl.float16), mask=(rows < m) & (columns < n))


@triton.jit
def vector_matmul_kernel(a_ptr, b_ptr, c_ptr, n, k, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
                         STAGES: tl.constexpr):
    row = tl.program_id(axis=1).to(tl.int64)
    columns = tl.program_id(axis=0) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    steps = tl.arange(0, BLOCK_K)
    a_tile = a_ptr + row * k + steps
    b_tile = b_ptr + steps[:, None].to(tl.int64) * n + columns
    sums = tl.zeros((BLOCK_K, BLOCK_N), dtype=tl.float32)  # each thread its own: they meet once, after the loop
    for off in tl.range(0, k, BLOCK_K, num_stages=STAGES):
        a = tl.load(a_tile, mask=steps < k - off, other=0.0).to(tl.float32)
        b = tl.load(b_tile, mask=(steps[:, None] < k - off) & (columns < n), other=0.0).to(tl.float32)
        sums += a[:, None] * b
        a_tile += BLOCK_K
        b_tile += BLOCK_K * n
    total = tl.sum(sums, axis=0)[None, :]
    tl.store(c_ptr + row * n + columns, total.to(tl.float16), mask=columns < n)


def case(m: int = 4096, n: int = 4096, k: int = 4096, block_m: int = 128, block_n: int = 256, block_k: int = 64,
         group: int = 8, num_warps: int = 8, num_stages: int = 3) -> Case:
    """fp16 in and out, all three matrices row by row."""
    _check_positive(m=m, n=n, k=k, group=group)
    _check_blocks(16, block_m=block_m, block_n=block_n, block_k=block_k)
    return _case(
        "matmul", f"tiles of {block_m} x {block_n} x {block_k}", matmul_kernel, m, n, k,
        scalars={"m": Scalar(m), "n": Scalar(n), "k": Scalar(k)},
        constexprs={"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k, "GROUP": group},
        grid=(triton.cdiv(m, block_m) * triton.cdiv(n, block_n), 1, 1),
        options={"num_warps": num_warps, "num_stages": num_stages}, multiply="fp16_mul")


def vector(m: int = 1, n: int = 4096, k: int = 4096, block_n: int = 32, block_k: int = 128, num_warps: int = 4,
           num_stages: int = 1) -> Case:
    """The same product a row at a time; from num_stages 2 on, steps are fetched ahead into shared memory."""
    _check_positive(m=m, n=n, k=k, num_stages=num_stages)
    _check_blocks(1, block_n=block_n, block_k=block_k)
    if m > GRID_LIMITS[1]:
        raise CaseError(f"m: {m} is more than the {GRID_LIMITS[1]} programs of a grid's second axis; use matmul")
    return _case(
        "matmul_vector", f"row by row, {block_n} columns by {block_k} steps", vector_matmul_kernel, m, n, k,
        scalars={"n": Scalar(n), "k": Scalar(k)},
        constexprs={"BLOCK_N": block_n, "BLOCK_K": block_k, "STAGES": num_stages},
        grid=(triton.cdiv(n, block_n), m, 1),
        options={"num_warps": num_warps}, multiply="fp32_mul")


def _check_positive(**sizes):
    for name, size in sizes.items():
        if size < 1:
            raise CaseError(f"{name}: {size} is not positive")


def _check_blocks(least, **blocks):
    for name, size in blocks.items():
        if size < least or size & (size - 1):
            raise CaseError(f"{name}: {size} is not a power of two from {least} on")


def _case(name, how, kernel, m, n, k, *, scalars, constexprs, grid, options, multiply) -> Case:
    def reference(inputs):
        product = inputs["a_ptr"].astype(np.float64) @ inputs["b_ptr"].astype(np.float64)
        return {"c_ptr": product.astype(np.float32)}

    return Case(
        name=name,
        description=f"c = a @ b, {m} x {n} x {k} in fp16, {how}",
        kernel=kernel,
        arguments={
            "a_ptr": Buffer((m, k), "fp16", "in", Uniform(-1.0, 1.0, seed=1)),
            "b_ptr": Buffer((k, n), "fp16", "in", Uniform(-1.0, 1.0, seed=2)),
            "c_ptr": Buffer((m, n), "fp16", "out"),
            **scalars,
        },
        constexprs=constexprs,
        grid=grid,
        options=options,
        # A product left out is 1/4 on average. The sums are of size sqrt(k) / 3; each of k steps may round by 2^-24 of
        # that, and tensor cores round down, so errors add up: k^1.5 * 2^-25. Then the store's rounding to fp16.
        tolerance=Tolerance(atol=2**-20 + k**1.5 * 2**-25, rtol=2**-11 + 1e-6),
        reference=reference,
        # a and b once: a tile that another program reads too may come from a cache.
        work=Work(bytes_read=2 * (m * k + k * n), bytes_written=2 * m * n,
                  operations={multiply: m * n * k, "fp32_add": m * n * k}),
    )
