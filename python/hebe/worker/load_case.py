"""Load a case file so that nothing of it depends on where it lies or when it was written.

The file and the modules that it imports from its own folder are read from disk at every request and compiled under
their names relative to that folder. So a changed file is never stale, and the paths that Triton puts into IR are the
same in every checkout. While a case is open its folder can be imported from; on closing, its modules are forgotten
and the working directory and environment are as before. A package in the folder needs an `__init__.py`.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib.abc
import importlib.util
import inspect
import linecache
import os
import re
import sys
import traceback as tracebacks
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator

from hebe.case import Case
from hebe.worker.protocol import Failure


class FolderImporter(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports modules of one folder. `sources` maps the relative name of every file that ran to its bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sources: dict[str, bytes] = {}
        self.modules: dict[str, types.ModuleType] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        parts = name.split(".")
        if len(parts) > 1 and parts[0] not in self.modules:
            return None  # a submodule of a package from elsewhere, even if that lies below this folder
        base = self.folder.joinpath(*parts)
        for file, is_package in ((base / "__init__.py", True), (base.with_suffix(".py"), False)):
            if file.is_file():
                spec = importlib.util.spec_from_file_location(
                    name, file, loader=self, submodule_search_locations=[str(base)] if is_package else None)
                spec.has_location = True
                spec.cached = None
                return spec
        return None

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        self.run(module, Path(module.__spec__.origin))

    def run(self, module: types.ModuleType, file: Path, part: Callable[[str, str], ast.Module] | None = None) -> None:
        """Execute `file`, or the `part` of it that a function of its text and name chooses, as `module`. Only the
        file's relative name reaches the code object, and so Triton's locations."""
        name = file.relative_to(self.folder).as_posix()
        data = file.read_bytes()
        self.sources[name] = data
        self.modules[module.__name__] = module
        text = _decode(data, name)
        # No modification time: linecache.checkcache then leaves the entry alone, and inspect.getsource works.
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        exec(compile(part(text, name) if part else text, name, "exec", dont_inherit=True), module.__dict__)

    def digests(self) -> dict[str, str]:
        """SHA-256 of every file that ran, by relative name."""
        return {name: hashlib.sha256(data).hexdigest() for name, data in sorted(self.sources.items())}


def _decode(data: bytes, name: str) -> str:
    """A Python file's text; every way in which it can fail to be one is a SyntaxError with the file's name."""
    try:
        text = importlib.util.decode_source(data)
    except (SyntaxError, UnicodeDecodeError) as error:
        raise SyntaxError(str(error), (name, 1, None, None)) from None
    if "\0" in text:
        raise SyntaxError("the file contains a null byte", (name, text[:text.index("\0")].count("\n") + 1, None, None))
    return text


@dataclass
class LoadedCase:
    """A case file that has run. Usable inside `open_case` only.

    `kernel_files` holds the files that a sourced kernel came from (hebe.worker.sourced_kernel), if the case has one.
    """

    path: Path
    importer: FolderImporter
    module: types.ModuleType
    kernel_files: FolderImporter | None = None

    @property
    def file_name(self) -> str:
        return self.path.name

    @property
    def data(self) -> bytes:
        return self.importer.sources[self.file_name]

    def digests(self) -> dict[str, str]:
        """SHA-256 of every local file that ran, by relative name: the case file and its helpers."""
        return self.importer.digests()

    def sources(self) -> dict[str, bytes]:
        """Every file whose lines may be named in an error, by relative name."""
        return {**(self.kernel_files.sources if self.kernel_files else {}), **self.importer.sources}

    def modules(self) -> list[types.ModuleType]:
        """Every module that may hold the case's kernel and the functions that it calls."""
        others = self.kernel_files.modules.values() if self.kernel_files else ()
        return [*self.importer.modules.values(), *others]

    def function(self, name: str) -> Callable:
        """The case function; raises Failure(case_not_found) listing the functions that are there."""
        found = getattr(self.module, name, None)
        if inspect.isfunction(found):
            return found
        here = [key for key, value in vars(self.module).items()
                if inspect.isfunction(value) and value.__module__ == self.module.__name__]
        raise Failure("case_not_found",
                      f"{self.file_name} has no function {name!r}; it has: {', '.join(here) or 'none'}")

    def make(self, function: Callable, values: dict[str, Any]) -> Case:
        """Call the case function; raises Failure(case_error)."""
        with self.running():
            made = function(**values)
        if not isinstance(made, Case):
            raise Failure("case_error", f"{function.__name__}() returned {type(made).__name__}, not a hebe.case.Case",
                          f"{self.file_name}:{function.__code__.co_firstlineno}")
        return made

    def running(self, kind: str = "case_error") -> contextlib.AbstractContextManager[None]:
        return running_user_code(self.importer.sources, kind)


