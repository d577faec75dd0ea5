"""What a compile gives back: the launch, the artifacts, the provenance, the same bytes every time."""

import base64
import hashlib
import os
import shutil
import signal

import pytest
from conftest import ROOT, TARGET, VECTOR_ADD


def buffer(name, role, seed=None):
    init = seed and {"kind": "uniform", "low": -1.0, "high": 1.0, "seed": seed}
    return {"name": name, "kind": "buffer", "dtype": "fp32", "shape": [1000], "role": role, "init": init}


def test_the_launch_of_vector_add(worker):
    result = worker.compile(VECTOR_ADD, parameters={"n": "1000", "block": 256, "num_warps": 2})
    assert result["launch"] == {
        "schema": "hebe.launch/1",
        "name": "vector_add",
        "parameters": {"n": 1000, "block": 256, "num_warps": 2},
        "target": TARGET,
        "entry": "add_kernel",
        "grid": [4, 1, 1],
        "num_warps": 2,
        "num_ctas": 1,
        "shared_bytes": 0,
        "cooperative": False,
        "pdl": False,
        "global_scratch": {"bytes": 0, "align": 1},
        "profile_scratch": {"bytes": 0, "align": 1},
        "arguments": [
            buffer("x_ptr", "in", 1), buffer("y_ptr", "in", 2), buffer("out_ptr", "out"),
            {"name": "n", "kind": "scalar", "dtype": "i32", "value": 1000},
        ],
        "tolerance": {"atol": 0.0, "rtol": 0.0},
        "oracle": {"kind": "case-reference"},
        "work": {"bytes_read": 8000, "bytes_written": 4000, "operations": {"fp32_add": 1000}},
    }


def test_artifacts_are_all_there_and_are_what_they_say(worker):
    artifacts = worker.compile(VECTOR_ADD)["artifacts"]
    assert set(artifacts) == {"source", "ttir", "ttgir", "llir", "ptx", "cubin", "sass"}
    text = {name: a["data"] for name, a in artifacts.items() if a["encoding"] == "utf-8"}
    assert text["source"] == VECTOR_ADD.read_text()
    assert "tt.func public @add_kernel" in text["ttir"]
    assert '"ttg.num-warps" = 4' in text["ttgir"]
    assert "define ptx_kernel void @add_kernel" in text["llir"]
    assert ".visible .entry add_kernel" in text["ptx"] and ".target sm_90a" in text["ptx"]
    assert "LDG" in text["sass"]
    assert artifacts["cubin"]["encoding"] == "base64"
    assert base64.b64decode(artifacts["cubin"]["data"])[:4] == b"\x7fELF"


def test_provenance_says_what_the_launch_does_not(worker):
    result = worker.compile(VECTOR_ADD)
    provenance = result["provenance"]
    assert provenance["source_sha256"] == hashlib.sha256(VECTOR_ADD.read_bytes()).hexdigest()
    assert provenance["source_name"] == "vector_add.py"
    assert provenance["signature"] == {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32",
                                       "BLOCK": "constexpr"}
    assert provenance["constants"] == {"BLOCK": 1024}
    assert provenance["attributes"]["n"] == [["tt.divisibility", 16]]
    assert provenance["options"]["num_stages"] == 3
    assert provenance["environment"]["TRITON_DISABLE_LINE_INFO"] == "true"
    assert provenance["ptxas"] == worker.ask("hello")["ptxas"]["version"]


def test_two_checkouts_two_processes_two_file_times_one_cubin(fresh_worker, tmp_path):
    results = []
    for name, time in (("first", 1_000_000_000), ("second/deeper", 1_500_000_000)):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        shutil.copy(VECTOR_ADD, folder)
        text = (folder / "vector_add.py").read_text().replace("    tl.store(out_ptr + offsets, x + y",
                                                              "    tl.store(out_ptr + offsets, add(x, y)")
        (folder / "vector_add.py").write_text("from adding import add\n" + text)
        (folder / "adding.py").write_text("import triton\n\n@triton.jit\ndef add(x, y):\n    return x + y\n")
        for file in folder.iterdir():
            os.utime(file, (time, time))
        results.append(fresh_worker(PYTHONHASHSEED=str(time)).compile(folder / "vector_add.py"))
        assert str(folder) not in str(results[-1])
    assert results[0] == results[1]


