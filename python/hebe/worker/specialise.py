"""What Triton's JIT would specialise a kernel on, for the arguments of a case.

Triton's own binder decides (a 1 is removed, a multiple of 16 is marked divisible, None is removed, integers get
i32, i64 or u64 by size, annotations and do_not_specialize count), with mock tensors in the place of buffers. Their
address counts as divisible by 16, which is true of every buffer that Hebe allocates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hebe.case import Buffer, Case, Scalar, integer_range
from hebe.worker.parameters import nearest
from hebe.worker.protocol import Failure
from hebe.worker.stand_ins import unwrap


@dataclass(frozen=True)
class Specialisation:
    """A kernel bound to a case's arguments, in the forms that triton.compile takes."""

    kernel: Any  # the JITFunction
    options: Any  # the backend's resolved options
    signature: dict[str, str]  # name -> Triton type, "constexpr" where the parameter is gone from the cubin
    constants: dict[tuple[int, ...], Any]
    attributes: dict[tuple[int, ...], list]
    arguments: dict[str, Buffer | Scalar]  # the cubin's parameters in order


def kernel_of(case: Case) -> Any:
    """The case's JITFunction with autotuners and heuristics taken off; raises Failure(case_error)."""
    kernel = unwrap(case.kernel)
    if kernel is None:
        raise Failure("case_error", f"Case.kernel: {type(case.kernel).__name__} is not a @triton.jit function")
    if kernel.is_gluon():
        raise Failure("case_error", f"Case.kernel: {kernel.__name__} is a Gluon kernel; these are not supported yet")
    return kernel


def specialise(case: Case, kernel: Any, options: dict[str, Any], backend: Any) -> Specialisation:
    """Bind the case's arguments; raises Failure(case_error, bad_option).

    `options` are checked ones; `backend` is Triton's for the target.
    """
    from triton.runtime.jit import MockTensor, create_function_from_signature

    given = _given(case, kernel)
    constexpr_names = {parameter.name for parameter in kernel.params if parameter.is_constexpr}
    for name in options.keys() & {parameter.name for parameter in kernel.params}:
        # A launch gives Triton both with one keyword, so they cannot differ.
        if name not in constexpr_names or given.get(name, options[name]) != options[name]:
            raise Failure("bad_option", f"{name}: is a parameter of {kernel.__name__} too, with another value; "
                          "set it through the case's own parameters")
    values = {name: MockTensor(value.dtype, list(value.shape)) if isinstance(value, Buffer)
              else value.value if isinstance(value, Scalar) else value for name, value in given.items()}
    keywords = {**options, **values}
    # As JITFunction.run does before binding.
    keywords["debug"] = bool(keywords.get("debug", kernel.debug) or _debug_knob())
    binder = create_function_from_signature(kernel.signature, kernel.params, backend)
    try:
        bound, specialisation, _ = binder(**keywords)
        resolved, signature, constants, attributes = kernel._pack_args(backend, keywords, bound, specialisation, {})
    except (TypeError, OverflowError, KeyError, ValueError, AssertionError) as error:
        raise Failure("case_error", f"{kernel.__name__} does not take these arguments: {error}") from error
    arguments = {name: _runtime_argument(name, kind, given.get(name), bound[name])
                 for name, kind in signature.items() if kind != "constexpr"}
    return Specialisation(kernel, resolved, signature, constants, attributes, arguments)


def _given(case: Case, kernel: Any) -> dict[str, Any]:
    """The case's arguments and constexprs by parameter, each in its right place; raises Failure(case_error)."""
    parameters = {parameter.name: parameter for parameter in kernel.params}
    for group, is_constexpr in (("arguments", False), ("constexprs", True)):
        for name in getattr(case, group):
            if name not in parameters:
                raise Failure("case_error", f"Case.{group}: {kernel.__name__} has no parameter {name!r}"
                              + nearest(name, parameters))
            if parameters[name].is_constexpr != is_constexpr:
                right = "constexprs" if parameters[name].is_constexpr else "arguments"
                raise Failure("case_error", f"Case.{group}: parameter {name!r} of {kernel.__name__} belongs in {right}")
    given = {**case.arguments, **case.constexprs}
    missing = [name for name, parameter in parameters.items() if name not in given and not parameter.has_default]
    if missing:
        raise Failure("case_error", f"Case: no value for parameter {', '.join(missing)} of {kernel.__name__}")
    return given


def _runtime_argument(name: str, kind: Any, given: Any, bound: Any) -> Buffer | Scalar:
    """The launch argument for a parameter that the cubin keeps; raises Failure(case_error)."""
    if not isinstance(kind, str) or kind.startswith("tensordesc"):
        raise Failure("case_error", f"argument {name!r}: tensor descriptors and tuples are not supported yet")
    if kind.startswith("*"):
        if not isinstance(given, Buffer):
            raise Failure("case_error", f"argument {name!r}: the kernel takes a pointer ({kind}), found {bound!r}")
        pointee = kind.removeprefix("*").removeprefix("k")
        if _plain(pointee) != given.dtype:
            raise Failure("case_error", f"argument {name!r}: declared {given.dtype}, but the kernel takes {kind}")
        return given
    if isinstance(given, Buffer):
        raise Failure("case_error", f"argument {name!r}: the kernel takes {kind} by value, found a Buffer")
    value, declared = (given.value, given.dtype) if isinstance(given, Scalar) else (bound, None)
    kind = _plain(kind)
    if declared not in (None, kind):
        raise Failure("case_error", f"argument {name!r}: declared {declared}, but Triton passes {value!r} as {kind}; "
                      f"annotate the kernel's parameter, or leave out the dtype")
    limits = integer_range(kind)
    if limits is None:
        return Scalar(float(value), kind)
    if isinstance(value, float) or not limits[0] <= value <= limits[1]:
        raise Failure("case_error", f"argument {name!r}: {value!r} does not fit {kind}")
    return Scalar(bool(value) if kind == "i1" else int(value), kind)


def _plain(kind: str) -> str:
    return "i1" if kind == "u1" else kind  # Triton's two names of a bool


def _debug_knob() -> bool:
    from triton import knobs

    return knobs.runtime.debug
