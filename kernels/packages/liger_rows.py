"""Softmax, sparsemax and a gated unit of the package liger-kernel 0.8.5, launched as the package does it.

sparsemax_backward goes over a row's blocks in two loops that both read its inputs. The package itself always takes a
block that holds the row, so its loops run once; `block` makes them run more often.
"""

import numpy as np
import triton

from hebe.case import DTYPE_BYTES, Buffer, Case, Normal, PackageKernel, Scalar, Uniform, Work
from liger_norms import launch_of
from rows import check, check_block, fp32, softmax as softmax_of, tolerance, wide


def softmax(m: int = 8192, n: int = 4096) -> Case:
    """fp32; the row in registers."""
    check("fp32", m=m, n=n)
    block, num_warps = launch_of(n)

    def reference(inputs):
        return fp32(Y_ptr=softmax_of(inputs["X_ptr"].astype(np.float64)))

    return Case(
        name="liger_softmax",
        description=f"liger-kernel's softmax of {m} rows of {n} fp32 elements",
        kernel=PackageKernel("liger_kernel.ops.softmax", "_softmax_single_block_forward_kernel",
                             sha256="244839b2f900329f3a67b5771faae9b4ef7514d1c6fb83766ba0da0d26ba7bf9"),
        arguments={
            "Y_ptr": Buffer((m, n), "fp32", "out"), "Y_row_stride": Scalar(n),
            "X_ptr": Buffer((m, n), "fp32", "in", Normal(1.0, 2.0, seed=1)), "X_row_stride": Scalar(n),
            "n_cols": Scalar(n),
        },
        constexprs={"BLOCK_SIZE": block},
        grid=(m, 1, 1),
        options={"num_warps": num_warps},
        tolerance=tolerance("fp32", atol=1e-12),
        reference=reference,
        work=Work(bytes_read=4 * m * n, bytes_written=4 * m * n,
                  operations={"fp32_max": m * n, "fp32_add": 2 * m * n, "fp32_exp": m * n, "fp32_div": m * n}),
    )


def sparsemax_backward(m: int = 2048, n: int = 32768, dtype: str = "fp32", block: int = 0) -> Case:
    """dx = dy - mean of dy over the row's support (where y > 0), else 0; block 0: the package's, the whole row."""
    check(dtype, m=m, n=n)
    fused, num_warps = launch_of(n)
    block = block or fused
    check_block("block", block)

    def reference(inputs):
        y, dy = wide(inputs, "o_ptr", "go_ptr")
        count = (y > 0).sum(axis=1, keepdims=True)
        mean = np.where(y > 0, dy, 0).sum(axis=1, keepdims=True) / np.maximum(count, 1)
        return fp32(gi_ptr=np.where(y > 0, dy - mean, 0))

    size = DTYPE_BYTES[dtype]
    return Case(
        name="liger_sparsemax_backward",
        description=f"liger-kernel's sparsemax, backward, {m} rows of {n} {dtype} elements, blocks of {block}",
        kernel=PackageKernel("liger_kernel.ops.sparsemax", "_sparsemax_backward_kernel",
                             sha256="4851488a4247bb843eec2c4587d791a382e94a27a38b6f4fc42b3611f3dc4c73"),
        arguments={
            "o_ptr": Buffer((m, n), dtype, "in", Uniform(-1.0, 0.5, seed=1)),  # a third of a row is its support
            "go_ptr": Buffer((m, n), dtype, "in", Normal(0.5, 1.0, seed=2)),
            "gi_ptr": Buffer((m, n), dtype, "out"),
            "stride": Scalar(n), "n_cols": Scalar(n),
        },
        constexprs={"BLOCK_SIZE": block, "num_warps": num_warps},
        grid=(m, 1, 1),
        options={"num_warps": num_warps},
        tolerance=tolerance(dtype, 2, atol=1e-5),  # the mean is rounded, then dx
        reference=reference,
        work=Work(bytes_read=2 * m * n * size, bytes_written=m * n * size, operations={"fp32_add": 3 * m * n}),
    )


def swiglu(m: int = 8192, n: int = 8192, dtype: str = "bf16") -> Case:
    """c = silu(a) b; the row in registers, every element read once."""
    check(dtype, m=m, n=n)
    block, num_warps = launch_of(n)

    def reference(inputs):
        a, b = wide(inputs, "a_ptr", "b_ptr")
        return fp32(c_ptr=a / (1 + np.exp(-a)) * b)

    size = DTYPE_BYTES[dtype]
    return Case(
        name="liger_swiglu",
        description=f"liger-kernel's SwiGLU of {m} rows of {n} {dtype} elements",
        kernel=PackageKernel("liger_kernel.ops.swiglu", "_swiglu_forward_kernel",
                             sha256="7397029e8fefac0de42e5eeafcbbac147644a91c357bd30b9ba019fa5df3ce0a"),
        arguments={
            "a_ptr": Buffer((m, n), dtype, "in", Normal(0.0, 2.0, seed=1)),
            "b_ptr": Buffer((m, n), dtype, "in", Normal(0.0, 1.0, seed=2)),
            "c_ptr": Buffer((m, n), dtype, "out"),
            "stride": Scalar(n), "gate_multiplier": Scalar(1.0),
        },
        constexprs={"n_cols": n, "BLOCK_SIZE": block},
        grid=(m, 1, 1),
        options={"num_warps": num_warps},
        tolerance=tolerance(dtype, 2, atol=1e-6),  # silu(a) is rounded, then c
        reference=reference,
        work=Work(bytes_read=2 * m * n * size, bytes_written=m * n * size,
                  operations={"fp32_exp": m * n, "fp32_add": m * n, "fp32_mul": 2 * m * n, "fp32_div": m * n}),
    )
