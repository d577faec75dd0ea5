"""Every case of kernels/ on the simulated GPU: its TTGIR is interpreted, and what comes out is right, odd edges and all."""

import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from kernel_cases import CASES, KERNELS, missing, place  # noqa: E402


def measure(hebe, case, parameters):
    sets = [word for name, value in parameters.items() for word in ("--set", f"{name}={json.dumps(value)}")]
    return hebe.json("run-aa", "--device", "sim", "--protocol-tier", "smoke-v1", "--case", case, *sets)


@pytest.mark.parametrize("name", CASES)
def test_interpreted_outputs_are_the_references(hebe, name):
    if reason := missing(name):
        pytest.skip(reason)
    code, out = measure(hebe, ":".join(place(name)), CASES[name])
    assert code == 0, out
    (run,) = hebe.runs()
    plan = json.loads((run / "plan.json").read_text())
    assert {arm: engine["outputs"] for arm, engine in plan["device"]["engine"].items()} == dict.fromkeys(
        "AB", "computed by interpreting the TTGIR")
    check = json.loads((run / "windows.jsonl").read_text().splitlines()[0])["check"]
    assert check["canaries"] == check["inputs"] == "intact"
    outputs = check["A"]
    assert outputs and all(output["elements"] > 0 for output in outputs.values())


@pytest.mark.parametrize("right, wrong", [("columns < n", "columns < n - 1"), ("x - mean) * rstd", "x - mean) * rstd * 1.002")])
def test_a_wrong_kernel_is_found_out(hebe, tmp_path, right, wrong):
    """The check above can fail: a layer norm that leaves out the last column, and one that is off by 0.2 %."""
    text = (KERNELS / "layer_norm.py").read_text()
    assert right in text
    (tmp_path / "broken.py").write_text(text.replace(right, wrong))
    code, out = measure(hebe, str(tmp_path / "broken.py"), CASES["layer_norm:case"])
    assert code != 0 and out["refused"]["code"] == "wrong_output", out
    assert hebe.runs() == []
