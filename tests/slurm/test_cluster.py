"""The test cluster itself: what Slurm does with arrays, requeues and lost nodes, before Hebe is blamed for it."""

from conftest import eventually

TASK = """#!/bin/bash
echo "start ${SLURM_ARRAY_TASK_ID-none} ${SLURM_RESTART_COUNT-0}" >> "$LOG"
while [ ! -e "$GO" ]; do sleep 0.1; done
echo "end ${SLURM_ARRAY_TASK_ID-none} ${SLURM_RESTART_COUNT-0}" >> "$LOG"
"""


class Task:
    def __init__(self, cluster, work, *options):
        self.log, self.go, script = work / "log", work / "go", work / "task.sh"
        script.write_text(TASK)
        self.cluster = cluster
        self.id = cluster.call("sbatch", "--parsable", "--requeue", "--gres=gpu:1", f"--output={work}/out", "--open-mode=append", *options, script,
                               env={"LOG": str(self.log), "GO": str(self.go)}).stdout.strip()

    def lines(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def saw(self, line):
        return eventually(lambda: line in self.lines()), self.lines(), self.cluster.queued()

    def finish(self):
        self.go.touch()
        assert eventually(lambda: self.cluster.queued() == ""), self.cluster.queued()
        return self.lines()


def test_an_array_runs_each_task_once(cluster, work):
    task = Task(cluster, work, "--array=0-4")
    assert sorted(task.finish()) == sorted(f"{word} {i} 0" for i in range(5) for word in ("start", "end"))


def test_a_requeued_task_knows_that_it_is_a_second_start(cluster, work):
    task = Task(cluster, work)
    assert task.saw("start none 0")[0], task.saw("start none 0")
    cluster.call("scontrol", "requeue", task.id)
    assert task.saw("start none 1")[0], task.lines()
    assert task.finish() == ["start none 0", "start none 1", "end none 1"]


def test_a_lost_node_requeues_its_task(cluster, work):
    task = Task(cluster, work)
    assert task.saw("start none 0")[0]
    cluster.power_cut()
    assert task.saw("start none 1")[0], task.lines()
    assert task.finish() == ["start none 0", "start none 1", "end none 1"]


def test_a_task_outlives_a_slurmd_that_is_soon_back(cluster, work):
    task = Task(cluster, work)
    assert task.saw("start none 0")[0]
    cluster.kill_slurmd()
    cluster.start_slurmd()
    assert task.finish() == ["start none 0", "end none 0"]


def test_a_slurmd_away_too_long_loses_its_task_which_then_runs_again(cluster, work):
    """Slurm takes the node for lost and requeues, while the first task still runs: two can overlap. Hebe's lease is for this."""
    task = Task(cluster, work)
    assert task.saw("start none 0")[0]
    cluster.kill_slurmd()
    assert eventually(lambda: cluster.field(task.id, "JobState") == ["PENDING"]), cluster.queued()
    cluster.start_slurmd()
    assert task.saw("start none 1")[0], task.lines()
    assert task.finish()[-1] == "end none 1"


def test_the_cluster_has_two_gpus_to_give(cluster, work):
    assert "gpu:2" in cluster.call("sinfo", "--noheader", "--format=%G").stdout
    refused = cluster.call("sbatch", "--gres=gpu:3", "--wrap=true", check=False)
    assert refused.returncode != 0
