"""The certificate of the gRPC listener: its hosts, its authority, its renewal."""

import hashlib
import hmac
import json
import socket
import ssl
import stat

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fleetcast.cli.main import run
from fleetcast.engine import open_secret

OWN = ["localhost", socket.gethostname(), "127.0.0.1", "::1"]


def is_trusted(tls, host, authority=None):
    """True where a client that trusts `authority` takes the certificate in `tls` for `host`'s."""
    client = ssl.create_default_context(cadata=authority or (tls / "ca.pem").read_text())
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tls / "server.pem", tls / "server.key")
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(to_client, to_server, server_hostname=host)
    far = server.wrap_bio(to_server, to_client, server_side=True)
    done = set()
    while len(done) < 2:
        for side in (near, far):
            try:
                side.do_handshake()
                done.add(side)
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError:
                return False
    return near.version() == far.version() is not None


def test_the_certificate_is_good_for_this_host(data):
    assert [host for host in OWN if not is_trusted(data / "tls", host)] == []
    assert not is_trusted(data / "tls", "telemetry.example.com")


def test_init_puts_hosts_into_the_certificate(tmp_path):
    hosts = ["telemetry.example.com", "10.20.30.40", "fd00::7", "under_score", "*.wild.example"]
    given = [part for host in hosts for part in ("--host", host)]
    assert run(["init", "--data", str(tmp_path / "new"), *given]) == 0
    hosts[-1] = "any.wild.example"
    wrong = [host for host in (*OWN, *hosts) if not is_trusted(tmp_path / "new" / "tls", host)]
    assert wrong == []


@pytest.mark.parametrize(
    "host", ["", "a:1", "http://a", "a b", "ü.example", "a..b", "-a", "a" * 64]
)
def test_a_host_that_is_none_leaves_nothing(tmp_path, capsys, host):
    assert run(["init", "--data", str(tmp_path / "new"), "--host", host]) == 1
    assert "telemetry.example.com" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_renewed_certificate_is_trusted_by_those_who_trusted_the_first(call, data):
    tls = data / "tls"
    authority, first = (tls / "ca.pem").read_text(), (tls / "server.pem").read_bytes()
    renewed = call("tls", "renew", "--host", "a.example", "--host", "10.0.0.9")
    assert (renewed["new_authority"], renewed["running"]) == (False, False)
    assert renewed["hosts"] == [*dict.fromkeys(OWN), "a.example", "10.0.0.9"]
    assert renewed["grpc_ca"] == str(tls / "ca.pem")
    assert (tls / "server.pem").read_bytes() != first
    for host in (*OWN, "a.example", "10.0.0.9"):
        assert is_trusted(tls, host, authority)
    again = call("tls", "renew")
    assert again["hosts"] == renewed["hosts"]
    assert is_trusted(tls, "a.example", authority)
    assert call("tls", "renew", "--host", "b.example")["hosts"][-1] == "b.example"
    assert not is_trusted(tls, "a.example", authority)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tls.iterdir()}
    secret = {"ca.key": 0o600, "server.key": 0o600}
    assert modes == secret | {"ca.pem": 0o644, "server.pem": 0o644}
    events = [json.loads(line)["event"] for line in (data / "audit.log").read_text().splitlines()]
    assert events == ["certificate renewed"] * 3


@pytest.mark.parametrize("loss", ["gone", "damaged", "of another master key"])
def test_a_lost_authority_is_made_anew_and_said(call, data, tmp_path, loss):
    """A directory that an earlier version made has no key of its authority, either."""
    key = data / "tls" / "ca.key"
    if loss == "gone":
        key.unlink()
    elif loss == "damaged":
        key.write_bytes(key.read_bytes()[:-40])
    else:
        assert run(["init", "--data", str(tmp_path / "other")]) == 0
        key.write_bytes((tmp_path / "other" / "tls" / "ca.key").read_bytes())
    old = (data / "tls" / "ca.pem").read_text()
    assert call("tls", "renew")["new_authority"]
    assert is_trusted(data / "tls", "localhost")
    assert not is_trusted(data / "tls", "localhost", old)
    assert not call("tls", "renew")["new_authority"]


def opened(data):
    """The number that is the authority's private key."""
    master_key = bytes.fromhex((data / "master.key").read_text())
    place = "key of the certificate authority"
    return open_secret(master_key, place, (data / "tls" / "ca.key").read_bytes())


def write_as_0_3_0_did(data):
    """Encrypts the key of the authority as PEM, under a password from the master key."""
    master_key = bytes.fromhex((data / "master.key").read_text())
    label = b"fleetcast certificate authority 1"
    password = hmac.digest(master_key, label, hashlib.sha256).hex().encode()
    text = ec.derive_private_key(int.from_bytes(opened(data)), ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password),
    )
    (data / "tls" / "ca.key").write_bytes(text)


@pytest.mark.parametrize("command", [["tls", "renew"], ["master-key", "rotate"]])
def test_a_key_that_0_3_0_wrote_is_sealed_at_its_first_use(call, data, command):
    number = opened(data)
    write_as_0_3_0_did(data)
    authority = (data / "tls" / "ca.pem").read_bytes()
    call(*command)
    assert opened(data) == number
    assert not call("tls", "renew")["new_authority"]
    assert (data / "tls" / "ca.pem").read_bytes() == authority


def test_lost_files_are_made_anew_by_the_same_authority(call, data):
    authority = (data / "tls" / "ca.pem").read_text()
    for name in ("server.pem", "server.key"):
        (data / "tls" / name).unlink()
    assert call("doctor", status=1)["ok"] is False
    assert call("tls", "renew")["hosts"] == [*dict.fromkeys(OWN)]
    assert all(is_trusted(data / "tls", host, authority) for host in OWN)
    assert call("doctor")["ok"]


def test_another_master_key_costs_clients_nothing(fail, data):
    """The authority's key does not open with it, and is not given up for that."""
    before = {path: path.read_bytes() for path in (data / "tls").iterdir()}
    (data / "master.key").write_text("ab" * 32)
    assert "put back" in fail("tls", "renew")[0]
    assert {path: path.read_bytes() for path in (data / "tls").iterdir()} == before


def test_a_certificate_from_elsewhere_is_not_ours_to_renew(fail, data, monkeypatch):
    for name in ("server.pem", "server.key"):
        (data / "tls" / name).rename(data / name)
    monkeypatch.setenv("FLEETCAST_GRPC__CERTIFICATE", "server.pem")
    monkeypatch.setenv("FLEETCAST_GRPC__PRIVATE_KEY", "server.key")
    assert "where it came from" in fail("tls", "renew")[0]


def test_the_key_of_the_authority_is_of_no_use_without_the_master_key(data):
    with pytest.raises(ssl.SSLError):
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            data / "tls" / "ca.pem", data / "tls" / "ca.key", password=""
        )
