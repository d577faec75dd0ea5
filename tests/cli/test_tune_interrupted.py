"""hebe tune that its user interrupts: what was finished is written, verifies, and says what was not."""

import json
import signal
import subprocess

import pytest

from conftest import BINARY
from test_tune import TWO, profiles, spec_of, write
from test_tune_verify import Copy


def backend(name, passes, adds):
    space = {"passes": passes, "adds": [adds], "block": [256], "num_warps": [4]}
    return {"name": name, "kind": "triton", "case": "scaled_rows.py:case", "space": space}


def interrupted_at(hebe, line, *signals, **more):
    """Sends signals (SIGINT) as soon as a line of stderr has `line` in it; the exit code, what was printed, stderr."""
    process = hebe.start("--device", "sim", "--json", "tune", write(hebe.tmp / "spec", spec_of(**more)))
    seen = []
    for text in process.stderr:
        seen.append(text)
        if line in text:
            for number in signals or (signal.SIGINT,):
                process.send_signal(number)
            break
    out, err = process.communicate(timeout=120)
    return process.returncode, json.loads(out) if out.strip() else None, "".join(seen) + err


def test_the_shapes_that_were_finished_are_kept(hebe):
    code, out, err = interrupted_at(hebe, "hebe: tall: every candidate", shapes=TWO, pairs=1000, search="exhaustive",
                                    search_longest_window_s=0.5)
    assert code == 130, err
    wide, tall = out["tune"]["shapes"]
    assert wide["voided"] is None and tall["voided"]["code"] == "interrupted" and "--shape tall" in err
    assert all(c["cost"] is None for c in tall["candidates"])
    (file,) = profiles(hebe)
    assert [r["shape"] for r in json.loads(file.read_text())["rows"]] == ["m<=4096,n=256"]
    assert hebe("tune", "--verify", "").returncode == 0 and hebe("profile", "verify", file).returncode == 0


# A shell that hangs up and the kernel behind it each send SIGHUP, and what stops services SIGTERM as well: that is no "again".
@pytest.mark.parametrize("signals", [(signal.SIGHUP,), (signal.SIGHUP, signal.SIGHUP, signal.SIGHUP), (signal.SIGHUP, signal.SIGTERM),
                                     (signal.SIGTERM, signal.SIGHUP)])
def test_a_connection_that_drops_keeps_the_shapes_that_were_finished(hebe, signals):
    code, out, err = interrupted_at(hebe, "hebe: tall: every candidate", *signals, shapes=TWO, pairs=1000, search="exhaustive",
                                    search_longest_window_s=0.5)
    assert code == 130, err
    assert out["tune"]["shapes"][1]["voided"]["code"] == "interrupted"
    assert len(profiles(hebe)) == 1 and hebe("tune", "--verify", "").returncode == 0


def test_under_nohup_a_hangup_changes_nothing(hebe):
    process = subprocess.Popen(["nohup", BINARY, "--device", "sim", "--json", "tune", write(hebe.tmp / "spec", spec_of())],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=hebe.env)
    process.stderr.readline()
    process.send_signal(signal.SIGHUP)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err


def test_before_any_shape_is_finished_nothing_is_written(hebe):
    code, out, err = interrupted_at(hebe, "hebe: wide: every candidate", shapes=TWO, pairs=1000, search="exhaustive",
                                    search_longest_window_s=0.5)
    assert code == 130 and "interrupted" in err
    assert not profiles(hebe) and not list((hebe.root / "tunes").glob("*"))


def test_energy_against_latency_may_be_missing_and_the_choice_stands(hebe, tmp_path):
    """Two passes and many additions: less energy than three passes and few, and more time."""
    code, out, err = interrupted_at(
        hebe, 'against triton.scaled_rows {"adds":0,', backends=[backend("many", [2, 3], 256), backend("few", [3], 0)],
        baseline={"backend": "many", "configuration": {"passes": 3, "adds": 256, "block": 256, "num_warps": 4}}, pairs=1000,
        search="exhaustive", search_longest_window_s=2)
    assert code == 130, err
    finalists = out["tune"]["shapes"][0]["finalists"]
    assert finalists["latency_choice_differs"] and finalists["against_latency_choice"] is None and len(finalists["runs"]) == 1
    assert finalists["not_compared"]["code"] == "interrupted"
    (file,) = profiles(hebe)
    (row,) = json.loads(file.read_text())["rows"]
    assert row["verdict"] == "lower"
    verified = hebe("tune", "--verify", "")
    assert verified.returncode == 0 and "not checked  why no run pairs the choice with the fastest" in verified.stdout
    mine = Copy((hebe, out), tmp_path / "mine")
    record = mine.record()
    record["shapes"][0]["finalists"]["not_compared"]["code"] = "meter_frozen"
    mine.store(record)
    code, told = mine.verify(mine.id)
    assert code == 5, told  # a meter that fails is no reason to leave a comparison out
    del record["shapes"][0]["finalists"]["not_compared"]
    mine.store(record)
    mine.told("finalists.runs[1]", "recorded 1 pairs; the choice needs")
