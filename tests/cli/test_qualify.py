"""hebe qualify, on the simulated device: what is qualified, what is refused and why, and what a record is worth."""

import json
import os
import pathlib
import re
import shutil

import pytest

CASES = pathlib.Path(__file__).parents[1] / "data" / "qualify" / "row_kernels.py"
INLINE = ["inline-single-trip-loops", {"pass": "reuse-loads", "arguments": ["x_ptr"]}, "remove-dead"]


def spec(tmp_path, candidates, function="case", parameters=None, points=None, **more):
    made = {
        "schema": "hebe.qualification.spec/1", "name": "test",
        "subject": {"case": f"{CASES}:{function}", "parameters": parameters or {}},
        "points": points or [{"name": "here"}], "candidates": candidates, **more}
    file = tmp_path / "spec.json"
    file.write_text(json.dumps(made))
    return str(file)


def qualify(hebe, tmp_path, candidates, **how):
    return hebe.json("--device", "sim", "qualify", spec(tmp_path, candidates, **how))


def variant(out, name, point=0):
    at = out["record"]["points"][point]
    return at["baseline"] if name == "baseline" else next(v for v in at["candidates"] if v["name"] == name)


def check(out, name, check, by=None):
    found = [c for c in variant(out, name)["checks"] if c["name"] == check and by in (None, c["by"])]
    assert len(found) >= 1, [c["name"] for c in variant(out, name)["checks"]]
    return found[0]


def records(hebe):
    return sorted((hebe.root / "qualifications" / "kernel").glob("*.json"))


def test_a_rewrite_that_computes_the_same_bits_is_qualified(hebe, tmp_path):
    code, out = qualify(hebe, tmp_path, [{"name": "once", "passes": INLINE, "fewer_loads_of": ["x_ptr"]}],
                        contrast={"a": "baseline", "b": "once"})
    assert code == 0 and out["qualified"], out
    once, record = variant(out, "once"), out["record"]
    assert record["provenance"] == "simulated" and record["when"] is None
    assert "energy_j" not in json.dumps(record) and record["energy_labels"] == "none: nothing was measured"
    assert check(out, "once", "bits_equal", "interpreter")["outcome"] == "passed"
    assert once["bytes"]["x_ptr"]["loaded"] * 2 == variant(out, "baseline")["bytes"]["x_ptr"]["loaded"]
    assert {c["by"] for c in once["checks"]} == {"static", "interpreter", "GPU"}
    assert all(c["outcome"] == "not_run" and "no GPU" in c["evidence"] for c in once["checks"] if c["by"] == "GPU")
    assert {"kind": "scalar_equals", "argument": "n", "value": 256} == {
        k: v for k, v in once["rewrite"]["contracts"][0].items() if k != "why"}
    (case,) = record["measurement_cases"]["cases"]
    assert case["eligible"] and case["bytes_saved"] == 5 * 256 * 4
    (file,) = records(hebe)
    assert file.stem == out["id"] and os.stat(file).st_mode & 0o222 == 0


def test_the_same_qualification_is_the_same_record(hebe, tmp_path):
    first, second = (qualify(hebe, tmp_path, [{"name": "once", "passes": INLINE}])[1] for _ in range(2))
    assert first["id"] == second["id"] and len(records(hebe)) == 1


# What must be refused, each with its reason.

def test_a_loop_that_runs_twice_keeps_its_loads(hebe, tmp_path):
    code, out = qualify(hebe, tmp_path, [{"name": "once", "passes": INLINE}], parameters={"n": 500})
    assert code == 1 and not out["qualified"]
    found = check(out, "once", "rewrite_applied")
    assert found["outcome"] == "failed" and "runs 2 times" in found["evidence"]


def test_a_candidate_that_is_the_baseline_is_no_candidate(hebe, tmp_path):
    code, out = qualify(hebe, tmp_path, [{"name": "same", "passes": ["simplify"]}], parameters={"n": 500})
    assert code == 1 and check(out, "same", "artifacts_distinct")["outcome"] == "failed"


@pytest.mark.parametrize("how, op", [({"says": True}, "tt.print"), ({"checks": True}, "tt.assert")])
def test_a_kernel_that_is_seen_outside_of_memory_is_not_rewritten(hebe, tmp_path, how, op):
    code, out = qualify(hebe, tmp_path, [{"name": "once", "passes": INLINE}], parameters=how)
    assert code == 1
    assert check(out, "baseline", "no_side_effects")["outcome"] == "failed"
    built = check(out, "once", "builds")
    assert built["outcome"] == "failed" and op in built["evidence"], built


