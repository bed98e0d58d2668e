"""E: one type per field of a measurement of a tenant."""

from __future__ import annotations

import threading

import pytest

from .api import at, record, refusal

VALUES = {"boolean": True, "number": 1.5, "string": "x"}
PAIRS = [(one, two) for one in VALUES for two in VALUES if one != two]


def conflict(field):
    return (400, {"error": "field_type_conflict", "field": field})


@pytest.mark.parametrize(("first", "then"), PAIRS)
def test_e1_a_field_keeps_its_type(tenant, first, then):
    tenant.write(record(at(1), v=VALUES[first]))
    assert refusal(tenant.post([record(at(2), v=VALUES[then])])) == conflict("v")
    tenant.write(record(at(3), v=VALUES[first]))
    assert tenant.entities()[0]["fields"] == {"v": VALUES[first]}


def test_e1_another_measurement_may_have_another(tenant):
    tenant.write(record(at(1), status="up"), record(at(1), measurement="weather", status=1))
    tenant.write(record(at(2), status="down"), record(at(2), measurement="weather", status=2))
    found = {entity["measurement"]: entity["fields"] for entity in tenant.entities()}
    assert found == {"link": {"status": "down"}, "weather": {"status": 2.0}}


def test_e1_another_tenant_may_have_another(tenant, accounts):
    other = accounts.tenant()
    assert tenant.write(record(at(1), status="up"))["accepted_count"] == 1
    assert other.write(record(at(1), status=1))["accepted_count"] == 1


def test_e1_another_entity_may_not(tenant):
    tenant.write(record(at(1), entity="a", v=1))
    assert refusal(tenant.post([record(at(1), entity="b", v="x")])) == conflict("v")


def test_e2_integers_are_floats_and_booleans_are_not(tenant):
    tenant.write(record(at(1), v=1), record(at(2), v=1.5), record(at(3), v=2**60))
    assert tenant.rows() == [
        (at(1), {"v": 1.0}),
        (at(2), {"v": 1.5}),
        (at(3), {"v": 1152921504606846976.0}),
    ]
    tenant.write(record(at(4), flag=False, text="1"))
    assert b'"flag":false' in tenant.topology().body
    assert b'"text":"1"' in tenant.topology().body


def test_e3_the_first_in_the_array_decides_and_nothing_is_written(tenant):
    batch = [record(at(1), v=1.0), record(at(2), v="x"), record(at(3), v=2.0)]
    assert refusal(tenant.post(batch)) == conflict("v")
    assert tenant.entities() == []
    tenant.write(record(at(1), v="x"))


def test_e4_a_conflict_stores_nothing_of_the_batch(tenant):
    tenant.write(record(at(1), v=1.0))
    batch = [record(at(2), entity=f"new-{n}", v=float(n)) for n in range(10)]
    batch.append(record(at(3), entity="bad", v="x"))
    before = tenant.get("/account/state").json["usage"]
    assert refusal(tenant.post(batch)) == conflict("v")
    assert [entity["entity_id"] for entity in tenant.entities()] == ["e"]
    after = tenant.get("/account/state").json["usage"]
    for name in ("records_accepted_total", "records_rejected_total", "series_count"):
        assert before[name] == after[name]
    batch[-1]["fields"]["v"] = 1
    assert tenant.write(*batch)["accepted_count"] == 11


def test_e5_a_rejected_record_fixes_no_type_and_conflicts_with_none(tenant):
    old = "1999-01-01T00:00:00Z"
    answer = tenant.post([record(old, v="x"), record(at(1), v=1.0), record(old, v=True)])
    assert answer.status == 202
    assert answer.json["rejected_indices"] == [0, 2]
    assert tenant.rows() == [(at(1), {"v": 1.0})]


def test_e6_the_first_conflict_is_named(tenant):
    tenant.write(record(at(1), a=1, b=1, c=1))
    batch = [record(at(2), c=1), record(at(2), c="x", a="x"), record(at(2), b="x")]
    assert refusal(tenant.post(batch)) == conflict("c")
    inside = [record(at(2), new=1, c=1), record(at(2), new="x"), record(at(2), a="x")]
    assert refusal(tenant.post(inside)) == conflict("new")
    inside.reverse()
    assert refusal(tenant.post(inside)) == conflict("a")


def test_e7_nothing_changes_a_type(tenant):
    """Not even a refused batch that came first."""
    assert tenant.post([record(at(1), v="x"), record(at(2), v=1)]).status == 400
    tenant.write(record(at(1), v=1))
    assert refusal(tenant.post([record(at(2), v="x")])) == conflict("v")


def test_e1_two_workers_agree_on_one_type(tenant):
    """Both types at once, from many connections: one wins, and the losers are told."""
    start = threading.Barrier(8)
    statuses: dict[str, list[int]] = {"number": [], "string": []}

    def post(kind):
        start.wait()
        answer = tenant.post([record(at(1), entity=kind, v=VALUES[kind])])
        statuses[kind].append(answer.status)

    threads = [threading.Thread(target=post, args=(kind,)) for kind in list(statuses) * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(tuple, statuses.values())) == [(202,) * 4, (400,) * 4]
    (entity,) = tenant.entities()
    assert set(statuses[entity["entity_id"]]) == {202}
