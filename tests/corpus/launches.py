"""A launch of one entry's kernel with the outputs that numpy computes, and how an interpreter is given it and judged.

launch.json, which `hebe ttgir run FILE.ttir --launch launch.json` reads:

    {"grid": [x, y, z],
     "args": [{"name": "x_ptr", "buffer": "/abs/x_ptr.bin", "bytes": 4000, "type": "fp32", "out": false},
              {"name": "n", "scalar": "i32", "value": 5}, ...]}

The arguments are the function's, in order: constants are gone. A buffer's file holds its elements, little-endian, of
the type that the pointer points to; i1 takes a byte of 0 or 1. What the program leaves in a buffer with "out": true
goes to its file's name with ".out" at the end. Scalars' types and values are in Triton's terms: i1 0 or 1, fp32 a number.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import corpus
import element_types

#: What a buffer holds where nothing was put: outputs must leave it where they do not write.
UNTOUCHED = 7.0


@dataclass
class Launch:
    """`args`: initial buffers and scalars by name; a buffer that is only written may be left to `shapes`.
    `expected`: the whole buffer after the launch, by name; real ones within atol + rtol |expected| + one rounding to
    the buffer's type, others exactly."""

    name: str
    grid: tuple[int, ...]
    args: dict[str, Any]
    expected: dict[str, np.ndarray]
    atol: float = 1e-5
    rtol: float = 1e-5
    loose: dict[str, float] = field(default_factory=dict)  # atol of single buffers

    @property
    def full_grid(self) -> list[int]:
        return [*self.grid, 1, 1][:3]


def pointee(entry: corpus.Entry, name: str) -> str | None:
    kind = entry.args[name].partition(":")[0]
    return kind.removeprefix("*").removeprefix("k") if kind.startswith("*") else None


def order_of(entry: corpus.Entry) -> list[str]:
    """Run-time arguments in the kernel's order."""
    return [name for name in corpus.function_of(entry).arg_names if name in entry.args]


def buffers(entry: corpus.Entry, launch: Launch) -> dict[str, np.ndarray]:
    """Encoded initial buffers by name."""
    made = {}
    for name in entry.args:
        kind = pointee(entry, name)
        if kind is not None:
            values = launch.args[name] if name in launch.args else np.full(launch.expected[name].shape, UNTOUCHED)
            made[name] = np.ascontiguousarray(element_types.encode(values, kind))
    return made


def check_arguments(entry: corpus.Entry, launch: Launch) -> None:
    """A launch must keep what its entry was specialised on."""
    for name, kind in entry.args.items():
        if not kind.startswith("*"):
            value = launch.args[name]
            divisor = kind.partition(":")[2]
            if divisor and value % int(divisor):
                raise ValueError(f"{entry.id} {launch.name}: {name} = {value} is not divisible by {divisor}")
    extra = launch.args.keys() - entry.args.keys()
    if extra:
        raise ValueError(f"{entry.id} {launch.name}: no run-time argument {', '.join(sorted(extra))}")


def write(entry: corpus.Entry, launch: Launch, folder: Path, order: list[str]) -> Path:
    """launch.json and its buffers in the folder; returns its path."""
    check_arguments(entry, launch)
    folder.mkdir(parents=True, exist_ok=True)
    initial = buffers(entry, launch)
    args: list[dict[str, Any]] = []
    for name in order:
        if name in initial:
            file = folder / f"{name}.bin"
            file.write_bytes(initial[name].tobytes())
            args.append({"name": name, "buffer": str(file), "bytes": initial[name].nbytes,
                         "type": pointee(entry, name), "out": name in launch.expected})
        else:
            value = launch.args[name]
            args.append({"name": name, "scalar": entry.args[name].partition(":")[0],
                         "value": float(value) if isinstance(value, (float, np.floating)) else int(value)})
    path = folder / "launch.json"
    path.write_text(json.dumps({"grid": launch.full_grid, "args": args}, indent=1) + "\n")
    return path


def differences(entry: corpus.Entry, launch: Launch, after: dict[str, np.ndarray]) -> list[str]:
    """What is wrong with the encoded buffers after a launch, in words; [] if nothing is."""
    return [text for name in launch.expected for text in _difference(entry, launch, name, after[name])]


def outputs(entry: corpus.Entry, launch: Launch, folder: Path) -> dict[str, np.ndarray]:
    """The buffers that a program left beside launch.json."""
    made = {}
    for name, expected in launch.expected.items():
        data = np.frombuffer((folder / f"{name}.bin.out").read_bytes(), element_types.STORAGE[pointee(entry, name)])
        made[name] = data.reshape(expected.shape)
    return made


def _difference(entry: corpus.Entry, launch: Launch, name: str, bits: np.ndarray) -> list[str]:
    kind = pointee(entry, name)
    expected, got = launch.expected[name], element_types.decode(bits, kind).reshape(launch.expected[name].shape)
    if element_types.is_real(kind):
        rounded = element_types.decode(element_types.encode(expected, kind), kind)
        with np.errstate(invalid="ignore"):
            allowed = launch.loose.get(name, launch.atol) + (launch.rtol + element_types.EPSILON[kind]) * np.abs(rounded)
            good = (np.abs(got - rounded) <= allowed) | (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    else:
        rounded = element_types.decode(element_types.encode(expected, kind), kind)
        good = got == rounded
    if good.all():
        return []
    at = tuple(int(i) for i in np.argwhere(~good)[0])
    return [f"{entry.id} {launch.name}: {name}{list(at)} is {got[at]!r}, should be {rounded[at]!r}; "
            f"{int((~good).sum())} of {good.size} differ"]


def run(entry: corpus.Entry, launch: Launch, ttir: Path, folder: Path, order: list[str], program: Path) -> list[str]:
    """Run a launch by `PROGRAM ttgir run TTIR --launch launch.json`; returns what is wrong, in words."""
    path = write(entry, launch, folder, order)
    done = subprocess.run([program, "ttgir", "run", str(ttir), "--launch", str(path)], capture_output=True)
    if done.returncode != 0:
        return [f"{entry.id} {launch.name}: exit {done.returncode}: {done.stderr.decode('utf-8', 'replace').strip()[:500]}"]
    return differences(entry, launch, outputs(entry, launch, folder))
