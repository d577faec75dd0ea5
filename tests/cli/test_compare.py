"""hebe compare, on files alone: two made studies, one shifted."""

import copy
import hashlib
import json
import pathlib

import pytest

MADE = json.loads((pathlib.Path(__file__).parents[1] / "data/study/analysis.json").read_text())


def repeated(percent):
    """The same kernels measured again: other runs, the primary's energy shifted by `percent`."""
    study = copy.deepcopy(MADE)
    study["campaign"] = "again"
    for job in [study["aa"], study["control"], study["floor"], *study["contrasts"]]:
        job["seal"] = hashlib.sha256(job["seal"].encode()).hexdigest()
    for end in ("effect_percent", "low_percent", "high_percent"):
        study["contrasts"][0]["energy"][end] += percent
    return study


@pytest.fixture
def files(tmp_path):
    def write(name, study):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "analysis.json").write_text(json.dumps(study))
        return folder
    return write


def test_a_repeat_is_inside_and_a_shifted_one_outside(hebe, files):
    first, near, far = files("first", MADE), files("near", repeated(0.05)), files("far", repeated(0.5))
    inside = hebe("compare", str(first), str(near / "analysis.json"))
    assert inside.returncode == 0, inside.stderr
    assert "2048x8192: hoisted against baseline (primary)" in inside.stdout
    assert "study 1 lies inside the interval of study 2, study 2 inside that of study 1; the intervals overlap" in inside.stdout
    assert "pass it 81 times in 100" in inside.stdout
    code, outside = hebe.json("compare", str(first), str(far))
    assert code == 1
    assert (outside["schema"], outside["result"]) == ("hebe.comparison/1", "outside")
    assert outside["contrasts"][0]["quantities"]["energy"]["between"][0]["difference_percent"] == pytest.approx(0.5)


def test_no_judgeable_primary_is_inconclusive(hebe, files):
    other = repeated(0)
    other["contrasts"][0]["verdict"] = "invalid"
    assert hebe("compare", str(files("a", MADE)), str(files("b", other))).returncode == 4


def test_what_cannot_be_compared_is_refused(hebe, files):
    made = str(files("made", MADE))
    other = repeated(0)
    for contrast in other["contrasts"]:
        contrast["arms"]["B"]["cubin_sha256"] = "e" * 64
    for names, what in (([made], "1 study cannot be compared"), ([made, made], "same study"),
                        ([made, str(files("other", other))], "no contrast is in two of the studies")):
        code, out = hebe.json("compare", *names)
        assert code == 2 and out["refused"]["code"] == "bad_argument" and what in out["refused"]["what"], out
    assert hebe("compare", made, "0123").returncode == 2
    other["schema"] = "hebe.analysis.ladder/1"
    assert hebe("compare", made, str(files("ladder", other))).returncode == 5


def test_studies_are_found_in_the_data_root_by_part_of_their_id(hebe, files):
    folders = [files("first", MADE), files("near", repeated(0.05))]
    names = [study["id"][8:20] for study in hebe.json("compare", *map(str, folders))[1]["studies"]]
    for folder, study in zip(folders, hebe.json("compare", *map(str, folders))[1]["studies"]):
        (hebe.root / "analyses").mkdir(parents=True, exist_ok=True)
        folder.rename(hebe.root / "analyses" / f"analysis_sha256_{study['id']}")
    assert hebe("compare", *names).returncode == 0
    file = next((hebe.root / "analyses").glob(f"*{names[1]}*/analysis.json"))
    file.write_text(file.read_text().replace("hoisted", "hoister"))
    damaged = hebe("compare", *names)
    assert damaged.returncode == 5 and "content id" in damaged.stderr


def test_what_no_measurement_says_is_refused_by_its_place(hebe, files):
    """Numbers that overflow, an energy of nothing, a claim beyond its conditions, names that a terminal obeys."""
    def at(contrast, *path, value):
        *most, last = path
        for member in most:
            contrast = contrast[member]
        contrast[last] = value
    changes = {
        "huge": lambda s: at(s["contrasts"][0], "energy", "high_percent", value=1e300),
        "wide": lambda s: [at(s["contrasts"][0], "energy", end, value=v) for end, v in
                           (("low_percent", -1e300), ("high_percent", 1e300), ("half_width_percent", 1e300))],
        "tiny": lambda s: at(s["contrasts"][0], "arms", "A", "energy_per_launch_j", value=5e-324),
        "claims": lambda s: s["conditions"][3].update(holds=False),
        "modest": lambda s: s.update(study_qualified=False),
        "no-conditions": lambda s: s.update(conditions=[]),
        "newline": lambda s: s["contrasts"][0].update(b="hoisted\n\x1b[2Jqualified"),
        "escape": lambda s: s["study"].update(name="\x1b]0;title\x07"),
    }
    for name, change in changes.items():
        other = repeated(0)
        change(other)
        code, out = hebe.json("compare", str(files(f"good-{name}", MADE)), str(files(name, other)))
        assert code == 5 and out["refused"]["code"] == "bad_schema", (name, code, out)
        assert "analysis.json/" in out["refused"]["where"], (name, out)
