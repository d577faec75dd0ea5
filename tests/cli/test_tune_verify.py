"""hebe tune --verify and hebe profile verify: what a tune's record, its runs and its profile say is computed again, and
whoever changes one of them, with every digest made to fit, is told where, what was recorded and what was recomputed."""

import copy
import hashlib
import json
import os
import pathlib
import shutil

import pytest

from conftest import Hebe
from test_tune import rows_of, spec_of, tune, write


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    base = tmp_path_factory.mktemp("tuned")
    h = Hebe(base / "root", base / "tmp")
    code, out = tune(h, search_window_s=1, search_longest_window_s=2, backends=[{
        "name": "triton", "case": "scaled_rows.py:case", "space": {"passes": [1, 2, 3], "block": [256], "num_warps": [2, 4]}}])
    assert code == 0, json.dumps(out)
    return h, out


def test_a_tune_that_was_made_twice_is_verified(tmp_path):
    """Equal seeds give equal runs on the simulated GPU, in two folders."""
    hebe = Hebe(tmp_path / "root", tmp_path / "tmp")
    ids = {tune(hebe)[1]["id"] for _ in range(2)}
    assert len(ids) == 1 and len(hebe.runs()) == 2 * len({p.name.rsplit("-", 1)[1] for p in hebe.runs()})
    done = hebe("tune", "--verify", "")
    assert done.returncode == 0, done.stdout
    (profile,) = (hebe.root / "profiles").glob("*")
    assert hebe("profile", "verify", str(profile)).returncode == 0
    key = tmp_path / "key"
    assert hebe("receipt", "key", str(key)).returncode == 0
    done = hebe("receipt", "sign", ids.pop(), "--key", str(key))
    assert done.returncode == 0, done.stderr


class Copy:
    """A data root of one's own, to be changed."""

    def __init__(self, tuned, folder):
        original, out = tuned
        shutil.copytree(original.root, folder / "root", symlinks=True)
        self.hebe = Hebe(folder / "root", folder / "tmp")
        self.id = out["id"]

    @property
    def record_file(self):
        return self.hebe.root / "tunes" / f"{self.id}.json"

    @property
    def profile_file(self):
        (file,) = (self.hebe.root / "profiles").iterdir()
        return file

    def record(self):
        return json.loads(self.record_file.read_text())

    def store(self, record):
        """Under the name that its content asks for; the profile's rows follow."""
        text = hebe_canonical(self.hebe, record)
        old, self.id = self.record_file, hashlib.sha256(text.encode()).hexdigest()
        old.unlink()
        self.record_file.write_text(text + "\n")
        profile = json.loads(self.profile_file.read_text())
        for row in profile["rows"]:
            row["evidence"]["study"] = self.id
        self.store_profile(profile)

    def store_profile(self, profile):
        old = self.profile_file
        text = hebe_canonical(self.hebe, profile) + "\n"
        old.unlink()
        (old.parent / f"rows-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json").write_text(text)

    def verify(self, name=""):
        return self.hebe.json("tune", "--verify", name)

    def told(self, *words):
        """Verification fails as tampered evidence does, and one line has all of the words."""
        code, out = self.verify()
        assert code == 5 and not out["valid"], out
        return told(out, *words)


def told(out, *words):
    lines = [f"{p['where']}: {p['what']}" for part in out["parts"] for p in part["problems"]]
    assert any(all(word in line for word in words) for line in lines), (words, lines)
    return lines


def hebe_canonical(hebe, value):
    """Numbers as ECMAScript writes them, which is how Python does but for exponents and whole floats."""
    def number(x):
        if x == int(x) and abs(x) < 1e21:
            return str(int(x))
        text = repr(x)
        if "e" in text:
            mantissa, exponent = text.split("e")
            if -7 <= int(exponent) < 0:
                return format(x, f".{len(mantissa.replace('.', '').lstrip('-')) - 1 - int(exponent)}f")
            return f"{mantissa}e{'-' if exponent[0] == '-' else '+'}{exponent.lstrip('+-').lstrip('0')}"
        return text

    def text(v):
        if isinstance(v, dict):
            return "{" + ",".join(f"{json.dumps(k, ensure_ascii=False)}:{text(v[k])}" for k in sorted(v)) + "}"
        if isinstance(v, list):
            return "[" + ",".join(map(text, v)) + "]"
        if isinstance(v, float):
            return number(v)
        return json.dumps(v, ensure_ascii=False)
    return text(value)


