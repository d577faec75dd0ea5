"""Campaigns as a user runs them, on the simulated GPU."""

import json
import pathlib
import re
import signal
import subprocess
import time

import pytest

BASE = """
schema = "hebe.campaign.spec/1"
name = "floor"
session = "{session}"
seed = 5
[defaults]
tier = "smoke-v1"
pairs = 6
parameters = {{ n = 4096 }}
"""
JOBS = """
[[jobs]]
id = "a"
[[jobs]]
id = "b"
replicates = 2
"""
SIM = ("--device", "sim")


def spec(tmp_path, jobs=JOBS, session="free", name="spec.toml", base=BASE):
    path = tmp_path / name
    path.write_text(base.format(session=session) + jobs)
    return str(path)


def plan(hebe, tmp_path, **options):
    code, out = hebe.json("campaign-plan", spec(tmp_path, **options), *SIM)
    assert code == 0, out
    return out


def state_file(hebe, out):
    return pathlib.Path(out["directory"]) / "state.jsonl"


def events(hebe, out):
    return [json.loads(line) for line in state_file(hebe, out).read_text().splitlines()]


def kinds(hebe, out):
    return [e["event"] for e in events(hebe, out)]


def test_a_campaign_is_frozen_measured_and_finished(hebe, tmp_path):
    out = plan(hebe, tmp_path)
    assert [j["id"] for j in out["jobs"]] == ["a", "b-1", "b-2"] and out["written"] and out["provenance"] == "simulated"
    assert len({j["plan_id"] for j in out["jobs"]}) == 3, "replicates have seeds of their own"
    assert not hebe.runs()
    code, done = hebe.json("campaign-submit", out["campaign"], *SIM)
    assert code == 0 and done["sealed_now"] == 3 and done["pending"] == 0 and done["analysis"]
    assert len(hebe.runs()) == 3
    for run in hebe.runs():
        manifest = json.loads((run / "manifest.json").read_text())
        assert manifest["campaign"]["id"] == out["campaign"]
    assert kinds(hebe, out) == ["submitted", "session"] + ["started", "sealed"] * 3 + ["finished"]
    assert hebe("run-verify", "--all").returncode == 0
    assert hebe("analysis-verify", "--all").returncode == 0


def test_json_and_toml_freeze_the_same_campaign_and_freezing_twice_is_freezing_once(hebe, tmp_path):
    first = plan(hebe, tmp_path)
    (tmp_path / "spec.json").write_text(json.dumps({
        "schema": "hebe.campaign.spec/1", "name": "floor", "session": "free", "seed": 5,
        "defaults": {"tier": "smoke-v1", "pairs": 6, "parameters": {"n": 4096}},
        "jobs": [{"id": "a"}, {"id": "b", "replicates": 2}]}))
    code, again = hebe.json("campaign-plan", str(tmp_path / "spec.json"), *SIM)
    assert code == 0 and again["campaign"] == first["campaign"] and again["existed"] and not again["written"]


def test_a_job_measures_what_a_single_run_of_the_same_plan_measures(hebe, tmp_path):
    out = plan(hebe, tmp_path, jobs='[[jobs]]\nid = "a"\nseed = 3\n')
    assert hebe("campaign-submit", "floor", *SIM).returncode == 0
    code, single = hebe.json("run-aa", *SIM, "--protocol-tier", "smoke-v1", "--pairs", "6", "--set", "n=4096", "--seed", "3")
    assert code == 0
    of_job, = [r for r in hebe.runs() if str(r) != single["directory"]]
    for name in ("plan.json", "windows.jsonl", "analysis.json"):
        assert (of_job / name).read_bytes() == (pathlib.Path(single["directory"]) / name).read_bytes(), name
    assert json.loads((of_job / "manifest.json").read_text())["plan_id"] == out["jobs"][0]["plan_id"]


def test_measuring_needs_no_python_and_no_case_file(hebe, tmp_path):
    plan(hebe, tmp_path)
    hebe.env["HEBE_PYTHON"] = "/nonexistent/python"
    assert hebe("campaign-submit", "floor", *SIM).returncode == 0


