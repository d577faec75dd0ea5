"""The launch spec (schema hebe.launch/1): all that a launch of the cubin and a check of its outputs need."""

from __future__ import annotations

from typing import Any

from hebe.case import Buffer, Case, Constant, Normal, Scalar, Uniform, Zeros
from hebe.worker.specialise import Specialisation

SCHEMA = "hebe.launch/1"


def launch_of(case: Case, values: dict[str, Any], target: dict[str, Any], bound: Specialisation,
              metadata: Any, grid: tuple[int, int, int]) -> dict[str, Any]:
    """The launch of a compiled case. `values` are the case function's parameters, `metadata` is Triton's.

    `grid` is the case's own, or what its grid function gave; with num_ctas > 1 the launcher multiplies x. The cubin's
    two trailing scratch pointers are described by `global_scratch` and `profile_scratch` (bytes per program) and are
    not in `arguments`.
    """
    return {
        "schema": SCHEMA,
        "name": case.name,
        "parameters": values,
        "target": target,
        "entry": metadata.name,
        "grid": list(grid),
        "num_warps": metadata.num_warps,
        "num_ctas": metadata.num_ctas,
        "shared_bytes": metadata.shared or 0,
        "cooperative": bool(metadata.launch_cooperative_grid),
        "pdl": bool(metadata.launch_pdl),
        # Triton writes null for a scratch space that the kernel does not use.
        "global_scratch": {"bytes": metadata.global_scratch_size or 0, "align": metadata.global_scratch_align or 1},
        "profile_scratch": {"bytes": metadata.profile_scratch_size or 0, "align": metadata.profile_scratch_align or 1},
        "arguments": [_argument(name, argument) for name, argument in bound.arguments.items()],
        "tolerance": {"atol": case.tolerance.atol, "rtol": case.tolerance.rtol},
        "oracle": {"kind": "case-reference" if case.reference else "none"},
        "work": case.work and {"bytes_read": case.work.bytes_read, "bytes_written": case.work.bytes_written,
                               "operations": dict(case.work.operations)},
    }


def _argument(name: str, argument: Buffer | Scalar) -> dict[str, Any]:
    if isinstance(argument, Scalar):
        return {"name": name, "kind": "scalar", "dtype": argument.dtype, "value": argument.value}
    return {"name": name, "kind": "buffer", "dtype": argument.dtype, "shape": list(argument.shape),
            "role": argument.role, "init": _init(argument)}


def _init(buffer: Buffer) -> dict[str, Any] | None:
    init = buffer.init
    if isinstance(init, Uniform):
        return {"kind": "uniform", "low": init.low, "high": init.high, "seed": init.seed}
    if isinstance(init, Normal):
        return {"kind": "normal", "mean": init.mean, "std": init.std, "seed": init.seed}
    if isinstance(init, Constant):
        return {"kind": "constant", "value": init.in_type(buffer.dtype)}
    return {"kind": "zeros"} if isinstance(init, Zeros) else None
