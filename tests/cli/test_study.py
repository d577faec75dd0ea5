"""Causal studies as a user runs them, on the simulated GPU: what is measured, what is refused, what goes on after trouble."""

import hashlib
import json
import os
import pathlib
import shutil

import pytest

from conftest import Hebe

CASES = pathlib.Path(__file__).parents[1] / "data" / "qualify" / "row_kernels.py"
LAYER_NORM = pathlib.Path(__file__).parents[2] / "kernels" / "layer_norm.py"
INLINE = ["inline-single-trip-loops", {"pass": "reuse-loads", "arguments": ["x_ptr"]}, "remove-dead"]
JOBS = ["aa", "primary", "control", "floor"]


def qualification_spec(folder, **more):
    file = folder / "kernels.json"
    file.write_text(json.dumps({
        "schema": "hebe.qualification.spec/1", "name": "rows",
        "subject": {"case": f"{folder / 'row_kernels.py'}:case", "parameters": {"m": 8192}},
        "points": [{"name": "8192x256"}], "candidates": [{"name": "once", "passes": INLINE}],
        "contrasts": [{"a": "baseline", "b": "once"}], **more}))
    return str(file)


def study_spec(folder, **more):
    file = folder / "study.json"
    spec = {
        "schema": "hebe.study.spec/1", "name": "rows-study", "description": "one load of x against two", "qualification": "rows",
        "tier": "smoke-v1", "pairs": 6, "seed": 5, "contrasts": [{"point": "8192x256", "a": "baseline", "b": "once"}],
        "control": {"case": "traffic-control", "parameters": {"n": 262144}},
        "floor": {"case": "traffic-control", "parameters": {"n": 2097152}}, **more}
    file.write_text(json.dumps({k: v for k, v in spec.items() if v is not None}))
    return str(file)


@pytest.fixture(scope="module")
def qualified(tmp_path_factory):
    """A data root with one passing qualification, to be copied, never changed."""
    base = tmp_path_factory.mktemp("qualified")
    shutil.copy(CASES, base / "row_kernels.py")
    h = Hebe(base / "root", base / "tmp")
    code, out = h.json("--device", "sim", "qualify", qualification_spec(base))
    assert code == 0, out
    return base, out["id"]


@pytest.fixture
def at(tmp_path, qualified):
    """A copy of it, and where its files lie."""
    base, identity = qualified
    shutil.copytree(base / "root", tmp_path / "root", symlinks=True)
    for writable in [tmp_path / "root", *(tmp_path / "root").rglob("*")]:
        os.chmod(writable, os.stat(writable).st_mode | 0o200)
    hebe = Hebe(tmp_path / "root", tmp_path / "tmp")
    hebe.folder, hebe.qualification, hebe.cases = tmp_path, identity, base
    return hebe


def study(hebe, *options, **spec):
    return hebe.json("--device", "sim", "study", study_spec(hebe.folder, **spec), "--qualification", hebe.qualification, *options)


def campaign(hebe):
    (directory,) = [p for p in (hebe.root / "campaigns").iterdir() if not p.name.startswith(".")]
    return directory


def events(hebe, kind):
    lines = (campaign(hebe) / "state.jsonl").read_text().splitlines()
    return [e for e in map(json.loads, lines) if e["event"] == kind]


def kinds(hebe):
    return [json.loads((p / "plan.json").read_text())["kind"] for p in hebe.runs()]


def nothing_was_measured(hebe):
    assert not hebe.runs() and not list((hebe.root / "campaigns").glob("*")) and not list((hebe.root / "studies").glob("*"))


def record_of(hebe):
    return hebe.root / "qualifications" / "kernel" / f"{hebe.qualification}.json"


def forge(hebe, change):
    """The record with a change, under the name that its content asks for."""
    record = json.loads(record_of(hebe).read_text())
    change(record)
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    identity = hashlib.sha256(text.encode()).hexdigest()
    (record_of(hebe).parent / f"{identity}.json").write_text(text + "\n")
    hebe.qualification = identity


@pytest.fixture(scope="module")
def done(tmp_path_factory, qualified):
    """One finished study, to be copied, never changed."""
    base, identity = qualified
    folder = tmp_path_factory.mktemp("study")
    shutil.copytree(base / "root", folder / "root", symlinks=True)
    hebe = Hebe(folder / "root", folder / "tmp")
    hebe.folder, hebe.qualification = folder, identity
    code, out = study(hebe)
    assert code == 0, out
    return hebe, out


