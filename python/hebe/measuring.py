"""Energy of Python callables. In: functions that enqueue GPU work; out: measurements and comparisons.

Invariant: one measurement at a time in a process; an exception of a callable, or Ctrl-C, ends it with the device idle
and nothing written; without a GPU it is refused, for simulation has to be asked for.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from . import arguments, library
from .callables import Arm, Function, plain_arm, sim_arm, torch_arm, torch_or_none
from .refused import Refused
from .results import Comparison, Measured, Measurement, comparison_from, measurement_from

PathLike = str | os.PathLike[str]


class _Ended:
    """What ended a measurement from the Python side: a callable's exception, or Ctrl-C."""

    def __init__(self) -> None:
        self.failure: BaseException | None = None
        self.signalled: tuple[int, FrameType | None] | None = None


class _Turn:
    """Whose turn it is to measure. While a callable is prepared it may measure itself, on its own thread: a kernel that is
    not tuned yet does so when it is first called. From `begins` on nobody else may."""

    def __init__(self) -> None:
        self._free = threading.Lock()
        self._thread: int | None = None
        self._preparing = False

    @contextmanager
    def taken(self) -> Iterator[None]:
        before = self._thread, self._preparing
        nested = before == (threading.get_ident(), True)
        if not nested and not self._free.acquire(blocking=False):
            raise Refused("lease_held", "another measurement of this process is not finished", "hebe",
                          "measure one thing at a time: two would be in each other's windows")
        self._thread, self._preparing = threading.get_ident(), True
        try:
            yield
        finally:
            self._thread, self._preparing = before if nested else (None, False)
            if not nested:
                self._free.release()

    def begins(self) -> None:
        self._preparing = False


_turn = _Turn()


@contextmanager
def _watching_for_interrupt(ended: _Ended) -> Iterator[None]:
    """Ctrl-C becomes a note while the library measures: raised inside a callback it would be lost in C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    if not callable(before):  # ignored, or not Python's to handle
        yield
        return

    def note(number: int, frame: FrameType | None) -> None:
        if ended.signalled is not None:  # the second one ends it at once
            before(number, frame)
        ended.signalled = (number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if ended.signalled is not None:
            before(*ended.signalled)


def call_watched(name: str, request: dict[str, Any], arms: Sequence[Arm] | None = None) -> dict[str, Any]:
    """A call of the library that Ctrl-C ends, and that re-raises what an arm raised."""
    ended = _Ended()

    def enqueue(user: int | None, stream: int | None, arm: int) -> int:
        if ended.signalled is not None:
            return 1
        try:
            assert arms is not None
            arms[arm].enqueue(stream or 0)
        except BaseException as error:
            ended.failure = error
            return 1
        return 0

    def interrupted(user: int | None) -> int:
        return int(ended.signalled is not None)

    callbacks: list[object] = [library.ENQUEUE(enqueue)] if arms is not None else []
    answer: dict[str, Any] | None = None
    with _watching_for_interrupt(ended):
        try:
            answer = library.call(name, request, *callbacks, library.INTERRUPTED(interrupted), None)
        except Refused:
            if ended.failure is None and ended.signalled is None:
                raise
    if ended.failure is not None:
        raise ended.failure
    if answer is None:  # Ctrl-C, and the handler that was there raised nothing
        raise KeyboardInterrupt
    return answer


def is_sim(device: str) -> bool:
    return device == "sim" or device.startswith("sim:")


def _stream_and_torch(device: str, stream: int | None) -> tuple[int | None, Any]:
    """The handle that the work goes to, and torch where it is torch's; refused before a library is asked to measure."""
    if is_sim(device):
        return None, None
    if stream is not None:
        return stream, None
    torch = torch_or_none()
    if torch is None or not torch.cuda.is_available():
        library.call("hebe_status", {"data_root": library.data_root(), "device": device})  # no GPU is the plainer reason
        raise Refused("bad_argument", "it is not known which CUDA stream the callable enqueues onto", "stream",
                      "import torch before, whose current stream is then used, or give stream=")
    torch.cuda.synchronize()
    return int(torch.cuda.current_stream().cuda_stream), torch


