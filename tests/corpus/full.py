"""The whole corpus with one Triton: python tests/corpus/full.py RESULTS.json [--archs 80,90,100] [--allow-failures].

Compiles every entry, checks its dumps with HEBE_BINARY and writes what came of it as JSON. `tests/corpus/full` runs it
with the pinned Triton and the newest, and `table.py` makes docs/ttgir-corpus.md of the two files.
"""

from __future__ import annotations

import argparse
import functools
import importlib.metadata
import json
import platform
import re
import sys
from pathlib import Path
from typing import Any

import check
import compile as corpus_compile
import corpus
import workers


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--archs", default="80,90,100")
    parser.add_argument("--match", default="")
    parser.add_argument("--build", type=Path, default=corpus_compile.BUILD)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=corpus_compile.LIMIT_SECONDS)
    parser.add_argument("--allow-failures", action="store_true", help="a kernel that does not compile is no failure: a "
                        "newer Triton has other rules")
    given = parser.parse_args()
    archs = [int(arch) for arch in given.archs.split(",")]
    chosen = [(entry, arch) for entry in corpus.entries() for arch in entry.archs
              if arch in archs and re.search(given.match, entry.id)]
    build = given.build.resolve()
    failures = corpus_compile.compile_all(chosen, build, given.jobs, given.limit, say=_say)
    records, broken = [], []
    for arch in archs:
        entries = [entry for entry, wanted in chosen if wanted == arch and f"{entry.id} sm_{arch}" not in failures]
        run = functools.partial(check.run_job, arch, build, check.program())
        for count, (entry, record, error) in enumerate(
                workers.results(entries, corpus_compile.start, (arch, build), run, given.jobs, 600), 1):
            if error is not None:
                broken.append(f"{entry.id} sm_{arch}: {error}")
                _say(broken[-1])
                continue
            records.append(record)
            if record.failures() or count % 50 == 0:
                _say(f"sm_{arch} {count}/{len(entries)} checked" + "".join(f"\n  {text}" for text in record.failures()))
    given.results.parent.mkdir(parents=True, exist_ok=True)
    given.results.write_text(json.dumps(_results(chosen, failures, broken, records, archs), indent=1) + "\n")
    failed = sum(bool(record.failures()) for record in records) + len(broken)
    _say(f"{len(records)} checked, {failed} failed, {len(failures)} did not compile: {given.results}")
    return 1 if failed or (failures and not given.allow_failures) else 0


def _say(text: str) -> None:
    print(text, flush=True)


def _results(chosen: list, failures: dict[str, str], broken: list[str], records: list[check.Record],
             archs: list[int]) -> dict[str, Any]:
    return {
        "triton": importlib.metadata.version("triton"),
        "packages": {name: corpus._version(name) for name in corpus.PACKAGES},
        "torch": corpus._version("torch"),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {_processor()}",
        "archs": archs,
        "chosen": len(chosen),
        "functions": len({entry.function for entry, _ in chosen}),
        "not_compiled": failures,
        "not_checked": broken,
        "records": [record.json() for record in sorted(records, key=lambda record: (record.arch, record.id))],
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "unknown"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


if __name__ == "__main__":
    sys.exit(main())
