"""Compiles the corpus: python tests/corpus/compile.py [--archs 80,90,100] [--fixed] [--match REGEX] [--build DIR].

Out: DIR/<triton version>/sm_<arch>/<id>/, whose files `dumps` lists. An entry whose meta.json has today's key (Triton,
packages, list entry) is not compiled again. Prints one line an entry; exits with 1 if any does not compile.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import shutil
import sys
import time
import warnings
from pathlib import Path
from typing import Any, Callable

import corpus
import dumps
import workers

BUILD = corpus.ROOT / "build" / "corpus"
LIMIT_SECONDS = 300.0  # of one entry; it then counts as not compiled


def folder_of(build: Path, arch: int, entry: corpus.Entry) -> Path:
    return build / _triton_version() / f"sm_{arch}" / entry.id


@functools.cache
def _triton_version() -> str:
    import importlib.metadata

    return importlib.metadata.version("triton")


def compile_all(chosen: list[tuple[corpus.Entry, int]], build: Path = BUILD, jobs: int = 2,
                limit: float = LIMIT_SECONDS, say: Callable[[str], None] = print) -> dict[str, str]:
    """Compile these (entry, arch) where that was not done; returns failures, reason by "id sm_arch"."""
    failures: dict[str, str] = {}
    for arch in sorted({arch for _, arch in chosen}):
        stale = [entry for entry, wanted in chosen if wanted == arch and not up_to_date(folder_of(build, arch, entry), entry)]
        for entry in stale:
            shutil.rmtree(folder_of(build, arch, entry), ignore_errors=True)
        if not stale:
            continue
        done = workers.results(stale, start, (arch, build), functools.partial(_make, arch, build), jobs, limit)
        for count, (entry, meta, error) in enumerate(done, 1):
            name = f"{entry.id} sm_{arch}"
            if error is not None:
                failures[name] = error
            say(f"[{count}/{len(stale)}] {name}: " + (error or f"{meta['compile_seconds']:.3f} s"))
    return failures


def up_to_date(folder: Path, entry: corpus.Entry) -> bool:
    try:
        return json.loads((folder / "meta.json").read_text())["key"] == corpus.key_of(entry)
    except (OSError, ValueError, KeyError):
        return False


def start(arch: int, build: Path) -> None:
    """A process's start: the stand-ins, and one compile that pays for Triton's hashing of itself."""
    warnings.simplefilter("ignore")
    corpus.prepare(arch, build)
    warm = corpus.Entry("warm-up", case=["kernels/vector_add.py", "case", {}])
    with corpus.opened(warm, arch) as kernel:
        dumps.texts_until("ptx", kernel.source(), arch, kernel.options)


def _make(arch: int, build: Path, entry: corpus.Entry) -> dict[str, Any]:
    folder = folder_of(build, arch, entry)
    meta = dumps.make(entry, arch, folder)
    part = folder / f"meta.json.{os.getpid()}"
    part.write_text(json.dumps(meta, indent=1) + "\n")
    part.replace(folder / "meta.json")  # last: without it the folder does not count
    return meta


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--archs", default="80,90,100")
    parser.add_argument("--fixed", action="store_true", help="only the part that ordinary CI compiles")
    parser.add_argument("--list", type=Path, default=corpus.LIST, help="another list of entries")
    parser.add_argument("--match", default="", help="only ids in which this regular expression is found")
    parser.add_argument("--build", type=Path, default=BUILD)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=LIMIT_SECONDS, help="seconds that one entry may take")
    given = parser.parse_args()
    archs = [int(arch) for arch in given.archs.split(",")]
    chosen = [(entry, arch) for entry in corpus.entries(given.list) if re.search(given.match, entry.id)
              for arch in (entry.fixed if given.fixed else entry.archs) if arch in archs]
    began = time.monotonic()
    failures = compile_all(chosen, given.build.resolve(), given.jobs, given.limit, say=lambda line: print(line, flush=True))
    print(f"{len(chosen) - len(failures)} of {len(chosen)} compiled, {time.monotonic() - began:.0f} s")
    for name, reason in sorted(failures.items()):
        print(f"not compiled: {name}: {reason}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
