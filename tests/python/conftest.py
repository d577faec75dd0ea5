"""A worker as its parent sees it: a child process, JSON lines in, JSON lines out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VECTOR_ADD = ROOT / "kernels" / "vector_add.py"
TARGET = {"backend": "cuda", "arch": 90, "warp_size": 32}


class Worker:
    """One worker process. `ask` returns the result, `fail` the error, `raw` the whole answer to any line of bytes."""

    def __init__(self, *python_options: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *python_options, "-m", "hebe.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT / "python"), **environment})
        self.last_id = 0

    def raw(self, line: bytes) -> dict:
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, self.process.stderr.read().decode()
        return json.loads(answer)

    def answer(self, method: str, **params: object) -> dict:
        self.last_id += 1
        answer = self.raw(json.dumps({"id": self.last_id, "method": method, "params": params}).encode())
        assert answer["id"] == self.last_id
        return answer

    def ask(self, method: str, **params: object) -> dict:
        answer = self.answer(method, **params)
        assert answer["ok"], answer["error"]
        return answer["result"]

    def fail(self, method: str, **params: object) -> dict:
        answer = self.answer(method, **params)
        assert not answer["ok"], answer["result"]
        assert set(answer["error"]) == {"kind", "message", "where", "traceback"}
        return answer["error"]

    def compile(self, case: Path, **params: object) -> dict:
        return self.ask("compile", case=str(case), target=TARGET, **params)

    def compile_error(self, case: Path, **params: object) -> dict:
        return self.fail("compile", case=str(case), target=TARGET, **params)

    def end(self) -> tuple[int, str]:
        """Close stdin; returns the exit status and all of stderr. Nothing may be left on stdout."""
        self.process.stdin.close()
        left, errors = self.process.stdout.read(), self.process.stderr.read().decode()
        assert left == b""
        return self.process.wait(timeout=20), errors


@pytest.fixture(scope="session")
def worker():
    """Shared by all tests that do not need a fresh process: it has to survive every one of them."""
    shared = Worker()
    yield shared
    status, _ = shared.end()
    assert status == 0


@pytest.fixture
def fresh_worker():
    started = []

    def start(*python_options: str, **environment: str) -> Worker:
        started.append(Worker(*python_options, **environment))
        return started[-1]

    yield start
    for one in started:
        one.process.terminate()  # not kill: the worker removes its temporary folder
        one.process.wait(timeout=20)
        for stream in (one.process.stdin, one.process.stdout, one.process.stderr):
            stream.close()


#: A case with places for code: before the kernel, in the kernel, and in the case function.
TEMPLATE = '''\
import triton
import triton.language as tl
from hebe.case import *
{top}

@triton.jit
def copy_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    {kernel}
    tl.store(out_ptr + i, x)


def case({parameters}):
    {body}
    def reference(inputs):
        {reference}
    return Case(name="copy", kernel=copy_kernel, constexprs={{"BLOCK": 128}}, grid=(2,),
                arguments={{"x_ptr": Buffer((256,), "{dtype}", "in", Zeros()),
                           "out_ptr": Buffer((256,), "{dtype}", "out")}},
                tolerance=Tolerance(0, 0), reference=reference, options={{{options}}})
'''


@pytest.fixture
def write_case(tmp_path):
    """Write a small case file with the given pieces of code; returns its path."""

    def write(name: str = "copy_case.py", top: str = "", kernel: str = "pass", parameters: str = "",
              body: str = "pass", reference: str = 'return {"out_ptr": inputs["x_ptr"].copy()}', dtype: str = "fp32",
              options: str = "") -> Path:
        path = tmp_path / name
        path.write_text(TEMPLATE.format(top=textwrap.dedent(top), kernel=kernel, parameters=parameters, body=body,
                                        reference=reference, dtype=dtype, options=options))
        return path

    return write


def line_of(path: Path, text: str) -> str:
    """ "file:line" of the first line that holds `text`."""
    lines = path.read_text().splitlines()
    return f"{path.name}:{next(n for n, line in enumerate(lines, 1) if text in line)}"
