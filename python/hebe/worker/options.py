"""Triton's compile options, checked. Triton itself ignores an unknown option and asserts on some wrong values."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any, Callable

from hebe.worker.parameters import nearest
from hebe.worker.protocol import Failure

#: Decided by the target, not by the user.
FIXED = {
    "arch", "warp_size", "backend_name", "instrumentation_mode", "supported_fp8_dtypes",
    "deprecated_fp8_dot_operand_dtypes", "allowed_dot_input_precisions", "max_num_imprecise_acc_default",
}
OVERRIDE_STAGES = ("ttir", "ttgir", "llir", "ptx", "cubin")


def check_options(options: dict[str, Any], known: type, arch: int) -> dict[str, Any]:
    """`options` unchanged if every one is a field of the dataclass `known` with a usable value for sm_`arch`.

    Raises Failure(unknown_option) naming the nearest valid one and the list, or Failure(bad_option).
    """
    fields = {field.name: field for field in dataclasses.fields(known)}
    settable = sorted(fields.keys() - FIXED)
    for name, value in options.items():
        if name in FIXED:
            raise Failure("bad_option", f"{name}: is decided by the target and cannot be set")
        if name not in fields:
            raise Failure("unknown_option", f"Triton has no option {name!r}" + nearest(name, settable))
        accepts, wanted = RULES.get(name) or _rule_by_default(fields[name].default)
        if not accepts(value):
            raise Failure("bad_option", f"{name}: {value!r} is not {wanted}")
    if options.get("num_ctas", 1) > 1 and arch < 90:
        raise Failure("bad_option", f"num_ctas: {options['num_ctas']} needs sm_90 or later, the target is sm_{arch}")
    return dict(options)


def freeze_override(options: dict[str, Any], folder: Path) -> dict[str, Any]:
    """`options` with ir_override replaced by a copy in `folder` that is named after its content.

    Triton puts only the path of an override in its cache key: a file edited in place would give the old kernel.
    """
    if options.get("ir_override") is None:
        return options
    path = Path(options["ir_override"])
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Failure("bad_option", f"ir_override: {path}: {error.strerror}") from None
    frozen = folder / f"{hashlib.sha256(data).hexdigest()}{path.suffix}"
    frozen.write_bytes(data)
    return options | {"ir_override": str(frozen)}


def portable(options: dict[str, Any]) -> dict[str, Any]:
    """Resolved options for the record: a file is named by the SHA-256 of its content, never by its path."""
    recorded = dict(options)
    recorded["extern_libs"] = {name: _digest(path) for name, path in options["extern_libs"]}
    if options.get("ir_override"):
        path = Path(options["ir_override"])
        recorded["ir_override"] = {"stage": path.suffix[1:], "sha256": _digest(path)}
    return recorded


def _digest(path: str | Path) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _is_int(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _power_of_two(high: int) -> tuple[Callable[[Any], bool], str]:
    return (lambda value: _is_int(value, 1, high) and value & (value - 1) == 0), f"a power of two from 1 to {high}"


def _between(low: int, high: int, unset: bool = False) -> tuple[Callable[[Any], bool], str]:
    return ((lambda value: (unset and value is None) or _is_int(value, low, high)),
            f"an integer from {low} to {high}" + (" or null" if unset else ""))


def _one_of(*values: str) -> tuple[Callable[[Any], bool], str]:
    return (lambda value: isinstance(value, str) and value in values), f"one of {', '.join(values)}"


_BOOL = (lambda value: isinstance(value, bool)), "true or false"
_TEXT = (lambda value: value is None or isinstance(value, str)), "a string or null"


def _is_override(value: Any) -> bool:
    return value is None or (isinstance(value, str) and Path(value).is_absolute()
                             and Path(value).suffix[1:] in OVERRIDE_STAGES)


def _is_library_table(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and all(
        isinstance(name, str) and isinstance(path, str) and Path(path).is_file() for name, path in value.items()))


#: Option -> (accepts, what the error says it should be).
RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "num_warps": _power_of_two(32),
    "num_ctas": _power_of_two(16),
    "num_stages": _between(1, 64),
    "maxnreg": _between(1, 255, unset=True),
    "ptx_version": _between(60, 200, unset=True),
    "ptx_options": _TEXT,
    "ir_override": (_is_override, f"an absolute path ending in one of {', '.join('.' + s for s in OVERRIDE_STAGES)}"),
    "default_dot_input_precision": _one_of("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"),
    "extern_libs": (_is_library_table, "a table from a library's name to an existing file"),
    "enable_fp_fusion": _BOOL, "enable_reflect_ftz": _BOOL, "launch_cooperative_grid": _BOOL, "launch_pdl": _BOOL,
    "debug": _BOOL, "sanitize_overflow": _BOOL,
}


def _rule_by_default(default: Any) -> tuple[Callable[[Any], bool], str]:
    """An option that a newer Triton added: take the type of its default."""
    if isinstance(default, bool):
        return _BOOL
    if isinstance(default, int):
        return _between(0, 2**31 - 1)
    return _TEXT
