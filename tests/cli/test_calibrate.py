"""hebe calibrate placement: measured or not written."""

import hashlib
import json
import pathlib

import pytest

SMALL = ["calibrate", "placement", "--device", "sim", "--m", "64", "--n", "64", "--k", "64", "--idle-seconds", "2", "--window-seconds", "1",
         "--windows", "3", "--warm-up-seconds", "5"]
RAPL = list(pathlib.Path("/sys/class/powercap").glob("intel-rapl:*"))


def test_the_simulated_gpu_is_calibrated_and_says_that_it_is_simulated(hebe, tmp_path):
    file = tmp_path / "placement.json"
    code, out = hebe.json(*SMALL, "--members", "triton", "--out", str(file))
    assert code == 0, out
    assert json.loads(file.read_text()) == out
    (row,) = out["rows"]
    assert (row["member"], row["provenance"], row["dtype"]) == ("triton", "simulated", "fp16")
    assert row["sizes"] == {"m": 64, "n": 64, "k": 64}
    assert row["energy_nj"]["value"] > 0 and row["energy_nj"]["low"] > 0
    assert row["idle"]["power_w"] > 0
    code, shown = hebe.json("calibrate", "placement", "--show", str(file), "--board", row["board"])
    assert (code, shown["expired"]) == (0, [])
    code, shown = hebe.json("calibrate", "placement", "--show", str(file), "--board", "another board")
    assert code == 1 and shown["expired"][0]["outcome"] == "rejected"
    assert "another board" in shown["expired"][0]["reasons"][0]
    code, shown = hebe.json("calibrate", "placement", "--show", str(file), "--meter", f"{row['meter']['name']}=frozen")
    assert code == 1 and shown["expired"][0]["outcome"] == "rejected"
    assert shown["placement"]["rows"] == []
    code, shown = hebe.json("calibrate", "placement", "--show", str(file), "--driver", "999.1")
    assert code == 1 and shown["expired"][0]["outcome"] == "downgraded"


def test_a_redacted_placement_names_no_board_and_is_known_to_be_of_it(hebe, tmp_path):
    plain, redacted = tmp_path / "plain.json", tmp_path / "redacted.json"
    for file, more in ((plain, []), (redacted, ["--redact"])):
        code, out = hebe.json(*SMALL, "--members", "triton", "--out", str(file), *more)
        assert code == 0 and json.loads(file.read_text()) == out, out
    uuid = json.loads(plain.read_text())["rows"][0]["platform"]["board_uuid"]
    assert uuid.startswith("SIM-")
    hashed = "sha256:" + hashlib.sha256(uuid.encode()).hexdigest()[:16]
    assert uuid not in redacted.read_text()
    assert json.loads(redacted.read_text())["rows"][0]["platform"]["board_uuid"] == hashed
    for file in (plain, redacted):  # by its name and by its digest, whichever of them the file has
        for board in (uuid, hashed):
            code, shown = hebe.json("calibrate", "placement", "--show", str(file), "--board-uuid", board)
            assert (code, shown["expired"]) == (0, []), shown
        code, shown = hebe.json("calibrate", "placement", "--show", str(file), "--board-uuid", "GPU-another")
        assert code == 1 and shown["expired"][0]["outcome"] == "downgraded"
        assert shown["expired"][0]["reasons"][0].startswith("board_uuid was ")


@pytest.mark.skipif(bool(RAPL), reason="this machine has RAPL: its CPU may be measured")
def test_a_cpu_that_nothing_meters_keeps_the_file_from_being_written(hebe, tmp_path):
    file = tmp_path / "placement.json"
    code, out = hebe.json(*SMALL, "--members", "triton,cpu", "--out", str(file))
    assert code == 3, out
    assert out["refused"]["code"] in ("meter_unsupported", "meter_frozen", "no_permission")
    assert 'member "cpu"' in out["refused"]["what"]
    assert out["refused"]["not_written"] == str(file)
    assert not file.exists()


def test_a_library_on_the_simulated_gpu_has_no_figure_and_there_is_no_file(hebe, tmp_path):
    file = tmp_path / "placement.json"
    code, out = hebe.json(*SMALL, "--members", "triton,cublaslt", "--out", str(file))
    assert code == 3, out
    assert "cublaslt" in out["refused"]["what"]
    assert out["refused"]["not_written"] == str(file)
    assert not file.exists()


@pytest.mark.parametrize("fault, exit_code", [("samples_frozen", 3), ("counter_frozen", 3), ("wrong_output", 1)])
def test_what_was_not_measured_or_not_right_leaves_no_file(hebe, tmp_path, fault, exit_code):
    file = tmp_path / "placement.json"
    code, out = hebe.json(*SMALL, "--members", "triton", "--out", str(file), "--sim-fault", fault)
    assert code == exit_code, out
    assert out["refused"]["not_written"] == str(file)
    assert not file.exists()


