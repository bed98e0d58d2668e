import os
import subprocess
import sys

import pytest

from fleetcast.accounts import ControlStore, ControlStoreUnavailable
from fleetcast.engine import Records, Tenant
from fleetcast.errors import OperatorError

READS_TENANT = """
import sys
from pathlib import Path
from fleetcast.accounts import ControlStore
from fleetcast.engine import Tenant
store = ControlStore.embedded(Path(sys.argv[1]), bytes(range(32)))
for _ in sys.stdin:
    with store.read() as view:
        tenant = Tenant.get(view, "acme")
    print(None if tenant is None else tenant.plan, flush=True)
"""


def test_another_process_sees_a_change_with_its_next_read(tenants, tmp_path):
    reader = subprocess.Popen(
        [sys.executable, "-c", READS_TENANT, str(tmp_path / "control")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def seen():
        reader.stdin.write("\n")
        reader.stdin.flush()
        return reader.stdout.readline().strip()

    with reader:
        assert seen() == "None"
        tenants.create("acme", plan="free")
        assert seen() == "free"
        tenants.change("acme", plan="pro")
        assert seen() == "pro"
        reader.stdin.close()


def test_a_change_that_raises_is_undone(store, tenants):
    tenants.create("acme")

    def interrupted():
        with store.write() as view:
            Tenant.delete(view, "acme")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert tenants.get("acme").name == "acme"


@pytest.mark.parametrize("size", [0, 4096, 6000, 8192, 12288, 16384])
def test_a_file_cut_short_is_unavailable_and_never_read(tenants, tmp_path, size):  # B23
    tenants.create("acme")
    path = tmp_path / "control" / "data.mdb"
    whole = path.read_bytes()
    os.truncate(path, size)
    for _ in range(2):
        with pytest.raises(ControlStoreUnavailable):
            tenants.get("acme")
    path.write_bytes(whole)
    assert tenants.get("acme").name == "acme"


def test_a_file_of_something_else_is_unavailable(tenants, tmp_path):
    path = tmp_path / "control" / "data.mdb"
    path.write_bytes(b"x" * 65_536)
    with pytest.raises(ControlStoreUnavailable):
        tenants.all()


def test_a_damaged_record_is_unavailable(store, tenants, tmp_path, master_key):
    tenants.create("acme")
    store.close()
    records = Records.in_folder(
        tmp_path / "control", "fleetcast control 1", ["tenants"], master_key
    )
    with records.begin(write=True) as view:
        view.put("tenants", b"acme", b"{}")
    records.close()
    with pytest.raises(ControlStoreUnavailable):
        tenants.get("acme")


def test_a_store_that_is_there_keeps_its_revision_when_another_cannot_be_made(
    tenants, tmp_path, master_key
):
    tenants.create("acme")
    before = (tmp_path / "accounts.revision").read_bytes()
    with pytest.raises(ControlStoreUnavailable, match="already exists"):
        ControlStore.create(tmp_path / "control", master_key)
    assert (tmp_path / "accounts.revision").read_bytes() == before


def test_another_master_key_is_noticed(store, tmp_path):
    store.verify_master_key()
    store.close()
    other = ControlStore.embedded(tmp_path / "control", bytes(32))
    with pytest.raises(OperatorError, match="master key"):
        other.verify_master_key()
    with pytest.raises(ControlStoreUnavailable), other.read():
        pass
    other.close()


def test_an_empty_folder_is_not_taken_for_a_store(tmp_path):
    (tmp_path / "control").mkdir()
    store = ControlStore.embedded(tmp_path / "control", bytes(32))
    with pytest.raises(ControlStoreUnavailable), store.read():
        pass
    assert list((tmp_path / "control").iterdir()) == []