def test_no_artifact_holds_a_path_of_this_machine(worker):
    result = worker.compile(VECTOR_ADD)
    cubin = base64.b64decode(result["artifacts"].pop("cubin")["data"])
    for path in (str(ROOT), "/tmp/", "site-packages"):
        assert path not in str(result) and path.encode() not in cubin


def test_meddling_environment_variables_do_not_change_the_kernel(fresh_worker, worker, tmp_path):
    disturbed = fresh_worker(TRITON_STORE_BINARY_ONLY="1", TRITON_INTERPRET="1", TRITON_KERNEL_OVERRIDE="1",
                             TRITON_OVERRIDE_ARCH="sm80", TRITON_DISABLE_LINE_INFO="0", USE_IR_LOC="ttgir",
                             TRITON_CACHE_DIR=str(tmp_path / "untouched"))
    assert disturbed.compile(VECTOR_ADD) == worker.compile(VECTOR_ADD)
    assert not (tmp_path / "untouched").exists()


def test_a_cache_folder_is_used_again_by_the_next_process(fresh_worker, tmp_path):
    cache = tmp_path / "cache"
    first = fresh_worker().compile(VECTOR_ADD, cache_dir=str(cache))
    files = {path: path.stat().st_mtime_ns for path in cache.rglob("*.cubin")}
    assert len(files) == 1
    assert fresh_worker().compile(VECTOR_ADD, cache_dir=str(cache)) == first
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*.cubin")} == files


def test_a_changed_global_behind_a_constexpr_function_is_not_served_stale(fresh_worker, write_case, tmp_path):
    """Triton's own cache key does not see it, neither in one process nor from one to the next."""
    settings = tmp_path / "settings_module.py"
    case = write_case(kernel="x = x + bias()", top="""
        import settings_module

        @triton.constexpr_function
        def bias():
            return settings_module.BIAS
    """)
    worker = fresh_worker()
    for one, number in ((worker, "1.0"), (worker, "2.0"), (fresh_worker(), "4.0")):
        settings.write_text(f"BIAS = {number}\n")
        result = one.compile(case, cache_dir=str(tmp_path / "cache"))
        assert f"dense<{number}00000e+00>" in result["artifacts"]["ttir"]["data"]


@pytest.mark.parametrize("end", ["stdin closed", "SIGTERM", "SIGHUP"])
def test_the_private_cache_is_gone_after_the_worker(fresh_worker, tmp_path, end):
    worker = fresh_worker(TMPDIR=str(tmp_path))
    worker.compile(VECTOR_ADD)
    assert list(tmp_path.glob("hebe-worker-*"))
    if end.startswith("SIG"):
        number = getattr(signal, end)
        worker.process.send_signal(number)
        assert worker.process.wait(timeout=20) == 128 + number
    else:
        assert worker.end()[0] == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arch, target", [(80, "sm_80"), (100, "sm_100a")])
def test_other_targets_compile_too(worker, arch, target):
    result = worker.ask("compile", case=str(VECTOR_ADD), target={"backend": "cuda", "arch": arch})
    assert f".target {target}" in result["artifacts"]["ptx"]["data"]
    assert result["launch"]["target"] == {"backend": "cuda", "arch": arch, "warp_size": 32}


def test_an_autotuned_kernel_is_unwrapped(worker, write_case):
    case = write_case()
    case.write_text(case.read_text().replace(
        "@triton.jit", "@triton.autotune([triton.Config({}, num_warps=8)], key=[])\n"
        "@triton.heuristics({'BLOCK': lambda arguments: 64})\n@triton.jit"))
    result = worker.compile(case)
    assert result["launch"]["num_warps"] == 4 and result["provenance"]["constants"] == {"BLOCK": 128}