def test_a_candidate_that_spills_is_not_qualified(hebe, tmp_path):
    code, out = qualify(hebe, tmp_path, [
        {"name": "kept", "passes": [{"pass": "unroll-loops", "trips": 8}, "reuse-loads", "remove-dead"]}], function="few_registers")
    assert code == 1
    kept, base = variant(out, "kept"), variant(out, "baseline")
    assert base["qualified"], base["failed"]
    assert kept["failed"] == ["no_spills (static)"]
    assert re.search(r"[1-9]\d* bytes of local memory", check(out, "kept", "no_spills")["evidence"])
    # Allowed on purpose, with a limit of its own, it is.
    code, out = qualify(hebe, tmp_path, [
        {"name": "kept", "passes": [{"pass": "unroll-loops", "trips": 8}, "reuse-loads", "remove-dead"], "max_local_bytes": 4096}],
        function="few_registers")
    assert code == 0, variant(out, "kept")["failed"]


def test_an_in_place_kernel_is_not_idempotent(hebe, tmp_path):
    code, out = qualify(hebe, tmp_path, [{"name": "hint", "passes": [{"pass": "hint", "loads": {"x_ptr": {"evict": "evict_first"}}}]}],
                        function="in_place")
    assert code == 1
    found = check(out, "baseline", "idempotent")
    assert found["outcome"] == "failed" and "other data" in found["evidence"]


def test_nan_in_inputs_hides_what_a_kernel_does(hebe, tmp_path):
    (tmp_path / "nan.py").write_text(CASES.read_text().replace("Constant(value) if value != 0", 'Constant(float("nan")) if True'))
    file = spec(tmp_path, [{"name": "once", "passes": INLINE}])
    text = pathlib.Path(file).read_text().replace(str(CASES), str(tmp_path / "nan.py"))
    pathlib.Path(file).write_text(text)
    code, out = hebe.json("--device", "sim", "qualify", file)
    assert code == 1
    found = check(out, "baseline", "inputs_are_numbers")
    assert found["outcome"] == "failed" and 'element 0 of "x_ptr" is NaN' in found["evidence"]
    assert check(out, "baseline", "outputs_right", "interpreter")["outcome"] == "not_run"


def edited(hebe, tmp_path, change):
    """The baseline's TTGIR with an edit by hand, as a candidate."""
    code, out = qualify(hebe, tmp_path, [{"name": "once", "passes": INLINE}])
    assert code == 0
    digest = variant(out, "baseline")["artifacts"]["ttgir"]
    text = (hebe.root / "artifacts" / digest[:2] / digest).read_text()
    changed = change(text)
    assert changed != text
    (tmp_path / "edited.ttgir").write_text(changed)
    return qualify(hebe, tmp_path, [{"name": "edited", "ttgir": "edited.ttgir"}])


def test_a_candidate_that_reads_one_element_past_its_buffer(hebe, tmp_path):
    def read_on(text):  # the last lane of the first load is one further
        range_line = next(line for line in text.splitlines() if "tt.make_range" in line)
        return text.replace(range_line, range_line.replace("end = 256 : i32, start = 0 : i32", "end = 257 : i32, start = 1 : i32"), 1)

    code, out = edited(hebe, tmp_path, lambda text: read_on(text).replace("arith.cmpi slt", "arith.cmpi sle"))
    assert code == 1
    found = check(out, "edited", "accesses_in_bounds")
    assert found["outcome"] == "failed" and "x_ptr" in found["evidence"], found
    assert check(out, "edited", "outputs_right", "interpreter")["outcome"] == "not_run"


def test_an_output_that_is_left_unwritten(hebe, tmp_path):
    def silent(text):
        lines = text.splitlines(keepends=True)
        stores = [i for i, line in enumerate(lines) if "tt.store" in line]
        del lines[stores[0]]  # the mean's
        return "".join(lines)

    code, out = edited(hebe, tmp_path, silent)
    assert code == 1
    found = check(out, "edited", "outputs_written", "interpreter")
    assert found["outcome"] == "failed" and '5 of 5 elements of "mean_ptr" are not written' in found["evidence"]


