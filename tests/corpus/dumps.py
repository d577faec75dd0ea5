"""An entry's dumps: the texts that the reader must read and print back, and PTX from printed text.

Files of an entry (`DUMPS`, in build/corpus/<triton>/sm_<arch>/<id>/), X being ttir or ttgir:

    kernel.X           with all locations and Python's names of values, as Triton dumps it by default
    kernel.plain.X     as the worker compiles it (TRITON_DISABLE_LINE_INFO=1)
    kernel.nodebug.X   str_nodebug() of kernel.X: no locations, numbered values
    kernel.ptx         of the worker's compile
    meta.json          key, options, what Triton took to compile (seconds, cubin included), ...
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Iterator

import corpus

FORMS = ("", "plain.", "nodebug.")
DUMPS = tuple(f"kernel.{form}{stage}" for stage in ("ttir", "ttgir") for form in FORMS)


def target(arch: int) -> Any:
    from triton.backends.compiler import GPUTarget

    return GPUTarget("cuda", arch, 32)


@contextlib.contextmanager
def line_info(wanted: bool) -> Iterator[None]:
    """With line info, IR holds locations and names; without, PTX holds no file, line or time."""
    before = os.environ.get("TRITON_DISABLE_LINE_INFO")
    os.environ["TRITON_DISABLE_LINE_INFO"] = "0" if wanted else "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["TRITON_DISABLE_LINE_INFO"]
        else:
            os.environ["TRITON_DISABLE_LINE_INFO"] = before


class Stopped(Exception):
    pass


def texts_until(last: str, source: Any, arch: int, options: dict[str, Any]) -> dict[str, str]:
    """The text of each stage of triton.compile until this one. What follows it (ptxas above all) is not run."""
    import triton
    from triton import knobs

    texts: dict[str, str] = {}

    def recording(stage: str, run: Any) -> Any:
        def ran(module: Any, metadata: dict) -> Any:
            made = run(module, metadata)
            texts[stage] = str(made)
            if stage == last:
                raise Stopped
            return made

        return ran

    def hook(self: Any = None, stages: Any = None, *rest: Any) -> Any:
        if stages is None:  # from Triton 3.7 on it is also asked for its part of the cache key
            return last, last
        stages.update({stage: recording(stage, run) for stage, run in stages.items()})

    before = knobs.runtime.add_stages_inspection_hook
    knobs.runtime.add_stages_inspection_hook = hook
    try:
        with _empty_cache():
            triton.compile(source, target=target(arch), options=options)
    except Stopped:
        return texts
    finally:
        knobs.runtime.add_stages_inspection_hook = before
    raise RuntimeError(f"triton.compile did not reach {last}")


@contextlib.contextmanager
def _empty_cache() -> Iterator[None]:
    """So that every compile is one."""
    shutil.rmtree(os.environ["TRITON_CACHE_DIR"], ignore_errors=True)
    try:
        yield
    finally:
        shutil.rmtree(os.environ["TRITON_CACHE_DIR"], ignore_errors=True)


def recompile(path: str | Path, arch: int, options: dict[str, Any] | None = None) -> str:
    """PTX of a .ttgir (or .ttir) file's text, without line info. `options` are those of the entry's compile.

    Always by one relative name: text without locations gets those of the file that it is read from, and an assertion
    takes them into PTX.
    """
    path = Path(path)
    with line_info(False), tempfile.TemporaryDirectory(prefix="hebe-corpus-") as folder:
        name = f"kernel{path.suffix}"
        shutil.copy(path, Path(folder) / name)
        with contextlib.chdir(folder):
            return texts_until("ptx", name, arch, dict(options or {}))["ptx"]


def nodebug(path: Path, arch: int) -> str:
    """str_nodebug() of a file, read by Triton itself."""
    from triton._C.libtriton import ir
    from triton.compiler.compiler import make_backend

    context = ir.context()
    ir.load_dialects(context)
    make_backend(target(arch)).load_dialects(context)
    module = ir.parse_mlir_module(str(path), context)
    module.context = context
    return module.str_nodebug()


def make(entry: corpus.Entry, arch: int, folder: Path) -> dict[str, Any]:
    """Compile an entry and write its dumps into the folder; returns meta. Raises what Triton raises."""
    import triton

    with corpus.opened(entry, arch) as kernel:
        with line_info(False), _empty_cache():
            compiled, seconds = corpus.seconds(
                lambda: triton.compile(kernel.source(), target=target(arch), options=kernel.options))
            plain = {stage: compiled.asm[stage] for stage in ("ttir", "ttgir", "ptx")}
        with line_info(True):
            full = texts_until("ttgir", kernel.source(), arch, kernel.options)
    folder.mkdir(parents=True, exist_ok=True)
    for stage in ("ttir", "ttgir"):
        (folder / f"kernel.{stage}").write_text(full[stage])
        (folder / f"kernel.plain.{stage}").write_text(plain[stage])
        (folder / f"kernel.nodebug.{stage}").write_text(nodebug(folder / f"kernel.{stage}", arch))
    (folder / "kernel.ptx").write_text(plain["ptx"])
    metadata = compiled.metadata
    ptx_of_form = {form: recompile(folder / f"kernel.{form}ttgir", arch, kernel.options) for form in FORMS}
    return {
        "id": entry.id, "function": entry.function, "arch": arch, "triton": triton.__version__,
        "key": corpus.key_of(entry), "compile_seconds": round(seconds, 6), "options": kernel.options,
        "num_warps": metadata.num_warps, "num_ctas": metadata.num_ctas, "num_stages": metadata.num_stages,
        "shared": metadata.shared, "name": metadata.name,
        # What re-fed text must give. Equal to kernel.ptx but where PTX holds locations (an assertion's file and line).
        "ptx_of_form": {form: hashlib.sha256(ptx.encode()).hexdigest() for form, ptx in ptx_of_form.items()},
        "forms_with_other_ptx": [form for form, ptx in ptx_of_form.items() if ptx != plain["ptx"]],
        "bytes": {name: (folder / name).stat().st_size for name in DUMPS},
    }
