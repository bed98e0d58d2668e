"""One forecaster of others, and those that this environment has."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PACKAGES = ("statsforecast", "flaircast", "fracast")


@dataclass(frozen=True)
class Peer:
    """Needs and terms of one, and how to ask it.

    `answer` takes a family and values without gaps, one a step, newest last, and gives quantiles
    [horizons, quantiles]; it may raise anything. It gets `steps` values at most, by the family's
    name; families without are not asked for. `learned_from` says what its weights come from; on the
    sets named in `not_on` it is not judged, because they are among that.
    """

    name: str
    package: str
    licence: str
    steps: dict[str, int]
    answer: Callable
    learned_from: str = "no weights"
    not_on: tuple[str, ...] = ()

    @property
    def version(self):
        return version(self.package)


def installed():
    """Those whose package is there."""
    found = [name for name in PACKAGES if find_spec(name)]
    return [peer for name in found for peer in import_module(f"{__package__}.{name}").PEERS]


def steps_ahead(family):
    """Horizons, as steps."""
    return [minutes // family.step_minutes for minutes in family.horizons_minutes]
