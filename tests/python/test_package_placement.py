"""hebe.load_placement: measured costs of a machine's members, held against the machine of now before they are given."""

from __future__ import annotations

import json
import math

import hebe
import pytest
from package import ROOT, everything_below, needs_library

pytestmark = needs_library
H200 = ROOT / "evidence" / "h200-tunes" / "placement" / "placement.json"
THEN = {"board": "NVIDIA H200", "driver": "580.159.04", "os": "Ubuntu 24.04.3 LTS", "hebe": "0.1.0",
        "meters": {"nvml.samples.total_power": "primary"}, "date": "2026-11-30T14:00:00Z"}


def load(**now):
    return hebe.load_placement(H200, **{**THEN, **now})


def test_on_the_machine_that_it_was_measured_on_every_row_holds_as_measured():
    placement = load()
    assert len(placement) == len(placement.rows) >= 2 and not placement.rejected
    triton = next(row for row in placement if row.member == "triton")
    assert (triton.operation, triton.sizes, triton.dtype) == ("matmul", {"m": 256, "n": 4096, "k": 4096}, "fp16")
    assert triton.energy.value == pytest.approx(0.01243726) and triton.energy.low < triton.energy.value < triton.energy.high
    assert triton.time.value == pytest.approx(40.114e-6) and (triton.energy.unit, triton.time.unit) == ("J", "s")
    assert triton.idle_w == pytest.approx(124.19, abs=0.01) and triton.idle == "clocks_up" and triton.idle_w_error > 0
    for row in placement:
        assert row.provenance == row.energy.provenance == row.time.provenance == "measured"
        assert (row.outcome, row.reasons, row.meter_status) == ("holds", (), "primary") and "(measured)" in repr(row)


def test_what_is_not_given_is_not_checked():
    assert [row.outcome for row in hebe.load_placement(H200, date="2026-11-30T14:00:00Z")] == ["holds"] * len(load())
    assert hebe.load_placement(H200).rows  # the time of now, after it was measured


@pytest.mark.parametrize("now, reason", [
    ({"driver": "590.1"}, "driver was 580.159.04 and is 590.1"), ({"os": "Debian 12"}, "os was Ubuntu 24.04.3 LTS and is Debian 12"),
    ({"hebe": "0.2.0"}, "hebe was 0.1.0 and is 0.2.0"),
    ({"meters": {"nvml.samples.total_power": "usable"}}, "meter nvml.samples.total_power was primary and is usable"),
    ({"meters": {}}, "meter nvml.samples.total_power is not here"), ({"board_uuid": "sha256:0000000000000000"}, "board_uuid was sha256:bed5a1a1d1c62a64"),
    ({"date": "2026-12-30T14:00:00Z", "days": 7}, "it is 30 days old, more than 7")])
def test_what_has_changed_downgrades_a_row_by_name_and_it_is_measured_no_more(now, reason):
    placement = load(**now)
    assert placement.rows and not placement.rejected
    for row in placement:
        assert row.outcome == "downgraded" and any(reason in why for why in row.reasons), row
        assert row.provenance == row.energy.provenance == "estimated" and reason in repr(row)


@pytest.mark.parametrize("now, reason", [
    ({"board": "NVIDIA H100"}, "board was NVIDIA H200 and is NVIDIA H100"), ({"date": "2026-11-29T14:00:00Z"}, "is after 2026-11-29"),
    ({"meters": {"nvml.samples.total_power": "frozen"}}, "meter nvml.samples.total_power was primary and is frozen")])
def test_a_row_of_another_board_or_of_a_meter_that_is_not_believed_is_no_row(now, reason):
    placement = load(**now)
    assert not placement.rows and not list(placement) and placement.rejected
    assert all(row.outcome == "rejected" and reason in row.reasons[0] for row in placement.rejected)


def test_the_processors_row_is_held_against_the_processor(tmp_path):
    stored = json.loads(H200.read_text())
    stored["rows"][0].update(member="cpu", board="Xeon", dtype="fp32")
    file = tmp_path / "placement.json"
    file.write_text(json.dumps(stored))
    placement = hebe.load_placement(file, **{**THEN, "cpu": "Xeon", "driver": "590.1"})
    assert {row.member: row.outcome for row in placement} == {"cpu": "holds", "cublaslt": "downgraded"}
    assert [row.reasons for row in hebe.load_placement(file, cpu="EPYC").rejected] == [("board was Xeon and is EPYC",)]


def test_all_of_it_as_plain_values():
    plain = json.loads(json.dumps(load(driver="590.1").dict()))
    assert plain["rows"][0]["energy"]["provenance"] == "estimated" and plain["rejected"] == []


def broken(change):
    stored = json.loads(H200.read_text())
    change(stored["rows"][0])
    return json.dumps(stored)


@pytest.mark.parametrize("text", [
    "", "{", "[]", '{"schema": "hebe.placement/1", "rows": []}', '{"schema": "hebe.profile/1", "rows": [{}]}',
    broken(lambda row: row["energy_nj"].update(value=0)), broken(lambda row: row["meter"].update(status="frozen")),
    broken(lambda row: row["idle"].update(power_w=0)), broken(lambda row: row.pop("provenance"))])
def test_a_broken_file_is_refused_whole(tmp_path, text):
    file = tmp_path / "placement.json"
    file.write_text(text)
    with pytest.raises(hebe.Refused) as caught:
        hebe.load_placement(file)
    assert (caught.value.code, caught.value.exit) == ("bad_schema", 5) and caught.value.what
    assert everything_below(tmp_path) == [str(file)]


def test_a_file_that_is_not_there_is_named_with_what_writes_one(tmp_path):
    with pytest.raises(hebe.Refused, match="no such placement file") as caught:
        hebe.load_placement(tmp_path / "none.json")
    assert caught.value.code == "not_found" and "hebe calibrate placement" in caught.value.next


@pytest.mark.parametrize("name, value", [
    *((name, wrong) for name in ("board", "board_uuid", "cpu", "driver", "os", "hebe", "triton", "date") for wrong in (3, b"x", "")),
    *(("days", wrong) for wrong in (-1, 1.5, True, "3", 40_000)), ("date", "yesterday"),
    *(("meters", wrong) for wrong in ("nvml.power", ["nvml.power"], {"nvml.power": 3}, {3: "primary"}, math.nan))])
def test_a_wrong_argument_is_refused_by_its_name(name, value):
    with pytest.raises(hebe.Refused) as caught:
        load(**{name: value})
    assert caught.value.code == "bad_argument" and caught.value.exit == 2 and name in str(caught.value), caught.value


@pytest.mark.parametrize("wrong", [3, None])
def test_what_is_no_path_is_a_type_error(wrong):
    with pytest.raises(TypeError, match="file is"):
        hebe.load_placement(wrong)
