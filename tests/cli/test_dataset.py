"""Datasets and analyses as a user meets them: frozen by a command, read in place with DuckDB and pyarrow, verified."""

import hashlib
import json
import pathlib
import shutil

import duckdb
import pyarrow.dataset
import pyarrow.parquet
import pytest
from conftest import SMOKE, Hebe

PARTITION = "provenance=simulated/kind=aa/part-00000.parquet"


@pytest.fixture(scope="module")
def frozen(tmp_path_factory):
    """A data root with two runs and their dataset, to be copied, never changed."""
    base = tmp_path_factory.mktemp("frozen")
    h = Hebe(base / "root", base / "tmp")
    for seed in ("1", "2"):
        code, out = h.json(*SMOKE, "--seed", seed)
        assert code in (0, 4), out
    code, out = h.json("dataset-snapshot", "--all")
    assert code == 0 and not out["existed"], out
    return h, h.root / "datasets" / out["id"]


def table(dataset, name):
    return f"read_parquet('{dataset}/{name}/**/*.parquet', hive_partitioning=true)"


def windows_of(run):
    return [json.loads(line) for line in (run / "windows.jsonl").read_text().splitlines()[1:]]


def test_windows_read_with_duckdb_are_those_of_windows_jsonl(frozen):
    h, dataset = frozen
    columns = ["run_id", "provenance", "kind", '"window"', "pair", "arm", "accepted", "energy_per_launch_j", "latency_s", "power_w",
               "coverage_ratio", "max_gap_s", "begin_temperature_c", "end_sm_clock_mhz", "failed_gates", "begin_ns"]
    found = duckdb.sql(f'SELECT {", ".join(columns)} FROM {table(dataset, "windows")} ORDER BY run_id, "window"').fetchall()
    expected = []
    for run in h.runs():
        for w in windows_of(run):
            e = w["estimate"]
            expected.append((run.name, "simulated", "aa", w["index"], w["pair"], w["arm"], w["pair_accepted"], e["energy_per_launch_j"],
                             e["latency_s"], e["mean_power_w"], e["coverage_ratio"], e["max_gap_s"], w["begin"]["temperature_c"],
                             w["end"]["sm_clock_mhz"], ",".join(g["name"] for g in w["gates"] if not g["passed"]), int(w["begin_ns"])))
    assert found == expected


def test_runs_read_with_pyarrow_are_those_of_analysis_json(frozen):
    h, dataset = frozen
    rows = pyarrow.dataset.dataset(dataset / "runs", partitioning="hive").to_table().to_pylist()
    assert [r["run_id"] for r in rows] == [run.name for run in h.runs()]
    for row, run in zip(rows, h.runs()):
        analysis = json.loads((run / "analysis.json").read_text())
        shown = analysis["energy"]["interval_" + analysis["energy"]["interval_shown"]]
        assert row["energy_effect_percent"] == analysis["energy"]["effect_percent"]
        assert (row["energy_low_percent"], row["energy_high_percent"]) == (shown["low_percent"], shown["high_percent"])
        assert row["energy_per_launch_b_j"] == analysis["arms"]["B"]["energy_per_launch_j"]
        assert (row["verdict"], row["qualified"]) == (analysis["verdict"], analysis["qualified"])
        assert row["seal"] == hashlib.sha256((run / "manifest.json").read_bytes()).hexdigest()
        assert (row["provenance"], row["kind"], row["campaign"]) == ("simulated", "aa", None)


def test_telemetry_of_all_runs_is_that_of_the_runs(frozen):
    h, dataset = frozen
    for run in h.runs():
        own = pyarrow.parquet.read_table(run / "telemetry.parquet")
        here = pyarrow.dataset.dataset(dataset / "telemetry", partitioning="hive").to_table(
            filter=pyarrow.dataset.field("run_id") == run.name)
        assert here.select(own.column_names).equals(own.replace_schema_metadata(here.schema.metadata), check_metadata=False)
    power, = duckdb.sql(f'SELECT avg(power_w) FROM {table(dataset, "telemetry")} WHERE "window" = 0').fetchone()
    assert 0 < power < 1000


def test_mechanism_is_what_the_compiler_and_the_case_say(frozen):
    h, dataset = frozen
    rows = duckdb.sql(f"SELECT arm, cubin_sha256, num_warps, shared_bytes, grid_x, bytes_read, operations, registers "
                      f"FROM {table(dataset, 'mechanism')} ORDER BY run_id, arm").fetchall()
    assert len(rows) == 4
    plan = json.loads((h.runs()[0] / "plan.json").read_text())
    launch = plan["subject"]["launch"]
    assert rows[0][:6] == ("A", plan["arms"]["A"]["cubin_sha256"], launch["num_warps"], launch["shared_bytes"], launch["grid"][0],
                           launch["work"]["bytes_read"])
    assert json.loads(rows[0][6]) == launch["work"]["operations"]


def test_units_are_in_the_files_and_in_the_manifest(frozen):
    _, dataset = frozen
    field = pyarrow.parquet.read_schema(dataset / "windows" / PARTITION).field("energy_per_launch_j")
    assert field.metadata[b"unit"] == b"J" and field.metadata[b"description"]
    manifest = json.loads((dataset / "manifest.json").read_text())
    (column,) = [c for c in manifest["tables"]["windows"]["columns"] if c["name"] == "energy_per_launch_j"]
    assert column["unit"] == "J" and column["type"] == "double"


