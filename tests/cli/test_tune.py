"""hebe tune as a user runs it, on the simulated GPU: what is chosen, what is voided, what is refused, what is written."""

import json
import pathlib
import shutil
import signal
import time

import pytest

from conftest import Hebe

CASE = pathlib.Path(__file__).parents[1] / "data" / "tune" / "scaled_rows.py"
BASELINE = {"passes": 3, "block": 256, "num_warps": 4}


def spec_of(**more):
    """Rows read one to three times; the baseline reads them three times. Values of None leave a key out."""
    spec = {
        "schema": "hebe.tune.spec/1", "name": "rows", "operation": "scaled-rows", "dtype": "fp32", "dimensions": ["m", "n"],
        "bucketed": ["m"], "tier": "smoke-v1", "pairs": 6, "seed": 5, "search_warm_up_s": 3, "idle_window_s": 1,
        "baseline": {"backend": "triton", "configuration": BASELINE},
        "shapes": [{"name": "wide", "sizes": {"m": 4096, "n": 256}}],
        "backends": [{"name": "triton", "case": "scaled_rows.py:case",
                      "space": {"passes": [1, 2, 3], "block": [256], "num_warps": [4]}}], **more}
    return {k: v for k, v in spec.items() if v is not None}


def write(folder, spec):
    folder.mkdir(exist_ok=True)
    shutil.copy(CASE, folder)
    file = folder / "spec.json"
    file.write_text(json.dumps(spec))
    return str(file)


def tune(hebe, *options, **more):
    return tune_file(hebe, write(hebe.tmp / "spec", spec_of(**more)), *options)


def tune_file(hebe, file, *options):
    return hebe.json("--device", "sim", "tune", file, *options)


def profiles(hebe):
    return sorted((hebe.root / "profiles").glob("*")) if (hebe.root / "profiles").exists() else []


def rows_of(out):
    return json.loads(pathlib.Path(out["profile"]).read_text())["rows"]


def by_configuration(shape):
    return {json.dumps(c["configuration"], sort_keys=True): c for c in shape["candidates"]}


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    base = tmp_path_factory.mktemp("tuned")
    h = Hebe(base / "root", base / "tmp")
    code, out = tune(h)
    assert code == 0, out
    return h, out


def test_the_cheapest_is_chosen_and_confirmed_in_pairs(tuned):
    hebe, out = tuned
    (row,) = rows_of(out)
    assert row["implementation"]["name"] == "triton.scaled_rows"
    assert row["implementation"]["configuration"] == {"passes": 1, "block": 256, "num_warps": 4}
    assert row["verdict"] == "lower" and row["effect"]["high_percent"] < 0
    assert row["baseline"]["implementation"]["configuration"] == BASELINE
    assert row["energy_nj"]["value"] < row["baseline"]["energy_nj"]["value"]
    assert row["shape"] == "m<=4096,n=256" and row["dtype"] == "fp32" and row["provenance"] == "simulated"
    assert row["energy_nj"]["low"] > 0 and row["idle"] == "clocks_up" and row["meter"]["status"] == "primary"
    assert row["evidence"]["study"] == out["id"]


def test_a_row_rests_on_sealed_runs_that_verify(tuned):
    hebe, out = tuned
    (row,) = rows_of(out)
    assert {json.loads((p / "plan.json").read_text())["kind"] for p in hebe.runs()} == {"ab"}
    assert len(row["evidence"]["runs"]) == len(hebe.runs())
    assert row["evidence"]["qualified"] is False  # simulated is no evidence
    assert "not qualified as evidence" in hebe("profile", "show", out["profile"]).stdout
    done = hebe("run-verify", "--all")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_record_says_what_became_of_every_candidate_and_how_long_it_took(tuned):
    hebe, out = tuned
    record = json.loads(pathlib.Path(out["record"]).read_text())
    assert record == out["tune"] and record["schema"] == "hebe.tune/1" and record["provenance"] == "simulated"
    (shape,) = record["shapes"]
    assert len(shape["candidates"]) == 3  # the baseline is one of the space
    for c in shape["candidates"]:
        assert c["state"] in ("measured", "dropped") and c["cost"]["energy_nj"]["low"] > 0 and c["measured_s"] > 0
        assert c["artifact_sha256"] and c["rung"] >= 0 and c["spent_s"] > c["measured_s"] / 2
    search = shape["search"]
    assert search["spent_s"] > search["measured_s"] > search["references_s"] > 0
    assert search["exhaustive_measured_s"] > 0 and search["idle"]["state"] == "clocks_up"
    assert shape["finalists"]["choice"] != 0 and not shape["finalists"]["latency_choice_differs"]


