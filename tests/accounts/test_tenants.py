import pytest

from fleetcast.accounts import Tenants
from fleetcast.errors import InvalidKey, OperatorError, StoreError, StoreMissing


def test_a_tenant_has_a_plane_of_its_own(tenants, engine, tmp_path):
    created = tenants.create("acme", plan="free", live_ingest=False, retention_seconds=86_400)
    assert tenants.get("acme") == created
    assert [path.name for path in (tmp_path / "planes").iterdir()] == [created.account_id]
    engine.plane(created.account_id, "acme").ping()


@pytest.mark.parametrize("name", ["a", "0", "a" * 63, "a-b-", "9-9"])
def test_names_are_slugs(tenants, name):
    assert tenants.create(name).name == name


@pytest.mark.parametrize("name", ["", "-a", "A", "a_b", "a.b", "a" * 64, "a\n", "ä", "a/b"])
def test_other_names_are_refused(tenants, name, tmp_path):
    with pytest.raises(OperatorError, match="tenant name"):
        tenants.create(name)
    assert tenants.all() == []
    assert not (tmp_path / "planes").exists()


def test_a_name_is_given_once(tenants, tmp_path):
    tenants.create("acme")
    with pytest.raises(OperatorError, match="exists"):
        tenants.create("acme")
    assert len(list((tmp_path / "planes").iterdir())) == 1


def test_no_record_without_a_plane(store, engine):
    class Failing:
        def create_plane(self, _account_id):
            message = "disk full"
            raise StoreError(message)

    with pytest.raises(StoreError):
        Tenants(store, Failing()).create("acme")
    assert Tenants(store, engine).all() == []


def test_deleting_destroys_data_record_and_keys(tenants, issue, keys, engine, identify):  # B17
    first = tenants.create("acme")
    text, _ = issue()
    engine.plane(first.account_id, "acme")
    with tenants.deleting("acme") as deleted:
        engine.destroy_plane(deleted.account_id)
    with pytest.raises(StoreMissing):
        engine.plane(first.account_id, "acme")
    with pytest.raises(InvalidKey):
        identify(text)
    second = tenants.create("acme")
    assert second.account_id != first.account_id
    assert keys.all("acme") == []
    with pytest.raises(InvalidKey):
        identify(text)


def test_an_interrupted_delete_refuses_requests_and_can_be_repeated(tenants, engine, issue):
    created = tenants.create("acme")
    issue()

    def interrupted():
        with tenants.deleting("acme") as deleted:
            engine.destroy_plane(deleted.account_id)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert tenants.get("acme").status == "disabled"
    with tenants.deleting("acme") as deleted:
        assert deleted.account_id == created.account_id
    assert tenants.all() == []


def test_unknown_tenants_and_attributes_are_refused(tenants):
    with pytest.raises(OperatorError, match="no tenant"):
        tenants.get("acme")
    with pytest.raises(OperatorError, match="no tenant"), tenants.deleting("acme"):
        pytest.fail("it is unknown")
    tenants.create("acme")
    with pytest.raises(OperatorError, match="plan"):
        tenants.change("acme", plan="gold")
    with pytest.raises(OperatorError, match="retention"):
        tenants.change("acme", retention_seconds=0)
