"""Which Triton, which NVIDIA tools, which numpy: found without importing any of them."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hebe.worker.protocol import Failure

TOOLS = ("ptxas", "ptxas-blackwell", "nvdisasm", "cuobjdump")
FIRST_BLACKWELL_ARCH = 100  # from here on Triton uses its second ptxas


def describe() -> dict[str, Any]:
    """Versions by component; a missing one is {"unavailable": reason}. The tools are asked at the same time."""
    started = {tool: _start_version(tool) for tool in TOOLS}
    return {
        "python": {"version": platform.python_version(), "executable": sys.executable},
        "triton": _distribution("triton"),
        "numpy": _distribution("numpy"),
        **{tool.replace("-", "_"): _finish_version(process) for tool, process in started.items()},
    }


def require_triton() -> Any:
    """The imported triton package; raises Failure(toolchain_unavailable)."""
    found = _distribution("triton")
    if "unavailable" in found:
        raise Failure("toolchain_unavailable", f"Triton: {found['unavailable']}")
    try:
        return importlib.import_module("triton")
    except Exception as error:
        raise Failure("toolchain_unavailable", f"Triton {found['version']} cannot be imported: {error}") from error


def require_tool(tool: str) -> dict[str, str]:
    """{"version", "path"} of one tool; raises Failure(toolchain_unavailable)."""
    found = _find(tool)
    if "unavailable" in found:
        raise Failure("toolchain_unavailable", f"{tool}: {found['unavailable']}")
    return found


def ptxas_for(arch: int) -> str:
    """The name of the ptxas that Triton runs for this compute capability."""
    return "ptxas-blackwell" if arch >= FIRST_BLACKWELL_ARCH else "ptxas"


def disassemble(cubin: bytes) -> tuple[str | None, dict[str, str]]:
    """The cubin's SASS by nvdisasm, and the tool as found. The text is None where the tool is unavailable."""
    return read_cubin("nvdisasm", "-c", cubin)


def read_cubin(tool: str, option: str, cubin: bytes) -> tuple[str | None, dict[str, str]]:
    """What `tool option cubin` prints, and the tool as found. The text is None where the tool is unavailable."""
    found = _find(tool)
    if "unavailable" in found:
        return None, found
    text, fault = _read_cubin_by(tool, found["path"], found["version"], option, cubin)
    return (text, found) if fault is None else (None, {"unavailable": fault})


@functools.lru_cache(maxsize=256)
def _read_cubin_by(tool: str, path: str, version: str, option: str, cubin: bytes) -> tuple[str, str | None]:
    """(text, fault or None). nvdisasm takes longer than most kernels take to compile, so equal cubins go once."""
    # A fixed relative name, so that the text can never show where the temporary folder was.
    with tempfile.TemporaryDirectory(prefix="hebe-cubin-") as folder:
        (Path(folder) / "kernel.cubin").write_bytes(cubin)
        done = subprocess.run([path, option, "kernel.cubin"], cwd=folder, capture_output=True)
    if done.returncode != 0:
        return "", f"{tool} {version} failed on this cubin: {done.stderr.decode('utf-8', 'replace').strip()}"
    return done.stdout.decode("utf-8", "replace"), None


def _distribution(name: str) -> dict[str, str]:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None:
        return {"unavailable": f"no package {name!r} in {sys.executable}"}
    try:
        return {"version": importlib.metadata.version(name)}
    except importlib.metadata.PackageNotFoundError:
        return {"unavailable": f"{spec.origin} has no installed metadata, so its version is unknown"}


def _tool_path(tool: str) -> tuple[Path | None, str]:
    """(path, the reason it would be missing). An override that does not work is not replaced by the bundled tool:
    Triton does that in silence, and the user would get another assembler than the one asked for."""
    variable = f"TRITON_{tool.upper().replace('-', '_')}_PATH"
    if os.environ.get(variable):
        return Path(os.environ[variable]), f"{variable}={os.environ[variable]}"
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        return None, f"it comes with Triton, which is not in {sys.executable}"
    path = Path(spec.origin).parent / "backends" / "nvidia" / "bin" / tool
    return path, f"Triton's bundled {path}"


def _find(tool: str) -> dict[str, str]:
    """One tool as found; it is started only once for every state of its file, as that is slow."""
    path, blame = _tool_path(tool)
    try:
        state = path and path.stat()
    except OSError as error:
        return {"unavailable": f"{blame}: {error.strerror}"}
    return dict(_find_again(tool, path, state and (state.st_mtime_ns, state.st_size)))


@functools.lru_cache
def _find_again(tool: str, path: Path | None, state: tuple[int, int] | None) -> dict[str, str]:
    return _finish_version(_start_version(tool))


def _start_version(tool: str) -> tuple[subprocess.Popen | None, str, str]:
    """Begin `tool --version`: (process or None, path, what to blame)."""
    path, blame = _tool_path(tool)
    if path is None:
        return None, "", blame
    try:
        process = subprocess.Popen([path, "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
    except OSError as error:
        return None, str(path), f"{blame}: {error.strerror}"
    return process, str(path), blame


def _finish_version(started: tuple[subprocess.Popen | None, str, str]) -> dict[str, str]:
    process, path, blame = started
    if process is None:
        return {"unavailable": blame}
    text = process.communicate()[0].decode("utf-8", "replace")
    version = re.search(r"\bV(\d+\.\d+\.\d+)", text)
    if process.returncode != 0 or version is None:
        return {"unavailable": f"{blame}: --version gave no version (exit {process.returncode})"}
    return {"version": version.group(1), "path": path}


@functools.lru_cache
def triton_version() -> str:
    return require_triton().__version__
