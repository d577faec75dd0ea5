"""What the tests of the Python package share: quick protocols on the simulated GPU, and where nothing may be written."""

from __future__ import annotations

import os
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


def python(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter that has the package, and this test's environment but for `environment`."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), **environment}
    return subprocess.run([sys.executable, "-B", "-c", code, *arguments], capture_output=True, text=True, timeout=200, env=env)


def everything_below(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*"))
