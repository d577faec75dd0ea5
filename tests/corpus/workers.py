"""Jobs over processes that may crash: an LLVM assertion ends its process and its job, nothing else.

In: a function to start each process with, a function to run, jobs. Out: (job, result, error text or None), as they end.
"""

from __future__ import annotations

import multiprocessing
import time
import traceback
from multiprocessing.connection import Connection, wait
from typing import Any, Callable, Iterable, Iterator


def _serve(connection: Connection, start: Callable, start_arguments: tuple, run: Callable) -> None:
    start(*start_arguments)
    while True:
        job = connection.recv()
        if job is None:
            return
        try:
            connection.send((run(job), None))
        except BaseException as error:  # a kernel's own code may raise anything, sys.exit included
            connection.send((None, _reason(error)))


def _reason(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    text = " ".join(str(error).split()) or traceback.format_exc(limit=-2)
    return f"{type(error).__name__}: {text[-500:]}"


class _Process:
    def __init__(self, *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other, *arguments), daemon=True)
        self.process.start()
        other.close()
        self.job: Any = None
        self.started = 0.0

    def give(self, job: Any) -> None:
        self.job, self.started = job, time.monotonic()
        self.connection.send(job)

    def end(self) -> None:
        if self.process.is_alive() and self.job is None:
            self.connection.send(None)
            self.process.join(10)
        self.process.kill()
        self.process.join()
        self.connection.close()


def results(jobs: Iterable[Any], start: Callable, start_arguments: tuple, run: Callable, processes: int,
            limit_seconds: float) -> Iterator[tuple[Any, Any, str | None]]:
    left = list(jobs)[::-1]
    busy = [_Process(start, start_arguments, run) for _ in range(min(processes, len(left)))]
    try:
        for one in busy:
            one.give(left.pop())
        while busy:
            ready = wait([one.connection for one in busy], timeout=1.0)
            for one in list(busy):
                if one.connection in ready:
                    try:
                        made, error = one.connection.recv()
                    except EOFError:
                        one.process.join(10)
                        made, error = None, f"the process ended with status {one.process.exitcode}"
                elif time.monotonic() - one.started > limit_seconds:
                    made, error = None, f"not done after {limit_seconds:.0f} s"
                else:
                    continue
                job, alive = one.job, error is None or not error.startswith(("the process ended", "not done after"))
                busy.remove(one)
                if alive:
                    one.job = None
                if left:
                    if not alive:
                        one.end()
                        one = _Process(start, start_arguments, run)
                    one.give(left.pop())
                    busy.append(one)
                else:
                    one.end()
                yield job, made, error
    finally:
        for one in busy:
            one.end()
