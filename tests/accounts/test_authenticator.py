import pytest

from fleetcast.accounts import ControlStoreUnavailable, InvalidKey
from fleetcast.accounts.key_text import new_key_text
from fleetcast.errors import Refused


def refusal(authenticator, text):
    with pytest.raises(Refused) as caught:
        authenticator.authenticate(text)
    return caught.value


def test_a_good_key_gives_the_tenant_and_its_rights(tenants, issue, authenticator):
    tenant = tenants.create("acme", plan="enterprise", live_ingest=False, retention_seconds=60)
    text, key_id = issue(scopes=("topology:read", "telemetry:write"))
    identity = authenticator.authenticate(text)
    assert identity.account_id == tenant.account_id
    assert (identity.tenant_key, identity.key_id) == ("acme", key_id)
    assert identity.scopes == {"telemetry:write", "topology:read"}
    assert (identity.plan, identity.live_ingest, identity.status) == ("enterprise", False, "active")
    assert identity.retention_seconds == 60


def test_no_key_is_refused_but_does_not_count_as_a_failure(authenticator):  # B13
    refused = refusal(authenticator, None)
    assert refused.args == ("auth_failed", {})
    assert not isinstance(refused, InvalidKey)


def test_keys_that_are_no_good_are_refused_and_count(tenants, issue, keys, clock, authenticator):
    tenants.create("acme")
    good, _ = issue()
    revoked, revoked_id = issue()
    keys.revoke(revoked_id)
    expired, _ = issue(lifetime_seconds=60)
    elsewhere, _ = issue(environment="production")  # B16
    guessed = str(new_key_text("sandbox")._replace(key_id=good.split("_")[2]))
    clock.now += 60
    unknown = str(new_key_text("sandbox"))
    for text in ["", "nonsense", good[:-1] + "x", unknown, guessed, revoked, expired, elsewhere]:
        refused = refusal(authenticator, text)
        assert isinstance(refused, InvalidKey)
        assert refused.args == ("auth_failed", {})
    assert authenticator.authenticate(good)


def test_the_environment_in_the_text_counts_as_well(tenants, issue, authenticator):  # B16
    tenants.create("acme")
    text, _ = issue(environment="gov-development")
    _, _, key_id, rest = text.split("_")
    renamed = str(new_key_text("sandbox")._replace(key_id=key_id, secret=rest[:32]))
    assert isinstance(refusal(authenticator, renamed), InvalidKey)


def test_a_disabled_tenant_is_403_material(tenants, issue, authenticator):  # B17
    tenants.create("acme")
    text, _ = issue()
    tenants.change("acme", disabled=True)
    assert refusal(authenticator, text).args == ("tenant_disabled", {})
    tenants.change("acme", disabled=False)
    assert authenticator.authenticate(text).status == "active"


def test_a_tenant_that_is_gone_is_404_material(tenants, issue, store, authenticator):  # B17
    tenants.create("acme")
    text, _ = issue()
    with store.write() as tables:
        tables.delete_tenant("acme")
    assert refusal(authenticator, text).args == ("tenant_unknown", {})


def test_any_valid_key_has_an_identity_whatever_its_scopes(tenants, issue, authenticator):  # B19
    tenants.create("acme")
    for scope in ("telemetry:write", "topology:read", "predictions:read"):
        text, _ = issue(scopes=(scope,))
        assert authenticator.authenticate(text).scopes == {scope}


def test_the_secret_is_nowhere_on_disk(tenants, issue, tmp_path):
    tenants.create("acme")
    text, key_id = issue()
    content = (tmp_path / "control" / "data.mdb").read_bytes()
    assert key_id.encode() in content
    assert text.split("_")[3][:32].encode() not in content


def test_an_unreadable_store_is_no_verdict_on_the_key(
    tenants, issue, authenticator, tmp_path
):  # B23
    tenants.create("acme")
    text, _ = issue()
    authenticator.authenticate(text)
    (tmp_path / "control").rename(tmp_path / "away")
    for _ in range(2):
        with pytest.raises(ControlStoreUnavailable):
            authenticator.authenticate(text)
    (tmp_path / "away").rename(tmp_path / "control")
    assert authenticator.authenticate(text)
