"""Positions of satellites: from two-line elements (SGP4), or on circular orbits.

SGP4: Vallado, Crawford, Hujsak and Kelso, Revisiting Spacetrack Report #3, AIAA 2006-6753, by the
package `sgp4`; its frame is TEME.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sgp4.api import Satrec, SatrecArray

from fleetcast.errors import OperatorError, reason
from fleetcast.forecast.geometry.earth import EQUATOR_KM, earth_fixed
from fleetcast.transfer.opening import sound

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fleetcast.forecast.rows import Floats, Instants

EARTH_KM3_S2 = 398_600.4418
_UNIX_JULIAN_DAYS = 2_440_587.5
_DAY_NS = 86_400_000_000_000
_LINES = 2
_LINE_CHARACTERS = 69
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Satellite:
    """A set of elements, and the name of its satellite: empty if the file has no names."""

    name: str
    number: int
    elements: Satrec


def read_elements(path: Path) -> list[Satellite]:
    """Satellites of a file of two-line elements, with or without lines of names, gzipped or not.

    Raises `OSError`, `OperatorError`.
    """
    try:
        content = path.read_bytes()
        if content.startswith(_GZIP):
            with sound(path):
                content = gzip.decompress(content)
        text = content.decode("ascii")
    except UnicodeDecodeError as error:
        message = f"{path}: not a file of two-line elements: {reason(error, path)}"
        raise OperatorError(message) from error
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    satellites, name, index = [], "", 0
    while index < len(lines):
        if not lines[index].startswith("1 "):
            name, index = lines[index].removeprefix("0 ").strip(), index + 1
            continue
        satellites.append(_satellite(name, lines[index : index + 2], path))
        name, index = "", index + 2
    if not satellites:
        message = f"{path}: holds no elements"
        raise OperatorError(message)
    return satellites


def _satellite(name: str, pair: Sequence[str], path: Path) -> Satellite:
    sound = len(pair) == _LINES and pair[1].startswith("2 ") and pair[0][2:7] == pair[1][2:7]
    if not sound or any(not _checks(line) for line in pair):
        message = f"{path}: the elements of {name or pair[0][2:7]} are damaged"
        raise OperatorError(message)
    elements = Satrec.twoline2rv(*pair)
    return Satellite(name, elements.satnum, elements)


def _checks(line: str) -> bool:
    """Returns true if the last of 69 characters is the checksum of the line.

    The checksum is the sum of all digits, a minus counting 1, modulo 10.
    """
    body = line[: _LINE_CHARACTERS - 1]
    total = sum(int(c) if c.isdigit() else c == "-" for c in body)
    return len(line) == _LINE_CHARACTERS and line[-1] == str(total % 10)


def positions(satellites: Sequence[Satellite], times_ns: Instants) -> Floats:
    """Earth-fixed positions [satellites, times, 3], km; NaN if the elements give no position."""
    whole, rest = np.divmod(times_ns, _DAY_NS)
    orbits = SatrecArray([satellite.elements for satellite in satellites])
    errors, inertial, _ = orbits.sgp4(whole + _UNIX_JULIAN_DAYS, rest / _DAY_NS)
    inertial[errors > 0] = np.nan
    return earth_fixed(inertial, times_ns)


@dataclass(frozen=True)
class CircularOrbit:
    """A circular orbit, `altitude_km` above the equator's radius.

    `phase_deg` is the angle from the ascending node at `epoch_ns`. `node_deg` is the node's right
    ascension.
    """

    altitude_km: float
    inclination_deg: float
    node_deg: float
    phase_deg: float
    epoch_ns: int

    def positions(self, times_ns: Instants) -> Floats:
        """Earth-fixed positions [times, 3], km, without perturbations."""
        radius = EQUATOR_KM + self.altitude_km
        motion_rad_s = np.sqrt(EARTH_KM3_S2 / radius**3)
        angle = np.radians(self.phase_deg) + motion_rad_s * (times_ns - self.epoch_ns) / 1e9
        node, tilt = np.radians([self.node_deg, self.inclination_deg])
        along, across = np.cos(angle), np.sin(angle)
        inertial = radius * np.stack(
            [
                np.cos(node) * along - np.sin(node) * np.cos(tilt) * across,
                np.sin(node) * along + np.cos(node) * np.cos(tilt) * across,
                np.sin(tilt) * across,
            ],
            axis=-1,
        )
        return earth_fixed(inertial, times_ns)
