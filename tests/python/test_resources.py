"""What a kernel takes of a multiprocessor, and grids that are computed from it."""

import sys

import pytest
from conftest import ROOT, VECTOR_ADD, line_of

sys.path.insert(0, str(ROOT / "python"))

from hebe.worker.resources import _LOCAL, _usage  # noqa: E402

PRINTED = """
Resource usage:
 Common:
  GLOBAL:0
 Function add_kernel:
  REG:24 STACK:4168 SHARED:1024 LOCAL:8 CONSTANT[0]:576 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function add:
  REG:9 STACK:0 SHARED:0 LOCAL:0 TEXTURE:0
"""


def test_the_line_of_the_entry_is_read():
    wanted = {"registers": 24, "stack_bytes": 4168, "shared_static_bytes": 1024, "local_bytes": 8}
    assert _usage(PRINTED, "add_kernel") == wanted
    assert _usage(PRINTED, "add")["registers"] == 9


@pytest.mark.parametrize("old, new", [
    ("REG:24", "REG:?"), ("REG:24 ", ""), ("REG:24", "REG:24 and"), ("LOCAL:8 ", ""), ("Function add_kernel:", "Function k:"),
    ("Function add:", "Function add_kernel:"), (PRINTED[PRINTED.index("  REG:24"):], ""),
])
def test_what_is_not_understood_is_not_guessed(old, new):
    assert _usage(PRINTED.replace(old, new), "add_kernel") is None


def test_local_loads_and_stores_are_counted_with_and_without_a_predicate():
    sass = ("        /*0010*/                   LDL.LU R64, [R1+0x1a0] ;\n        /*0020*/              @!P0 LDL R2, [R1] ;\n"
            "        /*0030*/              @UP1 STL.64 [R1+0x8], R2 ;\n        /*0040*/                   LDG.E R2, [R4] ;\n"
            ".LDL_LABEL:\n        /*0050*/                   MOV R2, STLX ;\n")
    assert _LOCAL.findall(sass) == ["LDL", "LDL", "STL"]


def test_a_kernel_that_spills_shows_it(worker):
    plain = worker.compile(VECTOR_ADD)["resources"]
    assert plain["stack_bytes"] == plain["local_loads"] == plain["local_stores"] == 0 < plain["registers"] <= 255
    assert plain["cuobjdump"] == worker.ask("hello")["cuobjdump"]["version"]
    spilling = worker.compile(VECTOR_ADD, parameters={"block": 8192, "num_warps": 1}, options={"maxnreg": 24})["resources"]
    assert spilling["registers"] == 24
    assert min(spilling["stack_bytes"], spilling["local_loads"], spilling["local_stores"]) > 0


def test_without_the_tools_the_reason_is_recorded_and_nothing_else_fails(fresh_worker):
    result = fresh_worker(TRITON_CUOBJDUMP_PATH="/nowhere/cuobjdump").compile(VECTOR_ADD)
    assert set(result["resources"]) == {"unavailable"} and "/nowhere/cuobjdump" in result["resources"]["unavailable"]
    resources = fresh_worker(TRITON_NVDISASM_PATH="/nowhere/nvdisasm").compile(VECTOR_ADD)["resources"]
    assert resources["local_loads"] is None and resources["registers"] > 0


def test_another_tools_words_are_unavailable_not_zero(fresh_worker, tmp_path):
    fake = tmp_path / "cuobjdump"
    fake.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 99.1, V99.1.23'\n")
    fake.chmod(0o755)
    found = fresh_worker(TRITON_CUOBJDUMP_PATH=str(fake)).compile(VECTOR_ADD)["resources"]
    assert "cuobjdump 99.1.23 printed no resource usage of add_kernel" in found["unavailable"]


def with_grid(case, text):
    case.write_text(case.read_text().replace("grid=(2,)", f"grid={text}"))
    return case


def test_a_grid_is_computed_from_the_compiled_kernel(worker, write_case):
    case = with_grid(write_case(kernel="x = tl.sum(x, 0) + x"),
                     "lambda kernel: (kernel.registers, kernel.shared_bytes, kernel.num_warps + kernel.spills)")
    for options, warps in (({}, 4), ({"num_warps": 2}, 2)):
        result = worker.compile(case, options=options)
        launch = result["launch"]
        assert launch["grid"] == [result["resources"]["registers"], launch["shared_bytes"], warps]
        assert launch["shared_bytes"] > 0


@pytest.mark.parametrize("grid, words", [
    ("lambda kernel: kernel.registers", "is not a tuple of one to three integers"),
    ("lambda kernel: (0,)", "Case.grid.x: 0 is outside"),
    ("lambda kernel: (kernel.registers / 2,)", "is not an integer"),
    ("lambda kernel: lambda kernel: (1,)", "is not a tuple of one to three integers"),
    ("lambda kernel: (kernel.n_regs,)", "n_regs"),
    ("lambda: (1,)", "TypeError"),
    ("lambda kernel: exit(3)", "exit"),
])
def test_a_grid_function_that_gives_no_grid_is_a_case_error(worker, write_case, grid, words):
    error = worker.compile_error(with_grid(write_case(), grid))
    assert error["kind"] == "case_error" and words in error["message"], error


def test_an_error_in_a_grid_function_names_its_line(worker, write_case):
    case = with_grid(write_case(), "lambda kernel: (1 // kernel.spills,)")
    assert worker.compile_error(case)["where"] == line_of(case, "1 // kernel.spills")


def test_a_computed_grid_needs_cuobjdump(fresh_worker, write_case):
    case = with_grid(write_case(), "lambda kernel: (kernel.registers,)")
    error = fresh_worker(TRITON_CUOBJDUMP_PATH="/nowhere/cuobjdump").compile_error(case)
    assert error["kind"] == "toolchain_unavailable" and "/nowhere/cuobjdump" in error["message"]


@pytest.mark.parametrize("dtype, value, written", [
    ("fp32", "1.5", 1.5), ("fp16", "2", 2.0), ("fp32", "float('nan')", "nan"), ("bf16", "float('inf')", "inf"),
    ("fp64", "-float('inf')", "-inf"), ("i32", "-7", -7), ("u64", "2**64 - 1", str(2**64 - 1)), ("i1", "1", True),
    ("i8", "True", 1),
])
def test_a_constant_is_written_as_scalars_are(worker, write_case, dtype, value, written):
    case = write_case(dtype=dtype)
    case.write_text(case.read_text().replace("Zeros()", f"Constant({value})"))
    init = worker.compile(case)["launch"]["arguments"][0]["init"]
    assert init == {"kind": "constant", "value": written} and type(init["value"]) is type(written)
