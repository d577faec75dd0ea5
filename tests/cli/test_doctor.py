"""doctor and data-init."""

import json
import os

import pytest
from conftest import SMOKE


def test_doctor_on_the_simulated_gpu_passes_every_check(hebe):
    code, out = hebe.json("doctor", "--device", "sim")
    assert code == 0 and out["can_measure"] and out["simulated"]
    assert all(c["passed"] for c in out["checks"])
    names = {f["name"]: f for f in out["facts"]}
    assert names["toolchain.triton"]["value"] == "3.6.0"
    assert {"energy counter", "power samples", "MIG is off", "GPU is free", "tool chain compiles"} <= {c["name"] for c in out["checks"]}
    assert list(hebe.tmp.iterdir()) == [] and not hebe.root.exists()  # it looks, it does not write


def test_doctor_without_a_gpu_exits_3_and_names_the_fix(hebe):
    code, out = hebe.json("doctor")
    if any(f["name"] == "device.uuid" for f in out["facts"]):
        pytest.skip("this machine has a GPU")
    assert code == 3
    (gpu,) = [c for c in out["checks"] if c["name"] == "GPU"]
    assert not gpu["passed"] and "driver" in gpu["fix"] and "--device sim" in gpu["fix"]


@pytest.mark.parametrize("fault, check", [("counter_frozen", "energy counter"), ("samples_empty", "power samples"), ("mig", "MIG is off"),
                                          ("foreign_process", "GPU is free"), ("thermal_throttle", "not throttled")])
def test_doctor_names_what_is_wrong_and_how_to_fix_it(hebe, fault, check):
    code, out = hebe.json("doctor", "--device", "sim", "--sim-fault", fault)
    assert code == 3
    failed = [c for c in out["checks"] if not c["passed"]]
    assert [c["name"] for c in failed] == [check] and failed[0]["fix"]


def test_doctor_does_not_call_a_root_ready_that_cannot_be_written(hebe, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    for root in (file, file / "below", "/proc/nothing"):
        done = hebe("doctor", "--device", "sim", "--data-root", str(root), "--json")
        (check,) = [c for c in json.loads(done.stdout)["checks"] if c["name"] == "data root"]
        assert done.returncode == 3 and not check["passed"], root
        assert str(root).rsplit("/", 1)[0] in json.dumps(check) and check["fix"], check
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(".hebe")) == []


def test_an_empty_data_root_is_a_usage_error_everywhere(hebe):
    for command in (("doctor", "--device", "sim"), ("queue-status",), ("run-verify", "--all"), ("run-aa", "--device", "sim")):
        done = hebe("--data-root", "", *command)
        assert done.returncode == 2 and "--data-root" in done.stderr and "bug" not in done.stderr, done.stderr


def test_doctor_without_triton_names_it(hebe, tmp_path):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 9\n")
    broken.chmod(0o755)
    hebe.env["HEBE_PYTHON"] = str(broken)
    code, out = hebe.json("doctor", "--device", "sim")
    failed = [c for c in out["checks"] if not c["passed"]]
    assert code == 3 and "code 9" in failed[0]["detail"] and "HEBE_PYTHON" in failed[0]["fix"]


def test_an_unknown_device_lists_what_there_is(hebe):
    done = hebe("run-aa", "--device", "GPU-does-not-exist")
    assert done.returncode == 3 and not hebe.root.exists()


def test_data_init_is_safe_to_repeat(hebe):
    assert hebe("data-init").returncode == 0
    before = sorted(os.listdir(hebe.root))
    assert hebe("data-init").returncode == 0
    assert sorted(os.listdir(hebe.root)) == before and "runs" in before and "leases" in before


def test_version_and_help(hebe):
    assert hebe("--version").stdout.startswith("hebe 0.1.0")
    text = hebe("--help").stdout
    for command in ("doctor", "data-init", "run-aa", "run-verify"):
        assert command in text


def test_a_relative_data_root_is_taken_from_where_the_user_stands(hebe, tmp_path):
    done = hebe(*SMOKE, "--data-root", "here", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "here/runs") in done.stdout
