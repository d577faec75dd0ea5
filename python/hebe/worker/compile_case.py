"""A case to its launch, artifacts and provenance.

Triton's own compiler does it with an explicit target, so neither a GPU nor a driver is needed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator

from hebe.case import Case
from hebe.worker import parameters, toolchain
from hebe.worker.compile_error import compile_failure
from hebe.worker.compile_record import artifacts_of, constant, environment, provenance_of
from hebe.worker.launch import launch_of
from hebe.worker.load_case import LoadedCase, open_case
from hebe.worker.options import check_options, freeze_override, portable
from hebe.worker.protocol import Failure, jsonable
from hebe.worker.resources import compiled_kernel, resources_of
from hebe.worker.sourced_kernel import open_kernel
from hebe.worker.specialise import Specialisation, kernel_of, specialise

TEXT_STAGES = ("ttir", "ttgir", "llir", "ptx")

_private_cache: Path | None = None


@dataclass(frozen=True)
class Prepared:
    """A case bound to a target and options, ready for Triton's compiler. Usable inside `prepared_case` only."""

    loaded: LoadedCase
    case: Case
    values: dict[str, Any]  # the case function's parameters
    target: dict[str, Any]
    backend: Any  # Triton's, for the target
    bound: Specialisation
    kernel_source: dict[str, Any] | None  # where a kernel that is not the case file's own comes from
    cache: Path
    ptxas: str  # its version

    def grid(self, resources: dict[str, Any], metadata: Any) -> tuple[int, int, int]:
        """The case's grid; one that is a function is asked with what the kernel has become."""
        if not callable(self.case.grid):
            return self.case.grid
        kernel = compiled_kernel(resources, metadata)
        with self.loaded.running():
            return self.case.grid_for(kernel)


def compile_case(**request: Any) -> dict[str, Any]:
    """{"launch", "artifacts", "provenance", "resources"} for the arguments of `prepared_case`; raises Failure."""
    with prepared_case(**request) as prepared:
        compiled = compile_base(prepared)
        cubin, metadata = compiled.asm["cubin"], compiled.metadata
        sass, nvdisasm = toolchain.disassemble(cubin)
        resources = resources_of(cubin, metadata.name, sass)
        grid = prepared.grid(resources, metadata)
        launch = launch_of(prepared.case, prepared.values, prepared.target, prepared.bound, metadata, grid)
        texts = {stage: compiled.asm[stage] for stage in TEXT_STAGES}
        return {
            "launch": jsonable(launch),
            "artifacts": artifacts_of(prepared.loaded.data, texts, cubin, sass),
            "provenance": jsonable(provenance_of(prepared, metadata._asdict(), nvdisasm)),
            "resources": resources,
        }


@contextlib.contextmanager
def prepared_case(path: str, function: str, given: dict[str, Any], target: dict[str, Any],
                  overrides: dict[str, Any], cache_dir: str | None) -> Iterator[Prepared]:
    """Load a case and bind it; raises Failure."""
    ptxas = toolchain.require_tool(toolchain.ptxas_for(target["arch"]))
    with open_case(path) as loaded:
        call = loaded.function(function)
        values = parameters.resolve(loaded, call, given)
        case = loaded.make(call, values)
        cache = _cache_folder(cache_dir)
        with open_kernel(loaded, case, target["arch"], cache) as (case, kernel_source):
            kernel = kernel_of(case)
            backend = _backend(target)
            options = check_options({**case.options, **overrides}, _options_class(backend), target["arch"])
            bound = specialise(case, kernel, freeze_override(options, cache), backend)
            yield Prepared(loaded, case, values, target, backend, bound, kernel_source, cache, ptxas["version"])


def forget_private_cache() -> None:
    """Remove the cache folder of this process, if one was made."""
    if _private_cache is not None:
        shutil.rmtree(_private_cache, ignore_errors=True)


