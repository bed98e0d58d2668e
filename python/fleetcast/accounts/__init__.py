"""Tenants, API keys, usage, and the identity behind a request."""

from fleetcast.accounts.authenticator import Authenticator, Identity
from fleetcast.accounts.console_sessions import ConsoleSessions, OpenSession
from fleetcast.accounts.keys import SCOPES, IssuedKey, Keys, key_pepper
from fleetcast.accounts.listing import TenantList
from fleetcast.accounts.operators import IssuedToken, Operators
from fleetcast.accounts.records import ApiKey, OperatorToken, Tenant
from fleetcast.accounts.store import ControlStore
from fleetcast.accounts.tables import ControlStoreUnavailable
from fleetcast.accounts.tenants import PLAN_DEFAULT, PLANS, Tenants
from fleetcast.accounts.usage import Usage
from fleetcast.errors import InvalidKey

__all__ = [
    "PLANS",
    "PLAN_DEFAULT",
    "SCOPES",
    "ApiKey",
    "Authenticator",
    "ConsoleSessions",
    "ControlStore",
    "ControlStoreUnavailable",
    "Identity",
    "InvalidKey",
    "IssuedKey",
    "IssuedToken",
    "Keys",
    "OpenSession",
    "OperatorToken",
    "Operators",
    "Tenant",
    "TenantList",
    "Tenants",
    "Usage",
    "key_pepper",
]
