"""Kernels of the package liger-kernel 0.8.5 that go over a row in blocks, launched as the package does it on Hopper.

A group norm, whose two loops both read x, and two losses.
"""

import numpy as np
import triton

from hebe.case import DTYPE_BYTES, Buffer, Case, CaseError, Normal, PackageKernel, Scalar, Uniform, Work
from rows import check, check_block, fp32, log_sum_exp, moments, tolerance, wide


def group_norm(batch: int = 32, groups: int = 32, channels: int = 512, size: int = 4096, eps: float = 1e-6,
               block: int = 0) -> Case:
    """fp32, (batch, channels, size); block 0: the package's, a group's elements but at most 65536."""
    check("fp32", batch=batch, groups=groups, channels=channels, size=size)
    if channels % groups:
        raise CaseError(f"channels: {channels} is not a multiple of groups = {groups}")
    each = channels // groups
    n, elements = each * size, batch * channels * size
    block = block or min(65536, triton.next_power_of_2(n))
    check_block("block", block)

    def reference(inputs):
        x, w, b = wide(inputs, "X_ptr", "W_ptr", "B_ptr")
        mean, rstd = moments(x, eps)
        y = ((x - mean) * rstd).reshape(batch, channels, size) * w[:, None] + b[:, None]
        return fp32(Y_ptr=y.reshape(x.shape), Mean_ptr=mean[..., 0], RSTD_ptr=rstd[..., 0])

    return Case(
        name="liger_group_norm",
        description=f"liger-kernel's group norm, fp32, batch {batch}, {groups} groups of {each} x {size}",
        kernel=PackageKernel("liger_kernel.ops.group_norm", "_group_norm_forward_kernel",
                             sha256="2a1901b6fadcd3834102154482285eeba334955651ca2c9358fe03836f923c3b"),
        arguments={
            "Y_ptr": Buffer((batch, groups, n), "fp32", "out"),
            "Y_row_stride": Scalar(groups * n), "Y_col_stride": Scalar(n),
            "X_ptr": Buffer((batch, groups, n), "fp32", "in", Normal(0.5, 1.5, seed=1)),
            "X_row_stride": Scalar(groups * n), "X_col_stride": Scalar(n),
            "Mean_ptr": Buffer((batch, groups), "fp32", "out"),
            "Mean_row_stride": Scalar(groups), "Mean_col_stride": Scalar(1),
            "RSTD_ptr": Buffer((batch, groups), "fp32", "out"),
            "RSTD_row_stride": Scalar(groups), "RSTD_col_stride": Scalar(1),
            "W_ptr": Buffer((channels,), "fp32", "in", Uniform(0.5, 1.5, seed=2)),
            "B_ptr": Buffer((channels,), "fp32", "in", Uniform(-1.0, 1.0, seed=3)),
            "hidden_size": Scalar(n), "channels_per_group": Scalar(each), "eps": Scalar(eps),
        },
        constexprs={"BLOCK_SIZE": block},
        grid=(batch, groups, 1),
        tolerance=tolerance("fp32", atol=1e-5, rtol=1e-5),  # variance as a difference of means of size 2
        reference=reference,
        work=Work(bytes_read=4 * elements + 8 * channels, bytes_written=4 * elements + 8 * batch * groups,
                  operations={"fp32_add": 4 * elements, "fp32_mul": 3 * elements}),
    )


