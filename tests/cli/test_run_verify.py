"""run-verify: one changed byte anywhere is named by its file."""

import hashlib
import json
import shutil

import pytest
from conftest import SMOKE

FILES = ["plan.json", "environment.json", "windows.jsonl", "telemetry.parquet", "analysis.json", "manifest.json"]


@pytest.fixture
def run(sealed, tmp_path):
    copy = tmp_path / "runs/2026/01/02" / sealed.name
    shutil.copytree(sealed, copy)
    for file in copy.iterdir():
        file.chmod(0o644)
    return copy


def test_a_sealed_run_verifies_wherever_it_is_copied(hebe, run):
    done = hebe("run-verify", str(run))
    assert done.returncode == 0 and done.stdout.strip().endswith("verified")
    assert "recomputed from the samples" in done.stdout
    assert "not checked" in done.stdout  # the copy has no artifact store beside it, and says so


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("place", [0.0, 0.3, 0.6, 1.0])
def test_a_flipped_bit_is_named(hebe, run, name, place):
    data = bytearray((run / name).read_bytes())
    at = min(int(place * len(data)), len(data) - 1)
    data[at] ^= 1
    (run / name).write_bytes(data)
    code, out = hebe.json("run-verify", str(run))
    assert code == 5 and not out["valid"]
    assert any(name in p["where"] for p in out["problems"])


@pytest.mark.parametrize("name", FILES)
def test_a_truncated_file_is_named(hebe, run, name):
    data = (run / name).read_bytes()
    (run / name).write_bytes(data[: len(data) // 2])
    code, out = hebe.json("run-verify", str(run))
    assert code == 5 and any(name in p["where"] for p in out["problems"])


@pytest.mark.parametrize("name", FILES)
def test_a_missing_or_empty_file_is_named(hebe, run, name):
    (run / name).write_bytes(b"")
    code, out = hebe.json("run-verify", str(run))
    assert code == 5 and any(name in p["where"] for p in out["problems"])
    (run / name).unlink()
    code, out = hebe.json("run-verify", str(run))
    assert code == 5 and any(name in p["where"] for p in out["problems"])


def test_an_added_file_is_named(hebe, run):
    (run / "notes.txt").write_text("trust me")
    code, out = hebe.json("run-verify", str(run))
    assert code == 5 and any("notes.txt" in p["where"] for p in out["problems"])


def reseal(run, name, text):
    """A forger's work: the file changed, manifest and directory name made to agree."""
    (run / name).write_text(text)
    manifest = json.loads((run / "manifest.json").read_text())
    for f in manifest["files"]:
        if f["path"] == name:
            f["bytes"], f["sha256"] = len(text.encode()), hashlib.sha256(text.encode()).hexdigest()
    body = json.dumps(manifest, sort_keys=True, separators=(",", ":")) + "\n"
    (run / "manifest.json").write_text(body)
    seal = hashlib.sha256(body.encode()).hexdigest()
    return run.rename(run.with_name("-".join(run.name.split("-")[:2]) + "-" + seal[:16]))


def test_a_forged_analysis_does_not_follow_from_the_samples(hebe, run):
    text = (run / "analysis.json").read_text()
    analysis = json.loads(text)
    analysis["energy"]["effect_percent"] -= 5
    forged = reseal(run, "analysis.json", json.dumps(analysis, sort_keys=True, separators=(",", ":")) + "\n")
    code, out = hebe.json("run-verify", str(forged))
    assert code == 5 and out["problems"][0]["code"] == "analysis_mismatch"
    assert "/energy/effect_percent" in out["problems"][0]["what"]


def test_a_simulated_run_cannot_be_forged_into_a_qualified_one(hebe, run):
    analysis = json.loads((run / "analysis.json").read_text())
    analysis["qualified"] = True
    forged = reseal(run, "analysis.json", json.dumps(analysis, sort_keys=True, separators=(",", ":")) + "\n")
    assert hebe("run-verify", str(forged)).returncode == 5


def test_a_window_changed_by_hand_does_not_follow_from_the_samples(hebe, run):
    lines = (run / "windows.jsonl").read_text().splitlines()
    window = json.loads(lines[1])
    window["estimate"]["mean_power_w"] *= 0.9
    lines[1] = json.dumps(window, sort_keys=True, separators=(",", ":"))
    forged = reseal(run, "windows.jsonl", "\n".join(lines) + "\n")
    code, out = hebe.json("run-verify", str(forged))
    assert code == 5 and "windows.jsonl:2" in out["problems"][0]["where"]


def test_another_schema_version_is_refused_with_required_and_found(hebe, run):
    plan = json.loads((run / "plan.json").read_text())
    plan["schema"] = "hebe.run.plan/2"
    forged = reseal(run, "plan.json", json.dumps(plan, sort_keys=True, separators=(",", ":")) + "\n")
    code, out = hebe.json("run-verify", str(forged))
    assert code == 5 and 'required schema "hebe.run.plan/1", found "hebe.run.plan/2"' in out["problems"][0]["what"]


def test_a_damaged_cubin_in_the_store_is_named(hebe):
    hebe(*SMOKE)
    (run,) = hebe.runs()
    digest = json.loads((run / "plan.json").read_text())["arms"]["A"]["cubin_sha256"]
    blob = hebe.root / "artifacts" / digest[:2] / digest
    blob.chmod(0o644)
    blob.write_bytes(blob.read_bytes()[:-1])
    code, out = hebe.json("run-verify", str(run))
    assert code == 5 and digest in out["problems"][0]["where"]


def test_names_find_runs(hebe):
    _, out = hebe.json(*SMOKE)
    assert hebe("run-verify").returncode == 0
    assert hebe("run-verify", out["seal"][:16]).returncode == 0
    missing = hebe("run-verify", "no-such-run")
    assert missing.returncode == 2 and "no run is named" in missing.stderr
    nowhere = hebe("run-verify", "/nowhere")
    assert nowhere.returncode == 2
