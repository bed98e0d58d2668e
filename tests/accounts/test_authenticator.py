import pytest

from fleetcast.engine import SecretText, Tenant
from fleetcast.errors import InvalidKey, RecordsUnavailable, Refused
from tests.key_text import key_text


def refusal(identify, text):
    with pytest.raises(Refused) as caught:
        identify(text)
    return caught.value


def test_a_good_key_gives_the_tenant_and_its_rights(tenants, issue, identify):
    tenant = tenants.create("acme", plan="enterprise", live_ingest=False, retention_seconds=60)
    text, key_id = issue(scopes=("topology:read", "telemetry:write"))
    identity = identify(text)
    assert identity.tenant == tenant
    assert (tenant.plan, tenant.live_ingest, tenant.status) == ("enterprise", False, "active")
    assert (identity.key.key_id, identity.key.tenant) == (key_id, "acme")
    assert identity.key.scopes == ["telemetry:write", "topology:read"]


def test_no_key_is_refused_but_does_not_count_as_a_failure(identify):  # B13
    refused = refusal(identify, None)
    assert refused.args == ("auth_failed", {})
    assert not isinstance(refused, InvalidKey)


def test_keys_that_are_no_good_are_refused_and_count(tenants, issue, keys, clock, identify):
    tenants.create("acme")
    good, _ = issue()
    revoked, revoked_id = issue()
    keys.revoke(revoked_id)
    expired, _ = issue(lifetime_seconds=60)
    elsewhere, _ = issue(environment="production")  # B16
    guessed = key_text("sandbox", good.split("_")[2], "a" * 32)
    clock.now += 60
    unknown = str(SecretText("key", "sandbox"))
    for text in ["", "nonsense", good[:-1] + "x", unknown, guessed, revoked, expired, elsewhere]:
        refused = refusal(identify, text)
        assert isinstance(refused, InvalidKey)
        assert refused.args == ("auth_failed", {})
    assert identify(good)


def test_the_environment_in_the_text_counts_as_well(tenants, issue, identify):  # B16
    tenants.create("acme")
    text, _ = issue(environment="gov-development")
    _, _, key_id, rest = text.split("_")
    renamed = key_text("sandbox", key_id, rest[:32])
    assert isinstance(refusal(identify, renamed), InvalidKey)


def test_a_disabled_tenant_is_403_material(tenants, issue, identify):  # B17
    tenants.create("acme")
    text, _ = issue()
    tenants.change("acme", disabled=True)
    assert refusal(identify, text).args == ("tenant_disabled", {})
    tenants.change("acme", disabled=False)
    assert identify(text).tenant.status == "active"


def test_a_tenant_that_is_gone_is_404_material(tenants, issue, store, identify):  # B17
    tenants.create("acme")
    text, _ = issue()
    with store.write() as view:
        Tenant.delete(view, "acme")
    assert refusal(identify, text).args == ("tenant_unknown", {})


def test_any_valid_key_has_an_identity_whatever_its_scopes(tenants, issue, identify):  # B19
    tenants.create("acme")
    for scope in ("telemetry:write", "topology:read", "predictions:read"):
        text, _ = issue(scopes=(scope,))
        assert identify(text).key.scopes == [scope]


def test_the_secret_is_nowhere_on_disk(tenants, issue, tmp_path):
    tenants.create("acme")
    text, key_id = issue()
    content = (tmp_path / "control" / "data.mdb").read_bytes()
    assert key_id.encode() in content
    assert text.split("_")[3][:32].encode() not in content


def test_an_unreadable_store_is_no_verdict_on_the_key(tenants, issue, identify, tmp_path):  # B23
    tenants.create("acme")
    text, _ = issue()
    identify(text)
    (tmp_path / "control").rename(tmp_path / "away")
    for _ in range(2):
        with pytest.raises(RecordsUnavailable):
            identify(text)
    (tmp_path / "away").rename(tmp_path / "control")
    assert identify(text)
