"""hebe receipt over a profile and a placement: what `hebe profile verify` refuses is not vouched for."""

import base64
import hashlib
import json
import os
import shutil

import pytest
from securesystemslib.dsse import Envelope

from test_calibrate import SMALL
from test_profile import ROW
from test_receipt import ForeignSigner, names, sign, verify, written
from test_tune_verify import hebe_canonical, mine, tuned  # noqa: F401 (fixtures)

BYTES_ONLY = "Hebe read these bytes when the receipt was signed. It did not verify what they say."


@pytest.fixture
def keyed(mine):  # noqa: F811
    mine.hebe.key = str(mine.hebe.tmp / "key")
    assert mine.hebe("receipt", "key", mine.hebe.key).returncode == 0
    return mine


def forged(mine, change):  # noqa: F811
    """The sound profile, canonical, with one row changed."""
    profile = json.loads(mine.profile_file.read_text())
    change(profile["rows"][0])
    file = mine.hebe.root / "forged.json"
    file.write_text(hebe_canonical(mine.hebe, profile) + "\n")
    return file


def foreign(hebe, statement, change=lambda s: s):
    made = json.loads(json.dumps(statement))
    change(made)
    envelope = Envelope(json.dumps(made).encode(), "application/vnd.in-toto+json", {})
    envelope.sign(ForeignSigner(hebe.key))
    return written(hebe, envelope)


def test_a_profile_that_its_tunes_do_not_give_is_not_signed(keyed):
    for change in (lambda row: row.update(provenance="measured"), lambda row: row["energy_nj"].update(value=0),
                   lambda row: row["implementation"]["configuration"].update(passes=7), lambda row: row.update(shape="m<=3")):
        file = forged(keyed, change)
        assert keyed.hebe("profile", "verify", str(file)).returncode == 5
        code, out = keyed.hebe.json("receipt", "sign", str(file), "--key", keyed.hebe.key)
        assert code == 5, out
        assert "not signed" in out["refused"]["what"] or out["refused"]["code"] == "bad_schema"
    assert not list(keyed.hebe.root.glob("receipts/*"))


def test_a_receipt_over_such_a_profile_does_not_hold(keyed):
    sound = sign(keyed.hebe, "--dry-run", subject=str(keyed.profile_file))[1]["statement"]
    file = forged(keyed, lambda row: row.update(provenance="measured"))

    def change(s):
        s["subject"][0].update(name="forged.json", digest={"sha256": hashlib.sha256(file.read_bytes()).hexdigest()})
        s["predicate"].update(provenance="measured", claim=s["predicate"]["claim"].replace(" Simulated: nothing was measured.", ""))
    for more in ([], ["--subject", str(file)]):
        code, out = verify(keyed.hebe, foreign(keyed.hebe, sound, change), *more)
        assert code == 5 and set(names(out)[0]) == {"subject"}, out


def test_a_sound_profile_is_signed_as_verified_and_holds_while_its_tune_does(keyed):
    receipt, out = sign(keyed.hebe, subject=str(keyed.profile_file))
    says = out["statement"]["predicate"]
    assert (says["kind"], says["provenance"]) == ("profile", "simulated")
    assert "every row against the tune" in says["claim"] and "nothing was measured" in says["claim"]
    assert any("the samples behind the search's windows" in text for text in says["not_checked"])
    code, out = verify(keyed.hebe, receipt)
    assert code == 0 and out["valid"] and out["complete"], out
    # A receipt from before says that only bytes were read: that is less, and goes on holding.
    old = foreign(keyed.hebe, out["receipts"][0]["statement"],
                  lambda s: s["predicate"].update(claim=BYTES_ONLY + " Simulated: nothing was measured."))
    assert verify(keyed.hebe, old)[0] == 0
    merged = keyed.hebe.root / "merged.json"
    assert keyed.hebe("profile", "merge", str(keyed.profile_file), str(keyed.profile_file), "-o", str(merged)).returncode == 0
    assert verify(keyed.hebe, sign(keyed.hebe, subject=str(merged))[0])[0] == 0
    shutil.rmtree(keyed.hebe.runs()[0])
    code, out = verify(keyed.hebe, receipt)
    assert code == 4 and out["valid"] and not out["complete"], out
    keyed.record_file.unlink()
    code, out = verify(keyed.hebe, receipt)
    assert code == 4 and any("the record" in text for text in out["receipts"][0]["not_checked"]), out
    # As of a tune without its runs: what cannot be verified here is not signed.
    code, out = keyed.hebe.json("receipt", "sign", str(keyed.profile_file), "--key", keyed.hebe.key)
    assert code == 2 and "cannot be verified here, so it is not signed" in out["refused"]["what"], out


