"""Kernels of the package fla-core 0.6.0 (flash-linear-attention) on rows, launched as the package does it.

A row of more than 512 elements is one block of the next power of two, at most 64 KiB. The warps are the package's
autotuner's choice, from 1 or 2 to 32; the defaults here are ours.
"""

import numpy as np
import triton

from hebe.case import DTYPE_BYTES, Buffer, Case, CaseError, Normal, PackageKernel, Scalar, Uniform, Work
from rows import check, fp32, inverse_rms, log_sum_exp, moments, tolerance, wide


def block_of(n: int, dtype: str) -> int:
    """The package's block for rows of n elements."""
    greatest = 65536 // DTYPE_BYTES[dtype]
    if not 512 < n <= greatest:
        raise CaseError(f"n: {n} is outside 513 to {greatest}, for which the package takes this kernel")
    return triton.next_power_of_2(n)


def l2norm(m: int = 4096, n: int = 8192, dtype: str = "bf16", num_warps: int = 8, eps: float = 1e-6) -> Case:
    """y = x / sqrt(sum of x^2 + eps)."""
    check(dtype, m=m)
    block, size = block_of(n, dtype), DTYPE_BYTES[dtype]

    def reference(inputs):
        x = inputs["x"].astype(np.float64)
        rstd = 1 / np.sqrt(np.square(x).sum(axis=1) + eps)
        return fp32(y=x * rstd[:, None], rstd=rstd)

    return Case(
        name="fla_l2norm",
        description=f"fla's L2 norm of {m} rows of {n} {dtype} elements",
        kernel=PackageKernel("fla.modules.norm.l2norm", "l2norm_fwd_kernel_row",
                             sha256="c33ae99f25e15b4b336978dcb6bf3e8ce7e0b18f1fd1c2ece0d92c4b4b532210"),
        arguments={
            "x": Buffer((m, n), dtype, "in", Normal(0.5, 1.5, seed=1)), "y": Buffer((m, n), dtype, "out"),
            "rstd": Buffer((m,), "fp32", "out"), "eps": Scalar(eps), "D": Scalar(n),
        },
        constexprs={"BD": block},
        grid=(m, 1, 1),
        options={"num_warps": num_warps},
        tolerance=tolerance(dtype, atol=2**-25),
        reference=reference,
        work=Work(bytes_read=m * n * size, bytes_written=m * n * size + 4 * m, operations={
            "fp32_add": m * n, "fp32_mul": 2 * m * n, "fp32_div": m, "fp32_sqrt": m}),
    )


def layer_norm(m: int = 2048, n: int = 8192, dtype: str = "bf16", num_warps: int = 8, eps: float = 1e-5) -> Case:
    """s = x + residual, stored; y = (s - mean) * rstd * w + b."""
    check(dtype, m=m)
    block, size = block_of(n, dtype), DTYPE_BYTES[dtype]

    def reference(inputs):
        x, residual, w, b = wide(inputs, "x", "res", "w", "b")
        s = x + residual
        mean, rstd = moments(s, eps)
        return fp32(y=(s - mean) * rstd * w + b, res_out=s, mean=mean[:, 0], rstd=rstd[:, 0])

    return Case(
        name="fla_layer_norm",
        description=f"fla's residual addition and layer norm of {m} rows of {n} {dtype} elements",
        kernel=PackageKernel("fla.modules.norm.layernorm", "layer_norm_fwd_kernel_row",
                             sha256="525ec77fdd5fe108d1980d10e7a14d97be8090e159574ef389e186292abf48f5"),
        arguments={
            "x": Buffer((m, n), dtype, "in", Normal(0.5, 1.5, seed=1)), "y": Buffer((m, n), dtype, "out"),
            "w": Buffer((n,), dtype, "in", Uniform(0.5, 1.5, seed=2)),
            "b": Buffer((n,), dtype, "in", Uniform(-1.0, 1.0, seed=3)),
            "res": Buffer((m, n), dtype, "in", Normal(-0.25, 1.0, seed=4)), "res_out": Buffer((m, n), dtype, "out"),
            "mean": Buffer((m,), "fp32", "out"), "rstd": Buffer((m,), "fp32", "out"), "eps": Scalar(eps),
        },
        constexprs={"G": 1, "D": n, "BD": block, "IS_RMS_NORM": False, "HAS_RESIDUAL": True,
                    "STORE_RESIDUAL_OUT": True, "HAS_WEIGHT": True, "HAS_BIAS": True},
        grid=(m, 1, 1),
        options={"num_warps": num_warps},
        tolerance=tolerance(dtype),
        reference=reference,
        work=Work(bytes_read=(2 * m * n + 2 * n) * size, bytes_written=2 * m * n * size + 8 * m, operations={
            "fp32_add": 6 * m * n, "fp32_mul": 3 * m * n, "fp32_div": 3 * m, "fp32_sqrt": m}),
    )


