"""c = a @ b in fp16 with sums in fp32, tile by tile.

Invariant: one program makes one block_m x block_n tile of c. Programs are numbered so that `group` tiles of rows go
through all columns before the next rows begin: programs that run together then share tiles of a and b in the L2.
"""

import numpy as np
import triton
import triton.language as tl

from hebe.case import Buffer, Case, CaseError, Scalar, Tolerance, Uniform, Work


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


def case(m: int = 4096, n: int = 4096, k: int = 4096, block_m: int = 128, block_n: int = 256, block_k: int = 64,
         group: int = 8, num_warps: int = 8, num_stages: int = 3) -> Case:
    """fp16 in and out, all three matrices row by row."""
    for name, size in {"m": m, "n": n, "k": k, "group": group}.items():
        if size < 1:
            raise CaseError(f"{name}: {size} is not positive")
    for name, size in {"block_m": block_m, "block_n": block_n, "block_k": block_k}.items():
        if size < 16 or size & (size - 1):
            raise CaseError(f"{name}: {size} is not a power of two from 16 on")

    def reference(inputs):
        product = inputs["a_ptr"].astype(np.float64) @ inputs["b_ptr"].astype(np.float64)
        return {"c_ptr": product.astype(np.float32)}

    return Case(
        name="matmul",
        description=f"c = a @ b, {m} x {n} x {k} in fp16, tiles of {block_m} x {block_n} x {block_k}",
        kernel=matmul_kernel,
        arguments={
            "a_ptr": Buffer((m, k), "fp16", "in", Uniform(-1.0, 1.0, seed=1)),
            "b_ptr": Buffer((k, n), "fp16", "in", Uniform(-1.0, 1.0, seed=2)),
            "c_ptr": Buffer((m, n), "fp16", "out"),
            "m": Scalar(m),
            "n": Scalar(n),
            "k": Scalar(k),
        },
        constexprs={"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k, "GROUP": group},
        grid=(triton.cdiv(m, block_m) * triton.cdiv(n, block_n), 1, 1),
        options={"num_warps": num_warps, "num_stages": num_stages},
        # A product left out is 1/4 on average. The sums are of size sqrt(k) / 3; each of k steps may round by 2^-24 of
        # that, and tensor cores round down, so errors add up: k^1.5 * 2^-25. Then the store's rounding to fp16.
        tolerance=Tolerance(atol=2**-20 + k**1.5 * 2**-25, rtol=2**-11 + 1e-6),
        reference=reference,
        # a and b once: a tile that another program reads too may come from a cache.
        work=Work(bytes_read=2 * (m * k + k * n), bytes_written=2 * m * n,
                  operations={"fp16_mul": m * n * k, "fp32_add": m * n * k}),
    )