def _arm(function: Function, name: str, device: str, torch: Any, capture: bool) -> Arm:
    if not callable(function):
        raise TypeError(f"{name} is {type(function).__name__}, not a callable that takes no argument")
    if is_sim(device):
        return sim_arm(function, capture)
    return torch_arm(torch, function, capture) if torch is not None else plain_arm(function)


def checked(*, device: str | int | None, pairs: int | None, window: float | None, warm_up: float | None, seed: int | None,
            faults: Iterable[str] | None, data_root: PathLike | None, tier: str | None = None, stream: int | None = None,
            idle: float | None = None, energy_margin: float | None = None, time_margin: float | None = None) -> dict[str, Any]:
    """The arguments that measure, compare and autotune share, as the request's members. Refused by the argument's name, before
    anything is called."""
    if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool) or seed < 0):
        raise TypeError(f"seed is {seed!r}, not a whole number from 0 on")
    number = arguments.number
    return library.without_none(
        data_root=library.data_root(data_root), device=arguments.device_of(device),
        tier=None if tier is None else arguments.text("tier", tier, "smoke-v1"),
        pairs=arguments.whole("pairs", pairs, arguments.MOST_PAIRS, least=1), window_s=number("window", window),
        warm_up_s=number("warm_up", warm_up), idle_s=number("idle", idle), seed=None if seed is None else str(seed),
        stream=arguments.whole("stream", stream, arguments.MOST_HANDLE), faults=arguments.faults_of(faults) or None,
        energy_margin_percent=number("energy_margin", energy_margin), latency_margin_percent=number("time_margin", time_margin))


def checked_whole(**options: Any) -> None:
    """As `checked`, and by the library's own rules, which look for no GPU. Where it cannot be loaded they wait for the measurement."""
    asked = checked(**{"tier": "smoke-v1", **options})
    try:
        library.call("hebe_check", asked)
    except Refused as refused:
        if refused.code != "toolchain_unavailable":
            raise


def _measured(name: str, functions: dict[str, Function], capture: bool, asked: dict[str, Any]) -> tuple[dict[str, Any], list[Arm]]:
    """Prepares the callables and measures them: the library's answer, and the arms."""
    with _turn.taken():
        device = asked["device"]
        handle, torch = _stream_and_torch(device, asked.pop("stream", None))
        arms = [_arm(function, called, device, torch, capture) for called, function in functions.items()]
        calls = [arguments.whole("calls_per_enqueue", arm.calls, arguments.MOST_CALLS, least=1) for arm in (arms[0], arms[-1])]
        request = library.without_none(**asked, stream=handle, calls_per_enqueue=calls)
        _turn.begins()
        return call_watched(name, request, arms), arms


def measure(fn: Function, *, device: str | int | None = "auto", tier: str = "smoke-v1", pairs: int | None = 4,
            window: float | None = 1.0, warm_up: float | None = 3.0, idle: float = 2.0, capture: bool = True,
            seed: int | None = None, stream: int | None = None, faults: Iterable[str] = (),
            data_root: PathLike | None = None) -> Measurement:
    """Energy and time of one call of `fn()`, which enqueues work onto torch's current stream (or `stream`, a CUstream).

    It is measured against itself: `pairs` pairs of windows of `window` s after `warm_up` s and until the board has
    settled (None: the tier's minimum). `idle`: s of an idle window before it, for the marginal energy; 0: none.
    `device`: auto (torch's current GPU; None as well), a UUID, a PCI id, an index in the order of PCI ids, or "sim" (with
    `faults`, one or several, docs/simulation.md). Raises what `fn` raises, `Refused` (bad_argument, no_device, gpu_busy,
    meter_…, gate_failed …), TypeError.
    """
    asked = checked(device=device, tier=tier, pairs=pairs, window=window, warm_up=warm_up, idle=idle, seed=seed, stream=stream,
                    faults=faults, data_root=data_root)
    answer, arms = _measured("hebe_measure", {"fn": fn}, capture, asked)
    return measurement_from(answer, arms[0].how)


