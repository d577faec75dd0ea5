"""An installed package's modules, imported so that a kernel of it compiles to the same bytes on every machine.

The package's files run under their names relative to the folder that holds the package, so no path of this machine
reaches Triton's locations. Where torch and its companions are absent, stand-ins satisfy the imports. All of it is in
place only while a case is compiled: another case sees neither the stand-ins nor modules that were made with them. The
modules are kept for the next compile for the same compute capability, as long as none of their files has changed.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import sys
import types
from pathlib import Path
from typing import Any, Iterator

from hebe.worker import stand_ins
from hebe.worker.load_case import FolderImporter

_kept: dict[tuple[str, int], PackageImporter] = {}


class PackageImporter(FolderImporter):
    """Imports the modules of one installed package, and no others."""

    def __init__(self, folder: Path, package: str) -> None:
        super().__init__(folder)
        self.package = package

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return super().find_spec(name, path, target) if name.split(".")[0] == self.package else None

    def is_current(self) -> bool:
        """Whether every file that ran is still what it was."""
        try:
            return all((self.folder / name).read_bytes() == data for name, data in self.sources.items())
        except OSError:
            return False


def module_file(module: str) -> Path | None:
    """Where a module's file would be, found without importing anything; None if its package is not installed.

    Raises FileNotFoundError if the package has no such module.
    """
    package, *below = module.split(".")
    importlib.invalidate_caches()  # a package that came since the last look, within the folder's time stamp
    spec = importlib.util.find_spec(package) if package not in sys.modules else sys.modules[package].__spec__
    if spec is None or spec.origin is None:
        return None
    if not spec.submodule_search_locations and not below:
        return Path(spec.origin)
    base = Path(spec.origin).parent.joinpath(*below)
    for file in (base / "__init__.py", base.with_suffix(".py")):
        if spec.submodule_search_locations and file.is_file():
            return file
    raise FileNotFoundError(module)


def distribution_of(package: str) -> tuple[str, str | None]:
    """(name, version) of the distribution that installed a package; (package, None) if none says so."""
    for name in importlib.metadata.packages_distributions().get(package, ()):
        return name, importlib.metadata.version(name)
    return package, None


def importer_for(module: str, file: Path, arch: int) -> PackageImporter:
    """The importer of the module's package, with what it has imported for this compute capability before."""
    package, *below = module.split(".")
    importer = _kept.pop((package, arch), None)
    if importer is not None and importer.is_current():
        return importer
    return PackageImporter(file.parents[len(below) + (file.name == "__init__.py")], package)


@contextlib.contextmanager
def imported(importer: PackageImporter, module: str, arch: int, scratch: Path) -> Iterator[types.ModuleType]:
    """Import a module of the package as for this compute capability; raises whatever its code raises."""
    # flag-gems would ask nvidia-smi whose device this is, and write into the home folder. open_case undoes this.
    os.environ.setdefault("GEMS_VENDOR", "nvidia")
    os.environ.setdefault("FLAGGEMS_CACHE_DIR", str(scratch / "flaggems"))
    with standing_in(arch), _in_place(importer):
        made, _ = stand_ins.import_until_computing(module)
        _kept[importer.package, arch] = importer
        yield made


@contextlib.contextmanager
def standing_in(arch: int) -> Iterator[None]:
    """Stand-ins for what is absent, and a driver that answers for this compute capability and cannot launch."""
    stand_ins.install(arch)
    try:
        yield
    finally:
        stand_ins.remove()


@contextlib.contextmanager
def _in_place(importer: PackageImporter) -> Iterator[None]:
    """The importer's modules in the place of whatever else the case has imported of the package."""
    def of_package(name: str) -> bool:
        return name.split(".")[0] == importer.package

    others = {name: sys.modules.pop(name) for name in list(sys.modules) if of_package(name)}
    sys.modules.update(importer.modules)
    sys.meta_path.insert(0, importer)
    try:
        yield
    finally:
        sys.meta_path.remove(importer)
        importer.modules.update({name: sys.modules.pop(name) for name in list(sys.modules) if of_package(name)})
        sys.modules.update(others)
