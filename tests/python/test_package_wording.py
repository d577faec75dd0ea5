"""A refusal of the library says in Python what Python's caller can do: arguments, not the program's options."""

from __future__ import annotations

import re

import hebe
import pytest
from hebe import library
from hebe.refused import OF_CALLABLES, OF_CAMPAIGNS, refused_from
from package import QUICK, needs_library

FLAG = re.compile(r"(?<![\w-])--[a-z]")
MILLISECOND = hebe.sim.work(seconds=1e-3, watts=200)


def told(what="", where="", next="", names=OF_CALLABLES):
    return refused_from({"code": "bad_argument", "what": what, "where": where, "next": next, "not_written": "", "exit": 2}, names)


@needs_library
@pytest.mark.parametrize("options, where, word", [
    ({"pairs": 1}, "pairs", "raise pairs to 2 or more"), ({"window": 0.1}, "window", "raise window to 0.5 or more$"),
    ({"window": 0.1, "tier": "confirmation-v1", "pairs": 12}, "window", 'use tier="smoke-v1"'),
    ({"warm_up": 0.1}, "warm_up", "raise warm_up to 1"), ({"pairs": 20000}, "pairs", "lower pairs"),
    ({"window": 601.0}, "window", "lower window"), ({"warm_up": 3601.0}, "warm_up", "lower warm_up"),
    ({"idle": -1.0}, "idle", "0 \\(none\\)"), ({"device": "sim:x"}, "device", "sim:9999")])
def test_what_the_protocol_does_not_allow_names_the_argument_that_was_given(options, where, word):
    with pytest.raises(hebe.Refused, match=word) as caught:
        hebe.measure(MILLISECOND, **{**QUICK, **options})
    assert caught.value.where == where and not FLAG.search(str(caught.value)), caught.value


@needs_library
def test_a_margin_names_both_arguments():
    with pytest.raises(hebe.Refused) as caught:
        hebe.compare(MILLISECOND, MILLISECOND, device="sim", energy_margin=-1.0)
    assert caught.value.where == "energy_margin, time_margin"


@needs_library
def test_what_kept_the_marginal_energy_from_being_known_names_arguments_too(monkeypatch):
    refusal = {"code": "gate_failed", "what": "too short", "where": "idle_s", "next": "raise --batch-seconds to 2 or more", "exit": 3}
    real = library.call
    monkeypatch.setattr(library, "call", lambda *request: {**real(*request), "marginal_j": {"refused": refusal}})
    refused = hebe.measure(MILLISECOND, **QUICK).no_marginal
    assert (refused.where, refused.next) == ("idle", "raise window to 2 or more")


@needs_library
def test_a_specification_is_told_its_own_keys(tmp_path):
    """The calls of a campaign have no argument `pairs`: its file has."""
    spec = tmp_path / "short.toml"
    spec.write_text('schema = "hebe.campaign.spec/1"\nname = "short"\nsession = "free"\n[defaults]\ntier = "smoke-v1"\npairs = 2\n'
                    'window_s = 0.1\nparameters = { n = 4096 }\n[[jobs]]\nid = "a"\n')
    with pytest.raises(hebe.Refused) as caught:
        hebe.run(spec, device="sim", data_root=tmp_path / "root")
    assert "raise window_s to 0.5 or more" in caught.value.next and not FLAG.search(str(caught.value)), caught.value


@pytest.mark.parametrize("program, python", [
    ("raise --batch-seconds to 2.50 or more", "raise window to 2.50 or more"),
    ("raise --pairs to 2 or more, or use --protocol-tier smoke-v1 to check the plumbing",
     'raise pairs to 2 or more, or use tier="smoke-v1" to check the plumbing'),
    ("there is none here: use --device sim", 'there is none here: use device="sim"'),
    ("end them, or choose another --device", "end them, or choose another device"),
    ("let it settle, or warm up longer with --warm-up-seconds", "let it settle, or warm up longer with warm_up"),
    ("free space on that file system, or choose another --data-root", "free space on that file system, or choose another data_root"),
    ("give one --device, or plan the campaign with session = \"free\"", "give one device, or plan the campaign with session = \"free\""),
])
def test_an_option_is_told_as_the_argument(program, python):
    for names in (OF_CALLABLES, OF_CAMPAIGNS):
        keys = python.replace("raise window", "raise window_s").replace("with warm_up", "with warm_up_s")
        expected = python if names is OF_CALLABLES else keys
        assert told(next=program, names=names).next == expected and told(what=program, names=names).what == expected


@pytest.mark.parametrize("text", ["work on the study as a whole: without --task", "run `hebe doctor --device sim` to see them",
                                  "`hebe resume --accept-clock`", "--pairs-of-shoes", "a--device", "the window_seconds of it"])
def test_a_command_and_what_has_no_argument_stay(text):
    assert told(what=text).what == text


def test_where_an_option_was_wrong_is_the_argument():
    assert told(where="--energy-margin, --latency-margin").where == "energy_margin, time_margin"
    assert told(where="--sim-fault").where == "faults" and told(where="idle_s").where == "idle"
    assert told(where="/data/--device/idle_s").where == "/data/--device/idle_s", "a path is no option"
