"""A torch program whose softmax is tuned by joules: hebe.autotune where triton.autotune would stand.

In: a GPU with torch, Triton and a qualified meter (`hebe probe-meter`, once a boot); out: for each width the configuration
that costs the least energy, the one that takes the least time, by how much they differ, and whether that is confirmed.
Invariant: every row is checked against torch before it is measured; without a GPU nothing is printed but the refusal.

    python examples/autotune_softmax.py [--rows 4096] [--widths 1024,4096,16384] [--objective energy|edp|latency]
"""

from __future__ import annotations

import argparse
import sys

import hebe


def kernel_of(objective: str):
    import triton
    import triton.language as tl

    # No num_stages: without a loop there is nothing to pipeline, and each would be measured twice.
    configs = [triton.Config({"ROWS": rows}, num_warps=warps) for rows in (1, 2, 4) for warps in (2, 4, 8, 16)]

    def fits(configs, named, BLOCK, **_):
        """A program's rows stay in registers: 64 Ki elements are too many for any number of warps here."""
        kept = [c for c in configs if c.kwargs["ROWS"] * BLOCK <= 65_536 and c.kwargs["ROWS"] * BLOCK >= 32 * c.num_warps]
        return kept or configs[:1]

    @hebe.autotune(configs, key=["columns"], objective=objective, prune_configs_by={"early_config_prune": fits})
    @triton.jit
    def softmax_rows(out_ptr, in_ptr, rows, columns, BLOCK: tl.constexpr, ROWS: tl.constexpr):
        row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        column = tl.arange(0, BLOCK)
        inside = (row[:, None] < rows) & (column[None, :] < columns)
        at = row[:, None].to(tl.int64) * columns + column[None, :]
        x = tl.load(in_ptr + at, mask=inside, other=-float("inf")).to(tl.float32)
        e = tl.exp(x - tl.max(x, axis=1)[:, None])
        tl.store(out_ptr + at, e / tl.sum(e, axis=1)[:, None], mask=inside)

    return softmax_rows


def softmax(kernel, out, x):
    import triton

    rows, columns = x.shape
    kernel[lambda meta: (triton.cdiv(rows, meta["ROWS"]),)](out, x, rows, columns, BLOCK=triton.next_power_of_2(columns))


def launch_with(kernel, config, out, x):
    """The same launch with one configuration, without the tuner."""
    import triton

    rows, columns = x.shape
    return lambda: kernel.fn[(triton.cdiv(rows, config.kwargs["ROWS"]),)](
        out, x, rows, columns, BLOCK=triton.next_power_of_2(columns), **config.all_kwargs())


def tell(kernel, columns: int, out, x) -> None:
    if kernel.fallbacks:
        print(f"{columns:>7}  not measured: {kernel.fallbacks[-1].what}")
        return
    by_energy = min(kernel.measurements, key=lambda c: kernel.measurements[c].energy.value)
    by_time = min(kernel.measurements, key=lambda c: kernel.measurements[c].time.value)
    least, fastest = kernel.measurements[by_energy], kernel.measurements[by_time]
    print(f"{columns:>7}  {len(kernel.measurements)} configurations; least energy {least.energy!r} in {least.time.value * 1e6:.1f} µs "
          f"with {by_energy}")
    if by_energy == by_time:
        print("         it is the fastest as well")
        return
    print(f"         fastest {fastest.energy!r} in {fastest.time.value * 1e6:.1f} µs with {by_time}")
    confirmed = hebe.compare(launch_with(kernel, by_time, out, x), launch_with(kernel, by_energy, out, x))
    print(f"         the first against the second: energy {confirmed.energy!r}: {confirmed.verdict}; time {confirmed.time!r}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--widths", default="1024,4096,16384")
    parser.add_argument("--objective", choices=("energy", "edp", "latency"), default="energy")
    asked = parser.parse_args()
    try:
        state = hebe.status()  # refused where there is no GPU
        if state.why_not is not None:
            raise state.why_not
        import torch
    except hebe.Refused as refused:
        print(f"autotune_softmax: {refused}", file=sys.stderr)
        return refused.exit
    except ImportError as error:
        print(f"autotune_softmax: {error}\n  next: pip install torch", file=sys.stderr)
        return 3
    kernel = kernel_of(asked.objective)
    for columns in (int(width) for width in asked.widths.split(",")):
        x = torch.randn(asked.rows, columns, device="cuda", dtype=torch.float16)
        out = torch.empty_like(x)
        softmax(kernel, out, x)
        torch.testing.assert_close(out, torch.softmax(x, dim=1))
        tell(kernel, columns, out, x)
    return 0


if __name__ == "__main__":
    sys.exit(main())
