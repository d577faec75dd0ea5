"""Stand-ins for absent modules, so that files with Triton kernels import without torch (several gigabytes).

In: the compute capability that kernels are compiled for. Out: `import torch` and the other names of MODULES work where
they are not installed; a module that is installed is never replaced. A stand-in satisfies imports and computes nothing:

- an attribute is an inert `StandIn`: usable as a base class, type, annotation, decorator, key or context manager;
- what a package asks about the device at import has a plain answer: one NVIDIA device of that compute capability;
- other set-up calls (torch.library, torch._dynamo, sqlalchemy...) give an inert result;
- a call that would compute, and any use of an inert result as data, raises StandInError.

Triton's active driver becomes one that answers questions but cannot launch: `tl.target_info` and `driver.active` at
import then give the code of that compute capability, not silently another's (Triton without a driver answers None).
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import operator
import sys
import types
import typing
from abc import ABCMeta
from typing import Any, Iterator

from hebe.worker import stand_in_answers
from hebe.worker.stand_in_answers import StandInError

#: What may be stood in for. Optional extras (torch_npu, vllm, peft...) stay absent: packages test for those.
MODULES = ("torch", "einops", "transformers", "sqlalchemy", "yaml", "packaging", "typing_extensions")
#: Attributes that only a vendor's extension of torch adds; packages take their presence for that vendor's device.
NOT_THERE = frozenset(f"torch.{name}" for name in (
    "npu", "mlu", "musa", "corex", "ptpu", "gcu", "txda", "hpu", "sdaa", "tops", "maca"))

#: Namespaces whose functions take or make tensors. In torch itself, every function but SET_UP.
COMPUTING = ("torch", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special", "torch.sparse",
             "torch.Tensor", "torch.random", "einops")
SET_UP = frozenset({"compile", "no_grad", "enable_grad", "inference_mode", "autocast", "manual_seed", "seed",
                    "Generator"})
SET_UP_PREFIXES = ("set_", "is_", "get_", "use_", "_")


class StandIn:
    """Something of an absent module, known by its dotted path; `result` marks what a call gave."""

    def __init__(self, path: str, result: bool = False) -> None:
        self._path, self._result = path, result

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_path", "_result"):
            raise AttributeError(name)
        return _attribute(self, self._path, name)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return _call(self._path, arguments, keywords)

    def __repr__(self) -> str:
        return self._path

    def __deepcopy__(self, memo: Any) -> StandIn:
        return self

    # As a base class, and as the class of isinstance: a real class of its own, made when first asked for.
    def _as_class(self) -> type:
        if "_class" not in self.__dict__:
            self._class = _StandInType(self._path.rsplit(".", 1)[-1], (_Instance,), {"_path": self._path})
        return self._class

    def __mro_entries__(self, bases: tuple) -> tuple[type]:
        return (self._as_class(),)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self._as_class())

    def __subclasscheck__(self, subclass: type) -> bool:
        return issubclass(subclass, self._as_class())

    # As an annotation: Tensor | None, Tensor["batch"].
    def __or__(self, other: Any) -> Any:
        return _computes(f"{self._path} | …") if self._result else typing.Union[self, other]

    def __ror__(self, other: Any) -> Any:
        return _computes(f"… | {self._path}") if self._result else typing.Union[other, self]

    def __getitem__(self, key: Any) -> Any:
        is_type = not self._result and self._path.rsplit(".", 1)[-1][:1].isupper()
        return self if is_type else _computes(f"{self._path}[…]")

    def __enter__(self) -> StandIn:
        return self

    def __exit__(self, *error: Any) -> None:
        return None

    def __bool__(self) -> bool:
        return _computes(f"bool({self._path})") if self._result else True


def _refusing(name: str) -> Any:
    def refuse(self: StandIn, *arguments: Any) -> Any:
        _computes(f"{name.strip('_')} of {self._path}")

    return refuse


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "xor", "lshift", "rshift"):
    for _form in ("__{}__", "__r{}__"):
        setattr(StandIn, _form.format(_name), _refusing(_form.format(_name)))
for _name in ("neg", "pos", "abs", "invert", "lt", "le", "gt", "ge", "iter", "len", "int", "float", "index", "contains",
              "setitem", "delitem", "next", "round", "complex"):
    setattr(StandIn, f"__{_name}__", _refusing(f"__{_name}__"))


class _StandInType(ABCMeta):
    """Class attributes that only the absent base would have: `apply = MyFunction.apply`."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return StandIn(f"{cls._path}.{name}", result=True)


class _Instance(metaclass=_StandInType):
    _path = ""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__()

    def __new__(cls, *arguments: Any, **keywords: Any) -> Any:
        _computes(f"an object of {cls.__name__}, a class that derives from {cls._path}")


