"""The positive control and the control ladder as a user runs them, on the simulated GPU."""

import json
import pathlib
import re
import signal
import subprocess
import time

import pytest

ODD = str(pathlib.Path(__file__).parents[1] / "data/controls/odd_controls.py")
CONTROL = ("run-positive-control", "--device", "sim", "--protocol-tier", "smoke-v1", "--pairs", "8", "--set", "n=262144")
LADDER = ("run-control-ladder", "--device", "sim", "--protocol-tier", "smoke-v1", "--set", "n=262144")


def failing(analysis):
    return [c["name"] for c in analysis["conditions"] if c["name"].startswith("control: ") and not c["holds"]]


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    from conftest import Hebe
    base = tmp_path_factory.mktemp("control")
    return Hebe(base / "root", base / "tmp")


@pytest.fixture(scope="module")
def control(shared):
    code, out = shared.json(*CONTROL)
    assert code == 0, out
    return out


def test_a_control_is_predicted_then_seen_and_verifies(shared, control):
    analysis, directory = control["analysis"], pathlib.Path(control["directory"])
    assert analysis["kind"] == "positive_control" and analysis["verdict"] == "higher" and analysis["control"]["seen"]
    assert not failing(analysis) and not analysis["qualified"], "smoke on the simulated GPU is never evidence"
    plan = json.loads((directory / "plan.json").read_text())
    prediction = plan["prediction"]
    assert prediction["calibration"]["seal"] == control["calibration"]["seal"]
    assert [prediction["calibration"][k]["fraction"] for k in ("low", "high")] == [0.25, 0.75]
    assert prediction["energy"]["low_percent"] < analysis["energy"]["effect_percent"] < prediction["energy"]["high_percent"]
    assert plan["subject_b"]["launch"]["parameters"]["fraction"] == 1
    first = json.loads((directory / "windows.jsonl").read_text().splitlines()[0])
    assert first["check"]["B_against_A"] == {"out_ptr": "equal bits"}
    assert shared("run-verify", "--all").returncode == 0
    assert "power limit" in analysis["control"]["power_cap"]["evidence"]


def test_arms_of_a_control_differ_in_nothing_but_the_traffic(control):
    plan = json.loads((pathlib.Path(control["directory"]) / "plan.json").read_text())
    a, b = plan["subject"], plan["subject_b"]
    assert plan["arms"]["A"] == plan["arms"]["B"] and a["artifacts"] == b["artifacts"]
    values = [{x["name"]: x["value"] for x in s["launch"]["arguments"] if "value" in x} for s in (a, b)]
    assert {k for k in values[0] if values[0][k] != values[1][k]} == {"extra_tiles"}


def test_a_changed_prediction_is_found(shared, control, tmp_path):
    """Sealed anew as if it had been so: only the prediction contradicts its calibration."""
    plan = json.loads((pathlib.Path(control["directory"]) / "plan.json").read_text())
    assert plan["prediction"]["model"]["allowance_ratio"] == 0.15
    copy = tmp_path / pathlib.Path(control["directory"]).name
    subprocess.run(["cp", "-r", control["directory"], copy], check=True)
    subprocess.run(["chmod", "-R", "u+w", copy], check=True)
    text = (copy / "plan.json").read_text()
    (copy / "plan.json").write_text(text.replace('"fraction":1', '"fraction":2', 1))
    done = shared("run-verify", str(copy))
    assert done.returncode == 5 and "plan.json" in done.stdout + done.stderr


