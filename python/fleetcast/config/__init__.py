"""Settings: their sections, their checks and their sources."""

from fleetcast.config.address import Address, parse_address
from fleetcast.config.resolve import (
    SETTINGS_FILE,
    Override,
    Resolved,
    resolve,
    settings_from_json,
    settings_to_json,
)
from fleetcast.config.sections import Settings

__all__ = [
    "SETTINGS_FILE",
    "Address",
    "Override",
    "Resolved",
    "Settings",
    "parse_address",
    "resolve",
    "settings_from_json",
    "settings_to_json",
]
