"""Normalisations of the package liger-kernel 0.8.5, forward, launched as the package does it for one NVIDIA GPU.

A row is one block of the next power of two, at most 65536 elements, and stays in registers.
"""

import triton

from hebe.case import DTYPE_BYTES, Buffer, Case, CaseError, Normal, PackageKernel, Scalar, Uniform, Work
from rows import check, fp32, inverse_rms, moments, tolerance, wide

WIDEST = 65536
LLAMA = 0  # casting mode: only the mean of squares in fp32, the product with the weight in the type of x


def launch_of(n: int) -> tuple[int, int]:
    """The package's block and warps for rows of n elements."""
    if n > WIDEST:
        raise CaseError(f"n: {n} is more than {WIDEST}, the package's greatest block")
    block = triton.next_power_of_2(n)
    return block, 32 if block >= 32768 else 16 if block >= 8192 else 8 if block >= 2048 else 4


def layer_norm(m: int = 2048, n: int = 8192, dtype: str = "fp16", eps: float = 1e-6) -> Case:
    """y = (x - mean) * rstd * w + b."""
    check(dtype, m=m, n=n)
    block, num_warps = launch_of(n)

    def reference(inputs):
        x, w, b = wide(inputs, "X_ptr", "W_ptr", "B_ptr")
        mean, rstd = moments(x, eps)
        return fp32(Y_ptr=(x - mean) * rstd * w + b, Mean_ptr=mean[:, 0], RSTD_ptr=rstd[:, 0])

    return Case(
        name="liger_layer_norm",
        description=f"liger-kernel's layer norm of {m} rows of {n} {dtype} elements",
        kernel=PackageKernel("liger_kernel.ops.layer_norm", "_layer_norm_forward_kernel",
                             sha256="301dc0f0cda6afc987a19cf0af1fd1d129b0d5074ab646b1000a681b987afa2c"),
        arguments={
            "Y_ptr": Buffer((m, n), dtype, "out"), "Y_row_stride": Scalar(n),
            "X_ptr": Buffer((m, n), dtype, "in", Normal(0.5, 1.5, seed=1)), "X_row_stride": Scalar(n),
            "W_ptr": Buffer((n,), dtype, "in", Uniform(0.5, 1.5, seed=2)), "W_row_stride": Scalar(1),
            "B_ptr": Buffer((n,), dtype, "in", Uniform(-1.0, 1.0, seed=3)), "B_row_stride": Scalar(1),
            "Mean_ptr": Buffer((m,), "fp32", "out"), "Mean_row_stride": Scalar(1),
            "RSTD_ptr": Buffer((m,), "fp32", "out"), "RSTD_row_stride": Scalar(1),
            "n_cols": Scalar(n), "eps": Scalar(eps),
        },
        constexprs={"BLOCK_SIZE": block},
        grid=(m, 1, 1),
        options={"num_warps": num_warps},
        tolerance=tolerance(dtype),
        reference=reference,
        work=Work(bytes_read=(m * n + 2 * n) * DTYPE_BYTES[dtype], bytes_written=m * n * DTYPE_BYTES[dtype] + 8 * m,
                  operations={"fp32_add": 4 * m * n, "fp32_mul": 3 * m * n, "fp32_div": 2 * m, "fp32_sqrt": m}),
    )