@pytest.fixture
def mine(tuned, tmp_path):
    return Copy(tuned, tmp_path)


def test_these_tests_write_records_as_hebe_does(mine):
    text = mine.record_file.read_text()
    assert hebe_canonical(mine.hebe, json.loads(text)) + "\n" == text


def test_a_tune_verifies_by_id_file_and_as_the_newest(tuned):
    hebe, out = tuned
    for name in ("", out["id"], out["id"][5:25], out["record"]):
        code, report = hebe.json("tune", "--verify", name)
        assert code == 0 and report["valid"] and report["complete"] and report["tune"] == out["id"], report
    whats = [part["what"] for part in report["parts"]]
    assert whats[0] == f"tune {out['id']}" and "shape wide" in whats and "choice of wide" in whats
    assert [w for w in whats if w.startswith("run ")] and whats[-1].startswith("profile rows-")
    assert all(part["passed"] for part in report["parts"])
    said = " ".join(text for part in report["parts"] for text in part["not_checked"])
    assert "the samples behind the search's windows" in said  # what cannot be looked at is said
    done = hebe("tune", "--verify", "")
    assert done.returncode == 0 and done.stdout.endswith("verified\n"), done.stdout


def test_a_record_keeps_its_readings_compactly(tuned):
    hebe, out = tuned
    record = json.loads(pathlib.Path(out["record"]).read_text())
    readings = record["shapes"][0]["search"]["readings"]
    columns = readings["window_columns"]
    windows = [dict(zip(columns, row)) for row in readings["windows"]]
    assert len(readings["idle"]) == 2 and readings["loaded_clock_mhz"] > 0
    for w in windows:
        assert w["power_w"] > 0 and w["power_error_w"] > 0 and w["duration_s"] > 0 and w["launches"] > 0
        joules = (w["end_mj"] - w["begin_mj"]) * 1e-3
        assert joules / w["counted_s"] == pytest.approx(w["power_w"], rel=0.25)
    size = len(json.dumps(readings["windows"], separators=(",", ":"))) / len(windows)
    assert size * 60 * 4 < 100_000  # 60 candidates in 4 rungs


def test_a_marginal_cost_is_that_of_the_stored_readings_by_hand(tuned):
    """Not by Hebe's code: mean power beyond the mean idle power, over the launches."""
    hebe, out = tuned
    shape = json.loads(pathlib.Path(out["record"]).read_text())["shapes"][0]
    readings = shape["search"]["readings"]
    idle = sum(row[0] for row in readings["idle"]) / 2
    for number, candidate in enumerate(shape["candidates"]):
        rows = [dict(zip(readings["window_columns"], r)) for r in readings["windows"] if r[0] == number]
        joules = sum((w["power_w"] - idle) * w["duration_s"] for w in rows)
        launches = sum(w["launches"] for w in rows)
        assert candidate["cost"]["energy_nj"]["value"] == pytest.approx(joules / launches * 1e9, rel=1e-9)
        assert candidate["windows"] == len(rows)


def changed(record, path, change):
    out = copy.deepcopy(record)
    at = out
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = change(at[path[-1]])
    return out


SHAPE = ("shapes", 0)
WINDOWS = (*SHAPE, "search", "readings", "windows")
IDLE = (*SHAPE, "search", "readings", "idle")
CANDIDATE = (*SHAPE, "candidates", 1)


