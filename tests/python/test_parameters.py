"""Parameters of the case function, as JSON values and as text from a command line."""

import pytest
from conftest import VECTOR_ADD

SIGNATURE = "n: int = 256, scale: float = 0.5, fast: bool = False, mode: str = 'a', limit: int | None = None"


def test_describe_lists_the_parameters_with_types_and_defaults(worker, write_case):
    found = worker.ask("describe", case=str(write_case(parameters=SIGNATURE + ", *, must: int")))
    assert [(p["name"], p["type"], p["required"], p["default"]) for p in found["parameters"]] == [
        ("n", "int", False, 256), ("scale", "float", False, 0.5), ("fast", "bool", False, False),
        ("mode", "str", False, "a"), ("limit", "int | None", False, None), ("must", "int", True, None)]


def test_describe_gives_name_and_text_of_vector_add(worker):
    found = worker.ask("describe", case=str(VECTOR_ADD), function="case")
    assert found["name"] == "vector_add"
    assert found["description"].startswith("Vector addition in fp32.")


@pytest.mark.parametrize("given, resolved", [
    ({"n": "4096"}, {"n": 4096}),
    ({"n": 4096}, {"n": 4096}),
    ({"n": str(2**60)}, {"n": str(2**60)}),  # a double would round it
    ({"scale": "1e-3"}, {"scale": 1e-3}),
    ({"scale": 2}, {"scale": 2.0}),
    ({"fast": "true", "mode": "7"}, {"fast": True, "mode": "7"}),
    ({"fast": False}, {"fast": False}),
    ({"limit": "12"}, {"limit": 12}),
    ({"limit": "none"}, {"limit": None}),
])
def test_values_are_converted_by_annotation(worker, write_case, given, resolved):
    launch = worker.compile(write_case(parameters=SIGNATURE), parameters=given)["launch"]
    defaults = {"n": 256, "scale": 0.5, "fast": False, "mode": "a", "limit": None}
    assert launch["parameters"] == {**defaults, **resolved}


@pytest.mark.parametrize("given", [
    {"n": "many"}, {"n": 4.0}, {"n": True}, {"n": "4.0"}, {"n": None}, {"scale": "nan"}, {"scale": "fast"},
    {"fast": "maybe"}, {"fast": 1}, {"mode": 3}, {"limit": "x"},
])
def test_a_value_of_the_wrong_type_is_a_bad_parameter(worker, write_case, given):
    error = worker.compile_error(write_case(parameters=SIGNATURE), parameters=given)
    assert error["kind"] == "bad_parameter" and error["message"].startswith(next(iter(given)))


def test_an_unknown_parameter_is_refused_with_the_nearest_and_the_list(worker):
    error = worker.compile_error(VECTOR_ADD, parameters={"blok": 5})
    assert error["kind"] == "unknown_parameter"
    assert "'blok'; did you mean 'block'? valid: n, block, num_warps" in error["message"]


def test_a_missing_value_is_a_bad_parameter(worker, write_case):
    error = worker.compile_error(write_case(parameters="n: int"))
    assert error["kind"] == "bad_parameter" and "n: a value is needed" in error["message"]


@pytest.mark.parametrize("parameters", ["n: list = None", "n=None", "*rest", "**rest", "n: Missing = 1"])
def test_a_parameter_that_cannot_be_given_as_text_is_a_case_error(worker, write_case, parameters):
    assert worker.compile_error(write_case(parameters=parameters))["kind"] == "case_error"


def test_string_annotations_work(worker, write_case):
    case = write_case(parameters="n: 'int' = 3")
    assert worker.compile(case, parameters={"n": "8"})["launch"]["parameters"] == {"n": 8}
