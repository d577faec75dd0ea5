"""Normalisations of the package flag-gems 5.0.2 for rows of more than 4096 elements, launched as the package does it.

All of them go over a row twice, the second time from its end: for the moments, then for y. The tile and the warps are
the package's autotuner's choice from 1024 to 8192 and 4, 8, 16; the defaults here are ours.
"""

import numpy as np
import triton

from hebe.case import DTYPE_BYTES, Buffer, Case, Normal, PackageKernel, Scalar, Uniform, Work
from rows import check, check_block, fp32, inverse_rms, moments, tolerance, wide


def layer_norm(m: int = 2048, n: int = 8192, dtype: str = "fp16", tile: int = 2048, num_warps: int = 8,
               eps: float = 1e-5) -> Case:
    """y = (x - mean) * rstd * w + b; mean and rstd are stored in the type of x."""
    check(dtype, m=m, n=n)
    check_block("tile", tile)

    def reference(inputs):
        x, w, b = wide(inputs, "in_ptr", "weight_ptr", "bias_ptr")
        mean, rstd = moments(x, eps)
        return fp32(out_ptr=(x - mean) * rstd * w + b, out_mean_ptr=mean[:, 0], out_rstd_ptr=rstd[:, 0])

    size = DTYPE_BYTES[dtype]
    return Case(
        name="gems_layer_norm",
        description=f"flag-gems' layer norm of {m} rows of {n} {dtype} elements, tiles of {tile}",
        kernel=PackageKernel("flag_gems.ops.layernorm", "layer_norm_loop_kernel",
                             sha256="00c6190b1074d151a65472486ab79411765eabb3186871e4d71fc1d4a799e4eb"),
        arguments={
            "in_ptr": Buffer((m, n), dtype, "in", Normal(0.5, 1.5, seed=1)),
            "out_ptr": Buffer((m, n), dtype, "out"),
            "weight_ptr": Buffer((n,), dtype, "in", Uniform(0.5, 1.5, seed=2)),
            "bias_ptr": Buffer((n,), dtype, "in", Uniform(-1.0, 1.0, seed=3)),
            "out_mean_ptr": Buffer((m,), dtype, "out"),
            "out_rstd_ptr": Buffer((m,), dtype, "out"),
            "M": Scalar(m), "N": Scalar(n), "eps": Scalar(eps),
        },
        constexprs={"TILE_N": tile},
        grid=(m, 1, 1),
        options={"num_warps": num_warps},
        tolerance=tolerance(dtype),
        reference=reference,
        work=Work(bytes_read=(m * n + 2 * n) * size, bytes_written=(m * n + 2 * m) * size,
                  operations={"fp32_add": 6 * m * n, "fp32_mul": 3 * m * n, "fp32_div": m * n}),
    )


def rms_norm(m: int = 4096, n: int = 8192, dtype: str = "bf16", tile: int = 2048, num_warps: int = 8,
             eps: float = 1e-5) -> Case:
    """y = x * rstd * w."""
    check(dtype, m=m, n=n)
    check_block("tile", tile)

    def reference(inputs):
        x, w = wide(inputs, "in_ptr", "w_ptr")
        rstd = inverse_rms(x, eps)
        return fp32(out_ptr=x * rstd * w, INV_RMS=rstd[:, 0])

    size = DTYPE_BYTES[dtype]
    return Case(
        name="gems_rms_norm",
        description=f"flag-gems' RMS norm of {m} rows of {n} {dtype} elements, tiles of {tile}",
        kernel=PackageKernel("flag_gems.ops.rms_norm", "rms_norm_loop_kernel",
                             sha256="2a6c5392ef2b1a3138889ab848658dc58744ab0e6dd12b583aac61c75a4d97ef"),
        arguments={
            "out_ptr": Buffer((m, n), dtype, "out"),
            "INV_RMS": Buffer((m,), "fp32", "out"),
            "in_ptr": Buffer((m, n), dtype, "in", Normal(0.5, 1.5, seed=1)),
            "w_ptr": Buffer((n,), dtype, "in", Uniform(0.5, 1.5, seed=2)),
            "N": Scalar(n), "eps": Scalar(eps),
        },
        constexprs={"TILE_N": tile},
        grid=(m, 1, 1),
        options={"num_warps": num_warps},
        tolerance=tolerance(dtype, atol=2**-25),
        reference=reference,
        work=Work(bytes_read=(m * n + n) * size, bytes_written=m * n * size + 4 * m,
                  operations={"fp32_add": m * n, "fp32_mul": 3 * m * n, "fp32_div": 2 * m, "fp32_sqrt": m}),
    )


def instance_norm(batch: int = 32, channels: int = 64, size: int = 16384, dtype: str = "fp32", tile: int = 4096,
                  num_warps: int = 8, eps: float = 1e-5) -> Case:
    """The norm of every channel of every image, with the channel's weight and bias and the input's own moments."""
    check(dtype, batch=batch, channels=channels, size=size)
    check_block("tile", tile)
    rows = batch * channels

    def reference(inputs):
        x, w, b = wide(inputs, "in_ptr", "weight_ptr", "bias_ptr")
        mean, rstd = moments(x, eps)
        y = (x - mean) * rstd * np.tile(w, batch)[:, None] + np.tile(b, batch)[:, None]
        return fp32(out_ptr=y, out_mean_ptr=mean[:, 0], out_rstd_ptr=rstd[:, 0])

    bytes_of_x = rows * size * DTYPE_BYTES[dtype]
    return Case(
        name="gems_instance_norm",
        description=f"flag-gems' instance norm, batch {batch}, {channels} channels of {size} {dtype} elements",
        kernel=PackageKernel("flag_gems.fused.instance_norm", "instance_norm_loop_kernel",
                             sha256="1a13445e72e27a2cdf8e0e4e67a43512419ad42345f529c905f8fe7aefc7dd70"),
        arguments={
            "in_ptr": Buffer((rows, size), dtype, "in", Normal(0.5, 1.5, seed=1)),
            "out_ptr": Buffer((rows, size), dtype, "out"),
            "weight_ptr": Buffer((channels,), dtype, "in", Uniform(0.5, 1.5, seed=2)),
            "bias_ptr": Buffer((channels,), dtype, "in", Uniform(-1.0, 1.0, seed=3)),
            "out_mean_ptr": Buffer((rows,), "fp32", "out"),
            "out_rstd_ptr": Buffer((rows,), "fp32", "out"),
            "M": Scalar(rows), "N": Scalar(size), "C": Scalar(channels), "eps": Scalar(eps),
        },
        constexprs={"TILE_N": tile, "HAS_WEIGHT_BIAS": True},
        grid=(rows, 1, 1),
        options={"num_warps": num_warps},
        tolerance=tolerance(dtype),
        reference=reference,
        work=Work(bytes_read=bytes_of_x + 2 * channels * DTYPE_BYTES[dtype], bytes_written=bytes_of_x + 8 * rows,
                  operations={"fp32_add": 6 * rows * size, "fp32_mul": 3 * rows * size, "fp32_div": rows * size}),
    )
