"""A campaign killed with SIGKILL at every named step ends with the runs it would have had: none lost, none twice.

The program under test is hebe with a listener at its crash points (crash_listener.cpp); everything else is the same code.
"""

import collections
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess

import pytest

BINARY = os.environ["HEBE_CRASH_BINARY"]
SPEC = """
schema = "hebe.campaign.spec/1"
name = "crash"
session = "%s"
seed = 11
[defaults]
tier = "smoke-v1"
pairs = 2
parameters = { n = 4096 }
[[jobs]]
id = "a"
replicates = 3
"""


class Place:
    """A data root, and the log of the crash points that were passed in it."""

    def __init__(self, folder):
        self.root, self.log = folder / "root", folder / "log"
        folder.mkdir(exist_ok=True)
        self.folder = folder

    def __call__(self, *arguments, at=None, check=None):
        env = dict(os.environ, HEBE_DATA_ROOT=str(self.root), TMPDIR=str(self.folder), HEBE_CRASH_LOG=str(self.log))
        self.log.unlink(missing_ok=True)
        if at:
            env["HEBE_CRASH_AT"] = at
        done = subprocess.run([BINARY, *arguments, "--quiet"], capture_output=True, text=True, env=env, timeout=120)
        if check is not None:
            assert done.returncode == check, (arguments, at, done.returncode, done.stdout, done.stderr)
        return done

    def points(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def runs(self):
        return sorted(p for p in self.root.glob("runs/*/*/*/*") if not p.name.startswith("."))

    def seals(self):
        return sorted(p.name.rsplit("-", 1)[1] for p in self.runs())

    def waiting(self):
        return sorted(self.root.glob("runs/*/*/*/.captured-*"))


def copy_of(template, folder):
    place = Place(folder)
    shutil.copytree(template.root, place.root)
    return place


@pytest.fixture(scope="module", params=["free", "study"])
def planned(request, tmp_path_factory):
    """A frozen campaign that nobody has begun."""
    place = Place(tmp_path_factory.mktemp("planned"))
    (place.folder / "spec.toml").write_text(SPEC % request.param)
    place("campaign-plan", str(place.folder / "spec.toml"), "--device", "sim", check=0)
    place.plan_points = place.points()
    return place


@pytest.fixture(scope="module")
def whole(planned, tmp_path_factory):
    """The same, measured without interruption; .passed are the crash points in order."""
    place = copy_of(planned, tmp_path_factory.mktemp("whole"))
    place("campaign-submit", "crash", "--device", "sim", check=0)
    place.passed = place.points()
    assert len(place.seals()) == 3
    return place


def numbered(points):
    seen = collections.Counter()
    for name in points:
        seen[name] += 1
        yield f"{name}#{seen[name]}"


def assert_whole(place, whole, told):
    assert place.seals() == whole.seals(), told
    assert place.waiting() == [], told
    done = place("run-verify", "--all", check=0)
    assert "3 of 3 runs verified" in done.stdout, told
    queue = json.loads(place("queue-status", "--json", check=0).stdout)["campaigns"][0]
    assert (queue["sealed"], queue["running"], queue["died"]) == (3, [], []), told
    place("analysis-verify", queue["analysis"], check=0)  # its id differs: it names the runs, and they their time
    report = json.loads(place("catalog-rebuild", "--json", check=0).stdout)
    assert report["runs"] == 3, (told, report)


def killed_somewhere(done, at):
    """The process itself, or the one that it had seal."""
    assert done.returncode == -signal.SIGKILL or (done.returncode != 0 and "137" in done.stderr), (at, done.returncode, done.stderr)


def test_killed_while_planning_there_is_no_campaign_or_the_whole_one(planned, tmp_path):
    for number, at in enumerate(numbered(planned.plan_points)):
        place = Place(tmp_path / str(number))
        spec = str(planned.folder / "spec.toml")
        killed_somewhere(place("campaign-plan", spec, "--device", "sim", at=at), at)
        queue = json.loads(place("queue-status", "--json", check=0).stdout)
        assert all(c["problem"] is None for c in queue["campaigns"]), at
        again = json.loads(place("campaign-plan", spec, "--device", "sim", "--json", check=0).stdout)
        assert (place.root / "campaigns" / again["campaign"]).is_dir()
        assert again["campaign"] == next(planned.root.glob("campaigns/crash-*")).name, at
    assert number >= 5


def test_killed_at_every_step_and_resumed_nothing_is_lost_and_nothing_is_twice(planned, whole, tmp_path):
    names = {p.split(":")[0] for p in whole.passed}
    assert {"submit", "run", "journal", "capture", "ingest", "seal", "finish", "resume"} <= names
    kills = 0
    for number, at in enumerate(numbered(whole.passed)):
        place = copy_of(planned, tmp_path / str(number))
        killed_somewhere(place("campaign-submit", "crash", "--device", "sim", at=at), at)
        kills += 1
        place("resume", "crash", "--device", "sim", check=0)
        assert_whole(place, whole, at)
        shutil.rmtree(place.root)
    print(f"{kills} kills")
    assert kills >= 100


LEFT_BY_THE_FIRST = ["run: captured", "ingest: compact", "seal: rename", "seal: sync the day's folder",
                     "ingest: remove the raw samples", "run: sealed"]
IN_THE_RESUME = ["resume: reconcile", "resume: seal what was captured", "ingest: compact", "seal: rename",
                 "ingest: remove the raw samples", "resume: write down what was sealed", "journal: write", "journal: written"]


def test_killed_again_while_it_resumes_it_still_ends_whole(planned, whole, tmp_path):
    kills, met = 0, set()
    for first in LEFT_BY_THE_FIRST:
        for second in IN_THE_RESUME:
            place = copy_of(planned, tmp_path / f"{LEFT_BY_THE_FIRST.index(first)}-{IN_THE_RESUME.index(second)}")
            killed_somewhere(place("campaign-submit", "crash", "--device", "sim", at=first + "#1"), first)
            done = place("resume", "crash", "--device", "sim", at=second + "#1")
            kills += 1
            if second in place.points():
                killed_somewhere(done, second)
                kills += 1
                met.add(second)
            place("resume", "crash", "--device", "sim", check=0)
            assert_whole(place, whole, (first, second))
            shutil.rmtree(place.root)
    print(f"{kills} kills")
    assert met == set(IN_THE_RESUME)


def test_killed_at_random_again_and_again_it_still_ends_whole(planned, whole, tmp_path):
    points, kills = sorted(set(whole.passed)), 0
    for chain in range(3):
        generator = random.Random(chain)
        place = copy_of(planned, tmp_path / str(chain))
        place("campaign-submit", "crash", "--device", "sim", at=generator.choice(points) + "#1")
        for _ in range(20):
            at = generator.choice(points)
            done = place("resume", "crash", "--device", "sim", at=at + "#1")
            if at in place.points():
                killed_somewhere(done, at)
                kills += 1
        place("resume", "crash", "--device", "sim", check=0)
        assert_whole(place, whole, chain)
    print(f"{kills} kills")
    assert kills >= 10


def test_a_single_run_that_was_killed_is_not_there_or_whole_or_waits_to_be_sealed(tmp_path):
    run = ["run-aa", "--device", "sim", "--protocol-tier", "smoke-v1", "--pairs", "6", "--set", "n=4096"]
    reference = Place(tmp_path / "reference")
    reference(*run, check=0)
    ends = collections.Counter()
    for number, at in enumerate(numbered(reference.points())):
        place = Place(tmp_path / str(number))
        shutil.copytree(reference.root / "cache", place.root / "cache")
        killed_somewhere(place(*run, at=at), at)
        ends["sealed" if place.runs() else "waiting" if place.waiting() else "none"] += 1
        place("ingest", check=0)
        if place.runs():
            assert place.seals() == reference.seals(), at
            place("run-verify", "--all", check=0)
        assert place.waiting() == [], at
        shutil.rmtree(place.root)
    print(dict(ends))
    assert ends["sealed"] and ends["waiting"] and ends["none"]


CASES = pathlib.Path(__file__).parents[1] / "data/qualify/row_kernels.py"


@pytest.fixture(scope="module")
def measured_study(tmp_path_factory):
    """A study whose jobs are all sealed and that died before it was analysed; and its specification."""
    place = Place(tmp_path_factory.mktemp("study"))
    kernels, study = place.folder / "kernels.json", place.folder / "study.json"
    kernels.write_text(json.dumps({
        "schema": "hebe.qualification.spec/1", "name": "rows", "subject": {"case": f"{CASES}:case"}, "points": [{"name": "here"}],
        "candidates": [{"name": "once", "passes": ["inline-single-trip-loops", {"pass": "reuse-loads", "arguments": ["x_ptr"]}, "remove-dead"]}],
        "contrasts": [{"a": "baseline", "b": "once"}]}))
    study.write_text(json.dumps({
        "schema": "hebe.study.spec/1", "name": "rows-study", "qualification": "rows", "tier": "smoke-v1", "seed": 1,
        "contrasts": [{"point": "here", "a": "baseline", "b": "once"}], "control": {"parameters": {"n": 65536}}}))
    place.qualification = json.loads(place("qualify", str(kernels), "--device", "sim", "--json", check=0).stdout)["id"]
    place.command = ["study", str(study), "--qualification", place.qualification, "--device", "sim"]
    killed_somewhere(place(*place.command, at="finish: store a point analysis#1"), "finish")
    assert len(place.runs()) == 4  # the calibration too
    return place


def test_killed_at_every_step_of_finishing_a_study_ends_as_the_same_study(measured_study, tmp_path):
    whole = copy_of(measured_study, tmp_path / "whole")
    done = whole("resume", "rows-study", "--device", "sim", "--json")
    steps = whole.points()
    assert json.loads(done.stdout)["study"] and {"finish: store the study", "study: write", "study: rename", "dataset: rename"} <= set(steps)
    for number, at in enumerate(numbered(steps)):
        place = copy_of(measured_study, tmp_path / str(number))
        killed_somewhere(place("resume", "rows-study", "--device", "sim", at=at), at)
        again = place("resume", "rows-study", "--device", "sim", "--json")
        assert again.returncode == done.returncode, (at, again.stderr)
        assert json.loads(again.stdout)["study"] == json.loads(done.stdout)["study"], at
        assert len(list((place.root / "studies").glob("study_sha256_*"))) == 1, at
        place("study", "--verify", "", check=0)
        shutil.rmtree(place.root)
    assert number >= 15


def test_killed_in_a_job_of_a_study_it_goes_on_with_the_calibration_that_it_has(measured_study, tmp_path):
    for number, at in enumerate(["run: measured#1", "run: captured#2", "plan: rename#1", "run: begin a job#3"]):
        place = Place(tmp_path / str(number))
        shutil.copytree(measured_study.root / "qualifications", place.root / "qualifications")
        shutil.copytree(measured_study.root / "artifacts", place.root / "artifacts")
        killed_somewhere(place(*measured_study.command, at=at), at)
        if at.startswith("plan"):  # nothing was frozen: it begins anew
            place(*measured_study.command)
        else:
            place("resume", "rows-study", "--device", "sim")
        assert len(list((place.root / "studies").glob("study_sha256_*"))) == 1, at
        place("study", "--verify", "", check=0)
        shutil.rmtree(place.root)
