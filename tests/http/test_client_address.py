"""B5: whose address counts."""

import pytest

from fleetcast.http.client_address import ClientAddress

PROXIES = ("10.0.0.0/8", "192.0.2.7", "2001:db8:ff::/48")


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("198.51.100.1", None, "198.51.100.1"),
        ("198.51.100.1", "203.0.113.9", "198.51.100.1"),  # forged: the peer is no proxy
        ("10.1.1.1", None, "10.1.1.1"),
        ("10.1.1.1", "", "10.1.1.1"),
        ("10.1.1.1", " , ,", "10.1.1.1"),
        ("10.1.1.1", "203.0.113.9", "203.0.113.9"),
        ("::ffff:10.1.1.1", "203.0.113.9", "203.0.113.9"),
        ("2001:db8:ff::1", "203.0.113.9", "203.0.113.9"),
        ("10.1.1.1", "1.1.1.1, 203.0.113.9", "203.0.113.9"),  # what the client wrote is ignored
        ("10.1.1.1", "1.1.1.1, 203.0.113.9, 192.0.2.7,10.2.2.2", "203.0.113.9"),
        ("10.1.1.1", "203.0.113.9, ::ffff:10.2.2.2", "203.0.113.9"),
        ("10.1.1.1", "10.3.3.3, 10.2.2.2", "10.3.3.3"),  # nothing but proxies: the first of them
        ("10.1.1.1", "203.0.113.9, unknown", "10.1.1.1"),
        ("10.1.1.1", "203.0.113.9, _hidden, 10.2.2.2", "10.2.2.2"),
        ("10.1.1.1", "203.0.113.9:4711", "203.0.113.9"),
        ("10.1.1.1", "[2001:db8::1]:4711", "2001:db8::1"),
        ("10.1.1.1", "2001:db8::1", "2001:db8::1"),
        ("10.1.1.1", "::ffff:203.0.113.9", "203.0.113.9"),
        ("", "203.0.113.9", ""),  # a Unix socket
    ],
)
def test_the_client_is_the_right_most_address_that_is_no_proxy(peer, forwarded, client):
    assert ClientAddress(PROXIES).of(peer, forwarded) == client


def test_without_trusted_proxies_nothing_is_believed():
    assert ClientAddress(()).of("10.1.1.1", "203.0.113.9") == "10.1.1.1"
