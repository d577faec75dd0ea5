"""Compile options: Triton ignores an unknown one, so the worker must not."""

import pytest
from conftest import TARGET, VECTOR_ADD


def test_an_option_of_the_request_wins_over_the_case(worker):
    result = worker.compile(VECTOR_ADD, options={"num_warps": 8, "num_stages": 2, "launch_pdl": True, "maxnreg": 64})
    assert (result["launch"]["num_warps"], result["launch"]["pdl"]) == (8, True)
    assert result["provenance"]["options"]["num_stages"] == 2
    assert ".maxnreg 64" in result["artifacts"]["ptx"]["data"]


def test_an_unknown_option_is_refused_with_the_nearest_and_the_list(worker, write_case):
    error = worker.compile_error(VECTOR_ADD, options={"num_warp": 4})
    assert error["kind"] == "unknown_option"
    assert "'num_warp'; did you mean 'num_warps'? valid: debug, " in error["message"]
    assert worker.compile_error(write_case(options="'num_stage': 2"))["kind"] == "unknown_option"


@pytest.mark.parametrize("options, words", [
    ({"num_warps": 3}, "num_warps: 3 is not a power of two from 1 to 32"),
    ({"num_warps": "4"}, "num_warps: '4' is not"),
    ({"num_warps": True}, "num_warps: True is not"),
    ({"num_warps": 64}, "num_warps: 64 is not"),
    ({"num_stages": 0}, "num_stages: 0 is not an integer from 1"),
    ({"num_stages": None}, "num_stages: None"),
    ({"num_stages": 2.0}, "num_stages: 2.0"),
    ({"maxnreg": "64"}, "maxnreg: '64'"),
    ({"enable_fp_fusion": 1}, "enable_fp_fusion: 1 is not true or false"),
    ({"default_dot_input_precision": "fp8"}, "one of tf32, tf32x3, ieee"),
    ({"ir_override": "relative.ttgir"}, "an absolute path"),
    ({"ir_override": "/nowhere/x.ttgir"}, "No such file"),
    ({"arch": "sm80"}, "decided by the target"),
])
def test_a_wrong_value_is_a_bad_option(worker, options, words):
    error = worker.compile_error(VECTOR_ADD, options=options)
    assert error["kind"] == "bad_option" and words in error["message"]


def test_clusters_need_sm_90(worker):
    error = worker.fail("compile", case=str(VECTOR_ADD), target=TARGET | {"arch": 80}, options={"num_ctas": 2})
    assert error["kind"] == "bad_option" and "sm_90" in error["message"]


def test_an_override_edited_in_place_gives_the_new_kernel(worker, write_case, tmp_path):
    """Triton keys an override by its path only; the record names it by content and holds no path."""
    case = write_case(kernel="x = x + 1.0")
    edited = tmp_path / "edited.ttgir"
    digests = set()
    for number in ("2.0", "4.0"):
        text = worker.compile(case)["artifacts"]["ttgir"]["data"]
        edited.write_text(text.replace("dense<1.000000e+00>", f"dense<{number}00000e+00>"))
        result = worker.compile(case, options={"ir_override": str(edited)})
        assert f"dense<{number}00000e+00>" in result["artifacts"]["ttgir"]["data"]
        assert result["provenance"]["options"]["ir_override"]["stage"] == "ttgir"
        digests.add(result["provenance"]["options"]["ir_override"]["sha256"])
        assert str(tmp_path) not in str(result)
    assert len(digests) == 2


def test_a_broken_override_is_a_failed_compile(worker, tmp_path):
    broken = tmp_path / "broken.ptx"
    broken.write_text(".version 8.0\n.target sm_90a\nnonsense\n")
    error = worker.compile_error(VECTOR_ADD, options={"ir_override": str(broken)})
    assert error["kind"] == "compile_failed" and "ptxas" in error["message"]


def test_an_option_that_is_also_a_constexpr_must_agree(worker, write_case):
    case = write_case()
    case.write_text(case.read_text().replace("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, num_stages: tl.constexpr")
                    .replace('{"BLOCK": 128}', '{"BLOCK": 128, "num_stages": 4}'))
    assert worker.compile(case)["provenance"]["options"]["num_stages"] == 4  # as a launch by keyword would do
    error = worker.compile_error(case, options={"num_stages": 2})
    assert error["kind"] == "bad_option" and "the case's own parameters" in error["message"]
