"""hebe.measure, compare and do_bench_energy on the simulated GPU, whose truth is known."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

import hebe
import pytest
from package import QUICK, QUICK_PAIRS, ROOT, everything_below, needs_library, python

pytestmark = needs_library
MILLISECOND = hebe.sim.work(seconds=1e-3, watts=200)


@pytest.fixture(autouse=True)
def data_root(tmp_path, monkeypatch):
    """Nothing here may write: the root does not exist afterwards either."""
    root = tmp_path / "root"
    monkeypatch.setenv("HEBE_DATA_ROOT", str(root))
    yield root
    assert not root.exists()


def test_a_measurement_finds_the_truth_of_the_simulated_board():
    done = hebe.measure(MILLISECOND, **{**QUICK, "pairs": 4, "idle": 2.0})
    assert done.time.value == pytest.approx(1e-3, rel=0.002)
    assert done.time.low < done.time.value < done.time.high
    assert done.marginal.energy.value == pytest.approx(0.2, rel=0.03)  # 200 W for 1 ms; leakage grows a little with heat
    assert done.energy.value == pytest.approx(done.marginal.energy.value + done.marginal.idle_w.value * done.time.value, rel=0.001)
    assert done.power.value == pytest.approx(done.energy.value / done.time.value, rel=0.001)
    assert done.marginal.idle in ("context_open", "clocks_up") and 120 < done.marginal.idle_w.value < 130
    assert done.calls > 1000 and done.measured_s > 3.9


def test_every_value_says_that_it_is_simulated():
    done = hebe.measure(MILLISECOND, **QUICK)
    assert done.provenance == "simulated" and "(simulated)" in repr(done.energy) and "simulated" in repr(done)
    plain = done.dict()
    assert json.loads(json.dumps(plain))["energy"]["provenance"] == "simulated"
    table = done.arrow()
    assert table.schema.metadata[b"provenance"] == b"simulated" and set(table.column("provenance").to_pylist()) == {"simulated"}
    assert table.num_rows == len(done.windows) == 4
    assert "provenance is measured" in done.unmet and "what ran is frozen and checked" in done.unmet
    assert done.analysis["qualified"] is False


def test_without_an_idle_window_there_is_no_marginal_energy_and_no_zero():
    done = hebe.measure(MILLISECOND, **QUICK)
    assert done.marginal is None and done.no_marginal is None


@pytest.mark.parametrize("pairs", [False, True])
def test_a_data_frame_has_the_rows_as_numbers(pairs):
    import pandas  # of requirements.lock: a skip would hide that it is missing

    done = (hebe.compare(MILLISECOND, hebe.sim.work(seconds=1e-3, watts=210), **QUICK_PAIRS) if pairs
            else hebe.measure(MILLISECOND, **QUICK))
    frame, table = done.pandas(), done.arrow()
    assert list(frame.columns) == table.column_names and len(frame) == table.num_rows > 2
    assert set(frame["provenance"]) == {"simulated"}
    for name, kind in zip(table.column_names, table.schema.types, strict=True):
        if str(kind) in ("double", "int64"):
            assert pandas.api.types.is_numeric_dtype(frame[name]), name
            assert frame[name].tolist() == table.column(name).to_pylist(), name
    numbers = frame.select_dtypes("number")
    assert len(numbers.columns) >= 3 and numbers.notna().all(axis=None)


def test_pandas_that_is_not_there_is_named(monkeypatch):
    done = hebe.measure(MILLISECOND, **QUICK)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(hebe.Refused, match="pandas") as caught:
        done.pandas()
    assert caught.value.code == "toolchain_unavailable"


def test_equal_seeds_give_equal_measurements():
    once, again, other = (hebe.measure(MILLISECOND, seed=seed, **QUICK) for seed in (3, 3, 4))
    assert once.dict() == again.dict()
    assert once.energy.value != other.energy.value


def test_what_cannot_be_captured_is_called_and_the_result_says_so():
    captured = hebe.measure(MILLISECOND, **QUICK)
    called = hebe.measure(hebe.sim.work(seconds=1e-3, watts=200, capturable=False), **QUICK)
    asked = hebe.measure(MILLISECOND, capture=False, **QUICK)
    assert captured.how.startswith("captured") and called.how == "called (not captured: the simulated work is not capturable)"
    assert asked.how == "called (capture=False)"
    assert called.energy.value == pytest.approx(captured.energy.value, rel=0.005)


def test_a_host_that_is_slower_than_the_gpu_is_refused_and_a_graph_saves_it():
    slow = hebe.sim.work(seconds=50e-6, watts=200, host_seconds=120e-6)
    with pytest.raises(hebe.Refused, match="found the GPU waiting") as caught:
        hebe.measure(slow, capture=False, **QUICK)
    assert caught.value.code == "gate_failed" and "graph" in caught.value.next
    assert hebe.measure(slow, **QUICK).time.value == pytest.approx(50e-6, rel=0.01)


@pytest.mark.parametrize("seconds", [5e-5, 1e-4])
@pytest.mark.parametrize("of_b", [1.0, 0.5, 1.7])
def test_short_kernels_are_compared_whatever_the_seed(seconds, of_b):
    """A graph is one entry of the driver's queue: its many short calls do not make the host wait."""
    for seed in range(6):
        done = hebe.compare(hebe.sim.work(seconds=seconds, watts=200), hebe.sim.work(seconds=of_b * seconds, watts=200),
                            seed=seed, **QUICK_PAIRS)
        assert done.time.value == pytest.approx(100 * (of_b - 1), abs=0.5), seed
        assert done.how[1].startswith("captured, ")


