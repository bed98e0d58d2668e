"""A control store and planes in a folder of their own, for surfaces that run in this process."""

import shutil
import tempfile
import weakref
from pathlib import Path

from fleetcast.accounts import KEY_PEPPER, ControlStore, Keys, Tenants
from fleetcast.accounts.keys import SCOPES
from fleetcast.engine import Authenticator, Engine, Service, Tenant

MASTER_KEY = bytes(range(32))


class Stores:
    """A tenant `acme` with a key `good`; `texts` has the texts of keys by such names.

    They are gone with the last use of them.
    """

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp())
        weakref.finalize(self, shutil.rmtree, self.folder)
        self.control = ControlStore.create(self.folder / "control", MASTER_KEY)
        self.engine = Engine(self.folder / "planes", MASTER_KEY)
        self.tenants = Tenants(self.control, self.engine)
        self.keys = Keys(self.control)
        self.authenticator = Authenticator(self.control.records, KEY_PEPPER, "sandbox")
        self.texts = {}
        self.renew("acme")

    def renew(self, tenant):
        """Has `good` be the key of a new tenant."""
        self.tenant = self.tenants.create(tenant)
        self.key("good", tenant)

    def key(self, name, tenant="acme", scopes=SCOPES):
        issued = self.keys.create(tenant, scopes=scopes, environment="sandbox")
        self.texts[name] = str(issued.text)
        return issued.record

    def make_poor_keys(self):
        """Keys that are refused. No command makes `gone`, whose tenant is, nor `none` without a
        scope."""
        for name in ("off", "gone", "idle"):
            self.tenants.create(name, live_ingest=name != "idle")
            self.key(name, name)
        none = self.key("none", "idle")
        self.tenants.change("off", disabled=True)
        with self.control.write() as view:
            Tenant.delete(view, "gone")
            none.replace(scopes=()).put(view)

    def text(self, key):
        """The text of a key; another text than a name is itself."""
        return self.texts.get(key, key)

    def plane(self):
        return self.engine.plane(self.tenant.account_id, self.tenant.name)

    def service(self, rules):
        return Service(self.authenticator, self.engine.open_planes, rules)

    def move(self, name, away):
        """Moves the control store or the planes away, or back."""
        here, there = self.folder / name, self.folder / f"{name} away"
        there.rename(here) if not away else here.rename(there)
