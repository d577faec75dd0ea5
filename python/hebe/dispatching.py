"""Dispatch by profile: which implementation costs least for these sizes. In: a profile (docs/profiles.md), or the
variable HEBE_PROFILE; out: a choice, or None to fall back.

Invariant: dispatch is off until a profile is loaded; a row that is missing, and a HEBE_PROFILE that cannot be loaded, are
said once as a warning and fall back. Uses libhebe_dispatch.so alone: no Arrow.
"""

from __future__ import annotations

import ctypes
import json
import os
import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import library
from .refused import Refused


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


class _Table:
    """The table of this process, loaded at most once from HEBE_PROFILE."""

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self.library: ctypes.CDLL | None = None
        self.missed: list[tuple[str, str]] = []
        self.asked_environment = False
        self.keep_alive: object = None  # the callback

    def loaded(self) -> ctypes.CDLL:
        if self.library is None:
            found = ctypes.CDLL(str(library.file_of("libhebe_dispatch.so")))
            found.hebe_dispatch_load.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
            found.hebe_dispatch_find.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_int64), ctypes.c_size_t,
                                                 ctypes.c_char_p, ctypes.POINTER(_Choice)]
            found.hebe_dispatch_dimensions.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
            found.hebe_dispatch_dimensions.restype = ctypes.c_size_t
            found.hebe_dispatch_on_missing.argtypes = [_MISSING, ctypes.c_void_p]
            found.hebe_dispatch_on_missing.restype = None
            # Told from within find(): the warning is given after it, where it may be raised.
            tell = _MISSING(lambda operation, dtype, user: self.missed.append((operation.decode(), dtype.decode())))
            found.hebe_dispatch_on_missing(tell, None)
            self.keep_alive, self.library = tell, found
        return self.library


_table = _Table()


def load_profile(file: str | os.PathLike[str], board: str | None = None) -> None:
    """Makes the rows of `board` (its name; default: this machine's GPU) the ones that `dispatch` sees. Raises `Refused`.

    A load that is refused leaves the profile that was there before.
    """
    if board is None:
        board = str(library.call("hebe_status", {"data_root": library.data_root(), "device": "auto"})["device"]["name"])
    with _table.guard:
        loaded = _table.loaded()
        _table.asked_environment = True  # what was asked for by name goes before the variable
    why = ctypes.create_string_buffer(_TEXT_BYTES)
    code = loaded.hebe_dispatch_load(os.fsencode(file), board.encode(), why, _TEXT_BYTES)
    if code != 0:
        raise Refused(_CODES.get(code, "internal"), why.value.decode(errors="replace"), os.fspath(file),
                      "see `hebe profile show`", exit=code)


def unload_profile() -> None:
    """Dispatch is off: `dispatch` finds nothing and warns of nothing, whatever HEBE_PROFILE says."""
    with _table.guard:
        _table.asked_environment = True
        if _table.library is not None:
            _table.library.hebe_dispatch_unload()


def _load_from_environment() -> None:
    """HEBE_PROFILE turns dispatch on (HEBE_BOARD: the rows of a board of that name). Once, whatever comes of it."""
    with _table.guard:
        asked, _table.asked_environment = _table.asked_environment, True
    file = os.environ.get("HEBE_PROFILE")
    if asked or not file:
        return
    try:
        load_profile(file, os.environ.get("HEBE_BOARD"))
    except Refused as refused:
        warnings.warn(f"hebe: HEBE_PROFILE is not used, so that every dispatch falls back: {refused}", RuntimeWarning, stacklevel=3)


def _in_order(sizes: Mapping[str, int] | Sequence[int], operation: str, dtype: str, loaded: ctypes.CDLL) -> list[int] | None:
    if not isinstance(sizes, Mapping):
        return [int(size) for size in sizes]
    names = ctypes.create_string_buffer(_TEXT_BYTES)
    loaded.hebe_dispatch_dimensions(operation.encode(), dtype.encode(), names, _TEXT_BYTES)
    order = names.value.decode().split(",") if names.value else []
    if not order:
        return []  # find() says that it is missing
    if set(order) != set(sizes):
        raise Refused("bad_argument", f"{operation} has the sizes {', '.join(order)}, not {', '.join(sizes)}", "sizes")
    return [int(sizes[name]) for name in order]


def dispatch(operation: str, sizes: Mapping[str, int] | Sequence[int], dtype: str) -> Choice | None:
    """The implementation that costs least for these sizes (in the profile's order, or by name). None: fall back.

    None as well where no profile is loaded. The first time that an operation and dtype have no row it warns.
    """
    if not _table.asked_environment:
        _load_from_environment()
    loaded = _table.library
    if loaded is None:
        return None
    ordered = _in_order(sizes, operation, dtype, loaded) or []
    found = _Choice()
    array = (ctypes.c_int64 * max(1, len(ordered)))(*ordered)
    hit = loaded.hebe_dispatch_find(operation.encode(), array, len(ordered), dtype.encode(), ctypes.byref(found))
    while _table.missed:
        missing, of_type = _table.missed.pop()
        warnings.warn(f"hebe: the profile has no row for {missing} {of_type} at these sizes: the caller's own choice is used "
                      "(said once)", RuntimeWarning, stacklevel=2)
    if hit == 0:
        return None
    return Choice(found.name.decode(), json.loads(found.configuration.decode()), found.artifact_sha256.decode() or None,
                  found.shape.decode(), found.energy_nj, found.provenance.decode())
