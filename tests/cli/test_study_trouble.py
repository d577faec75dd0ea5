"""A study in trouble: faults in a job, interruptions in each, reboots, cubins that change; what goes on and what does not."""

import json
import shutil
import signal
import time

import pytest

from test_study import JOBS, at, campaign, done, events, qualified, record_of, study, study_spec  # noqa: F401 (fixtures)


@pytest.mark.parametrize("job, fault, codes", [
    ("control", "foreign_process@3", {"gpu_busy"}), ("primary", "thermal_throttle@3", {"throttled", "gate_failed", "not_stable"}),
    ("aa", "samples_frozen@2", {"meter_frozen", "gate_failed"}), ("primary", "wrong_output", {"wrong_output"})])
def test_trouble_in_one_job_stops_the_study_there(at, job, fault, codes):
    got, out = study(at, simulated={"faults": {job: [fault]}})
    assert got in (1, 3) and out["study"] is None, out
    before = JOBS[:JOBS.index(job)]
    assert [e["job"] for e in events(at, "sealed")] == before and out["pending"] == len(JOBS) - len(before)
    (event,) = events(at, "refused")
    assert event["job"] == job and event["code"] in codes
    assert not list((at.root / "studies").glob("*")) and not list((at.root / "datasets").glob("*")) and not at.unsealed()
    code, again = at.json("--device", "sim", "resume", "rows-study")  # the fault is frozen: it is met again
    assert code == got and again["study"] is None and [e["job"] for e in events(at, "sealed")] == before


def stop_in(hebe, job, pending=None):
    """Ctrl-C as soon as the journal says that the job has begun; once more from the beginning where that came too late."""
    for _ in range(8):
        process = stopped_once(hebe, job)
        if process.returncode == 130 and (pending or job) not in [e["job"] for e in events(hebe, "sealed")]:
            return
        for folder in ("campaigns", "runs", "analyses", "datasets", "studies"):
            shutil.rmtree(hebe.root / folder)
    pytest.fail(f"job {job} was never interrupted: exit code {process.returncode}")


def stopped_once(hebe, job):
    spec = study_spec(hebe.folder)
    process = hebe.start("--device", "sim", "study", spec, "--qualification", hebe.qualification)
    limit = time.monotonic() + 120
    while time.monotonic() < limit and process.poll() is None:
        for state in (hebe.root / "campaigns").glob("rows-study-*/state.jsonl"):
            if f'"job":"{job}"' in state.read_text() and '"event":"started"' in state.read_text().splitlines()[-1]:
                process.send_signal(signal.SIGINT)
                process.wait(60)
        time.sleep(0.002)
    return process


@pytest.mark.parametrize("job", JOBS)
def test_a_study_that_was_interrupted_goes_on_with_its_pending_jobs(at, done, job):
    stop_in(at, job)
    sealed = [e["job"] for e in events(at, "sealed")]
    assert sealed == JOBS[:len(sealed)] and len(sealed) < len(JOBS)
    code, out = at.json("--device", "sim", "resume", "rows-study")
    assert code == 0 and out["sealed_now"] == len(JOBS) - len(sealed), out
    # The same seeds: what was interrupted says what the uninterrupted study says.
    def seen(analysis):
        return [{k: v for k, v in c.items() if k not in ("run_id", "seal")} for c in analysis["contrasts"]]
    assert seen(out["analysis"]) == seen(done[1]["analysis"])
    assert at("study", "--verify", "").returncode == 0


def test_a_study_does_not_outlive_a_reboot(at):
    stop_in(at, "primary")
    sealed = len(events(at, "sealed"))
    code, out = at.json("--device", "sim", "--sim-fault", "reboot", "resume", "rows-study")
    assert code == 3 and out["refused"]["code"] == "session_changed" and "boot session" in out["refused"]["what"], out
    assert len(events(at, "sealed")) == sealed


def test_a_cubin_that_changes_between_jobs_stops_the_resume(at):
    stop_in(at, "aa", pending="primary")
    digest = json.loads(record_of(at).read_text())["points"][0]["candidates"][0]["artifacts"]["cubin"]
    file = at.root / "artifacts" / digest[:2] / digest
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    sealed = len(events(at, "sealed"))
    code, out = at.json("--device", "sim", "resume", "rows-study")
    assert code == 5 and digest in json.dumps(out), out
    assert len(events(at, "sealed")) == sealed


def test_a_fixed_name_resumes_its_own_study_only(at):
    code, out = at.json("--device", "sim", "resume-layernorm-reintegration-study")
    assert code == 2 and out["refused"]["code"] == "not_found"
    study(at, simulated={"faults": {"primary": ["wrong_output"]}})
    code, out = at.json("--device", "sim", "resume-layernorm-reintegration-study", campaign(at).name)
    assert code == 2 and "rows-study" in out["refused"]["what"]


def test_a_record_that_is_gone_is_missed_before_anything_is_measured(at):
    stop_in(at, "aa", pending="primary")
    sealed = len(events(at, "sealed"))
    record_of(at).unlink()
    code, out = at.json("--device", "sim", "resume", "rows-study")
    assert code == 2 and out["refused"]["code"] == "not_found" and at.qualification in out["refused"]["where"], out
    assert len(events(at, "sealed")) == sealed


def test_what_the_command_line_changed_is_what_was_frozen(at):
    code, out = study(at, "--pairs", "8", "--seed", "99", floor=None)
    assert code == 0, out
    spec = out["analysis"]["study"]["spec"]
    assert spec["pairs"] == 8 and spec["seed"] == 99 and spec["window_s"] == 0.5
    assert out["analysis"]["contrasts"][0]["pairs"] == 8


def test_a_fixed_name_finds_the_study_that_was_measured_and_not_finished(at):
    code, out = study(at, name="layernorm-reintegration-study")
    assert code == 0, out
    (at.root / "campaigns" / "layernorm-reintegration-study-zzzz").mkdir()  # somebody else's
    for folder in ("studies", "datasets"):
        shutil.rmtree(at.root / folder)
    journal = at.root / "campaigns" / out["campaign"] / "state.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    assert '"event":"finished"' in lines[-1]
    journal.write_text("".join(lines[:-1]))
    code, again = at.json("--device", "sim", "resume-layernorm-reintegration-study")
    assert code == 0 and again["study"] == out["study"], again
