"""Checks of single values. A check returns the problem with a value, or `None`."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from fleetcast.config.address import parse_address

Check = Callable[[Any], str | None]

ENVIRONMENTS = ("production", "stage", "development", "sandbox", "gov-development")
_HOST_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_DEDICATED = re.compile(r"dedicated-[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")


def between(low: float, high: float) -> Check:
    """Checks that a number is within bounds, both included."""

    def check(value: float) -> str | None:
        return None if low <= value <= high else f"must be between {low} and {high}"

    return check


def zero_or_between(low: float, high: float) -> Check:
    """Checks that a number is 0, which turns a limit off, or within bounds, both included."""

    def check(value: float) -> str | None:
        is_good = value == 0 or low <= value <= high
        return None if is_good else f"must be 0, or between {low} and {high}"

    return check


def one_of(*choices: str) -> Check:
    """Checks that a text is one of a few words."""

    def check(value: str) -> str | None:
        return None if value in choices else f"must be one of {', '.join(choices)}"

    return check


def distinct(choices: tuple[str, ...]) -> Check:
    """Checks that a list has only the given words, each at most once."""

    def check(values: tuple[str, ...]) -> str | None:
        unknown = [value for value in values if value not in choices]
        if unknown:
            return f"has {unknown[0]!r}, must be out of {', '.join(choices)}"
        return None if len(set(values)) == len(values) else "names one twice"

    return check


def environment(value: str) -> str | None:
    """Checks for an environment of the contract.

    No name holds an underscore, because keys carry it.
    """
    if value in ENVIRONMENTS or _DEDICATED.fullmatch(value):
        return None
    return f"must be one of {', '.join(ENVIRONMENTS)}, dedicated-NAME"


def address(value: str) -> str | None:
    """Checks for a listening address."""
    try:
        parse_address(value)
    except ValueError as error:
        return str(error)
    return None


def address_or_off(value: str) -> str | None:
    """Checks for a listening address, or `off` for no listener."""
    return None if value == "off" or address(value) is None else f'{address(value)}, or "off"'


def origins(values: tuple[str, ...]) -> str | None:
    """Checks for browser origins, each in full: a wildcard or `null` would let any page in."""
    for value in values:
        parts = urlsplit(value)
        if parts.scheme not in {"http", "https"} or value != f"{parts.scheme}://{parts.netloc}":
            return f"has {value!r}, each must be an origin such as https://console.example.com"
        if not parts.netloc or "*" in value or "@" in value:
            return f"has {value!r}, wildcards and user names are refused"
    return None


def networks(values: tuple[str, ...]) -> str | None:
    """Checks for IP addresses or networks."""
    for value in values:
        try:
            ipaddress.ip_network(value, strict=False)
        except ValueError:
            return f"has {value!r}, each must be an IP address or network such as 10.0.0.0/8"
    return None


def host_names(values: tuple[str, ...]) -> str | None:
    """Checks for full names of hosts: a wildcard would let the name of any site in."""
    for value in values:
        if not _HOST_NAME.fullmatch(value):
            return f"has {value!r}, each must be a name such as metrics.example.com, without a port"
    return None


def database(value: str) -> str | None:
    """Checks for a PostgreSQL URL or an empty text.

    The problem does not repeat the URL, which may hold a password.
    """
    if not value or urlsplit(value).scheme in {"postgresql", "postgres"}:
        return None
    return "must be a URL such as postgresql://user@host1,host2/fleetcast"


def objects(value: str) -> str | None:
    """Checks for a URL of an object store, or an empty text."""
    scheme = urlsplit(value).scheme
    if not value or scheme in {"s3", "gs", "az"} or (scheme == "file" and value[5:8] == "///"):
        return None
    return "must be s3://BUCKET/PREFIX, gs://, az:// or file:///FOLDER"


def not_empty(value: str) -> str | None:
    """Checks that a text is not empty."""
    return None if value.strip() else "must not be empty"
