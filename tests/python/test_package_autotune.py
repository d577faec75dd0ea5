"""hebe.autotune beside Triton's own autotuner, with kernels that run on the simulated GPU."""

from __future__ import annotations

import warnings

import hebe
import pytest
import triton
from package import QUICK, needs_library, python
from triton.runtime.errors import OutOfResources

pytestmark = needs_library
OPTIONS = {"device": "sim", "pairs": QUICK["pairs"], "window": QUICK["window"], "warm_up": QUICK["warm_up"]}

#: By BLOCK: s and W beyond idle. 64 costs the fewest joules, 128 the least time, 96 the least of both together.
COSTS = {64: (1.0e-3, 100.0), 96: (0.9e-3, 150.0), 128: (0.8e-3, 400.0)}
CONFIGS = [triton.Config({"BLOCK": block}, num_warps=4) for block in COSTS]


class Tensor:
    def __init__(self, value=0, dtype="fp32"):
        self.value, self.dtype = value, dtype

    def clone(self):
        return Tensor(self.value, self.dtype)

    def copy_(self, other):
        self.value = other.value

    def zero_(self):
        self.value = 0


def scale_kernel(x, n, BLOCK):
    """What Triton's autotuner takes names from."""


class Kernel:
    """A kernel as the autotuner sees one: argument names, a function behind it, run()."""

    arg_names = ["x", "n", "BLOCK"]
    fn = staticmethod(scale_kernel)

    def __init__(self, too_large=(), costs=COSTS):
        self.too_large, self.costs, self.ran = too_large, costs, []

    def run(self, x, n, *, BLOCK, num_warps, num_ctas, num_stages):
        if BLOCK in self.too_large:
            raise OutOfResources(300_000, 232_448, "shared memory")
        self.ran.append(BLOCK)
        x.value += 1
        try:
            hebe.sim.work(seconds=self.costs[BLOCK][0], watts=self.costs[BLOCK][1])()
        except hebe.Refused:  # the launch after tuning is not measured
            pass
        return BLOCK


def tuned(kernel=None, **options):
    return hebe.autotune(CONFIGS, key=["n"], **{**OPTIONS, **options})(kernel or Kernel())


@pytest.mark.parametrize("objective, block", [("energy", 64), ("latency", 128), ("edp", 96)])
def test_the_objective_decides_and_the_joule_cheapest_is_not_the_fastest(objective, block):
    kernel = tuned(objective=objective)
    assert kernel.run(Tensor(), 4096) == block
    assert kernel.best_config.kwargs == {"BLOCK": block}
    measured = {config.kwargs["BLOCK"]: m for config, m in kernel.measurements.items()}
    assert set(measured) == set(COSTS) and not kernel.fallbacks
    assert all(m.provenance == "simulated" and m.energy.value > 0 for m in measured.values())
    for found, (seconds, _) in COSTS.items():
        assert measured[found].time.value == pytest.approx(seconds, rel=0.01)


def test_by_marginal_energy_the_idle_board_is_no_part_of_a_launch():
    costs = {64: (1.0e-3, 100.0), 96: (0.6e-3, 190.0), 128: (0.8e-3, 400.0)}  # in all 96 costs less, at the margin 64
    assert tuned(Kernel(costs=costs)).run(Tensor(), 1) == 96
    assert tuned(Kernel(costs=costs), marginal=True).run(Tensor(), 1) == 64


def test_a_key_is_tuned_once_and_another_dtype_is_another_key():
    kernel = Kernel()
    autotuner = tuned(kernel)
    autotuner.run(Tensor(), 4096)
    once = len(kernel.ran)
    autotuner.run(Tensor(), 4096)
    assert len(kernel.ran) == once + 1
    autotuner.run(Tensor(dtype="fp16"), 4096)
    assert len(kernel.ran) > once + 2 and len(autotuner.cache) == 2


