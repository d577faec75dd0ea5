"""Arguments are specialised as Triton's JIT would: by rule, and by comparing with a real launch's own compile."""

import base64
import hashlib
import json
import os
import subprocess
import sys

import pytest
from conftest import ROOT

KERNEL = '''\
import triton
import triton.language as tl
from hebe.case import *

@triton.jit(do_not_specialize=["raw_one", "raw_sixteen"], do_not_specialize_on_alignment=["unaligned"])
def many(out_ptr, src_ptr, mask_ptr, one, sixteen, odd, big, huge, negative, raw_one, raw_sixteen, unaligned,
         wide: tl.int64, wide_one: tl.int64, flag, scale, half: tl.float16, nothing, BLOCK: tl.constexpr, default=32):
    i = tl.arange(0, BLOCK)
    total = one + sixteen + odd + big + negative + raw_one + raw_sixteen + unaligned + wide + wide_one + default
    if flag:
        total += 1
    x = tl.load(src_ptr + i, mask=tl.load(mask_ptr + i)).to(tl.float32) * scale + half
    tl.store(out_ptr + i, x + total + huge)

VALUES = dict(one=1, sixteen=16, odd=7, big=2**40, huge=2**63, negative=-32, raw_one=1, raw_sixteen=16, unaligned=48,
              wide=64, wide_one=1, flag=True, scale=0.1, half=0.5)
BUFFERS = dict(out_ptr=Buffer((128,), "fp32", "out"), src_ptr=Buffer((128,), "bf16", "in", Zeros()),
               mask_ptr=Buffer((128,), "i1", "in", Uniform(0, 2, 5)))

def case(dtype: str = "", one: int = 1):
    values = {name: Scalar(value) for name, value in VALUES.items()}
    if dtype:
        values["odd"] = Scalar(7, dtype)
    values["one"] = Scalar(one)
    return Case(name="many", kernel=many, arguments={**BUFFERS, **values, "nothing": None}, constexprs={"BLOCK": 128},
                grid=(1,), tolerance=Tolerance(0, 0))
'''

#: What JITFunction.run itself compiles, with a stub in the place of the driver.
LAUNCH = '''\
import hashlib, json, os, sys
os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
sys.path.insert(0, sys.argv[1])
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime.jit import MockTensor
import many_case

class Stub:
    get_current_device = staticmethod(lambda: 0)
    get_current_stream = staticmethod(lambda device: 0)
    get_current_target = staticmethod(lambda: GPUTarget("cuda", 90, 32))

triton.runtime.driver.set_active(Stub())
buffers = {name: MockTensor(buffer.dtype) for name, buffer in many_case.BUFFERS.items()}
kernel = many_case.many.warmup(**buffers, **many_case.VALUES, nothing=None, BLOCK=128, num_warps=4, grid=(1,))
print(json.dumps({"cubin": hashlib.sha256(kernel.asm["cubin"]).hexdigest(), "signature": kernel.src.signature,
                  "constants": {str(k): v for k, v in kernel.src.constants.items()},
                  "attributes": {many_case.many.arg_names[k[0]]: v for k, v in kernel.src.attrs.items() if v}}))
'''


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    path = tmp_path_factory.mktemp("many") / "many_case.py"
    path.write_text(KERNEL)
    return path


def test_the_jit_itself_would_compile_the_same_cubin(worker, many, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "TRITON_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", LAUNCH, str(many.parent)], env=environment, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    jit = json.loads(done.stdout)
    result = worker.compile(many)
    assert result["provenance"]["signature"] == jit["signature"]
    assert result["provenance"]["attributes"] == jit["attributes"]
    assert result["provenance"]["constants"] == {"one": 1, "nothing": None, "BLOCK": 128}
    assert jit["constants"] == {"(3,)": 1, "(17,)": None, "(18,)": 128}
    assert hashlib.sha256(base64.b64decode(result["artifacts"]["cubin"]["data"])).hexdigest() == jit["cubin"]


def test_the_rules_hold(worker, many):
    result = worker.compile(many)
    assert result["provenance"]["signature"] == {
        "out_ptr": "*fp32", "src_ptr": "*bf16", "mask_ptr": "*u1", "one": "constexpr", "sixteen": "i32", "odd": "i32",
        "big": "i64", "huge": "u64", "negative": "i32", "raw_one": "i32", "raw_sixteen": "i32", "unaligned": "i32",
        "wide": "i64", "wide_one": "i64", "flag": "u1", "scale": "fp32", "half": "fp16", "nothing": "constexpr",
        "BLOCK": "constexpr", "default": "i32"}
    assert set(result["provenance"]["attributes"]) == {
        "out_ptr", "src_ptr", "mask_ptr", "sixteen", "big", "huge", "negative", "wide", "default"}


def test_ones_and_nones_vanish_from_the_launch_and_large_integers_are_strings(worker, many):
    arguments = worker.compile(many)["launch"]["arguments"]
    assert [a["name"] for a in arguments] == [
        "out_ptr", "src_ptr", "mask_ptr", "sixteen", "odd", "big", "huge", "negative", "raw_one", "raw_sixteen",
        "unaligned", "wide", "wide_one", "flag", "scale", "half", "default"]
    scalars = {a["name"]: (a["dtype"], a["value"]) for a in arguments if a["kind"] == "scalar"}
    assert scalars["big"] == ("i64", 2**40)
    assert scalars["huge"] == ("u64", str(2**63))
    assert scalars["flag"] == ("i1", True)
    assert scalars["scale"] == ("fp32", 0.1)
    assert scalars["half"] == ("fp16", 0.5)
    assert scalars["default"] == ("i32", 32)
    assert arguments[2]["dtype"] == "i1"


def test_the_ptx_has_the_listed_parameters_and_two_scratch_pointers(worker, many):
    for one, extra in ((1, 0), (2, 1)):
        result = worker.compile(many, parameters={"one": one})
        count = result["artifacts"]["ptx"]["data"].count(".param .")
        assert count == len(result["launch"]["arguments"]) + 2
        assert len(result["launch"]["arguments"]) == 17 + extra


def test_a_declared_type_that_triton_would_not_use_is_refused(worker, many):
    assert worker.compile(many, parameters={"dtype": "i32"})["launch"]["arguments"][4]["dtype"] == "i32"
    error = worker.compile_error(many, parameters={"dtype": "i64"})
    assert error["kind"] == "case_error"
    assert "'odd': declared i64, but Triton passes 7 as i32" in error["message"]


@pytest.mark.parametrize("old, new, words", [
    ('"nothing": None', '"nothing": None, "nothin": None', "did you mean 'nothing'?"),
    (', "nothing": None', "", "no value for parameter nothing"),
    ('constexprs={"BLOCK": 128}', 'constexprs={"BLOCK": 128, "scale": 1}', "belongs in arguments|also in arguments"),
    ('"nothing": None}, constexprs={"BLOCK": 128}', '"nothing": None, "BLOCK": Scalar(128)}', "belongs in constexprs"),
    ("kernel=many", "kernel=print", "is not a @triton.jit function"),
    ('"nothing": None', '"nothing": type("TensorDescriptor", (), {})()', "tensor descriptors are not supported yet"),
])
def test_arguments_that_do_not_fit_the_kernel_are_case_errors(worker, tmp_path, old, new, words):
    assert old in KERNEL
    path = tmp_path / "wrong_case.py"
    path.write_text(KERNEL.replace(old, new))
    error = worker.compile_error(path)
    assert error["kind"] == "case_error"
    assert any(alternative in error["message"] for alternative in words.split("|")), error["message"]