def rms_norm_gated(m: int = 4096, n: int = 4096, dtype: str = "bf16", num_warps: int = 8, eps: float = 1e-5) -> Case:
    """y = x * rstd * w * silu(g)."""
    check(dtype, m=m)
    block, size = block_of(n, dtype), DTYPE_BYTES[dtype]

    def reference(inputs):
        x, g, w = wide(inputs, "x", "g", "w")
        rstd = inverse_rms(x, eps)
        return fp32(y=x * rstd * w * g / (1 + np.exp(-g)), rstd=rstd[:, 0])

    return Case(
        name="fla_rms_norm_gated",
        description=f"fla's gated RMS norm of {m} rows of {n} {dtype} elements",
        kernel=PackageKernel("fla.modules.norm.fused_norm_gate", "layer_norm_gated_fwd_kernel_row",
                             sha256="481d5f635ddda176c648fcd7f6625042d6c86662f1ee90b702366bf1a4079dfb"),
        arguments={
            "x": Buffer((m, n), dtype, "in", Normal(0.5, 1.5, seed=1)),
            "g": Buffer((m, n), dtype, "in", Normal(0.0, 2.0, seed=2)), "y": Buffer((m, n), dtype, "out"),
            "w": Buffer((n,), dtype, "in", Uniform(0.5, 1.5, seed=3)), "b": None, "residual": None,
            "residual_out": None, "mean": None, "rstd": Buffer((m,), "fp32", "out"), "eps": Scalar(eps),
        },
        constexprs={"D": n, "BD": block, "ACTIVATION": "swish", "IS_RMS_NORM": True, "STORE_RESIDUAL_OUT": False,
                    "HAS_RESIDUAL": False, "HAS_WEIGHT": True, "HAS_BIAS": False},
        grid=(m, 1, 1),
        options={"num_warps": num_warps},
        tolerance=tolerance(dtype, atol=1e-6),
        reference=reference,
        work=Work(bytes_read=(2 * m * n + n) * size, bytes_written=m * n * size + 4 * m, operations={
            "fp32_add": 2 * m * n, "fp32_mul": 5 * m * n, "fp32_exp": m * n, "fp32_div": m * n}),
    )


def cross_entropy(m: int = 4096, n: int = 32000, dtype: str = "bf16", smoothing: float = 0.1) -> Case:
    """Every row's loss, a row of up to 65536 logits in one block."""
    check(dtype, m=m, n=n)
    if not 0.0 <= smoothing <= 1.0:
        raise CaseError(f"smoothing: {smoothing} is not within 0 and 1")
    if n > 65536:
        raise CaseError(f"n: {n} is more than 65536: the package then splits a row and needs a second kernel")
    block = triton.next_power_of_2(n)

    def reference(inputs):
        x, labels = inputs["logits"].astype(np.float64), inputs["target"]
        picked = np.take_along_axis(x, labels[:, None], axis=1)[:, 0]
        lse = log_sum_exp(x)[:, 0]
        loss = lse - (1 - smoothing) * picked - smoothing * x.mean(axis=1)
        return fp32(loss=loss, lse=lse, z_loss=np.zeros(m))

    return Case(
        name="fla_cross_entropy",
        description=f"fla's cross entropy of {m} rows of {n} {dtype} logits, labels smoothed by {smoothing:g}",
        kernel=PackageKernel("fla.modules.fused_cross_entropy.ops", "cross_entropy_fwd_kernel",
                             sha256="3dc39448cad7c4fb4fb1c1387b7295fdeb116e1e62d147eda60d0a250db75b00"),
        arguments={
            "logits": Buffer((m, n), dtype, "in", Normal(1.0, 3.0, seed=1)),
            "target": Buffer((m,), "i64", "in", Uniform(0, n, seed=2)), "loss": Buffer((m,), "fp32", "out"),
            "z_loss": Buffer((m,), "fp32", "out"), "lse": Buffer((m,), "fp32", "out"),
            "s_logits": Scalar(n), "N": Scalar(m),
        },
        constexprs={"label_smoothing": smoothing, "logit_scale": 1.0, "lse_square_scale": 0.0,
                    "logit_softcapping": None, "ignore_index": -100, "V": n, "V_TOTAL": n, "V_START": 0, "BV": block,
                    "SPLIT": False},
        grid=(m, 1, 1),
        options={"num_warps": 4 if block < 2048 else 8 if block < 8192 else 16},
        tolerance=tolerance("fp32", rtol=1e-6),
        reference=reference,
        work=Work(bytes_read=m * n * DTYPE_BYTES[dtype] + 8 * m, bytes_written=12 * m, operations={
            "fp32_max": m * n, "fp32_exp": m * n, "fp32_add": 3 * m * n}),
    )
