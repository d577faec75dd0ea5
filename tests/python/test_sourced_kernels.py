"""A case may name a kernel of a package or of a Triton source checkout, pinned by its file's digest."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import importlib.util
import os
import textwrap

import pytest
from conftest import ROOT, TARGET

CASE = '''\
from hebe.case import *

def case(arch: int = 90):
    return Case(name="copy", kernel={kernel}, constexprs={{"BLOCK": 128}}, grid=(2,),
                arguments={{"x_ptr": Buffer((256,), "fp32", "in", Zeros()), "out_ptr": Buffer((256,), "fp32", "out")}},
                tolerance=Tolerance(0, 0))
'''
KERNEL = '''
@triton.autotune([triton.Config({}, num_warps=8)], key=[])
@triton.heuristics({"BLOCK": lambda arguments: 64})
@triton.jit
def copy_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, scaled(tl.load(x_ptr + i)))
'''
#: What is made of the official tutorials: it asks for a driver, computes and benchmarks at import.
TUTORIAL = '''\
"""A tutorial."""
from __future__ import annotations
import no_such_module_anywhere
import torch
import triton
import triton.language as tl

DEVICE = no_such_module_anywhere.device()
SCALE = tl.constexpr(3.0)


@triton.jit
def scaled(x):
    return x * SCALE
''' + KERNEL + '''

x = torch.rand(98432, device=DEVICE)
copy_kernel[(1,)](x, x)
raise RuntimeError("the benchmark was run")
'''
PATH = "python/tutorials/12-copy.py"


def pin(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def checkout(tmp_path):
    """Write a file into a checkout, and a case of its kernel; returns the case's path."""

    def write(text: str = TUTORIAL, name: str = "copy_kernel", sha256: str | None = "right"):
        file = tmp_path / "triton" / PATH
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        digest = pin(text) if sha256 == "right" else sha256
        case = tmp_path / "case.py"
        case.write_text(CASE.format(kernel=f"CheckoutKernel({PATH!r}, {name!r}, {digest!r})"))
        return case

    return write


@pytest.fixture
def tutor(fresh_worker, tmp_path):
    return fresh_worker(HEBE_TRITON_SOURCE=str(tmp_path / "triton"))


def test_a_tutorials_kernel_compiles_without_torch_a_gpu_or_its_benchmarks(tutor, checkout, tmp_path):
    result = tutor.compile(checkout())
    assert result["launch"]["entry"] == "copy_kernel" and result["launch"]["num_warps"] == 4
    assert "3.000000e+00" in result["artifacts"]["ttir"]["data"]
    assert result["provenance"]["constants"] == {"BLOCK": 128}
    assert result["provenance"]["kernel_source"] == {
        "kind": "checkout", "path": PATH, "name": "copy_kernel", "sha256": pin(TUTORIAL)}
    assert result["artifacts"]["source"]["data"].startswith("from hebe.case import *")
    cubin = base64.b64decode(result["artifacts"].pop("cubin")["data"])
    assert str(tmp_path) not in str(result) and str(tmp_path).encode() not in cubin


def test_installed_torch_is_not_imported_where_the_kernel_does_not_use_it(fresh_worker, checkout, tmp_path):
    (tmp_path / "modules" / "torch").mkdir(parents=True)
    (tmp_path / "modules" / "torch" / "__init__.py").write_text("raise RuntimeError('torch was imported')")
    worker = fresh_worker(HEBE_TRITON_SOURCE=str(tmp_path / "triton"),
                          PYTHONPATH=f"{tmp_path / 'modules'}:{ROOT / 'python'}")
    assert worker.compile(checkout())["launch"]["entry"] == "copy_kernel"
    error = worker.compile_error(checkout(TUTORIAL.replace("tl.constexpr(3.0)", "tl.constexpr(torch.pi)")))
    assert error["kind"] == "case_error" and "torch was imported" in error["message"]


