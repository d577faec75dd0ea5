"""Frozen plans measured from Python, and the board's state. In: a campaign, or its specification; out: sealed runs.

Invariant: a job's record is the one that `hebe campaign-submit` would make of it: the same plan, the same seal on the
simulated GPU.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import arguments, library
from .callables import torch_or_none
from .measuring import PathLike, call_watched, is_sim
from .refused import Refused, refused_from


@dataclass(frozen=True)
class Job:
    """One job of a campaign. `run` and `seal` are None until it is sealed; `refused` says why the last attempt is not."""

    id: str
    plan_id: str
    state: str
    run: str | None
    seal: str | None
    verdict: str | None
    refused: dict[str, str] | None


@dataclass(frozen=True)
class Campaign:
    """What became of a campaign. `exit` is the program's exit code: 0 where every claim holds."""

    campaign: str
    provenance: str
    jobs: tuple[Job, ...]
    sealed_now: int
    pending: int
    analysis: str | None
    refusals: tuple[Refused, ...]
    notices: tuple[str, ...]


@dataclass(frozen=True)
class Status:
    """The board and its meters. `why_not` is the refusal that a measurement would meet; None: it could begin."""

    measurable: bool
    why_not: Refused | None
    device: str
    uuid: str
    driver: str
    meter: str
    meter_status: str | None
    provenance: str


def _home() -> Path:
    """Where kernels/ is: a checkout, else beside this package's modules."""
    package = Path(__file__).resolve().parent
    checkout = package.parents[1]
    return checkout if (checkout / "kernels").is_dir() else package


def _planned(spec: Path, request: dict[str, Any]) -> str:
    path = os.pathsep.join(filter(None, [str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")]))
    worker = {"argv": [sys.executable, "-m", "hebe.worker"], "environment": {"PYTHONPATH": path, "PYTHONSAFEPATH": "1"}}
    answer = call_watched("hebe_plan", {**request, "spec": str(spec), "kernels": str(_home() / "kernels"), "worker": worker})
    return str(answer["campaign"])


def _readable(text: str) -> str:
    """Bytes of the environment that are no UTF-8, as a mark: JSON cannot say them."""
    return os.fsencode(text).decode(errors="replace")


def run(plan: PathLike, *, device: str | int | None = "auto", resume: bool = False, redact: bool = False, faults: Iterable[str] = (),
        data_root: PathLike | None = None) -> Campaign:
    """Measures the pending jobs of a campaign: its id (or a unique part of it), or a specification (.toml, .json; docs/campaigns.md).

    A specification is frozen first, for this device, as `hebe campaign-plan` does. Raises `Refused`; what refuses a
    single job is in `refusals`, and the job stays pending.
    """
    injected = arguments.faults_of(faults)
    shared = library.without_none(data_root=library.data_root(data_root), device=arguments.device_of(device),
                                  scratch=tempfile.gettempdir())
    name = os.fspath(plan)
    if name.endswith((".toml", ".json")):
        name = _planned(Path(name).absolute(), {**shared, "faults": injected})
        injected = []  # they are part of the plan
    answer = call_watched("hebe_run", {**shared, "campaign": name, "resume": resume, "redact": redact, "faults": injected,
                                       "argv": ["hebe.run", name],
                                       "variables": {_readable(key): _readable(value) for key, value in os.environ.items()}})
    return Campaign(campaign=answer["campaign"], provenance=answer["provenance"],
                    jobs=tuple(Job(**job) for job in answer["jobs"]), sealed_now=answer["sealed_now"],
                    pending=answer["pending"], analysis=answer["analysis"],
                    refusals=tuple(refused_from(r) for r in answer["refusals"]), notices=tuple(answer["notices"]))


def status(*, device: str | int | None = "auto", stream: int | None = None, faults: Iterable[str] = (),
           data_root: PathLike | None = None) -> Status:
    """Whether this board could be measured on now, and if not, why not. Raises `Refused` where there is no such board."""
    selector, handle = arguments.device_of(device), arguments.whole("stream", stream, arguments.MOST_HANDLE)
    torch = torch_or_none()
    if handle is None and not is_sim(selector) and torch is not None and torch.cuda.is_initialized():
        handle = int(torch.cuda.current_stream().cuda_stream)  # this process is on the board: that is no reason not to measure
    answer = library.call("hebe_status", library.without_none(data_root=library.data_root(data_root), device=selector, stream=handle,
                                                              faults=arguments.faults_of(faults) or None))
    why = answer["why_not"]
    found = answer["device"]
    return Status(measurable=answer["measurable"], why_not=None if why is None else refused_from(why), device=found["name"],
                  uuid=found["uuid"], driver=found["driver"], meter=answer["samples"], meter_status=answer["meter_status"],
                  provenance=answer["provenance"])