def test_other_bits_are_found_element_by_element(hebe, tmp_path):
    code, out = edited(hebe, tmp_path, lambda text: re.sub(r"arith\.subf (%\S+), (%\S+) :", r"arith.addf \1, \2 :", text))
    assert code == 1
    assert "elements are wrong" in check(out, "edited", "outputs_right", "interpreter")["evidence"]
    assert re.search(r"y_ptr: \d+ of 1280 elements differ, the first is 0", check(out, "edited", "bits_equal", "interpreter")["evidence"])


def test_text_that_triton_does_not_take_is_said_in_its_words(hebe, tmp_path):
    code, out = edited(hebe, tmp_path, lambda text: text.replace("arith.addf", "arith.addg"))
    assert code == 1 and "arith.addg" in check(out, "edited", "builds")["evidence"]


def test_a_candidate_may_be_another_kernel_on_the_same_buffers(hebe, tmp_path):
    code, out = qualify(hebe, tmp_path, [{"name": "blocks", "case": f"{CASES}:case", "parameters": {"n": 256, "block": 64}}])
    assert code == 0, variant(out, "blocks")["failed"]
    assert check(out, "blocks", "bits_equal", "interpreter")["outcome"] == "passed"


@pytest.mark.parametrize("change, said", [
    ({"y_ptr": "z_ptr"}, "z_ptr"), ({"seed=1": "seed=2"}, "x_ptr")])
def test_another_kernel_must_take_the_same_buffers_and_inputs(hebe, tmp_path, change, said):
    text = CASES.read_text()
    for old, new in change.items():
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "other.py").write_text(text)
    code, out = qualify(hebe, tmp_path, [{"name": "other", "case": f"{tmp_path}/other.py:case", "parameters": {"block": 64}}])
    found = check(out, "other", "same_buffers")
    assert code == 1 and found["outcome"] == "failed" and said in found["evidence"]


def test_a_contract_on_the_grid_is_interpreted_at_the_point_itself(hebe, tmp_path):
    """The interpreter is given 2 programs; a rewrite that rests on 5 is compared at 5, with the baseline at 5."""
    code, out = qualify(hebe, tmp_path, [{"name": "once", "passes": INLINE, "fewer_loads_of": ["x_ptr"]}],
                        points=[{"name": "here", "interpreter_parameters": {"m": 2}}])
    assert code == 0, variant(out, "once")["failed"]
    assert variant(out, "once")["bytes"]["x_ptr"]["loaded"] == 2 * 256 * 4
    code, out = qualify(hebe, tmp_path, [{"name": "blocks", "case": f"{CASES}:case", "parameters": {"n": 256, "block": 64}}],
                        points=[{"name": "here", "interpreter_parameters": {"m": 2}}])
    assert code == 0, variant(out, "blocks")["failed"]
    assert "of 1280 elements" in check(out, "blocks", "bits_equal", "interpreter")["evidence"]


# Records.

def test_a_record_verifies_until_something_of_it_changes(hebe, tmp_path):
    _, out = qualify(hebe, tmp_path, [{"name": "once", "passes": INLINE}])
    code, report = hebe.json("qualify", "--verify", "")
    assert code == 0 and report["valid"] and any("rewrites done again" in text for text in report["passed"])
    digest = variant(out, "once")["artifacts"]["ttgir"]
    artifact = hebe.root / "artifacts" / digest[:2] / digest
    artifact.chmod(0o644)
    artifact.write_text(artifact.read_text().replace("scf", "scg", 1) + " ")
    code, report = hebe.json("qualify", "--verify", out["id"][:12])
    assert code == 5 and report["problems"]
    artifact.unlink()
    code, report = hebe.json("qualify", "--verify", "")
    assert code == 5 and any("ttgir" in p["what"] for p in report["problems"])


def drop_failed_checks(record, v):
    v["checks"] = [c for c in v["checks"] if c["outcome"] != "failed"]
    v["failed"], v["qualified"] = [], True


def all_passed_on_a_gpu(record, v):
    record["provenance"], v["failed"], v["not_run"], v["qualified"] = "gpu", [], [], True
    for c in v["checks"]:
        c["outcome"] = "passed"