def cross_entropy(m: int = 4096, n: int = 32000, dtype: str = "bf16", smoothing: float = 0.1, block: int = 0) -> Case:
    """Every row's share of the mean loss, without gradients. block 0: the package's, a row but at most 32768."""
    check(dtype, m=m, n=n)
    block = block or min(32768, triton.next_power_of_2(n))
    check_block("block", block)
    if not 0.0 <= smoothing <= 1.0:
        raise CaseError(f"smoothing: {smoothing} is not within 0 and 1")

    def reference(inputs):
        x, labels = inputs["X_ptr"].astype(np.float64), inputs["Y_ptr"]
        picked = np.take_along_axis(x, labels[:, None], axis=1)[:, 0]
        loss = log_sum_exp(x)[:, 0] - (1 - smoothing) * picked - smoothing * x.mean(axis=1)
        return fp32(loss_ptr=loss / m)

    return Case(
        name="liger_cross_entropy",
        description=f"liger-kernel's cross entropy of {m} rows of {n} {dtype} logits, without gradients",
        kernel=PackageKernel("liger_kernel.ops.cross_entropy", "liger_cross_entropy_kernel",
                             sha256="961f41ca7c06dab49be8182de1fed53165eb28ed87efaeed24afad1ecb0b78e8"),
        arguments={
            "X_ptr": Buffer((m, n), dtype, "in", Normal(1.0, 3.0, seed=1)), "X_stride": Scalar(n),
            "Y_ptr": Buffer((m,), "i64", "in", Uniform(0, n, seed=2)), "Y_stride": Scalar(1),
            "weight_ptr": None, "loss_ptr": Buffer((m,), dtype, "out"), "z_loss_ptr": None, "loss_stride": Scalar(1),
            "token_accuracy_ptr": None, "token_accuracy_stride": Scalar(0),
            "predicted_tokens_ptr": None, "predicted_tokens_stride": Scalar(0),
            "n_cols": Scalar(n), "n_non_ignore": Scalar(m), "sum_non_ignore_weight": Scalar(m),
            "weight_sum": Scalar(0.0), "ignore_index": Scalar(-100), "softcap": None,
        },
        constexprs={"lse_square_scale": 0.0, "label_smoothing": smoothing, "reduction": "mean", "RETURN_Z_LOSS": False,
                    "RETURN_TOKEN_ACCURACY": False, "RETURN_PREDICTED_TOKENS": False, "BLOCK_SIZE": block,
                    "HAS_WEIGHT": False, "HAS_SOFTCAPPING": False, "HAS_GRADIENTS": False},
        grid=(m, 1, 1),
        options={"num_warps": 32},
        tolerance=tolerance(dtype, atol=4e-6 / m),
        reference=reference,
        work=Work(bytes_read=m * n * DTYPE_BYTES[dtype] + 8 * m, bytes_written=m * DTYPE_BYTES[dtype],
                  operations={"fp32_max": m * n, "fp32_exp": m * n, "fp32_add": 2 * m * n, "fp32_mul": m * n}),
    )


def kl_div(m: int = 4096, n: int = 32000, dtype: str = "fp32", eps: float = 1e-10) -> Case:
    """Every row's sum of p (log p - y), of probabilities p and log probabilities y; "batchmean" before the mean."""
    check(dtype, m=m, n=n)
    block = min(16384, triton.next_power_of_2(n))

    def reference(inputs):
        y, p = wide(inputs, "y_ptr", "gt_ptr")
        return fp32(loss_ptr=(p * (np.log(np.maximum(p, eps)) - y)).sum(axis=1))

    return Case(
        name="liger_kl_div",
        description=f"liger-kernel's KL divergence of {m} rows of {n} {dtype} elements",
        kernel=PackageKernel("liger_kernel.ops.kl_div", "_kldiv_kernel_forward",
                             sha256="bf12f99d65b48f47dc242fbb482421db92d982b8298dc9dca09e6d5f586c48e5"),
        arguments={
            "y_ptr": Buffer((m, n), dtype, "in", Uniform(-12.0, -4.0, seed=1)), "y_stride": Scalar(n),
            "gt_ptr": Buffer((m, n), dtype, "in", Uniform(0.0, 2.0 / n, seed=2)), "gt_stride": Scalar(n),
            "loss_ptr": Buffer((m,), "fp32", "out"), "loss_stride": Scalar(1),
            "n_cols": Scalar(n), "eps": Scalar(eps),
        },
        constexprs={"BLOCK_SIZE": block, "reduction": 3, "log_target": False},
        grid=(m, 1, 1),
        options={"num_warps": 16 if block >= 8192 else 8 if block >= 2048 else 4},
        tolerance=tolerance("fp32", atol=1e-5, rtol=1e-5),  # p log p and p y, of size 10, cancel
        reference=reference,
        work=Work(bytes_read=2 * m * n * DTYPE_BYTES[dtype], bytes_written=4 * m, operations={
            "fp32_max": m * n, "fp32_log": m * n, "fp32_add": 2 * m * n, "fp32_mul": m * n}),
    )
