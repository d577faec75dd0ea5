"""Hebe: how much energy a GPU kernel costs, and how sure that is.

Importing it is cheap and safe with no GPU: what needs the library is loaded when it is first used (docs/python.md). This
package depends on neither torch nor Triton. `hebe.case` is what the author of a case imports; `python -m hebe.worker` is
the compile worker that the `hebe` program starts.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import sim as sim
    from .autotuner import autotune as autotune
    from .dispatching import Choice as Choice, dispatch as dispatch, load_profile as load_profile, unload_profile as unload_profile
    from .placing import Placement as Placement, PlacementRow as PlacementRow, load_placement as load_placement
    from .measuring import compare as compare, do_bench_energy as do_bench_energy, measure as measure
    from .refused import Refused as Refused
    from .results import Comparison as Comparison, Estimate as Estimate, Marginal as Marginal, Measured as Measured, Measurement as Measurement
    from .running import Campaign as Campaign, Job as Job, Status as Status, run as run, status as status

#: Public name to the module that has it; "sim" is a module itself.
_HOMES = {
    "autotune": "autotuner", "Choice": "dispatching", "dispatch": "dispatching", "load_profile": "dispatching",
    "unload_profile": "dispatching", "load_placement": "placing", "Placement": "placing", "PlacementRow": "placing", "compare": "measuring", "do_bench_energy": "measuring", "measure": "measuring",
    "Refused": "refused", "Comparison": "results", "Estimate": "results", "Marginal": "results", "Measured": "results",
    "Measurement": "results", "Campaign": "running", "Job": "running", "Status": "running", "run": "running", "status": "running"}

__all__ = ["__version__", "sim", *_HOMES]


def __getattr__(name: str) -> Any:
    if name == "sim":
        return importlib.import_module(".sim", __name__)
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module("." + _HOMES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