@pytest.mark.parametrize("jobs, code, what, where", [
    ('[[jobs]]\nid = "a"\n[[jobs]]\nid = "a"\n', 2, 'the job id "a" is there twice', 'jobs[1] "a"'),
    ('[[jobs]]\nid = "b"\nreplicates = 2\n[[jobs]]\nid = "b-2"\n', 2, 'the job id "b-2" is there twice', 'jobs[1]'),
    ('[[jobs]]\nid = "a"\n[[jobs]]\nid = "few"\npairs = 1\n', 2, "needs at least 2 pairs", 'jobs[1] "few"'),
    ('[[jobs]]\nid = "many"\npairs = 10001\n', 2, "over the limit of 10000", 'jobs[0] "many"'),
    ('[[jobs]]\nid = "long"\nwindow_s = 601.0\n', 2, "over the limit of 600", 'jobs[0] "long"'),
    ('[[jobs]]\nid = "../x"\n', 2, "", "spec.toml"),
    ('[[jobs]]\nid = "a"\nwindows_s = 3.0\n', 2, "windows_s", "spec.toml"),
    ('[[jobs]]\nid = "a"\npairs = "six"\n', 2, "", "spec.toml"),
    ('[[jobs]]\nid = "a"\ncase = "no-such-case"\n', 2, "no case", 'jobs[0] "a"'),
    ('[[jobs]]\nid = "a"\ntier = "gold"\n', 2, "gold", 'jobs[0] "a"'),
    ('[[jobs]]\nid = "a"\n[[jobs]]\nid = "b"\nparameters = { n = -1 }\n', 2, "", 'jobs[1] "b"'),
    ('[[jobs]]\nid = "a"\nparameters = { when = 2026-11-29 }\n', 2, "dates", "spec.toml"),
    ('jobs = []\n', 2, "", "spec.toml"),
    ('[[jobs]\nid = "a"\n', 2, "", "spec.toml:"),
    ('[[jobs]]\nid = "a"\nplan = "/etc/passwd"\n', 5, "relative to the data root", 'jobs[0] "a"'),
    ('[[jobs]]\nid = "a"\nplan = "../../etc/passwd"\n', 5, "not inside", 'jobs[0] "a"'),
    ('[[jobs]]\nid = "a"\nplan = "runs/none/plan.json"\n', 3, "open failed", 'jobs[0] "a"'),
])
def test_one_wrong_job_refuses_the_whole_campaign_by_name(hebe, tmp_path, jobs, code, what, where):
    got, out = hebe.json("campaign-plan", spec(tmp_path, jobs), *SIM)
    assert got == code, out
    assert what in out["refused"]["what"] and where in out["refused"]["where"], out
    assert not list(hebe.root.glob("campaigns/*")) and not list(hebe.root.glob("campaigns/.*"))


@pytest.mark.parametrize("text", ["", "{", "[]", "schema = 3", "\x00\x01", 'schema = "hebe.campaign.spec/2"\nname = "x"\n[[jobs]]\nid = "a"\n'])
def test_what_is_no_campaign_is_a_usage_error(hebe, tmp_path, text):
    (tmp_path / "bad.toml").write_text(text)
    code, out = hebe.json("campaign-plan", str(tmp_path / "bad.toml"), *SIM)
    assert code == 2 and out["refused"]["code"] == "bad_spec", out


def test_a_frozen_plan_is_measured_again_and_refused_without_its_artifacts(hebe, tmp_path):
    code, single = hebe.json("run-aa", *SIM, "--protocol-tier", "smoke-v1", "--pairs", "6", "--set", "n=4096", "--seed", "3")
    assert code == 0
    run = pathlib.Path(single["directory"])
    jobs = f'[[jobs]]\nid = "again"\nplan = "{run.relative_to(hebe.root)}/plan.json"\n'
    out = plan(hebe, tmp_path, jobs=jobs)
    assert hebe("campaign-submit", out["campaign"], *SIM).returncode == 0
    again, = [r for r in hebe.runs() if r != run]
    assert (again / "plan.json").read_bytes() == (run / "plan.json").read_bytes()
    cubin = json.loads((run / "plan.json").read_text())["arms"]["A"]["cubin_sha256"]
    (hebe.root / "artifacts" / cubin[:2] / cubin).unlink()
    code, out = hebe.json("campaign-plan", spec(tmp_path, jobs + '[[jobs]]\nid = "more"\n', name="other.toml"), *SIM)
    assert code == 2 and cubin in out["refused"]["what"] and "again" in out["refused"]["where"], out


