"""hebe tune where something was not measured: what is voided, what is measured once more, what nobody writes."""

import json
import pathlib

import pytest

from test_tune import LISTS, TWO, profiles, rows_of, spec_of, tune, write


@pytest.mark.parametrize("fault, words", [
    ("samples_frozen@8", "frozen"), ("samples_empty@8", ""), ("counter_frozen@8", ""), ("counter_unsupported@8", ""),
    ("samples_zero@8", ""), ("nvml_lost@8", "lost")])
def test_a_candidate_that_ran_and_was_not_measured_voids_its_shape_only(hebe, fault, words):
    code, out = tune(hebe, shapes=TWO, backends=LISTS, simulated={"faults": {"wide": [fault]}})
    assert code == 3, out
    wide, tall = out["tune"]["shapes"]
    assert wide["voided"] and words in wide["voided"]["what"] and wide["search"] is None and wide["finalists"] is None
    assert all(c["cost"] is None and c["measured_s"] is None for c in wide["candidates"])
    assert tall["voided"] is None
    (row,) = rows_of(out)
    assert row["shape"] == "m<=8192,n=128"


@pytest.mark.parametrize("place, fault", [("wide", "nvml_lost@8"), ("wide", "thermal_throttle@8"), ("wide", "samples_frozen@8"),
                                          ("tall.finalists", "foreign_process@20")])
def test_a_redacted_tune_names_its_board_in_no_reason(hebe, place, fault):
    code, out = tune(hebe, "--redact", shapes=TWO, backends=LISTS, simulated={"faults": {place: [fault]}})
    assert code == 3, out
    (uuid,) = {f["value"] for f in hebe.json("--device", "sim", "doctor")[1]["facts"] if f["name"] == "device.uuid"}
    stored = [p for p in hebe.root.rglob("*.json*") if p.is_file() and p.parent.name != "leases"]
    assert pathlib.Path(out["record"]) in stored
    assert not [p for p in stored if uuid in p.read_text()]
    assert hebe("tune", "--verify", "").returncode == 0


def test_a_finalist_that_was_not_measured_voids_its_shape_too(hebe):
    code, out = tune(hebe, shapes=TWO, backends=LISTS, simulated={"faults": {"tall.finalists": ["counter_frozen"]}})
    assert code == 3, out
    assert [r["shape"] for r in rows_of(out)] == ["m<=4096,n=256"]
    assert out["tune"]["shapes"][1]["voided"]["code"] == "meter_frozen"


def test_finalists_that_the_board_was_not_steady_for_are_measured_once_more(hebe):
    """The room warms while they are; a search of many minutes is not given up for that."""
    more = {"backends": LISTS, "tier": "confirmation-v1", "pairs": 12, "window_s": 5, "warm_up_s": 30}
    file = write(hebe.tmp / "spec", spec_of(simulated={"faults": {"wide.finalists": ["ambient_rise@110"]}}, **more))
    done = hebe("--device", "sim", "--json", "tune", file)
    assert done.returncode == 0, done.stderr
    assert "temperature_drift_c" in done.stderr and "measured once more" in done.stderr
    (row,) = rows_of(json.loads(done.stdout))
    assert row["verdict"] == "lower" and len(hebe.runs()) == 1
    assert hebe("tune", "--verify", "").returncode == 0


def test_finalists_that_the_board_is_never_steady_for_void_their_shape(hebe):
    more = {"backends": LISTS, "tier": "confirmation-v1", "pairs": 12, "window_s": 5, "warm_up_s": 30}
    file = write(hebe.tmp / "spec", spec_of(simulated={"faults": {"wide.finalists": ["latency_jitter"]}}, **more))
    done = hebe("--device", "sim", "--json", "tune", file)
    assert done.returncode == 3, done.stderr
    assert done.stderr.count("measured once more") == 1 and "had not settled" in done.stderr
    assert not profiles(hebe) and not hebe.runs()


def test_where_no_shape_is_left_nothing_is_written(hebe):
    code, out = tune(hebe, "--sim-fault", "counter_frozen@4")
    assert code == 3
    assert not profiles(hebe) and not list((hebe.root / "tunes").glob("*")) and not hebe.runs()
    assert "profile" in json.dumps(out)


def test_the_reason_names_the_meter_and_what_is_not_written(hebe):
    done = hebe("--device", "sim", "--sim-fault", "counter_frozen@8", "tune", write(hebe.tmp / "spec", spec_of()))
    assert done.returncode == 3
    for words in ("ran and was not measured", "meter sim.samples.total_power: primary", "profile"):
        assert words in done.stderr, done.stderr


@pytest.mark.parametrize("place, fault, what", [
    ("wide", "counter_frozen@1", "in its warm-up"), ("wide", "samples_frozen@8", "ran and was not measured"),
    ("wide.finalists", "counter_frozen@4", " against triton.scaled_rows"), ("wide.finalists", "samples_zero@4", " against triton.scaled_rows"),
    ("wide.finalists", "counter_frozen@1", " against triton.scaled_rows")])
def test_a_refusal_names_candidate_meter_with_status_and_what_is_not_written(hebe, place, fault, what):
    code, out = tune(hebe, simulated={"faults": {place: [fault]}})
    assert code == 3, out
    refused = out["refused"]
    assert "triton.scaled_rows {" in refused["what"] and what in refused["what"], refused
    assert "; meter " in refused["what"] and ": primary" in refused["what"], refused
    assert refused["not_written"] == "the profile's row of wide" and not profiles(hebe), refused
