"""How long a real question over >= 10 million telemetry rows of a dataset takes.

In: a dataset, or a run to repeat into a synthetic one. Out: times on stdout; exit code 1 when the best of the repeats is
over the limit. The dataset is read in place: Parquet files and their Hive-style folders, with no Hebe.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import time

import duckdb

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIMIT_S = 2.0
ROWS = 10_000_000

#: Mean power and number of samples of every window of every run, and of the time between windows; those of a window
#: joined with its own estimate.
QUESTION = """
    WITH seen AS (
        SELECT run_id, "window", avg(power_w) AS mean_power_w, count(power_w) AS samples
        FROM read_parquet('{dataset}/telemetry/**/*.parquet', hive_partitioning = true)
        GROUP BY run_id, "window")
    SELECT count(w.power_w) AS windows, sum(seen.samples) AS samples, avg(seen.mean_power_w) AS mean_power_w,
           max(abs(seen.mean_power_w / w.power_w - 1)) AS largest_difference_ratio
    FROM seen LEFT JOIN read_parquet('{dataset}/windows/**/*.parquet', hive_partitioning = true) AS w USING (run_id, "window")
"""


def build(generator: pathlib.Path, run: pathlib.Path, data_root: pathlib.Path) -> pathlib.Path:
    done = subprocess.run([generator, run, data_root, "--rows", str(ROWS)], stdout=subprocess.PIPE, text=True, check=True)
    return pathlib.Path(done.stdout.strip())


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--dataset", type=pathlib.Path, help="ask this dataset")
    options.add_argument("--run", type=pathlib.Path, help="repeat this sealed run into a synthetic dataset")
    options.add_argument("--data-root", type=pathlib.Path, help="where the synthetic dataset goes")
    options.add_argument("--generator", type=pathlib.Path, default=ROOT / "build/release/bench/hebe_dataset_scale")
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--repeats", type=int, default=3)
    asked = options.parse_args()
    if not asked.dataset and not (asked.run and asked.data_root):
        options.error("give --dataset, or --run and --data-root")

    dataset = asked.dataset or build(asked.generator, asked.run, asked.data_root)
    manifest = json.loads((dataset / "manifest.json").read_text())
    rows = manifest["tables"]["telemetry"]["rows"]
    print(f"dataset    {dataset.name}\nsynthetic  {manifest['synthetic']}")
    print(f"rows       {rows} telemetry, {manifest['tables']['windows']['rows']} windows, {len(manifest['runs'])} runs")
    times = []
    for _ in range(asked.repeats):
        connection = duckdb.connect(config={"threads": asked.threads})  # nothing is cached between repeats but the files
        begin = time.perf_counter()
        answer = connection.sql(QUESTION.format(dataset=dataset)).fetchone()
        times.append(time.perf_counter() - begin)
    print("answer     windows {}, samples {}, mean power {:.3f} W, largest difference from the windows' own {:.2%}".format(*answer))
    print(f"time       {', '.join(f'{t:.2f}' for t in times)} s on {asked.threads} threads; limit {LIMIT_S} s for {ROWS} rows")
    if rows < ROWS:
        print(f"too small  the limit is for at least {ROWS} rows")
        return 1
    return 0 if min(times) <= LIMIT_S else 1


if __name__ == "__main__":
    sys.exit(main())
