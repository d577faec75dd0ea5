"""What the stand-ins answer: plain facts of torch and of one NVIDIA device, by dotted path; and Triton's driver.

In: a compute capability. Out: values (an attribute's value), answers (a function's), and a driver that cannot launch.
"""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Any, Callable


class StandInError(RuntimeError):
    """Something needs a module that is only stood in for."""


#: Versions, which packages compare with what they need.
VERSIONS = {"torch": "2.10.0", "transformers": "5.0.0", "einops": "0.8.1", "sqlalchemy": "2.0.44",
            "yaml": "6.0.3", "packaging": "25.0"}

#: Compute capability -> (name, streaming multiprocessors, shared memory a block may opt in to). Published figures.
DEVICES = {
    80: ("NVIDIA A100-SXM4-80GB", 108, 166912),
    86: ("NVIDIA GeForce RTX 3090", 82, 101376),
    89: ("NVIDIA L40S", 142, 101376),
    90: ("NVIDIA H100 80GB HBM3", 132, 232448),
    100: ("NVIDIA B200", 148, 232448),
    120: ("NVIDIA GeForce RTX 5090", 170, 101376),
}

#: torch dtype -> (bytes, kind); finfo and iinfo are computed from these.
DTYPES = {
    "float64": (8, "float"), "float32": (4, "float"), "float16": (2, "float"), "bfloat16": (2, "float"),
    "float8_e4m3fn": (1, "float"), "float8_e5m2": (1, "float"), "float8_e4m3fnuz": (1, "float"),
    "float8_e5m2fnuz": (1, "float"), "float8_e8m0fnu": (1, "float"),
    "int64": (8, "int"), "int32": (4, "int"), "int16": (2, "int"), "int8": (1, "int"),
    "uint64": (8, "uint"), "uint32": (4, "uint"), "uint16": (2, "uint"), "uint8": (1, "uint"),
    "bool": (1, "bool"),
    "complex64": (8, "complex"), "complex128": (16, "complex"), "complex32": (4, "complex"),
}
ALIASES = {"float": "float32", "double": "float64", "half": "float16", "long": "int64", "int": "int32",
           "short": "int16", "cfloat": "complex64", "cdouble": "complex128"}
#: dtype -> (largest, smallest normal, epsilon)
FLOATS = {
    "float64": (1.7976931348623157e308, 2.2250738585072014e-308, 2.0**-52),
    "float32": (3.4028234663852886e38, 2.0**-126, 2.0**-23),
    "float16": (65504.0, 2.0**-14, 2.0**-10),
    "bfloat16": (3.3895313892515355e38, 2.0**-126, 2.0**-7),
    "float8_e4m3fn": (448.0, 2.0**-6, 2.0**-3), "float8_e5m2": (57344.0, 2.0**-14, 2.0**-2),
    "float8_e4m3fnuz": (240.0, 2.0**-7, 2.0**-3), "float8_e5m2fnuz": (57344.0, 2.0**-15, 2.0**-2),
}


@dataclass(frozen=True)
class DType:
    name: str
    itemsize: int
    kind: str

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    @property
    def is_floating_point(self) -> bool:
        return self.kind == "float"

    @property
    def is_complex(self) -> bool:
        return self.kind == "complex"

    @property
    def is_signed(self) -> bool:
        return self.kind not in ("uint", "bool")


@dataclass(frozen=True)
class Device:
    type: str
    index: int | None = None

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *error: Any) -> None:
        return None


def _device(what: Any = "cuda", index: int | None = None) -> Device:
    if isinstance(what, Device):
        return what
    if isinstance(what, int):
        return Device("cuda", what)
    kind, _, number = str(what).partition(":")
    return Device(kind, int(number) if number else index)


def _finfo(dtype: DType = DType("float32", 4, "float")) -> types.SimpleNamespace:
    high, tiny, eps = FLOATS[dtype.name]
    return types.SimpleNamespace(max=high, min=-high, tiny=tiny, smallest_normal=tiny, eps=eps, bits=8 * dtype.itemsize,
                                 dtype=dtype.name)


def _iinfo(dtype: DType) -> types.SimpleNamespace:
    bits = 8 * dtype.itemsize
    low, high = (0, 2**bits - 1) if dtype.kind == "uint" else (-2**(bits - 1), 2**(bits - 1) - 1)
    return types.SimpleNamespace(max=high, min=low, bits=bits, dtype=dtype.name)


