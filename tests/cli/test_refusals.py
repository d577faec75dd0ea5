"""Bad input and faults: the exit code, the words a user needs, and nothing written."""

import fcntl
import json
import os
import signal
import subprocess
import time

import pytest
from conftest import BINARY, SMOKE

CONFIRM = ["run-aa", "--device", "sim"]


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (["run-aa", "--pairs", "3"], 2, ["confirmation-v1 needs at least 12 pairs", "3 was asked for"]),
        (["run-aa", "--batch-seconds", "1"], 2, ["at least 5 s per window"]),
        (["run-aa", "--warm-up-seconds", "2"], 2, ["at least 30 s of warm-up"]),
        (["run-aa", "--batch-seconds", "nan"], 2, ["nan s per window is no finite number", "a number from 5 on"]),
        (["run-aa", "--batch-seconds", "inf"], 2, ["inf s per window is no finite number"]),
        (["tune", "tune-softmax", "--device", "sim", "--batch-seconds", "inf"], 2, ["inf s per window is no finite number"]),
        (["run-aa", "--pairs", "1000000"], 2, ["limit of 10000"]),
        (["run-aa", "--pairs", "many"], 2, ["--pairs"]),
        (["run-aa", "--seed", "-1"], 2, ["--seed"]),
        (["run-aa", "--seed", "18446744073709551616"], 2, ["--seed", "2^64 - 1"]),
        (["study", "layernorm-retention", "--seed", "18446744073709551616"], 2, ["--seed", "2^64 - 1"]),
        (["probe-meter", "--seed", "1.5"], 2, ["--seed", "whole number"]),
        (["run-aa", "--energy-margin", "0"], 2, ["--energy-margin"]),
        (["run-aa", "--protocol-tier", "gold"], 2, ["gold", "smoke-v1 or confirmation-v1"]),
        (["run-aa", "--case", "vector-sub"], 2, ["no case", "vector-add"]),
        (["run-aa", "--set", "m=3"], 2, ["m", "n"]),
        (["run-aa", "--set", "n=many"], 2, ["n", "many"]),
        (["run-aa", "--set", "n"], 2, ["NAME=VALUE"]),
        (["run-aa", "--option", "num_warp=4"], 2, ["num_warp", "num_warps"]),
        (["run-aa", "--option", "num_warps=3"], 2, ["num_warps"]),
        (["run-aa", "--sim-fault", "sloth"], 2, ["unknown fault", "samples_gap"]),
        (["run-aa", "--sim-fault", "samples_gap@soon"], 2, ["soon"]),
        (["run-bb"], 2, ["run-bb"]),
        ([], 2, []),
    ],
)
def test_usage_errors_exit_2_and_say_what_to_do(hebe, arguments, code, words):
    extra = ["--device", "sim"] if arguments[:1] == ["run-aa"] else []
    done = hebe(*arguments, *extra)
    assert done.returncode == code, done.stderr
    for word in words:
        assert word in done.stderr
    assert hebe.runs() == []


@pytest.mark.parametrize(
    "fault, code, words",
    [
        ("foreign_process", "gpu_busy", ["4242", "someone-elses-training"]),
        ("foreign_process@120", "gpu_busy", ["4242"]),
        ("mig", "mig_enabled", ["MIG"]),
        ("counter_frozen", "meter_frozen", ["energy counter stood at"]),
        ("counter_frozen@120", "meter_frozen", ["counter_frozen"]),
        ("counter_unsupported", "meter_unsupported", ["83", "Not Supported"]),
        ("samples_empty", "meter_empty", ["0 power samples"]),
        ("samples_empty@120", "meter_empty", []),
        ("samples_frozen@120", "meter_frozen", ["samples_frozen"]),
        ("samples_implausible", "meter_implausible", []),
        ("samples_unsupported", "meter_unsupported", ["nvmlDeviceGetSamples"]),
        ("temperature_unsupported", "meter_unsupported", ["temperature"]),
        ("meter_lies", "meter_disagreement", []),
        ("thermal_throttle@120", "throttled", ["thermal"]),
        ("power_brake@120", "throttled", []),
        ("ambient_rise@120", "not_stable", ["temperature"]),
        ("latency_jitter@120", "gate_failed", ["replay_cv"]),
        ("ecc_error@120", "device_error", ["ECC"]),
        ("nvml_lost@120", "device_error", ["lost"]),
        ("lease_removed@120", "lease_lost", []),
    ],
)
def test_an_unfit_environment_exits_3_and_records_nothing(hebe, fault, code, words):
    done = hebe(*CONFIRM, "--set", "n=4096", "--sim-fault", fault, "--json")
    refusal = json.loads(done.stdout)["refused"]
    assert (done.returncode, refusal["code"]) == (3, code), done.stderr
    for word in words:
        assert word in refusal["what"]
    assert refusal["not_written"]
    assert hebe.runs() == [] and hebe.unsealed() == []


