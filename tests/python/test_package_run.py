"""hebe.run: the same plan gives the same record, whether the program or Python measures it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import hebe
import pytest
from package import ROOT, needs_library

pytestmark = needs_library
BINARY = Path(os.environ.get("HEBE_BINARY", ROOT / "build/release/hebe"))
SPEC = """
schema = "hebe.campaign.spec/1"
name = "floor"
session = "free"
seed = 5
[defaults]
tier = "smoke-v1"
pairs = {pairs}
parameters = {{ n = 4096 }}
[[jobs]]
id = "a"
[[jobs]]
id = "b"
"""


@pytest.fixture
def spec(tmp_path):
    def write(pairs=6):
        file = tmp_path / "spec.toml"
        file.write_text(SPEC.format(pairs=pairs))
        return file
    return write


def program(root, *arguments):
    done = subprocess.run([str(BINARY), *arguments, "--data-root", str(root), "--json"], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "HEBE_PYTHON": sys.executable})
    return done.returncode, json.loads(done.stdout)


@pytest.mark.skipif(not BINARY.is_file(), reason="the program is not built")
def test_python_and_the_program_seal_the_same_record_of_the_same_plan(spec, tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    code, planned = program(one, "campaign-plan", str(spec()), "--device", "sim")
    assert code == 0
    shutil.copytree(one, other)
    code, submitted = program(one, "campaign-submit", planned["campaign"], "--device", "sim")
    assert code == 0
    done = hebe.run(planned["campaign"], device="sim", data_root=other)
    assert (done.sealed_now, done.pending, done.refusals) == (2, 0, ())
    seals = {job["id"]: job["seal"] for job in submitted["jobs"]}
    assert {job.id: job.seal for job in done.jobs} == seals and len(set(seals.values())) == 2
    assert done.analysis and submitted["analysis"] and done.provenance == "simulated"  # they name runs, whose names have the time
    for job in done.jobs:
        (twin,) = (one / "runs").glob("*/*/*/*" + job.seal[:16])
        assert {p.name: p.read_bytes() for p in Path(job.run).iterdir()} == {p.name: p.read_bytes() for p in twin.iterdir()}
    assert program(other, "run-verify", "--all")[0] == 0


def test_a_specification_is_frozen_and_measured_and_frozen_once(spec, tmp_path):
    root = tmp_path / "root"
    done = hebe.run(spec(), device="sim", data_root=root)
    assert done.sealed_now == 2 and all(Path(job.run).is_dir() and job.verdict for job in done.jobs)
    with pytest.raises(hebe.Refused) as caught:
        hebe.run(done.campaign, device="sim", data_root=root)
    assert caught.value.code == "already_submitted" and caught.value.exit == 2
    again = hebe.run(done.campaign, device="sim", data_root=root, resume=True)
    assert again.sealed_now == 0 and again.jobs == done.jobs


def test_a_job_that_is_refused_stays_pending_with_its_reason(spec, tmp_path):
    done = hebe.run(spec(), device="sim", data_root=tmp_path / "root", faults=["meter_lies"])
    assert done.pending == 2 and done.refusals[0].code == "meter_disagreement"
    assert all(job.seal is None and job.run is None for job in done.jobs)
    assert done.jobs[0].refused["code"] == "meter_disagreement"
    assert not list((tmp_path / "root" / "runs").glob("*/*/*/*"))


def test_without_a_gpu_nothing_is_frozen_or_measured(spec, tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(hebe.Refused) as caught:
        hebe.run(spec(), data_root=tmp_path / "root")
    assert caught.value.code == "no_device" and not (tmp_path / "root").exists()


def test_a_campaign_that_is_not_there_is_named(tmp_path):
    with pytest.raises(hebe.Refused, match="nowhere") as caught:
        hebe.run("nowhere", device="sim", data_root=tmp_path / "root")
    assert caught.value.code == "not_found"


def test_ctrl_c_leaves_the_job_pending_and_it_can_be_resumed(spec, tmp_path):
    root = tmp_path / "root"
    file = spec(pairs=3000)
    code = ("import sys, hebe\n"
            "try: hebe.run(sys.argv[1], device='sim', data_root=sys.argv[2])\n"
            "except KeyboardInterrupt: print('stopped')\n")
    child = subprocess.Popen([sys.executable, "-B", "-c", code, str(file), str(root)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
    try:
        for _ in range(600):
            journal = list(root.glob("campaigns/*/*journal*")) or list(root.glob("campaigns/*/*.jsonl"))
            if journal and '"started"' in journal[0].read_text():
                break
            time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        out, errors = child.communicate(timeout=60)
    finally:
        child.kill()
    assert out == "stopped\n", errors
    assert not list(root.glob("runs/*/*/*/*"))
    assert '"interrupted"' in journal[0].read_text()
