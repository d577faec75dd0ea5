"""References of kernels that multiply matrices, invert triangles, transform and gather."""

from __future__ import annotations

from typing import Iterator

import numpy as np

from launches import Launch
from references import Maker, cdiv, reference


@reference("gems.mm.general.fp32", "gems.mm.general.fp16", "gems.mm.general.bf16")
def matrix_product(m: Maker) -> Iterator[Launch]:
    bm, bn, bk = m["BLOCK_M"], m["BLOCK_N"], m["BLOCK_K"]
    for rows, columns, inner in [(1, 1, 1), (bm + 5, bn - 3, 2 * bk + 7), (bm, 2 * bn, bk)]:
        a, b = m.real("A", rows, inner), m.real("B", inner, columns)
        yield Launch(f"{rows}x{columns}x{inner}", (cdiv(rows, bm) * cdiv(columns, bn),),
                     {"A": a, "B": b, "M": rows, "N": columns, "K": inner, "stride_am": inner, "stride_bk": columns,
                      "stride_cm": columns}, {"C": a @ b}, atol=inner * 4e-6, rtol=1e-5)


@reference("gems.mm.syrk.fp32")
def product_with_own_transpose(m: Maker) -> Iterator[Launch]:
    for rows, inner in [(1, 1), (45, 19), (97, 33)]:
        a, tiles = m.real("A", rows, inner), cdiv(rows, m["BLOCK_M"])
        yield Launch(f"{rows}x{inner}", (tiles * (tiles + 1) // 2,),
                     {"A": a, "M": rows, "K": inner, "stride_am": inner, "stride_cm": rows}, {"C": a @ a.T},
                     atol=1e-4, rtol=1e-5)


@reference("gems.bmm.fp16")
def batched_product(m: Maker) -> Iterator[Launch]:
    # A masked load here has no `other`, so only the inner dimension must be whole.
    for batch, rows, columns, inner in [(1, 1, 1, 32), (2, 45, 33, 64), (3, 100, 7, 32)]:
        a, b = m.real("A", batch, rows, inner), m.real("B", batch, inner, columns)
        yield Launch(f"{batch}x{rows}x{columns}x{inner}", (cdiv(rows, m["TILE_M"]), cdiv(columns, m["TILE_N"]), batch),
                     {"A": a, "B": b, "M": rows, "N": columns, "K": inner, "stride_ab": rows * inner,
                      "stride_am": inner, "stride_bb": inner * columns, "stride_bk": columns,
                      "stride_ob": rows * columns, "stride_om": columns}, {"O": a @ b}, atol=1e-3, rtol=1e-3)


@reference("gems.mv.fp32")
def matrix_times_vector(m: Maker) -> Iterator[Launch]:
    for rows, columns in [(1, 1), (45, 130), (64, 64)]:
        a, b = m.real("A", rows, columns + 1), m.real("B", columns)
        yield Launch(f"{rows}x{columns}", (cdiv(rows, m["BLOCK_N"]),),
                     {"A": a, "B": b, "N": rows, "M": columns, "stride_an": columns + 1},
                     {"C": a[:, :columns] @ b}, atol=1e-4, rtol=1e-5)


@reference("fla.matmul.fp32")
def product_with_epilogue(m: Maker) -> Iterator[Launch]:
    for batch, rows, columns, inner in [(1, 1, 1, 1), (2, 45, 70, 37)]:
        a, b = m.real("a", batch, rows, inner), m.real("b", inner, columns)
        alpha, beta, added = m.real("alpha", 1), m.real("beta", 1), m.real("input", rows, columns)
        product = a @ b
        c = np.where(product >= 0, product, 0.01 * product) * alpha + added * beta
        yield Launch(f"{batch}x{rows}x{columns}x{inner}", (batch, cdiv(rows, m["BM"]), cdiv(columns, m["BN"])),
                     {"a": a, "b": b, "input": added, "alpha": alpha, "beta": beta, "M": rows, "N": columns, "K": inner,
                      "stride_ab": rows * inner, "stride_am": inner, "stride_bk": columns, "stride_cb": rows * columns,
                      "stride_cm": columns}, {"c": c}, atol=1e-4, rtol=1e-5)


@reference("fla.solve_tril.16.fp32", "fla.solve_tril.32.fp32", "fla.solve_tril.64_tf32x3.fp32")
def triangular_inverse(m: Maker) -> Iterator[Launch]:
    heads, width = m["H"], m["BT"]
    block = 16 if m.entry.kernel.startswith("solve_tril_16") else width
    columns = 16 if block == 16 else width
    for batch, length in [(1, 1), (2, width), (1, 2 * width + 21)]:
        a = m.real("A", batch, length, heads, width, low=-0.3, high=0.3)
        at = np.arange(length)
        a *= (np.arange(width) < (at % width)[:, None])[None, :, None, :]  # strictly lower
        inverse = m.blank(batch, length, heads, columns)
        for start in range(0, length, block):
            rows, offset = min(block, length - start), start % width
            part = np.tril(a[:, start:start + rows, :, offset:offset + rows].transpose(0, 2, 1, 3), -1)
            solved = np.linalg.inv(np.eye(rows) + part)
            filled = np.zeros((batch, heads, rows, block))
            filled[..., :rows] = solved
            for row in range(0, rows, 16):  # tiles above the diagonal are not written
                last = min(row + 16, block)
                inverse[:, start + row:start + min(row + 16, rows), :, :last] = \
                    filled[:, :, row:row + 16, :last].transpose(0, 2, 1, 3)
        yield Launch(f"{batch}x{length}", (cdiv(length, block), batch * heads), {"A": a, "T": length}, {"Ai": inverse},
                     atol=1e-4, rtol=1e-4)


@reference("gems.hadamard.4row.fp32")
def hadamard(m: Maker) -> Iterator[Launch]:
    signs = np.array([[(-1) ** bin(i & j).count("1") for j in range(256)] for i in range(256)], float)
    for rows in (1, 4, 7):
        x = m.real("X_ptr", rows, 272)
        yield Launch(f"{rows}", (cdiv(rows, 4),), {"X_ptr": x, "stride_x_row": 272, "stride_out_row": 272, "N_ROWS": rows},
                     {"OUT_ptr": m.rows(rows, 272, x[:, :256] @ signs * m["SCALE"])}, atol=1e-4, rtol=1e-5)


@reference("gems.vdot.dot.fp32")
def partial_dot_products(m: Maker) -> Iterator[Launch]:
    block, step = m["BLOCK_SIZE"], m["other_stride"]
    for n, programs in [(1, 1), (1000, 2), (2049, 3)]:
        x, y = m.real("inp_ptr", n), m.real("other_ptr", n * step)
        owner = np.arange(n) // block % programs
        yield Launch(f"{n} by {programs}", (programs,), {"inp_ptr": x, "other_ptr": y, "n_elements": n},
                     {"out_ptr": np.bincount(owner, x * y[::step], programs)}, atol=1e-4, rtol=1e-5)


@reference("gems.vdot.atomic.fp32")
def dot_product(m: Maker) -> Iterator[Launch]:
    for n in (256, 1024):  # its loads have no `other`: whole blocks only
        x, y = m.real("inp_ptr", n), m.real("other_ptr", n)
        yield Launch(f"{n}", (cdiv(n, m["BLOCK_SIZE"]),), {"inp_ptr": x, "other_ptr": y, "n_elements": n,
                                                           "out_ptr": np.zeros(1)},
                     {"out_ptr": np.array([x @ y])}, atol=1e-4, rtol=1e-5)


@reference("gems.index_select.fp32")
def index_select(m: Maker) -> Iterator[Launch]:
    for rows, columns, count in [(1, 1, 1), (11, 20, 45)]:
        x, index = m.real("inp", rows, columns), m.whole(count, low=0, high=columns)
        expected = x[:, index]
        if count > 2:
            index[1], index[2] = -1, columns  # out of range: not written
            expected[:, 1:3] = m.blank(rows, 2)
        yield Launch(f"{rows}x{columns} {count}", (cdiv(rows, m["BLOCK_M"]), cdiv(count, m["BLOCK_N"])),
                     {"inp": x, "M": rows, "N": columns, "index": index, "index_len": count}, {"out": expected},
                     atol=0, rtol=0)


@reference("gems.triu.fp32")
def upper_triangle(m: Maker) -> Iterator[Launch]:
    for rows, columns, diagonal in [(1, 1, 0), (19, 45, 2), (30, 33, -3)]:
        x = m.real("X", rows, columns)
        yield Launch(f"{rows}x{columns} {diagonal}", (cdiv(rows, m["M_BLOCK_SIZE"]),),
                     {"X": x, "M": rows, "N": columns, "diagonal": diagonal}, {"Y": np.triu(x, diagonal)},
                     atol=0, rtol=0)


@reference("fla.pooling.mean_fwd.fp32")
def mean_of_chunks(m: Maker) -> Iterator[Launch]:
    heads, size, chunk = m["H"], m["D"], m["BT"]
    for batch, length in [(1, 1), (2, 45)]:
        x, chunks = m.real("x", batch, length, heads, size), cdiv(length, chunk)
        means = np.stack([x[:, at:at + chunk].mean(1) for at in range(0, length, chunk)], 1)
        yield Launch(f"{batch}x{length}", (cdiv(size, m["BD"]) * chunks, batch * heads), {"x": x, "T": length},
                     {"o": means}, **m.tolerance)
