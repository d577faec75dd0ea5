"""How long `hebe queue-status` takes on a data root of many runs, and how fast a journal is read and appended to.

    .venv/bin/python bench/queue_status.py [--jobs 10000] [--folder DIR]

Plans a campaign of that many simulated jobs with hebe itself, gives it a journal in which all but two are sealed (made here,
line by line as hebe writes them, links included, so that hebe checks them), lets hebe_catalog_scale make as many sealed runs,
and times. Demands: queue-status at most 0.2 s (best of 5), and its memory at most 256 MiB.
"""

import argparse
import hashlib
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import rfc8785

ROOT = pathlib.Path(__file__).resolve().parents[1]
HEBE = ROOT / "build/release/hebe"
SPEC = """schema = "hebe.campaign.spec/1"
name = "many"
seed = 1
[defaults]
tier = "smoke-v1"
pairs = 2
parameters = {{ n = 4096 }}
[[jobs]]
id = "job"
replicates = {jobs}
"""


def journal(campaign, path, sealed):
    link, n, lines = "", 0, []
    now = int(time.time() * 1e6)

    def add(**event):
        nonlocal link, n
        event |= {"schema": "hebe.campaign.event/1", "n": n, "at_us": now}
        link = hashlib.sha256(link.encode() + b"\n" + rfc8785.dumps(event)).hexdigest()[:32]
        lines.append(rfc8785.dumps(event | {"link": link}))
        n += 1

    add(event="submitted", engine="local", pending=len(campaign["jobs"]), argv=["bench"])
    for job in campaign["jobs"][:sealed]:
        add(event="started", job=job["id"])
        add(event="sealed", job=job["id"], run="runs/2026/01/01/20260101T000000Z-aa-" + job["plan_id"][:16],
            seal=job["plan_id"], verdict="equivalent", exit=0)
    path.write_bytes(b"\n".join(lines) + b"\n")
    return n


def best_of(count, argv, env):
    best, peak = 1e9, 0
    for _ in range(count):
        begin = time.perf_counter()
        pid = os.posix_spawn(argv[0], argv, env, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
        _, status, usage = os.wait4(pid, 0)
        best, peak = min(best, time.perf_counter() - begin), max(peak, usage.ru_maxrss)
        assert status == 0
    return best, peak / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--folder", type=pathlib.Path, default=None)
    args = parser.parse_args()
    folder = args.folder or pathlib.Path(tempfile.mkdtemp(prefix="hebe-queue-"))
    folder.mkdir(exist_ok=True)
    root = folder / "root"
    env = dict(os.environ, HEBE_DATA_ROOT=str(root))
    run = lambda *argv: subprocess.run([str(HEBE), *argv, "--json"], env=env, check=True, capture_output=True, text=True).stdout
    (folder / "many.toml").write_text(SPEC.format(jobs=args.jobs))
    begin = time.perf_counter()
    campaign = json.loads(run("campaign-plan", str(folder / "many.toml"), "--device", "sim"))
    print(f"campaign-plan of {args.jobs} jobs: {time.perf_counter() - begin:.2f} s, "
          f"{resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.0f} MiB in its largest process")
    events = journal(campaign, pathlib.Path(campaign["directory"]) / "state.jsonl", args.jobs - 2)
    subprocess.run([str(ROOT / "build/release/bench/hebe_catalog_scale"), "--generate", str(root), "--runs", str(args.jobs)],
                   check=True, stdout=subprocess.DEVNULL)
    argv = [str(HEBE), "queue-status", "--json"]
    seconds, mebibytes = best_of(5, argv, env)
    print(f"queue-status, {args.jobs} runs and a journal of {events} events: {seconds:.3f} s, {mebibytes:.0f} MiB")
    one, _ = best_of(5, argv[:2] + [campaign["campaign"]], env)
    print(f"queue-status of that campaign alone: {one:.3f} s")
    return 0 if seconds <= 0.2 and mebibytes <= 256 else 1


if __name__ == "__main__":
    sys.exit(main())