def test_one_command_measures_and_seals_the_whole_study(done):
    hebe, out = done
    analysis = out["analysis"]
    assert sorted(kinds(hebe)) == ["aa", "aa", "ab", "ab", "positive_control"]  # the calibration and the floor too
    assert len(events(hebe, "session")) == 1 and [e["job"] for e in events(hebe, "sealed")] == JOBS
    assert analysis["aa"]["verdict"] == "equivalent" and analysis["control"]["seen"]
    (contrast,) = analysis["contrasts"]
    assert contrast["verdict"] == "lower" and contrast["role"] == "primary"
    assert contrast["arms"]["A"]["mechanism"]["loads"]["ttgir"] == contrast["arms"]["B"]["mechanism"]["loads"]["ttgir"] + 1
    assert analysis["floor"]["bytes"] == 2 * 4 * 2097152
    directory = pathlib.Path(out["directory"])
    assert {p.name for p in directory.iterdir()} == {"study.json", "page.html", "effects.svg"}
    assert all(os.stat(p).st_mode & 0o222 == 0 for p in directory.iterdir())


def test_a_contraction_that_a_rewrite_writes_down_has_the_bits_of_the_compilers_own(tmp_path):
    hebe = Hebe(tmp_path / "root", tmp_path / "tmp")
    hebe.folder = tmp_path
    code, out = hebe.json("--device", "sim", "qualify", qualification_spec(
        tmp_path, subject={"case": f"{LAYER_NORM}:case", "parameters": {"m": 512, "n": 512}}, points=[{"name": "512x512"}],
        candidates=[{"name": "once", "passes": INLINE}]))
    assert code == 0, out
    hebe.qualification = out["id"]
    ttgir = {v["name"]: (lambda d: (hebe.root / "artifacts" / d[:2] / d).read_text())(v["artifacts"]["ttgir"])
             for point in json.loads(record_of(hebe).read_text())["points"] for v in [point["baseline"], *point["candidates"]]}
    assert "math.fma" in ttgir["once"] and "math.fma" not in ttgir["baseline"]
    code, out = study(hebe, contrasts=[{"point": "512x512", "a": "baseline", "b": "once"}], control=None, floor=None)
    assert len(events(hebe, "sealed")) == 2, out


def test_a_simulated_smoke_study_never_qualifies(done):
    analysis = done[1]["analysis"]
    assert not analysis["study_qualified"] and analysis["provenance"] == "simulated"
    failing = " ".join(c["name"] for c in analysis["conditions"] if not c["holds"])
    assert "tier" in failing and "provenance" in failing


def test_a_simulated_confirmation_study_fails_by_its_provenance_alone(at):
    code, out = study(at, tier="confirmation-v1", pairs=None, floor=None)
    assert code == 0, out
    analysis = out["analysis"]
    assert analysis["label"] == "research" and not analysis["study_qualified"]
    for condition in analysis["conditions"]:
        if condition["holds"]:
            continue
        assert "simulated" in condition["evidence"] or condition["name"] == "one boot session", condition
        assert "tier" not in condition["name"]
    assert not any(c["qualified"] for c in analysis["contrasts"])


def test_the_measured_cubins_are_the_qualified_ones(done):
    hebe, out = done
    point = json.loads(record_of(hebe).read_text())["points"][0]
    (arms,) = [json.loads((p / "plan.json").read_text()) for p in hebe.runs()
               if json.loads((p / "plan.json").read_text()).get("qualification", {}).get("b") == "once"]
    assert arms["arms"]["A"]["cubin_sha256"] == point["baseline"]["artifacts"]["cubin"]
    assert arms["arms"]["B"]["cubin_sha256"] == point["candidates"][0]["artifacts"]["cubin"]
    assert arms["qualification"]["record"] == hebe.qualification and arms["qualification"]["equal_bits"]


def test_the_primary_alone_is_one_run_and_a_dataset(at):
    code, out = at.json("--device", "sim", "run", study_spec(at.folder), "--qualification", at.qualification)
    assert code == 0 and out["analysis"]["verdict"] == "lower", out
    assert kinds(at) == ["ab"] and (at.root / "datasets" / out["dataset"]).is_dir()
    done = at("run-verify", out["directory"])
    assert done.returncode == 0 and "qualification" in done.stdout, done.stdout


