"""The cases of kernels/: none is forgotten, all compile, references agree with another way to say the same."""

import ast
import math
import sys

import numpy as np
import pytest
from conftest import ROOT, TARGET

sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests")]

from hebe.case import DTYPE_BYTES  # noqa: E402
from kernel_cases import CASES, KERNELS, missing, place  # noqa: E402


def asked(worker, method, name, **params):
    """The worker's answer about a case; skips where its kernel is not here."""
    if reason := missing(name):
        pytest.skip(reason)
    file, function = place(name)
    return worker.ask(method, case=file, function=function, **params)


def case_functions(path):
    """Names of the functions that say that they return a Case."""
    return [node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)
            and isinstance(node.returns, ast.Name) and node.returns.id == "Case" and not node.name.startswith("_")]


def test_every_case_is_in_the_list():
    found = {f"{path.relative_to(KERNELS).with_suffix('')}:{function}"
             for path in KERNELS.rglob("*.py") for function in case_functions(path)}
    assert found == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_a_case_compiles_and_declares_its_work(worker, name):
    made = asked(worker, "compile", name, parameters=CASES[name], target=TARGET)
    work, buffers = made["launch"]["work"], [a for a in made["launch"]["arguments"] if a["kind"] == "buffer"]
    for moved, roles in {"bytes_read": ("in", "inout"), "bytes_written": ("out", "inout")}.items():
        sizes = sum(math.prod(b["shape"]) * DTYPE_BYTES[b["dtype"]] for b in buffers if b["role"] in roles)
        # Each buffer once, at the least; traffic_control's extra one may be read in part.
        assert work[moved] == sizes or name.startswith("traffic_control:")
    assert work["operations"] and all(count > 0 for count in work["operations"].values())


@pytest.mark.parametrize("name", CASES)
def test_a_case_says_what_it_is(worker, name):
    described = asked(worker, "describe", name)
    assert described["description"] and not any(parameter["required"] for parameter in described["parameters"])


@pytest.mark.parametrize("name, parameters, words", [
    ("softmax:case", {"n": 1 << 18}, "use multi_block"),
    ("softmax:case", {"dtype": "fp64"}, "dtype: 'fp64' is not one of"),
    ("softmax:case", {"m": 0}, "Buffer.shape"),
    ("softmax:multi_block", {"n": 0}, "n: 0 is not positive"),
    ("softmax:multi_block", {"block": 100}, "block: 100 is not a power of two"),
    ("layer_norm:case", {"n": 0}, "n: 0 is not positive"),
    ("layer_norm:case", {"block": 100}, "block: 100 is neither 0 nor a power of two"),
    ("layer_norm:case", {"dtype": "i32"}, "dtype: 'i32' is not one of"),
    ("layer_norm_backward:dx", {"block": -2}, "block: -2"),
    ("layer_norm_backward:dwdb", {"m": 8, "groups": 9}, "groups: 9 is outside 1 to m = 8"),
    ("layer_norm_backward:dwdb", {"columns": 3}, "columns: 3 is not a power of two"),
    ("rms_norm:case", {"dtype": "i8"}, "dtype"),
    ("rms_norm:case", {"eps": -1.0}, "eps: -1.0 is negative"),
    ("matmul:case", {"k": 0}, "k: 0 is not positive"),
    ("matmul:case", {"block_k": 8}, "block_k: 8 is not a power of two from 16 on"),
    ("matmul:vector", {"n": 0}, "n: 0 is not positive"),
    ("matmul:vector", {"block_n": 24}, "block_n: 24 is not a power of two from 1 on"),
    ("matmul:vector", {"m": 65536}, "use matmul"),
    ("attention:case", {"size": 80}, "size: 80 is not a power of two from 16 on"),
    ("attention:case", {"length": 0}, "length: 0 is not positive"),
    ("cross_entropy:case", {"smoothing": 1.5}, "smoothing: 1.5 is not within 0 and 1"),
    ("cross_entropy:case", {"dtype": "i32"}, "dtype"),
    ("packages/fla_rows:l2norm", {"n": 512}, "n: 512 is outside 513 to 32768"),
    ("packages/fla_rows:cross_entropy", {"n": 65537}, "n: 65537 is more than 65536"),
    ("packages/gems_norms:layer_norm", {"tile": 100}, "tile: 100 is not a power of two"),
    ("packages/gems_rows:var_mean", {"n": 1}, "n: 1; a sample variance needs two values"),
    ("packages/liger_blocks:group_norm", {"channels": 100}, "channels: 100 is not a multiple of groups = 32"),
    ("packages/liger_norms:layer_norm", {"n": 65537}, "n: 65537 is more than 65536"),
    ("packages/liger_norms:rms_norm", {"m": 32768, "n": 256}, "the package takes another kernel"),
    ("packages/liger_rows:swiglu", {"dtype": "fp64"}, "dtype: 'fp64' is not one of"),
    ("packages/tutorials:attention", {"length": 200}, "length: 200 is not a multiple of 128"),
    ("packages/tutorials:attention", {"size": 32}, "size: 32 is not 16"),
])
def test_parameters_that_make_no_case_are_refused(worker, name, parameters, words):
    file, function = place(name)
    error = worker.fail("compile", case=file, function=function, parameters=parameters, target=TARGET)
    assert error["kind"] == "case_error" and words in error["message"], error


