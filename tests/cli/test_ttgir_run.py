"""hebe ttgir run: a launch from files, outputs beside them, refusals that leave nothing."""

import json
import pathlib
import struct

DUMPS = pathlib.Path(__file__).parents[1] / "data" / "ttgir"


def softmax(folder, rows=3, columns=5, out_rows=None):
    """A launch of the softmax dump; returns its path."""
    (folder / "in.bin").write_bytes(struct.pack(f"{rows * columns}f", *[float(i % columns) for i in range(rows * columns)]))
    (folder / "out.bin").write_bytes(bytes(4 * columns * (rows if out_rows is None else out_rows)))
    args = [{"buffer": "out.bin", "out": True, "name": "Out"}, {"buffer": "in.bin"},
            *({"scalar": "i32", "value": value} for value in (columns, columns, rows, columns))]
    (folder / "launch.json").write_text(json.dumps({"grid": [2], "args": args}))
    return folder / "launch.json"


def test_outputs_lie_beside_their_buffers(hebe, tmp_path):
    launch = softmax(tmp_path)
    done = hebe("ttgir", "run", str(DUMPS / "softmax.ttir"), "--launch", str(launch))
    assert (done.returncode, done.stdout) == (0, "2 programs; 1 file(s) written\n"), done.stderr
    values = struct.unpack("15f", (tmp_path / "out.bin.out").read_bytes())
    assert all(abs(sum(values[row * 5:row * 5 + 5]) - 1) < 1e-6 for row in range(3))
    assert (tmp_path / "out.bin").read_bytes() == bytes(60)


def test_ttgir_gives_the_bytes_of_ttir(hebe, tmp_path):
    launch = softmax(tmp_path)
    made = []
    for name in "softmax.ttir", "softmax.ttgir":
        assert hebe("ttgir", "run", str(DUMPS / name), "--launch", str(launch)).returncode == 0
        made.append((tmp_path / "out.bin.out").read_bytes())
    assert made[0] == made[1]


def test_counts_are_one_json_value(hebe, tmp_path):
    code, out = hebe.json("ttgir", "run", str(DUMPS / "softmax.ttir"), "--launch", str(softmax(tmp_path)), "--counts")
    assert code == 0
    assert out["counts"]["programs"] == 2
    assert [argument["unique_stored"] for argument in out["counts"]["arguments"]] == [60, 0]
    assert out["counts"]["operations"]["exponential"]["f32"] == 3 * 1024


def test_a_launch_that_fails_writes_nothing(hebe, tmp_path):
    launch = softmax(tmp_path, out_rows=2)
    done = hebe("ttgir", "run", str(DUMPS / "softmax.ttir"), "--launch", str(launch))
    assert done.returncode == 1
    assert "program (0, 0, 0), element 0, writes 4 bytes at byte offset 40 of 'Out', which has 40 bytes" in done.stderr
    assert not (tmp_path / "out.bin.out").exists()


def test_wrong_launches_are_usage_errors(hebe, tmp_path):
    launch = softmax(tmp_path)
    launch.write_text("{\"grid\": [1], \"args\": [{\"scalar\": \"i32\", \"value\": 1}]}")
    done = hebe("ttgir", "run", str(DUMPS / "softmax.ttir"), "--launch", str(launch))
    assert (done.returncode, "'softmax' has 6 arguments, and 1 are given" in done.stderr) == (2, True)
