"""Importing the package costs nothing and touches nothing; what it offers is there when it is asked for."""

from __future__ import annotations

import json

import hebe
import pytest
from package import NO_LIBRARY, needs_library, no_library, python

HEAVY = ("numpy", "torch", "triton", "pyarrow", "pandas", "ctypes", "json", "subprocess")


def test_an_import_loads_no_heavy_package_and_no_library():
    done = python("import sys; before = set(sys.modules); import hebe, json\n"
                  "maps = open('/proc/self/maps').read()\n"
                  "print(json.dumps([sorted(set(sys.modules) - before - {'json'}), 'libhebe' in maps, 'libcuda' in maps]))")
    assert done.returncode == 0, done.stderr
    modules, library, driver = json.loads(done.stdout)
    assert not library and not driver
    assert not [m for m in modules if m.split(".")[0] in HEAVY and not m.startswith("json")]
    assert [m for m in modules if m.startswith("hebe")] == ["hebe"]


def test_every_public_name_is_there_and_no_other():
    for name in hebe.__all__:
        assert getattr(hebe, name) is not None
    with pytest.raises(AttributeError, match="joules"):
        hebe.joules


def test_what_measures_imports_neither_torch_nor_pyarrow_nor_numpy():
    done = python("import sys, hebe; hebe.measure; hebe.autotune; hebe.run; hebe.dispatch; hebe.sim.work\n"
                  "print([m for m in ('numpy', 'torch', 'triton', 'pyarrow', 'pandas') if m in sys.modules])")
    assert done.stdout.strip() == "[]", done.stderr


@needs_library
def test_the_library_exports_only_its_c_functions():
    import shutil
    import subprocess

    from hebe.library import file_of
    assert shutil.which("nm"), "scripts/install --tests installs it (binutils)"
    listed = subprocess.run(["nm", "-D", "--defined-only", str(file_of("libhebe.so"))], capture_output=True, text=True, check=True)
    names = {line.split()[-1] for line in listed.stdout.splitlines()}
    assert names and all(name.startswith("hebe_") for name in names)
    assert {"hebe_measure", "hebe_compare", "hebe_run", "hebe_status", "hebe_dispatch_find"} <= names


def test_a_library_that_is_not_there_is_named_with_what_to_do(tmp_path):
    done = python("import hebe\n"
                  "try: hebe.status(device='sim')\n"
                  "except hebe.Refused as r: print(r.code, r.exit, r.where, '|', r.next)", HEBE_LIBRARY_DIR=str(tmp_path))
    assert done.stdout.startswith(f"toolchain_unavailable 3 {tmp_path} | install"), done.stderr


@pytest.mark.parametrize("kind", NO_LIBRARY)
def test_a_library_that_cannot_be_loaded_is_a_refusal_that_names_it(tmp_path, kind):
    folder = no_library(tmp_path / "libraries", kind)
    done = python("import hebe\n"
                  "for _ in range(2):\n"
                  "    try: hebe.status(device='sim')\n"
                  "    except hebe.Refused as r: print(r.code, r.exit, r.where.removesuffix('/libhebe.so'), 'scripts/wheel' in r.next,\n"
                  "                                    'pip install pyarrow' in r.next, len(r.what) < 300)", HEBE_LIBRARY_DIR=folder)
    assert done.stdout == f"toolchain_unavailable 3 {folder} True False True\n" * 2, done.stderr


@needs_library
def test_a_pyarrow_whose_arrow_cannot_be_loaded_is_no_reason_to_crash(tmp_path):
    """Where the library finds another Arrow it is used; where not, pyarrow is named."""
    for name in ("__init__.py", "libarrow.so.2500", "libparquet.so.2500"):
        (tmp_path / "pyarrow").mkdir(exist_ok=True)
        (tmp_path / "pyarrow" / name).write_text("")
    done = python(f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import hebe\n"
                  "try: print(hebe.status(device='sim').provenance)\n"
                  "except hebe.Refused as r: print(r.code, 'pyarrow' in r.next)", LD_LIBRARY_PATH="")
    assert done.stdout in ("simulated\n", "toolchain_unavailable True\n"), done.stderr


@needs_library
def test_the_librarys_folder_may_be_the_one_that_we_are_in():
    from hebe.library import file_of
    done = python(f"import os, hebe; os.chdir({str(file_of('libhebe.so').parent)!r}); print(hebe.status(device='sim').provenance)",
                  HEBE_LIBRARY_DIR=".")
    assert done.stdout == "simulated\n", done.stderr


@needs_library
def test_a_refusal_survives_pickling():
    import pickle
    with pytest.raises(hebe.Refused) as caught:
        hebe.measure(hebe.sim.work(seconds=1e-3, watts=100), device="sim", tier="no-such-tier")
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.dict() == caught.value.dict() and again.code == "bad_argument" and again.exit == 2


def test_the_examples_kernel_compiles_and_its_program_is_refused_without_a_gpu(tmp_path, monkeypatch):
    import sys

    import triton
    from package import ROOT
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(ROOT / "examples"), *sys.path])
    import autotune_softmax
    kernel = autotune_softmax.kernel_of("energy")
    kinds = {"out_ptr": "*fp16", "in_ptr": "*fp16", "rows": "i32", "columns": "i32", "BLOCK": "constexpr", "ROWS": "constexpr"}
    made = triton.compile(ASTSource(fn=kernel.fn, signature=kinds, constexprs={"BLOCK": 1024, "ROWS": 2}),
                          target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
    assert made.asm["cubin"]
    done = python(f"import runpy; runpy.run_path({str(ROOT / 'examples/autotune_softmax.py')!r}, run_name='__main__')",
                  CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 3 and done.stdout == "" and "no_device" in done.stderr
