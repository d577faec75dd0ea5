"""The corpus's list, and how one entry of it becomes a kernel that Triton compiles.

`kernels.json` holds one entry a line; docs of its fields are at `Entry`. Importing a package's kernel needs the
worker's stand-ins (`prepare`), whose answers depend on the compute capability: one process, one capability.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.metadata
import importlib.util
import json
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterator

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("kernels.json")
PACKAGES = ("liger-kernel", "flag-gems", "fla-core")
ARCHS = (80, 90, 100)
FORMAT = 1  # of an entry's dumps; a new number makes all of them stale


@dataclass(frozen=True)
class Entry:
    """One specialisation of one kernel.

    id          short and unique; names the folder of its dumps
    module      where the kernel lives; kernel: its name there, wrappers (autotuner, heuristics...) are taken off
    args        run-time arguments: Triton type, ":16" where the value is divisible by 16 ("*fp16:16", "i32", "i64:16")
    constexprs  the others: a JSON value; null is None; {"dtype": "fp16"}; {"float": "inf"}; {"function": "module:name"}
    options     num_warps, num_stages... as triton.compile takes them
    pointwise   rank, for flag-gems' generated pointwise kernels: `kernel` then names the PointwiseDynamicFunction
    case        instead of module and kernel: [case file of this repository, function, parameters]
    fixed       the compute capabilities at which ordinary CI compiles it; [] for the full corpus only
    archs       where it compiles at all, if not everywhere
    """

    id: str
    module: str = ""
    kernel: str = ""
    args: dict[str, str] = field(default_factory=dict)
    constexprs: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    pointwise: int = 0
    block_pointers: bool = False
    case: list | None = None
    fixed: list[int] = field(default_factory=list)
    archs: list[int] = field(default_factory=lambda: list(ARCHS))

    @property
    def function(self) -> str:
        """What is counted as one kernel: the entries of one kernel differ only in their specialisation."""
        return ":".join(self.case[:2]) if self.case else f"{self.module}:{self.kernel}"

    def line(self) -> str:
        defaults = Entry(self.id)
        record = {name: value for name, value in self.__dict__.items() if name == "id" or value != getattr(defaults, name)}
        return json.dumps(record, separators=(", ", ": "))


def entries(path: Path = LIST) -> list[Entry]:
    made = [Entry(**record) for record in json.loads(path.read_text())]
    if len({entry.id for entry in made}) != len(made):
        raise ValueError(f"{path}: two entries with one id")
    return made


def write_entries(made: list[Entry], path: Path = LIST) -> None:
    path.write_text("[\n" + ",\n".join(entry.line() for entry in sorted(made, key=lambda e: e.id)) + "\n]\n")


def prepare(arch: int, build: Path, interpreted: bool = False) -> None:
    """Make this process one that imports the packages' kernels as for this compute capability; `interpreted`: Triton's
    own library is imported for its CPU interpreter, the packages are not (flag-gems refuses that)."""
    sys.path[:0] = [path for path in [str(ROOT / "python")] if path not in sys.path]
    os.environ["GEMS_VENDOR"] = "nvidia"  # flag-gems would ask nvidia-smi
    os.environ["FLAGGEMS_CACHE_DIR"] = str(build / "flaggems")  # it writes generated kernels there, by default at home
    os.environ["TRITON_CACHE_DIR"] = str(build / "triton-cache" / str(os.getpid()))
    from hebe.worker import __main__ as worker
    from hebe.worker import stand_ins

    worker.prepare_environment()
    if interpreted:
        os.environ["TRITON_INTERPRET"] = "1"
        importlib.import_module("triton.experimental.gluon")  # and triton.language
        del os.environ["TRITON_INTERPRET"]
    stand_ins.install(arch)


@dataclass
class Kernel:
    """A kernel bound to an entry: what triton.compile takes."""

    function: Any
    signature: dict[str, str]
    constants: dict[tuple[int, ...], Any]
    attributes: dict[tuple[int, ...], list]
    options: dict[str, Any]

    def source(self) -> Any:
        from triton.compiler import ASTSource

        return ASTSource(self.function, self.signature, self.constants, self.attributes)


@contextlib.contextmanager
def opened(entry: Entry, arch: int) -> Iterator[Kernel]:
    """The entry's kernel, usable inside the block."""
    if entry.case:
        with _case(entry, arch) as kernel:
            yield kernel
    else:
        yield bind(entry, function_of(entry))