CASE = """
import triton
import triton.language as tl
from hebe.case import Buffer, Case, Scalar, Tolerance, Uniform


@triton.jit
def copy(a_ptr, b_ptr, c_ptr, m, n, k, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(c_ptr + at, tl.load(a_ptr + at))


def case(m: int = 64, n: int = 64, k: int = 64) -> Case:
    a, b = Uniform(-1.0, 1.0, seed=1), Uniform(-1.0, 1.0, seed=2)
    return Case(name="copy", description="one row", kernel=copy, arguments={
        "a_ptr": Buffer((m, k), "fp16", "in", a), "b_ptr": Buffer((k, n), "fp16", "in", b), "c_ptr": Buffer((m, n), "fp16", "out"),
        "m": Scalar(m), "n": Scalar(n), "k": Scalar(k)}, constexprs={"BLOCK": m * n}, grid=(1, 1, 1), options={},
        tolerance=Tolerance(atol=0, rtol=0), reference=lambda inputs: {"c_ptr": inputs["a_ptr"]})
"""

ASSEMBLY = "tl.inline_asm_elementwise('nanosleep.u32 20; mov.b16 $0, $1;', '=h,h', [tl.load(a_ptr + at)], dtype=tl.float16, is_pure=True, pack=1)"


@pytest.mark.parametrize("old, new, exit_code, code", [
    # What cannot be interpreted has no price without declared work: the simulated GPU cannot run it.
    ("tl.load(a_ptr + at)", ASSEMBLY, 3, "toolchain_unavailable"),
    ("tl.load(a_ptr", "tl.lode(a_ptr", 2, "compile_failed"),
    ("def case", "def other", 2, "case_not_found"),
    ("m: int = 64, ", "", 2, "bad_argument"),
    ("fp16", "fp32", 2, "bad_spec"),  # the GPU's members multiply fp16
])
def test_a_missing_figure_is_the_machines_fault_and_a_wrong_case_is_usage(hebe, tmp_path, old, new, exit_code, code):
    file, case = tmp_path / "placement.json", tmp_path / "copy.py"
    assert old in CASE
    case.write_text(CASE.replace(old, new))
    code_seen, out = hebe.json(*SMALL, "--members", "triton", "--case", f"{case}:case", "--out", str(file))
    assert (code_seen, out["refused"]["code"]) == (exit_code, code), out
    assert out["refused"]["not_written"] == str(file)
    assert not file.exists()
    if exit_code == 3:
        assert 'member "triton"' in out["refused"]["what"]


def test_where_the_placement_cannot_be_written_nothing_is_measured(hebe, tmp_path):
    for out in (tmp_path, tmp_path / "none" / "p.json"):
        done = hebe("--device", "sim", "calibrate", "placement", "--members", "triton", "--out", str(out))
        assert done.returncode == 2 and f"not written: {out}" in done.stderr and "next:" in done.stderr, done.stderr
        assert "%" not in done.stderr  # no progress was made
    done = hebe("calibrate", "placement", "--show", str(tmp_path / "p.json"), "--members", "triton")
    assert done.returncode == 2 and "--show" in done.stderr
    done = hebe("--device", "sim", "calibrate", "placement", "--days", "3")
    assert done.returncode == 2 and "--show" in done.stderr


def test_a_member_that_nobody_knows_is_a_usage_error(hebe):
    code, out = hebe.json(*SMALL, "--members", "tpu")
    assert code == 2 and "tpu" in out["refused"]["what"]


def test_a_placement_with_a_zero_is_bad_data(hebe, tmp_path):
    file = tmp_path / "placement.json"
    code, out = hebe.json(*SMALL, "--members", "triton", "--out", str(file))
    assert code == 0, out
    out["rows"][0]["energy_nj"]["value"] = 0
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps(out))
    code, out = hebe.json("calibrate", "placement", "--show", str(broken))
    assert code == 5 and (out["refused"]["where"], out["refused"]["not_written"]) == (str(broken), "")


@pytest.mark.parametrize("fault, words", [("counter_frozen@1", "warm-up"), ("samples_frozen@9", "")])
def test_a_figure_that_a_fault_kept_out_is_refused_with_member_meter_and_file(hebe, tmp_path, fault, words):
    file = tmp_path / "placement.json"
    code, out = hebe.json(*SMALL, "--members", "triton", "--out", str(file), "--sim-fault", fault)
    assert code == 3 and not file.exists(), out
    refused = out["refused"]
    assert "triton" in refused["what"] and words in refused["what"] and "; meter " in refused["what"] and ": primary" in refused["what"], out
    assert refused["not_written"] == str(file)


def test_a_placement_row_that_says_measured_and_was_downgraded_is_refused(hebe, tmp_path):
    file = tmp_path / "placement.json"
    code, out = hebe.json(*SMALL, "--members", "triton", "--out", str(file))
    assert code == 0, out
    assert hebe("--device", "sim", "calibrate", "placement", "--show", str(file), "--here").returncode == 0
    out["rows"][0].update(provenance="measured", downgraded=["driver was 1 and is 2"])
    (tmp_path / "changed.json").write_text(json.dumps(out))
    done = hebe("calibrate", "placement", "--show", str(tmp_path / "changed.json"))
    assert done.returncode == 5 and "measured and was downgraded" in done.stderr, done.stderr
    out["rows"][0].update(provenance="estimated")
    (tmp_path / "before.json").write_text(json.dumps(out))
    code, shown = hebe.json("calibrate", "placement", "--show", str(tmp_path / "before.json"))
    assert code == 1 and shown["expired"][0]["reasons"] == ["driver was 1 and is 2"], shown
    done = hebe("calibrate", "placement", "--show", str(file), "--driver", "")
    assert done.returncode == 2 and "--driver is empty" in done.stderr, done.stderr
