import pytest

from fleetcast.backup.listing import Listing
from tests.cli.conftest import call, data, fail  # noqa: F401 - fixtures

from .plane import write


@pytest.fixture
def folder(tmp_path):
    """Folder that backups go to, beside the data directory."""
    return tmp_path / "backup"


@pytest.fixture
def saved(data, call, folder):  # noqa: F811 - the fixtures above
    """A backup of two tenants, one of them with log, segments and keys, and its list."""
    call("tenant", "create", "acme", "--plan", "free", "--retention", "30000d")
    call("tenant", "create", "idle", "--no-live-ingest")
    call("key", "create", "acme", "--scope", "telemetry:write", "--scope", "topology:read")
    write(data, "acme", range(5))
    call("compact")
    write(data, "acme", range(5, 8))
    call("backup", folder)
    return Listing.read(folder)
