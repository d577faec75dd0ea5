"""Work for the simulated GPU, in place of a kernel's launch. In: how long it takes and what it draws; out: a callable.

Invariant: the work runs nowhere but on the simulated board's clock and meters, through the same experiment as a real
launch, and only while it is measured with `device="sim"`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from .refused import Refused


class Stream(Protocol):
    """What simulated work goes to while it is measured."""

    def take(self, work: Work) -> None: ...


class _Here(threading.local):
    stream: Stream | None = None


_here = _Here()


@contextmanager
def streaming_to(stream: Stream) -> Iterator[None]:
    """Within it, on this thread, simulated work goes to `stream`."""
    before, _here.stream = _here.stream, stream
    try:
        yield
    finally:
        _here.stream = before


@dataclass(frozen=True)
class Work:
    """One launch of `seconds` that draws `watts` beyond the idle board (200 W of its 700 W limit is a light kernel).

    `host_seconds` is what the call costs the host; `capturable=False` is work that no CUDA graph takes. Raises
    `Refused` (bad_argument) when it is called while nothing is measured on the simulated GPU.
    """

    seconds: float
    watts: float
    host_seconds: float = 0.0
    capturable: bool = True

    def __call__(self) -> None:
        if _here.stream is None:
            raise Refused("bad_argument", "simulated work was called where nothing is measured on the simulated GPU",
                          "hebe.sim.work", 'measure it: hebe.measure(work, device="sim")')
        _here.stream.take(self)


def work(*, seconds: float, watts: float, host_seconds: float = 0.0, capturable: bool = True) -> Work:
    """A callable that stands for one launch on the simulated GPU: s, W beyond idle, s of the host's time."""
    return Work(seconds, watts, host_seconds, capturable)