@pytest.mark.parametrize("case, code, names", [
    ("useless", 1, ["the case declares the extra traffic", "interval of energy excludes 0"]),
    ("falling", 1, ["right sign in energy", "right sign in latency"]),
    ("bent", 1, ["energy within the predicted range", "latency within the predicted range"]),
])
def test_a_control_that_is_not_seen_is_named(hebe, case, code, names):
    got, out = hebe.json(*CONTROL[:-2], "--case", f"{ODD}:{case}", "--set", "n=262144")
    assert got == code, out
    analysis = out["analysis"]
    assert not analysis["control"]["seen"] and not analysis["claim_holds"]
    for name in names:
        if name == "interval of energy excludes 0" and "control: " + name not in failing(analysis):
            assert "control: right sign in energy" in failing(analysis) or "control: energy within the predicted range" in failing(analysis)
            continue
        assert "control: " + name in failing(analysis), failing(analysis)
    assert analysis["reason"].startswith("not seen: ")
    assert hebe("run-verify", "--all").returncode == 0, "a control that failed is a record like any other"


@pytest.mark.parametrize("case, code, word", [
    ("silent", "bad_spec", "declares no"),
    ("other_inputs", "bad_spec", "same inputs"),
    ("other_shape", "bad_spec", "same inputs"),
    ("other_bits", "wrong_output", "differ in their bits"),
])
def test_arms_that_cannot_be_compared_are_refused(hebe, case, code, word):
    got, out = hebe.json(*CONTROL[:-2], "--case", f"{ODD}:{case}")
    assert got in (1, 2) and out["refused"]["code"] == code, out
    assert word in out["refused"]["what"]
    assert not [r for r in hebe.runs() if "positive_control" in r.name]


AB = '''
schema = "hebe.campaign.spec/1"
name = "contrast"
seed = 3
[defaults]
kind = "ab"
tier = "smoke-v1"
pairs = 6
case = "traffic-control"
parameters = { n = 262144 }
[[jobs]]
id = "more"
parameters_b = { fraction = 0.5 }
[[jobs]]
id = "warps"
options_b = { num_warps = 8 }
[[jobs]]
id = "same"
[[jobs]]
id = "other-case"
case = "CASE:useless"
case_b = "CASE:falling"
parameters_b = { n = 262144, fraction = 1.0 }
'''


def test_a_campaign_contrasts_two_arms(hebe, tmp_path):
    spec = tmp_path / "spec.toml"
    spec.write_text(AB.replace("CASE", ODD))
    code, planned = hebe.json("campaign-plan", str(spec), "--device", "sim")
    assert code == 0, planned
    job = json.loads((pathlib.Path(planned["directory"]) / "jobs/warps.json").read_text())
    a, b = job["plan"]["subject"], job["plan"]["subject_b"]
    assert (a["launch"]["num_warps"], b["launch"]["num_warps"]) == (4, 8) and job["oracle"] == job["oracle_b"]
    assert job["plan"]["arms"]["A"] != job["plan"]["arms"]["B"]
    code, done = hebe.json("campaign-submit", planned["campaign"], "--device", "sim")
    verdicts = {j["id"]: j["verdict"] for j in done["jobs"]}
    assert verdicts == {"more": "higher", "warps": "equivalent", "same": "equivalent", "other-case": "lower"}, verdicts
    assert code == 0, "each job has a verdict"
    assert hebe("run-verify", "--all").returncode == 0
    assert hebe("analysis-verify", done["analysis"]).returncode == 0
    code, taken = hebe.json("dataset-snapshot", "--all")
    assert code == 0, taken
    import pyarrow.parquet as pq
    rows = [r for p in hebe.root.glob("datasets/*/mechanism/**/*.parquet") for r in pq.read_table(p).to_pylist()]
    warps = {(r["arm"], r["num_warps"]) for r in rows if r["num_warps"] == 8}
    assert warps == {("B", 8)}, "arm B's features are arm B's"
    assert {r["case_name"] for r in rows if r["arm"] == "B"} == {"traffic_control", "falling"}


