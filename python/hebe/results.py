"""What a measurement says. In: the library's answer; out: values with unit, interval and provenance.

Invariant: every energy says whether it is measured, estimated or simulated, in its repr too; what was not measured is
None with the reason beside it, never 0. Nothing is imported until it is asked for: pandas and pyarrow are the caller's.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .refused import OF_CALLABLES, Refused, refused_from

Row = dict[str, Any]


class Measured(float):
    """A number that says its unit and where it comes from; otherwise a float."""

    unit: str
    provenance: str

    def __new__(cls, value: float, unit: str, provenance: str) -> Measured:
        made = super().__new__(cls, value)
        made.unit, made.provenance = unit, provenance
        return made

    def __getnewargs__(self) -> tuple[float, str, str]:  # type: ignore[override]
        return float(self), self.unit, self.provenance

    def __repr__(self) -> str:
        return f"{float(self):.6g} {self.unit} ({self.provenance})"


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval, in `unit` ("J", "s", "W", "%")."""

    value: float
    low: float
    high: float
    unit: str
    provenance: str

    def __repr__(self) -> str:
        return f"{self.value:.6g} {self.unit} [{self.low:.6g}, {self.high:.6g}] ({self.provenance})"


@dataclass(frozen=True)
class Marginal:
    """What a call costs beyond an idle board. `idle` says which: context_open or clocks_up."""

    energy: Estimate
    idle: str
    idle_w: Estimate
    idle_s: float


class _Rows:
    """Results that have a table: one row a window, or one a pair."""

    def rows(self) -> list[Row]:
        raise NotImplementedError

    def provenance_of_rows(self) -> str:
        raise NotImplementedError

    def dict(self) -> Row:
        """Everything as plain dicts, lists and numbers."""
        return _plain(self)  # type: ignore[no-any-return]

    def pandas(self) -> Any:
        """The rows as a DataFrame, with the provenance as a column. toolchain_unavailable: pandas is not installed."""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError as error:
            raise Refused("toolchain_unavailable", f"pandas cannot be imported: {error}", "pandas()",
                          "pip install pandas, or use dict() or arrow()") from error
        return pandas.DataFrame(self.rows())

    def arrow(self) -> Any:
        """The rows as a pyarrow Table, with the provenance as a column and in its metadata."""
        try:
            pyarrow = importlib.import_module("pyarrow")
        except ImportError as error:
            raise Refused("toolchain_unavailable", f"pyarrow cannot be imported: {error}", "arrow()",
                          "pip install pyarrow, or use dict()") from error
        table = pyarrow.Table.from_pylist(self.rows())
        return table.replace_schema_metadata({"provenance": self.provenance_of_rows(), "hebe": type(self).__name__})


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Refused):
        return value.dict()
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return float(value) if isinstance(value, Measured) else value


@dataclass(frozen=True)
class Measurement(_Rows):
    """A callable's energy and time a call.

    `marginal` is None where no idle window was asked for, or where the meters gave none: `no_marginal` then has the
    refusal. `how` says whether a graph was captured. `unmet` names the conditions of evidence that do not hold: of a
    callable there is always one, for Hebe did not see what ran.
    """

    energy: Estimate
    time: Estimate
    power: Estimate
    marginal: Marginal | None
    no_marginal: Refused | None
    provenance: str
    device: str
    uuid: str
    meter: str
    meter_status: str
    tier: str
    how: str
    calls: int
    measured_s: float
    unmet: tuple[str, ...]
    windows: Sequence[Row] = field(repr=False)
    analysis: Mapping[str, Any] = field(repr=False)

    def rows(self) -> list[Row]:
        return list(self.windows)

    def provenance_of_rows(self) -> str:
        return self.provenance