def test_a_driver_that_the_kernel_needs_answers_for_the_target(tutor, checkout):
    case = checkout(TUTORIAL.replace("SCALE = tl.constexpr(3.0)", textwrap.dedent("""
        if triton.runtime.driver.active.get_current_target().arch >= 100:
            SCALE = tl.constexpr(100.0)
        else:
            SCALE = tl.constexpr(triton.runtime.driver.active.get_current_target().arch)
    """)))
    for arch, number in ((80, "8.0"), (90, "9.0"), (100, "1.0"), (80, "8.0")):
        result = tutor.ask("compile", case=str(case), target={**TARGET, "arch": arch})
        assert f"dense<{number}00000e+0" in result["artifacts"]["ttir"]["data"]


def test_without_a_checkout_the_option_is_named(fresh_worker, checkout):
    error = fresh_worker(HEBE_TRITON_SOURCE="").compile_error(checkout())
    assert error["kind"] == "toolchain_unavailable" and "pass --triton-source DIR" in error["message"]


def test_a_file_that_the_checkout_lacks_is_named(tutor, checkout, tmp_path):
    case = checkout()
    (tmp_path / "triton" / PATH).unlink()
    error = tutor.compile_error(case)
    assert error["kind"] == "case_error" and f"{PATH} in the Triton source checkout" in error["message"]


def test_a_changed_file_is_refused_with_both_digests(tutor, checkout):
    error = tutor.compile_error(checkout(sha256="0" * 64))
    assert error["kind"] == "case_error" and "pin" in error["message"]
    assert PATH in error["message"] and pin(TUTORIAL) in error["message"] and "0" * 64 in error["message"]


def test_a_kernel_without_a_digest_is_refused_with_the_one_to_write(tutor, checkout):
    error = tutor.compile_error(checkout(sha256=None))
    assert error["kind"] == "case_error" and f"sha256={pin(TUTORIAL)!r}" in error["message"]


def test_a_wrong_name_lists_the_kernels(tutor, checkout):
    error = tutor.compile_error(checkout(name="copy_kernle"))
    assert error["kind"] == "case_error"
    assert error["message"].endswith("did you mean 'copy_kernel'? valid: scaled, copy_kernel")
    error = tutor.compile_error(checkout(name="SCALE"))
    assert error["kind"] == "case_error" and "has no kernel 'SCALE'" in error["message"]


def test_an_error_in_the_file_names_its_line(tutor, checkout):
    def line_of(text: str, part: str) -> str:
        return f"{PATH}:{text[:text.index(part)].count(chr(10)) + 1}"

    for old, new, kind in (("x * SCALE", "x * missing_name", "compile_failed"),
                           ("tl.constexpr(3.0)", "tl.constexpr(1 / 0)", "case_error"),
                           ("def scaled(x):", "def scaled(x:", "case_syntax")):
        text = TUTORIAL.replace(old, new)
        error = tutor.compile_error(checkout(text))
        assert (error["kind"], error["where"]) == (kind, line_of(text, new)), error


def test_a_changed_file_that_is_pinned_again_is_not_served_stale(tutor, checkout, tmp_path):
    """Triton's own cache key does not see what a constexpr function reads."""
    text = TUTORIAL.replace("x * SCALE", "x * factor()").replace("SCALE = tl.constexpr(3.0)", textwrap.dedent("""
        FACTOR = 3.0
        @triton.constexpr_function
        def factor():
            return FACTOR
    """))
    for number in ("3.0", "5.0"):
        result = tutor.compile(checkout(text.replace("3.0", number)), cache_dir=str(tmp_path / "cache"))
        assert f"dense<{number}00000e+00>" in result["artifacts"]["ttir"]["data"]