def test_a_frozen_control_is_measured_again_in_a_campaign(hebe, tmp_path):
    code, out = hebe.json(*CONTROL)
    assert code == 0, out
    plan = (pathlib.Path(out["directory"]) / "plan.json").relative_to(hebe.root)
    spec = tmp_path / "spec.toml"
    spec.write_text(f'schema = "hebe.campaign.spec/1"\nname = "again"\n[[jobs]]\nid = "control"\nplan = "{plan}"\n')
    code, planned = hebe.json("campaign-plan", str(spec), "--device", "sim")
    assert code == 0, planned
    code, done = hebe.json("campaign-submit", planned["campaign"], "--device", "sim")
    assert code == 0 and done["jobs"][0]["verdict"] == "higher", done
    again = json.loads((hebe.root / done["jobs"][0]["run"] / "plan.json").read_text())
    assert again == json.loads((hebe.root / plan).read_text())


@pytest.mark.parametrize("line, word", [
    ('kind = "aa"\nparameters_b = { n = 4096 }', "arm B"),
    ('kind = "positive_control"', "kind"),
    ('kind = "ab"\ncase_b = "nothing-like-it"', "nothing-like-it"),
    ('kind = "ab"\ncase_b = "vector-add"', "inputs"),
])
def test_arms_that_cannot_be_planned_are_refused(hebe, tmp_path, line, word):
    spec = tmp_path / "spec.toml"
    spec.write_text('schema = "hebe.campaign.spec/1"\nname = "bad"\n[[jobs]]\nid = "j"\ntier = "smoke-v1"\n'
                    'case = "traffic-control"\nparameters = { n = 4096 }\n' + line + "\n")
    code, out = hebe.json("campaign-plan", str(spec), "--device", "sim")
    assert code == 2 and word in json.dumps(out["refused"]), out
    assert not list(hebe.root.glob("campaigns/*"))


def test_a_control_names_the_run_that_its_prediction_rests_on(hebe):
    code, out = hebe.json(*CONTROL)
    assert code == 0
    done = hebe("run-verify", out["directory"])
    assert "calibration: the prediction's numbers are those of run " + out["calibration"]["run_id"] in done.stdout
    pathlib.Path(out["calibration"]["directory"]).rename(hebe.tmp / "elsewhere")
    done = hebe("run-verify", out["directory"])
    assert done.returncode == 0 and "calibration run" in done.stdout and "not in this data root" in done.stdout


@pytest.mark.parametrize("fraction", ["0", "-0.5", "nan", "inf", "17", "much"])
def test_a_fraction_that_is_none_is_a_usage_error(hebe, fraction):
    code, out = hebe.json(*CONTROL, f"--fraction={fraction}")
    assert code == 2 and out["refused"]["code"] == "bad_argument"
    assert not hebe.root.exists()


def test_a_fraction_given_twice_is_a_usage_error(hebe):
    code, out = hebe.json(*CONTROL, "--set", "fraction=0.5")
    assert code == 2 and "--fraction" in out["refused"]["next"]


def test_buffers_that_do_not_fit_are_refused(hebe):
    code, out = hebe.json(*CONTROL[:-1], "n=1099511627776")
    assert code in (2, 3) and not hebe.runs(), out


@pytest.mark.parametrize("fractions", ["0.5", "0,0", "0,-1", "0,nan", "0,99", "0,0.1,0.1"])
def test_bad_ladders_are_usage_errors(hebe, fractions):
    code, out = hebe.json(*LADDER, "--fractions", fractions)
    assert code == 2 and out["refused"]["code"] == "bad_argument", out
    assert not hebe.root.exists()


def test_a_replicate_count_of_none_is_a_usage_error(hebe):
    code, out = hebe.json(*LADDER, "--replicates", "0")
    assert code == 2 and out["refused"]["where"] == "--replicates"


@pytest.fixture(scope="module")
def ladder(tmp_path_factory):
    """Five fractions by three, interrupted in the middle and resumed."""
    from conftest import Hebe
    base = tmp_path_factory.mktemp("ladder")
    h = Hebe(base / "root", base / "tmp")
    command = (*LADDER, "--pairs", "4", "--fractions", "0,0.1,0.25,0.5,1", "--replicates", "3")
    process = h.start(*command, "--json")
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and len(h.runs()) < 4 and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    campaign = next((h.root / "campaigns").glob("control-ladder-*"))
    before = len(h.runs())
    assert process.returncode == 130 and 4 <= before < 15, (process.returncode, before, err)
    code, resumed = h.json("resume", campaign.name, "--device", "sim")
    assert code == 0, resumed
    return h, campaign, before, resumed


