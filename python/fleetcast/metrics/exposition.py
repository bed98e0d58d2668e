"""Counters as text: in the format of Prometheus, version 0.0.4, or in OpenMetrics 1.0.0.

OpenMetrics names a family of counters without `_total`, writes bounds as decimals, and marks the
end of the text. Everything else is the same in both.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from fleetcast.metrics.counters import label
from fleetcast.metrics.families import BUCKETS_SECONDS, FAMILIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_KINDS = {family.name: family.kind for family in FAMILIES}
_OWNERS = {
    name: family.name
    for family in FAMILIES
    for name in (
        [f"{family.name}_bucket", f"{family.name}_sum"]
        if family.kind == "histogram"
        else [family.name]
    )
}
_LE = re.compile(r',?le="([^"]*)"')
_NS_PER_SECOND = 1e9
_BOUNDS = [f"{bound:g}" for bound in BUCKETS_SECONDS] + ["+Inf"]
_OPEN_BOUNDS = [str(float(bound)) for bound in BUCKETS_SECONDS] + ["+Inf"]


def sample(name: str, **labels: object) -> str:
    """Name of a series, which must be of a known family."""
    assert name in _KINDS, f"{name} has no line in families.txt"  # noqa: S101 - a mistake of ours
    return label(name, **labels)


def exposition(
    values: Mapping[str, float],
    ready: Mapping[str, Sequence[str]] | None = None,
    *,
    kind: str = TEXT_TYPE,
) -> str:
    """Returns one text of all series, by family; a series without a family is left out.

    `ready` holds lines of more series by family, copied as they are. `kind` is `TEXT_TYPE` or
    `OPEN_METRICS_TYPE`.
    """
    is_open = kind == OPEN_METRICS_TYPE
    ready = ready or {}
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for series, value in values.items():
        owner = _OWNERS.get(series.partition("{")[0])
        if owner is not None:
            found[owner][series] = value
    lines: list[str] = []
    for family in FAMILIES:
        if family.name not in found and family.name not in ready:
            continue
        mine = found[family.name]
        name = family.name.removesuffix("_total") if is_open else family.name
        lines += [f"# HELP {name} {family.help}", f"# TYPE {name} {family.kind}"]
        if family.kind == "histogram":
            lines += _histogram(family.name, mine, _OPEN_BOUNDS if is_open else _BOUNDS)
        else:
            unit = _NS_PER_SECOND if family.name.endswith("_seconds_total") else 1
            lines += [f"{series} {number(mine[series] / unit)}" for series in sorted(mine)]
        lines += ready.get(family.name, ())
    return "\n".join([*lines, *(["# EOF"] if is_open else []), ""])


def _histogram(name: str, series: Mapping[str, float], shown: Sequence[str]) -> list[str]:
    """Cumulative buckets, sum and count of each label set; `shown` are the bounds as written."""
    counts: dict[str, dict[str, float]] = defaultdict(dict)
    sums: dict[str, float] = {}
    for text, value in series.items():
        kind, _, labels = text.removeprefix(name).partition("{")
        labels = labels.removesuffix("}")
        if kind == "_sum":
            sums[labels] = value / _NS_PER_SECOND
        else:
            found = _LE.search(labels)
            assert found is not None  # noqa: S101 - every bucket has its bound
            counts[_LE.sub("", labels)][found[1]] = value
    lines = []
    for labels in sorted(counts):
        total = 0.0
        for bound, text in zip(_BOUNDS, shown, strict=True):
            total += counts[labels].get(bound, 0)
            pairs = ",".join(filter(None, [labels, f'le="{text}"']))
            lines.append(f"{name}_bucket{{{pairs}}} {number(total)}")
        of = f"{{{labels}}}" if labels else ""
        lines.append(f"{name}_sum{of} {number(sums.get(labels, 0.0))}")
        lines.append(f"{name}_count{of} {number(total)}")
    return lines


def number(value: float) -> str:
    """A value as Prometheus reads it. Example: `3.0` becomes `3`."""
    return str(int(value)) if value == int(value) else repr(value)
