"""A placement file as measured costs: what one product costs on each member of a machine. In: a file of `hebe calibrate placement`
(hebe.placement/1) and what is known of the machine of now; out: its rows that may be used, and those that may not, with why.

Invariant: a row is used only after it was held against what is given of the present machine (src/tune/placement.cpp does), and each
cost says its provenance: of a row that was downgraded it is no longer "measured". Nothing is measured or written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import arguments, library
from .results import Estimate, Row, _plain

_MOST_DAYS = 36525


@dataclass(frozen=True)
class PlacementRow:
    """What `operation` of these `sizes` costs on one member of a machine: "cpu", or a backend of the GPU.

    `energy` (J) is what one operation takes beyond the idle machine, `time` is in s. `outcome` is holds, downgraded or rejected,
    `reasons` why. `board` is the processor's name in the row of the CPU.
    """

    member: str
    operation: str
    sizes: Mapping[str, int]
    dtype: str
    board: str
    implementation: str
    configuration: Mapping[str, Any]
    artifact_sha256: str | None
    version: str | None
    energy: Estimate
    time: Estimate
    idle_w: float
    idle_w_error: float
    idle: str
    meter: str
    meter_status: str
    provenance: str
    platform: Mapping[str, str | None]
    date: str
    outcome: str
    reasons: tuple[str, ...]

    def __repr__(self) -> str:
        why = f" for {'; '.join(self.reasons)}" if self.reasons else ""
        return f"PlacementRow({self.member}: {self.energy!r}, {self.outcome}{why})"

    def dict(self) -> Row:
        return _plain(self)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Placement:
    """`rows` may be used, each by its provenance; `rejected` may not. Iterating gives `rows`."""

    rows: tuple[PlacementRow, ...]
    rejected: tuple[PlacementRow, ...]

    def __iter__(self) -> Iterator[PlacementRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def dict(self) -> Row:
        return _plain(self)  # type: ignore[no-any-return]


def _cost(row: Mapping[str, Any], name: str, unit: str) -> Estimate:
    value = row[name]
    return Estimate(value["value"] * 1e-9, value["low"] * 1e-9, value["high"] * 1e-9, unit, row["provenance"])


def _row(row: Mapping[str, Any]) -> PlacementRow:
    implementation, idle, meter = row["implementation"], row["idle"], row["meter"]
    return PlacementRow(
        member=row["member"], operation=row["operation"], sizes=row["sizes"], dtype=row["dtype"], board=row["board"],
        implementation=implementation["name"], configuration=implementation["configuration"],
        artifact_sha256=implementation["artifact_sha256"], version=implementation["version"],
        energy=_cost(row, "energy_nj", "J"), time=_cost(row, "time_ns", "s"),
        idle_w=idle["power_w"], idle_w_error=idle["standard_error_w"], idle=idle["state"],
        meter=meter["name"], meter_status=meter["status"], provenance=row["provenance"], platform=row["platform"],
        date=row["date"], outcome=row["outcome"], reasons=tuple(row["reasons"]))


def _meters(given: Mapping[str, str] | None) -> dict[str, str] | None:
    if given is None:
        return None
    if isinstance(given, Mapping) and all(isinstance(text, str) for pair in given.items() for text in pair):
        return dict(given)
    raise arguments.refused("meters", given, 'give each meter\'s status by its name, such as {"nvml.power": "primary"}')


def load_placement(file: str | os.PathLike[str], *, board: str | None = None, board_uuid: str | None = None, cpu: str | None = None,
                   driver: str | None = None, os: str | None = None, hebe: str | None = None, triton: str | None = None,
                   meters: Mapping[str, str] | None = None, days: int | None = None, date: str | None = None) -> Placement:
    """The costs in a placement file that may be used on the machine of now, as `hebe calibrate placement --show` tells them.

    What is not given is not checked. `board`, `cpu`: the names of the GPU and the processor; another one rejects a row, as does a
    meter that is no longer believed. Another `board_uuid`, `driver`, `os`, `hebe` or `triton`, a meter of another status or that is
    not among `meters` (name to status), and more than `days` of age downgrade it: measured becomes estimated. `date`: the time of
    now, UTC (2026-11-30T04:20:00Z). Raises `Refused` (bad_argument, not_found, bad_schema …) and TypeError (`file`).
    """
    def text(name: str, value: str | None, example: str) -> str | None:
        return None if value is None else arguments.text(name, value, example)

    request = library.without_none(
        file=arguments.path_text("file", file), board=text("board", board, "NVIDIA H200"), board_uuid=text("board_uuid", board_uuid, "GPU-…"),
        cpu=text("cpu", cpu, "INTEL(R) XEON(R) PLATINUM 8558"), driver=text("driver", driver, "580.159.04"),
        os=text("os", os, "Debian 12"), hebe=text("hebe", hebe, "0.1.0"), triton=text("triton", triton, "3.6.0"),
        meters=_meters(meters), days=arguments.whole("days", days, _MOST_DAYS), date=text("date", date, "2026-11-30T04:20:00Z"))
    rows = [_row(row) for row in library.call("hebe_load_placement", request)["rows"]]
    return Placement(tuple(row for row in rows if row.outcome != "rejected"), tuple(row for row in rows if row.outcome == "rejected"))
