"""hebe profile: show, merge, diff, expire, on files alone."""

import copy
import json

import pytest

AMOUNT = {"value": 1000, "low": 990.5, "high": 1010.25}
ROW = {"operation": "matmul", "shape": "m<=256,n=4096", "dtype": "bf16", "board": "NVIDIA H200",
       "implementation": {"name": "cublaslt", "configuration": {"algorithm": 3}, "artifact_sha256": None},
       "energy_nj": AMOUNT, "time_ns": AMOUNT, "meter": {"name": "nvml.samples.total_power", "status": "primary"},
       "provenance": "measured", "idle": "context_open",
       "platform": {"board_uuid": None, "driver": "580", "os": "Debian 12", "hebe": "0.1.0", "triton": None},
       "date": "2026-11-30T04:20:00Z", "evidence": {"study": "s", "runs": []}, "baseline": None, "verdict": None, "downgraded": []}


@pytest.fixture
def write(tmp_path):
    def file(name, *changes):
        rows = []
        for change in changes or ({},):
            row = copy.deepcopy(ROW)
            row.update(change)
            rows.append(row)
        path = tmp_path / name
        path.write_text(json.dumps({"schema": "hebe.profile/1", "rows": rows}))
        return path
    return file


def test_show_says_how_the_joules_were_obtained(hebe, write):
    shown = hebe("profile", "show", str(write("a.json")))
    assert shown.returncode == 0, shown.stderr
    for words in ("matmul m<=256,n=4096 bf16 on NVIDIA H200", "1000 nJ [990.5, 1010.2] beyond idle (measured, idle context_open)",
                  "meter nvml.samples.total_power (primary), driver 580", "rests on study s"):
        assert words in shown.stdout
    code, out = hebe.json("profile", "show", str(write("a.json")))
    assert (code, out["profiles"][0]["profile"]["rows"]) == (0, [ROW])


def test_merge_writes_one_profile_and_lists_conflicts(hebe, write, tmp_path):
    old = write("old.json", {"date": "2026-01-01T00:00:00Z"}, {"shape": "m<=1,n=4096"})
    new, out = write("new.json"), tmp_path / "out.json"
    code, merged = hebe.json("profile", "merge", str(old), str(new), "-o", str(out))
    assert code == 0 and json.loads(out.read_text()) == merged["profile"]
    assert [c["kept_from"] for c in merged["conflicts"]] == [str(new)]
    out.unlink()
    assert hebe("profile", "merge", str(old), str(new), "-o", str(out), "--dry-run").returncode == 0
    assert not out.exists()


def test_diff_is_1_where_they_differ(hebe, write):
    a, b = write("a.json"), write("b.json", {"energy_nj": {"value": 500, "low": 490, "high": 510}})
    assert hebe("profile", "diff", str(a), str(a)).returncode == 0
    code, out = hebe.json("profile", "diff", str(a), str(b))
    assert (code, out["differences"][0]["energy_ratio"], out["differences"][0]["intervals_apart"]) == (1, 0.5, True)
    assert hebe("profile", "diff", str(a)).returncode == 2


def test_expire_downgrades_and_rejects_by_name(hebe, write, tmp_path):
    a, out = str(write("a.json")), tmp_path / "out.json"
    assert hebe("profile", "expire", a, "--board", "NVIDIA H200", "--driver", "580").returncode == 0
    code, got = hebe.json("profile", "expire", a, "--driver", "581", "-o", str(out))
    assert (code, got["expired"][0]["outcome"], got["expired"][0]["reasons"]) == (1, "downgraded", ["driver was 580 and is 581"])
    assert json.loads(out.read_text())["rows"][0]["provenance"] == "estimated"
    out.unlink()
    done = hebe("profile", "expire", a, "--meter", "nvml.samples.total_power=frozen", "-o", str(out))
    assert done.returncode == 3 and "rejected" in done.stdout and "frozen" in done.stdout  # its reason, though no row is left
    assert f"not written: {out}" in done.stderr and not out.exists()
    assert hebe("profile", "expire", a, "--meter", "nvml.samples.total_power=frozen").returncode == 1


@pytest.mark.parametrize("action, option", [("show", ("-o", "x.json")), ("diff", ("-o", "x.json")), ("merge", ("--board", "X")),
                                            ("show", ("--days", "3")), ("verify", ("--driver", "580"))])
def test_an_option_that_the_action_does_not_read_is_refused(hebe, write, tmp_path, action, option):
    files = [str(write("a.json")), str(write("b.json"))][:2 if action in ("diff", "merge") else 1]
    done = hebe("profile", action, *files, *option, cwd=tmp_path)
    assert done.returncode == 2 and "does nothing with" in done.stderr, done.stderr
    assert not (tmp_path / "x.json").exists()


