"""One JSON object a line, in and out.

    request   {"id": int, "method": str, "params": {...}}
    answer    {"id": int, "ok": true, "result": {...}}
              {"id": int or null, "ok": false, "error": {"kind", "message", "where", "traceback"}}

`where` is "file:line" or null; `traceback` is text or null. Integers beyond 2**53 and floats that are not finite are
written as strings, since a JSON reader may hold every number in a double. A line that is no request gets a
bad_request answer, and the worker goes on; the end of stdin and the method "shutdown" end it.
"""

from __future__ import annotations

import json
import math
import traceback as tracebacks
from typing import Any, BinaryIO, Callable, Mapping

VERSION = "hebe.worker/1"

KINDS = (
    "bad_request",  # not a request, or a parameter of the method is wrong
    "case_not_found", "case_syntax", "case_error",  # the case file, and exceptions out of its code
    "unknown_parameter", "bad_parameter",  # parameters of the case function
    "unknown_option", "bad_option",  # Triton's compile options
    "compile_failed", "reference_failed",
    "toolchain_unavailable",  # Triton, ptxas or numpy is missing or broken
    "no_space", "no_permission",  # the cache folder cannot be written
    "internal",  # a bug in the worker
)

Method = Callable[[dict], dict]


class Failure(Exception):
    """An error that goes to the caller as an answer. `kind` is one of KINDS."""

    def __init__(self, kind: str, message: str, where: str | None = None, traceback: str | None = None) -> None:
        assert kind in KINDS, kind
        super().__init__(message)
        self.kind, self.message, self.where, self.traceback = kind, message, where, traceback


def jsonable(value: Any) -> Any:
    """`value` with every number that JSON cannot carry exactly turned into a string, tuples into lists."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if abs(value) <= 2**53 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    raise TypeError(f"{type(value).__name__} has no JSON form")


def take(params: dict, name: str, kind: type, **default: Any) -> Any:
    """Remove `name` from the request's params and return it.

    Raises Failure(bad_request) if it is missing without a `default`, or is not a `kind`.
    """
    if name not in params and "default" in default:
        return default["default"]
    if name not in params:
        raise Failure("bad_request", f"params.{name} is missing")
    value = params.pop(name)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise Failure("bad_request", f"params.{name}: {value!r} is not {_JSON_NAMES[kind]}")
    return value


_JSON_NAMES = {str: "a string", int: "an integer", dict: "an object"}


def refuse_rest(params: dict) -> None:
    """After every known parameter was taken: what is left is a mistake, and must not be ignored in silence."""
    if params:
        raise Failure("bad_request", f"unknown params: {', '.join(sorted(params))}")


def serve(requests: BinaryIO, answers: BinaryIO, methods: Mapping[str, Method]) -> None:
    """Answer every line of `requests` until it ends or a shutdown is asked for."""
    while line := requests.readline():
        answer, stop = _answer(line, methods)
        try:
            answers.write(answer + b"\n")
            answers.flush()
        except BrokenPipeError:
            return  # nobody is left to listen
        if stop:
            return


def _answer(line: bytes, methods: Mapping[str, Method]) -> tuple[bytes, bool]:
    """The encoded answer to one line, and whether the worker should stop after it."""
    ident = None
    try:
        request = _parse(line)
        ident = _ident(request)
        name, params = request.get("method"), request.get("params", {})
        if not isinstance(params, dict):
            raise Failure("bad_request", "params is not an object")
        if name == "shutdown":
            return _encode({"id": ident, "ok": True, "result": {}}), True
        if not isinstance(name, str) or name not in methods:
            known = ", ".join([*methods, "shutdown"])
            raise Failure("bad_request", f"unknown method {name!r}; known methods: {known}")
        return _encode({"id": ident, "ok": True, "result": methods[name](params)}), False
    except Failure as failure:
        error = {"kind": failure.kind, "message": failure.message, "where": failure.where,
                 "traceback": failure.traceback}
    except BaseException as bug:  # even SystemExit: one request must never take the worker down
        error = {"kind": "internal", "message": f"{type(bug).__name__}: {bug}", "where": None,
                 "traceback": tracebacks.format_exc()}
    return _encode({"id": ident, "ok": False, "error": error}), False


def _parse(line: bytes) -> dict:
    """The JSON object in `line`; raises Failure(bad_request)."""

    def refuse_constant(name: str) -> None:
        raise ValueError(f"{name} is not JSON")

    try:
        request = json.loads(line.decode("utf-8"), parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise Failure("bad_request", f"not a line of JSON: {error}") from None
    if b"\\u0000" in line:
        raise Failure("bad_request", "the request holds a null character, which no path, name or value may")
    if not isinstance(request, dict):
        raise Failure("bad_request", "a request is a JSON object")
    return request


def _ident(request: dict) -> int:
    ident = request.get("id")
    if not isinstance(ident, int) or isinstance(ident, bool):
        raise Failure("bad_request", "id is missing or not an integer")
    return ident


def _encode(answer: dict) -> bytes:
    return json.dumps(answer, allow_nan=False, separators=(",", ":")).encode("ascii")