def test_an_interrupted_ladder_is_resumed_and_responds(ladder):
    h, campaign, before, out = ladder
    assert out["sealed_now"] == 15 - before and len(h.runs()) == 15
    a = out["analysis"]
    assert a["verdict"] == "responds" and a["label"].startswith("smoke")
    assert [s["runs"] for s in a["steps"]] == [3] * 5
    assert a["energy"]["monotone"]["holds"] and a["energy"]["r_squared"] > 0.999
    assert a["energy"]["slope_low"] < a["energy"]["slope_percent_per_100_percent"] < a["energy"]["slope_high"]
    assert len(a["energy"]["residuals_percent"]) == 15
    assert 0 < a["detection"]["pairs_only"]["fraction"] < 0.1
    assert a["detection"]["smallest_fraction_seen"] == pytest.approx(0.1, rel=0.01), "whole tiles"


def test_a_ladders_records_analysis_and_dataset_verify(ladder):
    h, campaign, _, out = ladder
    assert h("run-verify", "--all").returncode == 0
    done = h("analysis-verify", out["ladder"])
    assert done.returncode == 0 and "15 of 15 runs of the ladder recomputed" in done.stdout, done.stdout
    assert "those of the campaign's plan" in done.stdout
    assert h("dataset-verify", out["dataset"]).returncode == 0
    manifest = json.loads((h.root / "datasets" / out["dataset"] / "manifest.json").read_text())
    assert manifest["campaign"] == campaign.name and len(manifest["runs"]) == 15


def test_a_ladders_order_is_random_frozen_and_from_the_seed(ladder):
    h, campaign, _, _ = ladder
    plan = json.loads((campaign / "plan.json").read_text())
    ids = [j["id"] for j in plan["jobs"]]
    assert plan["session"] == "study" and plan["purpose"] == "control_ladder" and len(set(ids)) == 15
    assert ids != sorted(ids)
    started = [json.loads(line)["job"] for line in (campaign / "state.jsonl").read_text().splitlines()
               if json.loads(line)["event"] == "started"]
    assert list(dict.fromkeys(started)) == ids


def test_a_finished_ladder_is_told_again_by_resume(ladder):
    h, campaign, _, out = ladder
    done = h("resume", campaign.name, "--device", "sim")
    assert done.returncode == 0 and "R²" in done.stdout and "smoke: checks the plumbing" in done.stdout
    assert out["ladder"] in done.stdout and len(h.runs()) == 15


def test_a_ladder_is_submitted_once(ladder):
    h, campaign, _, _ = ladder
    code, out = h.json(*LADDER, "--pairs", "4", "--fractions", "0,0.1,0.25,0.5,1", "--replicates", "3")
    assert code == 2 and out["refused"]["code"] == "already_submitted" and "resume" in out["refused"]["next"]


def test_the_plot_stands_alone_and_says_smoke(ladder):
    _, campaign, _, _ = ladder
    svg = (campaign / "ladder.svg").read_text()
    assert svg.startswith("<svg") and svg.rstrip().endswith("</svg>")
    assert "smoke: checks the plumbing, never evidence" in svg and "simulated" in svg
    assert not re.search(r"href|url\(|<script|<image", svg)
    assert svg.count("<circle") == 2 * 2 * 15


def test_a_useless_ladder_does_not_respond(hebe):
    code, out = hebe.json(*LADDER[:-2], "--case", f"{ODD}:useless", "--set", "n=262144", "--pairs", "3",
                          "--fractions", "0,0.5,1", "--replicates", "2")
    assert code in (1, 4) and not out["analysis"]["declares_its_traffic"] and not out["analysis"]["claim_holds"], out
    assert out["analysis"]["detection"]["smallest_fraction_seen"] is None
