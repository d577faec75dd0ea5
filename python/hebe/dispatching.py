"""Dispatch by profile: which implementation costs least for these sizes. In: a profile (docs/profiles.md), or the
variable HEBE_PROFILE; out: a choice, or None to fall back.

Invariant: dispatch is off until a profile is loaded; a row that is missing, and a HEBE_PROFILE that cannot be loaded, are
said once as a warning and fall back. Uses libhebe_dispatch.so alone, with no Arrow, but where no board is named: that one
libhebe.so is asked for.
"""

from __future__ import annotations

import ctypes
import json
import os
import threading
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

from . import arguments, library
from .refused import Refused, refused_from_text


class _Choice(ctypes.Structure):
    _fields_ = [("index", ctypes.c_uint32), ("name", ctypes.c_char_p), ("configuration", ctypes.c_char_p),
                ("artifact_sha256", ctypes.c_char_p), ("shape", ctypes.c_char_p), ("provenance", ctypes.c_char_p),
                ("energy_nj", ctypes.c_int64)]


_MISSING = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p)
_TEXT_BYTES = 4096
#: Codes of the exits that a load may have (docs/refusals.md): the C call gives the exit and the text.
_CODES = {2: "not_found", 3: "io_failed", 5: "bad_schema"}


@dataclass(frozen=True)
class Choice:
    """What to run: an implementation's name and configuration. `energy_nj` is a whole number of nanojoules, at least 1."""

    name: str
    configuration: Mapping[str, Any]
    artifact_sha256: str | None
    shape: str
    energy_nj: int
    provenance: str

    def __repr__(self) -> str:
        return f"Choice({self.name} {dict(self.configuration)} for {self.shape}: {self.energy_nj} nJ ({self.provenance}))"


def _declare(found: ctypes.CDLL) -> None:
    found.hebe_dispatch_load.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
    found.hebe_dispatch_unload.argtypes, found.hebe_dispatch_unload.restype = [], None
    found.hebe_dispatch_find.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_int64), ctypes.c_size_t, ctypes.c_char_p,
                                         ctypes.POINTER(_Choice)]
    found.hebe_dispatch_dimensions.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
    found.hebe_dispatch_dimensions.restype = ctypes.c_size_t
    found.hebe_dispatch_on_missing.argtypes, found.hebe_dispatch_on_missing.restype = [_MISSING, ctypes.c_void_p], None


class _Table:
    """The table of this process, loaded at most once from HEBE_PROFILE."""

    def __init__(self) -> None:
        #: Held over a whole load, so that who asks meanwhile waits for it.
        self.guard = threading.RLock()
        #: The thread that loads for HEBE_PROFILE: a signal's handler that dispatches in it cannot wait for what it interrupts.
        self.loading_thread: int | None = None
        self.library: ctypes.CDLL | None = None
        self.missed: list[tuple[str, str]] = []
        self.asked_environment = False  # read without the guard: true only once there is nothing to wait for
        self.keep_alive: object = None  # the callback

    def first_missed(self) -> tuple[str, str] | None:
        try:
            return self.missed.pop(0)
        except IndexError:  # nothing, or another thread has told it
            return None

    def loaded(self) -> ctypes.CDLL:
        if self.library is None:
            found = library.opened(library.file_of("libhebe_dispatch.so"), _declare)
            # Told from within find(): the warning is given after it, where it may be raised.
            tell = _MISSING(lambda operation, dtype, user: self.missed.append((operation.decode(), dtype.decode())))
            found.hebe_dispatch_on_missing(tell, None)
            self.keep_alive, self.library = tell, found
        return self.library


_table = _Table()


def _this_board() -> str:
    """The name of this machine's GPU, by libhebe.so: libhebe_dispatch.so knows of none."""
    try:
        return str(library.call("hebe_status", {"data_root": library.data_root(), "device": "auto"})["device"]["name"])
    except Refused as refused:
        otherwise = "" if refused.code == "no_device" or not refused.next else f"; or, for this machine's GPU: {refused.next}"
        raise Refused(refused.code, refused.what, refused.where,
                      'name the board whose rows count, such as "NVIDIA H200": board= of load_profile, HEBE_BOARD beside HEBE_PROFILE'
                      + otherwise, exit=refused.exit) from refused


def load_profile(file: str | os.PathLike[str], board: str | None = None) -> None:
    """Makes the rows of `board` (its name; default: this machine's GPU) the ones that `dispatch` sees. Raises `Refused`.

    A load that is refused leaves the profile that was there before.
    """
    path = arguments.c_path("file", file)
    of_board = arguments.c_text("board", _this_board() if board is None else board, "NVIDIA H200")
    with _table.guard:
        why = ctypes.create_string_buffer(_TEXT_BYTES)
        code = _table.loaded().hebe_dispatch_load(path, of_board, why, _TEXT_BYTES)
        if code != 0:
            raise refused_from_text(why.value.decode(errors="replace"), _CODES.get(code, "internal"), code, os.fsdecode(path),
                                    "see `hebe profile show`")
        _table.asked_environment = True  # what was asked for by name goes before the variable