def test_an_artifact_that_is_lost_or_changed_after_planning_refuses_the_campaign_by_name(hebe, tmp_path):
    out = plan(hebe, tmp_path)
    job = json.loads((pathlib.Path(out["directory"]) / "jobs/a.json").read_text())
    cubin = job["plan"]["arms"]["A"]["cubin_sha256"]
    blob = hebe.root / "artifacts" / cubin[:2] / cubin
    whole = blob.read_bytes()
    blob.chmod(0o644)
    blob.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    code, refused = hebe.json("campaign-submit", "floor", *SIM)
    assert code == 5 and cubin in refused["refused"]["where"], refused
    blob.unlink()
    code, refused = hebe.json("campaign-submit", "floor", *SIM)
    assert code == 3 and cubin in refused["refused"]["where"], refused
    assert not state_file(hebe, out).exists() and not hebe.runs()
    blob.write_bytes(whole)
    assert hebe("campaign-submit", "floor", *SIM).returncode == 0


@pytest.mark.parametrize("name", ["plan.json", "jobs/b-1.json"])
def test_a_changed_plan_or_job_is_named(hebe, tmp_path, name):
    out = plan(hebe, tmp_path)
    path = pathlib.Path(out["directory"]) / name
    path.chmod(0o644)
    path.write_text(path.read_text().replace('"4', '"5', 1).replace("smoke", "smoka", 1).replace('"free"', '"study"', 1))
    code, refused = hebe.json("campaign-submit", out["campaign"], *SIM)
    assert code == 5 and refused["refused"]["code"] == "digest_mismatch" and refused["refused"]["where"].endswith(name), refused
    assert not hebe.runs()


def test_a_second_submission_is_refused_and_says_how_to_go_on(hebe, tmp_path):
    out = plan(hebe, tmp_path)
    assert hebe("campaign-submit", "floor", *SIM).returncode == 0
    code, refused = hebe.json("campaign-submit", "floor", *SIM)
    assert code == 2 and refused["refused"]["code"] == "already_submitted" and out["campaign"] in refused["refused"]["next"]
    code, done = hebe.json("resume", "floor", *SIM)
    assert code == 0 and done["sealed_now"] == 0 and len(hebe.runs()) == 3


def test_two_submitters_at_once_one_wins_and_every_job_is_measured_once(hebe, tmp_path):
    plan(hebe, tmp_path, jobs='[[jobs]]\nid = "a"\nreplicates = 8\n')
    both = [hebe.start("campaign-submit", "floor", *SIM, "--json") for _ in range(2)]
    codes = sorted(p.wait(timeout=120) for p in both)
    said = [p.stdout.read() for p in both]
    assert codes == [0, 2], said
    assert len(hebe.runs()) == 8


def begun(hebe, tmp_path, session):
    """A campaign whose first job is sealed, and whose process was then killed."""
    out = plan(hebe, tmp_path, session=session, jobs='[[jobs]]\nid = "a"\nreplicates = 40\n')
    process = hebe.start("campaign-submit", "floor", *SIM)
    deadline = time.time() + 60
    while time.time() < deadline and len(hebe.runs()) < 2:
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert 2 <= len(hebe.runs()) < 40
    return out


@pytest.mark.parametrize("fault, session, words", [
    ("driver_update", "free", ["driver", "another version"]),
    ("board_swap", "free", ["board model", "another model"]),
    ("driver_update", "study", ["driver"]),
    ("board_swap", "study", ["board model", "board:"]),
    ("reboot", "study", ["boot session", "once more"]),
])
def test_resume_refuses_by_name_what_is_not_as_it_was(hebe, tmp_path, fault, session, words):
    begun(hebe, tmp_path, session)
    before = len(hebe.runs())
    code, out = hebe.json("resume", "floor", *SIM, "--sim-fault", fault)
    assert code == 3 and out["refused"]["code"] == "session_changed", out
    assert all(word in out["refused"]["what"] for word in words), out
    assert len(hebe.runs()) - before <= 1, "what the dead process had measured may be sealed; nothing is measured"
    code, out = hebe.json("resume", "floor", *SIM)
    assert code == 0 and out["pending"] == 0 and len(hebe.runs()) == 40