@pytest.mark.parametrize("fault", ["samples_gap@120", "clock_jump@120", "counter_backwards@120", "counter_reset@120"])
def test_a_passing_fault_is_retried_and_every_attempt_is_stored_with_its_reason(hebe, fault):
    code, out = hebe.json(*CONFIRM, "--set", "n=4096", "--sim-fault", fault)
    assert code == 0 and len(out["analysis"]["pairs"]) == 12
    (run,) = hebe.runs()
    windows = [json.loads(line) for line in (run / "windows.jsonl").read_text().splitlines()][1:]
    rejected = [w for w in windows if not w["pair_accepted"]]
    assert len(windows) > 24 and rejected
    assert any(not g["passed"] for w in rejected for g in w["gates"])
    assert {w["attempt"] for w in windows} >= {1, 2}
    assert hebe("run-verify").returncode == 0


def test_a_wrong_kernel_is_not_measured(hebe):
    done = hebe(*CONFIRM, "--set", "n=4096", "--sim-fault", "wrong_output")
    assert done.returncode == 1
    assert "1 of 4096 elements are wrong" in done.stderr and hebe.runs() == []


def test_a_leased_gpu_is_refused_naming_the_holder(hebe):
    leases = hebe.root / "leases"
    leases.mkdir(parents=True)
    with open(leases / "SIM-00000000-0000-0000-0000-000000000001.lease", "w") as lease:
        fcntl.flock(lease, fcntl.LOCK_EX)
        lease.write(json.dumps({"pid": 4711, "host": "here", "since": "2026-01-01T00:00:00Z", "what": "run-aa vector_add"}))
        lease.flush()
        done = hebe(*SMOKE)
    assert done.returncode == 3
    for word in ("lease_held", "4711", "2026-01-01T00:00:00Z", "run-aa vector_add"):
        assert word in done.stderr
    assert hebe.runs() == []
    assert hebe(*SMOKE).returncode == 0  # the lock died with its holder, the file is still there


def test_of_two_runs_at_once_the_second_is_refused(hebe):
    first = hebe.start(*CONFIRM, "--pairs", "10000", "--set", "n=4096")
    lease = hebe.root / "leases/SIM-00000000-0000-0000-0000-000000000001.lease"
    try:
        wait_for(lambda: lease.exists() and lease.stat().st_size > 0)
        done = hebe(*SMOKE)
        assert done.returncode == 3 and str(first.pid) in done.stderr
    finally:
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=60)


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_exits_130_releases_the_lease_and_leaves_nothing_half_sealed(hebe, signal_number):
    run = hebe.start(*CONFIRM, "--pairs", "10000", "--set", "n=4096")
    wait_for(lambda: (hebe.root / "artifacts").is_dir() and len(list(hebe.root.glob("artifacts/*/*"))) >= 6)
    time.sleep(0.3)
    run.send_signal(signal_number)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 130, err
    assert "interrupted" in err
    assert hebe.runs() == [] and hebe.unsealed() == []
    assert hebe(*SMOKE).returncode == 0


def test_killed_at_any_moment_the_next_start_works(hebe):
    for delay in (0.05, 0.2, 0.5, 0.8, 1.0, 1.2):
        run = hebe.start(*SMOKE)
        time.sleep(delay)
        run.kill()
        run.communicate()
    done = hebe(*SMOKE)
    assert done.returncode == 0, done.stderr
    assert all(hebe("run-verify", str(r)).returncode == 0 for r in hebe.runs())


def test_a_half_written_run_is_reported_and_never_read(hebe):
    hebe(*SMOKE)
    (run,) = hebe.runs()
    half = run.with_name(".unsealed-20260101T000000Z-aa-0123456789abcdef-99")
    half.mkdir()
    (half / "plan.json").write_text("{")
    done = hebe(*SMOKE, "--seed", "2")
    assert done.returncode == 0 and half.name in done.stderr
    refused = hebe("run-verify", str(half))
    assert refused.returncode == 5 and "never sealed" in refused.stderr
    assert half.name in hebe("data-init").stdout


CASE_HEAD = "import triton\nimport triton.language as tl\nfrom hebe.case import *\n\n"


