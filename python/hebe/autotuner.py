"""Triton's autotuner by joules. In: configurations, keys and hooks as `triton.autotune` has them; out: for each key the
configuration whose launch costs the least energy (or energy times time, or time).

Invariant: no configuration is chosen by a cost that was not measured. Where a meter declines, the key is tuned by
Triton's own times instead, and a warning says so once. Source of the interface: triton.runtime.autotuner (3.6.0).
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .arguments import faults_of
from .measuring import PathLike, checked_whole, measure
from .refused import Refused
from .results import Measurement

_OBJECTIVES = ("energy", "edp", "latency")


def cost_of(measured: Measurement, objective: str, marginal: bool) -> float:
    """J, J·s or s of one launch. Raises what kept the marginal energy from being known; never 0."""
    if objective == "latency":
        cost = measured.time.value
    else:
        if marginal and measured.marginal is None:
            raise measured.no_marginal or Refused("meter_not_qualified", "no marginal energy was measured", "marginal")
        joules = measured.marginal.energy.value if marginal and measured.marginal is not None else measured.energy.value
        cost = joules * measured.time.value if objective == "edp" else joules
    if not 0 < cost < float("inf"):
        raise Refused("meter_not_qualified", f"a launch cannot cost {cost}", measured.meter,
                      "the meter did not measure it: see hebe.status()")
    return cost


class _NotMeasured(Exception):
    """A configuration that ran and was not measured: it voids the key's tuning by energy."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(str(refused))
        self.refused = refused


def _energy_autotuner(base: type[Any]) -> type[Any]:
    """The autotuner over Triton's own, which keeps caching, pruning and hooks."""

    class EnergyAutotuner(base):  # type: ignore[misc]
        """`measurements` has what was measured of the last key that was tuned, by configuration; `fallbacks` the keys'
        refusals in the order of their warnings."""

        def __init__(self, fn: Any, objective: str, marginal: bool, options: dict[str, Any], do_bench: Any, **triton: Any) -> None:
            super().__init__(fn, fn.arg_names, do_bench=self._bench_energy, **triton)
            self.cache_results = False  # Triton's file of times must not be given joules
            self.objective, self.marginal, self.options = objective, marginal, options
            self.own_bench = do_bench
            self.measurements: dict[Any, Measurement] = {}
            self.fallbacks: list[Refused] = []
            self._by_time = False
            self._config: Any = None

        def _bench(self, *args: Any, config: Any, **meta: Any) -> Any:
            self._config = config
            return super()._bench(*args, config=config, **meta)

        def _bench_energy(self, kernel_call: Callable[[], object], quantiles: Sequence[float]) -> list[float]:
            if self._by_time:
                bench = self.own_bench or _triton_benchmarker()
                return list(bench(kernel_call, quantiles=quantiles))
            try:
                measured = measure(kernel_call, **self.options)
                cost = cost_of(measured, self.objective, self.marginal)
            except Refused as refused:
                if refused.exit == 2 and refused.code != "case_failed":
                    raise  # a wrong option is nothing to fall back from
                raise _NotMeasured(refused) from refused
            self.measurements[self._config] = measured
            return [cost] * len(quantiles)

        def run(self, *args: Any, **kwargs: Any) -> Any:
            self._by_time = False
            try:
                return self._run_fresh(*args, **kwargs)
            except _NotMeasured as void:
                self._tell(void.refused)
                self._by_time = True
                return self._run_fresh(*args, **kwargs)

        def _run_fresh(self, *args: Any, **kwargs: Any) -> Any:
            before, self.measurements = self.measurements, {}
            try:
                return super().run(*args, **kwargs)
            finally:
                if not self.measurements and not self._by_time:
                    self.measurements = before  # nothing was tuned: the key was known, or this one is void

        def _tell(self, refused: Refused) -> None:
            self.fallbacks.append(refused)
            if len(self.fallbacks) == 1:
                warnings.warn(f"hebe.autotune: {self.base_fn.__name__} is tuned by Triton's own times, not by {self.objective}: "
                              f"{refused}", RuntimeWarning, stacklevel=4)

    return EnergyAutotuner


def _triton_benchmarker() -> Any:
    return importlib.import_module("triton.runtime.driver").driver.active.get_benchmarker()


def autotune(configs: Sequence[Any], key: Sequence[str], prune_configs_by: dict[str, Any] | None = None,
             reset_to_zero: Sequence[str] | None = None, restore_value: Sequence[str] | None = None,
             pre_hook: Callable[..., object] | None = None, post_hook: Callable[..., object] | None = None,
             warmup: float | None = None, rep: float | None = None, use_cuda_graph: bool = False,
             do_bench: Callable[..., Any] | None = None, cache_results: bool = False, *, objective: str = "energy",
             marginal: bool = False, pairs: int = 2, window: float = 1.0, warm_up: float = 3.0,
             device: str | int | None = "auto", seed: int | None = None, faults: Iterable[str] = (),
             data_root: PathLike | None = None) -> Callable[[Any], Any]:
    """`triton.autotune` with the energy of a launch in place of its time: put it where that stands.

    `objective`: energy (J), edp (J·s) or latency (s), each over the meter's windows; `marginal`: energy beyond an idle
    board. What follows is as `hebe.measure` has it. `warmup`, `rep`, `use_cuda_graph` and `cache_results` have no meaning
    here and are ignored with a notice; `do_bench` is what times a key whose energy was not measured (default: Triton's).
    Hooks and restored values are part of a launch, as in Triton. A configuration that cannot be compiled never wins; one
    that ran and was not measured voids the key. Raises `Refused` (bad_argument, below_tier_minimum, toolchain_unavailable
    where Triton is not installed), ValueError (`objective`) and TypeError (`seed`) here already, before a kernel is tuned; what
    libhebe.so alone knows (least and most, names of faults) at the first launch, where it cannot be loaded here.
    """
    if objective not in _OBJECTIVES:
        raise ValueError(f"objective is {', '.join(_OBJECTIVES)}, not {objective!r}")
    options: dict[str, Any] = {"pairs": pairs, "window": window, "warm_up": warm_up, "device": device, "seed": seed,
                               "faults": faults_of(faults), "data_root": data_root, "idle": 2.0 if marginal else 0.0}
    checked_whole(**options)  # here, and not in the tuning of a key, which has Triton's times to fall back on
    try:
        autotuner = _energy_autotuner(importlib.import_module("triton.runtime.autotuner").Autotuner)
    except ImportError as error:
        raise Refused("toolchain_unavailable", f"Triton cannot be imported: {error}", "hebe.autotune",
                      "pip install triton") from error
    unused = [name for name, given in (("warmup", warmup), ("rep", rep), ("use_cuda_graph", use_cuda_graph),
                                       ("cache_results", cache_results)) if given]
    if unused:
        warnings.warn(f"hebe.autotune ignores {', '.join(unused)}: its windows are as long as the meter needs, and Triton's "
                      "file cache holds times", UserWarning, stacklevel=2)

    def decorate(fn: Any) -> Any:
        return autotuner(fn, objective, marginal, options, do_bench, configs=configs, key=list(key),
                         reset_to_zero=reset_to_zero, restore_value=restore_value, pre_hook=pre_hook, post_hook=post_hook,
                         prune_configs_by=prune_configs_by)

    return decorate
