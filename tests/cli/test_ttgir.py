"""hebe ttgir as a user runs it: print, verify, count."""

import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("HEBE_BINARY", str(ROOT / "build/release/hebe"))
DUMPS = ROOT / "tests/data/ttgir"


def ttgir(*arguments, cwd=None):
    return subprocess.run([BINARY, "ttgir", *map(str, arguments)], capture_output=True, cwd=cwd)


def said(*arguments):
    done = subprocess.run([BINARY, "--json", "ttgir", *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("dump", sorted(DUMPS.glob("*.tt*ir")), ids=lambda path: path.name)
def test_a_dump_prints_as_it_is(dump):
    for option in ((), ("--structural",)):
        done = ttgir("print", *option, dump)
        assert done.returncode == 0 and done.stdout == dump.read_bytes()
    assert ttgir("verify", dump).returncode == 0


def test_a_faulty_module_is_told_with_its_lines(tmp_path):
    text = (DUMPS / "softmax.ttir").read_text()
    line = next(n for n, each in enumerate(text.splitlines(), 1) if "arith.subf" in each)
    wrong = tmp_path / "wrong.ttir"
    wrong.write_text("module {\n  tt.func public @f(%n: i32) {\n    tt.call @g(%n) : (i32) -> ()\n    tt.return\n  }\n}\n")
    code, found = said("verify", wrong)
    assert code == 1 and found[0]["faults"] == [{"line": 3, "op": "tt.call @g(%n) : (i32) -> ()", "what": "there is no function @g"}]
    wrong.write_text(text.replace("arith.subf", "arith.subf,", 1))
    done = ttgir("print", wrong)
    assert done.returncode == 2 and done.stdout == b"" and f"wrong.ttir:{line}:" in done.stderr.decode()


@pytest.mark.parametrize("content, code", [(b"", 2), (b"\xff\xfe\x00", 2), (b"module {\n", 2), (b"module {\n}\n", 0)])
def test_odd_files(tmp_path, content, code):
    (tmp_path / "odd").write_bytes(content)
    done = ttgir("print", tmp_path / "odd")
    assert done.returncode == code and (done.stdout == content if code == 0 else done.stderr)


def test_what_is_no_file_is_refused(tmp_path):
    for path, code in ((tmp_path, 3), (tmp_path / "absent", 2)):
        assert ttgir("print", path).returncode == code
    assert ttgir().returncode == 2 and ttgir("print").returncode == 2


def layer_norm(folder, rows, columns):
    random = np.random.default_rng(1)
    files = {"X": random.standard_normal((rows, columns)).astype(np.float16), "Y": np.zeros((rows, columns), np.float16),
             "W": random.standard_normal(columns).astype(np.float16), "B": random.standard_normal(columns).astype(np.float16),
             "Mean": np.zeros(rows, np.float32), "Rstd": np.zeros(rows, np.float32)}
    for name, values in files.items():
        values.tofile(folder / f"{name}.bin")
    launch = folder / "launch.json"
    launch.write_text(json.dumps({"grid": [rows, 1, 1], "args": [
        *({"buffer": f"{name}.bin", "out": name in ("Y", "Mean", "Rstd")} for name in files),
        {"scalar": "i32", "value": columns}, {"scalar": "i32", "value": columns}, {"scalar": "f32", "value": 1e-5}]}))
    return launch


def test_the_estimate_is_the_count_where_nothing_is_masked(tmp_path):
    launch, dump = layer_norm(tmp_path, 8, 8192), DUMPS / "ln_fwd.ttgir"
    code, counted = said("count", dump, "--launch", launch)
    assert code == 0
    code, estimated = said("count", dump, "--grid", 8, "--scalar", "N=8192")
    assert code == 0 and estimated["provenance"] == "estimated" and estimated["exact"] and estimated["doubts"] == []
    assert estimated["operations"] == counted["operations"]
    for argument in estimated["arguments"]:
        exact = next(a for a in counted["arguments"] if a["name"] == argument["name"])
        assert argument["loaded"] == exact["loaded"] and argument["stored"] == exact["stored"]


def test_a_mask_makes_the_estimate_an_upper_bound(tmp_path):
    launch, dump = layer_norm(tmp_path, 3, 5000), DUMPS / "ln_fwd.ttir"
    counted, estimated = said("count", dump, "--launch", launch)[1], said("count", dump, "--grid", 3, "--scalar", "N=5000")[1]
    x = lambda value: next(a for a in value["arguments"] if a["name"] == "X")
    assert x(counted)["loaded"] == 3 * 3 * 5000 * 2 and x(estimated)["loaded"] == 3 * 3 * 8192 * 2 and x(estimated)["at_most"]
    assert x(counted)["unique_loaded"] == 3 * 5000 * 2, "each of the three loops reads X again"


def test_what_scalars_do_not_tell_is_listed():
    code, estimated = said("count", DUMPS / "ln_fwd.ttir", "--grid", 4)
    assert code == 0 and not estimated["exact"] and all("%N" in doubt["what"] for doubt in estimated["doubts"])


def test_a_floor_is_an_estimate_of_a_named_board(tmp_path):
    launch = layer_norm(tmp_path, 64, 8192)
    code, counted = said("count", DUMPS / "ln_fwd.ttir", "--launch", launch, "--board", "NVIDIA H200")
    floor = counted["floor"]
    unique = 2 * 64 * 8192 * 2 + 2 * 8192 * 2 + 2 * 64 * 4
    assert code == 0 and floor["provenance"] == "estimated" and floor["limit"] == "DRAM"
    assert floor["time_cold_s"] == pytest.approx(unique / 4.8e12) and 0 < floor["energy_cold_j"] < 1e-3
    assert floor["time_warm_s"] < floor["time_cold_s"], "it fits the L2"


@pytest.mark.parametrize("arguments, word", [
    (("--grid", "4,q"), '"q" is no integer'), (("--grid", "1,1,1,1"), "one to three sizes"), (("--scalar", "N"), "NAME=VALUE"),
    (("--scalar", "X=1"), "integer arguments: stride, N"), (("--board", "H200"), "--launch"), (("--function", "nobody"), "nobody"),
])
def test_wrong_options_are_refused_by_name(arguments, word):
    done = ttgir("count", DUMPS / "ln_fwd.ttir", *arguments)
    assert done.returncode == 2 and word in done.stderr.decode() and done.stdout == b""


def test_an_unknown_board_lists_the_known(tmp_path):
    done = ttgir("count", DUMPS / "ln_fwd.ttir", "--launch", layer_norm(tmp_path, 1, 64), "--board", "Voodoo")
    assert done.returncode == 2 and "H200" in done.stderr.decode()


@pytest.mark.parametrize("kind, value, fits", [
    ("i8", 127, True), ("i8", -128, True), ("i8", 255, True), ("i8", 256, False), ("i8", -129, False), ("i1", 1, True), ("i1", 2, False),
    ("i64", 2**63 - 1, True), ("i64", -2**63, True), ("i32", 2**32, False), ("i32", -2**31, True),
])
def test_a_scalar_must_fit_its_type(tmp_path, kind, value, fits):
    (tmp_path / "k.ttir").write_text(f"module {{\n  tt.func public @f(%p: !tt.ptr<{kind}>, %x: {kind}) {{\n"
                                     f"    tt.store %p, %x : !tt.ptr<{kind}>\n    tt.return\n  }}\n}}\n")
    (tmp_path / "p.bin").write_bytes(bytes(8))
    (tmp_path / "launch.json").write_text(json.dumps({"grid": [1], "args": [{"buffer": "p.bin", "out": True}, {"scalar": kind, "value": value}]}))
    done = ttgir("run", tmp_path / "k.ttir", "--launch", tmp_path / "launch.json")
    assert (done.returncode == 0) == fits, done.stderr
    if not fits:
        assert done.returncode == 2 and f"does not fit {kind}" in done.stderr.decode()
