"""What hello says about the installed tools, and what happens without them."""

import re
import time

from conftest import TARGET, VECTOR_ADD


def test_hello_reports_versions_and_is_fast(fresh_worker):
    begin = time.monotonic()
    found = fresh_worker().ask("hello")
    assert time.monotonic() - begin < 2.0
    for tool in ("ptxas", "ptxas_blackwell", "nvdisasm", "cuobjdump"):
        assert re.fullmatch(r"\d+\.\d+\.\d+", found[tool]["version"])
        assert found[tool]["path"].startswith("/")
    assert found["triton"]["version"] and found["numpy"]["version"] and found["python"]["executable"]


def test_hello_does_not_import_triton(fresh_worker, tmp_path):
    """A package that fails on import shows it: hello works, the compile says why it cannot."""
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").write_text("raise ImportError('broken on purpose')")
    worker = fresh_worker(PYTHONPATH=f"{tmp_path}:{VECTOR_ADD.parents[1] / 'python'}")
    assert "version" in worker.ask("hello")["triton"]
    error = worker.fail("compile", case=str(VECTOR_ADD), target=TARGET)
    assert error["kind"] == "toolchain_unavailable" and "broken on purpose" in error["message"]


def test_without_site_packages_everything_is_unavailable_with_a_reason(fresh_worker):
    worker = fresh_worker("-S")
    found = worker.ask("hello")
    for component in ("triton", "numpy", "ptxas", "nvdisasm", "cuobjdump"):
        assert set(found[component]) == {"unavailable"} and found[component]["unavailable"]
    assert found["python"]["version"]
    for method in ("compile", "describe", "reference"):
        extra = {"compile": {"target": TARGET}, "describe": {}, "reference": {"inputs": {}, "outputs": {}}}[method]
        error = worker.fail(method, case=str(VECTOR_ADD), **extra)
        assert error["kind"] == "toolchain_unavailable" and "Triton" in error["message"]


def test_another_ptxas_is_honoured_and_a_broken_one_is_not_replaced_in_silence(fresh_worker, tmp_path):
    fake = tmp_path / "ptxas"
    fake.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 99.1, V99.1.23'\n")
    fake.chmod(0o755)
    assert fresh_worker(TRITON_PTXAS_PATH=str(fake)).ask("hello")["ptxas"] == {"version": "99.1.23", "path": str(fake)}

    worker = fresh_worker(TRITON_PTXAS_PATH="/nowhere/ptxas")
    assert "TRITON_PTXAS_PATH=/nowhere/ptxas" in worker.ask("hello")["ptxas"]["unavailable"]
    error = worker.fail("compile", case=str(VECTOR_ADD), target=TARGET)
    assert error["kind"] == "toolchain_unavailable" and "/nowhere/ptxas" in error["message"]


def test_without_nvdisasm_the_sass_is_left_out_and_the_record_says_why(fresh_worker):
    result = fresh_worker(TRITON_NVDISASM_PATH="/nowhere/nvdisasm").compile(VECTOR_ADD)
    assert "sass" not in result["artifacts"] and "cubin" in result["artifacts"]
    assert "/nowhere/nvdisasm" in result["provenance"]["nvdisasm"]["unavailable"]
