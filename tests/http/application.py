"""The application of the public listener on stores of its own, and a client that knows its keys."""

from falcon.testing import TestClient

from fleetcast.config import Settings
from fleetcast.config.sections import Limits
from fleetcast.http.app import create_app
from fleetcast.http.rules import public_rules
from fleetcast.http.services import HttpServices
from fleetcast.metrics import Counters
from tests.http.stores import Stores

UNLIMITED = Settings(limits=Limits(requests_per_minute=0))


class Client(TestClient):
    """Sends the key `good` unless it is told another, by its name; `None` for none."""

    def __init__(self, application, stores):
        super().__init__(application)
        self.stores = stores

    def simulate_request(self, *args, headers=None, **kwargs):
        sent = {name.lower(): text for name, text in (headers or {}).items()}
        key = self.stores.text(sent.pop("x-api-key", "good"))
        sent |= {} if key is None else {"x-api-key": key}
        sent = {name: text for name, text in sent.items() if text is not None}
        return super().simulate_request(*args, headers=sent, remote_addr="127.0.0.1", **kwargs)


def client(stores=None, *, settings=UNLIMITED, limiter=None, decide=lambda own: own, **services):
    """`limiter` is a file, and `decide` gives the service out of the usual one."""
    stores, counters = stores or Stores(), services.pop("counters", None) or Counters.alone()
    rules = public_rules(settings, limiter or stores.folder / "limiter", counters)
    parts = HttpServices(
        settings=settings,
        service=decide(stores.service(rules)),
        engine=stores.engine,
        counters=counters,
        clock=lambda: 0,
        **services,
    )
    return Client(create_app(parts), stores)
