"""hebe receipt, with another implementation of DSSE (securesystemslib) on the other side."""

import base64
import hashlib
import json
import os
import pathlib
import shutil
import subprocess

import pytest
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import Signature, SSlibKey

# Its pure-Python Ed25519: a signer of securesystemslib's own would need another package.
from securesystemslib._vendor.ed25519 import ed25519

from test_study import at, done, qualified  # noqa: F401 (fixtures)

TYPE = "application/vnd.in-toto+json"


def der_of(file):
    text = pathlib.Path(file).read_text()
    return base64.b64decode("".join(line for line in text.splitlines() if not line.startswith("-----")))


def id_of(public):
    return hashlib.sha256(der_of(public)).hexdigest()


def foreign_key(public):
    """The raw key is the last 32 bytes of an Ed25519 SubjectPublicKeyInfo."""
    return SSlibKey(id_of(public), "ed25519", "ed25519", {"public": der_of(public)[-32:].hex()})


class ForeignSigner:
    def __init__(self, private, keyid=None):
        self.secret = der_of(private)[-32:]
        self.public = ed25519.publickey_unsafe(self.secret)
        self.keyid = id_of(f"{private}.pub") if keyid is None else keyid

    def sign(self, payload):
        return Signature(self.keyid, ed25519.signature_unsafe(payload, self.secret, self.public).hex())


@pytest.fixture
def copy(hebe, sealed):
    """A data root with one simulated run, and a key beside it."""
    shutil.copytree(sealed.parents[4], hebe.root)
    hebe.key = str(hebe.tmp / "key")
    assert hebe("receipt", "key", hebe.key).returncode == 0
    hebe.run = sealed.name
    return hebe


def sign(hebe, *options, subject=None):
    code, out = hebe.json("receipt", "sign", subject or hebe.run, "--key", hebe.key, *options)
    assert code == 0, out
    return out["receipt"] and pathlib.Path(out["receipt"]), out


def verify(hebe, receipt, *options, key=None):
    return hebe.json("receipt", "verify", str(receipt), "--key", key or f"{hebe.key}.pub", *options)


def names(out):
    return [[p["name"] for p in receipt["problems"]] for receipt in out["receipts"]]


def envelope_in(file):
    return json.loads(pathlib.Path(file).read_text())


def written(hebe, *envelopes):
    file = hebe.tmp / f"made-{len(list(hebe.tmp.glob('made-*')))}.jsonl"
    file.write_text("".join(json.dumps(e.to_dict() if isinstance(e, Envelope) else e) + "\n" for e in envelopes))
    return file


def test_a_receipt_of_a_run_is_verified_by_another_implementation(copy):
    file, out = sign(copy)
    text = file.read_bytes()
    assert text.count(b"\n") == 1 and text.endswith(b"\n")
    assert file.parent == copy.root / "receipts" and file.name == hashlib.sha256(text[:-1]).hexdigest() + ".dsse.jsonl"
    assert os.stat(file).st_mode & 0o777 == 0o444
    envelope = Envelope.from_dict(envelope_in(file))
    key = foreign_key(f"{copy.key}.pub")
    assert list(envelope.verify([key], 1)) == [out["key"]] == [key.keyid]
    assert envelope.payload_type == TYPE and json.loads(envelope.payload) == out["statement"]
    directory = next(copy.root.glob(f"runs/*/*/*/{copy.run}"))
    assert out["statement"]["subject"] == [{"name": copy.run, "digest": {
        "sha256": hashlib.sha256((directory / "manifest.json").read_bytes()).hexdigest()}}]
    says = out["statement"]["predicate"]
    assert (says["schema"], says["kind"], says["provenance"], says["qualified"]) == ("hebe.receipt/1", "run", "simulated", False)
    envelope.payload = envelope.payload.replace(b"simulated", b"measured!")
    with pytest.raises(VerificationError):
        envelope.verify([key], 1)
    code, report = verify(copy, file)
    assert code == 0 and report["valid"] and report["receipts"][0]["not_checked"] == []
    assert "the receipt holds" in copy("receipt", "verify", file.name[:20], "--key", f"{copy.key}.pub").stdout


def test_an_envelope_of_another_implementation_is_verified_by_hebe(copy):
    _, out = sign(copy, "--dry-run")
    payload = json.dumps(out["statement"], indent=1).encode()  # other bytes of the same statement
    envelope = Envelope(payload, TYPE, {})
    envelope.sign(ForeignSigner(copy.key))
    code, report = verify(copy, written(copy, envelope))
    assert code == 0, report
    nameless = Envelope(payload, TYPE, {})
    nameless.sign(ForeignSigner(copy.key, keyid=""))
    assert verify(copy, written(copy, nameless))[0] == 0