def test_a_configuration_that_cannot_be_compiled_never_wins():
    kernel = tuned(Kernel(too_large=(64,)))
    assert kernel.run(Tensor(), 1) == 96
    timings = {config.kwargs["BLOCK"]: times[0] for config, times in kernel.configs_timings.items()}
    assert timings[64] == float("inf") and all(cost > 0 for cost in timings.values())
    assert {c.kwargs["BLOCK"] for c in kernel.measurements} == {96, 128}


def test_a_meter_that_declines_voids_the_key_and_triton_times_it_and_no_cost_is_zero():
    timed = []

    def times(kernel_call, quantiles):
        timed.append(1)
        return [{1: 3.0, 2: 1.0, 3: 2.0}[(len(timed) - 1) % 3 + 1]] * 3

    kernel = tuned(faults=("counter_frozen@0",), do_bench=times)
    with pytest.warns(RuntimeWarning, match="tuned by Triton's own times.*meter_frozen") as told:
        assert kernel.run(Tensor(), 1) == 96
    assert len([w for w in told if "Triton's own times" in str(w.message)]) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once
        assert kernel.run(Tensor(), 2) == 96
    assert len(timed) == 6 and not kernel.measurements
    assert [r.code for r in kernel.fallbacks] == ["meter_frozen"] * 2
    assert all(cost > 0 for times in kernel.configs_timings.values() for cost in times)


def test_one_configuration_that_was_not_measured_voids_those_that_were():
    class Slow(Kernel):
        def run(self, x, n, **meta):
            if meta["BLOCK"] == 128:
                for _ in range(2):  # no simulated work at all: it cannot be timed
                    self.ran.append(128)
                return 128
            return super().run(x, n, **meta)

    kernel = tuned(Slow(), do_bench=lambda call, quantiles: [1.0] * 3)
    with pytest.warns(RuntimeWarning, match="Triton's own times"):
        kernel.run(Tensor(), 1)
    assert not kernel.measurements and set(map(tuple, kernel.configs_timings.values())) == {(1.0, 1.0, 1.0)}


def test_hooks_restored_values_and_pruning_are_tritons_own():
    seen = []
    x = Tensor(7)
    kernel = hebe.autotune(CONFIGS, key=["n"], restore_value=["x"], **OPTIONS,
                           prune_configs_by={"early_config_prune": lambda configs, named, **kw: configs[1:]})(Kernel())
    assert kernel.run(x, 1) == 96 and x.value == 8  # one launch more than before: every other was undone
    assert {c.kwargs["BLOCK"] for c in kernel.measurements} == {96, 128}

    zeroed = hebe.autotune(CONFIGS[:2], key=["n"], reset_to_zero=["x"], **OPTIONS)(Kernel())
    zeroed.run(x, 1)
    assert x.value == 1
    hooked = hebe.autotune(CONFIGS[:2], key=["n"], pre_hook=lambda kw, reset_only=False: seen.append(reset_only),
                           post_hook=lambda kw, exception: seen.append(exception), **OPTIONS)(Kernel())
    hooked.run(x, 1)
    assert False in seen and True in seen and None in seen


def test_a_kernel_that_is_not_tuned_yet_is_tuned_while_what_calls_it_is_prepared():
    kernel = tuned()
    done = hebe.measure(lambda: kernel.run(Tensor(), 4096), **QUICK)
    assert kernel.best_config.kwargs == {"BLOCK": 64} and not kernel.fallbacks
    assert done.time.value == pytest.approx(COSTS[64][0], rel=0.01) and done.how.startswith("captured")


def test_one_configuration_is_not_measured():
    kernel = hebe.autotune(CONFIGS[:1], key=["n"], device="sim")(Kernel())
    assert kernel.run(Tensor(), 1) == 64 and not kernel.measurements


def test_what_has_no_meaning_here_is_ignored_with_a_notice():
    with pytest.warns(UserWarning, match="ignores warmup, rep, cache_results"):
        made = hebe.autotune(CONFIGS, key=["n"], warmup=25, rep=100, cache_results=True, **OPTIONS)(Kernel())
    assert made.cache_results is False


