"""References of kernels that scan, sort, search and draw random numbers."""

from __future__ import annotations

from typing import Iterator

import numpy as np

from launches import Launch
from references import Maker, cdiv, reference


@reference("gems.cumsum.part.fp32", "gems.cumsum.part.i64")
def sums_within_blocks(m: Maker) -> Iterator[Launch]:
    block = m["BLOCK_SIZE"]
    for n in (block, 3 * block):  # its load has no `other`: whole blocks only
        x = m.whole(n, low=-2**40, high=2**40) if m.kind("inp") == "i64" else m.real("inp", n)
        parts = x.reshape(-1, block)
        yield Launch(f"{n}", (len(parts),), {"inp": x, "n_elements": n, "part_num": len(parts)},
                     {"out": parts.cumsum(1).ravel(), "partial_sum": parts.sum(1)}, atol=2e-4, rtol=1e-5)


@reference("gems.cumsum.abc.i32")
def sums_along_middle(m: Maker) -> Iterator[Launch]:
    block = m["BLOCK_SIZE"]
    for a, b, c in [(1, block, 1), (2, 2 * block, 3)]:
        x = m.whole(a, b, c, low=-1000, high=1000)
        parts = x.reshape(a, b // block, block, c)
        yield Launch(f"{a}x{b}x{c}", (a, b // block, c), {"inp": x, "B": b, "C": c, "part_num": b // block},
                     {"out": parts.cumsum(2).reshape(a, b, c), "partial_sum": parts.sum(2)})


@reference("fla.cumsum.local_scalar.fp32")
def sums_within_chunks(m: Maker) -> Iterator[Launch]:
    batch, heads, chunk = m["B"], m["H"], m["BT"]
    for length in (1, chunk, 2 * chunk + 5):
        s, scale = m.real("s", batch, length, heads), 0.5
        o = np.concatenate([s[:, at:at + chunk][:, ::-1].cumsum(1)[:, ::-1] for at in range(0, length, chunk)], 1)
        yield Launch(f"{length}", (batch * heads * cdiv(length, chunk),), {"s": s, "scale": scale, "T": length},
                     {"o": o * scale}, **m.tolerance)


@reference("fla.cumsum.local_vector.fp32")
def vector_sums_within_chunks(m: Maker) -> Iterator[Launch]:
    batch, heads, size, chunk = m["B"], m["H"], m["S"], m["BT"]
    for length in (1, chunk, 2 * chunk + 5):
        s = m.real("s", batch, length, heads, size)
        o = np.concatenate([s[:, at:at + chunk].cumsum(1) for at in range(0, length, chunk)], 1)
        yield Launch(f"{length}", (cdiv(size, m["BS"]) * cdiv(length, chunk), batch * heads), {"s": s, "T": length},
                     {"o": o}, **m.tolerance)


@reference("fla.cumsum.local_varlen.fp32")
def sums_within_chunks_of_sequences(m: Maker) -> Iterator[Launch]:
    heads, chunk = m["H"], m["BT"]
    for lengths in ([1], [5, 16, 40, 1]):
        ends = np.concatenate([[0], np.cumsum(lengths)])
        s = m.real("s", ends[-1], heads)
        chunks = [(n, t) for n, length in enumerate(lengths) for t in range(cdiv(length, chunk))]
        o = np.concatenate([s[ends[n] + t * chunk:min(ends[n] + (t + 1) * chunk, ends[n + 1])].cumsum(0) for n, t in chunks])
        yield Launch("+".join(map(str, lengths)), (heads * len(chunks),),
                     {"s": s, "cu_seqlens": ends, "chunk_indices": np.array(chunks), "T": int(ends[-1])}, {"o": o},
                     **m.tolerance)


@reference("fla.cumsum.global_vector.fp32")
def sums_from_the_end_of_sequences(m: Maker) -> Iterator[Launch]:
    heads, size = m["H"], m["S"]
    for lengths in ([1], [5, 16, 40, 1]):
        ends = np.concatenate([[0], np.cumsum(lengths)])
        s = m.real("s", ends[-1], heads, size)
        o = np.concatenate([s[a:b][::-1].cumsum(0)[::-1] for a, b in zip(ends, ends[1:])])
        yield Launch("+".join(map(str, lengths)), (cdiv(size, m["BS"]) * len(lengths) * heads,),
                     {"s": s, "cu_seqlens": ends, "T": int(ends[-1])}, {"o": o}, **m.tolerance)


@reference("fla.logcumsumexp.fp32")
def log_of_running_sum(m: Maker) -> Iterator[Launch]:
    for batch, length in [(1, 1), (2, 45)]:
        s = m.real("s", batch, length, m["S"])
        yield Launch(f"{batch}x{length}", (batch,), {"s": s, "T": length}, {"z": np.log(np.exp(s).cumsum(1))},
                     atol=2e-5, rtol=1e-5)


@reference("gems.argmax.stage1.fp32")
def largest_of_blocks(m: Maker) -> Iterator[Launch]:
    block = m["BLOCK_SIZE"]
    for n in (1, 256, 700):
        x = m.distinct("inp", n)
        where = [at + x[at:at + block].argmax() for at in range(0, n, block)]
        yield Launch(f"{n}", (len(where),), {"inp": x, "M": n}, {"mid_value": x[where], "mid_index": np.array(where)},
                     atol=0, rtol=0)


@reference("gems.argmax.stage2.fp32")
def index_of_largest(m: Maker) -> Iterator[Launch]:
    for n in (1, 45, 64):
        x, index = m.distinct("mid_value", n), m.whole(n, low=0, high=2**40)
        yield Launch(f"{n}", (1,), {"mid_value": x, "mid_index": index, "mid_size": n},
                     {"out": index[[x.argmax()]]})


@reference("gems.topk.stage1.fp32")
def largest_few_of_chunks(m: Maker) -> Iterator[Launch]:
    n, chunk = m["N"], m["CHUNK_SIZE"]
    for batch, k in [(1, 1), (2, 7)]:
        x = m.distinct("x_ptr", batch, n)
        best = [np.argsort(-x[:, at:at + chunk], 1)[:, :k] + at for at in range(0, n, chunk)]
        index = np.stack(best, 1)
        yield Launch(f"{batch} {k}", (batch, cdiv(n, chunk)), {"x_ptr": x, "k": k},
                     {"y_ptr": np.take_along_axis(x[:, None, :], index, 2), "index_ptr": index}, atol=0, rtol=0)


@reference("gems.topk.stage2.fp32")
def largest_few(m: Maker) -> Iterator[Launch]:
    n, k = m["N"], m["k"]
    for batch in (1, 3):
        x, index = m.distinct("chunk_x", batch, n), m.whole(batch, n, low=0, high=2**30)
        order = np.argsort(-x, 1)[:, :k]
        yield Launch(f"{batch}", (batch,), {"chunk_x": x, "chunk_index": index},
                     {"y_ptr": np.take_along_axis(x, order, 1), "index_ptr": np.take_along_axis(index, order, 1)},
                     atol=0, rtol=0)


@reference("gems.sort.bitonic.fp32", "gems.sort.bitonic.i32")
def sort_rows(m: Maker) -> Iterator[Launch]:
    n, sign = m["N"], -1 if m["DESCENDING"] else 1
    for rows in (1, 4):
        x = m.distinct("in_ptr", rows, n)
        if not m["IS_FLOAT"]:
            x = (m.random.permuted(np.tile(np.arange(n), (rows, 1)), axis=1) - n // 2) * 1001
        order = np.argsort(sign * x, 1)
        yield Launch(f"{rows}", (rows,), {"in_ptr": x},
                     {"out_ptr": np.take_along_axis(x, order, 1), "out_index_ptr": order}, atol=0, rtol=0)


def _ordered_bits(x: np.ndarray, kind: str) -> np.ndarray:
    """Unsigned numbers in the order of the values."""
    if kind == "fp32":
        bits = x.astype(np.float32).view(np.uint32)
        return np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))
    return (x + 2**31).astype(np.uint32)


@reference("gems.sort.histogram.fp32")
def histograms_of_digits(m: Maker) -> Iterator[Launch]:
    bits, per_tile = m["num_bits_per_pass"], m["TILE_N"]
    for rows, n, tiles in [(1, 1, 1), (2, 300, 2)]:
        passes, bins = 32 // bits, 2**bits
        x = m.real("arr_ptr", rows, n)
        key = _ordered_bits(x, "fp32")
        counts = np.stack([[np.bincount(row >> (bits * p) & (bins - 1), minlength=bins) for p in range(passes)]
                           for row in key])
        yield Launch(f"{rows}x{n}", (rows * cdiv(n, per_tile * tiles),),
                     {"arr_ptr": x, "num_passes": passes, "m": rows, "n": n, "tiles_n_per_cta": tiles,
                      "out_ptr": np.zeros((rows, passes, bins))}, {"out_ptr": counts})


@reference("gems.sort.sweep.i32")
def radix_sort_pass(m: Maker) -> Iterator[Launch]:
    """One pass with decoupled look-back; programs in order, as each waits for those before it."""
    bits, tile = m["k_bits"], m["TILE_N"]
    bins = 2**bits
    for rows, n, number in [(1, 1, 0), (2, 700, 1)]:
        passes, tiles = 8, cdiv(n, tile)
        x, carried = m.whole(rows, n, low=-2**31, high=2**31), m.whole(rows, n, low=0, high=2**40)
        digit = (_ordered_bits(x, "i32") >> (bits * number) & (bins - 1)).astype(int)
        counts = np.stack([np.bincount(row, minlength=bins) for row in digit])
        before = np.zeros((rows, passes, bins), int)
        before[:, number] = counts.cumsum(1) - counts
        order = np.argsort(digit, 1, kind="stable")
        upto = np.stack([[[(row[:(t + 1) * tile] == b).sum() for t in range(tiles)] for b in range(bins)] for row in digit])
        yield Launch(f"{rows}x{n}", (rows * tiles, bins // m["TILE_R"]),
                     {"arr_ptr": x, "associate_arr_ptr": carried, "excumsum_bins_ptr": before,
                      "status_ptr": np.zeros((rows, bins, tiles)), "n_passes": passes, "pass_id": number,
                      "bit_offset": bits * number, "m": rows, "N": n, "OUT_N": tiles},
                     {"out_ptr": np.take_along_axis(x, order, 1),
                      "associate_out_ptr": np.take_along_axis(carried, order, 1), "status_ptr": upto + 2**31})


@reference("gems.unique.simple.i32")
def unique_of_sorted(m: Maker) -> Iterator[Launch]:
    n = m["tile_size"]  # its loads have no `other`: the whole tile only
    for kinds in (1, 9, 400):
        x = np.sort(m.whole(n, low=0, high=kinds))
        places = m.random.permutation(n)
        values, first, inverse = np.unique(x, return_index=True, return_inverse=True)
        after, at, back = m.blank(n), m.blank(n), m.blank(n)
        after[:len(values)], at[:len(values)], back[places] = values, first, inverse
        yield Launch(f"{kinds}", (1,), {"sorted_data_ptr": x, "sorted_indices_ptr": places, "num_tasks": n},
                     {"data_out_ptr": after, "inverse_indices_ptr": back, "idx_ptr": at,
                      "unique_size_ptr": np.array([len(values) - 1])})


@reference("gems.repeat_interleave.i64")
def repeat_interleave(m: Maker) -> Iterator[Launch]:
    for counts in ([1], [3, 0, 70, 32, 1]):
        repeats = np.array(counts)
        yield Launch("+".join(map(str, counts)), (len(counts),),
                     {"repeats_ptr": repeats, "cumsum_ptr": repeats.cumsum(), "size": len(counts)},
                     {"out_ptr": np.repeat(np.arange(len(counts)), repeats)})


def philox(seed: int, c0: np.ndarray, c1: int, rounds: int = 10) -> list[np.ndarray]:
    """Philox 4x32 as Triton has it: counters (c0, c1, 0, 0), key from the seed's halves."""
    mask = np.uint64(0xFFFFFFFF)
    a, b, c, d = (np.broadcast_to(np.asarray(v, np.uint64), c0.shape) for v in (c0, c1, 0, 0))
    low, high = seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF
    for _ in range(rounds):
        first, second = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        a, b, c, d = ((second >> np.uint64(32)) ^ b ^ np.uint64(low), second & mask,
                      (first >> np.uint64(32)) ^ d ^ np.uint64(high), first & mask)
        low, high = low + 0x9E3779B9 & 0xFFFFFFFF, high + 0xBB67AE85 & 0xFFFFFFFF
    return [a, b, c, d]


@reference("gems.dropout.fwd.fp32")
def dropout(m: Maker) -> Iterator[Launch]:
    block = m["BLOCK"]
    for n, p, seed, offset in [(1, 0.5, 1, 0), (1000, 0.25, 0x1234567890ABCDEF, 5), (1024, 0.9, 7, 2**32 - 3)]:
        x, programs = m.real("X", n), cdiv(n, 4 * block)
        lane = np.arange(programs * block, dtype=np.uint64)
        c0 = (np.uint64(offset & 0xFFFFFFFF) + lane) & np.uint64(0xFFFFFFFF)
        words = [w.astype(np.uint32).view(np.int32).astype(np.int64) for w in philox(seed, c0, offset >> 32)]
        drawn = np.stack([np.where(w < 0, -w - 1, w) for w in words]) * 4.6566127342e-10
        # A program's 4 * block values are its four words' blocks one after the other.
        drawn = drawn.reshape(4, programs, block).transpose(1, 0, 2).ravel()[:n]
        kept = drawn > np.float32(p)
        yield Launch(f"{n} {p}", (programs,), {"X": x, "N": n, "p": p, "philox_seed": seed, "philox_offset": offset},
                     {"Y": x * kept / (1 - p), "dropout_mask": kept}, **m.tolerance)


@reference("gems.dropout.bwd.fp32")
def dropout_backward(m: Maker) -> Iterator[Launch]:
    for n in (1, 700):
        dy, kept = m.real("DY", n), m.whole(n, low=0, high=2)
        yield Launch(f"{n}", (cdiv(n, m["BLOCK"]),), {"DY": dy, "dropout_mask": kept, "N": n, "scale": 1.25},
                     {"DX": dy * kept * 1.25}, **m.tolerance)