@pytest.mark.parametrize("path, change, words", [
    # Costs against readings.
    ((*CANDIDATE, "cost", "energy_nj", "value"), lambda v: v * 1.001, ("wide/candidates[1]/cost/energy_nj/value", "recorded", "recomputed")),
    ((*CANDIDATE, "cost", "energy_nj", "low"), lambda v: v * 0.99, ("cost/energy_nj/low",)),
    ((*CANDIDATE, "cost", "time_ns", "value"), lambda v: v * 1.001, ("cost/time_ns/value",)),
    ((*CANDIDATE, "cost", "objective", "high"), lambda v: v * 1.001, ("cost/objective/high",)),
    ((*WINDOWS, 1, 1), lambda v: v * 1.001, ("cost/energy_nj/value",)),
    ((*WINDOWS, 1, 1), lambda v: v * 2, ("readings.windows[1]", "recomputed from the counter")),
    ((*WINDOWS, 1, 10), lambda v: v - 10**9, ("readings.windows[1]", "the counter moved by -")),
    ((*WINDOWS, 1, 6), lambda v: v * 2, ("readings.windows[1]", "launches of")),
    ((*WINDOWS, 1, 5), lambda v: v / 4, ("readings.windows[1]", "were due in this rung")),
    ((*IDLE, 0, 0), lambda v: v * 1.01, ("wide/search/idle/mean_w",)),
    ((*IDLE, 1, 0), lambda v: v * 1.01, ("wide/search/idle/mean_w",)),
    ((*IDLE, 1, 5), lambda v: v - 10**9, ("readings.idle[1]", "the counter moved by -")),
    ((*SHAPE, "search", "readings", "loaded_clock_mhz"), lambda v: v * 3, ("wide/search/idle/state", '"clocks_up"', '"context_open"')),
    # Seconds, and what an exhaustive search would have taken.
    ((*CANDIDATE, "measured_s"), lambda v: v + 1, ("candidates[1]/measured_s",)),
    ((*SHAPE, "search", "exhaustive_measured_s"), lambda v: v * 2, ("search/exhaustive_measured_s",)),
    # Which was dropped when, and the order.
    ((*CANDIDATE, "state"), lambda v: "measured" if v == "dropped" else "dropped", ("candidates[1]/state",)),
    ((*CANDIDATE, "rung"), lambda v: v + 1, ("candidates[1]/rung",)),
    ((*SHAPE, "search", "stopped"), lambda v: "one is left, or so they say", ("search/stopped",)),
    (WINDOWS, lambda v: [v[1], v[0], *v[2:]], ("readings.windows[0]", "the search's order asks for candidate")),
    (WINDOWS, lambda v: v[:-1], ("the search asks for another",)),
    (WINDOWS, lambda v: [*v, v[-1]], ("readings.windows", "the search asks for")),
    # Choice and effects.
    ((*SHAPE, "finalists", "runs", 0, "energy", "percent"), lambda v: v - 1, ("finalists/runs[0]/energy/percent",)),
    ((*SHAPE, "finalists", "runs", 0, "energy", "low_percent"), lambda v: v - 1, ("finalists/runs[0]/energy/low_percent",)),
    ((*SHAPE, "finalists", "runs", 0, "verdict"), lambda v: "higher", ("finalists/runs[0]/verdict",)),
    ((*SHAPE, "finalists", "runs", 0, "qualified"), lambda v: not v, ("finalists/runs[0]/qualified",)),
    ((*SHAPE, "finalists", "choice"), lambda v: 0, ("wide/finalists/choice", "recorded 0, recomputed")),
    ((*SHAPE, "finalists", "latency_choice"), lambda v: 0, ("wide/finalists/latency_choice",)),
    ((*SHAPE, "finalists", "why"), lambda v: v + "!", ("wide/finalists/why",)),
    ((*SHAPE, "finalists", "runs"), lambda v: [*v, v[0]], ("finalists.runs", "the choice needs")),
    ((*SHAPE, "finalists"), lambda v: {**v, "not_compared": {"code": "not_stable", "what": "x", "where": "", "next": ""}},
     ("finalists/not_compared",)),
    # The kernels, and what else a run must be.
    ((*SHAPE, "candidates", 0, "artifact_sha256"), lambda v: "0" * 64, ("arm A's artifact", "0" * 64)),
    (("board", "name"), lambda v: "Another Board", ("device.name", "Another Board")),
    (("board", "uuid"), lambda v: "GPU-another", ("device.uuid", "GPU-another")),
    (("driver",), lambda v: "999.99", ("board.driver", "999.99")),
    (("os",), lambda v: "Another System 1", ("host.distribution", "Another System 1")),
    (("hebe",), lambda v: "9.9.9", ("hebe.version", "9.9.9")),
    (("provenance",), lambda v: "measured", ("provenance", '"measured"', '"simulated"')),
    (("meter", "name"), lambda v: "another.meter", ("meter", "another.meter")),
    (("protocol", "pairs"), lambda v: v + 1, ("pairs: the tune recorded",)),
    (("protocol", "window_s"), lambda v: v * 2, ("window_s: the tune recorded",)),
    (("protocol", "tier"), lambda v: "confirmation-v1", ("tier: the tune recorded",)),
    (("seed",), lambda v: "77", ("the search's order asks for candidate",)),
    # The record against its own specification.
    (("name",), lambda v: "another", ("record/name", '"another"', '"rows"')),
    (("operation",), lambda v: "another", ("record/operation",)),
    (("objective",), lambda v: "edp", ("record/objective",)),
    (("method",), lambda v: "random", ("record/method",)),
    ((*SHAPE, "sizes", "m"), lambda v: 1, ("wide/sizes/m",)),
    ((*SHAPE, "bucket"), lambda v: "m<=1,n=256", ("wide/bucket",)),
    ((*SHAPE, "candidates", 0, "configuration", "passes"), lambda v: 1, ("the baseline's configuration",)),
    ((*SHAPE, "candidates"), lambda v: v[:-1], ("wide: the configurations of triton",)),
    (("spec", "search_longest_window_s"), lambda v: 1, ("readings.windows",)),
])
def test_every_disagreement_in_a_record_is_named(mine, path, change, words):
    mine.store(changed(mine.record(), path, change))
    mine.told(*words)


