"""A running listener takes a renewed certificate, unless it does not go with its key."""

from __future__ import annotations

import json
import ssl
import subprocess

from tests.service.service import FLEETCAST

from .station import Station


def shown(service):
    """The certificate that a new connection gets, in PEM."""
    host, port = service.ready["grpc"].split(":")
    return ssl.get_server_certificate((host, int(port)))


def renew(data, *options):
    arguments = ("tls", "renew", "--json", "--data", str(data), *options)
    return json.loads(subprocess.check_output([*FLEETCAST, *arguments]))


def test_a_renewed_certificate_serves_the_next_connection(own):
    service = own()
    old = Station(service.ready)
    assert old.write(b"", own.key).status == "OK"
    first = shown(service)
    renewed = renew(own.data, "--host", "telemetry.example")
    assert (renewed["running"], renewed["new_authority"]) == (True, False)
    assert shown(service) == (own.data / "tls" / "server.pem").read_text() != first
    options = ("grpc.use_local_subchannel_pool", 1)
    named = ("grpc.ssl_target_name_override", "telemetry.example")
    new = Station(service.ready, options, named)
    assert old.write(b"", own.key).status == new.write(b"", own.key).status == "OK"
    old.close()
    new.close()


def test_files_that_do_not_fit_change_nothing(own):
    service = own()
    tls = own.data / "tls"
    first, key = shown(service), (tls / "server.key").read_bytes()
    renew(own.data)
    second, pem = shown(service), (tls / "server.pem").read_bytes()
    (tls / "server.key").write_bytes(key)
    assert shown(service) == shown(service) == second
    (tls / "server.pem").unlink()
    assert shown(service) == second
    (tls / "server.pem").write_bytes(pem)
    assert shown(service) == second
    (tls / "server.pem").write_text(first)
    assert shown(service) == first
