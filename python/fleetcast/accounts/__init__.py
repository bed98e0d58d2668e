"""Tenants, API keys, operators and usage: how each is made, changed and ended."""

from fleetcast.accounts.console_sessions import ConsoleSessions, OpenSession
from fleetcast.accounts.keys import SCOPES, IssuedKey, Keys
from fleetcast.accounts.operators import IssuedToken, Operators
from fleetcast.accounts.store import (
    KEY_PEPPER,
    RECEIPT_KEY,
    ControlStore,
    ControlStoreUnavailable,
)
from fleetcast.accounts.tenants import PLAN_DEFAULT, PLANS, Tenants
from fleetcast.accounts.usage import Usage

__all__ = [
    "KEY_PEPPER",
    "PLANS",
    "PLAN_DEFAULT",
    "RECEIPT_KEY",
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
]