def test_a_record_that_is_not_the_one_its_name_says_is_refused(mine):
    text = mine.record_file.read_text()
    os.chmod(mine.record_file, 0o644)
    mine.record_file.write_text(text.replace('"rows"', '"rowS"', 1))
    code, out = mine.verify(mine.id)
    assert code == 5 and out["refused"]["code"] == "digest_mismatch"
    broken = mine.record()
    del broken["shapes"][0]["search"]["readings"]
    mine.store(broken)
    code, out = mine.verify(mine.id)
    assert code == 5 and out["refused"]["code"] == "bad_schema"
    code, out = mine.verify("nothing-like-it")
    assert code == 2 and out["refused"]["code"] == "not_found"


def test_shapes_that_the_specification_does_not_have_are_no_usage_error(mine):
    record = mine.record()
    record["only_shapes"] = ["nobody"]
    mine.store(record)
    code, out = mine.verify(mine.id)
    assert code == 5 and "nobody" in json.dumps(out), out


def test_a_run_of_other_kernels_is_not_taken_for_the_pairs(mine):
    """Two sealed runs that verify, named in each other's place."""
    record = mine.record()
    runs = record["shapes"][0]["finalists"]["runs"]
    if len(runs) == 1:  # the latency choice is the choice: another pair is made, of the baseline against itself
        code, out = mine.hebe.json("--device", "sim", "tune", write(mine.hebe.tmp / "spec", spec_of(backends=[{
            "name": "triton", "case": "scaled_rows.py:case", "space": {"passes": [3], "block": [256], "num_warps": [4]}}])))
        assert code == 0, json.dumps(out)
        other = out["tune"]["shapes"][0]["finalists"]["runs"][0]["seal"]
        (mine.hebe.root / "tunes" / f"{out['id']}.json").unlink()
        pathlib.Path(out["profile"]).unlink()
    else:
        other = runs[1]["seal"]
    runs[0]["seal"] = other
    mine.store(record)
    lines = mine.told("'s artifact")  # arm A's or B's, as the other pair is
    assert any("seed" in line for line in lines)