def for_arch(arch: int) -> tuple[dict[str, Any], dict[str, Callable]]:
    """(values, answers) for one compute capability."""
    name, multiprocessors, shared = DEVICES.get(arch, (f"NVIDIA sm_{arch}", 128, 101376))
    properties = types.SimpleNamespace(
        name=name, major=arch // 10, minor=arch % 10, multi_processor_count=multiprocessors, warp_size=32,
        total_memory=80 << 30, shared_memory_per_block=49152, shared_memory_per_block_optin=shared,
        shared_memory_per_multiprocessor=shared + 1024, max_threads_per_multi_processor=2048,
        regs_per_multiprocessor=65536, L2_cache_size=50 << 20, is_integrated=False, gcnArchName="")
    dtypes = {dtype: DType(dtype, *facts) for dtype, facts in DTYPES.items()}
    values: dict[str, Any] = {f"torch.{dtype}": made for dtype, made in dtypes.items()}
    values |= {f"torch.{alias}": dtypes[dtype] for alias, dtype in ALIASES.items()}
    values |= {"torch.version.cuda": "12.8", "torch.version.hip": None, "torch.version.xpu": None,
               "torch.version.git_version": "stand-in", "torch.inf": float("inf"), "torch.nan": float("nan"),
               "torch.pi": 3.141592653589793, "torch.e": 2.718281828459045, "torch.version.debug": False,
               "torch.Size": tuple, "torch.device": Device, "torch.dtype": DType}
    values["torch.device"] = _DeviceType("device", (Device,), {})
    answers: dict[str, Callable] = {
        "torch.cuda.is_available": lambda: True,
        "torch.cuda.is_initialized": lambda: False,
        "torch.cuda.is_bf16_supported": lambda *unused, **keywords: True,
        "torch.cuda.device_count": lambda: 1,
        "torch.cuda.current_device": lambda: 0,
        "torch.cuda.get_device_capability": lambda device=None: (arch // 10, arch % 10),
        "torch.cuda.get_device_name": lambda device=None: name,
        "torch.cuda.get_device_properties": lambda device=None: properties,
        "torch.cuda.get_arch_list": lambda: [f"sm_{arch}"],
        "torch.cuda.set_device": lambda device: None,
        "torch.xpu.device_count": lambda: 0,
        "torch.get_default_dtype": lambda: dtypes["float32"],
        "torch.get_default_device": lambda: Device("cpu"),
        "torch.is_tensor": lambda value: False,
        "torch.is_grad_enabled": lambda: False,
        "torch.finfo": _finfo,
        "torch.iinfo": _iinfo,
        "torch.compiler.is_compiling": lambda: False,
        "torch._dynamo.is_compiling": lambda: False,
        "torch.jit.is_scripting": lambda: False,
        "torch.jit.is_tracing": lambda: False,
        "torch.distributed.get_rank": lambda group=None: 0,
        "torch.distributed.get_world_size": lambda group=None: 1,
    }
    return values, answers


class _DeviceType(type):
    """torch.device: a class to isinstance, a function to call."""

    def __call__(cls, *arguments: Any, **keywords: Any) -> Device:
        return _device(*arguments, **keywords)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Device)


def driver(arch: int) -> Any:
    """A driver for triton.runtime.driver.set_active that answers questions and cannot launch."""
    from triton.backends.compiler import GPUTarget

    _, multiprocessors, shared = DEVICES.get(arch, ("", 128, 101376))

    def cannot(*unused: Any, **keywords: Any) -> Any:
        raise StandInError("Triton's driver is a stand-in here: kernels can be compiled, not launched")

    properties = {"max_shared_mem": shared, "multiprocessor_count": multiprocessors, "max_num_regs": 65536,
                  "warpSize": 32, "sm_clock_rate": 1_980_000, "mem_clock_rate": 2_619_000, "mem_bus_width": 5120}
    return types.SimpleNamespace(
        is_active=lambda: True,
        get_current_target=lambda: GPUTarget("cuda", arch, 32),
        get_current_device=lambda: 0,
        set_current_device=lambda device: None,
        get_device_capability=lambda device=0: (arch // 10, arch % 10),
        get_active_torch_device=lambda: Device("cuda", 0),
        get_device_interface=cannot, get_current_stream=cannot, get_empty_cache_for_benchmark=cannot,
        get_benchmarker=lambda: cannot, launcher_cls=cannot, assemble_tensormap_to_arg=cannot,
        map_python_to_cpp_type=cannot,
        utils=types.SimpleNamespace(get_device_properties=lambda device=0: dict(properties), load_binary=cannot,
                                    set_printf_fifo_size=cannot),
    )
