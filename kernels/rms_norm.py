"""y = x * rstd * w over rows, where rstd = 1 / sqrt(mean of x^2 + eps): root-mean-square normalisation, forward.

One program makes one row in two loops over its blocks, for the mean of squares and for y; both read x. Computed in
fp32, whatever the element type.
"""

import numpy as np
import triton
import triton.language as tl

from hebe.case import DTYPE_BYTES, Buffer, Case, Normal, Scalar, Tolerance, Uniform, Work
from layer_norm import ROUNDING, launch_of


@triton.jit
def rms_norm_kernel(x_ptr, y_ptr, w_ptr, rstd_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64)
    x_ptr += row * n
    y_ptr += row * n
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for off in range(0, n, BLOCK):
        columns = off + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + columns, mask=columns < n, other=0.0).to(tl.float32)
        squares += x * x
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / n + eps)
    tl.store(rstd_ptr + row, rstd)
    for off in range(0, n, BLOCK):
        columns = off + tl.arange(0, BLOCK)
        w = tl.load(w_ptr + columns, mask=columns < n).to(tl.float32)
        x = tl.load(x_ptr + columns, mask=columns < n, other=0.0).to(tl.float32)
        tl.store(y_ptr + columns, x * rstd * w, mask=columns < n)


def case(m: int = 4096, n: int = 8192, dtype: str = "bf16", block: int = 0, num_warps: int = 0,
         eps: float = 1e-6) -> Case:
    """Forward; block and num_warps as in layer-norm."""
    block, num_warps = launch_of(n, dtype, block, num_warps, eps)

    def reference(inputs):
        x = inputs["x_ptr"].astype(np.float64)
        rstd = 1 / np.sqrt(np.square(x).mean(axis=1) + eps)
        return {"y_ptr": (x * rstd[:, None] * inputs["w_ptr"]).astype(np.float32), "rstd_ptr": rstd.astype(np.float32)}

    size = DTYPE_BYTES[dtype]
    return Case(
        name="rms_norm",
        description=f"RMS norm of {m} rows of {n} {dtype} elements, blocks of {block}",
        kernel=rms_norm_kernel,
        arguments={
            "x_ptr": Buffer((m, n), dtype, "in", Normal(0.5, 1.5, seed=1)),  # not the layer norm's answer
            "y_ptr": Buffer((m, n), dtype, "out"),
            "w_ptr": Buffer((n,), dtype, "in", Uniform(0.5, 1.5, seed=2)),
            "rstd_ptr": Buffer((m,), "fp32", "out"),
            "n": Scalar(n),
            "eps": Scalar(float(eps)),
        },
        constexprs={"BLOCK": block},
        grid=(m, 1, 1),
        options={"num_warps": num_warps},
        # Sums of squares do not cancel: 4e-6 of the value, then the store's rounding; absolute in fp16's subnormals.
        tolerance=Tolerance(atol=2**-25 if dtype == "fp16" else 0.0, rtol=ROUNDING[dtype] + 4e-6),
        reference=reference,
        # x once: what the second loop reads may come from a cache, or be kept.
        work=Work(bytes_read=(m * n + n) * size, bytes_written=m * n * size + 4 * m, operations={
            "fp32_add": m * n, "fp32_mul": 3 * m * n, "fp32_div": 2 * m, "fp32_sqrt": m}),
    )
