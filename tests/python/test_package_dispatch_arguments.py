"""What hebe.dispatch and hebe.load_profile are given: a size is a whole number, a name is a text, and neither is cut to one."""

from __future__ import annotations

import warnings

import hebe
import pytest
from package import BOARD, needs_library, profile_in, python

pytestmark = needs_library


@pytest.fixture
def loaded(tmp_path):
    profile = profile_in(tmp_path)
    hebe.load_profile(profile, BOARD)
    yield profile
    hebe.unload_profile()


class Whole:
    """As numpy's integers are: no int, and an index."""

    def __index__(self) -> int:
        return 200


@pytest.mark.parametrize("size", [200, Whole()])
def test_a_whole_number_of_any_type_is_a_size(loaded, size):
    import numpy
    for one in (size, numpy.int32(200), numpy.uint8(200)):
        assert hebe.dispatch("matmul", [one, 4096], "bf16").name == "cublaslt"
        assert hebe.dispatch("matmul", {"m": one, "n": 4096}, "bf16").name == "cublaslt"


#: Whether it would have been taken as a size, whole or letter by letter, or not at all.
NO_SIZES = [200.9, 200.0, float("nan"), "200", None, True, [200], b"2", 1j]


@pytest.mark.parametrize("wrong", NO_SIZES)
@pytest.mark.parametrize("operation", ["matmul", "unknown"])
def test_what_is_no_whole_number_is_no_size_and_is_named(loaded, wrong, operation):
    with pytest.raises(TypeError, match=r"sizes\[0\] is .*whole number"):
        hebe.dispatch(operation, [wrong, 4096], "bf16")
    with pytest.raises(TypeError, match=r"sizes\['m'\] is .*whole number"):
        hebe.dispatch(operation, {"m": wrong, "n": 4096}, "bf16")


@pytest.mark.parametrize("wrong", [4096, None, 1.5])
def test_what_is_no_sequence_is_no_sizes(loaded, wrong):
    with pytest.raises(TypeError, match="sizes is .*"):
        hebe.dispatch("matmul", wrong, "bf16")


@pytest.mark.parametrize("wrong", ["12", b"12"])
def test_a_text_is_no_sizes_letter_by_letter(loaded, wrong):
    with pytest.raises(TypeError, match="sizes"):
        hebe.dispatch("matmul", wrong, "bf16")


@pytest.mark.parametrize("size", [2**64 + 200, 2**63, 2**63 - 1, -1, 0, -2**63, -2**64 + 200, 10**30])
def test_a_size_that_no_row_can_have_is_a_miss_and_never_another_size(loaded, size):
    for sizes in ([size, 4096], {"m": size, "n": 4096}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert hebe.dispatch("matmul", sizes, "bf16") is None
    assert hebe.dispatch("matmul", [200, 4096], "bf16").name == "cublaslt"


def test_a_size_beyond_64_bits_is_said_once_as_any_miss_is(loaded):
    with pytest.warns(RuntimeWarning, match="no row for matmul bf16"):
        hebe.dispatch("matmul", [2**64 + 200, 4096], "bf16")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hebe.dispatch("matmul", [2**65 + 200, 4096], "bf16")


@pytest.mark.parametrize("wrong", [16, None, b"bf16", object()])
def test_a_dtype_or_operation_that_is_no_text_is_named(loaded, wrong):
    with pytest.raises(TypeError, match="dtype is .*text"):
        hebe.dispatch("matmul", (200, 4096), wrong)
    with pytest.raises(TypeError, match="operation is .*text"):
        hebe.dispatch(wrong, (200, 4096), "bf16")


@pytest.mark.parametrize("bad", ["bf16\0x", "bf\udc8016"])
def test_a_name_is_never_cut_where_c_would_end_it(loaded, bad):
    with pytest.raises(hebe.Refused, match="dtype") as caught:
        hebe.dispatch("matmul", (200, 4096), bad)
    assert caught.value.code == "bad_argument"
    with pytest.raises(hebe.Refused, match="operation"):
        hebe.dispatch(bad, (200, 4096), "bf16")


def test_sizes_by_names_that_are_no_texts_are_refused_with_the_names_that_are(loaded):
    with pytest.raises(hebe.Refused, match="has the sizes m, n, not 0, 1"):
        hebe.dispatch("matmul", {0: 1, 1: 4096}, "bf16")


def test_a_call_that_is_wrong_is_wrong_without_a_profile_too():
    for wrong in (((1.5,), "bf16"), ((1,), 16)):
        with pytest.raises(TypeError):
            hebe.dispatch("matmul", *wrong)
    done = python("import hebe\ntry: hebe.dispatch('matmul', (1.5,), 'bf16')\n"
                  "except TypeError: print('libhebe' in open('/proc/self/maps').read())", HEBE_PROFILE="")
    assert done.stdout == "False\n", done.stderr


@pytest.mark.parametrize("wrong", [3, b"NVIDIA H200"])
def test_a_board_that_is_no_text_is_named(loaded, wrong):
    with pytest.raises(TypeError, match="board is .*text"):
        hebe.load_profile(loaded, wrong)


@pytest.mark.parametrize("wrong", [1.5, None, 3])
def test_a_file_that_is_no_path_is_named_before_a_board_is_asked(wrong):
    with pytest.raises(TypeError, match="file is .*path"):
        hebe.load_profile(wrong)


def test_a_path_or_board_is_never_cut_where_c_would_end_it(loaded):
    with pytest.raises(hebe.Refused, match="file") as caught:
        hebe.load_profile(f"{loaded}\0.other", BOARD)
    assert caught.value.code == "bad_argument"
    with pytest.raises(hebe.Refused, match="board"):
        hebe.load_profile(loaded, f"{BOARD}\0 of another")


def test_a_board_variable_that_is_no_text_falls_back_and_is_said_once(loaded):
    done = python("import hebe\nfor _ in range(2): print(hebe.dispatch('matmul', (1, 4096), 'bf16'))", HEBE_PROFILE=str(loaded),
                  HEBE_BOARD="\udcff")
    assert done.stdout == "None\n" * 2 and done.stderr.count("HEBE_PROFILE is not used") == 1, done.stderr


@pytest.mark.parametrize("sizes", [[1], [1, 4096, 64], []])
def test_a_number_of_sizes_that_no_row_has_is_refused_every_time(loaded, sizes):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(hebe.Refused, match=f"has the sizes m, n, not {len(sizes)} of them") as caught:
                hebe.dispatch("matmul", sizes, "bf16")
            assert (caught.value.code, caught.value.where) == ("bad_argument", "sizes")
    with pytest.warns(RuntimeWarning, match="no row for matmul fp8"):  # no row has that dtype, whatever the sizes
        assert hebe.dispatch("matmul", sizes, "fp8") is None
