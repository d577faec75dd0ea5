"""hebe tune: values of a space that a case does not take, and options that do nothing beside --verify."""

import json

from test_tune import profiles, rows_of, spec_of, tune, write


def with_space(**space):
    return {"backends": [{"name": "triton", "case": "scaled_rows.py:case", "space": {"passes": [1, 3], "block": [256], "num_warps": [4], **space}}]}


def test_a_value_that_the_case_does_not_take_is_unavailable_with_the_reason(hebe):
    code, out = tune(hebe, **with_space(num_warps=[3, "x", 4, 64]))
    assert code == 0, out
    states = {json.dumps(c["configuration"]["num_warps"]): c for c in out["tune"]["shapes"][0]["candidates"]}
    for wrong in ("3", '"x"', "64"):
        assert states[wrong]["state"] == "unavailable" and "num_warps" in json.dumps(states[wrong]["why"]), wrong
    assert rows_of(out)[0]["implementation"]["configuration"]["num_warps"] == 4
    assert hebe("tune", "--verify", "").returncode == 0
    code, dry = tune(hebe, "--dry-run", **with_space(num_warps=[3, 4]))
    assert {c["state"] for c in dry["shapes"][0]["candidates"]} == {"not compiled"}


def test_a_space_of_which_nothing_is_taken_is_the_specifications_fault(hebe):
    code, out = tune(hebe, **with_space(num_warp=[4]))
    assert code == 2 and "num_warp" in json.dumps(out["refused"]) and '"triton"' in out["refused"]["what"], out
    assert out["refused"]["next"] and not profiles(hebe)


def test_a_backend_of_whose_values_none_is_taken_is_the_specifications_fault_too(hebe):
    code, out = tune(hebe, **with_space(num_warps=[3, 5]))
    assert code == 2 and "is taken" in out["refused"]["what"], out
    code, out = tune(hebe, **with_space(passes=[3], num_warps=[4, 5]))  # the baseline is one of them
    assert code == 0, out


def test_what_stands_alone_takes_nothing_beside_it(hebe):
    file = write(hebe.tmp / "spec", spec_of())
    for options in ((file, "--verify", ""), ("--verify", "", "--shape", "wide"), ("--verify", "", "--pairs", "8")):
        done = hebe("tune", *options)
        assert done.returncode == 2 and "--verify" in done.stderr, done.stderr
