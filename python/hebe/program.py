"""The `hebe` program from Python: what `hebe` and `python -m hebe` start once the wheel is installed.

In: the command line; out: the program in this process's place, with the Arrow that pyarrow brings and this interpreter as
its compile worker's. Invariant: nothing of the environment is changed that its user has set, but for LD_LIBRARY_PATH,
which is added to; where the program, or its Arrow, is not there, exit 3 says so and what to do.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from .refused import Refused

_PACKAGE = Path(__file__).resolve().parent


def places() -> list[Path]:
    """Where the program may lie: HEBE_LIBRARY_DIR alone if it is set, else this package, else a checkout's build."""
    chosen = os.environ.get("HEBE_LIBRARY_DIR")
    builds = _PACKAGE.parents[1] / "build"
    return [Path(chosen) / "hebe"] if chosen else [_PACKAGE / "bin" / "hebe", builds / "release" / "hebe", builds / "portable" / "hebe"]


def program() -> Path:
    """The first program that is there. Raises `Refused` (toolchain_unavailable) where there is none."""
    for place in places():
        if os.path.isfile(place):  # Path's raises where the folder may not be looked into
            return place
    raise Refused("toolchain_unavailable", "the program hebe is not in this installation of the package",
                  ", ".join(map(str, places())), "install a wheel that has it (scripts/wheel), or build a checkout (scripts/build)")


def arrow_folder() -> Path | None:
    """Where pyarrow keeps Arrow's libraries, without importing it; None: it is not installed, or brings none."""
    found = importlib.util.find_spec("pyarrow")
    if found is None or not found.submodule_search_locations:
        return None
    folder = Path(found.submodule_search_locations[0])
    return folder if any(folder.glob("libarrow.so.*")) else None


def environment(binary: Path, given: Mapping[str, str]) -> dict[str, str]:
    """What the program is started with: its libraries, the Python that compiles, and where its cases and studies are."""
    out = dict(given)
    arrow = arrow_folder()
    if arrow is not None:
        out["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [str(arrow), given.get("LD_LIBRARY_PATH", "")]))
    out.setdefault("HEBE_PYTHON", sys.executable)
    if binary == _PACKAGE / "bin" / "hebe":
        out.setdefault("HEBE_HOME", str(_PACKAGE))
        if arrow is None:
            raise Refused("toolchain_unavailable", "pyarrow, whose Arrow the program uses, is not installed", sys.prefix,
                          "pip install pyarrow==25.0.*")
    return out


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Becomes the program; never returns. Exit 3 where it cannot be started."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        binary = program()
        prepared = environment(binary, os.environ)
        try:
            os.execve(binary, ["hebe", *given], prepared)
        except OSError as error:
            raise Refused("toolchain_unavailable", f"the program cannot be started: {error.strerror}", str(binary),
                          "is the wheel of this machine's architecture? build one with scripts/wheel") from error
    except Refused as refused:
        print(f"hebe: {refused}", file=sys.stderr)
        sys.exit(refused.exit)