def test_a_free_campaign_outlives_a_reboot(hebe, tmp_path):
    begun(hebe, tmp_path, "free")
    code, out = hebe.json("resume", "floor", *SIM, "--sim-fault", "reboot")
    assert code == 0 and len(hebe.runs()) == 40, out


def test_another_binary_may_not_go_on(hebe, tmp_path):
    begun(hebe, tmp_path, "free")
    from conftest import BINARY
    other = tmp_path / "hebe-other"
    other.write_bytes(pathlib.Path(BINARY).read_bytes() + b"\0")
    other.chmod(0o755)
    done = subprocess.run([str(other), "resume", "floor", *SIM, "--json"], capture_output=True, text=True,
                          env=dict(hebe.env, HEBE_HOME=str(pathlib.Path(__file__).parents[2])), timeout=120)
    out = json.loads(done.stdout)
    assert done.returncode == 3 and "binary (hebe, sha256)" in out["refused"]["what"], out


def test_a_fault_that_is_part_of_a_plan_cannot_be_given_later(hebe, tmp_path):
    plan(hebe, tmp_path)
    code, out = hebe.json("campaign-submit", "floor", *SIM, "--sim-fault", "samples_gap@5")
    assert code == 2 and "samples_gap" in out["refused"]["what"], out


def test_a_job_that_is_refused_stays_pending_with_its_reason_and_the_others_are_measured(hebe, tmp_path):
    # Every job of the campaign has the fault; wrong_output is a job's own failure, so the worker goes on.
    code, out = hebe.json("campaign-plan", spec(tmp_path), *SIM, "--sim-fault", "wrong_output")
    assert code == 0, out
    code, done = hebe.json("campaign-submit", "floor", *SIM)
    assert code == 1 and done["pending"] == 3 and {j["refusal"] for j in done["jobs"]} == {"wrong_output"}, done
    assert not hebe.runs()
    queue = hebe.json("queue-status")[1]["campaigns"][0]
    assert queue["refused"] == 3 and "wrong_output" in queue["last_refusal"]


def test_a_study_stops_at_its_first_refusal_and_a_free_campaign_goes_on(hebe, tmp_path):
    for session, attempts in [("study", 1), ("free", 3)]:
        code, out = hebe.json("campaign-plan", spec(tmp_path, session=session), *SIM, "--sim-fault", "wrong_output")
        assert code == 0
        assert hebe("campaign-submit", out["campaign"], *SIM).returncode == 1
        assert kinds(hebe, out).count("refused") == attempts


def test_several_boards_work_side_by_side_and_a_study_has_one(hebe, tmp_path):
    out = plan(hebe, tmp_path, jobs='[[jobs]]\nid = "a"\nreplicates = 12\n')
    code, done = hebe.json("campaign-submit", out["campaign"], "--device", "sim:0,sim:1")
    assert code == 0 and done["pending"] == 0 and len(hebe.runs()) == 12, done
    boards = {e["identity"]["board_uuid"] for e in events(hebe, out) if e["event"] == "session"}
    assert len(boards) == 2
    assert kinds(hebe, out).count("sealed") == 12
    study = plan(hebe, tmp_path, session="study")
    code, refused = hebe.json("campaign-submit", study["campaign"], "--device", "sim:0,sim:1")
    assert code == 2 and "one board" in refused["refused"]["what"]


def test_a_campaign_for_another_kind_of_gpu_is_not_measured_here(hebe, tmp_path):
    code, out = hebe.json("campaign-plan", spec(tmp_path), "--arch", "90")
    assert code == 0 and out["provenance"] == "measured", out
    code, refused = hebe.json("campaign-submit", out["campaign"], *SIM)
    assert code == 3 and refused["refused"]["code"] == "no_device" and "planned for a real GPU" in refused["refused"]["what"]


