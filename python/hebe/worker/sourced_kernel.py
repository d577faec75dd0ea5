"""The kernel of a case that names one: of an installed package, or of a Triton source checkout.

In: a case, opened, whose kernel is a PackageKernel or a CheckoutKernel. Out: the same case with the kernel itself, and
the record of where it comes from. The file that defines the kernel must have the digest that the case pins.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import hashlib
import importlib.util
import os
import re
import sys
import traceback as tracebacks
import types
from pathlib import Path
from typing import Any, Iterator

from hebe.case import Case, CheckoutKernel, PackageKernel
from hebe.worker import package_files, stand_ins
from hebe.worker.checkout_closure import NoKernel, closure_of
from hebe.worker.load_case import FolderImporter, LoadedCase, local_line, running_user_code
from hebe.worker.parameters import nearest
from hebe.worker.protocol import Failure

#: Set by the command line's --triton-source DIR.
CHECKOUT_VARIABLE = "HEBE_TRITON_SOURCE"
#: The names to install packages by, where pip does not take the package's own.
DISTRIBUTIONS = {"fla": "fla-core"}


@contextlib.contextmanager
def open_kernel(loaded: LoadedCase, case: Case, arch: int, scratch: Path) -> Iterator[tuple[Case, dict | None]]:
    """(case with its kernel, record or None); a case with a kernel of its own is passed through.

    Raises Failure (case_error, toolchain_unavailable). The kernel can be compiled inside the block only.
    """
    with contextlib.ExitStack() as stack:
        record = None
        if isinstance(case.kernel, PackageKernel):
            kernel, record = stack.enter_context(_of_package(loaded, case.kernel, arch, scratch))
            case = dataclasses.replace(case, kernel=kernel)
        elif isinstance(case.kernel, CheckoutKernel):
            kernel, record = stack.enter_context(_of_checkout(loaded, case.kernel, arch))
            case = dataclasses.replace(case, kernel=kernel)
        yield case, record


@contextlib.contextmanager
def _of_package(loaded: LoadedCase, named: PackageKernel, arch: int, scratch: Path) -> Iterator[tuple[Any, dict]]:
    package = named.module.split(".")[0]
    advice = f"pip install {DISTRIBUTIONS.get(package, package.replace('_', '-'))}"
    try:
        file = package_files.module_file(named.module)
    except FileNotFoundError:
        distribution, version = package_files.distribution_of(package)
        raise Failure("case_error", f"Case.kernel: {distribution} {version} has no module {named.module}") from None
    if file is None:
        raise Failure("toolchain_unavailable", f"Case.kernel: no package {package!r} in {sys.executable}; {advice}")
    distribution, version = package_files.distribution_of(package)
    digest = _check_digest(f"{named.module} of {distribution} {version}", file.read_bytes(), named)
    importer = loaded.kernel_files = package_files.importer_for(named.module, file, arch)
    with contextlib.ExitStack() as stack:
        with _importing(named.module, importer):
            module = stack.enter_context(package_files.imported(importer, named.module, arch, scratch))
        yield _kernel_in(module, named), {
            "kind": "package", "module": named.module, "name": named.name, "sha256": digest,
            "path": file.relative_to(importer.folder).as_posix(), "package": distribution, "version": version}


@contextlib.contextmanager
def _importing(module: str, importer: FolderImporter) -> Iterator[None]:
    """Say of an import that fails which module of which package it was, and what is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        raise Failure("toolchain_unavailable", f"Case.kernel: importing {module} needs {error.name}, which is not "
                      f"installed; pip install {DISTRIBUTIONS.get(missing, missing)}") from error
    except BaseException as error:  # a package may raise anything, sys.exit included
        raise Failure("case_error", f"Case.kernel: importing {module} failed: {type(error).__name__}: {error}",
                      local_line(error, importer.sources),
                      "".join(tracebacks.format_exception(error))) from error


@contextlib.contextmanager
def _of_checkout(loaded: LoadedCase, named: CheckoutKernel, arch: int) -> Iterator[tuple[Any, dict]]:
    given = os.environ.get(CHECKOUT_VARIABLE)
    if not given:
        raise Failure("toolchain_unavailable", f"Case.kernel: {named.path} is a file of Triton's sources; pass "
                      f"--triton-source DIR, a checkout of them ({CHECKOUT_VARIABLE} is not set)")
    folder = Path(given).absolute()
    try:
        data = (folder / named.path).read_bytes()
    except OSError as error:
        raise Failure("case_error", f"Case.kernel: {named.path} in the Triton source checkout {folder}: "
                      f"{error.strerror}; pass --triton-source DIR of a checkout that has it") from None
    digest = _check_digest(f"{named.path} of the Triton source checkout", data, named)
    importer = FolderImporter(folder)
    module = types.ModuleType("hebe_checkout_" + re.sub(r"\W", "_", named.path.removesuffix(".py")))
    module.__file__ = str(folder / named.path)
    module.__spec__ = importlib.util.spec_from_file_location(module.__name__, module.__file__, loader=importer)
    loaded.kernel_files = importer
    with package_files.standing_in(arch):
        sys.modules[module.__name__] = module
        try:
            with running_user_code(importer.sources, "case_error"):
                importer.run(module, folder / named.path, lambda text, name: _closure_of(text, name, named))
            yield _kernel_in(module, named), {
                "kind": "checkout", "path": named.path, "name": named.name, "sha256": digest}
        finally:
            del sys.modules[module.__name__]


def _closure_of(text: str, file: str, named: CheckoutKernel) -> ast.Module:
    try:
        return closure_of(text, named.name, file)
    except NoKernel as error:
        raise Failure("case_error", f"Case.kernel: {named.path} has no kernel {named.name!r}"
                      + nearest(named.name, error.args)) from None


def _check_digest(file: str, data: bytes, named: PackageKernel | CheckoutKernel) -> str:
    digest = hashlib.sha256(data).hexdigest()
    kind = type(named).__name__
    if named.sha256 is None:
        raise Failure("case_error", f"Case.kernel: {kind} of {named.name} needs the digest of its file; that of {file} "
                                    f"is sha256={digest!r}: read the file, then write that into the case")
    if named.sha256 != digest:
        raise Failure("case_error", f"Case.kernel: {file} has the SHA-256 {digest}, the case pins {named.sha256}; get "
                                    "the version that the case was written for, or check the case against this one and "
                                    "pin it")
    return digest


def _kernel_in(module: types.ModuleType, named: PackageKernel | CheckoutKernel) -> Any:
    kernel = stand_ins.unwrap(getattr(module, named.name, None))
    where = named.module if isinstance(named, PackageKernel) else named.path
    if kernel is None:
        names = [name for name, _ in stand_ins.kernels_of(module)]
        raise Failure("case_error", f"Case.kernel: {where} has no kernel {named.name!r}" + nearest(named.name, names))
    if kernel.fn.__module__ != module.__name__:  # the digest would be that of another file
        raise Failure("case_error", f"Case.kernel: {where} only imports {named.name}; it is defined in "
                                    f"{kernel.fn.__module__}: name that")
    return kernel