@pytest.mark.parametrize(
    "text, words",
    [
        ("def case(:\n    pass\n", ["bad.py:1"]),
        (CASE_HEAD + "def case():\n    raise ValueError('no such width')\n", ["no such width", "Traceback", "bad.py"]),
        (CASE_HEAD + "import no_such_module\n\ndef case():\n    pass\n", ["no_such_module"]),
        (CASE_HEAD + "import sys\n\ndef case():\n    sys.exit(7)\n", ["7"]),
        (CASE_HEAD + "import os\n\ndef case():\n    os.kill(os.getpid(), 9)\n", ["signal 9"]),
        (CASE_HEAD + "def other():\n    pass\n", ["case"]),
        ("", ["case"]),
    ],
)
def test_a_broken_case_file_is_an_error_with_its_place(hebe, tmp_path, text, words):
    file = tmp_path / "bad.py"
    file.write_text(text)
    done = hebe("run-aa", "--device", "sim", "--case", str(file))
    assert done.returncode in (2, 3), done.stderr
    for word in words:
        assert word in done.stderr
    assert hebe.runs() == []


def test_a_missing_python_is_named(hebe):
    hebe.env["HEBE_PYTHON"] = "/nowhere/python"
    done = hebe(*SMOKE)
    assert done.returncode == 3 and "/nowhere/python" in done.stderr and "No such file" in done.stderr


def can_mount():
    return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


@pytest.mark.skipif(not can_mount(), reason="needs root and mount namespaces")
@pytest.mark.parametrize("size", ["16k", "64k", "128k", "200k"])
def test_a_full_disk_refuses_and_leaves_no_run(hebe, size):
    script = (
        'ROOT="$1"; B="$2"; shift 2; mkdir -p "$ROOT"; mount -t tmpfs -o size=' + size + ' tmpfs "$ROOT"; '
        'set +e; "$B" "$@"; code=$?; find "$ROOT/runs" -mindepth 4 -maxdepth 4 >&2; exit $code'
    )
    done = subprocess.run(["unshare", "-m", "sh", "-ec", script, "sh", str(hebe.root), BINARY, *CONFIRM, "--set", "n=4096"],
                          capture_output=True, text=True, env=hebe.env, timeout=300)
    assert done.returncode == 3, done.stderr
    assert "no_space" in done.stderr and "--data-root" in done.stderr
    assert "-aa-" not in done.stderr.split("not written")[-1].splitlines()[-1], done.stderr


@pytest.mark.skipif(not can_mount(), reason="needs root and mount namespaces")
def test_a_read_only_data_root_refuses_before_anything_runs(hebe):
    script = 'ROOT="$1"; shift; mkdir -p "$ROOT"; mount -t tmpfs -o ro tmpfs "$ROOT"; exec "$@"'
    done = subprocess.run(["unshare", "-m", "sh", "-ec", script, "sh", str(hebe.root), BINARY, *SMOKE],
                          capture_output=True, text=True, env=hebe.env, timeout=300)
    assert done.returncode == 3 and "no_permission" in done.stderr and str(hebe.root) in done.stderr
    assert "warm-up" not in done.stderr


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def test_a_case_larger_than_any_memory_is_refused_before_its_inputs_are_written(hebe):
    done = hebe(*SMOKE[:-1], f"n={1 << 36}")
    assert done.returncode in (2, 3), done.stderr
    assert "bytes" in done.stderr and hebe.runs() == []
    assert list(hebe.tmp.iterdir()) == []


def test_a_message_that_cannot_be_written_does_not_lose_the_measurement(hebe):
    with open("/dev/full", "w") as full:
        done = subprocess.run([BINARY, *SMOKE], stdout=subprocess.PIPE, stderr=full, env=hebe.env, timeout=300)
    assert done.returncode == 0 and len(hebe.runs()) == 1


def test_a_result_that_cannot_be_written_is_not_success(hebe):
    with open("/dev/full", "w") as full:
        done = subprocess.run([BINARY, *SMOKE], stdout=full, stderr=subprocess.PIPE, text=True, env=hebe.env, timeout=300)
    assert done.returncode == 3 and "could not be written" in done.stderr


