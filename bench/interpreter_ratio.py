"""How fast the interpreter is beside Triton's own (TRITON_INTERPRET=1): python bench/interpreter_ratio.py [REGEX].

The launches of the corpus's references, each in one process run after run: Triton's interpreter, then `hebe ttgir run` on the
kernel's TTIR and on its TTGIR with one thread; seconds are of the launch alone (no compile, no reading, no start of a
program), the least of three. Prints a line a kernel, then the ratios' median, least, and that of all launches together.
Triton's interpreter computes on numpy; where torch is installed nothing else changes, since arguments reach it ready.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "corpus"), str(ROOT / "python")]

import compile as corpus_compile  # noqa: E402
import corpus  # noqa: E402
import interpret  # noqa: E402
import numpy as np  # noqa: E402

BINARY = os.environ.get("HEBE_BINARY", str(ROOT / "build" / "release" / "hebe"))
REPEATS = 3


def hebe_seconds(dump: Path, launch: Path) -> float:
    best = float("inf")
    for _ in range(REPEATS):
        done = subprocess.run([BINARY, "--json", "ttgir", "run", dump, "--launch", launch, "--threads", "1", "--time"],
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        best = min(best, json.loads(done.stdout)["seconds"])
    return best


def main() -> int:
    match = sys.argv[1] if len(sys.argv) > 1 else ""
    warnings.simplefilter("ignore")
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    corpus.prepare(90, ROOT / "build" / "corpus", interpreted=True)
    interpret.mend_interpreter()
    import launches
    import references

    chosen = [entry for entry in corpus.entries() if entry.id in references.REFERENCES and re.search(match, entry.id)]
        corpus_compile.compile_all([(entry, 90) for entry in chosen], say=lambda line: None)
    functions = {entry.id: corpus.function_of(entry) for entry in chosen}
    orders = {entry.id: launches.order_of(entry) for entry in chosen}
    interpret.replace_libdevice()
    ratios, triton_all, hebe_all, left_out = {}, 0.0, 0.0, []
    for entry in chosen:
        folder = corpus_compile.folder_of(corpus_compile.BUILD, 90, entry)
        triton = ttir = ttgir = 0.0
        try:
            for launch in references.launches_of(entry):
                best = float("inf")
                for _ in range(REPEATS):
                    buffers = launches.buffers(entry, launch)
                    began = time.perf_counter()
                    with np.errstate(all="ignore"):
                        interpret.run(entry, functions[entry.id], launch, buffers)
                    best = min(best, time.perf_counter() - began)
                with tempfile.TemporaryDirectory(prefix="hebe-ratio-") as scratch:
                    path = launches.write(entry, launch, Path(scratch), orders[entry.id])
                    ttir += hebe_seconds(folder / "kernel.ttir", path)
                    ttgir += hebe_seconds(folder / "kernel.ttgir", path)
                triton += best
        except Exception as error:  # a kernel that one of the two cannot run is told, and not in the ratios
            left_out.append(f"{entry.id}: {type(error).__name__}: {str(error)[:160]}")
            continue
        ratios[entry.id] = triton / max(ttir, ttgir)
        triton_all, hebe_all = triton_all + triton, hebe_all + max(ttir, ttgir)
        print(f"{entry.id:60} Triton {triton:9.4f} s  TTIR {ttir:9.5f} s  TTGIR {ttgir:9.5f} s  ratio {ratios[entry.id]:7.1f}", flush=True)
    for text in left_out:
        print("left out:", text)
    slowest = min(ratios, key=ratios.get)
    print(f"{len(ratios)} kernels: ratio (Triton's seconds / Hebe's, the slower of TTIR and TTGIR) median "
          f"{statistics.median(ratios.values()):.1f}, least {ratios[slowest]:.1f} ({slowest}), all together {triton_all / hebe_all:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
