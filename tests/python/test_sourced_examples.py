"""The two cases of sourced kernels: what the kernel computes, by Hebe's interpreter, is what their references say."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT

BINARY = Path(os.environ.get("HEBE_BINARY", ROOT / "build" / "release" / "hebe"))
NUMPY = {"fp16": np.float16, "fp32": np.float32}

EXAMPLES = [
    pytest.param("tutorial_layer_norm", {"m": 3, "n": 1000, "dtype": dtype}, id=f"tutorial-{dtype}",
                 marks=pytest.mark.skipif(not os.environ.get("HEBE_TRITON_SOURCE"),
                                          reason="HEBE_TRITON_SOURCE is not set: no checkout of Triton's sources"))
    for dtype in NUMPY
] + [
    pytest.param("liger_layer_norm", {"m": 3, "n": 1000, "dtype": dtype}, id=f"liger-{dtype}",
                 marks=pytest.mark.skipif(importlib.util.find_spec("liger_kernel") is None,
                                          reason="liger_kernel is not installed"))
    for dtype in NUMPY
]


def values(init: dict, shape: list[int], dtype: str) -> np.ndarray:
    """Of the initialiser's distribution; not its bytes, which are the C++ side's."""
    made = np.random.default_rng(init["seed"])
    drawn = (made.normal(init["mean"], init["std"], shape) if init["kind"] == "normal"
             else made.uniform(init["low"], init["high"], shape))
    return drawn.astype(NUMPY[dtype])


@pytest.mark.skipif(not BINARY.is_file(), reason=f"there is no {BINARY.name} to interpret the kernel; set HEBE_BINARY")
@pytest.mark.parametrize("name, parameters", EXAMPLES)
def test_the_reference_is_what_the_kernel_computes(worker, tmp_path, name, parameters):
    case = ROOT / "kernels" / f"{name}.py"
    made = worker.compile(case, parameters=parameters)
    launch, arguments, paths = made["launch"], [], {"inputs": {}, "outputs": {}}
    for argument in launch["arguments"]:
        if argument["kind"] == "scalar":
            arguments.append({"scalar": argument["dtype"], "value": argument["value"]})
            continue
        file, out = tmp_path / f"{argument['name']}.bin", argument["role"] == "out"
        filled = (np.full(argument["shape"], np.nan, NUMPY[argument["dtype"]]) if out
                  else values(argument["init"], argument["shape"], argument["dtype"]))
        filled.tofile(file)
        arguments.append({"buffer": file.name, "name": argument["name"]} | ({"out": True} if out else {}))
        paths["outputs" if out else "inputs"][argument["name"]] = str(file) + (".wanted" if out else "")
    (tmp_path / "launch.json").write_text(json.dumps({"grid": launch["grid"], "args": arguments}))
    (tmp_path / "kernel.ttgir").write_text(made["artifacts"]["ttgir"]["data"])
    subprocess.run([BINARY, "ttgir", "run", tmp_path / "kernel.ttgir", "--launch", tmp_path / "launch.json"], check=True)
    wanted = worker.ask("reference", case=str(case), parameters=parameters, **paths)["outputs"]
    for argument in launch["arguments"]:
        if argument["name"] in wanted:
            found = np.fromfile(tmp_path / f"{argument['name']}.bin.out", NUMPY[argument["dtype"]])
            right = np.fromfile(wanted[argument["name"]]["path"], NUMPY[wanted[argument["name"]]["dtype"]])
            np.testing.assert_allclose(found.astype(np.float64), right.astype(np.float64), **launch["tolerance"])
