"""Rules 1 to 3: no byte of another tenant is in any answer, whatever is asked."""

from __future__ import annotations

import random

import pytest

from tests.waiting import until

from .api import at, record

TENANTS = 3
REQUESTS = 400
MEASUREMENTS = ("link", "telemetry", "weather")
ENTITIES = ("e0", "e1", "e2")


@pytest.fixture(scope="module")
def tenants(accounts):
    """Tenants with the same entities and measurements, and secrets in everything else."""
    created = [accounts.tenant(f"isolated-{number}") for number in range(TENANTS)]
    for number, tenant in enumerate(created):
        secret = secret_of(number)
        tenant.write(
            *(
                {
                    "measurement": measurement,
                    "time": at(second),
                    "tags": {"entity_id": entity, secret: secret, "tenant": "isolated-0"},
                    "fields": {secret: float(second), "text": secret, "n": 7000 + number},
                }
                for measurement in (*MEASUREMENTS, f"{secret}-measurement")
                for entity in (*ENTITIES, f"{secret}-entity")
                for second in range(0, 600, 60)
            )
        )
    return created


def secret_of(number):
    return f"secret-of-{number}"


def ask(dice, tenants, caller):
    """A random request of `caller` that tries to reach somebody else's data."""
    tenant, other = tenants[caller], tenants[dice.randrange(TENANTS)]
    forged = {
        "host": f"{other.name}.example",
        "x-tenant": other.name,
        "x-tenant-id": other.plane.name,
        "x-forwarded-host": other.name,
        "authorization": f"Bearer {other.key}",
        "cookie": f"x-api-key={other.key}; tenant={other.name}",
    }
    headers = {name: value for name, value in forged.items() if dice.random() < 0.5}
    extra = dice.choice(["", f"&tenant={other.name}", f"&tenant_key={other.name}&x-api-key=x"])
    entity = dice.choice(ENTITIES)
    window = f"start={at(dice.randrange(300))}&end={at(dice.randrange(301, 3600))}"
    path = dice.choice(
        [
            f"/topology?as_of_utc={at(dice.randrange(3600))}&freshness_seconds=3600",
            f"/topology?as_of_utc={at(3600)}&freshness_seconds=3600&measurement=link",
            f"/topology/series?entity_id={entity}&{window}&measurement=link",
            f"/topology/series?entity_id={entity}&{window}&interval=1m&measurement=weather",
            f"/topology/series?entity_id={entity}&{window}&agg=x",
            f"/predictions?link_ids={entity}",
            "/account/state?a=1",
            f"/health{dice.choice(['', '/telemetry', '/topology', '/predictions'])}?a=1",
            "/nowhere?a=1",
            "/telemetry",
        ]
    )
    if path == "/telemetry":
        foreign = {**record(at(700), entity=entity, n=1.0), "tenant": other.name}
        conflict = record(at(700), entity=entity, text=5)
        batch = [foreign, *([conflict] if dice.random() < 0.5 else [])]
        return tenant.post(batch)
    method = dice.choice(["GET"] * 8 + ["HEAD", "OPTIONS", "DELETE"])

    def look():
        answer = tenant.service.request(method, path + extra, key=tenant.key, headers=headers)
        too_slow = path.startswith("/health/") and answer.status == 503  # J2
        return None if too_slow else answer

    return until(look)


def test_no_answer_holds_a_foreign_byte(tenants):
    dice = random.Random(20261)
    foreign = [
        [
            word.encode()
            for number, other in enumerate(tenants)
            if number != caller
            for word in (secret_of(number), other.name, other.plane.name, other.key)
        ]
        for caller in range(TENANTS)
    ]
    statuses = set()
    own = 0
    for _ in range(REQUESTS):
        caller = dice.randrange(TENANTS)
        answer = ask(dice, tenants, caller)
        statuses.add(answer.status)
        whole = answer.body + repr(answer.headers.items()).encode()
        assert not [word for word in foreign[caller] if word in whole]
        own += secret_of(caller).encode() in answer.body
    assert statuses == {200, 202, 204, 400, 404, 405, 422}
    assert own > REQUESTS // 5, "the requests found nothing, so they prove nothing"


def test_each_tenant_reads_its_own_numbers(tenants):
    for number, tenant in enumerate(tenants):
        for measurement in MEASUREMENTS:
            rows = tenant.rows("e0", measurement=measurement, fields="n", end=at(600))
            assert [fields["n"] for _, fields in rows] == [7000.0 + number] * 10


def test_another_tenants_entity_is_empty(tenants):
    for caller, tenant in enumerate(tenants):
        wanted = f"{secret_of((caller + 1) % TENANTS)}-entity"
        (one,) = tenant.series(wanted).json["series"]
        assert one == {"entity_id": wanted, "times": [], "channels": {}, "point_count": 0}


@pytest.mark.files
def test_the_files_of_a_tenant_hold_no_plain_text(tenants):  # J12
    for number, tenant in enumerate(tenants):
        files = [tenant.plane / "plane.mdb", *(tenant.plane / "log").iterdir()]
        stored = b"".join(file.read_bytes() for file in files)
        assert secret_of(number).encode() not in stored
        assert b"entity_id" not in stored
