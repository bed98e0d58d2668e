"""Makes features relative to the series: on arrays to train, in the graph to serve.

A prediction is `offset + unit * link(z)`, and z is the network's output. For SNR the link is the
identity, and the unit is how much the link moved lately. For demand it is the exponential, and the
unit is the pool's mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from fleetcast.forecast.families import SNR
from fleetcast.forecast.features import demand, snr

if TYPE_CHECKING:
    from fleetcast.forecast.families import Family
    from fleetcast.forecast.features import FeatureView

Columns: TypeAlias = Any
"""Columns [rows, columns]: an array of numpy to train, an expression of an ONNX graph to export.

They have operators in common and no class.
"""
Functions: TypeAlias = Any
"""`ArrayFunctions` on arrays, `GraphFunctions` on expressions."""

SNR_RESOLUTION_DB = 0.02
"""Below the resolution of modems: prevents a division by zero for a link that never moves."""
DEMAND_FLOOR = 0.01
"""Bytes are compared on a logarithmic scale that flattens below this share of the mean."""
DEMAND_TINY_BYTES = 1e-6


@dataclass(frozen=True)
class Scaled:
    """`inputs` [rows, inputs] to the network; `offset` and `unit` [rows, 1 or horizons].

    `apart` [rows, 1] is 1 for pools that are idle at times, else 0. The lower bound of these pools
    is calibrated separately.
    """

    inputs: Columns
    offset: Columns
    unit: Columns
    apart: Columns


def scaled(family: Family, f: Functions, x: Columns) -> Scaled:
    """Scaled features `x` [rows, features]."""
    return _snr(f, x) if family is SNR else _demand(f, x)


def _columns(view: FeatureView, kind: str) -> list[int]:
    return [i for i, feature in enumerate(view.features) if feature.kind == kind]


def _snr(f: Functions, x: Columns) -> Scaled:
    view = snr.VIEW
    column = view.index
    horizons = SNR.horizons_minutes

    def known(names: list[str]) -> Columns:
        return f.known(f.take(x, [column(name) for name in names]))

    low, high = (known([f"error_{q}_{h}m" for h in horizons]) for q in ("p10", "p90"))
    recent = known([f"error_6h_{h}m" for h in horizons])
    quarter, hour = known(["spread_15m"]), known(["spread_60m"])
    band = (high - low) * 0.5
    unit = f.sqrt(
        band * band
        + recent * recent
        + (quarter * quarter + hour * hour) * 0.25
        + SNR_RESOLUTION_DB**2
    )
    one = f.take(unit, [1])
    last = f.take(x, [column("last")])
    levels = [i for i in _columns(view, "level") if i != column("last")]
    angles = f.take(x, _columns(view, "angle"))
    inputs = [
        f.log(one),
        f.squashed(f.known((f.take(x, levels) - last) / one)),
        f.squashed(f.known(f.take(x, _columns(view, "change")) / one)),
        f.known(f.log((f.take(x, _columns(view, "scale")) + SNR_RESOLUTION_DB) / one)),
        f.known(f.sine(angles)),
        f.missing(f.take(angles, [0])),
        f.known(f.take(x, _columns(view, "plain"))),
        f.log(unit / one),
    ]
    return Scaled(f.joined(inputs), last, unit, f.missing(one))


def _demand(f: Functions, x: Columns) -> Scaled:
    view = demand.VIEW
    mean, age = (f.take(x, [view.index(name)]) for name in ("mean_7d", "age"))
    floor = mean * DEMAND_FLOOR + DEMAND_TINY_BYTES
    unit = mean + floor
    levels = [i for i in _columns(view, "level") if i != view.index("mean_7d")]
    plain = [i for i in _columns(view, "plain") if i != view.index("age")]
    inputs = [
        f.known(f.log((f.take(x, levels) + floor) / unit)),
        f.known(f.log(age)),
        f.known(f.take(x, plain)),
    ]
    idle = f.nothing(f.take(x, [view.index("p1_7d")]))
    return Scaled(f.joined(inputs), floor * -1.0, unit, idle)