@dataclass(frozen=True)
class Comparison(_Rows):
    """B against A. `verdict` is of the energy: lower, higher, equivalent, inconclusive, invalid (then `reason` says why).

    `energy`, `time`, `power`: B's difference from A in percent. `a`, `b`: joules and seconds a call of each.
    """

    verdict: str
    reason: str
    energy: Estimate
    time: Estimate
    power: Estimate
    time_verdict: str
    a: Mapping[str, float]
    b: Mapping[str, float]
    provenance: str
    device: str
    uuid: str
    meter: str
    meter_status: str
    tier: str
    how: tuple[str, str]
    unmet: tuple[str, ...]
    pairs: Sequence[Row] = field(repr=False)
    windows: Sequence[Row] = field(repr=False)
    analysis: Mapping[str, Any] = field(repr=False)

    def rows(self) -> list[Row]:
        return [dict(pair, provenance=self.provenance) for pair in self.pairs]

    def provenance_of_rows(self) -> str:
        return self.provenance


def _estimate(part: Mapping[str, Any], unit: str, provenance: str) -> Estimate:
    return Estimate(part["value"], part["low"], part["high"], unit, provenance)


def _window_row(window: Mapping[str, Any]) -> Row:
    estimate = window["estimate"]
    return {"index": window["index"], "pair": window["pair"], "attempt": window["attempt"], "arm": window["arm"],
            "accepted": window["pair_accepted"], "energy_per_call_j": estimate["energy_per_launch_j"],
            "time_per_call_s": estimate["latency_s"], "power_w": estimate["mean_power_w"],
            "failed_gates": ", ".join(g["name"] for g in window["gates"] if not g["passed"]),
            "provenance": estimate["provenance"]}


def _common(answer: Mapping[str, Any]) -> dict[str, Any]:
    analysis = answer["analysis"]
    return {"provenance": answer["provenance"], "device": answer["device"]["name"], "uuid": answer["device"]["uuid"],
            "meter": answer["meter"]["name"], "meter_status": answer["meter"]["status"], "tier": answer["tier"],
            "unmet": tuple(c["name"] for c in analysis["conditions"] if not c["holds"]),
            "windows": [_window_row(w) for w in answer["windows"]], "analysis": analysis}


def measurement_from(answer: Mapping[str, Any], how: str) -> Measurement:
    """Of hebe_measure's answer."""
    provenance = answer["provenance"]
    marginal: Mapping[str, Any] | None = answer["marginal_j"]
    refused = told = None
    if marginal is not None and "refused" in marginal:
        refused = refused_from(marginal["refused"], OF_CALLABLES)
    elif marginal is not None:
        half = 1.96 * marginal["idle_standard_error_w"]
        told = Marginal(_estimate(marginal, "J", provenance), marginal["idle"],
                        Estimate(marginal["idle_w"], marginal["idle_w"] - half, marginal["idle_w"] + half, "W", provenance),
                        marginal["idle_s"])
    return Measurement(energy=_estimate(answer["energy_per_call_j"], "J", provenance),
                       time=_estimate(answer["time_per_call_s"], "s", provenance),
                       power=_estimate(answer["power_w"], "W", provenance), marginal=told, no_marginal=refused, how=how,
                       calls=int(answer["calls"]), measured_s=answer["measured_s"], **_common(answer))


def _contrast(analysis: Mapping[str, Any], name: str, provenance: str) -> Estimate:
    shown = analysis[name]
    interval = shown["interval_" + shown["interval_shown"]]
    return Estimate(shown["effect_percent"], interval["low_percent"], interval["high_percent"], "%", provenance)


def comparison_from(answer: Mapping[str, Any], how: tuple[str, str]) -> Comparison:
    """Of hebe_compare's answer."""
    analysis, provenance = answer["analysis"], answer["provenance"]
    return Comparison(verdict=analysis["verdict"], reason=analysis["reason"],
                      energy=_contrast(analysis, "energy", provenance), time=_contrast(analysis, "latency", provenance),
                      power=_contrast(analysis, "power", provenance), time_verdict=analysis["latency"]["verdict"],
                      a=analysis["arms"]["A"], b=analysis["arms"]["B"], how=how, pairs=analysis["pairs"], **_common(answer))
