"""By which objective hebe tune chooses, with idle power or without, and what the row says of it."""

import json
import pathlib

import pytest
from test_tune import profiles, rows_of, spec_of, tune, write


def adds(name, passes, count):
    return {"name": name, "kind": "triton", "case": "scaled_rows.py:case",
            "space": {"passes": passes, "adds": [count], "block": [256], "num_warps": [4]}}


ADDS = {"backends": [adds("many", [1, 3], 512), adds("few", [3], 0)],
        "baseline": {"backend": "many", "configuration": {"passes": 3, "adds": 512, "block": 256, "num_warps": 4}}}


def test_where_the_idle_board_turns_the_comparison_it_is_said(hebe):
    """One pass and many additions: less energy beyond the idle board than three passes and none, and twice the time."""
    done = hebe("--device", "sim", "tune", write(hebe.tmp / "spec", spec_of(**ADDS)))
    assert done.returncode == 0, done.stderr
    assert '  choice: triton.scaled_rows {"adds":512,' in done.stdout, done.stdout
    assert "idle power included, energy +" in done.stdout and "idle power included, the search had triton.scaled_rows {\"adds\":0," in done.stdout, done.stdout
    shown = hebe("profile", "show", str(profiles(hebe)[0])).stdout
    assert " beyond idle (simulated, idle clocks_up)" in shown and "in pairs, idle power included" in shown, shown


def test_with_idle_power_included_the_search_ranks_as_pairs_do(hebe):
    done = hebe("--device", "sim", "tune", write(hebe.tmp / "spec", spec_of(idle_power="included", **ADDS)))
    assert done.returncode == 0, done.stderr
    assert '  choice: triton.scaled_rows {"adds":0,' in done.stdout and "the latency choice is the same" in done.stdout, done.stdout
    assert "the search had" not in done.stdout and "by energy, idle power included" in done.stdout and "simulated costs with the idle board's" in done.stdout, done.stdout
    (file,) = (hebe.root / "tunes").glob("*.json")
    record = json.loads(file.read_text())
    assert record["idle_power"] == "included"
    few = next(c for c in record["shapes"][0]["candidates"] if c["configuration"]["adds"] == 0)["cost"]
    idle_w = record["shapes"][0]["search"]["idle"]["mean_w"]
    assert few["objective"]["value"] == pytest.approx(few["energy_nj"]["value"] + idle_w * few["time_ns"]["value"], rel=1e-6)
    assert f"{few['objective']['value']:.0f} nJ [" in done.stdout
    (row,) = json.loads(profiles(hebe)[0].read_text())["rows"]
    assert row["energy_nj"]["value"] == pytest.approx(few["energy_nj"]["value"], rel=0.01)  # a row's cost lies beyond idle
    assert hebe("tune", "--verify", "").returncode == 0
    code, out = tune(hebe, idle_power="all")
    assert code == 2 and "idle_power" in out["refused"]["what"] + out["refused"]["where"], out
    product = {"operation": "matmul", "dimensions": ["m", "n", "k"], "bucketed": [], "shapes": [{"name": "s", "sizes": {"m": 8, "n": 8, "k": 8}}]}
    code, out = tune(hebe, idle_power="included", **product, backends=[{"name": "openblas"}],
                     baseline={"backend": "openblas", "configuration": {}})
    assert code == 2 and "idle_power" in out["refused"]["what"] and out["refused"]["next"], out


def test_nobody_within_the_latency_bound_leaves_the_baseline_and_says_so(hebe):
    file = write(hebe.tmp / "spec", spec_of(objective="energy_under_latency", latency_bound={"ns": 1.5}))
    done = hebe("--device", "sim", "tune", file)
    assert done.returncode == 1, done.stderr  # done, and what was asked for is not there
    assert "no other candidate is within 1.5 ns" in done.stdout and "nothing else could be measured" not in done.stdout
    assert "NOT within the latency bound of 1.5 ns" in done.stdout, done.stdout
    (record,) = [json.loads(f.read_text()) for f in (hebe.root / "tunes").glob("*.json")]
    (shape,) = record["shapes"]
    assert shape["finalists"]["is_baseline"] and shape["search"]["stopped"] == "no candidate is within the latency bound"
    (row,) = json.loads(profiles(hebe)[0].read_text())["rows"]
    assert row["objective"] == {"name": "energy_under_latency", "idle_power": "excluded", "latency_bound_ns": 1.5}
    assert row["time_ns"]["value"] > 1.5
    assert "chosen by energy_under_latency, NOT within its 1.5 ns" in hebe("profile", "show", str(profiles(hebe)[0])).stdout
    assert hebe("tune", "--verify", "").returncode == 0


def test_a_row_says_by_what_it_was_chosen_and_rows_of_two_objectives_are_not_merged(hebe):
    files = []
    for more in ({}, {"objective": "edp"}, {"idle_power": "included"}, {"objective": "energy_under_latency", "latency_bound": {"ns": 1e9}}):
        code, out = tune(hebe, **more)
        assert code == 0, out
        files.append(out["profile"])
        (row,) = rows_of(out)
        assert row["objective"]["name"] == more.get("objective", "energy") and row["objective"]["idle_power"] == more.get("idle_power", "excluded")
    shown = [hebe("profile", "show", f).stdout for f in files]
    for text, words in zip(shown, ("chosen by energy\n", "chosen by edp\n", "chosen by energy, idle power included\n",
                                   "chosen by energy_under_latency, within its 1000000000.0 ns\n")):
        assert words in text, text
    for other in files[1:]:
        code, out = hebe.json("profile", "merge", files[0], other)
        assert code == 2 and "by energy in" in out["refused"]["what"] and files[0] in out["refused"]["what"], out
    rows = []
    for seed in (1, 2):  # a ratio's nanoseconds are each tune's own
        code, out = tune(hebe, objective="energy_under_latency", latency_bound={"ratio": 1.2}, seed=seed)
        assert code == 0, out
        rows += rows_of(out)
        files.append(out["profile"])
    assert rows[0]["objective"]["latency_bound_ns"] != rows[1]["objective"]["latency_bound_ns"]
    assert hebe("profile", "merge", *files[-2:]).returncode == 0 and hebe("profile", "merge", *files[-3:-1]).returncode == 2
    code, out = hebe.json("profile", "diff", files[0], files[1])
    assert code == 1 and any(m.startswith("objective: ") for d in out["differences"] for m in d["members"]), out


def test_a_row_from_before_does_not_say_its_objective_and_merges_verifies_and_differs(hebe):
    code, out = tune(hebe)
    old = json.loads(pathlib.Path(out["profile"]).read_text())
    del old["rows"][0]["objective"], old["rows"][0]["effect"]
    file = hebe.tmp / "old.json"
    file.write_text(json.dumps(old))
    assert hebe("profile", "merge", out["profile"], str(file)).returncode == 0
    assert "chosen by" not in hebe("profile", "show", str(file)).stdout
    for pair in ((out["profile"], str(file)), (str(file), out["profile"])):
        code, told = hebe.json("profile", "diff", *pair)
        members = [m.split(":")[0] for d in told["differences"] for m in d["members"]]
        assert code == 1 and members == ["effect", "objective"], told
