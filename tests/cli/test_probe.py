"""hebe probe-meter and probe-response as a user runs them, on the simulated GPU."""

import json
import re

import pytest

METER = ["probe-meter", "--device", "sim", "--set", "n=65536"]
RESPONSE = ["probe-response", "--device", "sim", "--set", "n=65536"]


def files(hebe, kind):
    return sorted(hebe.root.glob(f"qualifications/{kind}/*.json"))


def test_a_healthy_board_is_qualified_and_the_record_verifies(hebe):
    code, out = hebe.json(*METER)
    assert code == 0
    record = out["qualification"]
    assert record["schema"] == "hebe.qualification.meter/1"
    assert record["provenance"] == "simulated" and record["when"] is None
    findings = record["findings"]
    assert findings["primary"] == "sim.samples.total_power"
    assert findings["cross_check"] == "sim.counter.total_energy"
    assert findings["external"] is None
    (file,) = files(hebe, "meter")
    assert file.stem == out["id"]
    code, out = hebe.json("probe-meter", "--verify", out["id"][:12])
    assert code == 0 and out["valid"], out


def test_equal_seeds_give_one_record_and_another_seed_another(hebe):
    ids = [hebe.json(*METER, "--seed", seed)[1]["id"] for seed in ("1", "1", "2")]
    assert ids[0] == ids[1] != ids[2]
    assert len(files(hebe, "meter")) == 2


def test_the_table_names_source_period_verdict_and_reason(hebe):
    done = hebe(*METER, "-q")
    assert done.returncode == 0, done.stderr
    assert re.search(r"sim\.samples\.total_power +mW +20\.0 .* primary", done.stdout)
    assert re.search(r"sim\.field\.power_average .* rejected +one_second_average", done.stdout)
    assert "qualified (simulated)" in done.stdout


def test_without_a_cross_check_the_command_says_1_and_keeps_the_finding(hebe):
    code, out = hebe.json(*METER, "--sim-fault", "counter_frozen")
    assert code == 1
    findings = out["qualification"]["findings"]
    assert not findings["qualified"] and "frozen" in findings["refusal"]
    assert len(files(hebe, "meter")) == 1


@pytest.mark.parametrize("fault,code", [("foreign_process", "gpu_busy"), ("mig", "mig_enabled"),
                                        ("foreign_process@20", "gpu_busy"), ("lease_removed@20", "lease_lost"),
                                        ("nvml_lost@20", "device_error"), ("wrong_output", "wrong_output")])
@pytest.mark.parametrize("command", [METER, RESPONSE])
def test_an_unfit_board_is_refused_as_a_job_is_and_nothing_is_kept(hebe, command, fault, code):
    status, out = hebe.json(*command, "--sim-fault", fault)
    assert out["refused"]["code"] == code, out
    assert status == (1 if code == "wrong_output" else 3)
    assert files(hebe, "meter") == files(hebe, "response") == []


def test_dry_run_says_what_would_be_read_and_writes_nothing(hebe):
    for command in (METER, RESPONSE):
        code, out = hebe.json(*command, "--dry-run")
        assert code == 0 and 20 < out["estimated_s"] < 120, out
    assert not hebe.root.exists()


def test_a_response_has_delay_window_and_a_plot_and_verifies(hebe):
    code, out = hebe.json(*RESPONSE)
    assert code == 0
    findings = out["response"]["findings"]
    buffer = findings["sources"][0]
    assert abs(buffer["fit"]["delay_s"] - 0.012) < 0.001
    assert abs(buffer["fit"]["window_s"] - 0.030) < 0.001
    assert findings["pre_roll_s"] >= 5 * 0.0375
    with open(out["plot"]) as f:
        svg = f.read()
    assert svg.startswith("<svg") and "<script" not in svg and "simulated" in svg
    code, out = hebe.json("probe-response", "--verify", "")
    assert code == 0 and out["valid"], out


def test_a_changed_byte_anywhere_is_found(hebe):
    hebe.json(*METER)
    (record,) = files(hebe, "meter")
    (readings,) = hebe.root.glob("artifacts/*.parquet")
    for file, at in ((record, 3000), (readings, 5000)):
        sound = file.read_bytes()
        file.chmod(0o644)
        broken = bytearray(sound)
        broken[at] ^= 1
        file.write_bytes(bytes(broken))
        status, out = hebe.json("probe-meter", "--verify", "")
        assert status == 5, out
        file.write_bytes(sound)
    assert hebe.json("probe-meter", "--verify", "")[0] == 0


def test_unknown_boards_and_records_are_refused(hebe):
    status, out = hebe.json("probe-meter", "--device", "GPU-00")
    assert status == 3 and out["refused"]["code"] in ("no_device", "driver_unavailable")
    status, out = hebe.json("probe-meter", "--verify", "ffff")
    assert status == 2 and out["refused"]["code"] == "not_found"


