"""The cases of kernels/ and a small launch of each, with odd edges and, where it loops, more than one step."""

import importlib.util
import os
import pathlib

KERNELS = pathlib.Path(__file__).parents[1] / "kernels"
ROWS = {"m": 5, "n": 1001}
#: file:function -> parameters.
CASES = {
    "attention:case": {"batch": 1, "heads": 2, "length": 150, "size": 32},
    "cross_entropy:case": {**ROWS, "block": 256},
    "layer_norm:case": {**ROWS, "block": 256},
    "layer_norm_backward:dwdb": {"m": 77, "n": 100, "groups": 3},
    "layer_norm_backward:dx": {**ROWS, "block": 256},
    "matmul:case": {"m": 77, "n": 300, "k": 99},
    "matmul:vector": {"m": 3, "n": 300, "k": 99, "block_n": 16, "block_k": 32, "num_stages": 2},
    "rms_norm:case": {**ROWS, "block": 256},
    "softmax:case": {"m": 7, "n": 100},
    "softmax:multi_block": {**ROWS, "block": 128},
    "traffic_control:case": {"n": 4096, "fraction": 0.5},
    "vector_add:case": {"n": 1001},
    "packages/fla_rows:cross_entropy": ROWS,
    "packages/fla_rows:l2norm": ROWS,
    "packages/fla_rows:layer_norm": ROWS,
    "packages/fla_rows:rms_norm_gated": ROWS,
    "packages/gems_norms:instance_norm": {"batch": 2, "channels": 3, "size": 1001, "tile": 128},
    "packages/gems_norms:layer_norm": {**ROWS, "tile": 128},
    "packages/gems_norms:rms_norm": {**ROWS, "tile": 128},
    "packages/gems_rows:log_softmax": {"m": 11, "n": 1001},
    "packages/gems_rows:softmax": {**ROWS, "tile": 128},
    "packages/gems_rows:softmax_non_inner": {"m": 3, "n": 77, "k": 900, "processors": 4},
    "packages/gems_rows:var_mean": {"m": 11, "n": 1501},
    "packages/liger_blocks:cross_entropy": {**ROWS, "block": 128},
    "packages/liger_blocks:group_norm": {"batch": 2, "groups": 3, "channels": 15, "size": 77, "block": 128},
    "packages/liger_blocks:kl_div": {"m": 3, "n": 20001},
    "packages/liger_norms:fused_add_rms_norm": ROWS,
    "packages/liger_norms:layer_norm": ROWS,
    "packages/liger_norms:rms_norm": ROWS,
    "packages/liger_rows:softmax": ROWS,
    "packages/liger_rows:sparsemax_backward": {**ROWS, "block": 128},
    "packages/liger_rows:swiglu": ROWS,
    "packages/tutorials:attention": {"batch": 1, "heads": 2, "length": 256, "size": 64},
    "packages/tutorials:layer_norm": {**ROWS, "block": 256},
    "packages/tutorials:matmul": {"m": 77, "n": 300, "k": 99},
    "packages/tutorials:softmax": {"m": 77, "n": 781, "processors": 3},
}
#: What the kernels of a file come from, by the first word of its name.
PACKAGES = {"fla": "fla", "gems": "flag_gems", "liger": "liger_kernel"}


def place(name: str) -> tuple[str, str]:
    """The file and the function of a case."""
    file, function = name.split(":")
    return str(KERNELS / f"{file}.py"), function


def missing(name: str) -> str | None:
    """What the case needs and is not here, as a reason to skip."""
    source = name.split(":")[0].split("/")[-1].split("_")[0]
    if source in PACKAGES and importlib.util.find_spec(PACKAGES[source]) is None:
        return f"{PACKAGES[source]} is not installed; scripts/install --tests does it"
    if source in ("tutorial", "tutorials") and not os.environ.get("HEBE_TRITON_SOURCE"):
        return "HEBE_TRITON_SOURCE is not set to a checkout of Triton's sources"
    return None
