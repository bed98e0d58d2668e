"""Settings: their sections, their checks and their sources."""

from fleetcast.config.address import Address as Address
from fleetcast.config.address import parse_address as parse_address
from fleetcast.config.resolve import SETTINGS_FILE as SETTINGS_FILE
from fleetcast.config.resolve import Override as Override
from fleetcast.config.resolve import Resolved as Resolved
from fleetcast.config.resolve import resolve as resolve
from fleetcast.config.resolve import settings_from_json as settings_from_json
from fleetcast.config.resolve import settings_to_json as settings_to_json
from fleetcast.config.sections import Settings as Settings