def test_a_graph_of_several_short_launches_is_one_entry_too():
    def both() -> None:
        hebe.sim.work(seconds=3e-5, watts=200)()
        hebe.sim.work(seconds=1e-5, watts=100)()

    for seed in range(4):
        done = hebe.compare(both, hebe.sim.work(seconds=2e-5, watts=200), seed=seed, **QUICK_PAIRS)
        assert done.time.value == pytest.approx(-50, abs=0.5), seed


def test_several_launches_are_one_call():
    def both() -> None:
        hebe.sim.work(seconds=1e-3, watts=200)()
        hebe.sim.work(seconds=2e-3, watts=100)()

    done = hebe.measure(both, **{**QUICK, "idle": 2.0})
    assert done.time.value == pytest.approx(3e-3, rel=0.01) and done.marginal.energy.value == pytest.approx(0.4, rel=0.05)


def test_equal_arms_are_equivalent():
    done = hebe.compare(MILLISECOND, hebe.sim.work(seconds=1e-3, watts=200), **{**QUICK_PAIRS, "pairs": 12})
    assert done.verdict == "equivalent" and abs(done.energy.value) < 0.3
    assert done.provenance == "simulated" and "simulated" in repr(done)


@pytest.mark.parametrize(("seconds", "watts", "verdict", "percent"), [(1e-3, 180, "lower", -6.15), (1e-3, 220, "higher", 6.15)])
def test_different_arms_are_lower_or_higher_by_as_much_as_they_are(seconds, watts, verdict, percent):
    done = hebe.compare(MILLISECOND, hebe.sim.work(seconds=seconds, watts=watts), **QUICK_PAIRS)
    assert done.verdict == verdict
    assert done.energy.value == pytest.approx(percent, abs=0.3) and done.energy.low < done.energy.value < done.energy.high
    assert abs(done.time.value) < 0.2 and len(done.pairs) == 6
    assert done.arrow().column("pair").to_pylist() == list(range(6))


def test_do_bench_energy_gives_joules_in_the_manner_of_do_bench():
    options = {**QUICK, "pairs": 4}
    mean = hebe.do_bench_energy(MILLISECOND, **options)
    assert isinstance(mean, float) and mean == pytest.approx(0.327, rel=0.02)
    assert repr(mean).endswith("J (simulated)") and mean.provenance == "simulated"
    every = hebe.do_bench_energy(MILLISECOND, return_mode="all", **options)
    assert len(every) == 8 and min(every) <= mean <= max(every)
    middle, low, high = hebe.do_bench_energy(MILLISECOND, quantiles=[0.5, 0.2, 0.8], **options)
    assert low <= middle <= high
    assert hebe.do_bench_energy(MILLISECOND, quantiles=[0.5], **options) == middle
    assert hebe.do_bench_energy(MILLISECOND, return_mode="max", **options) == max(every)
    with pytest.raises(ValueError, match="median"):
        hebe.do_bench_energy(MILLISECOND, return_mode="mode", **options)


