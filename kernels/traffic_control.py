"""out = factor * x, while a chosen extra fraction of the traffic is read and changes nothing.

In: `fraction` of the plain traffic (4 n bytes read, 4 n written) to read on top. Out: the same bits whatever the
fraction. Invariant: every fraction is one cubin; only the number of extra tiles, a run-time argument, differs, so two
arms differ in memory traffic, in the loop around it and in one bitwise operation an extra element, and in nothing else.

Why the extra reads are real. Each is masked with `keep` and folded into the output's bits; `keep` is 0, but only at run
time, so no compiler can drop them. They are spread evenly over the programs and marked evict-first, and a byte of any
buffer is touched again only after a whole launch's traffic (8 n bytes and more, 268 MB by default) has passed, several
times what a 60 MB L2 holds. The extra buffer holds values like x's, since values alone move a kernel's energy.
"""

import triton
import triton.language as tl

from hebe.case import Buffer, Case, CaseError, Scalar, Tolerance, Uniform, Work


@triton.jit(do_not_specialize=["extra_tiles", "keep"])
def traffic_kernel(x_ptr, extra_ptr, out_ptr, factor, extra_tiles, keep, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    program = tl.program_id(axis=0)
    lanes = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + program * BLOCK + lanes)
    # This program's share of the extra tiles: shares differ by one tile at most.
    begin = (program.to(tl.int64) * extra_tiles) // PROGRAMS
    end = ((program + 1).to(tl.int64) * extra_tiles) // PROGRAMS
    seen = tl.zeros((BLOCK,), dtype=tl.int32)
    for tile in range(begin, end):
        extra = tl.load(extra_ptr + (tile % (2 * PROGRAMS)) * BLOCK + lanes, eviction_policy="evict_first")
        seen ^= extra.to(tl.int32, bitcast=True) & keep
    bits = (x * factor).to(tl.int32, bitcast=True) ^ seen
    tl.store(out_ptr + program * BLOCK + lanes, bits.to(tl.float32, bitcast=True))


def case(n: int = 1 << 25, fraction: float = 0.0, block: int = 1024, num_warps: int = 4) -> Case:
    """fp32. The fraction is a whole number of tiles: a multiple of block / (2 n), rounded to the nearest."""
    if n < block or n % block != 0:
        raise CaseError(f"n: {n} is not a multiple of block = {block}")
    if not 0.0 <= fraction <= 16.0:  # a NaN fails both
        raise CaseError(f"fraction: {fraction} is not within 0 and 16")
    programs = n // block
    tiles = round(fraction * 2 * programs)
    if tiles == 0 and fraction > 0:
        raise CaseError(f"fraction: {fraction} is less than half a tile; the smallest step of n = {n} is {1 / (2 * programs)}")

    def reference(inputs):
        return {"out_ptr": inputs["x_ptr"] * inputs["x_ptr"].dtype.type(1.25)}

    return Case(
        name="traffic_control",
        description=f"out = 1.25 x, {n} fp32 elements, {tiles} extra tiles of {4 * block} bytes: "
                    f"{tiles / (2 * programs)} of the plain traffic read on top",
        kernel=traffic_kernel,
        arguments={
            "x_ptr": Buffer((n,), "fp32", "in", Uniform(-1.0, 1.0, seed=1)),
            "extra_ptr": Buffer((2 * n,), "fp32", "in", Uniform(-1.0, 1.0, seed=2)),
            "out_ptr": Buffer((n,), "fp32", "out"),
            "factor": Scalar(1.25),
            "extra_tiles": Scalar(tiles),
            "keep": Scalar(0),
        },
        constexprs={"PROGRAMS": programs, "BLOCK": block},
        grid=(programs, 1, 1),
        options={"num_warps": num_warps},
        tolerance=Tolerance(atol=0.0, rtol=0.0),
        reference=reference,
        work=Work(bytes_read=4 * n + 4 * block * tiles, bytes_written=4 * n,
                  operations={"fp32_mul": n, "i32_logic": n + 2 * block * tiles}),
    )