def test_a_library_that_keeps_the_context_does_not_make_the_board_anothers(tmp_path):
    """As cuBLASLt does on a real board: the process stays listed when its device is closed."""
    hebe = Hebe(tmp_path / "root", tmp_path / "tmp")
    code, out = tune(hebe, simulated={"faults": {"wide": ["context_stays"], "wide.finalists": ["context_stays"]}})
    assert code == 0, out
    (row,) = rows_of(out)
    assert row["verdict"] == "lower" and len(row["evidence"]["runs"]) == len(hebe.runs())
    # Another's process is still seen beside it, in the search and under the finalists.
    for where in ("wide", "wide.finalists"):
        (tmp_path / where).mkdir()
        hebe = Hebe(tmp_path / where / "root", tmp_path / where / "tmp")
        code, out = tune(hebe, simulated={"faults": {where: ["context_stays", "foreign_process"]}})
        assert code == 3 and out["refused"]["code"] == "gpu_busy", out
        assert "someone-elses-training" in out["refused"]["what"] and not profiles(hebe)


def test_it_is_told_for_people(tmp_path):
    hebe = Hebe(tmp_path / "root", tmp_path / "tmp")
    done = hebe("--device", "sim", "tune", write(tmp_path / "spec", spec_of()))
    assert done.returncode == 0, done.stderr
    for words in ("simulated costs beyond an idle board of", "choice: triton.scaled_rows", "against the baseline, idle power included: energy -",
                  "the latency choice is the same", "s if every candidate had been measured as long", "profile:"):
        assert words in done.stdout, done.stdout
    assert "the search had" not in done.stdout  # both energies say the same
    shown = hebe("profile", "show", str(profiles(hebe)[0]))
    assert shown.returncode == 0 and "lower, -" in shown.stdout, shown.stdout


def test_equal_seeds_give_equal_profiles_and_others_do_not(tuned, tmp_path):
    first, out = tuned
    file = str(first.tmp / "spec" / "spec.json")  # its name is in the runs, as it was typed
    again, other = Hebe(tmp_path / "a", tmp_path / "at"), Hebe(tmp_path / "b", tmp_path / "bt")
    code, same = tune_file(again, file)
    assert code == 0
    assert pathlib.Path(same["profile"]).read_bytes() == pathlib.Path(out["profile"]).read_bytes()
    assert pathlib.Path(same["profile"]).name == pathlib.Path(out["profile"]).name
    code, different = tune_file(other, file, "--seed", "6")
    assert code == 0
    assert pathlib.Path(different["profile"]).name != pathlib.Path(out["profile"]).name


def test_a_wrong_output_never_wins_and_is_told(hebe):
    code, out = tune(hebe, backends=[{"name": "triton", "case": "scaled_rows.py:case", "space": {
        "passes": [1, 2], "block": [256], "num_warps": [4], "wrong": [True, False]}}],
        baseline={"backend": "triton", "configuration": {"passes": 2, "block": 256, "num_warps": 4, "wrong": False}})
    assert code == 0, out
    (shape,) = out["tune"]["shapes"]
    wrong = [c for c in shape["candidates"] if c["configuration"].get("wrong")]
    assert len(wrong) == 2
    for c in wrong:
        assert c["state"] == "failed" and c["why"]["code"] == "wrong_output" and c["cost"] is None and c["measured_s"] is None
    (row,) = rows_of(out)
    assert row["implementation"]["configuration"] == {"passes": 1, "block": 256, "num_warps": 4, "wrong": False}


def test_what_cannot_run_here_is_unavailable_and_never_wins(hebe):
    code, out = tune(hebe, backends=[{"name": "triton", "case": "scaled_rows.py:case", "space": {
        "passes": [1, 2], "block": [128, 256], "num_warps": [4]}}])
    assert code == 0, out
    (shape,) = out["tune"]["shapes"]
    narrow = [c for c in shape["candidates"] if c["configuration"]["block"] == 128]
    assert len(narrow) == 2
    for c in narrow:
        assert c["state"] == "unavailable" and "does not hold a row" in c["why"]["what"] and c["cost"] is None
    assert rows_of(out)[0]["implementation"]["configuration"]["block"] == 256