def test_other_signatures_beside_ours_do_not_matter(copy):
    file, _ = sign(copy)
    other = str(copy.tmp / "other")
    copy("receipt", "key", other)
    envelope = Envelope.from_dict(envelope_in(file))
    envelope.sign(ForeignSigner(other))
    both = written(copy, envelope)
    assert verify(copy, both)[0] == 0 and verify(copy, both, key=f"{other}.pub")[0] == 0
    envelope.signatures["unknown"] = Signature("unknown", "00" * 70)
    assert verify(copy, written(copy, envelope))[0] == 0
    del envelope.signatures[id_of(f"{copy.key}.pub")]
    code, out = verify(copy, written(copy, envelope))
    assert code == 5 and names(out) == [["wrong key"]]


def test_several_receipts_a_line_each(copy):
    first, _ = sign(copy)
    page = copy.tmp / "page.html"
    page.write_text("hello")
    second, out = sign(copy, subject=str(page))
    assert out["statement"]["predicate"]["kind"] == "file" and out["statement"]["predicate"]["provenance"] is None
    file = copy.tmp / "all.jsonl"
    file.write_bytes(first.read_bytes() + second.read_bytes())
    code, out = verify(copy, file)
    assert code == 4 and [(r["line"], r["complete"]) for r in out["receipts"]] == [(1, True), (2, False)]
    assert "page.html is not in this data root" in out["receipts"][1]["not_checked"][0]
    file.write_bytes(first.read_bytes() + second.read_bytes().replace(b'"payload":"e', b'"payload":"f'))
    code, out = verify(copy, file)
    assert code == 5 and names(out) == [[], ["signature"]]
    done = copy("receipt", "verify", str(file), "--key", f"{copy.key}.pub")
    assert done.returncode == 5 and "BAD          signature: these are not the bytes that were signed" in done.stdout


def test_everything_that_can_be_wrong_has_its_name(copy):
    file, signed = sign(copy)
    statement = signed["statement"]

    def receipt(change=lambda s: s, payload_type=TYPE):
        made = json.loads(json.dumps(statement))
        change(made)
        envelope = Envelope(json.dumps(made).encode(), payload_type, {})
        envelope.sign(ForeignSigner(copy.key))
        return written(copy, envelope)

    def says(**more):
        return receipt(lambda s: s["predicate"].update(more))

    for made, name, refusal, words in [
        (receipt(payload_type="application/json"), "payload type", "bad_schema", "application/json"),
        (says(expires="2020-01-01T00:00:00Z"), "expired", "receipt_expired", "valid until 2020-01-01T00:00:00Z, now it is"),
        (says(schema="hebe.receipt/2"), "predicate", "bad_schema", "hebe.receipt/2"),
        (says(verdict="higher"), "verdict", "analysis_mismatch", "higher"),
        (says(qualified=True), "qualified", "analysis_mismatch", "true"),
        (says(provenance="measured"), "downgraded provenance", "analysis_mismatch", 'says "measured", its subject "simulated"'),
    ]:
        code, out = verify(copy, made)
        assert code == 5 and names(out) == [[name]], (name, out)
        (problem,) = out["receipts"][0]["problems"]
        assert words in problem["what"] and (problem["code"], problem["exit"]) == (refusal, 5)
    other = str(copy.tmp / "other")
    copy("receipt", "key", other)
    code, out = verify(copy, file, key=f"{other}.pub")
    (problem,) = out["receipts"][0]["problems"]
    assert code == 5 and names(out) == [["wrong key"]] and problem["code"] == "wrong_key"
    assert id_of(f"{other}.pub") in problem["what"] and signed["key"] in problem["what"]
    line = copy.tmp / "flipped.jsonl"
    line.write_bytes(file.read_bytes().replace(b'"payload":"e', b'"payload":"f'))
    code, out = verify(copy, line)
    assert code == 5 and names(out) == [["signature"]] and out["receipts"][0]["problems"][0]["code"] == "digest_mismatch"


def test_a_changed_subject_is_named_and_is_not_signed(copy):
    file, _ = sign(copy)
    run = next(copy.root.glob(f"runs/*/*/*/{copy.run}"))
    windows = run / "windows.jsonl"
    os.chmod(windows, 0o644)
    data = bytearray(windows.read_bytes())
    data[200] ^= 1
    windows.write_bytes(data)
    code, out = verify(copy, file)
    assert code == 5 and names(out) == [["subject"]]
    code, out = copy.json("receipt", "sign", copy.run, "--key", copy.key)
    assert code == 5 and "does not verify, so it is not signed" in out["refused"]["what"]
    assert len(list((copy.root / "receipts").iterdir())) == 1
    shutil.rmtree(run)
    code, out = verify(copy, file)
    assert code == 4 and "not in this data root" in out["receipts"][0]["not_checked"][0]
    assert verify(copy, file, "--subject", str(run))[0] == 2


