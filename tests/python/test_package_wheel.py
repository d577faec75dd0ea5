"""The wheel: the same bytes twice, installed with no network into an interpreter that has nothing else, and used there."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from package import ROOT, needs_library

pytestmark = needs_library

USE = """
import sys, hebe, os
assert hebe.__file__.startswith(sys.prefix), hebe.__file__
joules = hebe.do_bench_energy(hebe.sim.work(seconds=1e-3, watts=200), device="sim", pairs=2, window=0.5, warm_up=1.0)
print(repr(joules))
assert not os.path.exists(os.environ["HEBE_DATA_ROOT"])
import hebe.case, hebe.worker
"""


#: In the program's place: a portable build is not part of the tests.
PROGRAM = """#!/bin/sh
echo "program: $@"; echo "HOME_=$HEBE_HOME"
"""


def build(folder: Path) -> Path:
    from hebe.library import file_of
    folder.mkdir()
    program = folder.parent / f"program-{folder.name}"
    program.write_text(PROGRAM)
    done = subprocess.run([str(ROOT / "scripts" / "wheel"), "release", str(folder)], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "HEBE_WHEEL_LIBRARIES": str(file_of("libhebe.so").parent),
                               "HEBE_WHEEL_PROGRAM": str(program)})
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.iterdir()
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build(tmp_path_factory.mktemp("wheel") / "one")


def test_equal_sources_give_equal_bytes(wheel, tmp_path):
    assert build(tmp_path / "two").read_bytes() == wheel.read_bytes()


def test_it_holds_the_package_its_types_its_libraries_and_nothing_of_this_machine(wheel):
    assert wheel.name.startswith("hebe-0.1.0-py3-none-") and "linux" in wheel.name
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        assert {"hebe/__init__.py", "hebe/py.typed", "hebe/libhebe.so", "hebe/libhebe_dispatch.so", "hebe/worker/__main__.py",
                "hebe/bin/hebe", "hebe/__main__.py", "hebe/studies/tune-matmul.toml", "hebe/kernels/vector_add.py",
                "hebe-0.1.0.dist-info/entry_points.txt",
                "hebe-0.1.0.dist-info/METADATA", "hebe-0.1.0.dist-info/RECORD"} <= set(names)
        assert not [name for name in names if "__pycache__" in name or name.startswith("/")]
        assert not [name for name in names if str(ROOT).encode() in opened.read(name)]
        text = opened.read("hebe-0.1.0.dist-info/METADATA").decode().split("\n\n")[0]
        assert "Requires-Dist: pyarrow" in text and "torch" not in text and "://" not in text


def test_it_installs_without_a_network_and_measures_on_the_simulated_gpu(wheel, tmp_path):
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True, timeout=120)
    python = venv / "bin" / "python"
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "HEBE", "PIP"))}
    subprocess.run([str(python), "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--disable-pip-version-check", str(wheel)],
                   check=True, env=clean, timeout=120)
    done = subprocess.run([str(python), "-c", USE], capture_output=True, text=True, cwd=tmp_path, timeout=120,
                          env={**clean, "HEBE_DATA_ROOT": str(tmp_path / "root"),
                               "LD_LIBRARY_PATH": arrow_folder()})
    assert done.returncode == 0 and done.stdout.strip().endswith("J (simulated)"), done.stderr


def test_the_installed_hebe_is_the_program_of_the_wheel(wheel, tmp_path):
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True, timeout=120)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "HEBE", "PIP"))}
    subprocess.run([str(venv / "bin" / "python"), "-m", "pip", "install", "-q", "--no-index", "--no-deps",
                    "--disable-pip-version-check", str(wheel)], check=True, env=clean, timeout=120)
    (package,) = venv.glob("lib/python3*/site-packages/hebe")
    for command in ([str(venv / "bin" / "hebe")], [str(venv / "bin" / "python"), "-m", "hebe"]):
        without = subprocess.run([*command, "--version"], capture_output=True, text=True, cwd=tmp_path, env=clean, timeout=60)
        assert without.returncode == 3 and "pip install pyarrow" in without.stderr
    made = package.parent / "pyarrow"
    made.mkdir()
    (made / "__init__.py").write_text("")
    (made / "libarrow.so.1").write_text("")
    for command in ([str(venv / "bin" / "hebe")], [str(venv / "bin" / "python"), "-m", "hebe"]):
        done = subprocess.run([*command, "probe-meter", "--json"], capture_output=True, text=True, cwd=tmp_path, env=clean, timeout=60)
        assert done.stdout.splitlines() == ["program: probe-meter --json", f"HOME_={package}"], done.stderr


def test_a_program_that_would_look_for_its_cases_in_this_checkout_is_refused(tmp_path):
    from hebe.library import file_of
    program = tmp_path / "hebe"
    program.write_text(f"#!/bin/sh\ncd {ROOT}\n")
    for file, words in ((program, "which no other machine has"), (tmp_path / "none", "is not there")):
        done = subprocess.run([str(ROOT / "scripts" / "wheel"), "release", str(tmp_path / "out")], capture_output=True, text=True, timeout=120,
                              env={**os.environ, "HEBE_WHEEL_LIBRARIES": str(file_of("libhebe.so").parent), "HEBE_WHEEL_PROGRAM": str(file)})
        assert done.returncode == 1 and words in done.stderr and not list((tmp_path / "out").glob("*.whl"))


def arrow_folder() -> str:
    """Of this interpreter's pyarrow, for a library that was built to find it in the user's: that venv has none."""
    import importlib.util
    return str(Path(importlib.util.find_spec("pyarrow").origin).parent)