def test_an_external_log_that_fits_nothing_is_said_and_changes_no_verdict(hebe, tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("time_s,power_w\n" + "".join(f"{i * 0.1:.1f},{100 + i % 3}\n" for i in range(600)))
    code, out = hebe.json(*METER, "--external", str(log))
    assert code == 0, out
    external = out["qualification"]["findings"]["external"]
    assert external["aligned"] is False and external["refused"]["what"]
    assert hebe.json("probe-meter", "--verify", "")[0] == 0


def test_of_several_boards_each_has_its_own_record_and_lease(hebe):
    code, out = hebe.json("probe-meter", "--device", "sim:0,sim:1,sim:2", "--set", "n=65536")
    assert code == out["exit"] == 0
    boards = {d["qualification"]["board"]["uuid"] for d in out["devices"]}
    assert len(boards) == len(files(hebe, "meter")) == len(list(hebe.root.glob("leases/*.lease"))) == 3
    assert boards == {d["uuid"] for d in out["devices"]}
    assert [d["device"] for d in out["devices"]] == ["sim:0", "sim:1", "sim:2"]
    code, out = hebe.json("probe-meter", "--verify", "")
    assert code == 0 and out["valid"] and len(out["records"]) == 3


def test_several_boards_are_told_each_with_its_table_and_all_at_the_end(hebe):
    done = hebe("probe-meter", "--device", "sim:3,sim:4", "--set", "n=65536", "-q")
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"sim\.samples\.total_power +mW .* primary", done.stdout)) == 2
    assert len(re.findall(r"^Hebe simulated GPU .*: qualified, [0-9a-f]{64}$", done.stdout, re.M)) == 2


@pytest.mark.parametrize("devices", ["GPU-00,sim:1", "sim:1,GPU-00", "sim:1,sim:99999"])
def test_a_board_that_is_refused_hides_no_other_and_the_worst_code_is_the_commands(hebe, devices):
    code, out = hebe.json("probe-meter", "--device", devices, "--set", "n=65536")
    assert code == out["exit"] == 3
    by = {d["device"]: d for d in out["devices"]}
    assert by["sim:1"]["exit"] == 0 and by["sim:1"]["qualification"]["findings"]["qualified"]
    (other,) = set(by) - {"sim:1"}
    assert by[other]["exit"] == 3 and by[other]["refused"]["code"] in ("no_device", "driver_unavailable")
    assert by[other]["refused"]["not_written"] == "the qualification"
    assert len(files(hebe, "meter")) == 1


def test_not_qualified_is_less_bad_than_unfit(hebe):
    arguments = ["probe-meter", "--set", "n=65536", "--sim-fault", "counter_frozen", "--device"]
    code, out = hebe.json(*arguments, "sim:1,sim:2")
    assert code == 1 and [d["exit"] for d in out["devices"]] == [1, 1]
    assert len(files(hebe, "meter")) == 2
    assert hebe.json(*arguments, "sim:1,GPU-00")[0] == 3


def test_an_empty_or_repeated_place_is_a_usage_error(hebe):
    for devices in ("sim:1,", ",sim:1", "sim:1,,sim:2", "sim:1,sim:2,sim:1"):
        code, out = hebe.json("probe-meter", "--device", devices)
        assert code == 2 and out["refused"]["code"] == "bad_argument", out
    assert not hebe.root.exists()


def test_an_external_meter_watches_one_board(hebe, tmp_path):
    code, out = hebe.json("probe-meter", "--device", "sim:1,sim:2", "--external", str(tmp_path / "log.csv"))
    assert code == 2 and out["refused"]["where"] == "--external"
    assert not hebe.root.exists()


def test_dry_run_and_if_needed_speak_of_every_board(hebe):
    code, out = hebe.json("probe-meter", "--device", "sim:1,GPU-00,sim:2", "--dry-run")
    assert code == out["exit"] == 3
    assert [("sources" in d, "refused" in d) for d in out["devices"]] == [(True, False), (False, True), (True, False)]
    assert out["estimated_s"] == pytest.approx(sum(d.get("estimated_s", 0) for d in out["devices"]))
    code, out = hebe.json("probe-meter", "--device", "sim:1,sim:2", "--if-needed")
    assert code == 0 and all("simulated" in d["not_needed"] for d in out["devices"])
    assert files(hebe, "meter") == []
    code, out = hebe.json("probe-meter", "--device", "sim:1", "--if-needed")  # one: its object alone
    assert code == 0 and "simulated" in out["not_needed"]


def test_without_a_device_all_are_meant_and_where_there_is_none_the_simulated_one(hebe):
    code, out = hebe.json("probe-meter", "--dry-run")
    boards = out["devices"] if "devices" in out else [out]
    assert code == 0 and all(b["uuid"] for b in boards)
    again, said = hebe.json("probe-meter", "--device", "all", "--dry-run")
    assert (again, said) == (code, out)


def test_a_run_follows_the_boards_response_record_and_says_which(hebe):
    run = ["run-aa", "--device", "sim", "--protocol-tier", "smoke-v1", "--pairs", "2", "--set", "n=65536"]

    def acquisition(out):
        with open(out["directory"] + "/windows.jsonl") as f:
            return json.loads(f.readline()), [json.loads(line) for line in f]

    before, _ = acquisition(hebe.json(*run)[1])
    assert "never probed" in before["meter"]["response"]["unavailable"]
    response = hebe.json(*RESPONSE)[1]
    out = hebe.json(*run)[1]
    after, windows = acquisition(out)
    followed = after["meter"]["response"]
    found = response["response"]["findings"]
    assert followed["id"] == response["id"] and followed["pre_roll_s"] == found["pre_roll_s"]
    assert abs(after["meter"]["step_lag_s"] - found["lag_s"]) <= 3 * after["meter"]["sample_period_s"]
    assert all(w["pre_roll_s"] >= found["pre_roll_s"] for w in windows)
    code, said = hebe.json("run-verify", out["directory"])
    assert code == 0 and any(response["id"] in text for text in said["passed"]), said
    (record,) = files(hebe, "response")
    record.rename(record.with_suffix(".away"))
    code, said = hebe.json("run-verify", out["directory"])
    assert code == 0 and any(response["id"] in text for text in said["not_checked"]), said