def test_keys_that_others_can_read_or_of_another_kind_are_refused(copy):
    secret = pathlib.Path(copy.key).read_text().splitlines()[1]

    def refused(code, *words, key=copy.key):
        done = copy("receipt", "sign", copy.run, "--key", key)
        assert done.returncode == code, done.stderr
        for word in words:
            assert word in done.stderr
        assert secret not in done.stderr + done.stdout and not list(copy.root.glob("receipts/*"))

    os.chmod(copy.key, 0o640)
    refused(3, "its mode is 0640", f"chmod 600 {copy.key}")
    os.chmod(copy.key, 0o600)
    link = copy.tmp / "link"
    link.symlink_to(copy.key)
    refused(3, "symbolic link", key=str(link))
    refused(2, "public key, a private one is needed", key=f"{copy.key}.pub")
    refused(2, "no such key file", key="/nowhere")
    if shutil.which("openssl"):
        for name, options in (("RSA", ["RSA", "-pkeyopt", "rsa_keygen_bits:2048"]),
                              ("EC", ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"])):
            subprocess.run(["openssl", "genpkey", "-algorithm", *options, "-out", str(copy.tmp / name)], check=True, capture_output=True)
            os.chmod(copy.tmp / name, 0o600)
            refused(2, f"its key is {name}", key=str(copy.tmp / name))
    file, _ = sign(copy)
    code, out = verify(copy, file, key=copy.key)
    assert code == 2 and "public one is needed" in out["refused"]["what"]


def test_nothing_is_written_over(copy):
    key = pathlib.Path(copy.key).read_bytes()
    assert copy("receipt", "key", copy.key).returncode == 2 and pathlib.Path(copy.key).read_bytes() == key
    out = copy.tmp / "out.jsonl"
    assert sign(copy, "--out", str(out))[0] == out and verify(copy, out)[0] == 0
    before = out.read_bytes()
    code, refused = copy.json("receipt", "sign", copy.run, "--key", copy.key, "--out", str(out))
    assert code == 2 and refused["refused"]["code"] == "already_exists" and out.read_bytes() == before
    assert not list(copy.root.glob("receipts/*"))
    assert copy.json("receipt", "sign", copy.run, "--key", copy.key, "--dry-run")[1]["receipt"] is None
    assert not list(copy.root.glob("receipts/*"))


def test_openssl_reads_the_keys(copy):
    assert shutil.which("openssl"), "scripts/install --tests installs it"
    shown = subprocess.run(["openssl", "pkey", "-in", copy.key, "-pubout"], capture_output=True, text=True, check=True).stdout
    assert shown == pathlib.Path(f"{copy.key}.pub").read_text()


def test_a_study_is_signed_with_its_parts_and_never_as_measured(tmp_path, done):  # noqa: F811
    finished, made = done
    shutil.copytree(finished.root, tmp_path / "root", symlinks=True)
    hebe = type(finished)(tmp_path / "root", tmp_path / "tmp")
    hebe.key = str(tmp_path / "key")
    hebe("receipt", "key", hebe.key)
    file, out = sign(hebe, subject=made["study"])
    statement = out["statement"]
    study = hebe.root / "studies" / made["study"]
    sealed = json.loads((study / "study.json").read_text())
    digests = {s["name"]: s["digest"]["sha256"] for s in statement["subject"]}
    assert digests[made["study"]] == hashlib.sha256((study / "study.json").read_bytes()).hexdigest()
    assert all(digests[run["run_id"]] == run["seal"] for run in sealed["runs"])
    assert digests[sealed["analysis"]] == sealed["analysis"][-64:] and digests[sealed["dataset"]] == sealed["dataset"][-64:]
    says = statement["predicate"]
    assert (says["kind"], says["provenance"], says["qualified"], says["verdict"]) == ("study", "simulated", False, sealed["verdict"])
    (unseen,) = says["not_checked"]  # what no file can show
    assert unseen.startswith("qualification") and "run the qualification again" in unseen
    Envelope.from_dict(envelope_in(file)).verify([foreign_key(f"{hebe.key}.pub")], 1)
    assert verify(hebe, file)[0] == 0
    # A study that says "measured" over the same simulated runs, under the name that its content asks for.
    sealed["provenance"], sealed["study_qualified"] = "measured", True
    text = json.dumps(sealed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    forged = study.parent / ("study_sha256_" + hashlib.sha256(text.encode()).hexdigest())
    shutil.copytree(study, forged)
    os.chmod(forged / "study.json", 0o644)
    (forged / "study.json").write_text(text + "\n")
    code, out = hebe.json("receipt", "sign", str(forged), "--key", hebe.key)
    assert code == 5 and "does not verify, so it is not signed" in out["refused"]["what"]
    # Without one of its runs it cannot be verified, and is not signed; its receipt says what was not looked at.
    shutil.rmtree(next(hebe.root.glob(f"runs/*/*/*/{sealed['runs'][0]['run_id']}")))
    assert hebe("receipt", "sign", made["study"], "--key", hebe.key).returncode == 2
    code, out = verify(hebe, file)
    assert code == 4 and out["valid"] and not out["complete"] and any(sealed["runs"][0]["run_id"] in text for text in out["receipts"][0]["not_checked"])