def compare(fn_a: Function, fn_b: Function, *, device: str | int | None = "auto", tier: str = "smoke-v1", pairs: int | None = 8,
            window: float | None = 1.0, warm_up: float | None = 3.0, energy_margin: float = 0.5, time_margin: float = 0.25,
            capture: bool = True, seed: int | None = None, stream: int | None = None, faults: Iterable[str] = (),
            data_root: PathLike | None = None) -> Comparison:
    """`fn_b()` against `fn_a()`: randomised adjacent windows, gates, interval, equivalence within the margins (percent).

    With tier="confirmation-v1", pairs=None, window=None and warm_up=None it is the protocol's own confirmation. The rest
    is as `measure` has it.
    """
    asked = checked(device=device, tier=tier, pairs=pairs, window=window, warm_up=warm_up, seed=seed, stream=stream, faults=faults,
                    data_root=data_root, energy_margin=energy_margin, time_margin=time_margin)
    answer, arms = _measured("hebe_compare", {"fn_a": fn_a, "fn_b": fn_b}, capture, asked)
    return comparison_from(answer, (arms[0].how, arms[1].how))


_MODES: dict[str, Callable[[Sequence[float]], float]] = {
    "min": min, "max": max, "mean": lambda x: sum(x) / len(x), "median": lambda x: quantile_of(x, 0.5)}


def quantile_of(values: Sequence[float], q: float) -> float:
    """Linear between the two nearest of the sorted values."""
    if not 0 <= q <= 1:
        raise ValueError(f"a quantile is from 0 to 1, not {q}")
    ordered = sorted(values)
    at = q * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])


def do_bench_energy(fn: Function, warmup: float | None = None, rep: float | None = None,
                    grad_to_none: Iterable[Any] | None = None, quantiles: Sequence[float] | None = None,
                    return_mode: str = "mean", **options: Any) -> Any:
    """Joules of one call of `fn()`, as `triton.testing.do_bench` gives milliseconds: a number, or one for each of `quantiles`.

    Over windows, which are long enough for the meter: a quantile is of windows, not of calls. `warmup` and `rep` are in
    ms as there, and are only ever lengthened (to 3 s, and to 8 windows of 1 s). `return_mode`: min, max, mean, median or all
    (a list). Each number is a float that knows its unit and provenance. `options`: as `measure` has them.
    """
    if return_mode not in (*_MODES, "all"):
        raise ValueError(f"return_mode is min, max, mean, median or all, not {return_mode!r}")
    for name, default, given, milliseconds, parts in (("window", 1.0, "rep", rep, 8), ("warm_up", 3.0, "warmup", warmup, 1)):
        seconds = options[name] = arguments.number(name, options.get(name, default))
        longer = arguments.number(given, milliseconds)
        if seconds is not None and longer is not None:
            options[name] = max(seconds, longer * 1e-3 / parts)
    options.setdefault("idle", 0.0)
    held = None if grad_to_none is None else list(grad_to_none)

    def without_gradients() -> None:
        for tensor in held or ():
            tensor.grad = None
        fn()

    done = measure(fn if held is None else without_gradients, **options)
    values = [row["energy_per_call_j"] for row in done.windows if row["accepted"]]

    def told(value: float) -> Measured:
        return Measured(value, "J", done.provenance)

    if quantiles is not None:
        found = [told(quantile_of(values, q)) for q in quantiles]
        return found[0] if len(found) == 1 else found
    if return_mode == "all":
        return [told(value) for value in values]
    return told(_MODES[return_mode](values))
