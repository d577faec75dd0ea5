"""The journal of a campaign: lines that were changed, lost, doubled or cut off, clocks set back, links planted."""

import json
import time

import pytest

from test_campaign import SIM, begun, events, kinds, plan, state_file


def break_line(path, number, change):
    lines = path.read_text().splitlines(keepends=True)
    lines[number] = change(lines[number])
    path.write_text("".join(lines))


@pytest.mark.parametrize("change", [
    lambda line: line.replace('"sealed"', '"started"') if '"sealed"' in line else line.replace('"event"', '"Event"'),
    lambda line: "",
    lambda line: line + line,
    lambda line: line.replace(":", ";", 1),
])
@pytest.mark.parametrize("number", [0, 3, -1])
def test_a_changed_lost_or_doubled_line_of_the_journal_is_found_and_named(hebe, tmp_path, change, number):
    out = plan(hebe, tmp_path)
    assert hebe("campaign-submit", "floor", *SIM).returncode == 0
    path = state_file(hebe, out)
    lost_last = number == -1 and change("x") == ""
    break_line(path, number, change)
    code, refused = hebe.json("resume", "floor", *SIM)
    if lost_last:  # "finished" is lost: nothing says that it ever was there, and it is made again
        assert code == 0 and kinds(hebe, out)[-1] == "finished"
    else:
        assert code == 5 and refused["refused"]["code"] == "digest_mismatch" and "state.jsonl:" in refused["refused"]["where"], refused


def test_a_line_that_a_crash_cut_off_never_counted(hebe, tmp_path):
    out = begun(hebe, tmp_path, "free")
    with state_file(hebe, out).open("a") as journal:
        journal.write('{"event":"sealed","job":"a-40","ru')
    assert hebe.json("queue-status")[0] == 0
    code, done = hebe.json("resume", "floor", *SIM)
    assert code == 0 and done["pending"] == 0 and len(hebe.runs()) == 40
    assert any(e.get("cut_off_bytes_before") for e in events(hebe, out))


def test_sealed_events_that_are_lost_cost_no_second_measurement(hebe, tmp_path):
    """The journal from an old copy: the directories know better."""
    out = plan(hebe, tmp_path)
    assert hebe("campaign-submit", "floor", *SIM).returncode == 0
    path = state_file(hebe, out)
    lines = path.read_text().splitlines(keepends=True)
    started = max(i for i, line in enumerate(lines) if '"started"' in line)
    path.write_text("".join(lines[:started + 1]))
    runs = hebe.runs()
    code, done = hebe.json("resume", "floor", *SIM)
    assert code == 0 and done["sealed_now"] == 0 and hebe.runs() == runs


def link_of(previous, event):
    import hashlib
    import rfc8785
    return hashlib.sha256(previous.encode() + b"\n" + rfc8785.dumps(event)).hexdigest()[:32]


def test_a_clock_that_was_set_back_is_refused_and_nothing_is_lost(hebe, tmp_path):
    out = begun(hebe, tmp_path, "free")
    path = state_file(hebe, out)
    last = json.loads(path.read_text().splitlines()[-1])
    event = {"schema": "hebe.campaign.event/1", "event": "interrupted", "job": "a-40", "n": last["n"] + 1,
             "at_us": last["at_us"] + 3_600_000_000}
    event["link"] = link_of(last["link"], {k: v for k, v in event.items()})
    import rfc8785
    with path.open("ab") as journal:
        journal.write(rfc8785.dumps(event) + b"\n")
    before = path.read_bytes()
    code, refused = hebe.json("resume", "floor", *SIM)
    assert code == 3 and refused["refused"]["code"] == "clock_jump" and "before the campaign's last event" in refused["refused"]["what"]
    assert path.read_bytes() == before


@pytest.mark.parametrize("planted", ["campaigns", "runs", "leases", "campaigns/{id}/state.jsonl", "campaigns/{id}/jobs", "runs/{year}"])
def test_a_symbolic_link_planted_in_the_data_root_is_refused_and_not_written_through(hebe, tmp_path, planted):
    out = plan(hebe, tmp_path)
    elsewhere = tmp_path / "elsewhere"
    place = hebe.root / planted.format(id=out["campaign"], year=time.strftime("%Y", time.gmtime()))
    if place.exists():
        place.rename(elsewhere)
    elif planted.endswith(".jsonl"):
        elsewhere.write_text("")
    else:
        elsewhere.mkdir()
    before = sorted(elsewhere.rglob("*")) if elsewhere.is_dir() else elsewhere.read_bytes()
    place.symlink_to(elsewhere)
    code, refused = hebe.json("campaign-submit", out["campaign"], *SIM)
    if "refused" in refused:
        assert refused["refused"]["code"] in ("unsafe_path", "not_found"), refused
    else:
        assert {j.get("refusal") for j in refused["jobs"]} >= {"unsafe_path"}, refused
    assert code != 0
    after = sorted(elsewhere.rglob("*")) if elsewhere.is_dir() else elsewhere.read_bytes()
    assert [p for p in after if p not in before and "lock" not in str(p)] == [] if isinstance(after, list) else after == before
    assert not hebe.runs() or planted != "runs"
