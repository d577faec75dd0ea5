"""How a case names a kernel that is not its own: one of an installed package, or one of a Triton source checkout."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from hebe.field_checks import CaseError, store


def _check_pin(kind: str, name: Any, sha256: Any) -> None:
    if not isinstance(name, str) or not name.isidentifier():
        raise CaseError(f"{kind}.name: {name!r} is not the name of a kernel")
    if sha256 is not None and not (isinstance(sha256, str) and re.fullmatch(r"[0-9a-f]{64}", sha256)):
        raise CaseError(f"{kind}.sha256: {sha256!r} is not a SHA-256 of 64 small hexadecimal digits")


@dataclass(frozen=True)
class PackageKernel:
    """A kernel of an installed package, by its module and its name there.

    `sha256` is that of the file that defines the kernel: another version of the package is another kernel. It may be
    left out only to be told the digest: a compile then refuses and names it.
    """

    module: str
    name: str
    sha256: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.module, str) or not all(part.isidentifier() for part in self.module.split(".")):
            raise CaseError(f"PackageKernel.module: {self.module!r} is not a module's name such as 'package.module'")
        _check_pin("PackageKernel", self.name, self.sha256)


@dataclass(frozen=True)
class CheckoutKernel:
    """A kernel in a file of a Triton source checkout (--triton-source DIR), such as an official tutorial's.

    Only what the kernel needs of the file is run, never its benchmarks. `path` is relative to the checkout; `sha256`
    is the file's, as for a PackageKernel.
    """

    path: str
    name: str
    sha256: str | None = None

    def __post_init__(self) -> None:
        path = PurePosixPath(self.path) if isinstance(self.path, str) else None
        if path is None or path.suffix != ".py" or path.is_absolute() or ".." in path.parts or "\0" in self.path:
            raise CaseError(f"CheckoutKernel.path: {self.path!r} is not a .py file's path relative to the checkout")
        store(self, path=path.as_posix())
        _check_pin("CheckoutKernel", self.name, self.sha256)
