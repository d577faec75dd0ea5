"""What a hostile review did to campaigns. No job may be measured twice, none may be lost, and each refusal names its cause."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import time

import pytest
import rfc8785
from conftest import BINARY
from test_campaign import SIM, begun, events, kinds, plan, spec, state_file
from test_campaign_journal import link_of


def jobs_on_disk(hebe):
    return sorted(json.loads((r / "manifest.json").read_text())["campaign"]["job"] for r in hebe.runs())


def done_once(hebe, count):
    names = jobs_on_disk(hebe)
    assert len(names) == count == len(set(names)), names


def relink(path, change):
    """The journal again, with right links, as a forger or a bug would leave it."""
    lines, link = [], ""
    for n, line in enumerate(path.read_text().splitlines()):
        event = json.loads(line)
        event.pop("link")
        event = change(n, event)
        if event is None:
            continue
        link = link_of(link, event)
        lines.append(rfc8785.dumps(event | {"link": link}))
    path.write_bytes(b"\n".join(lines) + b"\n")


def forget_sealed(path, job):
    """The journal of a process that died after it sealed this job and before it said so."""
    relink(path, lambda n, e: None if e["event"] in ("sealed", "finished") and e.get("job", job) == job else e)
    relink(path, lambda n, e: e | {"n": n})


@pytest.mark.parametrize("how", ["task", "all"])
def test_a_run_sealed_and_not_written_down_is_found_by_whoever_takes_the_job(hebe, tmp_path, how):
    out = plan(hebe, tmp_path)
    assert hebe("campaign-submit", "floor", *SIM).returncode == 0
    forget_sealed(state_file(hebe, out), "b-1")
    work = ["campaign-work", out["campaign"], *SIM] + (["--task", "1"] if how == "task" else [])
    assert hebe(*work).returncode == 0
    done_once(hebe, 3)
    assert kinds(hebe, out)[-1] == "finished"


@pytest.mark.parametrize("left", [0, 1, 4])
def test_a_journal_that_lost_its_lines_costs_no_second_measurement(hebe, tmp_path, left):
    out = plan(hebe, tmp_path)
    assert hebe("campaign-submit", "floor", *SIM).returncode == 0
    path = state_file(hebe, out)
    lines = path.read_text().splitlines(keepends=True)
    path.unlink()
    if left:
        path.write_text("".join(lines[:left]))
    code, done = hebe.json("resume" if left else "campaign-submit", out["campaign"], *SIM)
    assert code == 0 and done["pending"] == 0, done
    done_once(hebe, 3)


def test_a_journal_that_vanishes_under_a_worker_is_not_begun_anew(hebe, tmp_path):
    out = plan(hebe, tmp_path, jobs='[[jobs]]\nid = "a"\nreplicates = 60\n')
    process = hebe.start("campaign-submit", "floor", *SIM)
    deadline = time.time() + 60
    while time.time() < deadline and len(hebe.runs()) < 3:
        time.sleep(0.005)
    state_file(hebe, out).unlink()
    assert process.wait(timeout=60) == 5, process.stderr.read()
    assert not state_file(hebe, out).exists()
    assert hebe("resume", "floor", *SIM).returncode == 0
    done_once(hebe, 60)


def test_a_lock_file_that_is_removed_stops_the_worker_before_it_seals(hebe, tmp_path):
    out = plan(hebe, tmp_path, jobs='[[jobs]]\nid = "a"\nreplicates = 60\n')
    process = hebe.start("campaign-work", out["campaign"], "--device", "sim:0")
    deadline = time.time() + 60
    while time.time() < deadline and len(hebe.runs()) < 3:
        time.sleep(0.005)
    (pathlib.Path(out["directory"]) / "jobs.lock").unlink()
    other = hebe("campaign-work", out["campaign"], "--device", "sim:1")
    assert process.wait(timeout=60) == 3 and "jobs.lock" in process.stderr.read()
    assert other.returncode == 0, other.stderr
    assert hebe("resume", "floor", "--device", "sim:1").returncode == 0
    assert len(set(jobs_on_disk(hebe))) == 60 and len(hebe.runs()) <= 61, "at most the one that was being sealed"


def captured_copy(hebe, tmp_path, out):
    """A capture that a dead worker left, made from a sealed run: as text, with its samples."""
    run = [r for r in hebe.runs() if json.loads((r / "manifest.json").read_text())["campaign"]["job"] == "a"][0]
    import pyarrow.parquet as pq
    table = pq.read_table(run / "telemetry.parquet").to_pylist()
    csv = "t_mono_ns,t_source_us,power_raw_mw\n" + "".join(
        f"{r['t_mono_ns']},{r['t_source_us']},{r['power_raw_mw']}\n" for r in table if r["power_raw_mw"] is not None)
    files = {n: (run / n).read_bytes() for n in ("plan.json", "environment.json", "windows.jsonl", "analysis.json")} | {"samples.csv": csv.encode()}
    manifest = json.loads((run / "manifest.json").read_text())
    stamp = run.name.split("-")[0]
    wall = int(time.mktime(time.strptime(stamp + " UTC", "%Y%m%dT%H%M%SZ %Z")) - time.timezone) * 1_000_000
    record = {"schema": "hebe.run.capture/1", "kind": "aa", "plan_id": manifest["plan_id"], "provenance": "simulated",
              "captured_wall_us": str(wall), "campaign": manifest["campaign"],
              "files": [{"path": n, "bytes": len(b), "sha256": hashlib.sha256(b).hexdigest()} for n, b in files.items()]}
    return run, files, record


def place_capture(run, files, record):
    text = rfc8785.dumps(record) + b"\n"
    folder = run.parent / f".captured-{run.name.split('-')[0]}-aa-{hashlib.sha256(text).hexdigest()[:16]}"
    folder.mkdir()
    for name, data in (files | {"capture.json": text}).items():
        (folder / name).write_bytes(data)
    return folder


def test_a_capture_of_a_job_that_is_sealed_already_is_not_sealed_a_second_time(hebe, tmp_path):
    out = plan(hebe, tmp_path)
    assert hebe("campaign-submit", "floor", *SIM).returncode == 0
    run, files, record = captured_copy(hebe, tmp_path, out)
    same = place_capture(run, files, record)  # left between the rename and the removal of the raw samples
    code, said = hebe.json("ingest")
    assert code == 0 and not same.exists(), said
    record["captured_wall_us"] = str(int(record["captured_wall_us"]) + 60_000_000)
    other = place_capture(run, files, record)
    other = other.rename(other.parent / other.name.replace(run.name.split("-")[0], time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(int(record["captured_wall_us"]) / 1e6))))
    code, said = hebe.json("ingest")
    assert code == 2 and said["refused"]["code"] == "already_exists" and "sealed run already" in said["refused"]["what"], said
    assert other.exists()
    done_once(hebe, 3)


@pytest.mark.parametrize("what", ["capture of another name", "manifest of another name", "capture is a link"])
def test_a_damaged_record_of_a_begun_job_stops_the_resume_by_name(hebe, tmp_path, what):
    out = plan(hebe, tmp_path)
    assert hebe("campaign-submit", "floor", *SIM).returncode == 0
    run, files, record = captured_copy(hebe, tmp_path, out)
    forget_sealed(state_file(hebe, out), "a")
    if what.startswith("manifest"):
        victim = run / "manifest.json"
        victim.chmod(0o644)
        victim.write_text(victim.read_text().replace('"job":"a"', '"job":"c"'))
    else:
        shutil.rmtree(run)
        folder = place_capture(run, files, record)
        victim = folder / "capture.json"
        if what.endswith("name"):
            victim.write_text(victim.read_text().replace('"job":"a"', '"job":"c"'))
        else:
            folder.rename(tmp_path / "elsewhere")
            folder.symlink_to(tmp_path / "elsewhere")
    before = len(hebe.runs())
    code, refused = hebe.json("resume", "floor", *SIM)
    assert code == 5, refused
    assert victim.name in refused["refused"]["where"] or ".captured-" in refused["refused"]["where"], refused
    assert len(hebe.runs()) == before


def test_ingest_by_hand_beside_a_running_campaign_harms_nobody(hebe, tmp_path):
    plan(hebe, tmp_path, jobs='[[jobs]]\nid = "a"\nreplicates = 30\n')
    process = hebe.start("campaign-submit", "floor", *SIM)
    while process.poll() is None:
        assert hebe("ingest").returncode == 0
    assert process.returncode == 0, process.stderr.read()
    done_once(hebe, 30)


def test_a_binary_that_is_replaced_under_a_running_campaign_goes_on_as_what_it_was(hebe, tmp_path):
    plan(hebe, tmp_path, jobs='[[jobs]]\nid = "a"\nreplicates = 30\n')
    own = tmp_path / "hebe-own"
    shutil.copy2(BINARY, own)
    env = dict(hebe.env, HEBE_HOME=str(pathlib.Path(__file__).parents[2]))
    process = subprocess.Popen([str(own), "campaign-submit", "floor", *SIM], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.time() + 60
    while time.time() < deadline and len(hebe.runs()) < 2:
        time.sleep(0.005)
    own.unlink()
    assert process.wait(timeout=60) == 0, process.stderr.read()
    done_once(hebe, 30)


@pytest.mark.parametrize("pairs", ["4294967302", "-1", "0", "9223372036854775807"])
def test_a_number_that_would_wrap_around_does_not_pass_the_limits(hebe, tmp_path, pairs):
    code, refused = hebe.json("campaign-plan", spec(tmp_path, f'[[jobs]]\nid = "a"\npairs = {pairs}\n'), *SIM)
    assert code == 2, refused


@pytest.mark.parametrize("text", [
    'schema = "hebe.campaign.spec/1"\nname = "x"\n[[jobs]]\nid = "a"\n' + ".".join(["a"] * 50_000) + " = 1\n",
    'schema = "hebe.campaign.spec/1"\nname = "x"\nx = ' + "[" * 50_000 + "]" * 50_000 + "\n",
])
def test_deep_nesting_in_toml_is_refused_not_a_crash(hebe, tmp_path, text):
    (tmp_path / "deep.toml").write_text(text)
    code, refused = hebe.json("campaign-plan", str(tmp_path / "deep.toml"), *SIM)
    assert code == 2 and refused["refused"]["code"] == "bad_spec"


def test_deep_nesting_in_json_is_refused_not_a_crash(hebe, tmp_path):
    (tmp_path / "deep.json").write_text('{"a":' * 100_000 + "1" + "}" * 100_000)
    code, refused = hebe.json("campaign-plan", str(tmp_path / "deep.json"), *SIM)
    assert code == 2 and "nested" in refused["refused"]["what"]


@pytest.mark.parametrize("event, change", [
    ("session", {"identity": {}}), ("session", {"identity": {"board_name": 3}}), ("sealed", {"run": 7}), ("sealed", {"seal": "x"}),
    ("finished", {"analysis": "../../x"}), ("submitted", {"engine": "cloud"}), ("started", {"job": "nobody"}), ("started", {"n": 99}),
])
def test_a_journal_of_right_links_and_wrong_content_is_bad_data(hebe, tmp_path, event, change):
    out = plan(hebe, tmp_path)
    assert hebe("campaign-submit", "floor", *SIM).returncode == 0
    relink(state_file(hebe, out), lambda n, e: e | change if e["event"] == event else e)
    code, refused = hebe.json("resume", "floor", *SIM)
    assert code == 5 and "state.jsonl:" in refused["refused"]["where"], refused


def test_carriage_returns_in_the_journal_are_a_change(hebe, tmp_path):
    out = plan(hebe, tmp_path)
    assert hebe("campaign-submit", "floor", *SIM).returncode == 0
    path = state_file(hebe, out)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    code, refused = hebe.json("resume", "floor", *SIM)
    assert code == 5 and refused["refused"]["code"] == "digest_mismatch"


@pytest.mark.parametrize("change", ["missing", "another job's"])
def test_a_run_that_the_journal_names_wrongly_is_bad_data(hebe, tmp_path, change):
    out = plan(hebe, tmp_path)
    assert hebe("campaign-submit", "floor", *SIM).returncode == 0
    sealed = {e["job"]: e for e in events(hebe, out) if e["event"] == "sealed"}
    if change == "missing":
        shutil.rmtree(hebe.root / sealed["a"]["run"])
    else:
        other = {k: sealed["b-1"][k] for k in ("run", "seal")}
        relink(state_file(hebe, out), lambda n, e: e | other if e["event"] == "sealed" and e["job"] == "a" else e)
    code, refused = hebe.json("resume", "floor", *SIM)
    assert code == 5 and 'job "a"' in refused["refused"]["what"], refused


def test_a_lost_job_file_is_bad_data_for_resume_and_for_planning_again(hebe, tmp_path):
    out = plan(hebe, tmp_path)
    (pathlib.Path(out["directory"]) / "jobs/b-2.json").unlink()
    for arguments in (["resume", "floor"], ["campaign-plan", spec(tmp_path)]):
        code, refused = hebe.json(*arguments, *SIM)
        assert code == 5 and refused["refused"]["where"].endswith("b-2.json"), refused


def test_a_lost_analysis_is_made_again(hebe, tmp_path):
    plan(hebe, tmp_path)
    assert hebe("campaign-submit", "floor", *SIM).returncode == 0
    shutil.rmtree(hebe.root / "analyses")
    (hebe.root / "analyses").mkdir()
    code, done = hebe.json("resume", "floor", *SIM)
    assert code == 0 and (hebe.root / "analyses" / done["analysis"]).is_dir()
    assert hebe("analysis-verify", "--all").returncode == 0


def test_a_pipe_or_a_device_in_place_of_a_file_stops_nobody(hebe, tmp_path):
    out = plan(hebe, tmp_path)
    os.mkfifo(hebe.root / "leases/x.lease")
    assert hebe("queue-status").returncode == 0
    os.mkfifo(state_file(hebe, out))
    code, queue = hebe.json("queue-status")
    assert code == 0 and queue["campaigns"][0]["problem"]
    assert hebe.json("resume", "floor", *SIM)[0] == 5
    state_file(hebe, out).unlink()
    state_file(hebe, out).symlink_to("/dev/zero")
    assert hebe.json("queue-status")[1]["campaigns"][0]["problem"]


def test_ctrl_c_with_several_boards_is_an_interruption(hebe, tmp_path):
    import signal
    plan(hebe, tmp_path, jobs='[[jobs]]\nid = "a"\nreplicates = 200\n')
    process = hebe.start("campaign-submit", "floor", "--device", "sim:0,sim:1", "--json")
    deadline = time.time() + 60
    while time.time() < deadline and len(hebe.runs()) < 4:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and json.loads(out)["sealed_now"] >= 4
    assert json.loads(out)["sealed_now"] == len(hebe.runs())


def test_one_json_value_on_stdout_also_when_ingest_only_looks(hebe, tmp_path):
    out = plan(hebe, tmp_path)
    assert hebe("campaign-submit", "floor", *SIM).returncode == 0
    place_capture(*captured_copy(hebe, tmp_path, out))
    code, said = hebe.json("ingest", "--dry-run")
    assert code == 0 and len(said["waiting"]) == 1


def test_a_single_job_of_a_study_is_measured_in_its_turn_only(hebe, tmp_path):
    out = plan(hebe, tmp_path, session="study")
    code, refused = hebe.json("campaign-work", out["campaign"], "--task", "1", *SIM)
    assert code == 2 and '"a"' in refused["refused"]["what"]
    assert hebe("campaign-work", out["campaign"], "--task", "0", *SIM).returncode == 0
    assert hebe("campaign-work", out["campaign"], "--task", "1", *SIM).returncode == 0


def test_a_clock_that_once_stood_ahead_can_be_left_behind_and_the_journal_says_so(hebe, tmp_path):
    out = begun(hebe, tmp_path, "free")
    path = state_file(hebe, out)
    last = json.loads(path.read_text().splitlines()[-1])
    event = {"schema": "hebe.campaign.event/1", "event": "interrupted", "job": "a-40", "n": last["n"] + 1,
             "at_us": last["at_us"] + 10**12}
    with path.open("ab") as journal:
        journal.write(rfc8785.dumps(event | {"link": link_of(last["link"], event)}) + b"\n")
    code, refused = hebe.json("resume", "floor", *SIM)
    assert code == 3 and "--accept-clock" in refused["refused"]["next"], refused
    assert hebe("resume", "floor", *SIM, "--accept-clock").returncode == 0
    done_once(hebe, 40)
    assert any(e.get("clock_accepted") for e in events(hebe, out))
