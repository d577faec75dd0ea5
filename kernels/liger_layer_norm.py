"""The forward layer norm kernel of the package liger-kernel (pip install liger-kernel; torch is not needed)."""

import numpy as np
import triton

from hebe.case import DTYPE_BYTES, Buffer, Case, CaseError, Normal, PackageKernel, Scalar, Tolerance, Uniform, Work

GREATEST_BLOCK = 65536
ROUNDING = {"fp16": 2**-11, "bf16": 2**-8, "fp32": 2**-24}  # half a unit in the last place, relative


def case(m: int = 2048, n: int = 8192, dtype: str = "fp16", eps: float = 1e-6) -> Case:
    """Layer norm of m rows, with the launch that the package makes: the row is one block."""
    if dtype not in ROUNDING:
        raise CaseError(f"dtype: {dtype!r} is not one of {', '.join(ROUNDING)}")
    if not 1 <= n <= GREATEST_BLOCK:
        raise CaseError(f"n: {n} is outside 1 to {GREATEST_BLOCK}")
    block = triton.next_power_of_2(n)
    num_warps = 32 if block >= 32768 else 16 if block >= 8192 else 8 if block >= 2048 else 4
    size = DTYPE_BYTES[dtype]

    def reference(inputs):
        x = inputs["X_ptr"].astype(np.float64)
        mean = x.mean(axis=1)
        x -= mean[:, None]
        rstd = 1 / np.sqrt(np.square(x).mean(axis=1) + eps)
        x *= rstd[:, None]
        y = x * inputs["W_ptr"] + inputs["B_ptr"]
        return {name: value.astype(np.float32) for name, value in
                {"Y_ptr": y, "Mean_ptr": mean, "RSTD_ptr": rstd}.items()}

    return Case(
        name="liger_layer_norm",
        description=f"liger-kernel's layer norm, forward, {m} rows of {n} {dtype} elements",
        kernel=PackageKernel("liger_kernel.ops.layer_norm", "_layer_norm_forward_kernel",
                             sha256="301dc0f0cda6afc987a19cf0af1fd1d129b0d5074ab646b1000a681b987afa2c"),
        arguments={
            "Y_ptr": Buffer((m, n), dtype, "out"),
            "Y_row_stride": Scalar(n),
            "X_ptr": Buffer((m, n), dtype, "in", Normal(0.5, 1.5, seed=1)),
            "X_row_stride": Scalar(n),
            "W_ptr": Buffer((n,), dtype, "in", Uniform(0.5, 1.5, seed=2)),
            "W_row_stride": Scalar(1),
            "B_ptr": Buffer((n,), dtype, "in", Uniform(-1.0, 1.0, seed=3)),
            "B_row_stride": Scalar(1),
            "Mean_ptr": Buffer((m,), "fp32", "out"),
            "Mean_row_stride": Scalar(1),
            "RSTD_ptr": Buffer((m,), "fp32", "out"),
            "RSTD_row_stride": Scalar(1),
            "n_cols": Scalar(n),
            "eps": Scalar(eps),
        },
        constexprs={"BLOCK_SIZE": block},
        grid=(m, 1, 1),
        options={"num_warps": num_warps},
        # fp32 sums of n values of size 1 are right to 1e-6; y may cancel against the bias.
        tolerance=Tolerance(atol=4e-6, rtol=ROUNDING[dtype] + 4e-6),
        reference=reference,
        work=Work(bytes_read=(m * n + 2 * n) * size, bytes_written=m * n * size + 8 * m, operations={
            "fp32_add": 4 * m * n, "fp32_mul": 4 * m * n, "fp32_div": 2 * m, "fp32_sqrt": m}),
    )