def test_the_baseline_stays_where_nothing_is_cheaper(hebe):
    code, out = tune(hebe, baseline={"backend": "triton", "configuration": {"passes": 1, "block": 256, "num_warps": 4}})
    assert code == 0, out
    (row,) = rows_of(out)
    assert row["implementation"] == row["baseline"]["implementation"] and row["verdict"] is None and "effect" not in row
    finalists = out["tune"]["shapes"][0]["finalists"]
    assert finalists["is_baseline"] and finalists["runs"][0]["energy"]["verdict"] == "higher"
    assert "the baseline stays" in finalists["why"]


def test_the_baseline_alone_is_measured_against_itself(hebe):
    code, out = tune(hebe, backends=[{"name": "triton", "case": "scaled_rows.py:case", "space": {
        "passes": [3], "block": [256], "num_warps": [4]}}])
    assert code == 0, out
    (run,) = out["tune"]["shapes"][0]["finalists"]["runs"]
    assert run["a"] == run["b"] == 0
    assert rows_of(out)[0]["evidence"]["runs"] == [run["seal"]]


TWO = [{"name": "wide", "sizes": {"m": 4096, "n": 256}}, {"name": "tall", "sizes": {"m": 8192, "n": 128}}]
LISTS = [{"name": "triton", "case": "scaled_rows.py:case", "space": {"passes": [1, 3], "block": [256], "num_warps": [4]}}]


def test_random_draws_as_many_as_were_asked_for(hebe):
    code, out = tune(hebe, search="random", search_count=1, search_longest_window_s=0.5)
    assert code == 0, out
    states = [c["state"] for c in out["tune"]["shapes"][0]["candidates"]]
    assert states.count("not_drawn") == 1 and len(states) == 3
    assert all(c["cost"] is None for c in out["tune"]["shapes"][0]["candidates"] if c["state"] == "not_drawn")


def test_exhaustive_measures_everything_at_the_longest_window(hebe):
    code, out = tune(hebe, search="exhaustive", search_longest_window_s=1)
    assert code == 0, out
    search = out["tune"]["shapes"][0]["search"]
    assert search["rungs"] == 1 and all(c["windows"] for c in out["tune"]["shapes"][0]["candidates"])


def test_a_launch_with_its_cubin_is_a_candidate(tuned, tmp_path):
    hebe, out = tuned
    record = out["tune"]["shapes"][0]
    best = record["candidates"][record["finalists"]["choice"]]
    plan = json.loads((hebe.runs()[0] / "plan.json").read_text())
    subject = next(s for s in (plan["subject"], plan["subject_b"]) if s["artifacts"]["cubin"] == best["artifact_sha256"])
    again = Hebe(tmp_path / "root", tmp_path / "tmp")
    folder = tmp_path / "spec"
    folder.mkdir()
    (folder / "given.json").write_text(json.dumps(subject["launch"]))
    for kind in ("cubin", "ttgir"):
        digest = subject["artifacts"][kind]
        shutil.copy(hebe.root / "artifacts" / digest[:2] / digest, folder / f"given.{kind}")
    backends = [{"name": "triton", "case": "scaled_rows.py:case", "space": {"passes": [3], "block": [256], "num_warps": [4]}},
                {"name": "given", "kind": "launch",
                 "launches": [{"name": "mine", "launch": "given.json", "cubin": "given.cubin", "ttgir": "given.ttgir"}]}]
    code, tuned_again = again.json("--device", "sim", "tune", write(folder, spec_of(backends=backends)))
    assert code == 0, tuned_again
    (row,) = rows_of(tuned_again)
    assert row["implementation"] == {"name": "launch.mine", "configuration": {"launch": "mine"},
                                     "artifact_sha256": best["artifact_sha256"]}
    assert row["platform"]["triton"] is None


def test_where_energy_and_latency_choose_apart_both_are_kept(hebe):
    # A bound keeps nothing out here; what is asked is only that the record names both when they differ.
    code, out = tune(hebe, objective="energy_under_latency", latency_bound={"ratio": 1.2})
    assert code == 0, out
    finalists = out["tune"]["shapes"][0]["finalists"]
    assert isinstance(finalists["latency_choice"], int)
    assert finalists["latency_choice_differs"] == (finalists["choice"] != finalists["latency_choice"])
    assert (finalists["against_latency_choice"] is not None) == finalists["latency_choice_differs"]