def test_do_bench_energy_forgets_gradients_before_each_call():
    class Tensor:
        grad: object = "kept"

    tensor = Tensor()
    hebe.do_bench_energy(MILLISECOND, grad_to_none=[tensor], **QUICK)
    assert tensor.grad is None


@pytest.mark.parametrize("fault, code", [("counter_frozen@0", "meter_frozen"), ("samples_unsupported", "meter_unsupported"),
                                         ("counter_unsupported", "meter_unsupported"), ("meter_lies", "meter_disagreement"),
                                         ("foreign_process", "gpu_busy"), ("mig", "mig_enabled"), ("nvml_lost", "device_error")])
def test_a_meter_or_board_that_is_not_fit_is_refused_by_name(fault, code):
    with pytest.raises(hebe.Refused) as caught:
        hebe.measure(MILLISECOND, faults=[fault], **QUICK)
    assert caught.value.code == code and caught.value.exit == 3 and caught.value.what


def test_an_exception_of_the_callable_comes_out_as_it_is_and_the_next_measurement_works():
    class Broken(Exception):
        pass

    calls = []

    def breaks_late() -> None:
        calls.append(1)
        if len(calls) > 200:
            raise Broken("after a while")
        MILLISECOND()

    with pytest.raises(Broken, match="after a while"):
        hebe.measure(breaks_late, capture=False, **QUICK)
    assert len(calls) == 201  # it is not called again
    assert hebe.measure(MILLISECOND, **QUICK).time.value == pytest.approx(1e-3, rel=0.01)


def test_a_callable_that_exits_ends_the_program_and_not_only_the_measurement():
    with pytest.raises(SystemExit):
        hebe.measure(lambda: sys.exit(3), capture=False, **QUICK)


def test_a_callable_that_enqueues_nothing_is_refused():
    with pytest.raises(hebe.Refused, match="enqueued no simulated work"):
        hebe.measure(lambda: None, **QUICK)
    with pytest.raises(hebe.Refused):  # the device cannot time it either
        hebe.measure(lambda: None, capture=False, **QUICK)


@pytest.mark.parametrize("wrong", [3, None, "work"])
def test_what_is_no_callable_is_a_type_error(wrong):
    with pytest.raises(TypeError, match="callable"):
        hebe.measure(wrong, **QUICK)
    with pytest.raises(TypeError, match="fn_b"):
        hebe.compare(MILLISECOND, wrong, **QUICK_PAIRS)


@pytest.mark.parametrize("options, names", [({"pairs": 1}, "pairs"), ({"pairs": "many"}, "pairs"), ({"window": 0.1}, "window"),
                                            ({"tier": "confirmation-v1", "pairs": 2}, "confirmation"), ({"faults": ["gremlins"]}, "gremlins"),
                                            ({"device": "sim:x"}, "sim:x"), ({"idle": -1.0}, "idle")])
def test_what_the_protocol_does_not_allow_is_refused_by_its_name(options, names):
    with pytest.raises(hebe.Refused, match=names) as caught:
        hebe.measure(MILLISECOND, **{**QUICK, **options})
    assert caught.value.exit in (2, 3)


@pytest.mark.parametrize("seed", [-1, 1.5, "7", True])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(TypeError, match="seed"):
        hebe.measure(MILLISECOND, seed=seed, **QUICK)


@pytest.mark.parametrize("bad", [{"seconds": 0, "watts": 1}, {"seconds": float("nan"), "watts": 1}, {"seconds": 1e-3, "watts": -1},
                                 {"seconds": 1e9, "watts": 1}])
def test_simulated_work_that_no_work_is_like_is_refused(bad):
    with pytest.raises(hebe.Refused):
        hebe.measure(hebe.sim.work(**bad), **QUICK)


def test_simulated_work_runs_only_while_it_is_measured():
    with pytest.raises(hebe.Refused, match="nothing is measured"):
        MILLISECOND()


