"""The gradients of layer normalisation, from dy and from mean and rstd as the forward kernel stored them.

`dx` makes one row in a program, in two loops over its blocks that both read dy, x and w: sums, then dx. `dwdb` sums
over rows for w and b: each program a block of columns of one group of rows, its sums stored as that group's partial
sums. No atomics, no locks, and nothing that is read is written, so a launch may be repeated any number of times.
"""

import numpy as np
import triton
import triton.language as tl

from hebe.case import DTYPE_BYTES, Buffer, Case, CaseError, Normal, Scalar, Tolerance, Uniform, Work
from layer_norm import ROUNDING, launch_of


@triton.jit
def layer_norm_dx_kernel(dx_ptr, dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64)
    dx_ptr += row * n
    dy_ptr += row * n
    x_ptr += row * n
    mean = tl.load(mean_ptr + row)
    rstd = tl.load(rstd_ptr + row)
    plain = tl.zeros((BLOCK,), dtype=tl.float32)
    along = tl.zeros((BLOCK,), dtype=tl.float32)
    for off in range(0, n, BLOCK):
        columns = off + tl.arange(0, BLOCK)
        inside = columns < n
        w = tl.load(w_ptr + columns, mask=inside, other=0.0).to(tl.float32)
        wdy = w * tl.load(dy_ptr + columns, mask=inside, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + columns, mask=inside, other=0.0).to(tl.float32)
        plain += wdy
        along += wdy * ((x - mean) * rstd)
    plain_mean = tl.sum(plain, axis=0) / n
    along_mean = tl.sum(along, axis=0) / n
    for off in range(0, n, BLOCK):
        columns = off + tl.arange(0, BLOCK)
        inside = columns < n
        w = tl.load(w_ptr + columns, mask=inside, other=0.0).to(tl.float32)
        wdy = w * tl.load(dy_ptr + columns, mask=inside, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + columns, mask=inside, other=0.0).to(tl.float32)
        tl.store(dx_ptr + columns, (wdy - plain_mean - (x - mean) * rstd * along_mean) * rstd, mask=inside)