def many(count):
    return list(range(count))


@pytest.mark.parametrize("key, more", [
    ("surprise", {"surprise": 1}),
    ("operation", {"operation": "soft\nmax"}),
    ("dtype", {"dtype": "fp\x1b[2J"}),
    ("shapes", {"shapes": []}),
    ("sizes", {"shapes": [{"name": "a", "sizes": {"m": 0, "n": 256}}]}),
    ("sizes", {"shapes": [{"name": "a", "sizes": {"m": 64}}]}),
    ("sizes", {"shapes": [{"name": "a", "sizes": {"m": 64, "n": 256, "k": 1}}]}),
    ("sizes", {"shapes": [{"name": "a", "sizes": {"m": 40, "n": 256}}, {"name": "b", "sizes": {"m": 64, "n": 256}}]}),
    ("baseline", {"baseline": None}),
    ("baseline", {"baseline": {"backend": "nobody", "configuration": {}}}),
    ("space", {"backends": [{"name": "triton", "case": "scaled_rows.py:case", "space": {"passes": []}}]}),
    ("space", {"backends": [{"name": "triton", "case": "scaled_rows.py:case",
                             "space": {"passes": many(1000), "block": many(1000), "num_warps": many(1000)}}]}),
    ("space.m", {"backends": [{"name": "triton", "case": "scaled_rows.py:case", "space": {"m": [1, 2]}}]}),
    ("case", {"backends": [{"name": "triton"}]}),
    ("case", {"backends": [{"name": "triton", "case": "nothing.py:case"}]}),
    ("launches", {"backends": [{"name": "triton", "case": "scaled_rows.py:case", "launches": [
        {"name": "a", "launch": "b", "cubin": "c"}]}]}),
    ("kind", {"backends": [{"name": "triton", "kind": "magic"}]}),
    ("search_count", {"search": "random"}),
    ("search_count", {"search_count": 3}),
    ("latency_bound", {"objective": "energy_under_latency"}),
    ("latency_bound", {"latency_bound": {"ns": 3}}),
    ("search_longest_window_s", {"search_window_s": 2, "search_longest_window_s": 1}),
    ("bucketed", {"bucketed": ["k"]}),
    ("dimensions", {"dimensions": ["m", "n", "m"]}),
    ("objective", {"objective": "watts"}),
    ("tier", {"tier": "gold-v9"}),
    ("dtype", {"dtype": "fp16"}),
    ("simulated.faults", {"simulated": {"faults": {"nobody": ["counter_frozen@1"]}}}),
    ("simulated.faults", {"simulated": {"faults": {"wide": ["meteor@1"]}}}),
])
def test_a_bad_specification_is_refused_by_its_key(hebe, key, more):
    done = hebe("--device", "sim", "tune", write(hebe.tmp / "spec", spec_of(**more)))
    assert done.returncode == 2, done.stdout + done.stderr
    assert key in done.stderr, done.stderr
    assert not profiles(hebe) and not hebe.runs()


def test_a_baseline_that_cannot_run_is_refused_before_anything_is_measured(hebe):
    done = hebe("--device", "sim", "tune", write(hebe.tmp / "spec", spec_of(
        baseline={"backend": "triton", "configuration": {"passes": 1, "block": 16}})))
    assert done.returncode == 2 and "the baseline of shape \"wide\"" in done.stderr and not hebe.runs()


def test_less_than_the_tier_needs_is_refused(hebe):
    done = hebe("--device", "sim", "tune", write(hebe.tmp / "spec", spec_of(tier="confirmation-v1", pairs=3)))
    assert done.returncode == 2 and "12" in done.stderr


def test_a_dry_run_says_what_would_be_tried_and_writes_nothing(hebe):
    code, out = tune(hebe, "--dry-run")
    assert code == 0 and len(out["shapes"][0]["candidates"]) == 3
    assert not hebe.runs() and not profiles(hebe)