def test_nothing_is_measured_in_a_dry_run(at):
    code, out = study(at, "--dry-run")
    assert code == 0 and out["estimated_s"] > 0
    nothing_was_measured(at)


def test_several_contrasts_are_one_study(at):
    kernels = [{"name": "once", "passes": INLINE},
               {"name": "hinted", "passes": [*INLINE, {"pass": "hint", "loads": {"x_ptr": {"evict": "evict_first"}}}]}]
    shutil.copy(CASES, at.folder / "row_kernels.py")
    code, made = at.json("--device", "sim", "qualify", qualification_spec(
        at.folder, candidates=kernels, contrasts=[{"a": "baseline", "b": "once"}, {"a": "baseline", "b": "hinted"}]))
    assert code == 0, made
    at.qualification = made["id"]
    both = [{"point": "8192x256", "a": "baseline", "b": b} for b in ("once", "hinted")]
    code, out = study(at, contrasts=both, floor=None)
    assert code == 0, out
    jobs = [c["job"] for c in out["analysis"]["contrasts"]]
    assert jobs == ["primary", "8192x256.hinted"]
    assert all(c["energy_p"] <= c["energy_p_holm"] for c in out["analysis"]["contrasts"])
    assert out["analysis"]["floor"] is None


# What must be refused before anything is measured.

def refused(hebe, outcome, exit_code, code, *words):
    got, out = outcome
    assert got == exit_code and out["refused"]["code"] == code, out
    for word in words:
        assert word in json.dumps(out["refused"]), out["refused"]
    nothing_was_measured(hebe)


def test_a_qualification_must_be_named(at):
    at.qualification, known = "", at.qualification
    refused(at, study(at), 2, "bad_argument", known[:12])


def test_a_qualification_that_did_not_pass(at):
    shutil.copy(CASES, at.folder / "row_kernels.py")
    code, made = at.json("--device", "sim", "qualify", qualification_spec(
        at.folder, subject={"case": f"{at.folder / 'row_kernels.py'}:case", "parameters": {"n": 500}}))
    assert code == 1
    at.qualification = made["id"]
    refused(at, study(at), 2, "not_qualified", "did not pass")


def test_a_record_that_says_it_passed_against_its_checks(at):
    def lie(record):
        record["points"][0]["candidates"][0]["checks"][0]["outcome"] = "failed"
    forge(at, lie)
    code, out = study(at)
    assert code in (2, 5), out
    nothing_was_measured(at)


def test_a_record_of_another_schema(at):
    other = at.folder / "other.json"
    other.write_text(json.dumps({"schema": "hebe.qualification.meter/1"}))
    at.qualification = str(other)
    refused(at, study(at), 5, "digest_mismatch")
    text = json.dumps({"schema": "hebe.qualification.meter/1"}, separators=(",", ":"))
    named = at.folder / (hashlib.sha256(text.encode()).hexdigest() + ".json")
    named.write_text(text + "\n")
    at.qualification = str(named)
    refused(at, study(at), 5, "bad_schema")


@pytest.mark.parametrize("label", ["energy_per_launch_j", "mean_power_w", "latency_s"])
def test_a_record_with_a_label_of_energy(at, label):
    def measure(record):
        record["points"][0]["candidates"][0]["resources"][label] = 0.012
    forge(at, measure)
    got, out = study(at)
    assert got in (2, 5) and label in json.dumps(out["refused"]), out
    nothing_was_measured(at)


def test_a_record_of_another_qualification(at):
    refused(at, study(at, qualification="columns"), 2, "not_qualified", "columns", "rows")


@pytest.mark.parametrize("contrast, word", [
    ({"point": "8192x256", "a": "baseline", "b": "twice"}, "twice"),
    ({"point": "1x1", "a": "baseline", "b": "once"}, "1x1"),
])
def test_a_contrast_that_was_not_qualified(at, contrast, word):
    got, out = study(at, contrasts=[contrast])
    assert got == 2 and word in out["refused"]["what"], out
    nothing_was_measured(at)


