"""What the installed Triton can dump, take back and compile again, tried on one kernel and compared byte by byte.

In: a case and an edited form of its TTGIR (of any pass; null: nothing is overridden with an edit). Out: one row a way
of doing it, {"way", "possible", "same", "evidence"}: "same" says by artifact whether the bytes are those of the plain
compilation, or is null where there is nothing to compare. Every way runs with a cache of its own, so that nothing is
answered from an earlier one. An audit hook of Python's lists every program that was started and every connection that
was tried meanwhile: "nothing was downloaded or built" is what was seen, not what was hoped.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Iterator

from hebe.worker import toolchain
from hebe.worker.compile_case import Prepared, prepared_case
from hebe.worker.compile_error import error_text
from hebe.worker.protocol import jsonable

STAGES = ("ttir", "ttgir", "llir", "ptx", "cubin")
#: Below each stage of a text that is given.
BELOW = {"ttir": ("ttgir", "llir", "ptx", "cubin"), "ttgir": ("llir", "ptx", "cubin"), "llir": ("ptx", "cubin"),
         "ptx": ("cubin",)}
#: Audit events that mean a program was started, or a connection tried.
STARTS = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.fork")
CONNECTS = ("socket.connect", "socket.getaddrinfo", "urllib.Request")

_heard: list[tuple[str, str]] | None = None  # null: nobody listens
_hooked = False


def probe_pipeline(edited: str | None, **request: Any) -> dict[str, Any]:
    """{"rows", "programs", "connections", "artifacts"}; raises Failure where the case itself does not compile."""
    with prepared_case(**request) as prepared, _listening() as heard:
        probe = _Probe(prepared, edited)
        rows = probe.rows()
        programs, connections = sorted({what for kind, what in heard if kind == "program"}), \
            [what for kind, what in heard if kind == "connection"]
    return {
        "rows": jsonable(rows),
        "artifacts": {stage: hashlib.sha256(data).hexdigest() for stage, data in probe.plain.items()},
        "programs": [_relative(program) for program in programs],
        "connections": connections,
        "triton": toolchain.triton_version(),
        "ptxas": prepared.ptxas,
    }


class _Probe:
    def __init__(self, prepared: Prepared, edited: str | None) -> None:
        self.prepared, self.edited = prepared, edited
        self.plain = self._compile(prepared.bound.options)

    def rows(self) -> list[dict[str, Any]]:
        rows = [self._row("compile again from nothing", lambda: self._compile(self._options()), STAGES),
                self._dump()]
        for stage in ("ttir", "ttgir", "llir", "ptx"):
            rows.append(self._row(f"compile its own {stage} by path", lambda s=stage: self._by_path(s, self.plain[s]),
                                  BELOW[stage]))
        for stage in ("ttir", "ttgir", "llir", "ptx"):
            rows.append(self._row(f"override {stage} with itself (ir_override)",
                                  lambda s=stage: self._overridden(s, self.plain[s]), BELOW[stage]))
        if self.edited is not None:
            data = self.edited.encode()
            rows.append(self._row("compile an edited ttgir by path", lambda: self._by_path("ttgir", data), BELOW["ttgir"],
                                  edited=True))
            rows.append(self._row("override ttgir with an edit (ir_override)", lambda: self._overridden("ttgir", data),
                                  BELOW["ttgir"], edited=True))
            rows.append(self._row("override ttgir with an edit (TRITON_KERNEL_OVERRIDE)",
                                  lambda: self._override_folder("ttgir", data), BELOW["ttgir"], edited=True))
        return rows

    def _row(self, way: str, made: Any, stages: tuple[str, ...], edited: bool = False) -> dict[str, Any]:
        try:
            found = made()
        except BaseException as error:  # Triton's compiler raises whatever its parts raise
            return {"way": way, "possible": False, "same": None, "evidence": _short(error_text(error))}
        same = {stage: found[stage] == self.plain[stage] for stage in stages if stage in found}
        evidence = ", ".join(f"{stage} {'the same bytes' if equal else 'other bytes'}" for stage, equal in same.items())
        taken = not edited or not same.get("ptx", True)
        return {"way": way, "possible": taken, "same": same,
                "evidence": evidence if taken else f"the edit had no effect: {evidence}"}

    def _dump(self) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="hebe-dump-") as folder, \
                _environment(TRITON_KERNEL_DUMP="1", TRITON_DUMP_DIR=folder):
            def made() -> dict[str, bytes]:
                self._compile(self._options())
                return {file.suffix[1:]: file.read_bytes() for file in Path(folder).rglob("*") if file.is_file()}

            return self._row("dump every stage (TRITON_KERNEL_DUMP)", made, STAGES)

    def _options(self, **changed: Any) -> Any:
        return dataclasses.replace(self.prepared.bound.options, **changed)

    def _compile(self, options: Any, source: Any = None) -> dict[str, bytes]:
        """Artifacts by stage, with an empty cache."""
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource
        from triton.compiler import compile as triton_compile

        bound = self.prepared.bound
        source = source or ASTSource(bound.kernel, bound.signature, bound.constants, bound.attributes)
        with tempfile.TemporaryDirectory(prefix="hebe-probe-") as cache, _environment(TRITON_CACHE_DIR=cache):
            made = triton_compile(source, target=GPUTarget(**self.prepared.target), options=options.__dict__)
            artifacts = {stage: made.asm[stage] for stage in STAGES if stage in made.asm}
        return {stage: data.encode() if isinstance(data, str) else data for stage, data in artifacts.items()}

    @contextlib.contextmanager
    def _file(self, stage: str, data: bytes) -> Iterator[str]:
        with tempfile.TemporaryDirectory(prefix="hebe-text-") as folder:
            path = Path(folder) / f"kernel.{stage}"
            path.write_bytes(data)
            yield str(path)

    def _by_path(self, stage: str, data: bytes) -> dict[str, bytes]:
        with self._file(stage, data) as path:
            return self._compile(self._options(), source=path)

    def _overridden(self, stage: str, data: bytes) -> dict[str, bytes]:
        with self._file(stage, data) as path:
            return self._compile(self._options(ir_override=path))

    def _override_folder(self, stage: str, data: bytes) -> dict[str, bytes]:
        from triton.compiler import ASTSource
        from triton.runtime.cache import _base32  # Triton's own name of the folder of a source

        bound = self.prepared.bound
        source = ASTSource(bound.kernel, bound.signature, bound.constants, bound.attributes)
        with tempfile.TemporaryDirectory(prefix="hebe-override-") as folder, \
                _environment(TRITON_KERNEL_OVERRIDE="1", TRITON_OVERRIDE_DIR=folder):
            place = Path(folder) / _base32(source.hash())
            place.mkdir()
            (place / f"{source.name}.{stage}").write_bytes(data)
            return self._compile(self._options())


@contextlib.contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _listening() -> Iterator[list[tuple[str, str]]]:
    """What the process starts and connects to meanwhile. A hook cannot be taken off again, so there is one, deaf."""
    global _heard, _hooked
    if not _hooked:
        sys.addaudithook(_hear)
        _hooked = True
    _heard = []
    try:
        yield _heard
    finally:
        _heard = None


def _hear(event: str, arguments: tuple) -> None:
    if _heard is None:
        return
    if event in STARTS:
        first = arguments[0] if arguments else event
        if event == "subprocess.Popen" and first is None:
            first = arguments[1][0]
        _heard.append(("program", os.fsdecode(first) if isinstance(first, (str, bytes, os.PathLike)) else event))
    elif event in CONNECTS:
        _heard.append(("connection", f"{event} {arguments[1:]!r}"))


def _relative(program: str) -> str:
    """A program of Triton's own by its place in the package; another one as it was called."""
    _, mark, inside = program.rpartition("/triton/")
    return f"triton/{inside}" if mark else program


def _short(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return (lines[0] if lines else "no message")[:300]
