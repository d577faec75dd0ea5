"""What the public calls are given, checked by the names that the caller wrote. In: an argument; out: what the library takes.

Invariant: what does not fit is refused (bad_argument) before anything runs, and never cut to what fits: JSON has no NaN, the
library's counts have 32 bits, and C ends a text at its first 0. Nothing is loaded here.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable
from typing import Any

from .refused import Refused

#: The largest count and handle of the library (src/capi/request.cpp): int, uint32_t, uint64_t.
MOST_PAIRS, MOST_CALLS, MOST_HANDLE = 2**31 - 1, 2**32 - 1, 2**64 - 1
_LONGEST_SHOWN = 60


def shown(value: object) -> str:
    """As a refusal tells it: in one line, and not all of what is long."""
    try:
        text = repr(value)
    except Exception:  # a repr of the caller's, or an int of more digits than Python writes
        text = f"a {type(value).__name__} that cannot be shown"
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"


def refused(name: str, value: object, next: str) -> Refused:
    return Refused("bad_argument", f"{name} is {shown(value)}", name, next)


def index_or_none(value: object) -> int | None:
    """The whole number that `value` is; None: it is none. True is none: as a size or a count it is a slip."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def whole(name: str, value: Any, most: int, least: int = 0) -> int | None:
    """None stays None: the library's default."""
    if value is None:
        return None
    found = index_or_none(value)
    if found is None or not least <= found <= most:
        raise refused(name, value, f"give a whole number from {least} to {most}")
    return found


def number(name: str, value: Any) -> float | None:
    """A finite number of any type that has one. None stays None: the library's default."""
    if value is None:
        return None
    is_one = not isinstance(value, bool) and (hasattr(type(value), "__float__") or hasattr(type(value), "__index__"))
    try:
        found = float(value) if is_one else float("nan")
    except (OverflowError, TypeError, ValueError):
        found = float("nan")
    if not abs(found) < float("inf"):
        raise refused(name, value, "give a finite number")
    return found


def text(name: str, value: Any, example: str) -> str:
    if not isinstance(value, str):
        raise refused(name, value, f"give a text, such as {example!r}")
    return value


def device_of(value: str | int | None) -> str:
    """As the library selects it: an index is a text there, and None is "auto"."""
    if value is None:
        return "auto"
    index = index_or_none(value)
    if not isinstance(value, str) and (index is None or index < 0):
        raise refused("device", value, 'give "auto", "sim", a UUID, a PCI id or an index from 0')
    return value if isinstance(value, str) else str(index)


def faults_of(value: Iterable[str] | None) -> list[str]:
    """One text is one fault, not its letters."""
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    try:
        found = list(value)
    except TypeError:
        found = [value]  # type: ignore[list-item]
    if not all(isinstance(one, str) for one in found):
        raise refused("faults", value, 'give the names of faults, such as "counter_frozen@5" (docs/simulation.md)')
    return found


def _unbroken(name: str, value: object, encoded: bytes) -> bytes:
    if b"\0" in encoded:
        raise refused(name, value, "give it without the character 0, at which C ends a text")
    return encoded


def c_text(name: str, value: object, example: str) -> bytes:
    """For a function of C: TypeError where it is no text, refused where C would read another one."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is {shown(value)}, not a text such as {example!r}")
    try:
        return _unbroken(name, value, value.encode())
    except UnicodeEncodeError as error:
        raise refused(name, value, "give a text that UTF-8 can say") from error


def c_path(name: str, value: object) -> bytes:
    """As c_text, of what names a file."""
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f"{name} is {shown(value)}, not a path")
    try:
        return _unbroken(name, value, os.fsencode(value))
    except UnicodeEncodeError as error:
        raise refused(name, value, "give a path that the file system can say") from error


def path_text(name: str, value: object) -> str:
    """As c_path, of what goes into a request."""
    return os.fsdecode(c_path(name, value))
