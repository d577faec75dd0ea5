"""run-aa on the simulated GPU: what it seals, what it says, that equal seeds give equal records."""

import json

import duckdb
import pyarrow.parquet as pq
import pytest
from conftest import SMOKE, Hebe


def test_a_confirmation_run_is_equivalent_and_never_qualified_when_simulated(hebe):
    code, out = hebe.json("run-aa", "--device", "sim")
    analysis = out["analysis"]
    assert code == 0
    assert analysis["verdict"] == "equivalent" and analysis["claim_holds"]
    assert analysis["provenance"] == "simulated" and not analysis["qualified"]
    failing = [c["name"] for c in analysis["conditions"] if not c["holds"]]
    assert failing == ["provenance is measured"]
    assert len(analysis["pairs"]) == 12
    assert {p["order"] for p in analysis["pairs"]} == {"AB", "BA"}


def test_equal_seeds_give_equal_seals_wherever_they_lie(tmp_path):
    seals = []
    for name, seed in (("one", "5"), ("two", "5"), ("three", "6")):
        h = Hebe(tmp_path / name, tmp_path / (name + "-tmp"))
        done = h("--data-root", str(tmp_path / name), *SMOKE, "--seed", seed, "--json")
        seals.append(json.loads(done.stdout)["seal"])
    assert seals[0] == seals[1] != seals[2]


def test_the_record_has_its_six_files_read_only_and_nothing_is_left_over(hebe):
    hebe(*SMOKE)
    (run,) = hebe.runs()
    names = {p.name for p in run.iterdir()}
    assert names == {"plan.json", "environment.json", "windows.jsonl", "telemetry.parquet", "analysis.json", "manifest.json"}
    assert all(p.stat().st_mode & 0o222 == 0 for p in run.iterdir())
    assert not hebe.unsealed()
    assert [p.name for p in hebe.tmp.iterdir()] == []


def test_every_environment_fact_has_a_value_or_a_reason(sealed):
    facts = json.loads((sealed / "environment.json").read_text())["facts"]
    names = {f["name"] for f in facts}
    assert {"hebe.version", "toolchain.triton", "toolchain.ptxas", "host.kernel", "run.argv", "meter.primary"} <= names
    for fact in facts:
        assert ("value" in fact) != ("unavailable" in fact), fact
        assert fact["source"]


def test_the_record_does_not_say_where_it_lies(sealed):
    for file in sealed.iterdir():
        assert str(sealed.parents[4]).encode() not in file.read_bytes(), file.name


def test_telemetry_opens_in_pyarrow_and_duckdb_with_units(sealed):
    path = sealed / "telemetry.parquet"
    schema = pq.read_schema(path)
    assert schema.metadata[b"provenance"] == b"simulated"
    assert schema.field("power_w").metadata[b"unit"] == b"W"
    rows = duckdb.sql(f"select source, count(*), avg(power_w), sum(energy_raw_mj is null) from '{path}' group by source order by source").fetchall()
    assert [r[0] for r in rows] == ["sim.counter.total_energy", "sim.samples.total_power"]
    counter, samples = rows
    assert counter[2] is None and samples[2] > 100  # missing is null, not 0
    assert samples[1] == samples[3]


def test_windows_carry_raw_readings_estimates_and_gates(sealed):
    first, *windows = [json.loads(line) for line in (sealed / "windows.jsonl").read_text().splitlines()]
    assert first["schema"] == "hebe.run.acquisition/1"
    assert 0.015 < first["meter"]["sample_period_s"] < 0.025
    assert first["check"]["canaries"] == "intact"
    for w in windows:
        assert w["estimate"]["provenance"] == "simulated"
        assert w["estimate"]["energy_per_launch_j"] == pytest.approx(w["estimate"]["mean_power_w"] * w["estimate"]["latency_s"])
        assert w["end"]["energy_mj"] > w["begin"]["energy_mj"]
        assert w["idle_before_s"] < 0.005
        assert w["gates"]


def test_results_go_to_stdout_and_everything_else_to_stderr(hebe):
    done = hebe(*SMOKE)
    assert "A/A verdict: equivalent" in done.stdout and "seal:" in done.stdout and "record:" in done.stdout
    assert "s left" not in done.stdout and "s left" in done.stderr
    quiet = hebe(*SMOKE, "-q", "--seed", "3")
    assert quiet.stderr == ""


def test_dry_run_freezes_the_plan_and_records_nothing(hebe):
    code, out = hebe.json(*SMOKE, "--dry-run")
    assert code == 0 and out["plan"]["pairs"] == 6 and len(out["plan_id"]) == 64
    assert hebe.runs() == []
    done = hebe.json(*SMOKE)[1]
    assert done["analysis"]["plan_id"] == out["plan_id"]


def test_parameters_and_options_reach_the_kernel_and_the_plan(hebe):
    code, out = hebe.json(*SMOKE, "--set", "block=256", "--option", "num_warps=8", "--dry-run")
    launch = out["plan"]["subject"]["launch"]
    assert launch["num_warps"] == 8 and launch["grid"] == [256, 1, 1] and launch["parameters"]["block"] == 256


def test_auto_without_a_gpu_says_that_it_simulates(hebe):
    done = hebe("run-aa", *SMOKE[3:])
    if "no GPU here" not in done.stderr:
        pytest.skip("this machine has a GPU")
    assert done.returncode == 0 and "simulated, never measured" in done.stderr.replace("\n", " ")


def test_redact_hides_uuids(hebe):
    code, out = hebe.json(*SMOKE, "--redact")
    (run,) = hebe.runs()
    assert b"SIM-00000000" not in (run / "environment.json").read_bytes()
    assert hebe("run-verify", str(run)).returncode == 0
