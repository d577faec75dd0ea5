"""The program as a user runs it: arguments in, exit code, stdout and stderr out. No GPU is needed."""

import json
import os
import pathlib
import subprocess

import pytest

BINARY = os.environ.get("HEBE_BINARY", str(pathlib.Path(__file__).parents[2] / "build/release/hebe"))
SMOKE = ["run-aa", "--device", "sim", "--protocol-tier", "smoke-v1", "--pairs", "6", "--set", "n=65536"]


class Hebe:
    """Runs hebe with its own data root and temporary folder."""

    def __init__(self, root: pathlib.Path, tmp: pathlib.Path):
        self.root, self.tmp = root, tmp
        tmp.mkdir(exist_ok=True)
        self.env = dict(os.environ, TMPDIR=str(tmp), HEBE_DATA_ROOT=str(root), XDG_DATA_HOME=str(tmp / "xdg"))

    def __call__(self, *arguments, **options):
        return subprocess.run([BINARY, *arguments], capture_output=True, text=True, env=self.env, timeout=300, **options)

    def start(self, *arguments):
        return subprocess.Popen([BINARY, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env)

    def json(self, *arguments):
        done = self(*arguments, "--json")
        return done.returncode, json.loads(done.stdout)

    def runs(self):
        return sorted(p for p in self.root.glob("runs/*/*/*/*") if not p.name.startswith("."))

    def unsealed(self):
        return sorted(self.root.glob("runs/*/*/*/.unsealed-*"))


@pytest.fixture
def hebe(tmp_path):
    return Hebe(tmp_path / "root", tmp_path / "tmp")


@pytest.fixture(scope="module")
def sealed(tmp_path_factory):
    """One sealed smoke run, to be copied, never changed."""
    base = tmp_path_factory.mktemp("sealed")
    h = Hebe(base / "root", base / "tmp")
    code, out = h.json(*SMOKE)
    assert code == 0, out
    return pathlib.Path(out["directory"])