def test_tritons_file_of_times_is_never_given_joules(monkeypatch):
    monkeypatch.setattr(triton.knobs.autotuning, "cache", True)  # TRITON_CACHE_AUTOTUNING=1
    kernel = tuned()
    monkeypatch.setattr(kernel, "check_disk_cache", lambda *args: pytest.fail("the cache was asked"))
    assert kernel.run(Tensor(), 1) == 64


#: An option, and the place and a word of its refusal.
WRONG = [({"pairs": 1}, "pairs", "raise pairs to 2 or more"), ({"window": 0.1}, "window", "raise window to 0.5 or more"),
         ({"warm_up": 0}, "warm_up", "raise warm_up to 1 or more"), ({"warm_up": -1}, "warm_up", "raise warm_up to 1 or more"),
         ({"window": 601}, "window", "lower window"), ({"pairs": 10_001}, "pairs", "lower pairs"), ({"seed": 2**64}, "seed", "2\\^64 - 1"),
         ({"faults": ["nope"]}, "faults", "unknown fault"), ({"faults": ["mig"], "device": 0}, "faults", 'use device="sim"'),
         ({"device": "sim:x"}, "device", "sim:9999")]


@pytest.mark.parametrize("options, where, word", WRONG, ids=str)
def test_a_wrong_option_is_refused_where_autotune_is_called(options, where, word):
    with pytest.raises(hebe.Refused, match=word) as caught:
        hebe.autotune(CONFIGS, key=["n"], do_bench=lambda call, quantiles: pytest.fail("it was timed"), **{**OPTIONS, **options})
    assert caught.value.where == where and caught.value.exit in (2, 3), caught.value
    assert "tier=" not in caught.value.next and "--" not in str(caught.value)  # autotune has no tier


def test_a_seed_that_is_none_is_a_type_error_where_autotune_is_called():
    with pytest.raises(TypeError, match="seed is -1"):
        hebe.autotune(CONFIGS, key=["n"], seed=-1)


DECORATED = """
import sys, warnings, triton, hebe
made = hebe.autotune([triton.Config({"BLOCK": 1})], key=["n"], **eval(sys.argv[1]))
maps = open("/proc/self/maps").read()
print("taken", "libcuda" in maps, "nvidia-ml" in maps)
"""


def test_decorating_opens_no_gpu():
    done = python(DECORATED, "{}")
    assert done.stdout == "taken False False\n", done.stderr


def test_without_the_library_what_it_alone_knows_waits_for_the_first_launch(tmp_path):
    """A module that is imported where nothing is measured: no wheel, no build."""
    done = python(DECORATED, "{'pairs': 1}", HEBE_LIBRARY_DIR=str(tmp_path))
    assert done.stdout == "taken False False\n", done.stderr
    done = python(DECORATED, "{'pairs': 0}", HEBE_LIBRARY_DIR=str(tmp_path))
    assert "bad_argument: pairs is 0" in done.stderr and not done.stdout


def test_an_unknown_objective_is_an_error_before_anything_runs():
    with pytest.raises(ValueError, match="energy, edp, latency"):
        hebe.autotune(CONFIGS, key=["n"], objective="carbon")


def test_the_arguments_are_tritons_with_more_behind_them():
    import inspect
    ours, theirs = (list(inspect.signature(f).parameters.values()) for f in (hebe.autotune, triton.autotune))
    assert [p.name for p in ours[:len(theirs)]] == [p.name for p in theirs]
    assert [p.default for p in ours[:len(theirs)]] == [p.default for p in theirs]
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in ours[len(theirs):])


def test_a_kernel_of_triton_takes_the_decorator():
    import triton.language as tl

    @hebe.autotune(CONFIGS, key=["n"])
    @triton.jit
    def copy(x, n, BLOCK: tl.constexpr):
        tl.store(x + tl.arange(0, BLOCK), 0)

    assert isinstance(copy, triton.runtime.autotuner.Autotuner) and copy.arg_names == ["x", "n", "BLOCK"]