def test_a_changed_run_is_named_and_a_missing_one_leaves_the_tune_incomplete(mine):
    (run,) = mine.hebe.runs()[:1]
    plan = run / "plan.json"
    before = plan.read_bytes()
    os.chmod(plan, 0o644)
    plan.write_bytes(before.replace(b'"pairs":6', b'"pairs":7'))
    mine.told("plan.json", "required sha256")
    plan.write_bytes(before)
    assert mine.verify()[0] == 0
    shutil.rmtree(run)
    code, out = mine.verify()
    assert code == 4 and out["valid"] and not out["complete"]
    assert any("not in this data root" in text for part in out["parts"] for text in part["not_checked"])
    done = mine.hebe("tune", "--verify", "")
    assert "incomplete" in done.stdout


@pytest.mark.parametrize("path, change, words", [
    (("energy_nj", "value"), lambda v: v - 1, ("energy_nj/value", "recorded", "recomputed")),
    (("energy_nj", "low"), lambda v: v * 0.999, ("energy_nj/low",)),
    (("time_ns", "low"), lambda v: v * 0.999, ("time_ns/low",)),
    (("baseline", "energy_nj", "value"), lambda v: v + 1, ("baseline/energy_nj/value",)),
    (("effect", "high_percent"), lambda v: v + 0.01, ("effect/high_percent",)),
    (("provenance",), lambda v: "measured", ("provenance",)),
    (("implementation", "configuration", "passes"), lambda v: 2, ("implementation/configuration/passes",)),
    (("implementation", "artifact_sha256"), lambda v: "0" * 64, ("implementation/artifact_sha256",)),
    (("meter", "status"), lambda v: "usable", ("meter/status",)),
    (("platform", "driver"), lambda v: "1.2.3", ("platform/driver",)),
    (("platform", "triton"), lambda v: "9.9.9", ("platform/triton",)),
    (("date",), lambda v: "2001-01-01T00:00:00Z", ("date",)),
    (("evidence", "runs"), lambda v: ["0" * 64], ("evidence/runs",)),
    (("evidence", "qualified"), lambda v: not v, ("evidence/qualified",)),
    (("operation",), lambda v: "another", ("its tune gives none of this key",)),
])
def test_every_disagreement_of_a_row_is_named_by_both_commands(mine, path, change, words):
    profile = json.loads(mine.profile_file.read_text())
    mine.store_profile(changed(profile, ("rows", 0, *path), change))
    mine.told(*words)
    code, out = mine.hebe.json("profile", "verify", str(mine.profile_file))
    assert code == 5, out
    told(out, *words)


def test_a_row_from_before_that_says_nothing_of_its_runs_tier_still_verifies(mine):
    profile = json.loads(mine.profile_file.read_text())
    assert profile["rows"][0]["evidence"].pop("qualified") is False
    mine.store_profile(profile)
    assert mine.hebe("profile", "verify", str(mine.profile_file)).returncode == 0


@pytest.mark.parametrize("more", [
    {"search": "exhaustive", "search_longest_window_s": 1, "search_window_s": 1},
    {"search": "random", "search_count": 1, "search_longest_window_s": 1, "search_window_s": 1},
    {"objective": "edp", "search_longest_window_s": 1, "search_window_s": 1},
    {"objective": "energy_under_latency", "latency_bound": {"ratio": 1.2}, "search_longest_window_s": 1, "search_window_s": 1},
    {"baseline": {"backend": "triton", "configuration": {"passes": 1, "block": 256, "num_warps": 4}}, "search_longest_window_s": 1, "search_window_s": 1},
])
def test_every_kind_of_search_and_objective_verifies(hebe, more):
    code, out = tune(hebe, **more)
    assert code == 0, json.dumps(out)
    code, report = hebe.json("tune", "--verify", "")
    assert code == 0 and report["valid"] and report["complete"], report
    assert rows_of(out)
