"""Kernels of Triton's own tutorials, taken from a checkout of its sources, launched as the tutorials do it on an H200.

The files are pinned as they are in release 3.6; python/tutorials/ of the checkout has them.
"""

import math

import numpy as np
import triton

from hebe.case import DTYPE_BYTES, Buffer, Case, CaseError, CheckoutKernel, Normal, Scalar, Uniform, Work
from rows import attention as attention_of, check, check_block, fp32, moments, softmax as softmax_of, tolerance

FOLDER = "python/tutorials/"


def softmax(m: int = 4096, n: int = 8192, processors: int = 132, registers: int = 65536, shared: int = 232448) -> Case:
    """Tutorial 02, fp32. As many programs as all multiprocessors hold at once (each of so many registers and bytes of
    shared memory); a program makes rows that lie a grid apart, in 4 stages."""
    check("fp32", m=m, n=n)
    num_warps, num_stages = 8, 4 if shared > 200_000 else 2

    def grid(compiled):
        resident = registers // (compiled.registers * 32 * num_warps)
        if compiled.shared_bytes:
            resident = min(resident, shared // compiled.shared_bytes)
        return (max(1, min(processors * resident, m)), 1, 1)

    def reference(inputs):
        return fp32(output_ptr=softmax_of(inputs["input_ptr"].astype(np.float64)))

    return Case(
        name="tutorial_softmax",
        description=f"Triton's tutorial 02, softmax of {m} rows of {n} fp32 elements",
        kernel=CheckoutKernel(FOLDER + "02-fused-softmax.py", "softmax_kernel",
                              sha256="8a65b696d5b02a3900380395ecd883671afeb66328db108f55622ed8853a05da"),
        arguments={
            "output_ptr": Buffer((m, n), "fp32", "out"),
            "input_ptr": Buffer((m, n), "fp32", "in", Normal(0.0, 2.0, seed=1)),
            "input_row_stride": Scalar(n), "output_row_stride": Scalar(n), "n_rows": Scalar(m), "n_cols": Scalar(n),
        },
        constexprs={"BLOCK_SIZE": triton.next_power_of_2(n), "num_stages": num_stages},
        grid=grid,
        options={"num_warps": num_warps, "num_stages": num_stages},
        tolerance=tolerance("fp32", atol=1e-12),
        reference=reference,
        work=Work(bytes_read=4 * m * n, bytes_written=4 * m * n, operations={
            "fp32_max": m * n, "fp32_add": 2 * m * n, "fp32_exp": m * n, "fp32_div": m * n}),
    )


def matmul(m: int = 4096, n: int = 4096, k: int = 4096, block_m: int = 128, block_n: int = 256, block_k: int = 64,
           num_warps: int = 8, num_stages: int = 3) -> Case:
    """Tutorial 03 in fp16, no activation. The blocks are the first of the configurations that it tries."""
    check("fp16", m=m, n=n, k=k)

    def reference(inputs):
        return fp32(c_ptr=inputs["a_ptr"].astype(np.float64) @ inputs["b_ptr"].astype(np.float64))

    return Case(
        name="tutorial_matmul",
        description=f"Triton's tutorial 03, {m} x {n} x {k} in fp16, tiles of {block_m} x {block_n} x {block_k}",
        kernel=CheckoutKernel(FOLDER + "03-matrix-multiplication.py", "matmul_kernel",
                              sha256="f88a9506694c58d483ad3cdb4aa672c23df0300803bcfaca13b9396184825008"),
        arguments={
            "a_ptr": Buffer((m, k), "fp16", "in", Uniform(-1.0, 1.0, seed=1)),
            "b_ptr": Buffer((k, n), "fp16", "in", Uniform(-1.0, 1.0, seed=2)), "c_ptr": Buffer((m, n), "fp16", "out"),
            "M": Scalar(m), "N": Scalar(n), "K": Scalar(k), "stride_am": Scalar(k), "stride_ak": Scalar(1),
            "stride_bk": Scalar(n), "stride_bn": Scalar(1), "stride_cm": Scalar(n), "stride_cn": Scalar(1),
        },
        constexprs={"BLOCK_SIZE_M": block_m, "BLOCK_SIZE_N": block_n, "BLOCK_SIZE_K": block_k, "GROUP_SIZE_M": 8,
                    "ACTIVATION": ""},
        grid=(triton.cdiv(m, block_m) * triton.cdiv(n, block_n), 1, 1),
        options={"num_warps": num_warps, "num_stages": num_stages},
        tolerance=tolerance("fp16", atol=2**-20 + k**1.5 * 2**-25),  # as of kernels/matmul.py
        reference=reference,
        work=Work(bytes_read=2 * (m * k + k * n), bytes_written=2 * m * n,
                  operations={"fp16_mul": m * n * k, "fp32_add": m * n * k}),
    )


def layer_norm(m: int = 2048, n: int = 8192, dtype: str = "fp16", eps: float = 1e-5, block: int = 0) -> Case:
    """Tutorial 05, forward: x is read in three loops. block 0: the tutorial's, the whole row (up to 64 KiB)."""
    check(dtype, m=m, n=n)
    size = DTYPE_BYTES[dtype]
    block = block or min(65536 // size, triton.next_power_of_2(n))
    check_block("block", block)

    def reference(inputs):
        mean, rstd = moments(inputs["X"].astype(np.float64), eps)
        y = (inputs["X"] - mean) * rstd * inputs["W"] + inputs["B"]
        return fp32(Y=y, Mean=mean[:, 0], Rstd=rstd[:, 0])

    return Case(
        name="tutorial_layer_norm",
        description=f"Triton's tutorial 05, layer norm of {m} rows of {n} {dtype} elements, blocks of {block}",
        kernel=CheckoutKernel(FOLDER + "05-layer-norm.py", "_layer_norm_fwd_fused",
                              sha256="31cda7bf7bb9b637ea662b789188d37ff5981c3973626d4e2a293db633f3bb87"),
        arguments={
            "X": Buffer((m, n), dtype, "in", Normal(-2.3, 0.5, seed=1)), "Y": Buffer((m, n), dtype, "out"),
            "W": Buffer((n,), dtype, "in", Uniform(0.0, 1.0, seed=2)),
            "B": Buffer((n,), dtype, "in", Uniform(0.0, 1.0, seed=3)),
            "Mean": Buffer((m,), "fp32", "out"), "Rstd": Buffer((m,), "fp32", "out"),
            "stride": Scalar(n), "N": Scalar(n), "eps": Scalar(eps),
        },
        constexprs={"BLOCK_SIZE": block},
        grid=(m, 1, 1),
        options={"num_warps": min(max(block // 256, 1), 8), "num_ctas": 1},
        tolerance=tolerance(dtype, rtol=1e-5),
        reference=reference,
        work=Work(bytes_read=(m * n + 2 * n) * size, bytes_written=m * n * size + 8 * m, operations={
            "fp32_add": 5 * m * n, "fp32_mul": 3 * m * n, "fp32_div": 3 * m, "fp32_sqrt": m}),
    )


def attention(batch: int = 4, heads: int = 16, length: int = 2048, size: int = 128, causal: bool = True,
              block_m: int = 128, block_n: int = 64, num_warps: int = 8, num_stages: int = 3) -> Case:
    """Tutorial 06, forward, fp16, no warp specialisation. It gets pointers and makes its tensor descriptors itself."""
    check("fp16", batch=batch, heads=heads)
    if size not in (16, 32, 64, 128, 256) or block_n > size:
        raise CaseError(f"size: {size} is not 16, 32, 64, 128 or 256, or less than block_n = {block_n}")
    if length < 1 or length % block_m or block_m % block_n:
        raise CaseError(f"length: {length} is not a multiple of {block_m}, or block_m not of block_n = {block_n}")
    scale = 1 / math.sqrt(size)

    def reference(inputs):
        out, lse = attention_of(inputs["desc_q"], inputs["desc_k"], inputs["desc_v"], scale, causal)
        return fp32(desc_o=out, M=lse / math.log(2))  # in base 2

    whole, pairs = (batch, heads, length, size), batch * heads * (length * (length + 1) // 2 if causal else length**2)
    return Case(
        name="tutorial_attention",
        description=f"Triton's tutorial 06, attention{', causal' if causal else ''}, batch {batch}, {heads} heads, "
                    f"{length} x {size}",
        kernel=CheckoutKernel(FOLDER + "06-fused-attention.py", "_attn_fwd",
                              sha256="e37baf3097ca95fdae90ec5412279a7f86da503059747cd8cd996fadd45b88c8"),
        arguments={
            "sm_scale": Scalar(scale), "M": Buffer(whole[:3], "fp32", "out"), "Z": Scalar(batch), "H": Scalar(heads),
            "desc_q": Buffer(whole, "fp16", "in", Normal(0.0, 1.5, seed=1)),
            "desc_k": Buffer(whole, "fp16", "in", Normal(0.0, 1.5, seed=2)),
            "desc_v": Buffer(whole, "fp16", "in", Normal(0.0, 1.0, seed=3)),
            "desc_o": Buffer(whole, "fp16", "out"), "N_CTX": Scalar(length),
        },
        constexprs={"HEAD_DIM": size, "BLOCK_M": block_m, "BLOCK_N": block_n, "FP8_OUTPUT": False,
                    "STAGE": 3 if causal else 1, "warp_specialize": False, "IS_HOPPER": True},
        grid=(length // block_m, batch * heads, 1),
        options={"num_warps": num_warps, "num_stages": num_stages},
        tolerance=tolerance("fp16", atol=2**-9, rtol=1e-5),  # as of kernels/attention.py
        reference=reference,
        work=Work(bytes_read=6 * math.prod(whole), bytes_written=2 * math.prod(whole) + 4 * math.prod(whole[:3]),
                  operations={"fp16_mul": 2 * pairs * size, "fp32_add": 2 * pairs * size, "fp32_exp": pairs}),
    )
