"""What measure, compare, do_bench_energy, autotune, status and run are given: a wrong argument is refused by the name that the
caller wrote, before anything runs, and none is cut to what fits."""

from __future__ import annotations

import math
import os

import hebe
import pytest
import triton
from hebe import library, measuring
from hebe.callables import Arm
from package import QUICK, QUICK_PAIRS, everything_below, needs_library, python

pytestmark = needs_library
MILLISECOND = hebe.sim.work(seconds=1e-3, watts=200)
NAMES_OF_REQUESTS = ("window_s", "warm_up_s", "idle_s", "energy_margin_percent", "latency_margin_percent", "JSON", "json")


def never() -> None:
    pytest.fail("it was called")


class Kernel:
    """As far as Triton's autotuner looks at one."""

    arg_names = ["x", "n", "BLOCK"]
    fn = staticmethod(never)

    def run(self, *args, **kwargs):
        never()


def autotune(fn=never, **options):
    """Refused where it is written, before a kernel is there."""
    hebe.autotune([triton.Config({"BLOCK": 1}), triton.Config({"BLOCK": 2})], key=["n"], do_bench=lambda *a, **k: never(), **options)
    pytest.fail("it was taken")


CALLS = {"measure": lambda **options: hebe.measure(never, **{**QUICK, **options}),
         "compare": lambda **options: hebe.compare(never, never, **{**QUICK_PAIRS, **options}),
         "do_bench_energy": lambda **options: hebe.do_bench_energy(never, **{**QUICK, **options}),
         "autotune": autotune,
         "status": lambda **options: hebe.status(**{"device": "sim", **options}),
         "run": lambda **options: hebe.run("campaign.toml", **{"device": "sim", **options})}

NO_NUMBERS = (math.nan, math.inf, -math.inf, 10**400, "1", b"1", True, [1.0], 1j)
NO_COUNTS = (2.5, 2.0, math.nan, 4294967300, 2**31, 0, -1, "2", True, [2])
NO_HANDLES = (1.5, -1, 2**64, "7", True)
NO_DEVICES = (1.5, True, -1, b"sim", ["sim"])
NO_FAULTS = (3, [3], [None], {"counter_frozen": 1, 2: 3})
EXPERIMENT = ("measure", "compare", "do_bench_energy", "autotune")

WRONG = [(call, name, value) for calls, names, values in (
    (EXPERIMENT, ("window", "warm_up"), NO_NUMBERS), (("measure", "do_bench_energy"), ("idle",), NO_NUMBERS),
    (("compare",), ("energy_margin", "time_margin"), NO_NUMBERS), (("do_bench_energy",), ("rep", "warmup"), NO_NUMBERS),
    (EXPERIMENT, ("pairs",), NO_COUNTS), (("measure", "compare", "do_bench_energy", "status"), ("stream",), NO_HANDLES),
    ((*EXPERIMENT, "status", "run"), ("device",), NO_DEVICES), ((*EXPERIMENT, "status", "run"), ("faults",), NO_FAULTS),
    (("measure", "compare"), ("tier",), (3, b"smoke-v1")))
    for call in calls for name in names for value in values]


@pytest.fixture(autouse=True)
def nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("HEBE_DATA_ROOT", str(tmp_path / "root"))
    yield
    assert everything_below(tmp_path) == []


@pytest.mark.parametrize("call, name, value", WRONG, ids=lambda x: repr(x)[:24])
def test_a_wrong_argument_is_refused_by_its_name_before_anything_runs(call, name, value):
    with pytest.raises(hebe.Refused) as caught:
        CALLS[call](**{name: value})
    refused = caught.value
    assert (refused.code, refused.exit, refused.where) == ("bad_argument", 2, name), refused
    assert refused.what.startswith(f"{name} is ") and refused.next, refused
    assert not any(word in str(refused) for word in NAMES_OF_REQUESTS) and len(str(refused)) < 400


@pytest.mark.parametrize("calls", [(-3, -3), (1.5, 2), (0, 1), (2**32, 1), (True, 1)])
def test_the_calls_that_an_arm_enqueues_are_whole_numbers_that_the_library_can_hold(monkeypatch, calls):
    monkeypatch.setattr(library, "call", lambda *arguments: never())
    arms = iter([Arm(lambda stream: None, count, "called", captured=False) for count in calls])
    monkeypatch.setattr(measuring, "sim_arm", lambda *arguments: next(arms))
    with pytest.raises(hebe.Refused, match="calls_per_enqueue") as caught:
        hebe.compare(never, never, **QUICK_PAIRS)
    assert (caught.value.code, caught.value.where) == ("bad_argument", "calls_per_enqueue")


