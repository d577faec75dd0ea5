"""Edited TTGIR goes through the rest of Triton's pipeline, on the case's own schedule."""

import base64
import hashlib

import pytest
from conftest import TARGET, VECTOR_ADD, line_of


def request(case=VECTOR_ADD, **params):
    return {"case": str(case), "target": TARGET, **params}


@pytest.fixture
def ttgir(worker):
    return worker.compile(VECTOR_ADD)["artifacts"]["ttgir"]["data"]


@pytest.mark.parametrize("options", [{}, {"num_warps": 8}, {"maxnreg": 24}, {"enable_fp_fusion": False}])
@pytest.mark.parametrize("line_info", ["0", "1"])
def test_an_unedited_dump_gives_the_same_bytes(fresh_worker, write_case, tmp_path, options, line_info):
    """Cubin and all: the worker always compiles with TRITON_DISABLE_LINE_INFO=1, whatever it is started with."""
    case = write_case(kernel="x = x * 3.0 + tl.sum(x * x + 1.0, 0)")
    worker = fresh_worker(TRITON_DISABLE_LINE_INFO=line_info)
    base = worker.compile(case, options=options)
    made = worker.ask("recompile", ttgir=base["artifacts"]["ttgir"]["data"], **request(case, options=options),
                      cache_dir=str(tmp_path / "cache"))
    assert set(made["artifacts"]) == {"source", "ttgir", "llir", "ptx", "cubin", "sass"}
    for kind, artifact in made["artifacts"].items():
        assert artifact == base["artifacts"][kind], kind
    assert made["launch"] == base["launch"] and made["resources"] == base["resources"]
    assert made["launch"]["shared_bytes"] > 0


def test_an_edit_is_compiled_and_recorded(worker, ttgir):
    edited = "// edited\n" + ttgir.replace("arith.addf", "arith.subf")
    made, base = worker.ask("recompile", ttgir=edited, **request()), worker.compile(VECTOR_ADD)
    assert made["artifacts"]["ttgir"]["data"] == edited
    assert "sub.f32" in made["artifacts"]["ptx"]["data"] and "sub.f32" not in base["artifacts"]["ptx"]["data"]
    assert made["artifacts"]["source"] == base["artifacts"]["source"] and made["launch"] == base["launch"]
    assert made["provenance"]["ttgir_sha256"] == hashlib.sha256(edited.encode()).hexdigest()
    assert made["provenance"]["source_sha256"] == base["provenance"]["source_sha256"]
    assert base64.b64decode(made["artifacts"]["cubin"]["data"])[:4] == b"\x7fELF"


def test_a_renamed_entry_and_another_text_in_one_cache_folder_are_not_confused(worker, ttgir, tmp_path):
    for name in ("first", "second", "first"):
        made = worker.ask("recompile", ttgir=ttgir.replace("add_kernel", name), **request(), cache_dir=str(tmp_path))
        assert made["launch"]["entry"] == name and f".entry {name}" in made["artifacts"]["ptx"]["data"]


def test_a_parse_error_has_mlirs_own_words_and_line(worker, ttgir):
    error = worker.fail("recompile", ttgir=ttgir.replace("tt.store", "tt.stare"), **request())
    line = ttgir[:ttgir.index("tt.store")].count("\n") + 1
    assert (error["kind"], error["where"]) == ("compile_failed", f"kernel.ttgir:{line}")
    assert "custom op 'tt.stare' is unknown" in error["message"] and "loc(" in error["message"]


def test_text_that_breaks_an_invariant_of_the_layouts_is_refused_with_mlirs_words(worker, ttgir):
    error = worker.fail("recompile", ttgir=ttgir.replace("warpsPerCTA = [4]", "warpsPerCTA = [2]"), **request())
    assert error["kind"] == "compile_failed" and "2 warps per CTA" in error["message"]


def test_mlirs_words_still_reach_stderr(fresh_worker, ttgir):
    worker = fresh_worker()
    worker.fail("recompile", ttgir="this is no MLIR", **request())
    worker.compile(VECTOR_ADD)
    assert 'loc("kernel.ttgir":1:1): error:' in worker.end()[1]


