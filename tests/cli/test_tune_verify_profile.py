"""What rests on a tune, looked at again: its rows in a profile, voided shapes, receipts."""

import hashlib
import json
import os
import pathlib
import shutil

from test_tune import LISTS, TWO, tune
from test_tune_verify import CANDIDATE, changed, hebe_canonical, mine, told, tuned  # noqa: F401 (fixtures)


def test_a_profile_that_is_not_the_one_its_name_says_is_named(mine):
    file = mine.profile_file
    os.chmod(file, 0o644)
    file.write_text(file.read_text() + " ")
    mine.told("its digest begins with")
    code, out = mine.hebe.json("profile", "verify", str(file))
    assert code == 5
    told(out, "its digest begins with")


def test_profile_verify_goes_down_to_the_sealed_runs(mine):
    code, out = mine.hebe.json("profile", "verify", str(mine.profile_file))
    assert code == 0 and out["valid"] and out["complete"], out
    assert [part for part in out["parts"] if part["what"].startswith("run ")]
    done = mine.hebe("profile", "verify", str(mine.profile_file))
    assert done.returncode == 0 and done.stdout.endswith("verified\n")
    shutil.rmtree(mine.hebe.runs()[0])
    code, out = mine.hebe.json("profile", "verify", str(mine.profile_file))
    assert code == 4 and not out["complete"]
    mine.record_file.unlink()
    code, out = mine.hebe.json("profile", "verify", str(mine.profile_file))
    assert code == 4 and "the record: not in this data root" in json.dumps(out)
    assert mine.hebe("profile", "verify", "/nowhere").returncode == 2


def test_a_downgraded_row_still_verifies_and_a_removed_reason_does_not(mine):
    kept = mine.hebe.root / "later.json"
    done = mine.hebe("profile", "expire", str(mine.profile_file), "--driver", "later", "-o", str(kept))
    assert done.returncode == 1, done.stderr
    code, out = mine.hebe.json("profile", "verify", str(kept))
    assert code == 0, json.dumps(out)
    profile = json.loads(kept.read_text())
    assert profile["rows"][0]["downgraded"]
    profile["rows"][0]["platform"]["driver"] = "later"
    os.chmod(kept, 0o644)
    kept.write_text(hebe_canonical(mine.hebe, profile) + "\n")
    code, out = mine.hebe.json("profile", "verify", str(kept))
    assert code == 5
    told(out, "platform/driver")


def test_without_its_profile_a_tune_is_incomplete(mine):
    mine.profile_file.unlink()
    code, out = mine.verify()
    assert code == 4 and "the profile with this tune's rows: not in this data root" in json.dumps(out)


def test_a_voided_shape_verifies_and_must_not_gain_a_cost(hebe):
    code, out = tune(hebe, shapes=TWO, backends=LISTS, simulated={"faults": {"wide": ["samples_frozen@8"]}})
    assert code == 3, out
    code, report = hebe.json("tune", "--verify", "")
    assert code == 0 and report["valid"], report
    assert any("voided" in text for part in report["parts"] for text in part["passed"])
    record = out["tune"]
    record["shapes"][0]["candidates"][0]["cost"] = record["shapes"][1]["candidates"][0]["cost"]
    text = hebe_canonical(hebe, record)
    (hebe.root / "tunes" / f"{out['id']}.json").unlink()
    (hebe.root / "tunes" / f"{hashlib.sha256(text.encode()).hexdigest()}.json").write_text(text + "\n")
    code, report = hebe.json("tune", "--verify", "")
    assert code == 5
    told(report, "wide/candidates[0]/cost", "recomputed null")


def test_a_redacted_tune_verifies(hebe):
    code, out = tune(hebe, "--redact", search_window_s=1, search_longest_window_s=1)
    assert code == 0, json.dumps(out)
    code, report = hebe.json("tune", "--verify", "")
    assert code == 0, report
    plain = hebe.json("--device", "sim", "doctor")[1]
    (uuid,) = {f["value"] for f in plain["facts"] if f["name"] == "device.uuid"}
    for file in (out["record"], out["profile"], *(run / "environment.json" for run in hebe.runs())):
        text = pathlib.Path(file).read_text()
        assert uuid not in text and "sha256:" + hashlib.sha256(uuid.encode()).hexdigest()[:16] in text
    # The board that it was measured on is still told from another.
    for board, code in ((uuid, 0), ("GPU-another", 1)):
        assert hebe("profile", "expire", out["profile"], "--board-uuid", board).returncode == code


def test_a_receipt_over_a_tune_rests_on_its_runs_and_holds_while_they_do(mine):
    key = str(mine.hebe.tmp / "key")
    mine.hebe("receipt", "key", key)

    def verify(file, *more):
        code, out = mine.hebe.json("receipt", "verify", file, "--key", f"{key}.pub", *more)
        return code, [(p["name"], p["code"]) for p in out["receipts"][0]["problems"]], out

    code, out = mine.hebe.json("receipt", "sign", mine.id[:20], "--key", key)
    assert code == 0, out
    statement, receipt = out["statement"], out["receipt"]
    says = statement["predicate"]
    record = mine.record()
    assert (says["kind"], says["provenance"], says["qualified"], says["board"]) == ("tune", "simulated", False, record["board"]["name"])
    assert "each finalist's run from its samples" in says["claim"] and "nothing was measured" in says["claim"]
    digests = {s["name"]: s["digest"]["sha256"] for s in statement["subject"]}
    assert digests[f"tunes/{mine.id}.json"] == hashlib.sha256(mine.record_file.read_bytes()).hexdigest()
    assert set(digests.values()) >= {r["seal"] for r in record["shapes"][0]["finalists"]["runs"]}
    assert verify(receipt)[:2] == (0, [])
    assert verify(receipt, "--subject", str(mine.record_file))[:2] == (0, [])
    # The same by path; and a record that was changed, with everything made to fit, is not signed.
    assert mine.hebe.json("receipt", "sign", str(mine.record_file), "--key", key, "--dry-run")[1]["statement"]["predicate"]["kind"] == "tune"
    (run,) = mine.hebe.runs()[:1]
    text = (run / "plan.json").read_bytes()
    os.chmod(run / "plan.json", 0o644)
    (run / "plan.json").write_bytes(text.replace(b'"pairs":6', b'"pairs":7'))
    assert verify(receipt)[:2] == (5, [("subject", "digest_mismatch")])
    (run / "plan.json").write_bytes(text)
    mine.store(changed(record, (*CANDIDATE, "cost", "energy_nj", "value"), lambda v: v * 1.001))
    code, out = mine.hebe.json("receipt", "sign", mine.id, "--key", key)
    assert code == 5 and "the tune does not verify, so it is not signed" in out["refused"]["what"]
    assert verify(receipt, "--subject", str(mine.record_file))[:2] == (5, [("subject digest", "digest_mismatch")])
    mine.store(record)
    shutil.rmtree(run)
    code, out = mine.hebe.json("receipt", "sign", mine.id, "--key", key)
    assert code == 2 and "cannot be verified here" in out["refused"]["what"]
