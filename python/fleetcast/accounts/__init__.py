"""Tenants, API keys, operators and usage: how each is made, changed and ended."""

from fleetcast.accounts.console_sessions import ConsoleSessions, OpenSession
from fleetcast.accounts.keys import SCOPES, IssuedKey, Keys, key_pepper
from fleetcast.accounts.operators import IssuedToken, Operators
from fleetcast.accounts.store import ControlStore, ControlStoreUnavailable
from fleetcast.accounts.tenants import PLAN_DEFAULT, PLANS, Tenants
from fleetcast.accounts.usage import Usage

__all__ = [
    "PLANS",
    "PLAN_DEFAULT",
    "SCOPES",
    "ConsoleSessions",
    "ControlStore",
    "ControlStoreUnavailable",
    "IssuedKey",
    "IssuedToken",
    "Keys",
    "OpenSession",
    "Operators",
    "Tenants",
    "Usage",
    "key_pepper",
]