@pytest.mark.parametrize("old, new, options, words", [
    ("", "", {"num_warps": 8}, "has ttg.num-warps = 4, the case's option num_warps is 8"),
    ("", "", {"num_ctas": 2}, "has ttg.num-ctas = 1, the case's option num_ctas is 2"),
    ("", "", {"maxnreg": 32}, "has ttg.maxnreg = None, the case's option maxnreg is 32"),
    ("attributes {", "attributes {ttg.maxnreg = 32 : i32, ", {}, "has ttg.maxnreg = 32"),
    ('"ttg.num-warps" = 4 : i32, ', "", {}, "num-warps"),
    ("cuda:90", "cuda:80", {}, "is for cuda:80, the request's target is cuda:90"),
    ('ttg.target = "cuda:90", ', "", {}, "is for no target"),
    ("%n: i32", "%n: i64", {}, "i64"),
    ("tt.func public", "tt.func private", {}, "no public function"),
])
def test_text_that_does_not_fit_the_case_is_refused(worker, ttgir, old, new, options, words):
    error = worker.fail("recompile", ttgir=ttgir.replace(old, new), **request(options=options))
    assert error["kind"] == "compile_failed" and words in error["message"], error
    assert error["where"].startswith("kernel.ttgir")


def test_a_kernel_with_other_arguments_is_refused(worker, write_case):
    text = worker.compile(write_case(dtype="i32"))["artifacts"]["ttgir"]["data"]
    error = worker.fail("recompile", ttgir=text, **request(write_case(dtype="fp16")))
    assert error["kind"] == "compile_failed"
    assert error["message"] == "the TTGIR takes (*i32, *i32), the case gives (*f16, *f16)"


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp32", "fp64", "i1", "i8", "i16", "i32", "i64", "u8", "u64"])
def test_every_element_type_is_taken_for_what_it_is(worker, write_case, dtype):
    case = write_case(dtype=dtype)
    case.write_text(case.read_text().replace("out_ptr, BLOCK", "out_ptr, a, b, c, d: tl.float64, BLOCK").replace(
        "arguments={", 'arguments={"a": Scalar(True), "b": Scalar(2**40), "c": Scalar(2**63), "d": Scalar(0.5), '))
    base = worker.compile(case)
    made = worker.ask("recompile", ttgir=base["artifacts"]["ttgir"]["data"], **request(case))
    assert made["artifacts"]["cubin"] == base["artifacts"]["cubin"] and made["launch"] == base["launch"]


def test_an_override_and_no_text_are_refused(worker, ttgir, tmp_path):
    file = tmp_path / "kernel.ttgir"
    file.write_text(ttgir)
    error = worker.fail("recompile", ttgir=ttgir, **request(options={"ir_override": str(file)}))
    assert error["kind"] == "bad_option" and error["message"].startswith("ir_override:")
    assert worker.fail("recompile", **request())["message"] == "params.ttgir is missing"
    assert worker.fail("recompile", ttgir="\ud800", **request())["kind"] == "bad_request"


def test_a_broken_case_is_reported_as_a_compile_does(worker, write_case, ttgir):
    case = write_case(body="raise KeyError('lost')")
    error = worker.fail("recompile", ttgir=ttgir, **request(case))
    assert (error["kind"], error["where"]) == ("case_error", line_of(case, "raise KeyError"))


def test_a_computed_grid_is_that_of_the_unedited_kernel(worker, write_case):
    """Both launch the same programs, whatever the edit does to the registers."""
    case = write_case(kernel="x = tl.sum(x, 0) + x")
    case.write_text(case.read_text().replace("grid=(2,)", "grid=lambda kernel: (kernel.registers, kernel.num_warps)"))
    base = worker.compile(case)
    text = base["artifacts"]["ttgir"]["data"]
    edited = "\n".join(line for line in text.splitlines() if "tt.store" not in line)
    made = worker.ask("recompile", ttgir=edited, **request(case))
    assert made["resources"]["registers"] < base["resources"]["registers"]
    assert made["launch"]["grid"] == base["launch"]["grid"] == [base["resources"]["registers"], 4, 1]