@pytest.fixture
def package(tmp_path):
    """Write a package that needs torch, and a case of its kernel; returns the case's path."""
    folder = tmp_path / "modules" / "copy_package"

    def write(name: str = "copy_kernel", module: str = "copy_package.ops.copy", top: str = "", factor: str = "1.0",
              sha256: str = "right"):
        text = f"import torch\nimport triton\nimport triton.language as tl\nfrom ..scale import scaled\n{top}\n" + KERNEL
        text = text.replace("scaled(tl.load(x_ptr + i))", f"scaled(tl.load(x_ptr + i)) + {factor}")
        files = {"__init__.py": "", "ops/__init__.py": "from .copy import copy_kernel\n", "ops/copy.py": text,
                 "scale.py": "import torch\nimport triton\n\nclass Scale(torch.nn.Module): pass\n\n"
                             "@triton.jit\ndef scaled(x):\n    return x * 3.0\n"}
        for path, content in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(content)
        digest = pin(files["ops/__init__.py" if module.endswith("ops") else "ops/copy.py"])
        case = tmp_path / "case.py"
        digest = digest if sha256 == "right" else sha256
        case.write_text(CASE.format(kernel=f"PackageKernel({module!r}, {name!r}, {digest!r})"))
        return case

    return write


@pytest.fixture
def packer(fresh_worker, tmp_path):
    return fresh_worker(PYTHONPATH=f"{tmp_path / 'modules'}:{ROOT / 'python'}")


def test_a_packages_kernel_compiles_without_torch(packer, package, tmp_path):
    result = packer.compile(package())
    assert result["launch"]["entry"] == "copy_kernel" and "3.000000e+00" in result["artifacts"]["ttir"]["data"]
    source = result["provenance"]["kernel_source"]
    assert {**source, "sha256": ""} == {
        "kind": "package", "module": "copy_package.ops.copy", "name": "copy_kernel", "sha256": "",
        "path": "copy_package/ops/copy.py", "package": "copy_package", "version": None}
    cubin = base64.b64decode(result["artifacts"].pop("cubin")["data"])
    assert str(tmp_path) not in str(result) and str(tmp_path).encode() not in cubin
    assert packer.compile(package()) | {"artifacts": None} == result | {"artifacts": None}


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is installed: it stays imported")
def test_the_next_case_sees_neither_the_stand_ins_nor_the_package(packer, package, write_case):
    own = write_case(top="import importlib.util, sys\nfound = [name for name in ('torch', 'copy_package.scale') "
                         "if name in sys.modules]\nassert not found, found\n"
                         "assert triton.runtime.driver._active is None\n")
    packer.compile(package())
    packer.compile(own)
    packer.compile(package())


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is installed: its device answers")
def test_a_package_is_imported_again_for_another_target(packer, package):
    case = package(top="ARCH = tl.constexpr(torch.cuda.get_device_capability()[0])", factor="ARCH")
    for arch, number in ((80, "8.0"), (90, "9.0"), (80, "8.0")):
        result = packer.ask("compile", case=str(case), target={**TARGET, "arch": arch})
        assert f"dense<{number}00000e+00>" in result["artifacts"]["ttir"]["data"]


def test_a_changed_helper_of_a_package_is_read_again(packer, package, tmp_path):
    """Also where Triton's own cache key does not see the change: a global behind a constexpr function."""
    case = package()
    helper = tmp_path / "modules" / "copy_package" / "scale.py"
    text = helper.read_text().replace("x * 3.0", "x * factor()") + (
        "\nFACTOR = 3.0\n\n@triton.constexpr_function\ndef factor():\n    return FACTOR\n")
    for number in ("3.0", "7.0"):
        helper.write_text(text.replace("3.0", number))
        result = packer.compile(case, cache_dir=str(tmp_path / "cache"))
        assert f"dense<{number}00000e+00>" in result["artifacts"]["ttir"]["data"]


def test_an_error_in_a_packages_kernel_names_its_line(packer, package):
    error = packer.compile_error(package(factor="missing_name"))
    assert (error["kind"], error["where"]) == ("compile_failed", "copy_package/ops/copy.py:12")