FORGERIES = {
    "verdict": lambda record, v: v.update(qualified=True),
    "whole": lambda record, v: record.update(qualified=True),
    "case": lambda record, v: record["measurement_cases"]["cases"][0].update(eligible=True, why_not=""),
    "checks left out": drop_failed_checks,
    "a GPU that was not there": all_passed_on_a_gpu,
    "passes left out": lambda record, v: v.update(passes=[]),
    "candidates left out": lambda record, v: record["points"][0].update(candidates=[]),
    "the baseline's cubin": lambda record, v: v["artifacts"].update(cubin=record["points"][0]["baseline"]["artifacts"]["cubin"]),
    "mechanism": lambda record, v: v["mechanism"]["ptx"].update(instructions=1),
    "another specification": lambda record, v: record["spec"]["candidates"][0].update(passes=["simplify"]),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forgery_is_found_under_its_own_name(hebe, tmp_path, forgery):
    """Somebody changes a record of a kernel that failed, and names the file by its new content."""
    import hashlib

    qualify(hebe, tmp_path, [{"name": "once", "passes": [*INLINE, {"pass": "hint", "loads": {"x_ptr": {"evict": "evict_first"}}}]}],
            parameters={"n": 500}, contrast={"a": "baseline", "b": "once"})
    (file,) = records(hebe)
    record = json.loads(file.read_text())
    FORGERIES[forgery](record, record["points"][0]["candidates"][0])
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    forged = file.with_name(hashlib.sha256(text.encode()).hexdigest() + ".json")
    forged.write_text(text + "\n")
    code, report = hebe.json("qualify", "--verify", forged.stem)
    assert code == 5 and report["problems"], forgery


def test_a_full_or_forbidden_data_root_is_refused_before_work(hebe, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    done = hebe("--data-root", str(blocked / "root"), "--device", "sim", "qualify", spec(tmp_path, [{"name": "once", "passes": INLINE}]))
    assert done.returncode == 3 and "not written: the qualification" in done.stderr


# What is wrong with a specification is said before anything is compiled.

@pytest.mark.parametrize("change, said", [
    (lambda s: s["candidates"][0].update(passes=["no-such-pass"]), 'there is no pass "no-such-pass"'),
    (lambda s: s["candidates"][0].update(passes=[{"pass": "reuse-loads", "wrong": 1}]), 'has no option "wrong"'),
    (lambda s: s["candidates"][0].update(ttgir="nowhere.ttgir"), "one of them"),
    (lambda s: s["candidates"].append(dict(s["candidates"][0])), "is there twice"),
    (lambda s: s["candidates"][0].update(name="baseline"), 'is named "baseline"'),
    (lambda s: s.update(contrast={"a": "baseline", "b": "other"}), 'there is no candidate "other"'),
    (lambda s: s["points"].append({"name": "here"}), 'the point "here" is there twice'),
    (lambda s: s["candidates"][0].update(points=["there"]), 'there is no point "there"'),
    (lambda s: s["candidates"][0].update(parameters={"m": 2}), "another case's"),
    (lambda s: s.pop("points"), "points"),
    (lambda s: s["candidates"][0].update(passes=[{"pass": "unroll-loops", "trips": 2**60}]), "2^53"),
    (lambda s: s["candidates"][0].update(passes=[{"pass": "reuse-loads", "only": [1.5]}]), "only"),
    (lambda s: s["candidates"][0].update(fewer_loads_of=["nobody"]), "nobody"),
])
def test_a_wrong_specification_is_refused(hebe, tmp_path, change, said):
    file = pathlib.Path(spec(tmp_path, [{"name": "once", "passes": INLINE}]))
    made = json.loads(file.read_text())
    change(made)
    file.write_text(json.dumps(made))
    code, out = hebe.json("--device", "sim", "qualify", str(file))
    assert code == 2 and said in out["refused"]["what"], out
    assert not records(hebe)


def test_an_unknown_specification_lists_what_there_is(hebe):
    done = hebe("qualify", "no-such-study")
    assert done.returncode == 2 and "layernorm-retention" in done.stderr


def test_a_dry_run_writes_nothing(hebe, tmp_path):
    code, out = hebe.json("--dry-run", "layernorm-retention-qualify", "--all-cases")
    assert code == 0 and out["points"] == ["2048x2048", "2048x4096", "2048x8192", "2048x16384", "2048x32768"]
    assert out["candidates"] == ["G/G", "R/G", "G/R", "R/R", "S/S"]
    assert not hebe.root.exists()


def small_copy(tmp_path, name, rows):
    """A shipped specification with fewer rows, so that it is fast."""
    text = (pathlib.Path(__file__).parents[2] / "studies" / f"{name}.toml").read_text()
    text = re.sub(r"\bm = \d+", f"m = {rows}", text).replace("../kernels", str(pathlib.Path(__file__).parents[2] / "kernels"))
    text = re.sub(r"interpreter_parameters = \{[^}]*\}\n", "", text)
    file = tmp_path / f"{name}.toml"
    file.write_text(text)
    return str(file)


def test_the_retention_ladder_is_qualified_at_every_width(hebe, tmp_path):
    code, out = hebe.json("--device", "sim", "qualify", small_copy(tmp_path, "layernorm-retention", 16))
    loads = {}
    for point in out["record"]["points"]:
        for v in [point["baseline"], *point["candidates"]]:
            loads[point["name"], v["name"]] = v["bytes"]["x_ptr"]["loaded"] // (16 * 2 * int(point["name"].split("x")[1]))
    assert {policy: loads["2048x8192", policy] for policy in ("baseline", "G/G", "R/G", "G/R", "R/R")} == {
        "baseline": 3, "G/G": 3, "R/G": 2, "G/R": 2, "R/R": 1}
    assert loads["2048x32768", "S/S"] == 1
    assert code == 0 and out["qualified"]
    eligible = {c["point"] for c in out["record"]["measurement_cases"]["cases"] if c["eligible"]}
    assert "2048x8192" in eligible


needs_tutorials = pytest.mark.skipif(not os.environ.get("HEBE_TRITON_SOURCE"),
                                     reason="HEBE_TRITON_SOURCE is not set: no checkout of Triton's sources with its tutorials")


@needs_tutorials
def test_the_official_layer_norm_is_reintegrated(hebe, tmp_path):
    code, out = hebe.json("--device", "sim", "qualify", small_copy(tmp_path, "layernorm-reintegration", 16))
    assert code == 0 and out["qualified"]
    for v in out["record"]["points"][0]["candidates"]:
        by = {row["argument"]: row for row in v["mechanism"]["by_argument"]}
        assert v["qualified"] and by["X"]["ttgir"]["loads"] == 1
        assert sum(row["ptx"]["loads"] for row in by.values()) == sum(row["sass"]["loads"] for row in by.values()) == 12


def test_without_a_checkout_the_official_kernel_is_asked_for(hebe, monkeypatch):
    hebe.env.pop("HEBE_TRITON_SOURCE", None)
    done = hebe("--device", "sim", "layernorm-reintegration-qualify")
    assert done.returncode == 3 and "--triton-source" in done.stderr


def test_the_toolchain_takes_its_own_ttgir_back(hebe):
    code, out = hebe.json("layernorm-reintegration-probe", "--case", f"{CASES}:case")
    assert code == 0 and out["qualified"], out["record"]["rows"]
    rows = {row["way"]: row for row in out["record"]["rows"]}
    assert rows["compile its own ttgir by path"]["same"] == {"llir": True, "ptx": True, "cubin": True}
    assert rows["compile an edited ttgir by path"]["same"]["cubin"] is False
    assert not rows["compile its own ptx by path"]["possible"]
    assert out["record"]["connections"] == [] and all(p.startswith("triton/") for p in out["record"]["programs"])


def test_recon_tells_what_is_read_twice_and_what_is_not_installed(hebe, tmp_path):
    (tmp_path / "absent.py").write_text(
        "from hebe.case import *\n"
        "def case():\n"
        "    return Case(name='absent', kernel=PackageKernel('no_such_package.ops', 'kernel', sha256='0' * 64), grid=(1,),\n"
        "        arguments={'y': Buffer((4,), 'fp32', 'out')}, tolerance=Tolerance(0, 0))\n")
    file = tmp_path / "recon.json"
    file.write_text(json.dumps({"schema": "hebe.recon.spec/1", "name": "test", "cases": [
        {"name": "twice", "case": f"{CASES}:case"}, {"name": "absent", "case": str(tmp_path / "absent.py"), "group": "others"}]}))
    code, out = hebe.json("--device", "sim", "real-kernel-recon", str(file), "--all-cases")
    assert code == 0, out
    twice, absent = out["record"]["cases"]
    assert absent["refused"]["code"] == "toolchain_unavailable" and "no_such_package" in absent["refused"]["what"]
    opportunity = next(o for o in twice["point"]["baseline"]["mechanism"]["opportunities"] if o["kind"] == "reread")
    assert opportunity["argument"] == "x_ptr" and opportunity["bytes_saved"] == 5 * 256 * 4
    assert any(v["qualified"] for v in twice["point"]["candidates"])
    summary = out["record"]["summary"]
    assert (summary["cases"], summary["not_there"], summary["right"], summary["with_rereads"]) == (2, 1, 1, 1)
    assert shutil.which("nvidia-smi") or out["record"]["provenance"] == "simulated"
