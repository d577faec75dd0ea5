"""Files with kernels import without torch; whatever would compute says so."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import sys
import textwrap

import pytest
import triton
from hebe.worker import stand_ins
from hebe.worker.stand_in_answers import StandInError

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is not None,
                                reason="torch is installed: it is never stood in for")


@pytest.fixture(autouse=True)
def torch():
    stand_ins.install(90)
    yield importlib.import_module("torch")
    stand_ins.remove()


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Import a file of this text."""
    monkeypatch.syspath_prepend(tmp_path)
    made = []

    def write(text: str, name: str = "stood_in_case"):
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        made.append(name)
        return name

    yield write
    for name in made:
        sys.modules.pop(name, None)


def test_after_removal_nothing_is_left(torch):
    stand_ins.remove()
    assert "torch" not in sys.modules and not any(isinstance(f, stand_ins._Finder) for f in sys.meta_path)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("torch")
    with pytest.raises(RuntimeError, match="active drivers"):
        triton.runtime.driver.active


def test_an_installed_module_is_never_replaced():
    import packaging.version

    assert importlib.util.find_spec("packaging").origin == packaging.__file__


def test_an_optional_extra_stays_absent(torch):
    for name in ("torch_npu", "vllm", "tilelang"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(name)
    assert not hasattr(torch, "npu") and importlib.util.find_spec("torch.npu") is None


def test_submodules_import_in_every_form(torch):
    import torch.nn.functional as F
    from torch import Tensor, nn
    from torch.distributed.tensor import DTensor

    assert repr(F.silu) == "torch.nn.functional.silu" and repr(nn.Module) == "torch.nn.Module"
    assert repr(Tensor) == "torch.Tensor" and repr(DTensor) == "torch.distributed.tensor.DTensor"


def test_what_packages_do_at_import(module):
    name = module("""
        import functools
        from abc import ABC
        from typing import Callable, Optional
        import torch, einops, transformers, sqlalchemy.orm
        from transformers import GenerationMixin, PreTrainedModel

        class Function(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x: torch.Tensor, dtype: torch.dtype | None = None) -> Optional[torch.Tensor]:
                return x

        class Model(PreTrainedModel, GenerationMixin, ABC):
            config: "None | torch.dtype" = None

        class Session(sqlalchemy.orm.Session):
            pass

        apply = Function.apply
        custom_forward = functools.partial(torch.amp.custom_fwd, device_type="cuda")

        @torch.compile
        def compiled(x): return x
        @torch.compile(dynamic=True)
        def compiled_with_options(x): return x
        @custom_forward
        def forward(x): return x

        @torch.library.custom_op("a::b", mutates_args=())
        def operator(x): return x
        @operator.register_fake
        def _(x): return x
        library = torch.library.Library("aten", "IMPL")
        library.impl("add", compiled, "CUDA")

        torch.backends.cuda.matmul.allow_tf32 = True
        torch.manual_seed(0)
        torch._dynamo.config.suppress_errors = True
        sizes = {torch.float32: 4, torch.bfloat16: 2}
        with torch.no_grad():
            pass
    """)
    made = importlib.import_module(name)
    assert made.compiled(3) == made.compiled_with_options(3) == made.forward(3) == 3
    assert not isinstance(3, made.torch.Tensor) and issubclass(made.Function, made.torch.autograd.Function)


@pytest.mark.parametrize("arch", [80, 90, 100])
def test_the_device_is_one_of_the_chosen_compute_capability(arch):
    stand_ins.install(arch)
    torch = importlib.import_module("torch")
    assert torch.cuda.is_available() and torch.cuda.device_count() == 1
    assert torch.cuda.get_device_capability() == torch.cuda.get_device_capability(0) == (arch // 10, arch % 10)
    assert torch.cuda.get_device_properties("cuda:0").multi_processor_count >= 108
    assert not torch.xpu.is_available() and not torch.distributed.is_initialized()
    assert torch.version.hip is None
    target = triton.runtime.driver.active.get_current_target()
    assert (target.backend, target.arch, target.warp_size) == ("cuda", arch, 32)
    assert str(triton.runtime.driver.active.get_active_torch_device()) == "cuda:0"


def test_facts_of_types_are_true(torch):
    assert torch.finfo(torch.float32).max == 3.4028234663852886e38 and torch.finfo(torch.float16).max == 65504
    assert torch.finfo(torch.bfloat16).eps == 2**-7 and torch.iinfo(torch.int8).min == -128
    assert torch.float16.itemsize == torch.half.itemsize == 2 and str(torch.float8_e4m3fn) == "torch.float8_e4m3fn"
    assert torch.bfloat16.is_floating_point and not torch.int32.is_floating_point
    assert torch.float == torch.float32 and copy.deepcopy(torch.long) == torch.int64
    device = torch.device("cuda", 1)
    assert (device.type, device.index) == ("cuda", 1) and isinstance(device, torch.device)
    assert tuple(map(int, torch.__version__.split("."))) >= (2, 4)


@pytest.mark.parametrize("code", [
    "torch.zeros(3)", "torch.rand(3, device='cuda')", "torch.tensor([1])", "torch.nn.functional.silu(1)",
    "torch.Tensor([1])", "einops.rearrange(1, 'a -> a')", "torch.ops.aten.add(1, 2) + 1",
    "len(torch.foo)", "int(torch.cuda.memory_allocated())", "bool(torch.cuda.something())", "torch.library.x() < 3",
    "[*torch.cuda.streams()]", "torch.cuda.x()[0]", "Model()",
    "1 in torch.names", "triton.runtime.driver.active.get_current_stream(0)",
])
def test_what_computes_is_refused(torch, code):
    import einops

    class Model(torch.nn.Module):
        pass

    places = {"torch": torch, "einops": einops, "Model": Model, "triton": triton}
    importlib.import_module("torch.nn.functional")
    with pytest.raises(StandInError, match="stand-in"):
        eval(code, places)


TUTORIAL = """
    import torch
    import triton
    import triton.language as tl

    DEVICE = triton.runtime.driver.active.get_active_torch_device()
    PROPERTIES = triton.runtime.driver.active.utils.get_device_properties(DEVICE.index)

    @triton.autotune([triton.Config({"BLOCK": 64})], key=["n"])
    @triton.heuristics({"EVEN": lambda arguments: arguments["n"] % arguments["BLOCK"] == 0})
    @triton.jit
    def copy_kernel(x, y, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)

    def copy(x: torch.Tensor):
        y = torch.empty_like(x)
        copy_kernel[(1,)](x, y, x.numel())
        return y

    torch.manual_seed(0)
    x = torch.rand(98432, device=DEVICE)
    assert torch.allclose(copy(x), x)
"""


def test_a_tutorial_gives_its_kernels_up_to_where_it_computes(module):
    made, ended = stand_ins.import_until_computing(module(TUTORIAL))
    assert "torch.rand()" in str(ended)
    assert made.PROPERTIES["multiprocessor_count"] == 132
    (name, kernel), = stand_ins.kernels_of(made)
    assert name == "copy_kernel" and kernel.arg_names == ["x", "y", "n", "BLOCK", "EVEN"]
    assert stand_ins.unwrap(made.torch.anything) is None and stand_ins.unwrap(made.copy) is None
    assert stand_ins.import_until_computing(made.__name__) == (made, None)


def test_an_import_inside_that_computes_is_an_error(module):
    module("import torch\nx = torch.zeros(3)\n", "stood_in_inner")
    name = module("import stood_in_inner\n", "stood_in_outer")
    with pytest.raises(StandInError, match="torch.zeros"):
        stand_ins.import_until_computing(name)
    assert name not in sys.modules


def test_an_ordinary_error_is_raised(module):
    with pytest.raises(ZeroDivisionError):
        stand_ins.import_until_computing(module("import torch\n1 / 0\n"))
    with pytest.raises(ModuleNotFoundError):
        stand_ins.import_until_computing("no_such_module_here")


def test_the_kernel_compiles_for_the_device(module, tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    made, _ = stand_ins.import_until_computing(module("""
        import torch
        import triton
        import triton.language as tl

        @triton.jit
        def probe_kernel(out):
            if tl.target_info.cuda_capability_geq(9, 0):
                tl.store(out, 90)
            else:
                tl.store(out, 80)
    """))
    from triton.backends.compiler import GPUTarget

    source = triton.compiler.ASTSource(made.probe_kernel, {"out": "*i32"})
    assert "90 : i32" in triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ttir"]
