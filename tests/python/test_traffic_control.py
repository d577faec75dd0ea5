"""The traffic kernel as compiled: one cubin for every fraction, loads and arithmetic where they are said to be."""

import base64
import re

import pytest
from conftest import ROOT

CASE = ROOT / "kernels" / "traffic_control.py"


def artifact(compiled, kind):
    found = compiled["artifacts"][kind]
    return base64.b64decode(found["data"]) if found["encoding"] == "base64" else found["data"].encode()


def scalars(compiled):
    return {a["name"]: a["value"] for a in compiled["launch"]["arguments"] if "value" in a}


@pytest.fixture(scope="module")
def compiled(worker):
    return {f: worker.compile(CASE, parameters={"fraction": f, "n": 1 << 20}) for f in (0.0, 0.05, 1.0, 2.5)}


def test_every_fraction_is_one_cubin_and_differs_in_one_argument(compiled):
    assert len({artifact(c, "cubin") for c in compiled.values()}) == 1
    assert {f: scalars(c)["extra_tiles"] for f, c in compiled.items()} == {0.0: 0, 0.05: 102, 1.0: 2048, 2.5: 5120}
    for c in compiled.values():
        assert {k: v for k, v in scalars(c).items() if k != "extra_tiles"} == {"factor": 1.25, "keep": 0}


def test_declared_traffic_grows_with_the_fraction(compiled):
    work = {f: c["launch"]["work"] for f, c in compiled.items()}
    total = {f: w["bytes_read"] + w["bytes_written"] for f, w in work.items()}
    assert total[1.0] == 2 * total[0.0] and total[2.5] == 3.5 * total[0.0]
    assert total[0.05] == total[0.0] + 102 * 4096
    assert {w["bytes_written"] for w in work.values()} == {4 << 20}


def test_extra_loads_are_in_a_loop_that_fraction_0_never_enters(compiled):
    """From the extra buffer only inside the loop; before it one guard compares the tiles' begin and end."""
    ptx = artifact(compiled[0.0], "ptx").decode()
    body = ptx[ptx.index("ld.param"):]
    loop = re.search(r"(\$L__BB0_\d+):(?:(?!\$L__BB).)*bra\s+\1", body, re.S)
    assert loop, "no loop"
    inside = loop.group(0)
    outside = body.replace(inside, "")
    assert len(re.findall(r"ld\.global", inside)) == 2 and "evict_first" in inside
    assert len(re.findall(r"ld\.global", outside)) == 2 and "evict_first" not in outside.split("createpolicy")[0]
    assert re.search(r"@%p\d+ bra", outside[:outside.index("ld.param.b64 \t%rd4")] if "ld.param.b64 \t%rd4" in outside else outside)
    assert "st.global" not in inside and len(re.findall(r"st\.global", outside)) == 2


def test_arithmetic_on_the_data_is_equal_but_for_two_bit_operations_an_extra_element(compiled):
    ptx = artifact(compiled[0.0], "ptx").decode()
    loop = re.search(r"(\$L__BB0_\d+):(?:(?!\$L__BB).)*bra\s+\1", ptx, re.S).group(0)
    elements = 1024 // 128
    assert len(re.findall(r"and\.b32", loop)) == elements and len(re.findall(r"xor\.b32", loop)) == elements
    assert not re.search(r"(mul|fma|add)\.(rn\.)?f32", loop)
    assert len(re.findall(r"mul(\.rn)?\.f32", ptx)) == elements


def test_the_extra_loads_survive_the_assembler(compiled):
    sass = artifact(compiled[0.0], "sass").decode()
    assert len(re.findall(r"LDG\S*\.EF\S*", sass)) >= 2 and re.search(r"LDG\.E\.128", sass)


@pytest.mark.parametrize("parameters", [{"fraction": -0.1}, {"fraction": "nan"}, {"fraction": 17.0},
                                        {"n": 1000}, {"n": 1 << 20, "fraction": 1e-9}])
def test_a_fraction_that_cannot_be_made_is_a_case_error(worker, parameters):
    error = worker.compile_error(CASE, parameters=parameters)
    assert error["kind"] in ("case_error", "bad_parameter"), error
