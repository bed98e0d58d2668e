import pytest

from fleetcast.errors import InvalidKey, OperatorError


@pytest.fixture(autouse=True)
def acme(tenants):
    return tenants.create("acme")


def test_a_rotated_key_stays_good_for_the_overlap(keys, issue, clock, identify):
    old, old_id = issue(name="gateway", lifetime_seconds=1000)
    clock.now += 500
    successor = keys.rotate(old_id, overlap_seconds=60)
    new = str(successor.text)
    assert successor.record.name == "gateway"
    assert successor.record.expires_at == int(clock.now) + 1000
    clock.now += 59
    assert identify(old).key.key_id == old_id
    clock.now += 1
    assert identify(new).key.key_id == successor.record.key_id
    with pytest.raises(InvalidKey):
        identify(old)


def test_rotation_never_prolongs_a_key(keys, issue, clock):
    _, old_id = issue(lifetime_seconds=30)
    keys.rotate(old_id, overlap_seconds=3600)
    assert {key.expires_at for key in keys.all("acme")} == {int(clock.now) + 30}


def test_ended_keys_have_no_successor(keys, issue, clock):
    _, revoked = issue()
    keys.revoke(revoked)
    _, expired = issue(lifetime_seconds=1)
    clock.now += 1
    for key_id in (revoked, expired):
        with pytest.raises(OperatorError, match="create a new one"):
            keys.rotate(key_id, overlap_seconds=0)


def test_revoking_again_keeps_the_first_time(keys, issue, clock):
    _, key_id = issue()
    first = keys.revoke(key_id).revoked_at
    clock.now += 10
    assert keys.revoke(key_id).revoked_at == first


@pytest.mark.parametrize(
    ("tenant", "scopes", "environment"),
    [
        ("nobody", ("topology:read",), "sandbox"),
        ("acme", (), "sandbox"),
        ("acme", ("topology:write",), "sandbox"),
        ("acme", ("topology:read",), "moon"),
    ],
)
def test_keys_of_nothing_for_nothing_are_refused(keys, tenant, scopes, environment):
    with pytest.raises(OperatorError):
        keys.create(tenant, scopes=scopes, environment=environment)
    assert keys.all("acme") == []


@pytest.mark.parametrize("key_id", ["", "nope", "ä", "x" * 600])
def test_unknown_keys_are_refused(keys, key_id):
    with pytest.raises(OperatorError, match="no key"):
        keys.revoke(key_id)