def unload_profile() -> None:
    """Dispatch is off: `dispatch` finds nothing and warns of nothing, whatever HEBE_PROFILE says."""
    with _table.guard:
        _table.asked_environment = True
        if _table.library is not None:
            _table.library.hebe_dispatch_unload()


def _load_from_environment() -> None:
    """HEBE_PROFILE turns dispatch on (HEBE_BOARD: the rows of a board of that name). Once, whatever comes of it."""
    if _table.loading_thread == threading.get_ident():
        return
    told: Refused | None = None
    with _table.guard:
        _table.loading_thread = threading.get_ident()
        file = os.environ.get("HEBE_PROFILE")
        try:
            if not _table.asked_environment and file:
                load_profile(file, os.environ.get("HEBE_BOARD") or None)
        except Refused as refused:
            told = refused
        finally:
            _table.asked_environment, _table.loading_thread = True, None
    if told is not None:  # outside the guard: a warning may call anything, and be raised
        warnings.warn(f"hebe: HEBE_PROFILE is not used, so that every dispatch falls back: {told}", RuntimeWarning, stacklevel=3)


def _size(of: object, value: object) -> int:
    """Brought into 64 bits: no row has a size at their ends either (src/tune/dispatch_table.cpp: 2^62), so it misses as it would."""
    found = arguments.index_or_none(value)
    if found is None:
        raise TypeError(f"sizes[{of!r}] is {arguments.shown(value)}, not a whole number")
    return min(max(found, -2**63), 2**63 - 1)


def _whole(sizes: Mapping[str, SupportsIndex] | Sequence[SupportsIndex]) -> dict[str, int] | list[int]:
    if isinstance(sizes, Mapping):
        return {name: _size(name, size) for name, size in sizes.items()}
    if isinstance(sizes, (str, bytes, bytearray)) or not isinstance(sizes, Iterable):
        raise TypeError(f"sizes is {arguments.shown(sizes)}, not whole numbers in the profile's order or by name")
    return [_size(at, size) for at, size in enumerate(sizes)]


def _dimensions(of: tuple[bytes, bytes], loaded: ctypes.CDLL) -> list[str]:
    names = ctypes.create_string_buffer(_TEXT_BYTES)
    loaded.hebe_dispatch_dimensions(*of, names, _TEXT_BYTES)
    return names.value.decode().split(",") if names.value else []


def _in_order(sizes: dict[str, int] | list[int], operation: str, of: tuple[bytes, bytes], loaded: ctypes.CDLL) -> list[int]:
    if isinstance(sizes, list):
        return sizes
    order = _dimensions(of, loaded)
    if not order:
        return []  # find() says that it is missing
    if set(order) != set(sizes):
        raise Refused("bad_argument", f"{operation} has the sizes {', '.join(order)}, not {', '.join(map(str, sizes))}", "sizes",
                      "give each of them once, by its name")
    return [sizes[name] for name in order]


def dispatch(operation: str, sizes: Mapping[str, SupportsIndex] | Sequence[SupportsIndex], dtype: str) -> Choice | None:
    """The implementation that costs least for these sizes (in the profile's order, or by name). None: fall back.

    None as well where no profile is loaded. The first time that an operation and dtype have no row it warns. `Refused`
    (bad_argument): other sizes than the operation's rows of that dtype have, or another number of them. TypeError, with a profile
    and without: a size is no whole number (a bool is none), or a name no text.
    """
    of = arguments.c_text("operation", operation, "matmul"), arguments.c_text("dtype", dtype, "bf16")
    whole = _whole(sizes)
    if not _table.asked_environment:
        _load_from_environment()
    loaded = _table.library
    if loaded is None:
        return None
    ordered = _in_order(whole, operation, of, loaded)
    found = _Choice()
    array = (ctypes.c_int64 * max(1, len(ordered)))(*ordered)
    hit = loaded.hebe_dispatch_find(of[0], array, len(ordered), of[1], ctypes.byref(found))
    while (missing := _table.first_missed()) is not None:
        warnings.warn(f"hebe: the profile has no row for {missing[0]} {missing[1]} at these sizes: the caller's own choice is used "
                      "(said once)", RuntimeWarning, stacklevel=2)
    if hit < 0:
        raise Refused("bad_argument", f"{operation} has the sizes {', '.join(_dimensions(of, loaded))}, not {len(ordered)} of them",
                      "sizes", "give each of them once, in this order or by its name")
    if hit == 0:
        return None
    return Choice(found.name.decode(), json.loads(found.configuration.decode()), found.artifact_sha256.decode() or None,
                  found.shape.decode(), found.energy_nj, found.provenance.decode())