@pytest.mark.parametrize("n, dtype, block, num_warps", [
    (8192, "fp16", 8192, 8), (65536, "fp16", 32768, 8), (65536, "fp32", 16384, 8), (1000, "fp16", 1024, 4),
    (100, "fp16", 128, 1)])
def test_layer_norm_chooses_block_and_warps(worker, n, dtype, block, num_warps):
    made = worker.compile(KERNELS / "layer_norm.py", parameters={"m": 1, "n": n, "dtype": dtype})
    assert made["provenance"]["constants"]["BLOCK"] == block
    assert made["launch"]["num_warps"] == num_warps


@pytest.fixture
def reference(worker, tmp_path):
    """A case's reference on these inputs: {output: array}."""

    def run(name, parameters, **inputs):
        for key, array in inputs.items():
            array.tofile(tmp_path / key)
        made = asked(worker, "compile", name, parameters=parameters, target=TARGET)
        outputs = {argument["name"]: argument["shape"] for argument in made["launch"]["arguments"]
                   if argument.get("role") in ("out", "inout")}
        asked(worker, "reference", name, parameters=parameters,
                   inputs={key: str(tmp_path / key) for key in inputs},
                   outputs={key: str(tmp_path / f"{key}.out") for key in outputs})
        return {key: np.fromfile(tmp_path / f"{key}.out", "<f4").reshape(shape) for key, shape in outputs.items()}

    return run


@pytest.fixture
def random():
    return np.random.default_rng(1)


def fp32(array):
    return array.astype(np.float32)


@pytest.mark.parametrize("name", ["softmax:case", "softmax:multi_block"])
def test_softmax_is_each_exponential_over_their_sum(reference, random, name):
    x = fp32(random.normal(1, 2, (3, 37)))
    y = reference(name, {"m": 3, "n": 37}, x_ptr=x)["y_ptr"]
    for row, made in zip(x.tolist(), y):
        total = math.fsum(math.exp(value) for value in row)
        assert made == pytest.approx([math.exp(value) / total for value in row], rel=1e-6)


def layer_norm(x, w, b, eps):
    """By moments: a variance that is not the reference's formula."""
    mean = x.sum(1, keepdims=True) / x.shape[1]
    rstd = ((x * x).sum(1, keepdims=True) / x.shape[1] - mean**2 + eps) ** -0.5
    return (x - mean) * rstd * w + b, mean[:, 0], rstd[:, 0]


def test_layer_norm_by_moments(reference, random):
    x, w, b = fp32(random.normal(1, 2, (3, 37))), fp32(random.normal(size=37)), fp32(random.normal(size=37))
    made = reference("layer_norm:case", {"m": 3, "n": 37, "dtype": "fp32", "eps": 0.25}, x_ptr=x, w_ptr=w, b_ptr=b)
    y, mean, rstd = layer_norm(*(array.astype(np.float64) for array in (x, w, b)), 0.25)
    for name, expected in {"y_ptr": y, "mean_ptr": mean, "rstd_ptr": rstd}.items():
        np.testing.assert_allclose(made[name], expected, rtol=1e-6, atol=1e-6)


