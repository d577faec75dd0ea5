"""Start the worker: guard its two streams, fix the environment, serve."""

from __future__ import annotations

import os
import signal
import sys
from typing import BinaryIO

#: Variables that would make Triton compile something else than the request says, or hide artifacts.
MEDDLING = (
    "TRITON_INTERPRET", "TRITON_KERNEL_OVERRIDE", "TRITON_KERNEL_DUMP", "TRITON_STORE_BINARY_ONLY",
    "TRITON_OVERRIDE_ARCH", "TRITON_CACHE_MANAGER", "TRITON_FRONT_END_DEBUGGING", "USE_IR_LOC",
)


def take_streams() -> tuple[BinaryIO, BinaryIO]:
    """Move the protocol to private descriptors, which neither user code nor a child process can reach by number.

    Afterwards descriptor 0 is empty and descriptor 1 is stderr, so that `print`, C code's printf and a stray `input()`
    cannot touch the stream. Returns (requests, answers).
    """
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)
    return requests, answers


def prepare_environment() -> None:
    """Make compiles reproducible: must run before Triton is imported."""
    # ptxas writes the source file's modification time into the cubin through -lineinfo.
    os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
    for name in MEDDLING:
        os.environ.pop(name, None)


def main() -> None:
    requests, answers = take_streams()
    prepare_environment()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    from hebe.worker import compile_case, methods, protocol

    def end(number: int, frame: object) -> None:
        compile_case.forget_private_cache()
        os._exit(128 + number)

    signal.signal(signal.SIGTERM, end)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup stays nohup
        signal.signal(signal.SIGHUP, end)
    try:
        protocol.serve(requests, answers, methods.METHODS)
    finally:
        compile_case.forget_private_cache()
    sys.stderr.flush()
    os._exit(0)  # a thread left behind by user code must not keep the process alive


if __name__ == "__main__":
    main()
