"""What the tests of the Python package share: quick protocols on the simulated GPU, and where nothing may be written."""

from __future__ import annotations

import _ctypes
import copy
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: A sanitized library cannot be loaded into a Python that is not.
needs_library = pytest.mark.skipif(bool(os.environ.get("HEBE_LIBRARY_SANITIZED")), reason="the library is sanitized, Python is not")

#: As short as the smoke tier allows.
QUICK = {"device": "sim", "pairs": 2, "window": 0.5, "warm_up": 1.0, "idle": 0.0}
QUICK_PAIRS = {"device": "sim", "pairs": 6, "window": 0.5, "warm_up": 1.0}

BOARD = "NVIDIA H200"
_AMOUNT = {"value": 1000, "low": 990.5, "high": 1010.25}
_ROW = {"operation": "matmul", "shape": "m<=256,n=4096", "dtype": "bf16", "board": BOARD,
        "implementation": {"name": "cublaslt", "configuration": {"algorithm": 3}, "artifact_sha256": None},
        "energy_nj": _AMOUNT, "time_ns": _AMOUNT, "meter": {"name": "nvml.samples.total_power", "status": "primary"},
        "provenance": "measured", "idle": "context_open",
        "platform": {"board_uuid": None, "driver": "580", "os": "Debian 12", "hebe": "0.1.0", "triton": None},
        "date": "2026-11-30T04:20:00Z", "evidence": {"study": "s", "runs": []}, "baseline": None, "verdict": None, "downgraded": []}


def profile_in(folder: Path, name: str = "triton") -> Path:
    """A profile of two rows: m up to 256, and m of 1 by the implementation `name`."""
    decode = copy.deepcopy(_ROW)
    decode.update(shape="m<=1,n=4096", implementation={"name": name, "configuration": {}, "artifact_sha256": "a" * 64})
    path = folder / "profile.json"
    path.write_text(json.dumps({"schema": "hebe.profile/1", "rows": [_ROW, decode]}))
    return path


#: What may lie where a library should, but for one that the loader itself crashes on.
_BYTES = {"empty": b"", "text": b"no library\n" * 100, "another machine's": b"\x7fELF\x02\x02" + b"\0" * 500}
NO_LIBRARY = (*_BYTES, "another library", "a name that no folder has")


def no_library(folder: Path, kind: str) -> str:
    """Files of the libraries' names that are none of them, in a folder of their own; what HEBE_LIBRARY_DIR is then."""
    if kind == "a name that no folder has":
        return "x" * 5000
    folder.mkdir()
    for name in ("libhebe_dispatch.so", "libhebe.so"):
        if kind == "another library":
            shutil.copy(_ctypes.__file__, folder / name)
        else:
            (folder / name).write_bytes(_BYTES[kind])
    return str(folder)


def python(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter that has the package, and this test's environment but for `environment`."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), **environment}
    return subprocess.run([sys.executable, "-B", "-c", code, *arguments], capture_output=True, text=True, timeout=200, env=env)


def everything_below(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*"))