def rms_norm(m: int = 4096, n: int = 8192, dtype: str = "bf16", eps: float = 1e-6) -> Case:
    """y = x * rstd * w in the package's default casting mode, Llama's."""
    check(dtype, m=m, n=n)
    block, num_warps = launch_of(n)
    if block <= 256 and m >= 4096 * 8:
        raise CaseError(f"m, n: for {m} rows of {n} the package takes another kernel")

    def reference(inputs):
        x, w = wide(inputs, "X_ptr", "W_ptr")
        rstd = inverse_rms(x, eps)
        return fp32(Y_ptr=x * rstd * w, RSTD_ptr=rstd[:, 0])

    return Case(
        name="liger_rms_norm",
        description=f"liger-kernel's RMS norm of {m} rows of {n} {dtype} elements",
        kernel=PackageKernel("liger_kernel.ops.rms_norm", "_rms_norm_forward_kernel",
                             sha256="d14c5b2269f2596ebd7ca0b16e6a41ac6390f207135314164b36df130b7accd9"),
        arguments={
            "Y_ptr": Buffer((m, n), dtype, "out"), "Y_row_stride": Scalar(n),
            "X_ptr": Buffer((m, n), dtype, "in", Normal(0.5, 1.5, seed=1)), "X_row_stride": Scalar(n),
            "W_ptr": Buffer((n,), dtype, "in", Uniform(0.5, 1.5, seed=2)), "W_row_stride": Scalar(1),
            "RSTD_ptr": Buffer((m,), "fp32", "out"), "RSTD_row_stride": Scalar(1),
            "n_cols": Scalar(n), "eps": Scalar(eps), "offset": Scalar(0.0),
        },
        constexprs={"casting_mode": LLAMA, "elementwise_affine": True, "BLOCK_SIZE": block},
        grid=(m, 1, 1),
        options={"num_warps": num_warps},
        tolerance=tolerance(dtype, 2),  # x * rstd is rounded, then y
        reference=reference,
        work=Work(bytes_read=(m * n + n) * DTYPE_BYTES[dtype], bytes_written=m * n * DTYPE_BYTES[dtype] + 4 * m,
                  operations={"fp32_add": m * n, "fp32_mul": 3 * m * n, "fp32_div": m, "fp32_sqrt": m}),
    )


def fused_add_rms_norm(m: int = 4096, n: int = 8192, dtype: str = "bf16", eps: float = 1e-6) -> Case:
    """s = x + r, y = s * rstd * w: the residual's addition and the norm after it, as in a decoder's layer."""
    check(dtype, m=m, n=n)
    block, num_warps = launch_of(n)

    def reference(inputs):
        x, r, w = wide(inputs, "X_ptr", "R_ptr", "W_ptr")
        rstd = inverse_rms(x + r, eps)
        return fp32(Y_ptr=(x + r) * rstd * w, S_ptr=x + r, RSTD_ptr=rstd[:, 0])

    return Case(
        name="liger_fused_add_rms_norm",
        description=f"liger-kernel's residual addition and RMS norm of {m} rows of {n} {dtype} elements",
        kernel=PackageKernel("liger_kernel.ops.fused_add_rms_norm", "_fused_add_rms_norm_forward_kernel",
                             sha256="7faa12a91145a9c951ab5d23e04b827c59c49e09e795b0923e141e21733e0d56"),
        arguments={
            "Y_ptr": Buffer((m, n), dtype, "out"), "Y_row_stride": Scalar(n),
            "S_ptr": Buffer((m, n), dtype, "out"), "S_row_stride": Scalar(n),
            "X_ptr": Buffer((m, n), dtype, "in", Normal(0.5, 1.5, seed=1)), "X_row_stride": Scalar(n),
            "R_ptr": Buffer((m, n), dtype, "in", Normal(-0.25, 1.0, seed=2)), "R_row_stride": Scalar(n),
            "W_ptr": Buffer((n,), dtype, "in", Uniform(0.5, 1.5, seed=3)), "W_row_stride": Scalar(1),
            "RSTD_ptr": Buffer((m,), "fp32", "out"), "RSTD_row_stride": Scalar(1),
            "n_cols": Scalar(n), "eps": Scalar(eps), "offset": Scalar(0.0),
        },
        constexprs={"casting_mode": LLAMA, "BLOCK_SIZE": block},
        grid=(m, 1, 1),
        options={"num_warps": num_warps, "num_stages": 2},
        tolerance=tolerance(dtype, 3),  # s is rounded, s * rstd, then y
        reference=reference,
        work=Work(bytes_read=(2 * m * n + n) * DTYPE_BYTES[dtype],
                  bytes_written=2 * m * n * DTYPE_BYTES[dtype] + 4 * m,
                  operations={"fp32_add": 2 * m * n, "fp32_mul": 3 * m * n, "fp32_div": m, "fp32_sqrt": m}),
    )