def test_numbers_of_any_type_are_numbers():
    import numpy
    plain = hebe.measure(MILLISECOND, seed=3, **QUICK)
    typed = {**QUICK, "pairs": numpy.int32(2), "window": numpy.float32(0.5), "warm_up": 1, "idle": numpy.float64(0)}
    typed = hebe.measure(MILLISECOND, seed=3, **typed)
    assert plain.dict() == typed.dict()


def test_what_is_not_given_is_the_tiers():
    """As docs/python.md has it for a confirmation."""
    done = hebe.measure(MILLISECOND, device="sim", pairs=None, window=None, warm_up=None, seed=3, faults=None)
    assert done.dict() == hebe.measure(MILLISECOND, device="sim", pairs=2, window=0.5, warm_up=1.0, seed=3).dict()


@pytest.mark.parametrize("device", [0, None])
def test_an_index_is_a_device_and_none_is_the_default(device):
    """With no GPU: the refusals are those of "0" and "auto"."""
    code = ("import hebe, sys\ndevice = eval(sys.argv[1])\n"
            "for call in (lambda: hebe.status(device=device), lambda: hebe.measure(print, device=device),\n"
            "             lambda: hebe.compare(print, print, device=device), lambda: hebe.do_bench_energy(print, device=device),\n"
            "             lambda: hebe.run(sys.argv[2], device=device)):\n"
            "    try: call()\n"
            "    except hebe.Refused as r: print(r.code)\n")
    as_text = python(code, repr("auto" if device is None else str(device)), "nowhere", CUDA_VISIBLE_DEVICES="")
    given = python(code, repr(device), "nowhere", CUDA_VISIBLE_DEVICES="")
    assert given.stdout == as_text.stdout and len(given.stdout.split()) == 5, given.stderr


def test_the_index_of_a_device_is_what_the_library_is_given(monkeypatch):
    asked = []
    monkeypatch.setattr(library, "call", lambda name, request, *rest: asked.append(request["device"]) or {})
    for device in (0, 1, None, "sim:2"):
        with pytest.raises(KeyError):  # what is answered is of no matter
            hebe.status(device=device)
    assert asked == ["0", "1", "auto", "sim:2"]


def test_one_fault_is_a_list_of_one():
    with pytest.raises(hebe.Refused) as caught:
        hebe.measure(MILLISECOND, faults="counter_frozen@0", **QUICK)
    assert caught.value.code == "meter_frozen"
    assert hebe.status(device="sim", faults="foreign_process").why_not.code == "gpu_busy"
    assert hebe.status(device="sim", faults=(name for name in ["mig"])).why_not.code == "mig_enabled"


@pytest.mark.parametrize("member, value", [("window_s", math.nan), ("calls_per_enqueue", [math.inf]), ("seed", b"3"), ("spec", "\udcff")])
def test_a_request_that_json_cannot_say_is_refused_by_its_member_and_never_sent(member, value):
    with pytest.raises(hebe.Refused) as caught:
        library.call("hebe_status", {"data_root": "/nowhere", "device": "sim", member: value})
    assert (caught.value.code, caught.value.exit, caught.value.where) == ("bad_argument", 2, member)


def test_an_environment_that_is_no_text_is_no_reason_not_to_run(tmp_path):
    done = python("import hebe, sys\ntry: hebe.run('nowhere', device='sim')\nexcept hebe.Refused as r: print(r.code)",
                  A_NAME_IN_LATIN_1=os.fsdecode(b"\xe9\xff"))
    assert done.stdout == "not_found\n", done.stdout + done.stderr


def test_an_empty_data_root_is_not_the_working_directory():
    with pytest.raises(hebe.Refused, match="data_root") as caught:
        hebe.measure(hebe.sim.work(seconds=1e-3, watts=200), device="sim", data_root="")
    assert caught.value.code == "bad_argument"


def test_a_path_that_the_file_system_cannot_say_is_refused_by_name():
    with pytest.raises(hebe.Refused) as caught:
        hebe.load_profile("x\ud800", "NVIDIA H200")
    assert caught.value.code == "bad_argument" and "file" in str(caught.value)
