"""What is checked of one entry's dumps with the program (`hebe ttgir`), and how.

In: a folder of dumps and the program. Out: a record of what failed, in words; nothing failed when its lists are empty.
- `ttgir print FILE` gives the file's bytes;
- `ttgir print --structural FILE`, which prints every operation from what was read and not from the source, too;
- the structural print of each TTGIR form, given back to Triton, gives the PTX that the form itself gives.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import corpus
import dumps

LIMIT_SECONDS = 120


def program() -> Path:
    return Path(os.environ.get("HEBE_BINARY") or corpus.ROOT / "build" / "release" / "hebe")


@dataclass
class Record:
    id: str
    function: str
    arch: int
    dumps: int = 0
    bytes: int = 0
    not_printed: list[str] = field(default_factory=list)
    not_structural: list[str] = field(default_factory=list)
    other_ptx: list[str] = field(default_factory=list)
    not_remade: list[str] = field(default_factory=list)
    not_understood: list[str] = field(default_factory=list)
    refed: int = 0
    triton_seconds: float = 0.0
    hebe_seconds: float | None = None
    operations: dict[str, int] = field(default_factory=dict)

    def failures(self) -> list[str]:
        return [*self.not_printed, *self.not_structural, *self.other_ptx, *self.not_remade, *self.not_understood]

    def json(self) -> dict[str, Any]:
        return asdict(self)


def check(entry: corpus.Entry, arch: int, folder: Path, binary: Path) -> Record:
    meta = json.loads((folder / "meta.json").read_text())
    record = Record(entry.id, entry.function, arch, triton_seconds=meta["compile_seconds"])
    for name in dumps.DUMPS:
        original = (folder / name).read_bytes()
        record.dumps += 1
        record.bytes += len(original)
        for option, failed in ((), record.not_printed), (("--structural",), record.not_structural):
            difference = _difference(original, binary, *option, str(folder / name))
            if difference is not None:
                failed.append(f"{entry.id} sm_{arch} {name}: print {' '.join(option)}: {difference}")
    for form in dumps.FORMS:
        record.refed += 1
        wrong = _other_ptx(folder / f"kernel.{form}ttgir", meta, form, arch, binary)
        if wrong is not None:
            record.other_ptx.append(f"{entry.id} sm_{arch} kernel.{form}ttgir: {wrong}")
    wrong = _not_remade(folder / "kernel.plain.ttgir", meta, arch)
    if wrong is not None:
        record.not_remade.append(f"{entry.id} sm_{arch}: {wrong}")
    done = _run(binary, "verify", "--json", *(str(folder / name) for name in dumps.DUMPS))
    said = json.loads(done.stdout) if done.returncode in (0, 1) else []
    if done.returncode != 0 or any(file["not_understood"] for file in said):
        record.not_understood.append(f"{entry.id} sm_{arch}: exit {done.returncode}: " + "; ".join(
            f"{file['faults'][:1]} {file['not_understood']}" for file in said if file["faults"] or file["not_understood"]))
    record.hebe_seconds = hebe_seconds(folder / "kernel.ttgir", binary)
    record.operations = operations(folder)
    return record


def _run(binary: Path, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([binary, "ttgir", *arguments], capture_output=True, timeout=LIMIT_SECONDS)


def _difference(original: bytes, binary: Path, *arguments: str) -> str | None:
    done = _run(binary, "print", *arguments)
    if done.returncode != 0:
        return f"exit {done.returncode}: {done.stderr.decode('utf-8', 'replace').strip()[:300]}"
    if done.stdout == original:
        return None
    for number, (ours, theirs) in enumerate(zip(done.stdout.splitlines(), original.splitlines()), 1):
        if ours != theirs:
            return f"line {number} is {ours!r:.200}, was {theirs!r:.200}"
    return f"{len(done.stdout)} bytes, was {len(original)}"


def _other_ptx(file: Path, meta: dict[str, Any], form: str, arch: int, binary: Path) -> str | None:
    return _ptx_differs(_run(binary, "print", "--structural", str(file)), meta, form, arch)


def _not_remade(file: Path, meta: dict[str, Any], arch: int) -> str | None:
    """Every operation made anew and every value renamed (remake.cpp): the PTX must stay. None too where there is no
    HEBE_REMAKE, the program that does it."""
    remake = os.environ.get("HEBE_REMAKE")
    if not remake:
        return None
    return _ptx_differs(subprocess.run([remake, file], capture_output=True, timeout=LIMIT_SECONDS), meta, "plain.", arch)


def _ptx_differs(done: subprocess.CompletedProcess, meta: dict[str, Any], form: str, arch: int) -> str | None:
    if done.returncode != 0:
        return f"not printed: exit {done.returncode}: {done.stderr.decode('utf-8', 'replace').strip()[:300]}"
    with tempfile.TemporaryDirectory(prefix="hebe-corpus-") as folder:
        again = Path(folder) / "again.ttgir"
        again.write_bytes(done.stdout)
        try:
            ptx = dumps.recompile(again, arch, meta["options"])
        except Exception as error:
            return f"Triton does not take the print back: {type(error).__name__}: {error}"
    return None if _digest(ptx) == meta["ptx_of_form"][form] else "the print gives another PTX"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def hebe_seconds(file: Path, binary: Path) -> float | None:
    """What reading a file and printing it from its structure take inside the program, without its start."""
    done = subprocess.run([binary, "--json", "ttgir", "print", "--time", str(file)], capture_output=True,
                          timeout=LIMIT_SECONDS)
    try:
        return float(json.loads(done.stdout)[0]["read_and_print_s"])
    except (ValueError, IndexError, KeyError, TypeError):
        return None


_OPERATION = re.compile(r'^ *(?:%[^=]*= )?"?((?:tt|ttg|ttng|scf|arith|math|cf|ub|gpu|nvvm|nvgpu|llvm)\.[a-z_0-9.]+)"?', re.M)


def operations(folder: Path) -> dict[str, int]:
    """Operations by name in an entry's TTIR and TTGIR, from the text without locations: a rough count, for the table."""
    found: dict[str, int] = {}
    for stage in ("ttir", "ttgir"):
        for name in _OPERATION.findall((folder / f"kernel.nodebug.{stage}").read_text()):
            found[name] = found.get(name, 0) + 1
    return found


def run_job(arch: int, build: Path, binary: Path, entry: corpus.Entry) -> Record:
    """One job of a process that `compile.start` began."""
    from compile import folder_of

    return check(entry, arch, folder_of(build, arch, entry), binary)