def test_layer_norm_backward_is_the_slope_of_forward(reference, random):
    x, dy, w = fp32(random.normal(1, 2, (3, 17))), fp32(random.normal(size=(3, 17))), fp32(random.normal(size=17))
    wide = [array.astype(np.float64) for array in (x, w, np.zeros(17))]
    _, mean, rstd = layer_norm(*wide, 0.0)
    kept = {"dy_ptr": dy, "x_ptr": x, "mean_ptr": fp32(mean), "rstd_ptr": fp32(rstd)}

    def slope(which, shape):
        """Of sum(dy y) along every element of x, w or b, by central differences."""
        made = np.empty(shape)
        for at in np.ndindex(*shape):
            sides = []
            for step in (1e-5, -1e-5):
                moved = [array.copy() for array in wide]
                moved[which][at] += step
                sides.append((dy * layer_norm(*moved, 0.0)[0]).sum())
            made[at] = (sides[0] - sides[1]) / 2e-5
        return made

    dx = reference("layer_norm_backward:dx", {"m": 3, "n": 17, "dtype": "fp32"}, **kept, w_ptr=w)["dx_ptr"]
    np.testing.assert_allclose(dx, slope(0, (3, 17)), rtol=1e-4, atol=1e-5)
    made = reference("layer_norm_backward:dwdb", {"m": 3, "n": 17, "dtype": "fp32", "groups": 2}, **kept)
    assert made["dw_ptr"].shape == (2, 17)  # rows 0 and 1, row 2
    np.testing.assert_allclose(made["dw_ptr"].sum(0), slope(1, (17,)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(made["db_ptr"].sum(0), slope(2, (17,)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(made["db_ptr"][1], dy[2], rtol=1e-6)


def test_rms_norm_gives_rows_of_unit_size(reference, random):
    x, w = fp32(random.normal(1, 2, (3, 37))), np.ones(37, np.float32)
    made = reference("rms_norm:case", {"m": 3, "n": 37, "dtype": "fp32", "eps": 0.0}, x_ptr=x, w_ptr=w)
    assert np.linalg.norm(made["y_ptr"], axis=1) == pytest.approx([math.sqrt(37)] * 3, rel=1e-6)
    np.testing.assert_allclose(made["y_ptr"], x * made["rstd_ptr"][:, None], rtol=1e-6)


@pytest.mark.parametrize("name", ["matmul:case", "matmul:vector"])
def test_matmul_by_sums_of_exact_products(reference, random, name):
    a, b = random.uniform(-1, 1, (3, 17)).astype("<f2"), random.uniform(-1, 1, (17, 5)).astype("<f2")
    c = reference(name, {"m": 3, "n": 5, "k": 17}, a_ptr=a, b_ptr=b)["c_ptr"]
    for i, j in np.ndindex(3, 5):
        assert c[i, j] == pytest.approx(math.fsum(float(x) * float(y) for x, y in zip(a[i], b[:, j])), rel=1e-6)


@pytest.mark.parametrize("causal", [True, False])
def test_attention_query_by_query(reference, random, causal):
    shape = (2, 1, 9, 16)
    q, k, v = (random.normal(size=shape).astype("<f2") for _ in range(3))
    made = reference("attention:case", {"batch": 2, "heads": 1, "length": 9, "size": 16, "causal": causal},
                     q_ptr=q, k_ptr=k, v_ptr=v)
    for batch, query in np.ndindex(2, 9):
        keys = range(query + 1 if causal else 9)
        scores = [math.exp(math.fsum(map(float, q[batch, 0, query].astype(float) * k[batch, 0, key])) / 4) for key in keys]
        expected = sum(score * v[batch, 0, key].astype(float) for score, key in zip(scores, keys)) / sum(scores)
        np.testing.assert_allclose(made["out_ptr"][batch, 0, query], expected, rtol=1e-5, atol=1e-6)
        assert made["lse_ptr"][batch, 0, query] == pytest.approx(math.log(sum(scores)), abs=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.3, 1.0])
def test_cross_entropy_by_its_definition(reference, random, smoothing):
    x, labels = fp32(random.normal(1, 3, (3, 11))), np.array([0, 10, 4])
    made = reference("cross_entropy:case", {"m": 3, "n": 11, "dtype": "fp32", "smoothing": smoothing},
                     x_ptr=x, label_ptr=labels)
    for row in range(3):
        p = np.exp(x[row].astype(float)) / np.exp(x[row].astype(float)).sum()
        q = np.full(11, smoothing / 11)
        q[labels[row]] += 1 - smoothing
        assert made["loss_ptr"][row] == pytest.approx(-(q * np.log(p)).sum(), rel=1e-6)
        assert made["lse_ptr"][row] == pytest.approx(math.log(np.exp(x[row].astype(float)).sum()), rel=1e-6)
