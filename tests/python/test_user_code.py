"""Whatever a case file does wrong, the answer names its own file and line, and the worker lives on."""

import pytest
from conftest import VECTOR_ADD, line_of


def test_a_missing_file_is_not_found(worker, tmp_path):
    assert worker.compile_error(tmp_path / "gone.py")["kind"] == "case_not_found"


def test_a_missing_function_lists_those_that_are_there(worker):
    error = worker.compile_error(VECTOR_ADD, function="cas")
    assert error["kind"] == "case_not_found" and error["message"].endswith("it has: case")


def test_case_with_a_syntax_error_names_file_and_line(worker, write_case):
    case = write_case(top="x = 1\ndef broken(:\n")
    error = worker.compile_error(case)
    assert error["kind"] == "case_syntax"
    assert error["where"] == line_of(case, "def broken")


@pytest.mark.parametrize("data", [b"x = '\xff'\n", b"x = 1\n\x00\n", b"# coding: nonsense\n"])
def test_a_file_that_is_no_python_text_is_a_syntax_error(worker, tmp_path, data):
    case = tmp_path / "binary.py"
    case.write_bytes(data)
    error = worker.compile_error(case)
    assert error["kind"] == "case_syntax" and error["where"].startswith("binary.py:")


def test_a_syntax_error_in_a_helper_names_the_helper(worker, write_case, tmp_path):
    (tmp_path / "helper_module.py").write_text("a = 1\nb = (\n")
    error = worker.compile_error(write_case(top="import helper_module"))
    assert error["kind"] == "case_syntax" and error["where"] == "helper_module.py:2"


@pytest.mark.parametrize("code, words", [
    ("raise KeyError('lost')", "KeyError: 'lost'"),
    ("import sys; sys.exit(3)", "sys.exit(3)"),
    ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    ("raise StopIteration('end')", "StopIteration: end"),
    ("raise GeneratorExit", "GeneratorExit"),
    ("import no_such_module_anywhere", "ModuleNotFoundError"),
    ("eval('1 +')", "SyntaxError"),
    ("assert False", "AssertionError"),
])
@pytest.mark.parametrize("place", ["top", "body"])
def test_an_exception_in_user_code_names_its_line(worker, write_case, code, words, place):
    case = write_case(**{place: code})
    error = worker.compile_error(case)
    assert error["kind"] == "case_error"
    assert words in error["message"]
    assert error["where"] == line_of(case, code)
    assert "copy_case.py" in error["traceback"]
    assert worker.ask("hello")["protocol"]


def test_a_wrong_field_of_a_case_names_the_field_and_the_line(worker, write_case):
    case = write_case(body='Buffer((0,), "fp32", "out")')
    error = worker.compile_error(case)
    assert (error["kind"], error["where"]) == ("case_error", line_of(case, "Buffer((0,)"))
    assert "Buffer.shape: 0 is outside" in error["message"]


def test_a_function_that_returns_no_case_is_a_case_error(worker, write_case):
    error = worker.compile_error(write_case(body="return 7"))
    assert error["kind"] == "case_error" and "returned int" in error["message"]


def test_an_error_in_the_kernel_names_its_line(worker, write_case):
    case = write_case(kernel="x = x + undefined_name")
    error = worker.compile_error(case)
    assert error["kind"] == "compile_failed"
    assert error["where"] == line_of(case, "undefined_name")
    assert "undefined_name is not defined" in error["message"]


def test_an_error_in_a_function_that_the_kernel_calls_names_that_line(worker, write_case, tmp_path):
    helper = tmp_path / "inner_module.py"
    helper.write_text("import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef inner(x):\n"
                      "    y = x\n    return tl.reshape(y, [7])\n")
    error = worker.compile_error(write_case(top="from inner_module import inner", kernel="x = inner(x)"))
    assert error["kind"] == "compile_failed" and error["where"] == "inner_module.py:8"


def test_a_changed_file_is_read_again(worker, write_case, tmp_path):
    helper = tmp_path / "factor_module.py"
    helper.write_text("import triton.language as tl\nFACTOR = tl.constexpr(3.0)\n")
    case = write_case(top="from factor_module import FACTOR", kernel="x = x * FACTOR")
    first = worker.compile(case)
    helper.write_text("import triton.language as tl\nFACTOR = tl.constexpr(5.0)\n")  # same size, same second
    second = worker.compile(case)
    assert "3.000000e+00" in first["artifacts"]["ttir"]["data"]
    assert "5.000000e+00" in second["artifacts"]["ttir"]["data"]
    assert first["provenance"]["source_sha256"] == second["provenance"]["source_sha256"]
    assert first["provenance"]["helpers"] != second["provenance"]["helpers"]

    case.write_text(case.read_text().replace("x * FACTOR", "x - FACTOR"))
    assert "arith.subf" in worker.compile(case)["artifacts"]["ttir"]["data"]


def test_packages_in_the_case_folder_can_be_imported_also_late(worker, write_case, tmp_path):
    package = tmp_path / "blocks"
    package.mkdir()
    (package / "__init__.py").write_text("from .size import SIZE\n")
    (package / "size.py").write_text("SIZE = 64\n")
    result = worker.compile(write_case(parameters="n: int = 0", body="import blocks; assert blocks.SIZE == 64"))
    assert set(result["provenance"]["helpers"]) == {"blocks/__init__.py", "blocks/size.py"}


def test_two_files_of_one_name_are_not_confused(worker, write_case, tmp_path):
    left = write_case(kernel="x = x + 1.0")
    (tmp_path / "other").mkdir()
    right = tmp_path / "other" / left.name
    right.write_text(left.read_text().replace("x + 1.0", "x + 2.0"))
    for _ in range(2):
        assert "1.000000e+00" in worker.compile(left)["artifacts"]["ttir"]["data"]
        assert "2.000000e+00" in worker.compile(right)["artifacts"]["ttir"]["data"]


def test_a_case_file_may_have_the_name_of_a_library(worker, write_case):
    assert worker.compile(write_case(name="json.py"))["launch"]["name"] == "copy"
    assert worker.compile(VECTOR_ADD)["launch"]["name"] == "vector_add"


def test_the_process_is_as_before_after_a_case(worker, write_case, tmp_path):
    top = f"import os\nos.chdir({str(tmp_path)!r})\nos.environ['MESSY'] = '1'"
    worker.compile(write_case(name="messy.py", top=top))
    clean = write_case(name="clean.py", top=f"import os\nassert os.getcwd() != {str(tmp_path)!r}\n"
                                            "assert 'MESSY' not in os.environ\n")
    worker.compile(clean)
