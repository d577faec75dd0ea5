"""out = softmax(scale q k^T) v for every head, fused: scores are made tile by tile and never stored.

One program makes block_m queries of one head and walks over the keys, with a running maximum and a running sum for each
query (online softmax); a new maximum rescales what was summed. Also stored: lse, the logarithm of each query's sum of
exponentials, which the backward pass needs. Plain pointers, no descriptors. Scores are fp32 and in base 2; the weights
are rounded to fp16 before they meet v.
"""

import math

import numpy as np
import triton
import triton.language as tl

from hebe.case import Buffer, Case, CaseError, Normal, Scalar, Tolerance, Work


@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, length, scale, CAUSAL: tl.constexpr,
                     BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, SIZE: tl.constexpr):
    head = tl.program_id(axis=1).to(tl.int64) * length
    rows = tl.program_id(axis=0) * BLOCK_M + tl.arange(0, BLOCK_M)
    depth = tl.arange(0, SIZE)
    at = (head + rows[:, None]) * SIZE + depth[None, :]
    q = tl.load(q_ptr + at, mask=rows[:, None] < length, other=0.0)
    peak = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    sums = tl.zeros((BLOCK_M, SIZE), dtype=tl.float32)
    end = tl.minimum((tl.program_id(axis=0) + 1) * BLOCK_M, length) if CAUSAL else length
    for off in range(0, end, BLOCK_N):
        keys = off + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + (head + keys[None, :]) * SIZE + depth[:, None], mask=keys[None, :] < length, other=0.0)
        scores = tl.dot(q, k) * (scale * 1.4426950408889634)
        seen = keys[None, :] < length
        if CAUSAL:
            seen = seen & (keys[None, :] <= rows[:, None])
        scores = tl.where(seen, scores, float("-inf"))
        # Key 0 is seen by every query, so the maximum is finite from the first tile on.
        higher = tl.maximum(peak, tl.max(scores, axis=1))
        weights = tl.exp2(scores - higher[:, None])
        shrink = tl.exp2(peak - higher)
        total = total * shrink + tl.sum(weights, axis=1)
        v = tl.load(v_ptr + (head + keys[:, None]) * SIZE + depth[None, :], mask=keys[:, None] < length, other=0.0)
        sums = tl.dot(weights.to(tl.float16), v, sums * shrink[:, None])
        peak = higher
    tl.store(out_ptr + at, (sums / total[:, None]).to(tl.float16), mask=rows[:, None] < length)
    tl.store(lse_ptr + head + rows, (peak + tl.log2(total)) * 0.6931471805599453, mask=rows < length)


def case(batch: int = 4, heads: int = 16, length: int = 2048, size: int = 128, causal: bool = True,
         block_m: int = 128, block_n: int = 64, num_warps: int = 8, num_stages: int = 3) -> Case:
    """Forward, self-attention; q, k and v are (batch, heads, length, size) in fp16; scale is 1 / sqrt(size)."""
    for name, value in {"batch": batch, "heads": heads, "length": length}.items():
        if value < 1:
            raise CaseError(f"{name}: {value} is not positive")
    for name, value in {"size": size, "block_m": block_m, "block_n": block_n}.items():
        if value < 16 or value & (value - 1):
            raise CaseError(f"{name}: {value} is not a power of two from 16 on")
    scale = 1 / math.sqrt(size)

    def reference(inputs):
        shape = (batch * heads, length, size)
        q, k, v = (inputs[name].reshape(shape) for name in ("q_ptr", "k_ptr", "v_ptr"))
        out, lse = np.empty(shape, np.float32), np.empty(shape[:2], np.float32)
        hidden = np.triu(np.ones((length, length), bool), 1) if causal else False
        for head in range(batch * heads):
            scores = scale * (q[head].astype(np.float64) @ k[head].astype(np.float64).T)
            scores[hidden] = -np.inf
            peak = scores.max(axis=1, keepdims=True)
            np.exp(scores - peak, out=scores)
            total = scores.sum(axis=1, keepdims=True)
            out[head] = scores @ v[head].astype(np.float64) / total
            lse[head] = (peak + np.log(total))[:, 0]
        return {"out_ptr": out.reshape(batch, heads, length, size), "lse_ptr": lse.reshape(batch, heads, length)}

    pairs = batch * heads * (length * (length + 1) // 2 if causal else length * length)
    whole = (batch, heads, length, size)
    bytes_of_one = 2 * math.prod(whole)
    return Case(
        name="attention",
        description=f"attention{', causal' if causal else ''}, fp16, batch {batch}, {heads} heads, {length} x {size}",
        kernel=attention_kernel,
        arguments={
            # Scores of size 2: a few keys carry most of a query's weight, so that a wrong maximum or a lost key shows.
            "q_ptr": Buffer(whole, "fp16", "in", Normal(0.0, 1.5, seed=1)),
            "k_ptr": Buffer(whole, "fp16", "in", Normal(0.0, 1.5, seed=2)),
            "v_ptr": Buffer(whole, "fp16", "in", Normal(0.0, 1.0, seed=3)),
            "out_ptr": Buffer(whole, "fp16", "out"),
            "lse_ptr": Buffer(whole[:3], "fp32", "out"),
            "length": Scalar(length),
            "scale": Scalar(scale),
        },
        constexprs={"CAUSAL": causal, "BLOCK_M": block_m, "BLOCK_N": block_n, "SIZE": size},
        grid=(triton.cdiv(length, block_m), batch * heads, 1),
        options={"num_warps": num_warps, "num_stages": num_stages},
        # Weights rounded to fp16 cost at most 2^-11 of the largest |v|, 5, and mostly less. Then out's own rounding.
        tolerance=Tolerance(atol=2**-9, rtol=2**-11 + 1e-5),
        reference=reference,
        # k and v once: what another program of the head reads too may come from a cache.
        work=Work(bytes_read=3 * bytes_of_one, bytes_written=bytes_of_one + 4 * math.prod(whole[:3]), operations={
            "fp16_mul": 2 * pairs * size, "fp32_add": 2 * pairs * size, "fp32_exp": pairs, "fp32_max": pairs,
            "fp32_mul": pairs}),
    )
