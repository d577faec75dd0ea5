"""A campaign through the program itself: planned, submitted, disturbed, and complete in the end."""

import json
import os
import subprocess

import pytest
from conftest import BINARY, eventually

SPEC = """schema = "hebe.campaign.spec/1"
name = "six"
session = "free"
[defaults]
case = "vector-add"
tier = "confirmation-v1" # seconds a job: long enough to be caught running
pairs = 60
parameters = { n = 65536 }
""" + "".join(f'[[jobs]]\nid = "job-{i}"\nkind = "aa"\nseed = {i}\n' for i in range(6))


@pytest.fixture
def hebe(cluster, work):
    root = work / "root"

    def call(*arguments):
        done = cluster.call(BINARY, "--data-root", root, "--device", "sim", *arguments, "--json", check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    call.root = root
    return call


def begun_and_not_ended(journal):
    """Jobs that nobody works on any more; the journal's last line may be half written."""
    begun = set()
    for line in journal.read_text().splitlines() if journal.exists() else []:
        try:
            event = json.loads(line)
        except ValueError:
            break
        if event["event"] == "started":
            begun.add(event["job"])
        elif "job" in event:
            begun.discard(event["job"])
    return begun


def test_six_jobs_end_as_six_sealed_runs_whatever_slurm_does(cluster, work, hebe):
    (work / "six.toml").write_text(SPEC)
    campaign = hebe("campaign-plan", work / "six.toml")["campaign"]
    hebe("campaign-submit", campaign, "--engine", "slurm")
    running = lambda: cluster.call("squeue", "--noheader", "--states=R", "--format=%i").stdout.split()
    assert eventually(running)
    for task in running():
        cluster.call("scontrol", "requeue", task, check=False) # it may just have ended
    assert eventually(running)
    cluster.power_cut()
    cut_off = begun_and_not_ended(hebe.root / "campaigns" / campaign / "state.jsonl")
    assert eventually(lambda: cluster.queued() == "", 300), cluster.queued()
    jobs = []
    for manifest in hebe.root.glob("runs/*/*/*/*/manifest.json"):
        if not manifest.parent.name.startswith("."):
            jobs.append(json.loads(manifest.read_text())["campaign"]["job"])
    assert sorted(jobs) == [f"job-{i}" for i in range(6)], "each job has one sealed run"
    events = [json.loads(line) for line in (hebe.root / "campaigns" / campaign / "state.jsonl").read_text().splitlines()]
    tasks = [e["by"] for e in events if e["event"] == "session"]
    assert all(by["SLURM_ARRAY_TASK_ID"] for by in tasks)
    assert any(int(by.get("SLURM_RESTART_COUNT", 0)) >= 1 for by in tasks), "a task that Slurm started again says so"
    for job in cut_off:  # the cut may also have hit between two jobs
        assert sum(e["event"] == "started" and e["job"] == job for e in events) >= 2, f"{job} was cut off and is begun again"
    assert events[-1]["event"] == "finished"
    assert hebe("queue-status")["campaigns"][0]["sealed"] == 6
