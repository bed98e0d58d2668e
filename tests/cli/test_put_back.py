"""B10: accounts that somebody put back who can write the files but has no master key."""

import shutil

from fleetcast.cli.main import run


def revoked(call, data):
    """A key that was revoked, and the control store from before that."""
    call("tenant", "create", "acme")
    key_id = call("key", "create", "acme", "--scope", "topology:read")["key_id"]
    before = (data / "control" / "data.mdb").read_bytes()
    call("key", "revoke", key_id)
    return before


def test_an_older_copy_of_the_accounts_is_refused_by_every_command(call, fail, data):
    before = revoked(call, data)
    (data / "control" / "data.mdb").write_bytes(before)
    for command in (["key", "list", "acme"], ["serve"], ["verify"], ["backup", data.parent / "b"]):
        (said,) = fail(*command)
        assert "an older copy was put back" in said
        assert said.endswith(f"If that was done on purpose, remove {data}/accounts.revision")
    (data / "accounts.revision").unlink()
    assert [key["status"] for key in call("key", "list", "acme")["keys"]] == ["active"]


def test_doctor_says_so(call, data, capsys):
    before = revoked(call, data)
    (data / "control" / "data.mdb").write_bytes(before)
    capsys.readouterr()
    assert run(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "FAIL  control store" in said
    assert "an older copy was put back" in said


def test_a_restore_puts_them_back_on_purpose(call, fail, data, tmp_path):
    revoked(call, data)
    call("backup", tmp_path / "backup")
    revision = (data / "accounts.revision").read_bytes()
    shutil.rmtree(data / "planes")
    for path in data.iterdir():
        if path.name not in ("master.key", "accounts.revision"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    call("restore", tmp_path / "backup", "--data", data)
    assert [tenant["tenant"] for tenant in call("tenant", "list")["tenants"]] == ["acme"]
    assert (data / "accounts.revision").read_bytes() != revision
    (data / "accounts.revision").write_bytes(revision)
    assert "is of another store" in fail("tenant", "list")[0]


def test_the_revision_may_lie_elsewhere(call, fail, data, tmp_path):
    elsewhere = tmp_path / "elsewhere" / "revision"
    with (data / "fleetcast.toml").open("a") as settings:
        settings.write(f'[security]\naccounts_revision_file = "{elsewhere}"\n')
    assert "could not write" in fail("tenant", "create", "acme")[0]
    elsewhere.parent.mkdir()
    call("tenant", "create", "acme")
    assert elsewhere.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in elsewhere.parent.iterdir()] == ["revision"]
