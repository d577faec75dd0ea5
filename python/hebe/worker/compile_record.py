"""What goes with a launch: the artifacts by stage, and where they come from."""

from __future__ import annotations

import base64
import platform
from typing import Any

from hebe.worker import toolchain
from hebe.worker.options import portable

#: Triton's metadata that the launch does not already hold in another form, but that a reader may want.
METADATA = (
    "name", "num_warps", "num_ctas", "num_stages", "shared", "tmem_size", "global_scratch_size",
    "global_scratch_align", "profile_scratch_size", "profile_scratch_align", "launch_cooperative_grid", "launch_pdl",
    "tensordesc_meta", "triton_version",
)


def artifacts_of(source: bytes, texts: dict[str, str], cubin: bytes, sass: str | None) -> dict[str, dict[str, str]]:
    """Artifacts by stage; `source` is the case file. "sass" is left out where it cannot be made; provenance then says
    why."""
    if sass is not None:
        texts = texts | {"sass": sass}
    artifacts = {"source": _encoded(source)}
    artifacts |= {stage: {"encoding": "utf-8", "data": text} for stage, text in texts.items()}
    artifacts["cubin"] = {"encoding": "base64", "data": base64.b64encode(cubin).decode("ascii")}
    return artifacts


def _encoded(data: bytes) -> dict[str, str]:
    """The exact bytes of a source file, as text where they are UTF-8."""
    try:
        return {"encoding": "utf-8", "data": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"encoding": "base64", "data": base64.b64encode(data).decode("ascii")}


def provenance_of(prepared: Any, metadata: dict[str, Any], nvdisasm: dict[str, str]) -> dict[str, Any]:
    """Where the artifacts come from. Holds no path, so that equal inputs give equal records on every machine.

    `prepared` is a hebe.worker.compile_case.Prepared.
    """
    loaded, bound = prepared.loaded, prepared.bound
    names = list(bound.signature)
    digests = loaded.digests()
    record = {
        "source_sha256": digests.pop(loaded.file_name),
        "source_name": loaded.file_name,
        "helpers": digests,
        "signature": bound.signature,
        "constants": {names[key[0]]: constant(value) for key, value in bound.constants.items()},
        "attributes": {names[key[0]]: value for key, value in bound.attributes.items() if value},
        "options": portable(bound.options.__dict__),
        "triton": toolchain.triton_version(),
        "ptxas": prepared.ptxas,
        "nvdisasm": nvdisasm.get("version") or {"unavailable": nvdisasm["unavailable"]},
        "python": platform.python_version(),
        "environment": environment(),
        "metadata": {name: metadata[name] for name in METADATA if name in metadata},
    }
    return record | ({"kernel_source": prepared.kernel_source} if prepared.kernel_source else {})


def environment() -> dict[str, str]:
    """The environment variables that Triton says change its code."""
    from triton._C.libtriton import get_cache_invalidating_env_vars

    return dict(sorted(get_cache_invalidating_env_vars().items()))


def constant(value: Any) -> Any:
    """A constexpr value for the record: plain values as they are, a function by its code's digest, the rest by str."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return [constant(item) for item in value]
    if hasattr(value, "cache_key"):
        return f"{value.__name__}:{value.cache_key}"
    return str(value)
