"""Stages 0 to 13, A6: with several things wrong at once, the earliest stage answers.

Each fault changes some parts of a good `POST /telemetry`. Every pair that changes different parts
is sent; the one that comes first in the table must answer.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import socket

import pytest

from fleetcast.engine import Tenant

from .api import at, raw, record, refusal

# In the order of the stages. A part of the request that two faults both set keeps them apart.
FAULTS: dict[str, dict] = {
    "malformed length": {"length": "x", "answer": (400, "invalid_content_length")},
    "not found": {"path": "/nowhere", "answer": (404, "not_found")},
    "method": {"method": "PUT", "answer": (405, "method_not_allowed")},
    "no key": {"key": None, "answer": (401, "auth_failed")},
    "bad key": {"key": "nonsense", "answer": (401, "auth_failed")},
    "disabled": {"tenant": "disabled", "answer": (403, "tenant_disabled")},
    "unknown": {"tenant": "unknown", "answer": (404, "tenant_unknown")},
    "no plane": {"tenant": "no plane", "answer": (503, "tenant_unavailable")},
    "scope": {"scoped": False, "answer": (403, "insufficient_scope")},
    "entitlement": {"entitled": False, "answer": (403, "live_ingest_not_entitled")},
    "no length": {"length": None, "answer": (411, "length_required")},
    "too large": {"length": str(1_048_577), "answer": (413, "request_too_large")},
    "coding": {"coding": "gzip", "answer": (415, "unsupported_content_encoding")},
    "type": {"type": "text/plain", "answer": (422, ["header", "content-type"])},
    "short": {"length": "long", "answer": (400, "invalid_content_length")},
    "syntax": {"body": "syntax", "answer": (422, "json_invalid")},
    "no array": {"body": "object", "answer": (422, "list_type")},
    "count": {"body": "count", "answer": (413, "batch_too_large")},
    "schema": {"body": "schema", "answer": (422, "missing")},
    "tags": {"body": "tags", "answer": (400, "invalid_input")},
    "field type": {"body": "field type", "answer": (400, "field_type_conflict")},
}
NAMES = list(FAULTS)
MANY_TAGS = {**record(at(1)), "tags": {f"t{n}": "" for n in range(65)}}
CONFLICT = [record(at(1), v=1), record(at(1), v="x")]
BODIES = {
    "good": json.dumps([record(at(1))]),
    "syntax": f"[{'{},' * 1001}nope]",  # and too many, and a bad schema
    "object": json.dumps({"records": [MANY_TAGS]}),
    "count": json.dumps([{}] * 500 + [MANY_TAGS] * 501),
    "schema": json.dumps([MANY_TAGS, *CONFLICT, {}]),
    "tags": json.dumps([*CONFLICT, MANY_TAGS]),
    "field type": json.dumps([{**record(at(1)), "fields": {}}, *CONFLICT]),
}


def parts(name):
    return set(FAULTS[name]) - {"answer"}


def clash(one, two):
    if parts(one) & parts(two):
        return True
    keys = {"no key", "bad key"}
    account = {"tenant", "scoped", "entitled"}
    # A bad key has no tenant; without a length there is no body.
    return (one in keys and bool(parts(two) & account)) or (
        one in {"no length", "too large", "malformed length"} and "body" in parts(two)
    )


PAIRS = [pair for pair in itertools.combinations(NAMES, 2) if not clash(*pair)]


@pytest.fixture(scope="module")
def keys(accounts):
    """A key for every kind of tenant, with and without scope and entitlement."""
    keys = {}
    with contextlib.ExitStack() as undo:
        for kind in ("good", "disabled", "unknown", "no plane"):
            for entitled in (True, False):
                tenant = accounts.tenant(live_ingest=entitled)
                keys[kind, True, entitled] = tenant.key
                keys[kind, False, entitled] = accounts.key(tenant.name, ["predictions:read"])
                if kind == "disabled":
                    accounts.tenants.change(tenant.name, disabled=True)
                elif kind == "unknown":
                    with accounts.store.write() as view:
                        Tenant.delete(view, tenant.name)
                    accounts.be_heard()
                elif kind == "no plane":
                    undo.enter_context(accounts.away(tenant))
        yield keys


def send(service, keys, names):
    chosen = {"method": "POST", "path": "/telemetry", "tenant": "good", "scoped": True}
    chosen |= {"entitled": True, "coding": None, "type": "application/json", "body": "good"}
    for name in reversed(names):
        chosen |= FAULTS[name]
    body = BODIES[chosen["body"]].encode()
    lengths = {"good": str(len(body)), "long": str(len(body) + 1)}
    length = chosen.get("length", "good")
    fields = {
        "content-length": lengths.get(length, length),
        "content-encoding": chosen["coding"],
        "content-type": chosen["type"],
        "x-api-key": chosen.get(
            "key", keys[chosen["tenant"], chosen["scoped"], chosen["entitled"]]
        ),
    }
    lines = [f"{name}: {value}" for name, value in fields.items() if value is not None]
    text = "\r\n".join([f"{chosen['method']} {chosen['path']} HTTP/1.1", *lines, "", ""])
    with raw(service) as client:
        client.send(text.encode() + (body if length in lengths else b""))
        client.sock.shutdown(socket.SHUT_WR)
        return client.response()


@pytest.mark.parametrize("names", [*((name,) for name in NAMES), *PAIRS], ids="+".join)
def test_the_earlier_stage_answers(service, keys, names):
    status, content = refusal(send(service, keys, names))
    if "detail" in content:
        first = content["detail"][0]
        found = first["loc"] if first["loc"][0] == "header" else first["type"]
    else:
        found = content["error"]
    assert (status, found) == FAULTS[names[0]]["answer"]


def test_nothing_wrong_is_accepted(service, keys):
    assert send(service, keys, ()).status == 202


def test_the_key_goes_before_the_parameters_of_a_read(service, keys):
    for path in ("/topology?freshness_seconds=0", "/topology/series", "/predictions?x=1"):
        assert service.request("GET", path, key="nonsense").status == 401
        assert service.request("GET", path, key=keys["disabled", True, True]).status == 403
    reader = keys["good", False, True]
    for path in ("/topology?freshness_seconds=0", "/topology/series"):
        assert service.request("GET", path, key=reader).status == 403