def test_python_modules_where_the_user_stands_are_not_imported(hebe, tmp_path):
    for module in ("numpy", "triton", "json"):
        (tmp_path / f"{module}.py").write_text("raise SystemExit('the wrong module')\n")
    done = hebe(*SMOKE, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_margin_wider_than_the_tiers_cannot_qualify(hebe):
    code, out = hebe.json(*CONFIRM, "--set", "n=65536", "--energy-margin", "5")
    failing = {c["name"] for c in out["analysis"]["conditions"] if not c["holds"]}
    assert "margins within the tier's" in failing and not out["analysis"]["qualified"]


@pytest.mark.parametrize("arguments, words", [
    (["calibrate", "placement", "--m", "0"], ["--m", '"0" is not one', "a whole number of 1 or more"]),
    (["calibrate", "placement", "--k", "1.5"], ["--k", '"1.5" is not one', "a whole number of 1 or more"]),
    (["calibrate", "placement", "--n", "9" * 30], ["--n", "beyond 2^63 - 1"]),
    (["calibrate", "placement", "--show", "FILE", "--days", "-1"], ["--days", "a whole number of 0 or more"]),
    (["profile", "expire", "FILE", "--days", "-1"], ["--days", "a whole number of 0 or more"]),
    (["tune", "tune-softmax", "--seed", "-1"], ["--seed", "no whole number from 0 to 2^64 - 1"]),
    (["campaign-submit", "some", "--max-parallel", "-1"], ["--max-parallel", "a whole number of 0 or more"])])
def test_a_number_that_cannot_be_is_told_what_can(hebe, arguments, words):
    done = hebe(*arguments)
    assert done.returncode == 2 and len(done.stderr) < 400, done.stderr
    assert all(word in done.stderr for word in words) and "range" not in done.stderr, done.stderr


@pytest.mark.parametrize("text, words", [("", "it is empty"), (" \n", "it is empty"),
                                         ('{"schema": "hebe.pro', "it ends in the middle of a value at byte 20"),
                                         ('{"rows": [}', "at byte 11"), ("no profile", "it is not JSON")])
@pytest.mark.parametrize("command", [("profile", "show"), ("calibrate", "placement", "--show")])
def test_a_file_that_is_empty_or_cut_short_says_so_with_a_next_step(hebe, tmp_path, command, text, words):
    file = tmp_path / "given.json"
    file.write_text(text)
    done = hebe(*command, str(file))
    assert done.returncode == 5 and words in done.stderr and str(file) in done.stderr, done.stderr
    assert "next: " in done.stderr and "json.exception" not in done.stderr


@pytest.mark.parametrize("command", [("campaign-plan", "FILE"), ("ttgir", "verify", "FILE"), ("ttgir", "print", "FILE"),
                                     ("ttgir", "count", "FILE"), ("ttgir", "run", "FILE", "--launch", "FILE"), ("tune", "FILE"),
                                     ("study", "FILE"), ("profile", "show", "FILE"), ("receipt", "verify", "FILE", "--key", "FILE")])
def test_a_file_that_is_not_there_is_a_usage_error_with_a_next_step(hebe, tmp_path, command):
    missing = str(tmp_path / "missing.toml")
    done = hebe(*(missing if word == "FILE" else word for word in command))
    assert done.returncode == 2 and missing in done.stderr and "next:" in done.stderr, done.stderr


@pytest.mark.parametrize(
    "arguments",
    [["compare", "{}", "{}"], ["qualify", "--verify", "{}"], ["real-kernel-recon", "--verify", "{}"], ["tune", "--verify", "{}"],
     ["study", "--verify", "{}"], ["probe-meter", "--verify", "{}"], ["probe-response", "--verify", "{}"], ["analysis-verify", "{}"],
     ["dataset-verify", "{}"], ["run-verify", "{}"], ["profile", "show", "{}"], ["profile", "verify", "{}"], ["resume", "{}"],
     ["campaign-submit", "{}"], ["campaign-work", "{}"], ["queue-status", "{}"], ["campaign-plan", "{}"], ["ttgir", "print", "{}"],
     ["receipt", "verify", "--key", "{}", "{}"], ["calibrate", "placement", "--show", "{}"], ["tune", "{}.toml"], ["run", "{}.toml"]],
    ids=lambda a: " ".join(a[:2]))
def test_what_is_named_and_is_not_there_is_a_usage_error(hebe, arguments):
    missing = str(hebe.tmp / "nothing" / "here")
    done = hebe(*[a.replace("{}", missing) for a in arguments])
    assert done.returncode == 2, done.stderr
    assert "not_found" in done.stderr and missing in done.stderr, done.stderr


@pytest.mark.parametrize("command", [["qualify"], ["layernorm-retention-qualify"], ["real-kernel-recon"]])
def test_an_option_that_does_nothing_beside_verify_is_refused(hebe, command):
    for more in (["--redact"], ["--triton-source", str(hebe.tmp)]):
        done = hebe(*command, "--verify", "", *more)
        assert done.returncode == 2 and "--verify" in done.stderr and more[0] in done.stderr, done.stderr
