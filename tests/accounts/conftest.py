import pytest

from fleetcast.accounts import KEY_PEPPER, ControlStore, Keys, Tenants
from fleetcast.engine import Authenticator, Engine
from tests.clock import Clock


@pytest.fixture
def master_key():
    return bytes(range(32))


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(tmp_path, master_key):
    store = ControlStore.create(tmp_path / "control", master_key)
    yield store
    store.close()


@pytest.fixture
def engine(tmp_path, master_key):
    engine = Engine(tmp_path / "planes", master_key)
    yield engine
    engine.close()


@pytest.fixture
def tenants(store, engine, clock):
    return Tenants(store, engine, clock)


@pytest.fixture
def keys(store, clock):
    return Keys(store, clock)


@pytest.fixture
def identify(store, clock):
    authenticator = Authenticator(store.records, KEY_PEPPER, "sandbox")
    return lambda text: authenticator.identify(text, now=int(clock()))


@pytest.fixture
def issue(keys):
    def issue(tenant="acme", scopes=("topology:read",), environment="sandbox", **options):
        issued = keys.create(tenant, scopes=scopes, environment=environment, **options)
        return str(issued.text), issued.record.key_id

    return issue
