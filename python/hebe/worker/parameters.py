"""Parameters of a case function: read from its signature, converted from JSON or from command-line text."""

from __future__ import annotations

import difflib
import inspect
import math
import types
import typing
from dataclasses import dataclass
from typing import Any, Callable

from hebe.worker.load_case import LoadedCase
from hebe.worker.protocol import Failure, jsonable

TYPES = {int: "int", float: "float", bool: "bool", str: "str"}
WORDS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class Parameter:
    """One parameter: its type, whether None is a value of it, and its default (`required` if there is none)."""

    name: str
    type: type
    optional: bool
    required: bool
    default: Any

    def described(self) -> dict[str, Any]:
        kind = TYPES[self.type] + (" | None" if self.optional else "")
        return {"name": self.name, "type": kind, "required": self.required, "default": jsonable(self.default)}

    def convert(self, value: Any) -> Any:
        """`value` as this parameter's type, from JSON or from text; raises Failure(bad_parameter)."""
        if self.optional and (value is None or value == "none"):
            return None
        try:
            return _CONVERT[self.type](value)
        except (ValueError, OverflowError):
            raise Failure("bad_parameter",
                          f"{self.name}: {value!r} is not {_ARTICLES[self.type]}") from None


def of_function(loaded: LoadedCase, function: Callable) -> list[Parameter]:
    """The parameters in order; raises Failure(case_error) if one cannot be given by name and plain type."""
    with loaded.running():
        signature = inspect.signature(function, eval_str=True)
    return [_parameter(loaded, function, parameter) for parameter in signature.parameters.values()]


def resolve(loaded: LoadedCase, function: Callable, given: dict[str, Any]) -> dict[str, Any]:
    """Every parameter's value, in order: converted where given, else the default.

    Raises Failure(unknown_parameter) naming the nearest one, or Failure(bad_parameter).
    """
    known = {parameter.name: parameter for parameter in of_function(loaded, function)}
    for name in given:
        if name not in known:
            raise Failure("unknown_parameter", f"{function.__name__}() has no parameter {name!r}"
                          + nearest(name, known))
    values = {}
    for name, parameter in known.items():
        if name in given:
            values[name] = parameter.convert(given[name])
        elif parameter.required:
            raise Failure("bad_parameter", f"{name}: a value is needed, there is no default")
        else:
            values[name] = parameter.default
    return values


def nearest(name: str, known: typing.Iterable[str]) -> str:
    """The end of an error text: the likely intended name and the whole list."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ";"
    return f"{hint} valid: {', '.join(known) or 'none'}"


def _parameter(loaded: LoadedCase, function: Callable, parameter: inspect.Parameter) -> Parameter:
    where = f"{loaded.file_name}:{function.__code__.co_firstlineno}"

    def wrong(text: str) -> Failure:
        return Failure("case_error", f"parameter {parameter.name!r} of {function.__name__}() {text}", where)

    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise wrong("cannot be given by name")
    required = parameter.default is parameter.empty
    default = None if required else parameter.default
    kind = parameter.annotation
    if kind is parameter.empty:
        kind = type(default)
    choices = typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, types.UnionType) else (kind,)
    optional = types.NoneType in choices
    choices = [choice for choice in choices if choice is not types.NoneType]
    if len(choices) != 1 or choices[0] not in TYPES:
        raise wrong("needs an annotation: int, float, bool or str, each maybe with '| None'")
    return Parameter(parameter.name, choices[0], optional, required, default)


def _int(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError
    return int(value)


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError
    number = float(value)
    if not math.isfinite(number):
        raise ValueError
    return number


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if not isinstance(value, str) or value.lower() not in WORDS:
        raise ValueError
    return WORDS[value.lower()]


def _str(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


_CONVERT = {int: _int, float: _float, bool: _bool, str: _str}
_ARTICLES = {int: "an integer", float: "a finite number", bool: "true or false", str: "a string"}
