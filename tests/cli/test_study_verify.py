"""A sealed study looked at again: what is missing, what says more than its analysis, what is no study."""

import hashlib
import json
import os
import shutil

import pytest

from conftest import Hebe
from test_study import done, qualified, record_of  # noqa: F401 (fixtures)


def test_everything_of_a_study_is_verified_again(done):
    hebe, _ = done
    code, out = hebe.json("study", "--verify", "")
    assert code == 0 and out["valid"]
    what = " ".join(part["what"].split()[0] for part in out["parts"])
    assert what == "study qualification run run run run calibration analysis dataset"
    assert not any(part["not_checked"] for part in out["parts"] if part["what"].startswith(("analysis", "dataset")))
    assert hebe("run-verify", "--all").returncode == 0 and hebe("analysis-verify", "--all").returncode == 0


def test_a_study_is_compared_by_its_own_id_and_folder(done):
    hebe, _ = done
    (study,) = (hebe.root / "studies").iterdir()
    analysis = json.loads((study / "study.json").read_text())["analysis"]
    code, expected = hebe.json("compare", analysis, analysis)
    assert "not_found" not in json.dumps(expected)
    for name in (study.name, study.name[13:30], str(study), f"{study}/"):
        assert hebe.json("compare", name, name) == (code, json.loads(json.dumps(expected).replace(analysis, name))), name
    code, out = hebe.json("compare", "study_sha256_" + "0" * 64, study.name)
    assert code == 2 and out["refused"]["code"] == "not_found" and "studies" in out["refused"]["next"]


@pytest.mark.parametrize("part", ["study/page.html", "study/study.json", "campaign/plan.json", "campaign/jobs/primary.json",
                                  "run/windows.jsonl", "analysis/analysis.json", "dataset/manifest.json", "record", "cubin"])
def test_a_flipped_bit_anywhere_in_a_study_is_named(done, tmp_path, part):
    original, out = done
    shutil.copytree(original.root, tmp_path / "root", symlinks=True)
    hebe = Hebe(tmp_path / "root", tmp_path / "tmp")
    hebe.qualification = original.qualification
    kind, _, name = part.partition("/")
    place = {
        "study": lambda: hebe.root / "studies" / out["study"], "campaign": lambda: hebe.root / "campaigns" / out["campaign"],
        "run": lambda: next(p for p in hebe.runs() if p.name == out["analysis"]["contrasts"][0]["run_id"]),
        "analysis": lambda: hebe.root / "analyses" / out["analysis_id"], "dataset": lambda: hebe.root / "datasets" / out["dataset"],
        "record": lambda: record_of(hebe),
        "cubin": lambda: (lambda d: hebe.root / "artifacts" / d[:2] / d)(out["analysis"]["contrasts"][0]["arms"]["B"]["cubin_sha256"]),
    }[kind]()
    file = place / name if name else place
    bytes_ = bytearray(file.read_bytes())
    bytes_[len(bytes_) // 2] ^= 1
    os.chmod(file, 0o600)
    file.write_bytes(bytes_)
    code, found = hebe.json("study", "--verify", out["study"])
    assert code == 5, found
    if kind != "study":
        assert str(place) in json.dumps(found) or place.name in json.dumps(found)


@pytest.fixture
def copy(done, tmp_path):
    """The finished study, to be damaged."""
    original, out = done
    shutil.copytree(original.root, tmp_path / "root", symlinks=True)
    for place in [tmp_path / "root", *(tmp_path / "root").rglob("*")]:
        os.chmod(place, os.stat(place).st_mode | 0o200)
    hebe = Hebe(tmp_path / "root", tmp_path / "tmp")
    hebe.qualification, hebe.out = original.qualification, out
    return hebe


def reseal(hebe, change):
    """The study with a change, under the name that its content asks for."""
    (directory,) = (hebe.root / "studies").iterdir()
    says = json.loads((directory / "study.json").read_text())
    change(says, directory)
    text = json.dumps(says, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    (directory / "study.json").write_text(text + "\n")
    directory.rename(directory.parent / ("study_sha256_" + hashlib.sha256(text.encode()).hexdigest()))


@pytest.mark.parametrize("part", ["analyses", "runs", "datasets", "campaigns", "qualifications"])
def test_a_study_of_which_a_part_is_missing_is_not_verified(copy, part):
    shutil.rmtree(copy.root / part)
    code, out = copy.json("study", "--verify", "")
    assert code == (5 if part in ("runs", "qualifications") and not out["valid"] else 4), out
    assert not (out["valid"] and out["complete"]) and out["study_qualified"] is None


@pytest.mark.parametrize("claim", [{"study_qualified": True}, {"provenance": "measured"}, {"name": "another"}, {"verdict": "higher"},
                                   {"calibration": None}])
def test_a_study_that_says_more_than_its_analysis_is_named(copy, claim):
    reseal(copy, lambda says, _: says.update(claim))
    code, out = copy.json("study", "--verify", "")
    assert code == 5 and "the study says " + next(iter(claim)) in json.dumps(out), out


def test_an_analysis_that_does_not_exist_supports_nothing(copy):
    reseal(copy, lambda says, _: says.update({"analysis": "analysis_sha256_" + 64 * "0", "study_qualified": True}))
    code, out = copy.json("study", "--verify", "")
    assert code == 4 and not out["complete"] and out["study_qualified"] is None


def test_a_page_that_is_not_drawn_from_the_analysis_is_told(copy):
    def forge_page(says, directory):
        page = directory / "page.html"
        page.write_text(page.read_text().replace("not qualified", "qualified"))
        for file in says["files"]:
            if file["path"] == "page.html":
                file.update({"bytes": page.stat().st_size, "sha256": hashlib.sha256(page.read_bytes()).hexdigest()})
    reseal(copy, forge_page)
    _, out = copy.json("study", "--verify", "")
    assert any("page.html: not as this version" in text for part in out["parts"] for text in part["not_checked"])
    reseal(copy, lambda says, directory: ([(directory / f["path"]).unlink() for f in says["files"]], says.update({"files": []})))
    assert copy("study", "--verify", "").returncode == 5


def test_a_folder_that_is_no_study_is_never_the_newest(copy):
    stray = copy.root / "studies" / ("study_sha256_" + 64 * "f")
    stray.mkdir()
    assert copy("study", "--verify", "").returncode == 0
    code, out = copy.json("study", "--verify", "ffff")
    assert code != 0 and "ffff" in out["refused"]["where"]


def test_the_dataset_of_other_runs_is_not_the_studys(copy):
    code, out = copy.json("dataset-snapshot", copy.runs()[0].name)
    assert code == 0, out
    (other,) = [p.name for p in (copy.root / "datasets").iterdir() if p.name.startswith("dataset_sha256_") and p.name != copy.out["dataset"]]
    reseal(copy, lambda says, _: says.update({"dataset": other}))
    code, out = copy.json("study", "--verify", "")
    assert code == 5 and "its runs are not those of the study" in json.dumps(out)


def test_a_lost_analysis_is_made_again(copy):
    shutil.rmtree(copy.root / "analyses" / copy.out["analysis_id"])
    shutil.rmtree(copy.root / "studies")
    code, out = copy.json("--device", "sim", "resume", "rows-study")
    assert code == 0 and out["study"] == copy.out["study"], out
