"""The case vocabulary checks itself, and names the field that is wrong."""

import math
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "python"))

from hebe.case import (  # noqa: E402
    Buffer, Case, CaseError, CheckoutKernel, CompiledKernel, Constant, Normal, PackageKernel, Scalar, Tolerance,
    Uniform, Work, Zeros)

U = Uniform(-1, 1, 0)
COMPILED = CompiledKernel(registers=32, shared_bytes=1024, num_warps=4, spills=0)


def make(**changes):
    fields = dict(name="a", kernel=None, arguments={"o": Buffer((4,), "fp32", "out")}, grid=(1,),
                  tolerance=Tolerance(0, 0))
    return Case(**{**fields, **changes})


@pytest.mark.parametrize("build, field", [
    (lambda: Buffer((), "fp32", "out"), "Buffer.shape"),
    (lambda: Buffer(4, "fp32", "out"), "Buffer.shape"),
    (lambda: Buffer((4, -1), "fp32", "out"), "Buffer.shape"),
    (lambda: Buffer((4.0,), "fp32", "out"), "Buffer.shape"),
    (lambda: Buffer((4,), "float32", "out"), "Buffer.dtype"),
    (lambda: Buffer((4,), "fp32", "output"), "Buffer.role"),
    (lambda: Buffer((4,), "fp32", "in"), "Buffer.init"),
    (lambda: Buffer((4,), "fp32", "inout"), "Buffer.init"),
    (lambda: Buffer((4,), "fp32", "out", Zeros()), "Buffer.init"),
    (lambda: Buffer((4,), "i32", "in", Normal(0, 1, 0)), "Buffer.init"),
    (lambda: Buffer((4,), "i32", "in", Uniform(0, 1.5, 0)), "Buffer.init"),
    (lambda: Buffer((4,), "u8", "in", Uniform(0, 257, 0)), "Buffer.init"),
    (lambda: Buffer((4,), "u8", "in", U), "Buffer.init"),
    (lambda: Buffer((4,), "u8", "in", Constant(256)), "Buffer.init: Constant(256) does not fit u8"),
    (lambda: Buffer((4,), "i32", "in", Constant(1.0)), "Buffer.init: Constant(1.0) does not fit i32"),
    (lambda: Buffer((4,), "i1", "in", Constant(2)), "Buffer.init"),
    (lambda: Buffer((4,), "i8", "in", Constant(float("nan"))), "Buffer.init"),
    (lambda: Buffer((4,), "fp16", "in", Constant(65505)), "Buffer.init: Constant(65505) does not fit fp16"),
    (lambda: Buffer((4,), "bf16", "in", Constant(-3.4e38)), "Buffer.init"),
    (lambda: Buffer((4,), "fp32", "out", Constant(0)), "Buffer.init"),
    (lambda: Constant("nan"), "Constant.value"),
    (lambda: Constant(None), "Constant.value"),
    (lambda: Uniform(1, 1, 0), "Uniform.high"),
    (lambda: Uniform(float("nan"), 1, 0), "Uniform.low"),
    (lambda: Uniform(0, 1, -1), "Uniform.seed"),
    (lambda: Uniform(0, 1, 2**64), "Uniform.seed"),
    (lambda: Normal(0, -1, 0), "Normal.std"),
    (lambda: Scalar("1"), "Scalar.value"),
    (lambda: Scalar(2**64), "Scalar.value"),
    (lambda: Scalar(1, "int"), "Scalar.dtype"),
    (lambda: Tolerance(-1, 0), "Tolerance"),
    (lambda: Tolerance(0, float("inf")), "Tolerance.rtol"),
    (lambda: Work(1.5, 0, {}), "Work.bytes_read"),
    (lambda: Work(0, 0, {"add": -1}), "Work.operations['add']"),
    (lambda: make(name="a b"), "Case.name"),
    (lambda: make(grid=()), "Case.grid"),
    (lambda: make(grid=(0, 1)), "Case.grid.x"),
    (lambda: make(grid=(1, 65536)), "Case.grid.y"),
    (lambda: make(grid=lambda kernel: 3).grid_for(COMPILED), "Case.grid: 3 is not a tuple"),
    (lambda: make(grid=lambda kernel: (kernel.spills,)).grid_for(COMPILED), "Case.grid.x: 0 is outside"),
    (lambda: make(grid=lambda kernel: (1.0,)).grid_for(COMPILED), "Case.grid.x: 1.0 is not an integer"),
    (lambda: make(grid=lambda kernel: lambda kernel: (1,)).grid_for(COMPILED), "Case.grid: <function"),
    (lambda: make(arguments={}), "Case.arguments"),
    (lambda: make(arguments={"n": 3}), "Case.arguments['n']: write Scalar(3)"),
    (lambda: make(arguments={"n": "x"}), "Case.arguments['n']"),
    (lambda: make(constexprs={"o": 1}), "Case.constexprs"),
    (lambda: make(options=[1]), "Case.options"),
    (lambda: make(tolerance=0.1), "Case.tolerance"),
    (lambda: make(reference=3), "Case.reference"),
    (lambda: make(work=3), "Case.work"),
    (lambda: PackageKernel("a/b", "k"), "PackageKernel.module"),
    (lambda: PackageKernel("a.b", "k()"), "PackageKernel.name"),
    (lambda: PackageKernel("a.b", "k", "ABC"), "PackageKernel.sha256"),
    (lambda: CheckoutKernel("/a.py", "k"), "CheckoutKernel.path"),
    (lambda: CheckoutKernel("../a.py", "k"), "CheckoutKernel.path"),
    (lambda: CheckoutKernel("a.cpp", "k"), "CheckoutKernel.path"),
    (lambda: CheckoutKernel("a.py", "", "0" * 64), "CheckoutKernel.name"),
    (lambda: CheckoutKernel("a.py", "k", "0" * 63), "CheckoutKernel.sha256"),
])
def test_a_wrong_field_is_named(build, field):
    with pytest.raises(CaseError) as error:
        build()
    assert str(error.value).startswith(field)


def test_short_grids_are_filled_up_and_plain_values_are_kept():
    assert make(grid=[7, 2]).grid == (7, 2, 1)
    assert Buffer([2, 3], "bf16", "in", U).bytes == 12
    assert Scalar(True).value is True


def test_a_grid_may_be_computed_from_the_compiled_kernel():
    case = make(grid=lambda kernel: (65536 // kernel.registers, kernel.num_warps))
    assert case.grid_for(COMPILED) == (2048, 4, 1) and make(grid=(3,)).grid_for(COMPILED) == (3, 1, 1)


def test_a_constant_is_a_number_of_its_buffers_type():
    for dtype, value, wanted in (("fp16", 65504, 65504.0), ("bf16", -1e38, -1e38), ("fp32", math.inf, math.inf),
                                 ("fp64", 1e308, 1e308), ("u64", 2**64 - 1, 2**64 - 1), ("i8", -128, -128)):
        buffer = Buffer((2,), dtype, "in", Constant(value))
        assert buffer.init.in_type(dtype) == wanted and type(buffer.init.in_type(dtype)) is type(wanted)
    assert Constant(1).in_type("i1") is True and Constant(True).in_type("i32") == 1
    assert math.isnan(Buffer((2,), "fp16", "inout", Constant(math.nan)).init.in_type("fp16"))


def test_importing_hebe_imports_nothing_heavy():
    import subprocess

    code = ("import sys, hebe, hebe.case; heavy = {'numpy', 'triton', 'torch'};"
            "print(sorted(heavy & set(sys.modules)), hebe.__version__)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT / "python")
    assert done.stdout == "[] 0.1.0\n"