def test_features_of_qualified_arms_are_columns_and_null_for_others(frozen):
    _, dataset = frozen
    manifest = json.loads((dataset / "manifest.json").read_text())
    assert manifest["layout"] == 2
    rows = pyarrow.dataset.dataset(dataset / "mechanism", partitioning="hive").to_table()
    types = {"qualification_record": "string", "point": "string", "variant": "string", "loads_sass": "int64", "stores_ttgir": "int64",
             "occupancy_ratio": "double", "loaded_bytes": "int64", "counted_at": "string", "counted_programs": "int64"}
    for name, kind in types.items():
        assert str(rows.schema.field(name).type) == kind, name
        assert rows.column(name).null_count == rows.num_rows == 4, name
    assert rows.schema.field("loaded_bytes").metadata[b"unit"] == b"By"


def test_a_dataset_from_before_layouts_verifies_and_is_read(tmp_path):
    h = Hebe(tmp_path / "root", tmp_path / "tmp")
    shutil.copytree(pathlib.Path(__file__).parents[1] / "data/datasets/layout-1", h.root)
    (dataset,) = (h.root / "datasets").iterdir()
    code, out = h.json("dataset-verify", dataset.name)
    assert code == 0 and "rows: those of 1 of 1 runs recomputed" in out["passed"], out
    assert "loads_sass" not in pyarrow.dataset.dataset(dataset / "mechanism", partitioning="hive").schema.names


def test_taking_it_again_says_that_it_exists(frozen):
    h, dataset = frozen
    code, out = h.json("dataset-snapshot", "--all")
    assert code == 0 and out["existed"] and out["id"] == dataset.name
    again = h("dataset-snapshot", *[run.name for run in h.runs()])
    assert again.returncode == 0 and "exists already" in again.stdout and dataset.name in again.stdout


def test_which_runs_has_to_be_said(frozen):
    h, _ = frozen
    done = h("dataset-snapshot")
    assert done.returncode == 2 and "--campaign" in done.stderr and "--all" in done.stderr
    assert h("dataset-snapshot", "--all", h.runs()[0].name).returncode == 2
    assert h("dataset-snapshot", "--campaign", "unheard-of").returncode == 2
    assert h("dataset-snapshot", "no-such-run").returncode == 2


def test_a_dry_run_says_what_would_go_in_and_writes_nothing(frozen, tmp_path):
    h, _ = frozen
    other = Hebe(tmp_path / "root", tmp_path / "tmp")
    shutil.copytree(h.root / "runs", other.root / "runs")
    code, out = other.json("dataset-snapshot", "--all", "--dry-run")
    assert code == 0 and [r["run_id"] for r in out["runs"]] == [run.name for run in h.runs()]
    assert not (other.root / "datasets").exists()


@pytest.fixture
def copied(frozen, tmp_path):
    h, dataset = frozen
    other = Hebe(tmp_path / "root", tmp_path / "tmp")
    shutil.copytree(h.root, other.root, ignore=shutil.ignore_patterns("cache", "leases"))
    for file in other.root.rglob("*"):
        file.chmod(0o755 if file.is_dir() else 0o644)
    return other, other.root / "datasets" / dataset.name


def test_a_run_that_does_not_verify_is_refused_by_name(copied):
    h, dataset = copied
    shutil.rmtree(dataset)
    bad = h.runs()[1]
    (bad / "analysis.json").write_bytes((bad / "analysis.json").read_bytes().replace(b"equivalent", b"lower", 1))
    done = h("dataset-snapshot", "--all")
    assert done.returncode == 5 and bad.name in done.stderr
    assert not list((h.root / "datasets").iterdir())


def test_verify_says_what_holds_and_what_could_not_be_checked(copied):
    h, dataset = copied
    code, out = h.json("dataset-verify")
    assert code == 0 and out["valid"] and out["not_checked"] == []
    shutil.rmtree(h.runs()[0])
    code, out = h.json("dataset-verify", dataset.name)
    assert code == 0 and len(out["not_checked"]) == 1
    assert h("dataset-verify", str(dataset)).stdout.strip().endswith("verified")


@pytest.mark.parametrize("name", ["runs", "windows", "telemetry", "mechanism"])
def test_a_flipped_bit_is_named(copied, name):
    h, dataset = copied
    file = dataset / name / PARTITION
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    code, out = h.json("dataset-verify")
    assert code == 5 and [p["where"] for p in out["problems"]] == [str(file)]
    assert h("dataset-snapshot", "--all").returncode == 5  # what lies under the name is not it


def test_there_is_nothing_to_verify_in_an_empty_root(hebe):
    assert hebe("dataset-verify").returncode == 2
    assert hebe("analysis-verify").returncode == 2
    assert hebe("analysis-verify", "--all").returncode == 2
    assert hebe("dataset-snapshot", "--all").returncode == 2


def test_a_stored_analysis_is_verified_by_name(copied):
    h, _ = copied
    folder = h.root / "analyses" / ("analysis_sha256_" + "0" * 64)
    folder.mkdir(parents=True)
    (folder / "analysis.json").write_text("{}\n")
    code, out = h.json("analysis-verify", "--all")
    assert code == 5 and not out["valid"]
    assert out["analyses"][0]["problems"][0]["where"] == str(folder / "analysis.json")
