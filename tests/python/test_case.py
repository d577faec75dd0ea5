"""The case vocabulary checks itself, and names the field that is wrong."""

import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "python"))

from hebe.case import Buffer, Case, CaseError, Normal, Scalar, Tolerance, Uniform, Work, Zeros  # noqa: E402

U = Uniform(-1, 1, 0)


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
    (lambda: make(grid=lambda meta: (1,)), "Case.grid"),
    (lambda: make(arguments={}), "Case.arguments"),
    (lambda: make(arguments={"n": 3}), "Case.arguments['n']: write Scalar(3)"),
    (lambda: make(arguments={"n": "x"}), "Case.arguments['n']"),
    (lambda: make(constexprs={"o": 1}), "Case.constexprs"),
    (lambda: make(options=[1]), "Case.options"),
    (lambda: make(tolerance=0.1), "Case.tolerance"),
    (lambda: make(reference=3), "Case.reference"),
    (lambda: make(work=3), "Case.work"),
])
def test_a_wrong_field_is_named(build, field):
    with pytest.raises(CaseError) as error:
        build()
    assert str(error.value).startswith(field)


def test_short_grids_are_filled_up_and_plain_values_are_kept():
    assert make(grid=[7, 2]).grid == (7, 2, 1)
    assert Buffer([2, 3], "bf16", "in", U).bytes == 12
    assert Scalar(True).value is True


def test_importing_hebe_imports_nothing_heavy():
    import subprocess

    code = ("import sys, hebe, hebe.case; heavy = {'numpy', 'triton', 'torch'};"
            "print(sorted(heavy & set(sys.modules)), hebe.__version__)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT / "python")
    assert done.stdout == "[] 0.1.0\n"
