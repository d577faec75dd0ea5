"""catalog-rebuild: an index made from the directories alone, whatever lies there, whoever else is at work."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import threading
import time

import pytest
from conftest import BINARY, SMOKE
from test_refusals import can_mount


@pytest.fixture
def root_with_run(hebe, sealed):
    """The data root of `hebe`, with a copy of one sealed run."""
    day = sealed.parent.relative_to(sealed.parents[4])
    run = hebe.root / day / sealed.name
    run.parent.mkdir(parents=True)
    shutil.copytree(sealed, run)
    return run


def query(hebe, sql):
    with sqlite3.connect(f"file:{hebe.root / 'catalog.sqlite'}?mode=ro", uri=True) as db:
        return db.execute(sql).fetchall()


def left_over(hebe):
    return sorted(p.name for p in hebe.root.glob("catalog.sqlite?*"))


def test_an_empty_root_gets_an_empty_catalog_and_an_absent_one_is_not_made(hebe):
    done = hebe("catalog-rebuild")
    assert done.returncode == 2 and "no such data root" in done.stderr and not hebe.root.exists()
    hebe("data-init")
    code, out = hebe.json("catalog-rebuild")
    assert code == 0 and (out["runs"], out["problems"]) == (0, [])
    assert query(hebe, "SELECT version FROM meta") == [(1,)] and query(hebe, "SELECT * FROM runs") == []


def test_a_run_is_in_the_catalog_as_soon_as_it_is_sealed(hebe):
    code, out = hebe.json(*SMOKE)
    assert code == 0
    columns = "run_id, seal, case_name, verdict, qualified, energy_effect_percent, device_uuid, campaign"
    added = query(hebe, f"SELECT {columns} FROM runs")
    assert added == [(out["run_id"], out["seal"], "vector_add", out["analysis"]["verdict"], 0,
                      out["analysis"]["energy"]["effect_percent"], "SIM-00000000-0000-0000-0000-000000000001", None)]
    everything = query(hebe, "SELECT * FROM runs")
    assert hebe("catalog-rebuild").returncode == 0
    assert query(hebe, "SELECT * FROM runs") == everything
    assert left_over(hebe) == []


def test_the_documented_query_works(hebe, root_with_run):
    assert hebe("catalog-rebuild").returncode == 0
    text = (__import__("pathlib").Path(__file__).parents[2] / "docs/formats.md").read_text()
    (sql,) = [line.split('"')[1] for line in text.splitlines() if line.startswith("    sqlite3 ")]
    assert len(query(hebe, sql)) == 1


def test_what_does_not_belong_is_listed_and_not_fatal(hebe, root_with_run):
    day = root_with_run.parent
    (day / "notes.txt").write_text("mine")
    (day / ".unsealed-20260101T000000Z-aa-0123456789abcdef-99").mkdir()
    (day / ".captured-20260101T000000Z-aa-0123456789abcdef").mkdir()
    (hebe.root / "runs/elsewhere").symlink_to("/")
    linked = day / (root_with_run.name[:-1] + ("0" if root_with_run.name[-1] != "0" else "1"))
    linked.symlink_to(root_with_run)
    os.close(os.open(bytes(day) + b"/\xff\n", os.O_CREAT))
    done = hebe("catalog-rebuild")
    assert done.returncode == 0, done.stderr
    assert "1 runs" in done.stdout.splitlines()[-1] and "6 problems" in done.stdout
    code, out = hebe.json("catalog-rebuild")
    assert code == 0 and sorted(p["kind"] for p in out["problems"]) == [
        "foreign", "foreign", "half_written", "not_compacted", "symbolic_link", "symbolic_link"]
    assert any(p["path"].endswith("\\xff\\x0a") for p in out["problems"])


@pytest.mark.parametrize("make", ["other version", "no database", "empty"])
def test_another_catalog_is_replaced_by_a_rebuild_and_does_not_stop_a_run(hebe, make):
    hebe("data-init")
    file = hebe.root / "catalog.sqlite"
    if make == "other version":
        with sqlite3.connect(file) as db:
            db.execute("CREATE TABLE meta (version)")
            db.execute("INSERT INTO meta VALUES (7)")
    else:
        file.write_bytes(b"x" * 9000 if make == "no database" else b"")
    before = file.read_bytes()
    done = hebe(*SMOKE)
    assert done.returncode == 0 and "required a Hebe catalog of version 1, found" in done.stderr
    assert "hebe catalog-rebuild" in done.stderr and file.read_bytes() == before
    assert hebe.json("catalog-rebuild")[1]["runs"] == 1
    assert query(hebe, "SELECT count(*) FROM runs") == [(1,)]


def test_no_run_is_missed_while_the_catalog_is_made_again_and_again(hebe):
    hebe("data-init")
    stop, failures = threading.Event(), []

    def rebuild():
        while not stop.is_set():
            done = hebe("catalog-rebuild")
            if done.returncode != 0:
                failures.append(done.stderr)

    threads = [threading.Thread(target=rebuild) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        for seed in range(4):
            done = hebe(*SMOKE, "--seed", str(seed))
            assert done.returncode == 0 and "catalog" not in done.stderr, done.stderr
            names = {name for (name,) in query(hebe, "SELECT run_id FROM runs")}
            assert names == {run.name for run in hebe.runs()}
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert failures == [] and left_over(hebe) == []
    assert query(hebe, "SELECT count(*) FROM runs") == [(4,)] and query(hebe, "SELECT * FROM problems") == []


def test_killed_in_the_middle_the_old_catalog_stands_and_the_next_rebuild_clears_up(hebe, root_with_run):
    assert hebe("catalog-rebuild").returncode == 0
    for i in range(150):  # enough that a rebuild takes a while
        shutil.copytree(root_with_run, root_with_run.parent / f"20260101T{i:06}Z-aa-0123456789abcdef")
    killed = 0
    for attempt in range(60):
        run = hebe.start("catalog-rebuild")
        end = time.monotonic() + 10
        while not left_over(hebe) and run.poll() is None and time.monotonic() < end:
            pass
        time.sleep(0.001 * (attempt % 12))
        run.send_signal(signal.SIGKILL)
        run.communicate()
        killed += run.returncode == -signal.SIGKILL and bool(left_over(hebe))
        assert query(hebe, "SELECT run_id FROM runs") == [(root_with_run.name,)]
        if killed >= 5:
            break
    assert killed >= 1
    assert hebe("catalog-rebuild").returncode == 0 and left_over(hebe) == []


def in_mount(hebe, options, prepare, *arguments):
    """Runs hebe with its root on a small file system of its own; `prepare` is shell, run in the root before."""
    script = f'ROOT="$1"; B="$2"; shift 2; mkdir -p "$ROOT"; mount -t tmpfs -o {options} tmpfs "$ROOT"; cd "$ROOT"; {prepare}'
    return subprocess.run(["unshare", "-m", "bash", "-ec", script, "sh", str(hebe.root), BINARY, *arguments],
                          capture_output=True, text=True, env=hebe.env, timeout=300)


@pytest.mark.skipif(not can_mount(), reason="needs root and mount namespaces")
def test_a_full_disk_leaves_the_old_catalog(hebe, sealed):
    day = sealed.parent.relative_to(sealed.parents[4])
    prepare = (f'mkdir -p {day}; cp -r {sealed} {day}; "$B" catalog-rebuild; sha256sum catalog.sqlite >&2; '
               f'mkdir -p {day}/x; for i in $(seq 400); do mkdir {day}/x-$i; done; dd if=/dev/zero of=fill 2>/dev/null || true; '
               'set +e; "$B" catalog-rebuild; echo "code $?"; sha256sum catalog.sqlite >&2; ls -a')
    done = in_mount(hebe, "size=1m", prepare)
    assert "code 3" in done.stdout and "no_space" in done.stderr, done.stderr
    sums = [line for line in done.stderr.splitlines() if line.endswith(" catalog.sqlite")]
    assert len(sums) == 2 and sums[0] == sums[1]
    assert ".tmp" not in done.stdout


@pytest.mark.skipif(not can_mount(), reason="needs root and mount namespaces")
def test_a_read_only_root_refuses_and_says_so(hebe):
    done = in_mount(hebe, "size=1m", 'mount -o remount,ro "$ROOT"; exec "$B" "$@"', "catalog-rebuild", "--json")
    assert done.returncode == 3, done.stderr
    refusal = json.loads(done.stdout)["refused"]
    assert refusal["code"] == "no_permission" and refusal["not_written"].endswith("catalog.sqlite")


def test_all_runs_are_verified_in_a_line_each(hebe, root_with_run):
    bad = root_with_run.parent / "20260101T000000Z-aa-0123456789abcdef"
    shutil.copytree(root_with_run, bad)
    done = hebe("run-verify", "--all")
    assert done.returncode == 5
    lines = done.stdout.splitlines()
    assert lines[0].startswith("BAD  " + bad.name) and "manifest.json" in lines[1]
    assert lines[2].startswith("ok   " + root_with_run.name) and lines[-1] == "1 of 2 runs verified, 1 bad"
    code, out = hebe.json("run-verify", "--all")
    assert code == 5 and (out["verified"], out["bad"]) == (1, 1) and [r["valid"] for r in out["runs"]] == [False, True]
    shutil.rmtree(bad)
    assert hebe("run-verify", "--all").returncode == 0
    code, out = hebe.json("run-verify", str(root_with_run), root_with_run.name)
    assert code == 0 and out["verified"] == 2
    assert hebe("run-verify", "--all", "x").returncode == 2
    shutil.rmtree(hebe.root / "runs")
    assert hebe("run-verify", "--all").returncode == 2
