"""loss = -sum_j q_j log softmax(x)_j for every row x of logits, where q is its label, smoothed.

q_j is smoothing / n, and 1 - smoothing more at the label. One program makes one row in two loops over the vocabulary:
the first keeps a running maximum and a running sum of exponentials (lse is their logarithm, stored too), the second
sums q_j (lse - x_j) and reads the logits again. The logits are left as they are. In fp32, whatever the element type.
"""

import numpy as np
import triton
import triton.language as tl

from hebe.case import DTYPE_BYTES, Buffer, Case, CaseError, Normal, Scalar, Tolerance, Uniform, Work


@triton.jit
def cross_entropy_kernel(x_ptr, label_ptr, loss_ptr, lse_ptr, n, smoothing, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64)
    x_ptr += row * n
    label = tl.load(label_ptr + row)
    peak = float("-inf")
    total = 0.0
    for off in range(0, n, BLOCK):
        columns = off + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + columns, mask=columns < n, other=float("-inf")).to(tl.float32)
        higher = tl.maximum(peak, tl.max(x, axis=0))
        total = total * tl.exp(peak - higher) + tl.sum(tl.exp(x - higher), axis=0)
        peak = higher
    lse = peak + tl.log(total)
    losses = tl.zeros((BLOCK,), dtype=tl.float32)
    for off in range(0, n, BLOCK):
        columns = off + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + columns, mask=columns < n, other=0.0).to(tl.float32)
        q = smoothing / n + tl.where(columns == label, 1.0 - smoothing, 0.0)
        losses += tl.where(columns < n, q * (lse - x), 0.0)
    tl.store(loss_ptr + row, tl.sum(losses, axis=0))
    tl.store(lse_ptr + row, lse)


def case(m: int = 4096, n: int = 32000, dtype: str = "bf16", smoothing: float = 0.1, block: int = 4096,
         num_warps: int = 8) -> Case:
    """Forward, m rows of n logits; labels are int64, as torch has them."""
    if dtype not in ("fp16", "bf16", "fp32"):
        raise CaseError(f"dtype: {dtype!r} is not one of fp16, bf16, fp32")
    if n < 1:
        raise CaseError(f"n: {n} is not positive")
    if block < 1 or block & (block - 1):
        raise CaseError(f"block: {block} is not a power of two")
    if not 0.0 <= smoothing <= 1.0:
        raise CaseError(f"smoothing: {smoothing} is not within 0 and 1")

    def reference(inputs):
        x = inputs["x_ptr"].astype(np.float64)
        peak = x.max(axis=1, keepdims=True)
        lse = np.log(np.exp(x - peak).sum(axis=1)) + peak[:, 0]
        picked = np.take_along_axis(x, inputs["label_ptr"][:, None], axis=1)[:, 0]
        loss = lse - (1 - smoothing) * picked - smoothing * x.mean(axis=1)
        return {"loss_ptr": loss.astype(np.float32), "lse_ptr": lse.astype(np.float32)}

    return Case(
        name="cross_entropy",
        description=f"cross entropy of {m} rows of {n} {dtype} logits, labels smoothed by {smoothing:g}",
        kernel=cross_entropy_kernel,
        arguments={
            "x_ptr": Buffer((m, n), dtype, "in", Normal(1.0, 3.0, seed=1)),
            "label_ptr": Buffer((m,), "i64", "in", Uniform(0, n, seed=2)),
            "loss_ptr": Buffer((m,), "fp32", "out"),
            "lse_ptr": Buffer((m,), "fp32", "out"),
            "n": Scalar(n),
            "smoothing": Scalar(float(smoothing)),
        },
        constexprs={"BLOCK": block},
        grid=(m, 1, 1),
        options={"num_warps": num_warps},
        # Ten fp32 roundings of the value or so; its sums do not cancel. An average logit lost among 32 000 costs 3e-5.
        tolerance=Tolerance(atol=4e-6, rtol=1e-6),
        reference=reference,
        # The logits once: what the second loop reads may come from a cache, or be kept.
        work=Work(bytes_read=m * n * DTYPE_BYTES[dtype] + 8 * m, bytes_written=8 * m, operations={
            "fp32_max": m * n, "fp32_exp": m * n, "fp32_add": 4 * m * n, "fp32_mul": m * n, "fp32_log": m}),
    )