def test_a_missing_package_says_how_to_install_it(worker, tmp_path):
    case = tmp_path / "case.py"
    for module, words in (("no_such_package_anywhere.ops", "pip install no-such-package-anywhere"),
                          ("fla.no_such_module", "fla-core")):
        case.write_text(CASE.format(kernel=f"PackageKernel({module!r}, 'k', {'0' * 64!r})"))
        error = worker.compile_error(case)
        assert error["kind"] in ("toolchain_unavailable", "case_error") and words in error["message"]


def test_a_package_may_be_one_file(packer, tmp_path):
    text = "import triton\nimport triton.language as tl\n" + KERNEL.replace("scaled(tl.load(x_ptr + i))", "0.0")
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "one_file.py").write_text(text)
    case = tmp_path / "case.py"
    case.write_text(CASE.format(kernel=f"PackageKernel('one_file', 'copy_kernel', {pin(text)!r})"))
    assert packer.compile(case)["provenance"]["kernel_source"]["path"] == "one_file.py"
    case.write_text(CASE.format(kernel=f"PackageKernel('one_file.below', 'copy_kernel', {pin(text)!r})"))
    assert "has no module one_file.below" in packer.compile_error(case)["message"]


def test_what_else_a_package_needs_is_named(packer, package):
    error = packer.compile_error(package(top="import no_such_module_anywhere"))
    assert error["kind"] == "toolchain_unavailable" and "pip install no_such_module_anywhere" in error["message"]
    error = packer.compile_error(package(top="import sys; sys.exit(3)"))
    assert error["kind"] == "case_error" and "SystemExit: 3" in error["message"]
    assert error["where"] == "copy_package/ops/copy.py:5"


def test_a_packages_digest_name_and_file_are_checked(packer, package):
    error = packer.compile_error(package(sha256="1" * 64))
    assert error["kind"] == "case_error" and "copy_package.ops.copy" in error["message"] and "1" * 64 in error["message"]
    error = packer.compile_error(package(name="copy_kernle"))
    assert error["message"].endswith("did you mean 'copy_kernel'? valid: copy_kernel")
    error = packer.compile_error(package(module="copy_package.ops"))
    assert "only imports copy_kernel; it is defined in copy_package.ops.copy" in error["message"]


def needs(package: str):
    return pytest.mark.skipif(importlib.util.find_spec(package) is None, reason=f"{package} is not installed")


@needs("liger_kernel")
def test_ligers_layer_norm_compiles(worker):
    case = ROOT / "kernels" / "packages" / "liger_norms.py"
    result = worker.compile(case, function="layer_norm", parameters={"m": 4, "n": 1024, "dtype": "bf16"})
    assert result["launch"]["entry"] == "_layer_norm_forward_kernel" and result["launch"]["num_warps"] == 4
    source = result["provenance"]["kernel_source"]
    assert source["path"] == "liger_kernel/ops/layer_norm.py"
    assert source["version"] == importlib.metadata.version("liger-kernel")
    assert "site-packages" not in str(result)


@needs("flag_gems")
def test_a_kernel_behind_a_packages_own_wrappers_is_unwrapped(fresh_worker, tmp_path):
    spec = importlib.util.find_spec("flag_gems")
    file = os.path.join(os.path.dirname(spec.origin), "ops", "softmax.py")
    digest = hashlib.sha256(open(file, "rb").read()).hexdigest()
    case = tmp_path / "case.py"
    case.write_text(CASE.format(kernel=f"PackageKernel('flag_gems.ops.softmax', 'softmax_kernel_inner', {digest!r})")
                    .replace('{"BLOCK": 128}', '{"TILE_N": 256, "ONE_TILE_PER_CTA": True}')
                    .replace('"x_ptr": Buffer((256,), "fp32", "in", Zeros())', '"input_ptr": Buffer((2, 256), "fp32", "in", '
                             'Zeros()), "M": Scalar(2), "N": Scalar(256)').replace('"out_ptr"', '"output_ptr"')
                    .replace('Buffer((256,), "fp32", "out")', 'Buffer((2, 256), "fp32", "out")'))
    result = fresh_worker(HOME=str(tmp_path / "home")).compile(case)
    assert result["launch"]["entry"] == "softmax_kernel_inner" and "site-packages" not in str(result)
    assert not (tmp_path / "home").exists()


