"""The Slurm engine against a real Slurm, with a stub in hebe's place that writes down what it was started with."""

import json
import subprocess

import pytest
from conftest import MAX_ARRAY_SIZE, SUBMIT, eventually

# One line a start and one an end: arguments, then what Slurm says. It stays until `go` exists.
STUB = """#!/bin/bash
line="$* | array=${SLURM_ARRAY_TASK_ID-none} restart=${SLURM_RESTART_COUNT-0} python=${HEBE_PYTHON-} pwd=$PWD"
trap 'echo "term $line" >> "$0.log"; exit 130' TERM
echo "start $line" >> "$0.log"
echo "a word to the log"
while [ ! -e "$0.go" ]; do sleep 0.1; done
echo "end $line" >> "$0.log"
"""


class Engine:
    """Requests to the engine, and what its tasks wrote."""

    def __init__(self, cluster, work):
        self.cluster, self.root = cluster, work / "data root, 100% 'odd' \"name\""
        self.folder = self.root / "campaigns/c1/slurm"
        self.folder.mkdir(parents=True)
        # The folder is awkward, the name is not: slurmd with proctrack/linuxproc cannot end a process with a space in it.
        self.program = work / "it's the program" / "stub"
        self.program.parent.mkdir()
        self.program.write_text(STUB)
        self.program.chmod(0o755)
        self.go = self.program.with_name("stub.go")

    def submit(self, jobs, env=None, **options):
        asked = {"program": str(self.program), "data_root": str(self.root), "folder": str(self.folder), "campaign": "c1", "jobs": list(jobs), **options}
        done = self.cluster.call(SUBMIT, json.dumps(asked), check=False, env=env)
        return done.returncode, json.loads(done.stdout) if done.returncode == 0 else done.stderr

    def lines(self):
        log = self.program.with_name("stub.log")
        return log.read_text().splitlines() if log.exists() else []

    def jobs(self, word):
        """The job of each line that begins with `word`, in order."""
        return [int(line.split("--task ")[1].split()[0]) for line in self.lines() if line.startswith(word)]

    def until(self, word, count):
        assert eventually(lambda: sum(line.startswith(word) for line in self.lines()) >= count), (self.lines(), self.cluster.queued())

    def finish(self):
        self.go.touch()
        assert eventually(lambda: self.cluster.queued() == "", 120), self.cluster.queued()

    def states(self, *ids):
        return json.loads(self.cluster.call(SUBMIT, "states", *ids).stdout)


@pytest.fixture
def engine(cluster, work):
    if subprocess.run(["test", "-x", SUBMIT]).returncode:
        pytest.fail(f"{SUBMIT} is not built")
    return Engine(cluster, work)


def test_every_job_of_several_arrays_runs_exactly_once(engine):
    engine.go.touch()
    jobs = [i * 3 for i in range(2 * MAX_ARRAY_SIZE + 3)]
    code, out = engine.submit(jobs, device="GPU-1", environment={"HEBE_PYTHON": "/a b/'python'"})
    assert code == 0, out
    assert len(out["job_ids"]) == 3
    engine.finish()
    assert sorted(engine.jobs("start")) == jobs and sorted(engine.jobs("end")) == jobs
    line = engine.lines()[0]
    assert line.startswith(f"start --data-root {engine.root} campaign-work c1 --task ")
    assert f"--device GPU-1 | array=" in line and "python=/a b/'python'" in line and line.endswith(f"pwd={engine.root}")
    logs = sorted(engine.folder.glob("*.log"))
    assert len(logs) == len(jobs) and all(log.read_text() == "a word to the log\n" for log in logs)
    assert set(engine.states(*out["job_ids"]).values()) == {"COMPLETED"}


def test_a_study_is_one_task(engine):
    engine.go.touch()
    code, out = engine.submit(range(MAX_ARRAY_SIZE * 2), one_task=True, device="auto")
    assert code == 0, out
    engine.finish()
    assert [line.split(" | ")[0] for line in engine.lines()] == [f"{word} --data-root {engine.root} campaign-work c1 --device auto" for word in ("start", "end")]


def test_variables_of_the_one_who_submits_do_not_change_the_options(engine):
    engine.go.touch()
    code, out = engine.submit([4], env={"SBATCH_ARRAY_INX": "0-3", "SBATCH_NO_REQUEUE": "1", "SBATCH_EXPORT": "NONE", "SBATCH_OUTPUT": "/dev/null",
                                        "SBATCH_GRES": "gpu:9"})
    assert code == 0, out
    assert engine.cluster.field(out["job_ids"][0], "Requeue") == ["1"]
    engine.finish()
    assert engine.jobs("end") == [4]


def test_a_requeued_task_is_told_to_stop_and_runs_the_same_job_again(engine):
    code, out = engine.submit([8, 9])
    assert code == 0, out
    engine.until("start", 1)
    first = engine.jobs("start")[0]
    engine.cluster.call("scontrol", "requeue", f"{out['job_ids'][0]}_{[8, 9].index(first)}")
    engine.until("term", 1)
    engine.finish()
    assert engine.jobs("term") == [first]
    assert sorted(engine.jobs("end")) == [8, 9]
    assert any(line.startswith("end") and f"--task {first} " in line and "restart=1" in line for line in engine.lines())


def test_a_lost_node_runs_its_jobs_again(engine):
    code, out = engine.submit([0, 1, 2])
    assert code == 0, out
    engine.until("start", 1)
    assert engine.states(*out["job_ids"], "999999") == {out["job_ids"][0]: "RUNNING", "999999": "GONE"}
    engine.cluster.power_cut()
    engine.finish()
    assert sorted(engine.jobs("end")) == [0, 1, 2]
    assert len(engine.jobs("start")) == 4


def test_a_slurmd_killed_and_soon_back_loses_nothing(engine):
    code, out = engine.submit([0, 1])
    assert code == 0, out
    engine.until("start", 1)
    engine.cluster.kill_slurmd()
    engine.cluster.start_slurmd()
    engine.finish()
    assert sorted(engine.jobs("start")) == sorted(engine.jobs("end")) == [0, 1]


def test_a_cancelled_task_gets_time_to_stop(engine):
    code, out = engine.submit([5])
    assert code == 0, out
    engine.until("start", 1)
    engine.cluster.call("scancel", out["job_ids"][0])
    engine.until("term", 1)


def test_the_limit_of_parallel_tasks_makes_arrays_follow_each_other(engine):
    code, out = engine.submit(range(MAX_ARRAY_SIZE + 1), max_parallel=1)
    assert code == 0, out
    assert out["job_ids"][0] in engine.cluster.field(out["job_ids"][1], "Dependency")[0]
    engine.finish()
    assert sorted(engine.jobs("end")) == list(range(MAX_ARRAY_SIZE + 1))


def test_what_slurm_says_reaches_the_user(engine):
    for options, words in (({"partition": "nowhere"}, "nowhere"), ({"gres": "gpu:9"}, "not available"), ({"extra": ["--no-such-option"]}, "unrecognized option")):
        code, err = engine.submit([0], **options)
        assert code == 3 and "slurm_failed" in err and words in err, err
    assert engine.cluster.queued() == ""
