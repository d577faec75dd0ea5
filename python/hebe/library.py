"""The C library behind this package, by ctypes. In: a request as a dict; out: the answer as a dict, or `Refused`.

Invariant: nothing is loaded before it is needed; libhebe.so uses the Arrow that pyarrow brings, so that one process has
one. Source: include/hebe/hebe.h.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .refused import OF_CALLABLES, OF_CAMPAIGNS, Refused, refused_from

#: int enqueue(void* user, void* stream, int arm)
ENQUEUE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
#: int interrupted(void* user)
INTERRUPTED = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)

_TEXT_OUT = ctypes.POINTER(ctypes.c_void_p)
_loading = threading.Lock()
_libraries: dict[str, ctypes.CDLL] = {}
_INSTALL = "install Hebe's wheel (scripts/wheel), build a checkout (scripts/build), or set HEBE_LIBRARY_DIR"


def folders() -> list[Path]:
    """Where the libraries may lie: HEBE_LIBRARY_DIR alone if it is set, else this package, else a checkout's build."""
    chosen = os.environ.get("HEBE_LIBRARY_DIR")
    here = Path(__file__).resolve().parent
    return [Path(chosen)] if chosen else [here, here.parents[1] / "build" / "release", here.parents[1] / "build" / "portable"]


def file_of(name: str) -> Path:
    """The first file of that name; toolchain_unavailable where there is none."""
    for folder in folders():
        if os.path.isfile(folder / name):  # Path's raises where the folder may not be read
            return folder / name
    raise Refused("toolchain_unavailable", f"{name} is not there", ", ".join(map(str, folders())), _INSTALL)


def opened(file: Path, declare: Callable[[ctypes.CDLL], None], no_arrow: str = "") -> ctypes.CDLL:
    """The library of that file, its functions declared. toolchain_unavailable: it is none, or not ours, or lacks its Arrow."""
    path = os.path.abspath(file)  # a name with no folder would be looked for elsewhere
    try:
        library = ctypes.CDLL(path)
        declare(library)
    except (OSError, AttributeError) as error:  # AttributeError: it has no such function
        said = str(error).replace(path, file.name)
        arrow = "arrow" in said or "parquet" in said
        raise Refused("toolchain_unavailable", f"{file.name} could not be loaded: {said}", path,
                      f"{no_arrow or 'its Arrow is another version'}: pip install pyarrow==25.0.*" if arrow
                      else f"it is no library of this Hebe and this machine: {_INSTALL}") from error
    return library


def _load_arrow() -> str:
    """Loads the Arrow that pyarrow brings, without importing it; returns why not, or nothing."""
    found = importlib.util.find_spec("pyarrow")
    if found is None or not found.submodule_search_locations:
        return "pyarrow is not installed"
    folder = Path(found.submodule_search_locations[0])
    for name in ("libarrow", "libparquet"):
        files = sorted(folder.glob(f"{name}.so.*"), key=lambda file: len(file.name))
        if not files:
            return f"pyarrow in {folder} brings no {name}.so"
        try:
            ctypes.CDLL(str(files[0]))
        except OSError as error:
            return f"pyarrow's {name} could not be loaded ({error})"
    return ""


def _declare(library: ctypes.CDLL) -> None:
    text, callback = ctypes.c_char_p, ctypes.c_void_p
    for name, arguments in {"hebe_status": [text, _TEXT_OUT],
                            "hebe_check": [text, _TEXT_OUT],
                            "hebe_load_placement": [text, _TEXT_OUT],
                            "hebe_plan": [text, INTERRUPTED, callback, _TEXT_OUT],
                            "hebe_run": [text, INTERRUPTED, callback, _TEXT_OUT],
                            "hebe_measure": [text, ENQUEUE, INTERRUPTED, callback, _TEXT_OUT],
                            "hebe_compare": [text, ENQUEUE, INTERRUPTED, callback, _TEXT_OUT]}.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, ctypes.c_int
    numbers = ctypes.POINTER(ctypes.c_double)
    library.hebe_sim_enqueue.argtypes = [callback, numbers, numbers, ctypes.c_size_t, ctypes.c_uint32, ctypes.c_double]
    library.hebe_sim_enqueue.restype = ctypes.c_int
    library.hebe_free.argtypes, library.hebe_free.restype = [ctypes.c_void_p], None
    library.hebe_version.argtypes, library.hebe_version.restype = [], ctypes.c_char_p


def load() -> ctypes.CDLL:
    """libhebe.so, loaded once. toolchain_unavailable: it, or the Arrow that it was built with, is not there or not fit."""
    with _loading:
        if "hebe" not in _libraries:
            file = file_of("libhebe.so")
            _libraries["hebe"] = opened(file, _declare, _load_arrow())
        return _libraries["hebe"]


def _encoded(request: dict[str, Any]) -> bytes:
    """A net under the checks of arguments: what is no JSON is refused by its member, for the library could only say where it
    stopped reading."""
    def sayable(value: object) -> bytes:
        return json.dumps(value, allow_nan=False, ensure_ascii=False).encode()

    try:
        return sayable(request)
    except (TypeError, ValueError) as error:  # UnicodeEncodeError too
        for name, value in request.items():
            try:
                sayable(value)
            except (TypeError, ValueError):
                raise Refused("bad_argument", f"{name} cannot be said in JSON: {error}", name,
                              "give finite numbers, and texts that UTF-8 can say") from error
        raise


def call(name: str, request: dict[str, Any], *arguments: object) -> dict[str, Any]:
    """One call of libhebe.so that answers. Raises `Refused`."""
    encoded = _encoded(request)
    library = load()
    answer = ctypes.c_void_p()
    code = getattr(library, name)(encoded, *arguments, ctypes.byref(answer))
    try:
        text = ctypes.string_at(answer).decode() if answer.value else ""
    finally:
        library.hebe_free(answer)
    parsed = json.loads(text) if text else {}
    if not isinstance(parsed, dict) or not parsed:
        raise Refused("internal", f"{name} ended with {code} and no answer", name, "please report it", exit=code)
    if "refused" in parsed:
        raise refused_from(parsed["refused"], OF_CALLABLES if name in ("hebe_measure", "hebe_compare", "hebe_check") else OF_CAMPAIGNS)
    return parsed


def without_none(**members: object) -> dict[str, Any]:
    """A request with only the members that were given."""
    return {name: value for name, value in members.items() if value is not None}


def data_root(given: str | os.PathLike[str] | None = None) -> str:
    """Where records live, as the program has it: given, HEBE_DATA_ROOT, the XDG data home."""
    if given is not None:
        if not os.fspath(given):
            raise Refused("bad_argument", "data_root is empty", "data_root", "name a folder: is a variable unset?")
        return os.path.abspath(given)
    if os.environ.get("HEBE_DATA_ROOT"):
        return os.path.abspath(os.environ["HEBE_DATA_ROOT"])
    xdg = os.environ.get("XDG_DATA_HOME", "")
    base = Path(xdg) if xdg.startswith("/") else Path(os.environ.get("HOME") or ".") / ".local/share"
    return os.path.abspath(base / "hebe")

