"""The references themselves: their numbers, their files, and that Triton's own CPU interpreter agrees with them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import check
import compile as corpus_compile
import corpus
import element_types
import launches
import numpy as np
import pytest
import references

HERE = Path(__file__).parent
BY_ID = {entry.id: entry for entry in corpus.entries()}
LAUNCHED = [BY_ID[name] for name in sorted(references.REFERENCES)]


@pytest.mark.parametrize("kind", ["bf16", "fp8e4nv", "fp8e5"])
def test_every_bit_pattern_comes_back(kind):
    storage = element_types.STORAGE[kind]
    bits = np.arange(2 ** (8 * np.dtype(storage).itemsize), dtype=np.uint32).astype(storage)
    values = element_types.decode(bits, kind)
    number = ~np.isnan(values)
    assert (element_types.encode(values[number], kind) == bits[number]).all()
    assert np.isnan(element_types.decode(element_types.encode(values[~number], kind), kind)).all()


@pytest.mark.parametrize("kind, value, bits", [
    ("bf16", 1.0, 0x3F80), ("bf16", -2.0, 0xC000), ("bf16", 1 + 2**-8, 0x3F80), ("bf16", 1 + 3 * 2**-8, 0x3F82),
    ("bf16", 1 + 2**-8 + 2**-40, 0x3F81), ("bf16", np.inf, 0x7F80), ("bf16", 3.4e38, 0x7F80), ("bf16", 2.0**-133, 1),
    ("fp8e4nv", 448.0, 0x7E), ("fp8e4nv", 1e9, 0x7E), ("fp8e4nv", -1.0, 0xB8), ("fp8e4nv", 2.0**-9, 1),
    ("fp8e4nv", 2.0**-10, 0), ("fp8e4nv", 1.99, 0x40), ("fp8e4nv", 17.0, 0x58), ("fp8e4nv", 19.0, 0x5A),
    ("fp8e5", 57344.0, 0x7B), ("fp8e5", 1e9, 0x7C), ("fp8e5", 1.125, 0x3C), ("fp8e5", 1.375, 0x3E), ("fp8e5", -0.0, 0x80),
])
def test_known_roundings(kind, value, bits):
    assert element_types.encode(np.array([value]), kind)[0] == bits


def test_neighbours_are_rounded_to_the_nearer_and_ties_to_even():
    for kind in ("fp8e4nv", "fp8e5"):
        values = np.unique(element_types.decode(np.arange(128, dtype=np.uint8), kind))
        values = values[np.isfinite(values)]
        middle = (values[1:] + values[:-1]) / 2
        for offset, expected in ((-1e-9, values[:-1]), (1e-9, values[1:])):
            got = element_types.decode(element_types.encode(middle * (1 + offset), kind), kind)
            assert (got == expected).all()
        assert (element_types.encode(middle, kind) % 2 == 0).all()


def test_there_are_references_of_enough_kernels():
    functions = {entry.function for entry in LAUNCHED}
    generated = {entry.function for entry in LAUNCHED if entry.pointwise}
    assert len(functions) >= 40 and len(functions - generated) >= 40


@pytest.mark.parametrize("entry", LAUNCHED, ids=lambda entry: entry.id)
def test_launches_keep_what_the_entry_promises(entry):
    made = list(references.launches_of(entry))
    assert len(made) >= 2
    for launch in made:
        launches.check_arguments(entry, launch)
        buffers = launches.buffers(entry, launch)
        pointers = {name for name, kind in entry.args.items() if kind.startswith("*")}
        assert buffers.keys() == pointers and launch.expected.keys() <= pointers
        exact = {name: element_types.encode(values, launches.pointee(entry, name)) for name, values in launch.expected.items()}
        assert launches.differences(entry, launch, exact) == []


STAND_IN = """
import json, shutil, sys
launch = json.load(open(sys.argv[sys.argv.index("--launch") + 1]))
assert sys.argv[1:3] == ["ttgir", "run"] and len(launch["grid"]) == 3
for arg in launch["args"]:
    if "buffer" in arg and arg["out"]:
        data = bytearray(open({source!r}.replace("NAME", arg["name"]), "rb").read())
        assert len(data) == arg["bytes"] == len(open(arg["buffer"], "rb").read())
        {spoil}
        open(arg["buffer"] + ".out", "wb").write(data)
"""


@pytest.mark.parametrize("spoil, right", [("pass", True), ("data[3] ^= 0x40", False)])
def test_a_program_is_judged_by_what_it_leaves(tmp_path, spoil, right):
    entry = BY_ID["liger.softmax.fwd.fp32"]
    launch = list(references.launches_of(entry))[1]
    for name, values in launch.expected.items():
        (tmp_path / name).write_bytes(element_types.encode(values, launches.pointee(entry, name)).tobytes())
    program = tmp_path / "program"
    program.write_text(f"#!{sys.executable}" + STAND_IN.format(source=str(tmp_path / "NAME"), spoil=spoil))
    program.chmod(0o755)
    order = ["Y_ptr", "Y_row_stride", "X_ptr", "X_row_stride", "n_cols"]
    wrong = launches.run(entry, launch, Path("kernel.ttir"), tmp_path / "launch", order, program)
    assert (wrong == []) == right, wrong
    written = json.loads((tmp_path / "launch" / "launch.json").read_text())
    assert [arg["name"] for arg in written["args"]] == order
    assert written["args"][1] == {"name": "Y_row_stride", "scalar": "i32", "value": launch.args["Y_row_stride"]}


def test_tritons_interpreter_agrees():
    environment = {**os.environ, "PYTHONPATH": str(corpus.ROOT / "python")}
    done = subprocess.run([sys.executable, HERE / "interpret.py"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    ran = sum(line.endswith(" s") and ": done, " in line for line in done.stdout.splitlines())
    assert ran >= 140, done.stdout[-3000:]


@pytest.fixture(scope="session")
def compiled():
    failures = corpus_compile.compile_all([(entry, 90) for entry in LAUNCHED], say=lambda line: None)
    assert failures == {}
    corpus.prepare(90, corpus_compile.BUILD)


@pytest.mark.parametrize("entry", LAUNCHED, ids=lambda entry: entry.id)
def test_the_program_computes_what_numpy_does(compiled, entry, tmp_path):
    ttir, order = corpus_compile.folder_of(corpus_compile.BUILD, 90, entry) / "kernel.ttir", launches.order_of(entry)
    wrong = [text for number, launch in enumerate(references.launches_of(entry))
             for text in launches.run(entry, launch, ttir, tmp_path / str(number), order, check.program())]
    assert wrong == []
