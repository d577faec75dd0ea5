"""The package's types as a checker sees them: its own code under the strictest rules, and a user's program that is right
or wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from package import ROOT

PACKAGE = ROOT / "python" / "hebe"

USE = '''\
import hebe


def one() -> None: ...


measured: hebe.Measurement = hebe.measure(one, pairs=4, window=1.0)
joules: float = measured.energy.value
beyond: hebe.Marginal | None = measured.marginal
compared: hebe.Comparison = hebe.compare(one, one)
verdict: str = compared.verdict
rows: list[dict[str, object]] = compared.rows()
cost: float | list[float] = hebe.do_bench_energy(one)
by_index: hebe.Status = hebe.status(device=0, faults="mig")
choice: hebe.Choice | None = hebe.dispatch("matmul", {"m": 1, "n": 4096}, "bf16")
placed: tuple[hebe.PlacementRow, ...] = hebe.load_placement("placement.json", board="NVIDIA H200").rows
campaign: hebe.Campaign = hebe.run("campaign.toml")
why_not: hebe.Refused | None = hebe.status().why_not
'''

#: Each line is wrong by itself.
WRONG = '''\
import hebe
hebe.measure(3)
hebe.measure(print, window="long")
hebe.measure(print).joules
text: str = hebe.measure(print).energy
hebe.compare(print)
hebe.dispatch("matmul", 4096, "bf16")
hebe.status(device=3.5)
hebe.dispatch("matmul", [200.9, 4096], "bf16")
hebe.dispatch("matmul", (1, 4096), 16)
hebe.load_profile(1.5)
hebe.run(None)
'''


def check(cache: Path, *arguments: str) -> list[str]:
    """mypy's errors. mypy is one of the packages that scripts/install --tests installs."""
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--python-version", "3.11", "--cache-dir", str(cache),
                           "--no-error-summary", *arguments], capture_output=True, text=True, timeout=300, cwd=cache.parent,
                          env={**os.environ, "MYPYPATH": str(ROOT / "python")})
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if "error:" in line]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Shared: what was checked once is not checked again."""
    return tmp_path_factory.mktemp("types") / "cache"


def test_the_public_api_passes_the_strictest_rules(cache):
    assert check(cache, *sorted(str(file) for file in PACKAGE.glob("*.py"))) == []


def test_a_users_program_is_checked_against_it(cache):
    right, wrong = cache.parent / "right.py", cache.parent / "wrong.py"
    right.write_text(USE)
    wrong.write_text(WRONG)
    errors = check(cache, str(right), str(wrong))
    lines = [int(re.match(r"wrong\.py:(\d+): ", line).group(1)) for line in errors if line.startswith("wrong.py")]
    assert sorted(set(lines)) == list(range(2, WRONG.count("\n") + 1)), errors
    assert [line for line in errors if not line.startswith("wrong.py")] == []


def test_the_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").is_file()