def test_what_is_no_profile_is_refused(hebe, write, tmp_path):
    zero = write("zero.json", {"energy_nj": {"value": 0, "low": 0, "high": 0}})
    assert hebe("profile", "show", str(zero)).returncode == 5
    assert hebe("profile", "show", str(write("twice.json", {}, {}))).returncode == 5
    assert hebe("profile", "show", str(tmp_path / "none.json")).returncode == 2
    assert hebe("profile", "melt", str(zero)).returncode == 2


@pytest.mark.parametrize("option", ["--board", "--board-uuid", "--driver", "--os", "--hebe-version", "--triton-version", "--date"])
def test_an_empty_value_to_hold_rows_against_is_no_value_left_out(hebe, write, option):
    """As "$(a command that failed)" leaves it."""
    done = hebe("profile", "expire", str(write("a.json")), option, "")
    assert done.returncode == 2 and f"{option} is empty" in done.stderr, done.stderr


def test_rows_held_against_nothing_do_not_hold(hebe, write):
    done = hebe("profile", "expire", str(write("a.json")))
    assert done.returncode == 2 and "--here" in done.stderr and "hold" not in done.stdout


def test_expire_here_reads_the_machine(hebe, write):
    facts = {f["name"]: f.get("value") for f in hebe.json("--device", "sim", "doctor")[1]["facts"]}
    own = {"board": facts["device.name"], "provenance": "simulated",
           "platform": {"board_uuid": facts["device.uuid"], "driver": "simulated", "os": facts["host.distribution"], "hebe": facts["hebe.version"],
                        "triton": None}}
    (meter,) = [r["meter"] for r in json.loads(write("m.json").read_text())["rows"]]
    code, got = hebe.json("--device", "sim", "profile", "expire", str(write("own.json", own)), "--here")
    reasons = [r for e in got["expired"] for r in e["reasons"]]
    assert all(r.startswith("meter ") for r in reasons), got  # the simulated board's may have another name
    if not reasons:
        assert code == 0 and meter
    code, got = hebe.json("--device", "sim", "profile", "expire", str(write("a.json")), "--here")
    assert code == 1 and got["expired"][0]["outcome"] == "rejected" and facts["device.name"] in got["expired"][0]["reasons"][0]
    other = copy.deepcopy(own)
    other["platform"]["driver"] = "580"
    code, got = hebe.json("--device", "sim", "profile", "expire", str(write("d.json", other)), "--here", "--meter", f"{meter['name']}=primary")
    assert code == 1 and got["expired"][0]["reasons"] == ["driver was 580 and is simulated"], got
    code, got = hebe.json("--device", "sim", "profile", "expire", str(write("e.json", other)), "--here", "--meter", f"{meter['name']}=primary",
                          "--driver", "580")
    assert code == 0, got


def test_what_a_row_does_not_say_and_what_was_downgraded_before_does_not_hold(hebe, write):
    code, got = hebe.json("profile", "expire", str(write("a.json")), "--board-uuid", "GPU-1")
    assert code == 1 and got["expired"][0]["reasons"] == ["it does not say its board's UUID"]
    old = write("old.json", {"provenance": "estimated", "downgraded": ["driver was 579 and is 580"]})
    code, got = hebe.json("profile", "expire", str(old), "--driver", "580")
    assert code == 1 and got["expired"][0]["reasons"] == ["driver was 579 and is 580"]


def test_one_operation_has_its_dimensions_in_one_order(hebe, write):
    """Dispatch is asked by place: of two orders it would take neither, and refuse the whole profile."""
    a, b = write("a.json"), write("b.json", {"shape": "n=4096,m<=256"})
    code, out = hebe.json("profile", "merge", str(a), str(b))
    assert code == 5 and "n,m" in out["refused"]["what"] and "m,n" in out["refused"]["what"], out
    both = write("both.json", {}, {"shape": "n=4096,m<=256"})
    assert hebe("profile", "show", str(both)).returncode == 5
    assert hebe("profile", "show", str(write("other.json", {}, {"shape": "n=4096,m<=256", "dtype": "fp16"}))).returncode == 0


def test_of_rows_that_are_equally_good_the_cheaper_is_kept_as_often_as_the_other(hebe, write):
    dear = write("dear.json", *[{"shape": f"m<=256,n={n}"} for n in range(1, 65)])
    cheap = write("cheap.json", *[{"shape": f"m<=256,n={n}", "energy_nj": {"value": 800, "low": 790.5, "high": 810.25}} for n in range(1, 65)])
    code, out = hebe.json("profile", "merge", str(dear), str(cheap))
    kept = [r["energy_nj"]["value"] for r in out["profile"]["rows"]].count(800)
    assert code == 0 and 16 < kept < 48, kept


@pytest.mark.parametrize("change", [{"operation": "mat\nmul"}, {"dtype": "bf16\x1b[2J"}, {"board": "a\tb"},
                                    {"implementation": {**ROW["implementation"], "name": "cublas\rlt"}}])
def test_a_control_character_in_a_key_or_name_is_refused(hebe, write, change):
    done = hebe("profile", "show", str(write("a.json", change)))
    assert done.returncode == 5 and "control character" in done.stderr, done.stderr