def test_a_dry_run_says_how_long_the_board_is_needed_at_least(hebe):
    code, out = tune(hebe, "--dry-run", shapes=TWO)
    assert code == 0, out
    for shape in out["shapes"]:
        # 3 s of warm-up, two idle windows of 1 s, 3 candidates and two more windows of the baseline of 0.5 s; 1.6 s around each.
        assert shape["search_s"] == pytest.approx(3 + 2 * 2.6 + 5 * 2.1)
        assert shape["finalists_s"] > 6 * 2 * 0.5  # six pairs of the tier's shortest windows, and a warm-up
    code, confirmed = tune(hebe, "--dry-run", "--protocol-tier", "confirmation-v1", shapes=TWO)
    assert confirmed["shapes"][0]["finalists_s"] > 12 * 2 * 5 + 30
    shown = hebe("--device", "sim", "--dry-run", "tune", str(hebe.tmp / "spec" / "spec.json"))
    assert "all shapes: " in shown.stdout and "s of the board at least" in shown.stdout


def test_one_shape_of_several_is_tuned_by_its_name(hebe):
    code, out = tune(hebe, "--shape", "tall", shapes=TWO, backends=LISTS)
    assert code == 0, out
    assert [row["shape"] for row in rows_of(out)] == ["m<=8192,n=128"]
    assert [shape["name"] for shape in out["tune"]["shapes"]] == ["tall"] == out["tune"]["only_shapes"]
    verified = hebe("tune", "--verify", "")
    assert verified.returncode == 0, verified.stdout
    code, out = tune(hebe, "--shape", "short", shapes=TWO, backends=LISTS)
    assert code == 2 and "short" in out["refused"]["what"]


def wait_for(seen, process):
    deadline = time.monotonic() + 60
    while not seen() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)


@pytest.mark.parametrize("step", ["compiling", "searching", "pairing", "sealed"])
def test_killed_it_leaves_nothing_half_written_and_runs_again(hebe, step):
    more = [{"name": f"s{n}", "sizes": {"m": 4096, "n": n}} for n in (256, 128, 64)]
    file = write(hebe.tmp / "spec", spec_of(shapes=more))
    process = hebe.start("--device", "sim", "tune", file)
    seen = {"compiling": lambda: list((hebe.root / "artifacts").glob("*/*")) or list(hebe.tmp.glob("hebe-job-*/*")),
            "searching": lambda: process.stderr.readline().startswith("search of s256"),
            "pairing": lambda: hebe.unsealed() or list(hebe.root.glob("runs/*/*/*/.captured-*")) or hebe.runs(),
            "sealed": hebe.runs}[step]
    wait_for(seen, process)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL  # it had not ended
    assert list(hebe.tmp.glob("hebe-job-*"))  # nobody could remove it
    assert not profiles(hebe) and not list((hebe.root / "tunes").glob("*"))
    kept = hebe.runs()
    code, out = hebe.json("--device", "sim", "tune", file)
    assert code == 0 and len(profiles(hebe)) == 1, out
    assert len(list((hebe.root / "tunes").iterdir())) == 1 and [p for p in kept if p.is_dir()] == kept
    assert hebe("tune", "--verify", "").returncode == 0
    assert [p.name for p in hebe.tmp.iterdir()] == ["spec"]  # what the dead one left is gone, and so is our own


def test_another_processes_lease_is_respected(hebe, tmp_path):
    spec = write(hebe.tmp / "spec", spec_of())
    first = hebe.start("--device", "sim", "tune", spec)
    deadline = time.monotonic() + 60
    while not list((hebe.root / "leases").glob("*.lease")) and time.monotonic() < deadline and first.poll() is None:
        time.sleep(0.02)
    done = hebe("--device", "sim", "tune", spec)
    first.wait()
    assert done.returncode in (0, 3)  # 0 only where the first had ended before
    if done.returncode == 3:
        assert "lease" in done.stderr


STUDIES = pathlib.Path(__file__).parents[2] / "studies"


@pytest.mark.parametrize("file", sorted(STUDIES.glob("tune-*.toml")), ids=lambda file: file.stem)
def test_every_specification_of_the_project_offers_candidates(hebe, file):
    code, out = hebe.json("--device", "sim", "--dry-run", "tune", file.stem)
    assert code == 0, out
    for shape in out["shapes"]:
        others = [c for c in shape["candidates"] if c["state"] != "not compiled"]
        assert len(shape["candidates"]) - len(others) > 5
        # What the simulated GPU does not have, with its reason.
        assert all(c["backend"] == "cublaslt" and c["state"] == "unavailable" and c["why"] for c in others), others
