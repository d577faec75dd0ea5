"""What numpy says that kernels of the corpus compute: `launches_of(entry)` gives launches of several shapes, odd sizes
and masks among them, with expected outputs. The algorithms are numpy's own, in float64, not transcriptions.

Each function below is for one kernel; `@reference(ids...)` names the list's entries that it is for. It gets a `Maker`
and yields launches. Where a masked load has no `other`, what its lanes give is
nobody's business, and the shapes are such that none matters.
"""

from __future__ import annotations

import zlib
from typing import Any, Callable, Iterator

import numpy as np

import corpus
import element_types
from launches import UNTOUCHED, Launch, pointee

Reference = Callable[["Maker"], Iterator[Launch]]
REFERENCES: dict[str, Reference] = {}


def reference(*ids: str) -> Callable[[Reference], Reference]:
    def add(function: Reference) -> Reference:
        for id_ in ids:
            if id_ in REFERENCES:
                raise ValueError(f"two references for {id_}")
            REFERENCES[id_] = function
        return function

    return add


def launches_of(entry: corpus.Entry) -> Iterator[Launch]:
    return REFERENCES[entry.id](Maker(entry))


def cdiv(a: int, b: int) -> int:
    return -(-a // b)


def padded(n: int) -> int:
    """A row's stride: divisible by 16, and more than the row, so that a write beyond the row shows."""
    return cdiv(n + 1, 16) * 16


class Maker:
    """Random inputs of an entry, rounded to the element types that its pointers have; the same ones every time."""

    def __init__(self, entry: corpus.Entry) -> None:
        self.entry = entry
        self.random = np.random.default_rng(zlib.crc32(entry.id.encode()))

    def __getitem__(self, constant: str) -> Any:
        return self.entry.constexprs[constant]

    def kind(self, name: str) -> str:
        return pointee(self.entry, name)

    def round(self, name: str, values: np.ndarray) -> np.ndarray:
        return element_types.decode(element_types.encode(values, self.kind(name)), self.kind(name))

    def real(self, name: str, *shape: int, low: float = -2.0, high: float = 2.0) -> np.ndarray:
        return self.round(name, self.random.uniform(low, high, shape))

    def whole(self, *shape: int, low: int, high: int) -> np.ndarray:
        return self.random.integers(low, high, shape)

    def distinct(self, name: str, *shape: int) -> np.ndarray:
        """Values none of which is another's equal, in random order."""
        n = int(np.prod(shape))
        return self.round(name, self.random.permutation(n) * 0.25 - n / 8).reshape(shape)

    def blank(self, *shape: int) -> np.ndarray:
        return np.full(shape, UNTOUCHED)

    def rows(self, rows: int, stride: int, values: np.ndarray) -> np.ndarray:
        """An output buffer of rows with a stride, untouched but for these values."""
        made = self.blank(rows, stride)
        made[:, :values.shape[1]] = values
        return made

    @property
    def tolerance(self) -> dict[str, float]:
        """For kernels that compute in the element type, some roundings deep."""
        kinds = {self.kind(name) for name, kind in self.entry.args.items() if kind.startswith("*")}
        deep = 16 if "bf16" in kinds or "fp16" in kinds else 64
        epsilon = max((element_types.EPSILON.get(kind, 0.0) for kind in kinds), default=0.0)
        return {"atol": deep * epsilon / 4, "rtol": deep * epsilon / 4}


#: rows and columns; a kernel's columns are also tried at its block's size, one less and a third.
def shapes(block: int) -> list[tuple[int, int]]:
    return [(1, 1), (5, block // 3 + 1), (3, block - 1), (2, block)]


import references_linear  # noqa: E402,F401
import references_pointwise  # noqa: E402,F401
import references_rows  # noqa: E402,F401
import references_scans  # noqa: E402,F401