def test_a_second_thread_is_refused_while_one_measures():
    outcome: list[object] = []
    inside, go_on = threading.Event(), threading.Event()

    def waits() -> None:
        inside.set()
        go_on.wait(20)
        MILLISECOND()

    def second() -> None:
        inside.wait(20)
        try:
            outcome.append(hebe.measure(MILLISECOND, **QUICK))
        except hebe.Refused as refused:
            outcome.append(refused.code)
        go_on.set()

    other = threading.Thread(target=second)
    other.start()
    done = hebe.measure(waits, capture=False, **QUICK)
    other.join(20)
    assert outcome == ["lease_held"] and done.time.value == pytest.approx(1e-3, rel=0.01)


def test_a_measurement_inside_a_measurement_is_refused():
    with pytest.raises(hebe.Refused) as caught:
        hebe.measure(lambda: hebe.measure(MILLISECOND, **QUICK), capture=False, **QUICK)
    assert caught.value.code == "lease_held"


def test_work_that_cannot_be_told_from_idle_has_no_marginal_energy_and_no_zero():
    done = hebe.measure(hebe.sim.work(seconds=1e-3, watts=0), **{**QUICK, "idle": 2.0})
    assert done.marginal is None and done.no_marginal.code == "gate_failed" and "sim.samples.total_power: usable" in done.no_marginal.what
    assert done.energy.value == pytest.approx(0.124, rel=0.02)  # the idle board's, over the call
    assert done.dict()["no_marginal"]["code"] == "gate_failed" and done.dict()["marginal"] is None


def test_ctrl_c_inside_a_callable_comes_when_the_measurement_has_ended():
    """Raised at any instruction of a callback it could be lost in C: the callable finishes its call first."""
    finished, before = [], signal.getsignal(signal.SIGINT)

    def interrupts() -> None:
        signal.raise_signal(signal.SIGINT)
        MILLISECOND()
        finished.append(1)

    with pytest.raises(KeyboardInterrupt):
        hebe.measure(interrupts, capture=False, **QUICK)
    assert finished == [1] and signal.getsignal(signal.SIGINT) is before


def test_the_handler_of_the_program_is_called_once_and_what_it_raises_comes_out():
    class Stop(Exception):
        pass

    seen = []

    def handler(number, frame):
        seen.append(number)
        raise Stop

    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(Stop):
            hebe.measure(lambda: (signal.raise_signal(signal.SIGINT), MILLISECOND()), capture=False, **QUICK)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]
    assert hebe.measure(MILLISECOND, **QUICK).calls > 0


ENDLESS = """
import sys, hebe
from package import QUICK
def told():
    if not told.done: told.done = True; print("measuring", flush=True)
    hebe.sim.work(seconds=2e-5, watts=200)()
told.done = False
try:
    hebe.measure(told, capture=False, **{**QUICK, "window": 600.0, "pairs": 1000})
except KeyboardInterrupt:
    done = hebe.measure(hebe.sim.work(seconds=1e-3, watts=200), **QUICK)
    print("stopped", round(done.time.value, 4), flush=True)
"""


def test_ctrl_c_stops_a_measurement_and_the_next_one_works(tmp_path):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), str(ROOT / "tests/python")])}
    child = subprocess.Popen([sys.executable, "-B", "-c", ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    try:
        assert child.stdout.readline() == "measuring\n"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        out, errors = child.communicate(timeout=60)
    finally:
        child.kill()
    assert out == "stopped 0.001\n" and child.returncode == 0, errors


def test_without_a_gpu_it_is_refused_and_never_simulated(data_root, tmp_path):
    before = everything_below(tmp_path)
    done = python("import hebe\n"
                  "for call in (lambda: hebe.status(), lambda: hebe.measure(print), lambda: hebe.compare(print, print),\n"
                  "             lambda: hebe.do_bench_energy(print), lambda: hebe.measure(print, stream=0)):\n"
                  "    try: print('measured', call())\n"
                  "    except hebe.Refused as r: print(r.code, r.exit, bool(r.what and r.next))",
                  CUDA_VISIBLE_DEVICES="", HEBE_DATA_ROOT=str(data_root))
    assert done.stdout.splitlines() == ["no_device 3 True"] * 5, done.stderr
    assert everything_below(tmp_path) == before


def test_the_status_says_whether_and_why_not():
    fit = hebe.status(device="sim")
    assert fit.measurable and fit.why_not is None and fit.provenance == "simulated" and fit.meter_status == "usable"
    unfit = hebe.status(device="sim", faults=["foreign_process"])
    assert not unfit.measurable and unfit.why_not.code == "gpu_busy"
