"""What went wrong inside Triton, said with the user's own file and line."""

from __future__ import annotations

import traceback as tracebacks
from typing import Any, Iterator

from hebe.worker.load_case import LoadedCase, local_line
from hebe.worker.protocol import Failure
from hebe.worker.stand_ins import unwrap


def compile_failure(error: BaseException, loaded: LoadedCase) -> Failure:
    """Failure(compile_failed): the innermost cause as the message, the innermost kernel line as `where`."""
    chain = list(_causes(error))
    lines = [line for link in chain if (line := _kernel_line(link, loaded))]
    where = lines[-1] if lines else local_line(error, loaded.sources())
    message = error_text(chain[-1])
    if not lines and isinstance(error, RuntimeError) and "PassManager" in message:
        message += " (MLIR's diagnostics are on the worker's stderr)"
    return Failure("compile_failed", message, where, "".join(tracebacks.format_exception(error)))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, then what it was raised from: Triton wraps once for every call from kernel to kernel."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__


def _kernel_line(error: BaseException, loaded: LoadedCase) -> str | None:
    """ "file:line" of a Triton CompilationError, whose own line counts from the function's `def`."""
    source, line = getattr(error, "src", None), getattr(getattr(error, "node", None), "lineno", None)
    if source is None or line is None:
        return None
    for function in _jit_functions(loaded):
        if function.src == source:
            return f"{function.fn.__code__.co_filename}:{_def_line(function) + line - 1}"
    return None


def _jit_functions(loaded: LoadedCase) -> Iterator[Any]:
    for module in loaded.modules():
        for value in list(vars(module).values()):
            function = unwrap(value)
            if function is not None:
                yield function


def _def_line(function: Any) -> int:
    """The line of `def`, which stands below the decorators."""
    for offset, text in enumerate(function.raw_src):
        if text.lstrip().startswith("def "):
            return function.starting_line_number + offset
    return function.starting_line_number


def error_text(error: BaseException) -> str:
    """The error's name and its own words, without what names temporary files."""
    if isinstance(error, SystemExit):
        return f"the kernel's code called sys.exit({error.code!r})"
    text = getattr(error, "error_message", None) or str(error)
    # ptxas errors end with a command that names temporary files, which are gone.
    text = text.split("\nRepro command:")[0].strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