@triton.jit
def layer_norm_dwdb_kernel(dw_ptr, db_ptr, dy_ptr, x_ptr, mean_ptr, rstd_ptr, m, n, group,
                           ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    columns = tl.program_id(axis=0) * COLUMNS + tl.arange(0, COLUMNS)
    begin = tl.program_id(axis=1) * group
    end = tl.minimum(begin + group, m)
    dw = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    db = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for off in range(begin, end, ROWS):
        rows = off + tl.arange(0, ROWS)
        inside = (rows < end)[:, None] & (columns < n)[None, :]
        at = rows[:, None].to(tl.int64) * n + columns[None, :]
        dy = tl.load(dy_ptr + at, mask=inside, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + rows, mask=rows < end, other=0.0)
        rstd = tl.load(rstd_ptr + rows, mask=rows < end, other=0.0)
        dw += dy * ((x - mean[:, None]) * rstd[:, None])
        db += dy
    at = tl.program_id(axis=1).to(tl.int64) * n + columns
    tl.store(dw_ptr + at, tl.sum(dw, axis=0), mask=columns < n)
    tl.store(db_ptr + at, tl.sum(db, axis=0), mask=columns < n)


def dx(m: int = 2048, n: int = 8192, dtype: str = "fp16", block: int = 0, num_warps: int = 0) -> Case:
    """dx = rstd * (w dy - mean(w dy) - x^ mean(w dy x^)), x^ = (x - mean) * rstd; block, num_warps as in layer-norm."""
    block, num_warps = launch_of(n, dtype, block, num_warps)

    def reference(inputs):
        rstd = inputs["rstd_ptr"].astype(np.float64)[:, None]
        normal = (inputs["x_ptr"] - inputs["mean_ptr"].astype(np.float64)[:, None]) * rstd
        wdy = inputs["dy_ptr"].astype(np.float64) * inputs["w_ptr"]
        c1, c2 = wdy.mean(axis=1, keepdims=True), (wdy * normal).mean(axis=1, keepdims=True)
        return {"dx_ptr": (rstd * (wdy - c1 - normal * c2)).astype(np.float32)}

    size = DTYPE_BYTES[dtype]
    return Case(
        name="layer_norm_dx",
        description=f"layer norm's dx, {m} rows of {n} {dtype} elements, blocks of {block}",
        kernel=layer_norm_dx_kernel,
        arguments={"dx_ptr": Buffer((m, n), dtype, "out"), **_inputs(m, n, dtype),
                   "w_ptr": Buffer((n,), dtype, "in", Uniform(0.5, 1.5, seed=5)), "n": Scalar(n)},
        constexprs={"BLOCK": block},
        grid=(m, 1, 1),
        options={"num_warps": num_warps},
        # Terms of size 10 cancel, in fp32; then the store rounds.
        tolerance=Tolerance(atol=1e-5, rtol=ROUNDING[dtype] + 4e-6),
        reference=reference,
        # dy and x once: what the second loop reads may come from a cache, or be kept.
        work=Work(bytes_read=(2 * m * n + n) * size + 8 * m, bytes_written=m * n * size, operations={
            "fp32_add": 6 * m * n, "fp32_mul": 7 * m * n, "fp32_div": 2 * m}),
    )


def dwdb(m: int = 2048, n: int = 8192, dtype: str = "fp16", groups: int = 8, rows: int = 32, columns: int = 64,
         num_warps: int = 4) -> Case:
    """dw = sum of dy x^ and db = sum of dy over each group of rows, in tiles of rows x columns."""
    launch_of(n, dtype)
    for name, size in {"rows": rows, "columns": columns}.items():
        if size < 1 or size & (size - 1):
            raise CaseError(f"{name}: {size} is not a power of two")
    if not 1 <= groups <= m:
        raise CaseError(f"groups: {groups} is outside 1 to m = {m}")
    group = triton.cdiv(m, groups)
    groups = triton.cdiv(m, group)  # none is empty

    def reference(inputs):
        rstd = inputs["rstd_ptr"].astype(np.float64)[:, None]
        normal = (inputs["x_ptr"] - inputs["mean_ptr"].astype(np.float64)[:, None]) * rstd
        dy, begins = inputs["dy_ptr"].astype(np.float64), np.arange(0, m, group)
        return {"dw_ptr": np.add.reduceat(dy * normal, begins, axis=0).astype(np.float32),
                "db_ptr": np.add.reduceat(dy, begins, axis=0).astype(np.float32)}

    size = DTYPE_BYTES[dtype]
    return Case(
        name="layer_norm_dwdb",
        description=f"layer norm's dw and db, {m} rows of {n} {dtype} elements in {groups} groups",
        kernel=layer_norm_dwdb_kernel,
        arguments={"dw_ptr": Buffer((groups, n), "fp32", "out"), "db_ptr": Buffer((groups, n), "fp32", "out"),
                   **_inputs(m, n, dtype), "m": Scalar(m), "n": Scalar(n), "group": Scalar(group)},
        constexprs={"ROWS": rows, "COLUMNS": columns},
        grid=(triton.cdiv(n, columns), groups, 1),
        options={"num_warps": num_warps},
        # fp32 sums of `group` values of size 1 to 20, which may cancel; one row's value left out is 100 times this.
        tolerance=Tolerance(atol=1e-6 * (32 + group), rtol=4e-6),
        reference=reference,
        work=Work(bytes_read=2 * m * n * size + 8 * m, bytes_written=8 * groups * n, operations={
            "fp32_add": 3 * m * n, "fp32_mul": 2 * m * n}),
    )


def _inputs(m, n, dtype):
    return {"dy_ptr": Buffer((m, n), dtype, "in", Normal(0.25, 1.0, seed=1)),
            "x_ptr": Buffer((m, n), dtype, "in", Normal(0.5, 1.5, seed=2)),
            "mean_ptr": Buffer((m,), "fp32", "in", Uniform(0.25, 0.75, seed=3)),  # near what x has
            "rstd_ptr": Buffer((m,), "fp32", "in", Uniform(0.5, 0.9, seed=4))}
