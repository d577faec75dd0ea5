"""A Python callable as an arm of an experiment. In: a function that enqueues work; out: what one replay calls, how many
calls of the function that is, and how it came about.

Invariant: the function is captured into a CUDA graph where it can be, so that Python is not part of what is measured;
where it cannot, it is called as it is, and the result says why. A graph is kept alive as long as its arm.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from typing import Any

from . import sim
from .library import load
from .refused import Refused

#: What one replay of a captured arm should take: long beside Python's few microseconds a call.
_REPLAY_SECONDS = 2e-3
_MOST_CALLS = 1000
_WARM_UP_CALLS = 3

Function = Callable[[], object]


def calls_that_fill(seconds_per_call: float) -> int:
    """How often a function of that length is captured into one graph."""
    if not seconds_per_call > _REPLAY_SECONDS / _MOST_CALLS:  # also of what is no number: that is refused where it is timed
        return _MOST_CALLS
    return max(1, round(_REPLAY_SECONDS / seconds_per_call))


class Arm:
    """`enqueue(stream)` enqueues `calls` calls of the function; `how` says in words what that is."""

    def __init__(self, enqueue: Callable[[int], None], calls: int, how: str, captured: bool) -> None:
        self.enqueue, self.calls, self.how, self.captured = enqueue, calls, how, captured


class _Recorder:
    """Stands for stream capture on the simulated GPU."""

    def __init__(self) -> None:
        self.works: list[sim.Work] = []

    def take(self, work: sim.Work) -> None:
        if not work.capturable:
            raise _NotCapturable("the simulated work is not capturable")
        self.works.append(work)


class _NotCapturable(RuntimeError):
    pass


class _SimStream:
    """The simulated device's stream, for the length of one enqueue."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def take(self, work: sim.Work) -> None:
        _sim_enqueue(self.handle, [work], 1, work.host_seconds)


def _sim_enqueue(handle: int, works: Sequence[sim.Work], times: int, host_seconds: float) -> None:
    """One entry of the driver's queue: a launch, or a graph of `times` times all of `works`."""
    columns = [(ctypes.c_double * len(works))(*column) for column in zip(*((one.seconds, one.watts) for one in works))]
    code = load().hebe_sim_enqueue(ctypes.c_void_p(handle), *columns, len(works), times, host_seconds)
    if code != 0:
        told = ", ".join(f"{work.seconds} s and {work.watts} W" for work in works)
        raise Refused("bad_argument", f"simulated work of {told} was not taken",
                      "hebe.sim.work", "give at least 1e-9 s and at least 0 W, within the board's bounds", exit=code)


def _sim_called(function: Function, why: str) -> Arm:
    def enqueue(handle: int) -> None:
        with sim.streaming_to(_SimStream(handle)):
            function()

    return Arm(enqueue, 1, f"called ({why})", captured=False)


def sim_arm(function: Function, capture: bool) -> Arm:
    """On the simulated GPU. case_failed: the function enqueued nothing."""
    if not capture:
        return _sim_called(function, "capture=False")
    recorder = _Recorder()
    try:
        with sim.streaming_to(recorder):
            function()
    except _NotCapturable as error:
        return _sim_called(function, f"not captured: {error}")
    works = recorder.works
    if not works:
        raise Refused("case_failed", "the callable enqueued no simulated work", "hebe.sim.work",
                      "on the simulated GPU a callable calls what hebe.sim.work() gave")
    calls = calls_that_fill(sum(one.seconds for one in works))

    def enqueue(handle: int) -> None:
        _sim_enqueue(handle, works, calls, 0.0)  # a graph costs the host nothing that counts

    return Arm(enqueue, calls, f"captured, {calls} calls a graph", captured=True)


def torch_or_none() -> Any:
    """torch, where the program has imported it: nothing here imports it first."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and hasattr(torch, "cuda") else None


def _captured_graph(torch: Any, function: Function, calls: int) -> Any:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            function()
    return graph


def _seconds_per_replay(torch: Any, graph: Any) -> float:
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    graph.replay()
    begin.record()
    for _ in range(5):
        graph.replay()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) * 1e-3 / 5


def _warm_up(torch: Any, function: Function) -> None:
    """Beside the current stream, as capture needs it: compiles, allocates, and raises what the function raises."""
    current, side = torch.cuda.current_stream(), torch.cuda.Stream()
    side.wait_stream(current)
    with torch.cuda.stream(side):
        for _ in range(_WARM_UP_CALLS):
            function()
    current.wait_stream(side)
    torch.cuda.synchronize()


def _called(function: Function, why: str) -> Arm:
    def enqueue(handle: int) -> None:
        function()

    return Arm(enqueue, 1, f"called ({why})", captured=False)


def torch_arm(torch: Any, function: Function, capture: bool) -> Arm:
    """On torch's current stream. What the function raises on its own passes through; what only capture raises does not."""
    _warm_up(torch, function)
    if not capture:
        return _called(function, "capture=False")
    try:
        graph = _captured_graph(torch, function, 1)
        calls = calls_that_fill(_seconds_per_replay(torch, graph))
        if calls > 1:
            graph = _captured_graph(torch, function, calls)
    except Exception as error:
        torch.cuda.synchronize()
        reason = str(error).strip().splitlines() or [type(error).__name__]
        return _called(function, f"not captured: {reason[0]}")

    def enqueue(handle: int) -> None:
        graph.replay()

    return Arm(enqueue, calls, f"captured, {calls} calls a CUDA graph", captured=True)


def plain_arm(function: Function) -> Arm:
    """On a stream that the caller named: how to capture there is the caller's to know."""
    return _called(function, "its stream was given; capture needs torch")
