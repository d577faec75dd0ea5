"""Softmax, its logarithm and moments of the package flag-gems 5.0.2, launched as the package does it.

The softmaxes go over a row twice: the first loop keeps a maximum and a sum of exponentials for every lane, the second
reads x again for the result, from the row's end in `softmax`. All in fp32.
"""

import numpy as np
import triton

from hebe.case import Buffer, Case, CaseError, Normal, PackageKernel, Scalar, Work
from rows import check, check_block, fp32, log_sum_exp, softmax as softmax_of, tolerance


def _operations(n: int) -> dict:
    return {"fp32_max": n, "fp32_exp": 2 * n, "fp32_add": 3 * n, "fp32_div": n}


def softmax(m: int = 1024, n: int = 65536, tile: int = 0) -> Case:
    """Over the last dimension. tile 0: the package's, 4096 for rows of more than 32768; a shorter row is one tile."""
    check("fp32", m=m, n=n)
    tile = tile or (triton.next_power_of_2(n) if n <= 32768 else 4096)
    check_block("tile", tile)

    def reference(inputs):
        return fp32(output_ptr=softmax_of(inputs["input_ptr"].astype(np.float64)))

    return Case(
        name="gems_softmax",
        description=f"flag-gems' softmax of {m} rows of {n} fp32 elements, tiles of {tile}",
        kernel=PackageKernel("flag_gems.ops.softmax", "softmax_kernel_inner",
                             sha256="ddcb1a2473a11a68e32665c2c67ac1d7c1c1b3b811be7076b063ebb187f6bfea"),
        arguments={
            "output_ptr": Buffer((m, n), "fp32", "out"),
            "input_ptr": Buffer((m, n), "fp32", "in", Normal(1.0, 2.0, seed=1)),
            "M": Scalar(m), "N": Scalar(n),
        },
        constexprs={"TILE_N": tile, "ONE_TILE_PER_CTA": tile >= n},
        grid=(m, 1, 1),
        options={"num_warps": 4 if tile < 2048 else 8 if tile < 4096 else 16},
        tolerance=tolerance("fp32", atol=1e-12),
        reference=reference,
        work=Work(bytes_read=4 * m * n, bytes_written=4 * m * n, operations=_operations(m * n)),
    )


def softmax_non_inner(m: int = 16, n: int = 4096, k: int = 1024, processors: int = 132) -> Case:
    """Over the middle one of m x n x k. The package widens a tile until the programs fit `processors` at once."""
    check("fp32", m=m, n=n, k=k, processors=processors)
    wide_tile = 1
    while m * triton.cdiv(k, wide_tile) > processors and 2 * wide_tile <= min(k, 8192):
        wide_tile *= 2
    high_tile = triton.cdiv(8192, wide_tile)

    def reference(inputs):
        return fp32(output_ptr=softmax_of(inputs["input_ptr"].astype(np.float64), axis=1))

    return Case(
        name="gems_softmax_non_inner",
        description=f"flag-gems' softmax over the middle of {m} x {n} x {k} fp32, tiles of {high_tile} x {wide_tile}",
        kernel=PackageKernel("flag_gems.ops.softmax", "softmax_kernel_non_inner",
                             sha256="ddcb1a2473a11a68e32665c2c67ac1d7c1c1b3b811be7076b063ebb187f6bfea"),
        arguments={
            "output_ptr": Buffer((m, n, k), "fp32", "out"),
            "input_ptr": Buffer((m, n, k), "fp32", "in", Normal(1.0, 2.0, seed=1)),
            "M": Scalar(m), "N": Scalar(n), "K": Scalar(k),
        },
        constexprs={"TILE_N": high_tile, "TILE_K": wide_tile, "ONE_TILE_PER_CTA": high_tile >= n},
        grid=(m, triton.cdiv(k, wide_tile), 1),
        options={"num_warps": 16},
        tolerance=tolerance("fp32", atol=1e-12),
        reference=reference,
        work=Work(bytes_read=4 * m * n * k, bytes_written=4 * m * n * k, operations=_operations(m * n * k)),
    )


def log_softmax(m: int = 8192, n: int = 8192) -> Case:
    """Over the last dimension, 8 rows in a program, 256 columns at a time."""
    check("fp32", m=m, n=n)

    def reference(inputs):
        x = inputs["input_ptr"].astype(np.float64)
        return fp32(output_ptr=x - log_sum_exp(x))

    return Case(
        name="gems_log_softmax",
        description=f"flag-gems' log softmax of {m} rows of {n} fp32 elements",
        kernel=PackageKernel("flag_gems.ops.log_softmax", "log_softmax_kernel",
                             sha256="0dfb3b80530050b206e6a21f19142be957727575e1e3d3af13dd1e4c9751cb66"),
        arguments={
            "output_ptr": Buffer((m, n), "fp32", "out"),
            "input_ptr": Buffer((m, n), "fp32", "in", Normal(1.0, 2.0, seed=1)),
            "M": Scalar(m), "N": Scalar(n), "K": Scalar(1),
        },
        grid=(triton.cdiv(m, 8), 1, 1),
        options={"num_warps": 8},
        tolerance=tolerance("fp32", atol=1e-5),
        reference=reference,
        work=Work(bytes_read=4 * m * n, bytes_written=4 * m * n,
                  operations={"fp32_max": m * n, "fp32_exp": m * n, "fp32_add": 3 * m * n}),
    )


def var_mean(m: int = 8192, n: int = 8192, rows: int = 4, block: int = 1024, num_warps: int = 8) -> Case:
    """Every row's mean and sample variance, read once (Welford's method). rows, block and num_warps are the package's
    autotuner's choice from 1 to 8, 1024 and 2048, 4 to 16; the defaults are ours."""
    check("fp32", m=m)
    check_block("rows", rows)
    check_block("block", block)
    if n < 2:
        raise CaseError(f"n: {n}; a sample variance needs two values")

    def reference(inputs):
        x = inputs["X"].astype(np.float64)
        return fp32(Var=x.var(axis=1, ddof=1), Mean=x.mean(axis=1))

    return Case(
        name="gems_var_mean",
        description=f"flag-gems' variance and mean of {m} rows of {n} fp32 elements",
        kernel=PackageKernel("flag_gems.ops.var_mean", "var_mean_welford_kernel",
                             sha256="4e91ea6dbdfbabb41df546205a95b9fbbb50b78556c567797ac6aa19f1308554"),
        arguments={
            "X": Buffer((m, n), "fp32", "in", Normal(0.5, 1.5, seed=1)),
            "Var": Buffer((m,), "fp32", "out"), "Mean": Buffer((m,), "fp32", "out"),
            "M": Scalar(m), "N": Scalar(n), "correction": Scalar(1.0),
        },
        constexprs={"BLOCK_M": rows, "BLOCK_N": block},
        grid=(triton.cdiv(m, rows), 1, 1),
        options={"num_warps": num_warps},
        tolerance=tolerance("fp32", atol=1e-5, rtol=1e-5),  # a difference of sums of squares when lanes are joined
        reference=reference,
        work=Work(bytes_read=4 * m * n, bytes_written=8 * m,
                  operations={"fp32_add": 5 * m * n, "fp32_mul": 3 * m * n, "fp32_div": m * n}),
    )
