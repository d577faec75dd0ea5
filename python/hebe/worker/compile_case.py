"""A case to its launch, artifacts and provenance.

Triton's own compiler does it with an explicit target, so neither a GPU nor a driver is needed.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import hashlib
import json
import os
import platform
import shutil
import tempfile
from pathlib import Path
from typing import Any, Iterator

from hebe.worker import parameters, toolchain
from hebe.worker.compile_error import compile_failure
from hebe.worker.launch import launch_of
from hebe.worker.load_case import LoadedCase, open_case
from hebe.worker.options import check_options, freeze_override, portable
from hebe.worker.protocol import Failure, jsonable
from hebe.worker.specialise import Specialisation, kernel_of, specialise

#: Triton's metadata that the launch does not already hold in another form, but that a reader may want.
METADATA = (
    "name", "num_warps", "num_ctas", "num_stages", "shared", "tmem_size", "global_scratch_size",
    "global_scratch_align", "profile_scratch_size", "profile_scratch_align", "launch_cooperative_grid", "launch_pdl",
    "tensordesc_meta", "triton_version",
)
TEXT_STAGES = ("ttir", "ttgir", "llir", "ptx")

_private_cache: Path | None = None


def compile_case(path: str, function: str, given: dict[str, Any], target: dict[str, Any],
                 overrides: dict[str, Any], cache_dir: str | None) -> dict[str, Any]:
    """{"launch", "artifacts", "provenance"}; raises Failure."""
    ptxas = toolchain.require_tool(toolchain.ptxas_for(target["arch"]))
    with open_case(path) as loaded:
        call = loaded.function(function)
        values = parameters.resolve(loaded, call, given)
        case = loaded.make(call, values)
        kernel = kernel_of(case)
        backend = _backend(target)
        cache = _cache_folder(cache_dir)
        options = check_options({**case.options, **overrides}, _options_class(backend), target["arch"])
        bound = specialise(case, kernel, freeze_override(options, cache), backend)
        compiled = _compile(loaded, bound, target, cache, ptxas["version"])
        if compiled.metadata.tensordesc_meta:
            raise Failure("compile_failed", "the kernel takes tensor descriptors; these are not supported yet")
        sass, nvdisasm = toolchain.disassemble(compiled.asm["cubin"])
        return {
            "launch": jsonable(launch_of(case, values, target, bound, compiled.metadata)),
            "artifacts": _artifacts(loaded, compiled, sass),
            "provenance": jsonable(_provenance(loaded, bound, compiled, ptxas, nvdisasm)),
        }


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


def _compile(loaded: LoadedCase, bound: Specialisation, target: dict[str, Any], cache: Path, ptxas: str) -> Any:
    from triton.compiler import ASTSource
    from triton.compiler import compile as triton_compile
    from triton.backends.compiler import GPUTarget

    source = ASTSource(bound.kernel, bound.signature, bound.constants, bound.attributes)
    try:
        with _cached_under(cache / _cache_key(loaded, bound, target, ptxas)):
            compiled = triton_compile(source, target=GPUTarget(**target), options=bound.options.__dict__)
            compiled.asm["cubin"]  # read now, while the folder is known to be there
            return compiled
    except OSError as error:
        kind = _DISK_KINDS.get(error.errno)
        if kind is None:
            raise compile_failure(error, loaded) from None
        raise Failure(kind, f"Triton's cache could not be written: {error.strerror}", where=str(cache)) from None
    except BaseException as error:  # a kernel's own constexpr code may raise anything, sys.exit included
        raise compile_failure(error, loaded) from None


_DISK_KINDS = {
    errno.ENOSPC: "no_space", errno.EDQUOT: "no_space",
    errno.EACCES: "no_permission", errno.EPERM: "no_permission", errno.EROFS: "no_permission",
}


def _cache_key(loaded: LoadedCase, bound: Specialisation, target: dict[str, Any], ptxas: str) -> str:
    """Everything that decides the artifacts, as one digest: the folder below which Triton keeps its own cache.

    Triton's key alone is not enough: it takes constants by str(), and it sees nothing of a plain global that a
    constexpr function reads, in the case file or in a helper.
    """
    decides = [
        toolchain.triton_version(), ptxas, target, loaded.digests(), bound.kernel.__name__, bound.signature,
        [[list(key), repr(_constant(value))] for key, value in sorted(bound.constants.items())],
        [[list(key), value] for key, value in sorted(bound.attributes.items())],
        portable(bound.options.__dict__), _environment(),
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


def _environment() -> dict[str, str]:
    """The environment variables that Triton says change its code."""
    from triton._C.libtriton import get_cache_invalidating_env_vars

    return dict(sorted(get_cache_invalidating_env_vars().items()))


def _artifacts(loaded: LoadedCase, compiled: Any, sass: str | None) -> dict[str, dict[str, str]]:
    """Artifacts by stage. "sass" is left out where it cannot be made; provenance then says why."""
    texts = {stage: compiled.asm[stage] for stage in TEXT_STAGES}
    if sass is not None:
        texts["sass"] = sass
    artifacts = {"source": _encoded(loaded.data)}
    artifacts |= {stage: {"encoding": "utf-8", "data": text} for stage, text in texts.items()}
    artifacts["cubin"] = {"encoding": "base64", "data": base64.b64encode(compiled.asm["cubin"]).decode("ascii")}
    return artifacts


def _encoded(data: bytes) -> dict[str, str]:
    """The exact bytes of a source file, as text where they are UTF-8."""
    try:
        return {"encoding": "utf-8", "data": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"encoding": "base64", "data": base64.b64encode(data).decode("ascii")}


def _provenance(loaded: LoadedCase, bound: Specialisation, compiled: Any, ptxas: dict[str, str],
                nvdisasm: dict[str, str]) -> dict[str, Any]:
    """Where the artifacts come from. Holds no path, so that equal inputs give equal records on every machine."""
    names = list(bound.signature)
    metadata = compiled.metadata._asdict()
    digests = loaded.digests()
    return {
        "source_sha256": digests.pop(loaded.file_name),
        "source_name": loaded.file_name,
        "helpers": digests,
        "signature": bound.signature,
        "constants": {names[key[0]]: _constant(value) for key, value in bound.constants.items()},
        "attributes": {names[key[0]]: value for key, value in bound.attributes.items() if value},
        "options": portable(bound.options.__dict__),
        "triton": toolchain.triton_version(),
        "ptxas": ptxas["version"],
        "nvdisasm": nvdisasm.get("version") or {"unavailable": nvdisasm["unavailable"]},
        "python": platform.python_version(),
        "environment": _environment(),
        "metadata": {name: metadata[name] for name in METADATA if name in metadata},
    }


def _constant(value: Any) -> Any:
    """A constexpr value for the record: plain values as they are, a function by its code's digest, the rest by str."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return [_constant(item) for item in value]
    if hasattr(value, "cache_key"):
        return f"{value.__name__}:{value.cache_key}"
    return str(value)
