import pytest

from fleetcast.accounts.declaration import read_declaration
from fleetcast.accounts.provision import Provisioner
from fleetcast.errors import OperatorError, SettingsError

FILE = """
[[tenant]]
name = "acme"
plan = "enterprise"
retention = "400d"
[[tenant.key]]
name = "gateway"
scopes = ["telemetry:write"]
expires = "90d"
key_file = "gateway.key"
[[tenant.key]]
name = "console"
scopes = ["topology:read", "predictions:read"]
"""


@pytest.fixture
def provision(tenants, keys, tmp_path):
    def provision(text):
        path = tmp_path / "fleet.toml"
        path.write_text(text)
        return Provisioner(tenants, keys, "sandbox").apply(read_declaration(path))

    return provision


def test_it_makes_tenants_and_keys(provision, identify, tenants, tmp_path):
    outcome = provision(FILE)
    assert [row["action"] for row in [*outcome.tenants, *outcome.keys]] == ["created"] * 3
    file = tmp_path / "gateway.key"
    assert file.stat().st_mode & 0o777 == 0o600
    assert identify(file.read_text().strip()).key.scopes == ["telemetry:write"]
    assert identify(outcome.keys[1]["key"]).tenant.name == "acme"
    assert tenants.get("acme").retention_seconds == 400 * 86_400
    assert [path.name for path in tmp_path.glob(".gateway*")] == []


def test_again_it_changes_nothing(provision, keys, tmp_path):
    provision(FILE)
    before = keys.all("acme"), (tmp_path / "gateway.key").read_bytes()
    outcome = provision(FILE)
    assert [row["action"] for row in [*outcome.tenants, *outcome.keys]] == ["unchanged"] * 3
    assert outcome.warnings == []
    assert (keys.all("acme"), (tmp_path / "gateway.key").read_bytes()) == before


def test_changed_scopes_and_attributes_apply_and_absent_ones_stay(
    provision, tenants, identify, tmp_path
):
    provision(FILE)
    provision(
        '[[tenant]]\nname = "acme"\nlive_ingest = false\n'
        '[[tenant.key]]\nname = "gateway"\nscopes = ["topology:read"]\n'
    )
    tenant = tenants.get("acme")
    assert (tenant.plan, tenant.live_ingest) == ("enterprise", False)
    assert tenant.retention_seconds == 400 * 86_400
    identity = identify((tmp_path / "gateway.key").read_text().strip())
    assert identity.key.scopes == ["topology:read"]


def test_a_key_whose_file_is_gone_is_kept_with_a_warning(provision, keys, tmp_path):
    provision(FILE)
    before = keys.all("acme")
    (tmp_path / "gateway.key").unlink()
    outcome = provision(FILE)
    assert "gateway.key is gone" in outcome.warnings[0]
    assert keys.all("acme") == before
    assert not (tmp_path / "gateway.key").exists()


def test_a_file_of_another_key_is_not_overwritten(provision, keys, tmp_path):
    (tmp_path / "gateway.key").write_text("precious")
    with pytest.raises(OperatorError, match="move it away"):
        provision(FILE)
    assert (tmp_path / "gateway.key").read_text() == "precious"
    assert keys.all("acme") == []


@pytest.mark.parametrize("seconds", [0, 60, -60], ids=["one second", "later", "clock set back"])
def test_a_rotated_key_keeps_its_end(provision, keys, clock, seconds):
    """Sixteen keys: their ids are random, and must not decide which of two is the newer."""
    names = [f"key-{number}" for number in range(16)]
    text = '[[tenant]]\nname = "acme"\n' + "".join(
        f'[[tenant.key]]\nname = "{name}"\nscopes = ["topology:read"]\nexpires = "90d"\n'
        for name in names
    )
    provision(text)
    clock.now += seconds
    rotated = {
        key.key_id: keys.rotate(key.key_id, overlap_seconds=3600).record.key_id
        for key in keys.all("acme")
    }
    before = keys.all("acme")
    ends = {key.expires_at for key in before if key.key_id in rotated}
    assert ends == {int(clock.now) + 3600}
    outcome = provision(text)
    assert {row["key_id"]: row["action"] for row in outcome.keys} == dict.fromkeys(
        rotated.values(), "unchanged"
    )
    assert keys.all("acme") == before


def test_a_key_of_which_the_successor_has_ended_is_told_of(provision, keys):
    provision(FILE)
    for key in keys.all("acme"):
        keys.revoke(keys.rotate(key.key_id, overlap_seconds=3600).record.key_id)
    outcome = provision(FILE)
    assert [warning.rsplit(" ", 1)[1] for warning in outcome.warnings] == ["revoked"] * 2


def test_all_faults_of_a_file_are_listed_and_nothing_is_done(provision, tenants):
    with pytest.raises(SettingsError) as caught:
        provision(
            '[[tenant]]\nname = "fine"\n'
            '[[tenant]]\nname = "Not_fine"\nplan = 7\nretention = "soon"\ncolour = "red"\n'
            '[[tenant.key]]\nname = "k"\nscopes = ["everything"]\n'
            '[[tenant.key]]\nname = "k"\nscopes = ["topology:read"]\n'
        )
    assert len(caught.value.problems) == 6
    assert tenants.all() == []
