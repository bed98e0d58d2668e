"""Tenants, API keys, operators and usage: how each is made, changed and ended."""

from fleetcast.accounts.console_sessions import ConsoleSessions as ConsoleSessions
from fleetcast.accounts.console_sessions import OpenSession as OpenSession
from fleetcast.accounts.keys import SCOPES as SCOPES
from fleetcast.accounts.keys import IssuedKey as IssuedKey
from fleetcast.accounts.keys import Keys as Keys
from fleetcast.accounts.operators import IssuedToken as IssuedToken
from fleetcast.accounts.operators import Operators as Operators
from fleetcast.accounts.store import KEY_PEPPER as KEY_PEPPER
from fleetcast.accounts.store import RECEIPT_KEY as RECEIPT_KEY
from fleetcast.accounts.store import ControlStore as ControlStore
from fleetcast.accounts.store import ControlStoreUnavailable as ControlStoreUnavailable
from fleetcast.accounts.tenants import PLAN_DEFAULT as PLAN_DEFAULT
from fleetcast.accounts.tenants import PLANS as PLANS
from fleetcast.accounts.tenants import Tenants as Tenants
from fleetcast.accounts.usage import Usage as Usage
