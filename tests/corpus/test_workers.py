"""A crashed, a stuck and a failed job end alone; the others are done."""

from __future__ import annotations

import os
import time

import workers


def start(word: str) -> None:
    os.environ["CORPUS_TEST_WORD"] = word


def run(job: str) -> str:
    if job == "crash":
        os.abort()
    if job == "exit":
        raise SystemExit("asked for")
    if job == "stick":
        time.sleep(600)
    return f"{job} {os.environ['CORPUS_TEST_WORD']}"


def test_each_job_ends_by_itself():
    jobs = ["a", "crash", "b", "exit", "stick", "c", "d"]
    ended = {job: (made, error) for job, made, error in workers.results(jobs, start, ("word",), run, 2, limit_seconds=5)}
    assert {job: ended[job][0] for job in "abcd"} == {job: f"{job} word" for job in "abcd"}
    assert "ended with status -6" in ended["crash"][1] and ended["exit"][1] == "SystemExit: asked for"
    assert "not done after 5 s" in ended["stick"][1] and len(ended) == len(jobs)