def _computes(what: str) -> typing.NoReturn:
    raise StandInError(f"{what}: torch and its companions are stand-ins here: they satisfy imports and compute nothing")


class StandInModule(types.ModuleType):
    __all__: list[str] = []  # `from x import *` gives nothing

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _attribute(self, self.__name__, name)


def _attribute(owner: Any, path: str, name: str) -> Any:
    whole = f"{path}.{name}"
    if whole in NOT_THERE:
        raise AttributeError(f"{path} has no attribute {name!r}")
    values = _finder.values if _finder else {}
    made = values[whole] if whole in values else StandIn(whole, isinstance(owner, StandIn) and owner._result)
    setattr(owner, name, made)
    return made


def _call(path: str, arguments: tuple, keywords: dict[str, Any]) -> Any:
    answers = _finder.answers if _finder else {}
    namespace, _, name = path.rpartition(".")
    if path in answers:
        return answers[path](*arguments, **keywords)
    if name.startswith("is_") and name.endswith(("available", "initialized")):
        return False
    if namespace.startswith("torch.library") and arguments and callable(arguments[0]):
        return StandIn(f"{path}(…)", result=True)  # an operator's definition, with methods such as register_fake
    if arguments and callable(arguments[0]) and not isinstance(arguments[0], StandIn):
        return arguments[0]  # a decorator
    if namespace in COMPUTING and not (name in SET_UP or name.startswith(SET_UP_PREFIXES)):
        _computes(f"{path}()")
    return StandIn(f"{path}(…)", result=True)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Last on sys.meta_path, so that it is asked only for what is not installed."""

    def __init__(self, arch: int) -> None:
        self.arch = arch
        self.values, self.answers = stand_in_answers.for_arch(arch)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        top, _, below = name.partition(".")
        if top not in MODULES or (below and not isinstance(sys.modules.get(top), StandInModule)) or name in NOT_THERE:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> types.ModuleType:
        return StandInModule(spec.name, f"A stand-in for {spec.name}, which is not installed (hebe.worker.stand_ins).")

    def exec_module(self, module: types.ModuleType) -> None:
        version = stand_in_answers.VERSIONS.get(module.__name__)
        if version is not None:
            module.__version__ = version
        for path, value in self.values.items():
            namespace, _, name = path.rpartition(".")
            if namespace == module.__name__:
                setattr(module, name, value)


_finder: _Finder | None = None


def install(arch: int) -> None:
    """Stand in for the absent MODULES and for Triton's driver, from now on, for this compute capability (90).

    What packages decide at import depends on it, so a process that compiles for another one must `remove` and import
    the packages again, or better be another process.
    """
    global _finder
    if _finder is not None:
        remove()
    _finder = _Finder(arch)
    sys.meta_path.append(_finder)
    import triton

    triton.runtime.driver.set_active(stand_in_answers.driver(arch))


def remove() -> None:
    """Undo `install`: the stand-in modules are forgotten, and Triton looks for its driver again."""
    global _finder
    if _finder is None:
        return
    sys.meta_path.remove(_finder)
    _finder = None
    for name in [name for name, module in sys.modules.items() if isinstance(module, StandInModule)]:
        del sys.modules[name]
    import triton

    triton.runtime.driver._active = None


def import_until_computing(name: str) -> tuple[types.ModuleType, StandInError | None]:
    """Import a module; where its own body starts to compute (a tutorial's test at the bottom), keep what is defined.

    Returns the module and what ended it. Every other error, and one inside a module that it imports, is raised.
    """
    if name in sys.modules:
        return sys.modules[name], None
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except StandInError as error:
        frame, inner = error.__traceback__, None
        while frame is not None:  # the innermost module body that was running
            if frame.tb_frame.f_code.co_name == "<module>":
                inner = frame.tb_frame.f_globals.get("__name__")
            frame = frame.tb_next
        if inner != name:
            del sys.modules[name]
            raise
        return module, error
    except BaseException:
        del sys.modules[name]
        raise
    return module, None


def kernels_of(module: types.ModuleType) -> Iterator[tuple[str, Any]]:
    """(name, JITFunction) of every kernel or device function that the module itself defines, wrappers taken off."""
    for name, value in sorted(vars(module).items()):
        kernel = unwrap(value)
        if kernel is not None and kernel.fn.__module__ == module.__name__:
            yield name, kernel


def unwrap(value: Any) -> Any:
    """The JITFunction under autotuners, heuristics and packages' own wrappers (each keeps it in `fn`), or None."""
    from triton.runtime import JITFunction

    seen = 0
    while not isinstance(value, JITFunction):
        if isinstance(value, (StandIn, StandInModule, type)) or not hasattr(value, "fn") or seen > 16:
            return None
        value, seen = value.fn, seen + 1
    return value