def test_the_lease_is_held_across_jobs_and_seen(hebe, tmp_path):
    plan(hebe, tmp_path, session="study", jobs='[[jobs]]\nid = "a"\nreplicates = 40\n')
    process = hebe.start("campaign-submit", "floor", *SIM)
    deadline = time.time() + 60
    while time.time() < deadline and len(hebe.runs()) < 2:
        time.sleep(0.005)
    seen = []
    while process.poll() is None:
        queue = hebe.json("queue-status")[1]
        refused = hebe("run-aa", *SIM, "--protocol-tier", "smoke-v1", "--pairs", "2", "--set", "n=4096", "--json")
        # The lease ends with the last job, the process a little later: only while a job is open must it be held.
        if hebe.json("queue-status")[1]["campaigns"][0]["sealed"] < 40:
            seen.append(queue["leases"][0])
            assert refused.returncode == 3 and "lease_held" in refused.stdout
            assert "campaign floor-" in refused.stdout and str(process.pid) in refused.stdout
    assert process.returncode == 0
    assert seen and all(l["held"] and l["holder"]["pid"] == process.pid and "campaign floor-" in l["holder"]["what"] for l in seen)
    after = hebe.json("queue-status")[1]
    assert not after["leases"][0]["held"] and after["campaigns"][0]["sealed"] == 40


def test_looking_again_and_again_never_refuses_a_job(hebe, tmp_path):
    plan(hebe, tmp_path, jobs='[[jobs]]\nid = "a"\nreplicates = 3\n')
    for _ in range(6):
        watchers = [hebe.start("queue-status", "--json") for _ in range(4)]
        done = hebe("resume", "floor", *SIM)
        assert done.returncode == 0, done.stderr
        assert all(w.wait(timeout=60) == 0 for w in watchers)


def test_ctrl_c_leaves_the_job_pending_and_resume_goes_on(hebe, tmp_path):
    out = plan(hebe, tmp_path, jobs='[[jobs]]\nid = "a"\nreplicates = 40\n')
    process = hebe.start("campaign-submit", "floor", *SIM)
    deadline = time.time() + 60
    while time.time() < deadline and len(hebe.runs()) < 2:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert kinds(hebe, out)[-1] == "interrupted" and len(hebe.runs()) < 40
    assert hebe("resume", "floor", *SIM).returncode == 0 and len(hebe.runs()) == 40


@pytest.mark.parametrize("name", ["../floor", "/etc", "campaigns/../../x", "", "nothing-like-it"])
def test_a_campaign_that_is_not_there_is_not_found(hebe, tmp_path, name):
    plan(hebe, tmp_path)
    code, refused = hebe.json("resume", name, *SIM)
    assert code in (2, 5) and refused["refused"]["code"] in ("not_found", "unsafe_path", "bad_argument"), refused


def test_a_run_that_changed_after_it_was_sealed_stops_the_resume(hebe, tmp_path):
    out = begun(hebe, tmp_path, "free")
    sealed = [e for e in events(hebe, out) if e["event"] == "sealed"][0]
    victim = hebe.root / sealed["run"] / "windows.jsonl"
    victim.chmod(0o644)
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    victim.write_bytes(data)
    before = len(hebe.runs())
    code, refused = hebe.json("resume", "floor", *SIM)
    assert code == 5 and refused["refused"]["where"] == str(victim), refused
    assert len(hebe.runs()) == before


def test_dry_runs_write_nothing(hebe, tmp_path):
    assert hebe("campaign-plan", spec(tmp_path), *SIM, "--dry-run").returncode == 0
    assert not list(hebe.root.glob("campaigns/*"))
    out = plan(hebe, tmp_path)
    code, said = hebe.json("campaign-submit", "floor", *SIM, "--dry-run")
    assert code == 0 and said["pending"] == 3
    assert not state_file(hebe, out).exists() and not hebe.runs()


def test_watch_ends_when_nothing_is_pending(hebe, tmp_path):
    plan(hebe, tmp_path, jobs='[[jobs]]\nid = "a"\nreplicates = 4\n')
    watcher = hebe.start("queue-status", "--watch", "--interval", "0.1")
    assert hebe("campaign-submit", "floor", *SIM).returncode == 0
    assert watcher.wait(timeout=60) == 0
    assert re.search(r"4/4 sealed", watcher.stdout.read())


def test_ingest_says_when_there_is_nothing_and_what_is_not_there(hebe):
    assert hebe("data-init").returncode == 0
    assert hebe("ingest").stdout.startswith("nothing waits")
    code, refused = hebe.json("ingest", str(hebe.root / "runs/2026/01/01/.captured-x"))
    assert code == 2 and refused["refused"]["code"] == "not_found"
