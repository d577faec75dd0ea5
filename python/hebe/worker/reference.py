"""Run a case's reference: raw little-endian files in, raw little-endian files out.

numpy has no bf16, so a bf16 input is handed over as fp32 and a bf16 output comes back as fp32. An fp16 output may
come back wider. Every other type must come back exactly as declared: a silent conversion would hide a wrong oracle.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hebe.case import Buffer, Case
from hebe.worker import parameters
from hebe.worker.load_case import LoadedCase, open_case
from hebe.worker.protocol import Failure

NUMPY_NAMES = {
    "fp16": "<f2", "fp32": "<f4", "fp64": "<f8", "i1": "|b1", "i8": "|i1", "i16": "<i2", "i32": "<i4", "i64": "<i8",
    "u8": "|u1", "u16": "<u2", "u32": "<u4", "u64": "<u8",
}
#: Types that a reference may return, where they are not just the declared one.
RETURNS = {"fp16": ("fp16", "fp32", "fp64"), "bf16": ("fp32",)}


def compute_reference(path: str, function: str, given: dict[str, Any], inputs: dict[str, str],
                      outputs: dict[str, str]) -> dict[str, Any]:
    """{"outputs": {name: {"path", "dtype", "bytes"}}}, where dtype is the type written. Nothing is written on error.

    Raises Failure: reference_failed for the reference's own faults, bad_request for the caller's files.
    """
    _require_numpy()
    with open_case(path) as loaded:
        call = loaded.function(function)
        case = loaded.make(call, parameters.resolve(loaded, call, given))
        if case.reference is None:
            raise Failure("bad_request", f"{case.name} has no reference")
        buffers = {name: argument for name, argument in case.arguments.items() if isinstance(argument, Buffer)}
        read = {name: buffer for name, buffer in buffers.items() if buffer.role != "out"}
        written = {name: buffer for name, buffer in buffers.items() if buffer.role != "in"}
        _same_names("inputs", inputs, read)
        _same_names("outputs", outputs, written)
        _apart(inputs, outputs)
        arrays = {name: _map_input(name, buffer, inputs[name]) for name, buffer in read.items()}
        results = _run(loaded, case, arrays, written)
        del arrays
        # Each array is dropped as soon as it is on disk.
        return {"outputs": {name: _write(name, results.pop(name), outputs[name]) for name in written}}


def _require_numpy() -> Any:
    try:
        import numpy
    except ImportError as error:
        raise Failure("toolchain_unavailable", f"numpy: {error}") from error
    return numpy


def _same_names(what: str, given: dict[str, str], wanted: dict[str, Buffer]) -> None:
    if given.keys() != wanted.keys() or not all(isinstance(path, str) for path in given.values()):
        raise Failure("bad_request", f"params.{what}: needs a path for exactly {', '.join(wanted) or 'nothing'}; "
                      f"found {', '.join(given) or 'nothing'}")


def _apart(inputs: dict[str, str], outputs: dict[str, str]) -> None:
    """Writing over a mapped input would pull the ground from under the reference."""
    taken = {Path(path).resolve() for path in inputs.values()}
    for name, path in outputs.items():
        if Path(path).resolve() in taken:
            raise Failure("bad_request", f"params.outputs.{name}: {path} is also another buffer's file")
        taken.add(Path(path).resolve())


def _map_input(name: str, buffer: Buffer, path: str) -> Any:
    """A read-only array of the buffer's shape, mapped from the file; bf16 is widened to fp32 in memory."""
    numpy = _require_numpy()
    try:
        size = Path(path).stat().st_size
        if size != buffer.bytes:
            raise Failure("bad_request", f"params.inputs.{name}: {path} has {size} bytes, "
                          f"{buffer.dtype} {list(buffer.shape)} needs {buffer.bytes}")
        bits = "<u2" if buffer.dtype == "bf16" else NUMPY_NAMES[buffer.dtype]
        mapped = numpy.memmap(path, dtype=bits, mode="r", shape=buffer.shape)
    except OSError as error:
        raise Failure("bad_request", f"params.inputs.{name}: {path}: {error.strerror}") from None
    if buffer.dtype != "bf16":
        # A plain ndarray over the same pages: a memmap subclass would leak into what the reference returns.
        return mapped.view(numpy.ndarray)
    wide = mapped.astype("<u4")
    wide <<= 16
    wide = numpy.asarray(wide.view("<f4"))
    wide.flags.writeable = False
    return wide


def _run(loaded: LoadedCase, case: Case, arrays: dict[str, Any], written: dict[str, Buffer]) -> dict[str, Any]:
    """The reference's checked results; raises Failure(reference_failed)."""
    with loaded.running("reference_failed"):
        results = case.reference(dict(arrays))
    if not isinstance(results, dict):
        raise Failure("reference_failed", f"the reference returned {type(results).__name__}, not a dict of arrays")
    if results.keys() != written.keys():
        raise Failure("reference_failed", f"the reference must return exactly {', '.join(written)}; "
                      f"found {', '.join(map(str, results)) or 'nothing'}")
    for name, buffer in written.items():
        _check_result(name, buffer, results[name])
    return dict(results)


def _check_result(name: str, buffer: Buffer, array: Any) -> None:
    numpy = _require_numpy()
    if not isinstance(array, numpy.ndarray):
        raise Failure("reference_failed", f"{name}: required a numpy array, found {type(array).__name__}")
    if array.shape != buffer.shape:
        raise Failure("reference_failed", f"{name}: required shape {list(buffer.shape)}, found {list(array.shape)}")
    allowed = RETURNS.get(buffer.dtype, (buffer.dtype,))
    if _name_of(array) not in allowed:
        raise Failure("reference_failed", f"{name}: required {' or '.join(allowed)} for a {buffer.dtype} buffer, "
                      f"found numpy {array.dtype}")


def _name_of(array: Any) -> str | None:
    """Hebe's name of an array's element type, None if it has none (another byte order, complex, objects)."""
    return next((name for name, code in NUMPY_NAMES.items() if array.dtype.str == code), None)


def _write(name: str, array: Any, path: str) -> dict[str, Any]:
    try:
        array.tofile(path)
    except OSError as error:
        raise Failure("bad_request", f"params.outputs.{name}: {path}: {error.strerror or error}") from None
    return {"path": path, "dtype": _name_of(array), "bytes": array.nbytes}
