"""The forward kernel of Triton's own layer norm tutorial, from a checkout of its sources (--triton-source DIR)."""

import numpy as np
import triton

from hebe.case import DTYPE_BYTES, Buffer, Case, CaseError, CheckoutKernel, Normal, Scalar, Tolerance, Uniform, Work


def case(m: int = 2048, n: int = 8192, dtype: str = "fp16", eps: float = 1e-5) -> Case:
    """Layer norm of m rows, with the launch, the inputs and the tolerance of the tutorial's own test."""
    if dtype not in ("fp16", "bf16", "fp32"):
        raise CaseError(f"dtype: {dtype!r} is not one of fp16, bf16, fp32")
    size = DTYPE_BYTES[dtype]
    block = min(65536 // size, triton.next_power_of_2(n))
    if not 1 <= n <= block:
        raise CaseError(f"n: {n} is outside 1 to {block}; the tutorial takes rows of up to 64 KiB")

    def reference(inputs):
        x = inputs["X"].astype(np.float64)
        mean = x.mean(axis=1)
        x -= mean[:, None]
        rstd = 1 / np.sqrt(np.square(x).mean(axis=1) + eps)
        x *= rstd[:, None]
        y = x * inputs["W"] + inputs["B"]
        return {name: value.astype(np.float32) for name, value in {"Y": y, "Mean": mean, "Rstd": rstd}.items()}

    return Case(
        name="tutorial_layer_norm",
        description=f"Triton's tutorial 05, forward, {m} rows of {n} {dtype} elements",
        kernel=CheckoutKernel("python/tutorials/05-layer-norm.py", "_layer_norm_fwd_fused",
                              sha256="31cda7bf7bb9b637ea662b789188d37ff5981c3973626d4e2a293db633f3bb87"),
        arguments={
            "X": Buffer((m, n), dtype, "in", Normal(-2.3, 0.5, seed=1)),
            "Y": Buffer((m, n), dtype, "out"),
            "W": Buffer((n,), dtype, "in", Uniform(0.0, 1.0, seed=2)),
            "B": Buffer((n,), dtype, "in", Uniform(0.0, 1.0, seed=3)),
            "Mean": Buffer((m,), "fp32", "out"),
            "Rstd": Buffer((m,), "fp32", "out"),
            "stride": Scalar(n),
            "N": Scalar(n),
            "eps": Scalar(eps),
        },
        constexprs={"BLOCK_SIZE": block},
        grid=(m, 1, 1),
        options={"num_warps": min(max(block // 256, 1), 8), "num_ctas": 1},
        tolerance=Tolerance(atol=1e-2, rtol=0.0),
        reference=reference,
        work=Work(bytes_read=(m * n + 2 * n) * size, bytes_written=m * n * size + 8 * m, operations={
            "fp32_add": 5 * m * n, "fp32_mul": 3 * m * n, "fp32_div": 3 * m, "fp32_sqrt": m}),
    )
