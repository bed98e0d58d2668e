"""Rules 1 to 3 over gRPC: no byte of another tenant is in any answer, whatever is sent."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conformance.api import HOUR_S, at

from .messages import SECOND_NS, encode, record

TENANTS = 3
CALLS = 300
THREADS = 8
VALUE = 71_234_567_890  # the first tenant's; too long to be part of an id by chance


def secret_of(number):
    return f"secret-of-{number}"


@pytest.fixture(scope="module")
def tenants(accounts):
    return [accounts.tenant(f"apart-{number}") for number in range(TENANTS)]


def batch(dice, number, other):
    """Records of one tenant, with the other's name wherever a client might put it."""
    secret = secret_of(number)
    records = [
        record(
            (HOUR_S + dice.randrange(600)) * SECOND_NS,
            entity=dice.choice(("e0", secret)),
            measurement=dice.choice(("link", secret)),
            tags={"tenant": other.name, secret: secret},
            fields={"n": float(VALUE + number), secret: secret},
        )
        for _ in range(dice.randrange(1, 9))
    ]
    fault = dice.randrange(6)
    if fault == 0:  # is refused in words that name a field
        records.append(record(HOUR_S * SECOND_NS, measurement="link", fields={"n": "text"}))
    elif fault == 1:
        records.append(record(None, entity=None))
    return encode(*records)[: -1 if fault == 2 else None]


def ask(station, tenants, seed):
    """One call; the number of its tenant, and everything that came back."""
    dice = random.Random(seed)
    number = dice.randrange(TENANTS)
    tenant, other = tenants[number], dice.choice(tenants)
    forged = (
        ("x-tenant", other.name),
        ("x-tenant-id", other.plane.name),
        ("authorization", f"Bearer {other.key}"),
    )
    metadata = [("x-api-key", tenant.key), *(pair for pair in forged if dice.random() < 0.5)]
    outcome = station.write(batch(dice, number, other), None, metadata=metadata)
    said = (outcome.details, outcome.trailers, str(outcome.response))
    return number, outcome.status, repr(said)


def foreign_words(tenants, number):
    return [
        word
        for other, tenant in enumerate(tenants)
        if other != number
        for word in (secret_of(other), tenant.plane.name, tenant.key, f"{VALUE + other}")
    ]


def test_calls_of_many_tenants_on_one_channel_stay_apart(station, tenants):
    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(lambda seed: ask(station, tenants, seed), range(CALLS)))
    assert {status for _, status, _ in answers} == {"OK", "INVALID_ARGUMENT", "INTERNAL"}
    for number, _, said in answers:
        assert not [word for word in foreign_words(tenants, number) if word in said]


def test_what_was_written_over_grpc_is_read_by_its_tenant_alone(station, tenants):
    """Every read endpoint, after the writes of all; `tenant` is always the caller (C15)."""
    for number, tenant in enumerate(tenants):
        written = [
            record(HOUR_S * SECOND_NS, fields={"n": float(VALUE + number)}, tags={"tenant": "x"})
        ]
        assert station.write(encode(*written), tenant.key).status == "OK"
    for number, tenant in enumerate(tenants):
        span = f"start={at(0)}&end={at(3600)}&measurement=link"
        for path in (
            f"/topology?as_of_utc={at(3600)}&freshness_seconds=3600",
            f"/topology/series?entity_id=e&entity_id=e0&{span}",
            f"/topology/series?entity_id=e&entity_id={secret_of((number + 1) % TENANTS)}&{span}",
            "/account/state",
            "/predictions?link_ids=e0",
        ):
            answer = tenant.service.request("GET", path, key=tenant.key)
            body = answer.body.decode()
            asked = secret_of((number + 1) % TENANTS) if "secret" in path else None
            words = [word for word in foreign_words(tenants, number) if word != asked]
            assert not [word for word in words if word in body]
        assert {fields["n"] for _, fields in tenant.rows(fields="n")} == {float(VALUE + number)}