def _backend(target: dict[str, Any]) -> Any:
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend

    try:
        return make_backend(GPUTarget(target["backend"], target["arch"], target["warp_size"]))
    except RuntimeError as error:
        raise Failure("toolchain_unavailable", f"this Triton has no cuda backend: {error}") from error


def _options_class(backend: Any) -> type:
    return type(backend.parse_options({}))


def _cache_folder(cache_dir: str | None) -> Path:
    """The folder for compiled kernels: the caller's, else one that lives as long as this process."""
    global _private_cache
    if cache_dir is None:
        if _private_cache is None:
            _private_cache = Path(tempfile.mkdtemp(prefix="hebe-worker-"))
        return _private_cache
    folder = Path(cache_dir)
    if not folder.is_absolute():
        raise Failure("bad_request", f"params.cache_dir: {cache_dir!r} is not an absolute path")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failure("bad_request", f"params.cache_dir: {cache_dir}: {error.strerror}") from None
    return folder


def compile_base(prepared: Prepared) -> Any:
    """Triton's CompiledKernel of the case as it is; raises Failure."""
    from triton.compiler import ASTSource

    bound = prepared.bound
    source = ASTSource(bound.kernel, bound.signature, bound.constants, bound.attributes)
    try:
        compiled = run_compiler(prepared, source)
    except Failure:
        raise
    except BaseException as error:  # a kernel's own constexpr code may raise anything, sys.exit included
        raise compile_failure(error, prepared.loaded) from None
    if compiled.metadata.tensordesc_meta:
        raise Failure("compile_failed", "the kernel takes tensor descriptors; these are not supported yet")
    return compiled


def run_compiler(prepared: Prepared, source: Any) -> Any:
    """Triton's compiler on a source in any of its forms; raises Failure for the disk, else what Triton raises."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import compile as triton_compile

    try:
        with _cached_under(prepared.cache / cache_key(prepared)):
            compiled = triton_compile(source, target=GPUTarget(**prepared.target),
                                      options=prepared.bound.options.__dict__)
            compiled.asm["cubin"]  # read now, while the folder is known to be there
            return compiled
    except OSError as error:
        raise (disk_failure(error, prepared.cache) or error) from None


_DISK_KINDS = {
    errno.ENOSPC: "no_space", errno.EDQUOT: "no_space",
    errno.EACCES: "no_permission", errno.EPERM: "no_permission", errno.EROFS: "no_permission",
}


def disk_failure(error: OSError, folder: Path) -> Failure | None:
    """What a full or forbidden disk makes of an attempt to write below `folder`; None for every other error."""
    kind = _DISK_KINDS.get(error.errno)
    return kind and Failure(kind, f"Triton's cache could not be written: {error.strerror}", where=str(folder))


def cache_key(prepared: Prepared) -> str:
    """Everything that decides the artifacts, as one digest: the folder below which Triton keeps its own cache.

    Triton's key alone is not enough: it takes constants by str(), and it sees nothing of a plain global that a
    constexpr function reads, in the case file, in a helper or in the file of a sourced kernel.
    """
    loaded, bound = prepared.loaded, prepared.bound
    decides = [
        toolchain.triton_version(), prepared.ptxas, prepared.target, loaded.digests(), prepared.kernel_source,
        loaded.kernel_files and loaded.kernel_files.digests(), bound.kernel.__name__, bound.signature,
        [[list(key), repr(constant(value))] for key, value in sorted(bound.constants.items())],
        [[list(key), value] for key, value in sorted(bound.attributes.items())],
        portable(bound.options.__dict__), environment(),
    ]
    return hashlib.sha256(json.dumps(jsonable(decides), sort_keys=True).encode()).hexdigest()[:32]


@contextlib.contextmanager
def _cached_under(folder: Path) -> Iterator[None]:
    before = os.environ.get("TRITON_CACHE_DIR")
    os.environ["TRITON_CACHE_DIR"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["TRITON_CACHE_DIR"]
        else:
            os.environ["TRITON_CACHE_DIR"] = before