def function_of(entry: Entry) -> Any:
    from hebe.worker import stand_ins

    value = wrapped_of(entry)
    function = stand_ins.unwrap(value)
    if function is None:
        raise TypeError(f"{entry.function} is no kernel but {type(value).__name__}")
    return function


def wrapped_of(entry: Entry) -> Any:
    """The kernel as its module has it, with its autotuner and so on."""
    value = getattr(importlib.import_module(entry.module), entry.kernel)
    return _pointwise(value, entry.pointwise, entry.block_pointers) if entry.pointwise else value


def _pointwise(function: Any, rank: int, block_pointers: bool) -> Any:
    """The kernel that flag-gems generates from a scalar function. Its wrapper, which launches it, is left alone."""
    function.config.prefer_block_pointer = block_pointers
    function.config.prefer_1d_tile = False
    wrapper = function.instantiate(rank)
    name = function._compute_kernel_names(rank)[0]
    return wrapper.__globals__[name]


def bind(entry: Entry, function: Any) -> Kernel:
    names = function.arg_names
    unknown = (entry.args.keys() | entry.constexprs.keys()) - set(names)
    if unknown:
        raise ValueError(f"{entry.id}: {entry.function} has no parameter {', '.join(sorted(unknown))}")
    signature, constants, attributes = {}, {}, {}
    for index, parameter in enumerate(function.params):
        name = parameter.name
        if name in entry.args:
            kind, _, divisible = entry.args[name].partition(":")
            signature[name] = kind
            if divisible:
                attributes[(index,)] = [["tt.divisibility", int(divisible)]]
        elif name in entry.constexprs:
            signature[name] = "constexpr"
            constants[(index,)] = decode(entry.constexprs[name])
        elif parameter.has_default:
            signature[name] = "constexpr"
            constants[(index,)] = parameter.default
        else:
            raise ValueError(f"{entry.id}: no value for parameter {name} of {entry.function}")
    return Kernel(function, signature, constants, attributes, dict(entry.options))


def decode(value: Any) -> Any:
    import triton.language as tl

    if isinstance(value, list):
        return tuple(decode(item) for item in value)
    if isinstance(value, dict):
        (kind, text), = value.items()
        if kind == "dtype":
            return tl.dtype(text)
        if kind == "float":
            return float(text)
        if kind == "function":
            module, _, name = text.partition(":")
            return getattr(importlib.import_module(module), name)
        raise ValueError(f"unknown constant {value}")
    return value


@contextlib.contextmanager
def _case(entry: Entry, arch: int) -> Iterator[Kernel]:
    """A case of this repository, specialised as the worker does it."""
    from hebe.worker import compile_case, parameters
    from hebe.worker.load_case import open_case
    from hebe.worker.options import check_options
    from hebe.worker.specialise import kernel_of, specialise

    path, name, given = entry.case
    with open_case(str(ROOT / path)) as loaded:
        call = loaded.function(name)
        case = loaded.make(call, parameters.resolve(loaded, call, given))
        backend = compile_case._backend({"backend": "cuda", "arch": arch, "warp_size": 32})
        options = check_options({**case.options, **entry.options}, type(backend.parse_options({})), arch)
        bound = specialise(case, kernel_of(case), options, backend)
        yield Kernel(bound.kernel, bound.signature, bound.constants, bound.attributes, options)


def key_of(entry: Entry) -> str:
    """What decides an entry's dumps, as one digest: Triton, the packages, the entry."""
    import triton

    record = json.loads(entry.line())
    record.pop("fixed", None)
    decides: list[Any] = [triton.__version__, record, FORMAT]
    if entry.case:
        decides.append((ROOT / entry.case[0]).read_text())
    elif entry.module == "own_kernels":
        decides.append(Path(__file__).with_name("own_kernels.py").read_text())
    else:
        decides += [_version(name) for name in PACKAGES]
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:16]


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def seconds(work: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    made = work()
    return made, time.perf_counter() - start
