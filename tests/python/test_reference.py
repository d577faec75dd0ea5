"""The reference reads raw files, writes raw files, and never converts in silence."""

import numpy
import pytest
from conftest import VECTOR_ADD, line_of


@pytest.fixture
def run(worker, tmp_path):
    """Run the copy case's reference on 256 elements; returns (answer, output path)."""

    def run(case, data):
        (tmp_path / "x.bin").write_bytes(data.tobytes())
        out = tmp_path / "out.bin"
        answer = worker.answer("reference", case=str(case), inputs={"x_ptr": str(tmp_path / "x.bin")},
                               outputs={"out_ptr": str(out)})
        return answer, out

    return run


def test_the_reference_of_vector_add_is_right(worker, tmp_path):
    n = 1000
    generator = numpy.random.default_rng(7)
    x, y = (generator.uniform(-1, 1, n).astype("<f4") for _ in range(2))
    x.tofile(tmp_path / "x")
    y.tofile(tmp_path / "y")
    result = worker.ask("reference", case=str(VECTOR_ADD), parameters={"n": str(n)},
                        inputs={"x_ptr": str(tmp_path / "x"), "y_ptr": str(tmp_path / "y")},
                        outputs={"out_ptr": str(tmp_path / "out")})
    assert result == {"outputs": {"out_ptr": {"path": str(tmp_path / "out"), "dtype": "fp32", "bytes": 4 * n}}}
    expected = [numpy.float32(float(a) + float(b)) for a, b in zip(x, y)]
    assert numpy.array_equal(numpy.fromfile(tmp_path / "out", "<f4"), numpy.array(expected, "<f4"))


@pytest.mark.parametrize("dtype, numpy_type", [
    ("fp32", "<f4"), ("fp64", "<f8"), ("fp16", "<f2"), ("i8", "i1"), ("i64", "<i8"), ("u16", "<u2"), ("i1", "?")])
def test_every_type_comes_back_as_it_went_in(write_case, run, dtype, numpy_type):
    data = (numpy.arange(256) % 2).astype(numpy_type)
    answer, out = run(write_case(dtype=dtype), data)
    assert answer["result"]["outputs"]["out_ptr"]["dtype"] == dtype
    assert out.read_bytes() == data.tobytes()


def test_bf16_goes_in_and_comes_back_as_fp32(write_case, run):
    bits = numpy.arange(256, dtype="<u2") << 7
    answer, out = run(write_case(dtype="bf16"), bits)
    assert answer["result"]["outputs"]["out_ptr"] == {"path": str(out), "dtype": "fp32", "bytes": 1024}
    assert numpy.array_equal(numpy.fromfile(out, "<u4"), bits.astype("<u4") << 16)


@pytest.mark.parametrize("wider", ["float32", "float64"])
def test_fp16_may_come_back_wider(write_case, run, wider):
    case = write_case(dtype="fp16", reference=f'return {{"out_ptr": inputs["x_ptr"].astype("{wider}") / 3}}')
    answer, out = run(case, numpy.ones(256, "<f2"))
    assert answer["result"]["outputs"]["out_ptr"]["dtype"] == wider.replace("float", "fp")
    assert numpy.fromfile(out, wider)[0] == numpy.ones(1, wider)[0] / 3


@pytest.mark.parametrize("code, words", [
    ('return {"out_ptr": inputs["x_ptr"].astype("f8")}', "required fp32 for a fp32 buffer, found numpy float64"),
    ('return {"out_ptr": inputs["x_ptr"].astype(">f4")}', "required fp32"),
    ('return {"out_ptr": inputs["x_ptr"][:-1]}', "required shape [256], found [255]"),
    ('return {"out_ptr": [0.0] * 256}', "required a numpy array, found list"),
    ('return {"out": inputs["x_ptr"]}', "must return exactly out_ptr; found out"),
    ('return {**inputs, "out_ptr": inputs["x_ptr"]}', "must return exactly out_ptr; found x_ptr, out_ptr"),
    ("return None", "returned NoneType"),
    ('inputs["x_ptr"][0] = 1', "read-only"),
    ('raise SystemExit(1)', "sys.exit(1)"),
])
def test_a_wrong_reference_is_refused_and_nothing_is_written(write_case, run, code, words):
    answer, out = run(write_case(reference=code), numpy.zeros(256, "<f4"))
    assert answer["error"]["kind"] == "reference_failed" and words in answer["error"]["message"]
    assert not out.exists()


def test_an_exception_in_the_reference_names_its_line(write_case, run):
    case = write_case(reference='raise RuntimeError("lost")')
    answer, _ = run(case, numpy.zeros(256, "<f4"))
    assert answer["error"]["where"] == line_of(case, "lost")


@pytest.mark.parametrize("change, words", [
    ({"inputs": {}}, "exactly x_ptr; found nothing"),
    ({"outputs": {"x_ptr": "/nowhere"}}, "exactly out_ptr; found x_ptr"),
    ({"inputs": {"x_ptr": "/nowhere/x"}}, "No such file"),
    ({"outputs": {"out_ptr": "/nowhere/x"}}, "No such file"),
    ({"inputs": {"x_ptr": __file__}}, "fp32 [256] needs 1024"),
    ({"outputs": {"out_ptr": "{x}"}}, "also another buffer's file"),
])
def test_wrong_files_are_a_bad_request(worker, write_case, tmp_path, change, words):
    (tmp_path / "x.bin").write_bytes(bytes(1024))
    request = {"inputs": {"x_ptr": str(tmp_path / "x.bin")}, "outputs": {"out_ptr": str(tmp_path / "out.bin")}}
    request |= change
    request["outputs"] = {k: v.replace("{x}", str(tmp_path / "x.bin")) for k, v in request["outputs"].items()}
    error = worker.fail("reference", case=str(write_case()), **request)
    assert error["kind"] == "bad_request" and words in error["message"]
    assert (tmp_path / "x.bin").read_bytes() == bytes(1024)
