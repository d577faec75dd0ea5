"""The launcher of the program: where it looks, what it gives the program, and what it says where something is missing."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from hebe import program
from hebe.refused import Refused
from package import ROOT

PROGRAM = """#!/bin/sh
echo "$0"; for one in "$@"; do echo "[$one]"; done
echo "LD=$LD_LIBRARY_PATH"; echo "PYTHON=$HEBE_PYTHON"; echo "HOME_=$HEBE_HOME"; exit 7
"""


@pytest.fixture
def stand_in(tmp_path):
    """A program in the folder that HEBE_LIBRARY_DIR names."""
    file = tmp_path / "libraries" / "hebe"
    file.parent.mkdir()
    file.write_text(PROGRAM)
    file.chmod(0o755)
    return file


def start(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("HEBE") and k != "LD_LIBRARY_PATH"}
    return subprocess.run([sys.executable, "-B", "-m", "hebe", *arguments], capture_output=True, text=True, timeout=60,
                          env={**clean, "PYTHONPATH": str(ROOT / "python"), **environment})


def test_it_becomes_the_program_with_its_arguments_and_exit_code(stand_in):
    done = start("run-aa", "--case", "a b", "", HEBE_LIBRARY_DIR=str(stand_in.parent))
    lines = done.stdout.splitlines()
    assert done.returncode == 7 and lines[1:5] == ["[run-aa]", "[--case]", "[a b]", "[]"], done.stderr
    assert f"PYTHON={sys.executable}" in lines


def test_arrow_is_pyarrows_and_what_the_user_has_set_stays(stand_in):
    folder = Path(sysconfig.get_paths()["purelib"]) / "pyarrow"
    done = start(HEBE_LIBRARY_DIR=str(stand_in.parent), LD_LIBRARY_PATH="/mine", HEBE_PYTHON="/my/python", HEBE_HOME="/my/home")
    lines = done.stdout.splitlines()
    assert f"LD={folder}:/mine" in lines and "PYTHON=/my/python" in lines and "HOME_=/my/home" in lines
    assert f"LD={folder}" in start(HEBE_LIBRARY_DIR=str(stand_in.parent)).stdout.splitlines()


def test_without_the_program_it_says_so_and_what_to_do(tmp_path):
    done = start("--version", HEBE_LIBRARY_DIR=str(tmp_path))
    assert done.returncode == 3 and not done.stdout
    for words in ("hebe: toolchain_unavailable: the program hebe is not in this installation", str(tmp_path / "hebe"), "scripts/wheel"):
        assert words in done.stderr


def test_a_folder_that_cannot_be_looked_into_has_no_program():
    done = start("--version", HEBE_LIBRARY_DIR="x" * 5000)
    assert done.returncode == 3 and "toolchain_unavailable" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("mode, content", [(0o644, PROGRAM), (0o755, "\x7fELF of another machine")])
def test_a_program_that_does_not_start_is_named(tmp_path, mode, content):
    file = tmp_path / "hebe"
    file.write_text(content)
    file.chmod(mode)
    done = start("--version", HEBE_LIBRARY_DIR=str(tmp_path))
    assert done.returncode == 3 and "the program cannot be started" in done.stderr and str(file) in done.stderr
    assert "Traceback" not in done.stderr


def test_the_packages_own_comes_before_a_checkouts(monkeypatch):
    monkeypatch.delenv("HEBE_LIBRARY_DIR", raising=False)
    package = ROOT / "python" / "hebe"
    assert program.places() == [package / "bin" / "hebe", ROOT / "build" / "release" / "hebe", ROOT / "build" / "portable" / "hebe"]


def test_the_packages_own_finds_cases_in_the_package_and_needs_pyarrow(monkeypatch):
    own = program.places()[0] if "HEBE_LIBRARY_DIR" not in os.environ else ROOT / "python" / "hebe" / "bin" / "hebe"
    given = {"HOME": "/home/one"}
    prepared = program.environment(own, given)
    assert prepared["HEBE_HOME"] == str(ROOT / "python" / "hebe") and given == {"HOME": "/home/one"}
    assert "HEBE_HOME" not in program.environment(ROOT / "build" / "release" / "hebe", given)
    monkeypatch.setattr(program, "arrow_folder", lambda: None)
    with pytest.raises(Refused, match="pyarrow") as refused:
        program.environment(own, given)
    assert refused.value.exit == 3 and "pip install pyarrow==25.0" in refused.value.next
    assert "LD_LIBRARY_PATH" not in program.environment(ROOT / "build" / "release" / "hebe", given)


def test_the_launcher_loads_no_heavy_package():
    done = subprocess.run([sys.executable, "-B", "-c", "import sys, hebe.program; hebe.program.environment(hebe.program.places()[0], {});"
                           "print([m for m in ('pyarrow', 'numpy', 'triton', 'torch') if m in sys.modules])"],
                          capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "python")}, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