@contextlib.contextmanager
def open_case(path: str) -> Iterator[LoadedCase]:
    """Load the case file at an absolute path; raises Failure (bad_request, case_not_found, case_syntax, case_error)."""
    file = Path(path)
    if not file.is_absolute():
        raise Failure("bad_request", f"params.case: {path!r} is not an absolute path")
    if not file.is_file():
        raise Failure("case_not_found", f"there is no file {path}")
    importer = FolderImporter(file.parent)
    # A name that cannot hide a real module, whatever the file is called ("numpy.py", "json.py").
    module = types.ModuleType("hebe_case_" + re.sub(r"\W", "_", file.stem))
    module.__spec__ = importlib.util.spec_from_file_location(module.__name__, file, loader=importer)
    module.__loader__ = importer
    module.__file__ = str(file)
    with _isolated(importer):
        sys.modules[module.__name__] = module
        with running_user_code(importer.sources, "case_error"):
            importer.run(module, file)
        yield LoadedCase(file, importer, module)


@contextlib.contextmanager
def _isolated(importer: FolderImporter) -> Iterator[None]:
    """Let the folder be imported from; afterwards undo what user code may have done to the process."""
    environment, search = dict(os.environ), list(sys.path)
    directory = os.open(".", os.O_RDONLY)
    sys.meta_path.insert(0, importer)
    try:
        yield
    finally:
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not importer]
        for name, module in importer.modules.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]
        sys.path[:] = search
        os.fchdir(directory)
        os.close(directory)
        if dict(os.environ) != environment:
            os.environ.clear()
            os.environ.update(environment)


@contextlib.contextmanager
def running_user_code(local: dict[str, bytes], kind: str) -> Iterator[None]:
    """Turn anything that user code raises, sys.exit and KeyboardInterrupt included, into Failure(kind).

    `where` is the deepest line that lies in one of the `local` files.
    """
    try:
        yield
    except Failure:
        raise
    except BaseException as error:
        line = local_line(error, local)
        text = tracebacks.format_exception(type(error), error, _from_first_local(error, local))
        if isinstance(error, SyntaxError) and error.filename in local:
            kind, line = "case_syntax", f"{error.filename}:{error.lineno or 1}"
        raise Failure(kind, _message(error), line, "".join(text)) from None


def local_line(error: BaseException, local: dict[str, bytes]) -> str | None:
    """ "file:line" of the deepest traceback frame in a local file, or None."""
    found = None
    for frame, number in tracebacks.walk_tb(error.__traceback__):
        if frame.f_code.co_filename in local:
            found = f"{frame.f_code.co_filename}:{number}"
    return found


def _from_first_local(error: BaseException, local: dict[str, bytes]) -> types.TracebackType | None:
    """The traceback without the worker's own frames at its top."""
    trace = error.__traceback__
    while trace and trace.tb_frame.f_code.co_filename not in local:
        trace = trace.tb_next
    return trace


def _message(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"the case's code called sys.exit({error.code!r})"
    try:
        text = str(error.msg if isinstance(error, SyntaxError) else error)
    except Exception:  # a user's own __str__ may fail too
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
