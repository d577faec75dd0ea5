"""Builds the wheel of the Python package, with nothing but the standard library. In: pyproject.toml, python/hebe, kernels/,
studies/, the built libhebe.so, libhebe_dispatch.so and the program; out: one py3-none-linux wheel, for every Python from 3.11 on.

Invariant: equal sources and libraries give equal bytes: sorted names, one fixed time, fixed modes. It is pip's build
backend as well (PEP 517), so that `pip install .` takes the same wheel. HEBE_WHEEL_LIBRARIES names the libraries' folder, HEBE_WHEEL_PROGRAM
the program, if it is not the `hebe` beside them. A program that names this checkout's folder is refused: it would look
for its cases there.
"""

from __future__ import annotations

import base64
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIBRARIES = ("libhebe.so", "libhebe_dispatch.so")
PROGRAM = "bin/hebe"
#: Earlier than any zip file's own epoch would allow is not possible; SOURCE_DATE_EPOCH is not asked, for the date says nothing.
FIXED_TIME = (1980, 1, 1, 0, 0, 0)


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def binaries() -> dict[str, bytes]:
    """Libraries and program without symbols for a debugger, by their names in the package."""
    named = os.environ.get("HEBE_WHEEL_LIBRARIES")
    folders = [Path(named)] if named else [ROOT / "build" / preset for preset in ("portable", "release")]
    for folder in folders:
        if all((folder / name).is_file() for name in LIBRARIES):
            return {**{name: stripped(folder / name) for name in LIBRARIES}, PROGRAM: program(folder)}
    sys.exit(f"wheel: {' and '.join(LIBRARIES)} are not in {', '.join(map(str, folders))}; run scripts/build portable")


def program(folder: Path) -> bytes:
    named = os.environ.get("HEBE_WHEEL_PROGRAM")
    file = Path(named) if named else folder / "hebe"
    if not file.is_file():
        sys.exit(f"wheel: the program {file} is not there; run scripts/build portable")
    data = stripped(file)
    if str(ROOT).encode() in data:
        sys.exit(f"wheel: the program {file} names {ROOT}, which no other machine has; take that of scripts/build portable")
    return data


def stripped(file: Path) -> bytes:
    if shutil.which("strip") is None:
        return file.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / file.name
        if file.read_bytes()[:4] != b"\x7fELF":
            return file.read_bytes()
        subprocess.run(["strip", "--strip-unneeded", "-o", str(copy), str(file)], check=True)
        return copy.read_bytes()


def tag() -> str:
    """The C library that the build links is the oldest that the wheel runs on: manylinux's name for it (PEP 600)."""
    libc, version = platform.libc_ver()
    machine = platform.machine()
    if libc != "glibc":
        return f"py3-none-linux_{machine}"
    return f"py3-none-manylinux_{'_'.join(version.split('.')[:2])}_{machine}"


def metadata() -> str:
    p = project()
    lines = ["Metadata-Version: 2.1", f"Name: {p['name']}", f"Version: {p['version']}", f"Summary: {p['description']}",
             f"License: {p['license']['text']}", f"Requires-Python: {p['requires-python']}"]
    lines += [f"Classifier: {c}" for c in p["classifiers"]]
    lines += [f"Requires-Dist: {d}" for d in p["dependencies"]]
    for extra, needs in p["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *(f"Requires-Dist: {need}; extra == '{extra}'" for need in needs)]
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", (ROOT / p["readme"]).read_text()])


def contents() -> dict[str, bytes]:
    """What the wheel holds, but for its RECORD."""
    p = project()
    info = f"{p['name']}-{p['version']}.dist-info"
    files = {}
    for file in sorted((ROOT / "python" / "hebe").rglob("*")):
        if file.suffix == ".py" or file.name == "py.typed":
            files[f"hebe/{file.relative_to(ROOT / 'python' / 'hebe').as_posix()}"] = file.read_bytes()
    for file in sorted((ROOT / "kernels").glob("*.py")):
        files[f"hebe/kernels/{file.name}"] = file.read_bytes()
    for file in sorted((ROOT / "studies").glob("*.toml")):
        files[f"hebe/studies/{file.name}"] = file.read_bytes()
    for name, data in binaries().items():
        files[f"hebe/{name}"] = data
    files[f"{info}/METADATA"] = metadata().encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: hebe\nRoot-Is-Purelib: false\nTag: {tag()}\n".encode()
    scripts = "".join(f"{name} = {target}\n" for name, target in p["scripts"].items())
    files[f"{info}/entry_points.txt"] = f"[console_scripts]\n{scripts}".encode()
    files[f"{info}/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    return files


def build(folder: Path) -> Path:
    p = project()
    files = contents()
    record = f"{p['name']}-{p['version']}.dist-info/RECORD"
    rows = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(data)}\n")
    files[record] = ("".join(rows) + f"{record},,\n").encode()
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{p['name']}-{p['version']}-{tag()}.whl"
    unfinished = target.with_suffix(".part")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, FIXED_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (stat.S_IFREG | (0o755 if name.endswith((".so", PROGRAM)) else 0o644)) << 16  # pip asks both
            wheel.writestr(entry, data)
    unfinished.replace(target)
    return target


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: str | None = None) -> str:
    return build(Path(wheel_directory)).name


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    raise NotImplementedError("a source distribution would hold no libraries: build a wheel from a checkout")


if __name__ == "__main__":
    print(build(Path(sys.argv[1])))
