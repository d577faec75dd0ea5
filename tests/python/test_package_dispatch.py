"""hebe.dispatch: explicit, by HEBE_PROFILE, and what is said when there is no row. Without Arrow and without a GPU."""

from __future__ import annotations

import copy
import json
import warnings

import hebe
import pytest
from package import needs_library, python

pytestmark = needs_library
AMOUNT = {"value": 1000, "low": 990.5, "high": 1010.25}
BOARD = "NVIDIA H200"
ROW = {"operation": "matmul", "shape": "m<=256,n=4096", "dtype": "bf16", "board": BOARD,
       "implementation": {"name": "cublaslt", "configuration": {"algorithm": 3}, "artifact_sha256": None},
       "energy_nj": AMOUNT, "time_ns": AMOUNT, "meter": {"name": "nvml.samples.total_power", "status": "primary"},
       "provenance": "measured", "idle": "context_open",
       "platform": {"board_uuid": None, "driver": "580", "os": "Debian 12", "hebe": "0.1.0", "triton": None},
       "date": "2026-11-30T04:20:00Z", "evidence": {"study": "s", "runs": []}, "baseline": None, "verdict": None, "downgraded": []}


@pytest.fixture
def profile(tmp_path):
    decode = copy.deepcopy(ROW)
    decode.update(shape="m<=1,n=4096", implementation={"name": "triton", "configuration": {}, "artifact_sha256": "a" * 64})
    path = tmp_path / "profile.json"
    path.write_text(json.dumps({"schema": "hebe.profile/1", "rows": [ROW, decode]}))
    yield path
    hebe.unload_profile()


def test_the_bucket_of_a_shape_is_found_by_order_and_by_name(profile):
    hebe.load_profile(profile, BOARD)
    choice = hebe.dispatch("matmul", [200, 4096], "bf16")
    assert (choice.name, choice.configuration, choice.energy_nj, choice.provenance) == ("cublaslt", {"algorithm": 3}, 1000, "measured")
    assert choice.artifact_sha256 is None and choice.shape == "m<=256,n=4096" and "(measured)" in repr(choice)
    assert hebe.dispatch("matmul", {"n": 4096, "m": 200}, "bf16") == choice
    assert hebe.dispatch("matmul", (1, 4096), "bf16").artifact_sha256 == "a" * 64
    with pytest.raises(hebe.Refused, match="has the sizes m, n"):
        hebe.dispatch("matmul", {"rows": 1}, "bf16")


def test_a_missing_row_falls_back_and_is_said_once(profile):
    hebe.load_profile(profile, BOARD)
    with pytest.warns(RuntimeWarning, match="no row for matmul bf16"):
        assert hebe.dispatch("matmul", (3000, 1), "bf16") is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert hebe.dispatch("matmul", (3001, 1), "bf16") is None
    with pytest.warns(RuntimeWarning, match="softmax"):
        assert hebe.dispatch("softmax", {"n": 1}, "bf16") is None


def test_a_profile_that_is_refused_leaves_the_one_before(profile, tmp_path):
    hebe.load_profile(profile, BOARD)
    for file, board, exit_code in ((tmp_path / "none.json", BOARD, 2), (profile, "another board", 2)):
        with pytest.raises(hebe.Refused) as caught:
            hebe.load_profile(file, board)
        assert caught.value.exit == exit_code and caught.value.what
    (tmp_path / "bad.json").write_text('{"schema": "hebe.profile/1", "rows": [{}]}')
    with pytest.raises(hebe.Refused) as caught:
        hebe.load_profile(tmp_path / "bad.json", BOARD)
    assert (caught.value.code, caught.value.exit) == ("bad_schema", 5)
    assert hebe.dispatch("matmul", (1, 4096), "bf16").name == "triton"


def test_without_a_profile_dispatch_is_off_and_loads_nothing():
    done = python("import warnings; warnings.simplefilter('error')\nimport hebe\n"
                  "print(hebe.dispatch('matmul', (1, 4096), 'bf16'), 'libhebe' in open('/proc/self/maps').read())", HEBE_PROFILE="")
    assert done.stdout == "None False\n", done.stderr


def test_the_variable_turns_dispatch_on(profile):
    done = python("import hebe\nprint(hebe.dispatch('matmul', (1, 4096), 'bf16').name, hebe.dispatch('matmul', (2, 1), 'fp8'))\n"
                  "print('libarrow' in open('/proc/self/maps').read())\nhebe.unload_profile()\nprint(hebe.dispatch('matmul', (1, 4096), 'bf16'))",
                  HEBE_PROFILE=str(profile), HEBE_BOARD=BOARD)
    assert done.stdout == "triton None\nFalse\nNone\n", done.stderr
    assert done.stderr.count("no row for matmul fp8") == 1


def test_a_variable_that_names_no_profile_is_said_once_and_falls_back(tmp_path):
    code = "import hebe\nfor _ in range(3): print(hebe.dispatch('matmul', (1, 4096), 'bf16'))"
    done = python(code, HEBE_PROFILE=str(tmp_path / "none.json"), HEBE_BOARD=BOARD)
    assert done.returncode == 0 and done.stdout == "None\n" * 3
    assert done.stderr.count("HEBE_PROFILE is not used") == 1 and "none.json" in done.stderr
    done = python(code, HEBE_PROFILE=str(tmp_path / "none.json"), CUDA_VISIBLE_DEVICES="")  # nor is it known which board
    assert done.stdout == "None\n" * 3 and done.stderr.count("HEBE_PROFILE is not used") == 1
