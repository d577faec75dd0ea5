"""What a kernel takes of a multiprocessor, read from its cubin by the wheel's cuobjdump.

    {"registers", "stack_bytes", "shared_static_bytes", "local_bytes"     of a thread, but shared memory of a block
     "local_loads", "local_stores"                                        instructions of the SASS, null without it
     "cuobjdump"}                                                         its version

or {"unavailable": reason}. Registers that ptxas spilled lie in the stack, and are read and written by the local loads
and stores; a kernel without them has spilled nothing. Dynamic shared memory is the launch's; from sm_90 on the static
one of a kernel that uses any is 1024 bytes more, which ptxas reserves for the system.
"""

from __future__ import annotations

import re
from typing import Any

from hebe.case import CompiledKernel
from hebe.worker import toolchain
from hebe.worker.protocol import Failure

#: cuobjdump's names of what is recorded.
FIELDS = {"REG": "registers", "STACK": "stack_bytes", "SHARED": "shared_static_bytes", "LOCAL": "local_bytes"}
_USAGE = re.compile(r"[A-Z]+(?:\[\d+\])?:\d+(?: [A-Z]+(?:\[\d+\])?:\d+)*")
_LOCAL = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?\w+\s+)?(LDL|STL)\b", re.MULTILINE)


def resources_of(cubin: bytes, entry: str, sass: str | None) -> dict[str, Any]:
    """The resources of the kernel `entry` of this cubin; `sass` is the cubin's, where it could be made."""
    text, found = toolchain.read_cubin("cuobjdump", "--dump-resource-usage", cubin)
    if text is None:
        return {"unavailable": f"cuobjdump: {found['unavailable']}"}
    usage = _usage(text, entry)
    if usage is None:
        return {"unavailable": f"cuobjdump {found['version']} printed no resource usage of {entry} that can be read: "
                               f"{text.strip()!r}"}
    instructions = None if sass is None else _LOCAL.findall(sass)
    return {
        **usage,
        "local_loads": None if instructions is None else instructions.count("LDL"),
        "local_stores": None if instructions is None else instructions.count("STL"),
        "cuobjdump": found["version"],
    }


def _usage(text: str, entry: str) -> dict[str, int] | None:
    """The four numbers of one function; None unless its line is there once and is made of names and numbers only."""
    lines = [line.strip() for line in text.splitlines()]
    at = [index for index, line in enumerate(lines) if line == f"Function {entry}:"]
    if len(at) != 1 or at[0] + 1 >= len(lines) or not _USAGE.fullmatch(lines[at[0] + 1]):
        return None
    numbers = dict(pair.split(":") for pair in lines[at[0] + 1].split(" "))
    if not FIELDS.keys() <= numbers.keys():
        return None
    return {name: int(numbers[printed]) for printed, name in FIELDS.items()}


def compiled_kernel(resources: dict[str, Any], metadata: Any) -> CompiledKernel:
    """What a case's grid function is told; raises Failure(toolchain_unavailable)."""
    if "unavailable" in resources:
        raise Failure("toolchain_unavailable", "Case.grid: is computed from the compiled kernel, whose registers are "
                                               f"not known: {resources['unavailable']}")
    # The driver's local size, of which Triton makes n_spills, is the stack of a kernel's frame and its local memory.
    words = (resources["stack_bytes"] + resources["local_bytes"]) // 4
    return CompiledKernel(resources["registers"], metadata.shared or 0, metadata.num_warps, words)
