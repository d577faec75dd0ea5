"""--redact: a record names its board in no text."""

import json
import pathlib

import pytest
from test_qualify import CASES, INLINE, spec


@pytest.mark.parametrize("command", ["qualify", "real-kernel-recon"])
def test_a_redacted_record_names_its_board_in_no_text(hebe, tmp_path, command):
    """Here a kernel's name holds it, as a reason from a driver may."""
    (uuid,) = {f["value"] for f in hebe.json("--device", "sim", "doctor")[1]["facts"] if f["name"] == "device.uuid"}
    if command == "qualify":
        file = spec(tmp_path, [{"name": f"on-{uuid}", "passes": INLINE}])
    else:
        file = str(tmp_path / "recon.json")
        pathlib.Path(file).write_text(json.dumps({"schema": "hebe.recon.spec/1", "name": "test", "cases": [
            {"name": f"on-{uuid}", "case": f"{CASES}:case"}]}))
    named = {}
    for more in ([], ["--redact"]):
        code, out = hebe.json("--device", "sim", command, file, *more)
        assert code in (0, 1), out
        named[bool(more)] = pathlib.Path(out["file"]).read_text().count(uuid)
    assert named[False] > 2 and named[True] == 0
    verified = hebe(command, "--verify", out["id"])
    assert verified.returncode == 0, verified.stdout + verified.stderr