TUTORIALS = {  # file -> kernel, arguments, constants, options
    "02-fused-softmax.py": ("softmax_kernel", {"output_ptr": "out", "input_ptr": "in", "input_row_stride": 781,
                                               "output_row_stride": 781, "n_rows": 1823, "n_cols": 781},
                            {"BLOCK_SIZE": 1024, "num_stages": 4}, {"num_warps": 8}),
    "03-matrix-multiplication.py": ("matmul_kernel", {
        "a_ptr": "in", "b_ptr": "in", "c_ptr": "out", "M": 512, "N": 512, "K": 512, "stride_am": 512, "stride_ak": 1,
        "stride_bk": 512, "stride_bn": 1, "stride_cm": 512, "stride_cn": 1}, {
        "BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 8, "ACTIVATION": "leaky_relu"}, {}),
    "05-layer-norm.py": ("_layer_norm_bwd_dwdb", {"DW": "in", "DB": "in", "FINAL_DW": "out", "FINAL_DB": "out", "M": 96,
                                                  "N": 1024}, {"BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 128}, {}),
    "06-fused-attention.py": ("_attn_fwd", {
        "sm_scale": 0.5, "M": "out", "Z": 1, "H": 2, "desc_q": "in", "desc_k": "in", "desc_v": "in", "desc_o": "out",
        "N_CTX": 1024}, {"HEAD_DIM": 64, "BLOCK_M": 128, "BLOCK_N": 64, "FP8_OUTPUT": False, "STAGE": 3,
                         "warp_specialize": False, "IS_HOPPER": True}, {"num_warps": 4}),
}


@pytest.mark.skipif(not os.environ.get("HEBE_TRITON_SOURCE"),
                    reason="HEBE_TRITON_SOURCE is not set: no checkout of Triton's sources with its tutorials")
@pytest.mark.parametrize("file", TUTORIALS)
def test_an_official_tutorials_kernel_compiles(worker, tmp_path, file):
    kernel, arguments, constexprs, options = TUTORIALS[file]
    path = f"python/tutorials/{file}"
    digest = hashlib.sha256(open(os.path.join(os.environ["HEBE_TRITON_SOURCE"], path), "rb").read()).hexdigest()
    given = {name: f"Buffer((1 << 20,), {'fp32' if name == 'M' else 'fp16'!r}, {value!r}"
                   + (", Zeros())" if value == "in" else ")") if isinstance(value, str) else f"Scalar({value!r})"
             for name, value in arguments.items()}
    case = tmp_path / "case.py"
    case.write_text(
        "from hebe.case import *\n\ndef case():\n"
        f"    return Case(name='tutorial', kernel=CheckoutKernel({path!r}, {kernel!r}, {digest!r}), grid=(2,),\n"
        f"        constexprs={constexprs!r}, options={options!r}, tolerance=Tolerance(0, 0),\n"
        f"        arguments={{{', '.join(f'{name!r}: {value}' for name, value in given.items())}}})\n")
    result = worker.compile(case)
    assert result["launch"]["entry"] == kernel and result["provenance"]["kernel_source"]["path"] == path
    assert os.environ["HEBE_TRITON_SOURCE"] not in str(result)


@pytest.mark.skipif(not os.environ.get("HEBE_TRITON_SOURCE"),
                    reason="HEBE_TRITON_SOURCE is not set: no checkout of Triton's sources with its tutorials")
def test_the_layer_norm_tutorial_is_the_one_that_its_case_pins(worker):
    case = ROOT / "kernels" / "packages" / "tutorials.py"
    result = worker.compile(case, function="layer_norm", parameters={"m": 3, "n": 1000})
    launch = result["launch"]
    assert (launch["entry"], launch["grid"], launch["num_warps"]) == ("_layer_norm_fwd_fused", [3, 1, 1], 4)
    assert result["provenance"]["constants"] == {"BLOCK_SIZE": 1024}