@pytest.mark.parametrize("kind", ["cubin", "ttgir", "ptx"])
def test_an_artifact_that_changed_on_disk_after_the_qualification(at, kind):
    digest = json.loads(record_of(at).read_text())["points"][0]["candidates"][0]["artifacts"][kind]
    file = at.root / "artifacts" / digest[:2] / digest
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    refused(at, study(at), 5, "digest_mismatch", digest)


def test_a_case_that_changed_after_the_qualification(at):
    changed = at.folder / "row_kernels.py"
    changed.write_text(CASES.read_text() + "\n# another reference\n")

    def elsewhere(record):
        record["spec"]["subject"]["case"] = f"{changed}:case"
    forge(at, elsewhere)
    refused(at, study(at), 2, "not_qualified", "row_kernels.py", "sha256")


@pytest.mark.parametrize("option, value, minimum", [
    ("--pairs", "11", "12"), ("--batch-seconds", "4.9", "5"), ("--warm-up-seconds", "29", "30")])
def test_less_than_the_tier_needs_is_a_usage_error(at, option, value, minimum):
    got, out = study(at, "--protocol-tier", "confirmation-v1", option, value)
    assert got == 2 and out["refused"]["code"] == "below_tier_minimum" and minimum in out["refused"]["what"], out
    nothing_was_measured(at)


@pytest.mark.parametrize("spec, word", [
    ({"contrasts": [{"point": "8192x256", "a": "once", "b": "once"}]}, "both arms"),
    ({"contrasts": 2 * [{"point": "8192x256", "a": "baseline", "b": "once"}] + [{"point": "8192x256", "a": "baseline", "b": "once"}]}, "before"),
    ({"contrasts": []}, "contrasts"), ({"control": {"fraction": -1}}, "fraction"), ({"control": {"fraction": 1e9}}, "fraction"),
    ({"control": {"parameters": {"fraction": 2}}}, "fraction"), ({"tier": "gold"}, "gold"), ({"pairs": 0}, "pairs"),
    ({"simulated": {"faults": {"second": ["mig"]}}}, "second"), ({"simulated": {"faults": {"aa": ["no_such"]}}}, "no_such"),
    ({"control": {"case": "no-such-case"}}, "no-such-case"), ({"name": "A b"}, "name"), ({"more": 1}, "more"),
])
def test_a_wrong_specification_is_named(at, spec, word):
    got, out = study(at, **spec)
    assert got == 2 and word in json.dumps(out["refused"]), out
    nothing_was_measured(at)


# Trouble while it is measured: what is sealed stays, what is not is measured again, nothing is half there.


@pytest.mark.parametrize("name", ["run-layernorm-retention", "run-layernorm-retention-study", "run-layernorm-reintegration-study"])
def test_the_fixed_names_ask_for_their_own_qualification(at, name):
    code, out = at.json("--device", "sim", name, "--qualification", at.qualification)
    assert code == 2 and out["refused"]["code"] == "not_qualified" and "layernorm-" in out["refused"]["what"], out
    nothing_was_measured(at)


# Found by a hostile review.

@pytest.mark.parametrize("spec, word", [
    ({"floor": {"case": f"{CASES}:case", "parameters": {"m": 64}}}, "declares no traffic"),
    ({"floor": {"case": "traffic-control", "parameters": {"n": 1048576, "fraction": 1.0}}}, "no copy"),
    ({"floor": {"case": "traffic-control", "parameters": {"bogus": 1}}}, "bogus"),
    ({"floor": {"case": f"{CASES}:nofn"}}, "nofn"),
    ({"control": {"case": f"{CASES}:case"}}, "fraction"),
    ({"contrasts": [{"point": "8192x256", "a": "baseline", "b": "once"}, {"point": "8192x256", "a": "once", "b": "baseline"}]}, "one direction"),
    ({"contrasts": [{"point": "8192x256", "a": "baseline", "b": b} for b in ("x", "once", "Once")]}, "another job is"),
    ({"contrasts": [{"point": "8192x256", "a": "baseline", "b": b} for b in ("x", "y" * 100)]}, "no name of at most"),
    ({"contrasts": [{"point": p, "a": "baseline", "b": "x"} for p in ("here", ".hidden")]}, "no name of at most"),
])
def test_what_is_wrong_is_found_before_anything_is_measured(at, spec, word):
    got, out = study(at, **spec)
    assert got == 2 and word in json.dumps(out["refused"], ensure_ascii=False), out
    nothing_was_measured(at)