def test_a_row_that_names_no_tune_cannot_be_verified_and_is_not_signed(keyed):
    file = keyed.hebe.tmp / "loose.json"
    file.write_text(json.dumps({"schema": "hebe.profile/1", "rows": [dict(ROW, provenance="estimated", evidence={"study": None, "runs": []})]}))
    code, out = keyed.hebe.json("receipt", "sign", str(file), "--key", keyed.hebe.key)
    assert code == 2 and "the row names none" in out["refused"]["what"], out


def test_a_placement_that_nobody_reads_is_not_signed(hebe, tmp_path):
    hebe.key = str(hebe.tmp / "key")
    hebe("receipt", "key", hebe.key)
    file = tmp_path / "placement.json"
    code, out = hebe.json(*SMALL, "--members", "triton", "--out", str(file))
    assert code == 0, out
    receipt, signed = sign(hebe, subject=str(file))
    says = signed["statement"]["predicate"]
    assert (says["kind"], says["provenance"], says["claim"]) == ("file", "simulated", BYTES_ONLY + " Simulated: nothing was measured.")
    assert verify(hebe, receipt, "--subject", str(file))[0] == 0
    out["rows"][0]["energy_nj"]["value"] = 0
    os.chmod(file, 0o644)
    file.write_text(json.dumps(out))
    code, refused = hebe.json("receipt", "sign", str(file), "--key", hebe.key)
    assert code == 5 and "energy" in refused["refused"]["what"], refused


def test_of_a_file_there_is_one_subject_with_one_digest(keyed):
    page = keyed.hebe.root / "page.html"
    page.write_text("hello")
    for subject in (page, keyed.profile_file):
        statement = sign(keyed.hebe, "--dry-run", subject=str(subject))[1]["statement"]
        other = [{"name": "other", "digest": {"sha256": "0" * 64}}]
        for change in (lambda s: s["subject"].extend(other), lambda s: s["subject"][0]["digest"].update(sha512="0" * 128),
                       lambda s: s["subject"][0].update(uri="elsewhere")):
            code, out = verify(keyed.hebe, foreign(keyed.hebe, statement, change), "--subject", str(subject))
            assert code == 5 and names(out) == [["subjects"]], out
        renamed = foreign(keyed.hebe, statement, lambda s: s["subject"][0].update(name="moved.html"))
        assert verify(keyed.hebe, renamed, "--subject", str(subject))[0] == 0


def test_where_only_the_signature_was_checked_it_does_not_say_that_the_receipt_holds(keyed):
    page = keyed.hebe.tmp / "page.html"
    page.write_text("hello")
    receipt, _ = sign(keyed.hebe, subject=str(page))
    code, out = verify(keyed.hebe, receipt)
    assert code == 4 and out["valid"] and not out["complete"] and not out["receipts"][0]["complete"], out
    done = keyed.hebe("receipt", "verify", str(receipt), "--key", f"{keyed.hebe.key}.pub")
    assert done.returncode == 4 and "only the signature was checked" in done.stdout and "holds" not in done.stdout
    code, out = verify(keyed.hebe, receipt, "--subject", str(page))
    assert code == 0 and out["complete"], out


def test_an_envelope_in_the_other_alphabet_and_with_members_of_others_is_read(keyed):
    receipt, _ = sign(keyed.hebe, subject=str(keyed.profile_file))
    envelope = json.loads(receipt.read_text())

    def again(change):
        made = json.loads(json.dumps(envelope))
        change(made)
        return verify(keyed.hebe, written(keyed.hebe, made))

    def url(made):
        for holder, name in ((made, "payload"), (made["signatures"][0], "sig")):
            holder[name] = base64.urlsafe_b64encode(base64.b64decode(holder[name])).decode()
    assert again(url)[0] == 0
    assert again(lambda e: e.update(more={"a": [1]}))[0] == 0
    assert again(lambda e: e["signatures"][0].update(cert="x"))[0] == 0
    code, out = again(lambda e: e["signatures"][0].update(sig="+_" + e["signatures"][0]["sig"][2:]))
    assert code == 5 and names(out) == [["envelope"]]
