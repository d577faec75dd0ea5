"""The backends of libraries in a tune's specification: their keys, and what becomes of them where they cannot run."""

import pytest

from test_tune import rows_of, spec_of, tune, write


def product(**library):
    """A small product in a case's tiles, and a library beside them."""
    return dict(
        operation="matmul", dtype="fp16", dimensions=["m", "n", "k"], bucketed=["m"],
        baseline={"backend": "tiles", "configuration": {"block_m": 16, "block_n": 16, "block_k": 16}},
        shapes=[{"name": "small", "sizes": {"m": 64, "n": 64, "k": 64}}],  # smaller ones are not told from idle
        backends=[{"name": "tiles", "kind": "triton", "case": "matmul",
                   "space": {"block_m": [16], "block_n": [16], "block_k": [16, 32]}}, {"name": "library", **library}])


@pytest.mark.parametrize("kind", ["cublaslt", "openblas"])
@pytest.mark.parametrize("key, value", [
    ("surprise", 1), ("case", "matmul"), ("space", {"block": [1]}), ("launches", [{"name": "a", "launch": "b", "cubin": "c"}]),
    ("library", ""), ("library", 7), ("shapes", ["nobody"]), ("sizes", {"z": "m"}), ("sizes", {"m": "rows"}),
    ("sizes", {"m": "n"}), ("sizes", "m"), ("heuristics", 0), ("heuristics", -1), ("heuristics", 1001), ("heuristics", 2.5),
    ("heuristics", "8"), ("workspace_bytes", -1), ("workspace_bytes", 2**30 + 1), ("workspace_bytes", 1.5),
    ("workspace_bytes", None)])
def test_a_wrong_key_of_a_library_is_refused_by_its_name(hebe, kind, key, value):
    done = hebe("--device", "sim", "--dry-run", "tune", write(hebe.tmp / "spec", spec_of(**product(**{"kind": kind, key: value}))))
    assert done.returncode == 2, done.stdout + done.stderr
    assert key in done.stderr and "backends" in done.stderr, done.stderr


@pytest.mark.parametrize("key, value", [("heuristics", 3), ("workspace_bytes", 0)])
def test_what_only_cublaslt_has_is_refused_of_openblas(hebe, key, value):
    file = write(hebe.tmp / "spec", spec_of(**product(kind="openblas", **{key: value})))
    done = hebe("--device", "sim", "--dry-run", "tune", file)
    assert done.returncode == 2 and f"backends[1].{key}" in done.stderr, done.stderr
    file = write(hebe.tmp / "spec", spec_of(**product(kind="cublaslt", **{key: value})))
    assert hebe("--device", "sim", "--dry-run", "tune", file).returncode == 0


@pytest.mark.parametrize("kind", ["cublaslt", "openblas"])
@pytest.mark.parametrize("more", [{}, {"library": "nothing/here.so"}, {"sizes": {"m": "n", "n": "m", "k": "k"}}])
def test_a_library_that_cannot_run_here_is_unavailable_and_voids_nothing(hebe, kind, more):
    code, out = tune(hebe, **product(kind=kind, **more))
    assert code == 0, out
    (shape,) = out["tune"]["shapes"]
    assert shape["voided"] is None and len(rows_of(out)) == 1
    (library,) = [c for c in shape["candidates"] if c["backend"] == "library"]
    assert library["state"] == "unavailable" and library["cost"] is None and library["measured_s"] is None
    # OpenBLAS multiplies no fp16, which is known before anything is loaded; cuBLASLt needs a GPU that is real.
    assert library["why"]["code"] == {"cublaslt": "no_device", "openblas": "unsupported"}[kind]
    assert {"cublaslt": "simulated GPU", "openblas": "fp32, bf16, not fp16"}[kind] in library["why"]["what"]


@pytest.mark.parametrize("kind, dtype, words", [("cublaslt", "fp32", "fp16, bf16, not fp32"), ("openblas", "fp32", "simulated")])
def test_the_library_of_another_type_is_unavailable_with_the_types_that_it_has(hebe, kind, dtype, words):
    # Which dtype a case computes in is asked when it is compiled: a dry run does not get that far.
    code, out = tune(hebe, "--dry-run", **{**product(kind=kind), "dtype": dtype})
    assert code == 0, out
    (library,) = [c for c in out["shapes"][0]["candidates"] if c["backend"] == "library"]
    assert library["state"] == "unavailable" and words in library["why"]


def test_a_library_is_no_baseline(hebe):
    spec = {**product(kind="openblas"), "baseline": {"backend": "library", "configuration": {}}}
    done = hebe("--device", "sim", "tune", write(hebe.tmp / "spec", spec_of(**spec)))
    assert done.returncode == 2 and "baseline" in done.stderr, done.stderr
