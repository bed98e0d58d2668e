"""G: `GET /topology`."""

from __future__ import annotations

import time

import pytest

from .api import HOUR_S, at, faults, record, refusal

SIX = ["link", "satellite", "ground_station", "weather", "attenuation", "telemetry"]


def ids(entities):
    return [entity["entity_id"] for entity in entities]


def test_the_answer_has_exactly_these_fields(tenant):
    tenant.write(
        {**record(at(1), snr_db=9, up=True, note="x"), "tags": {"entity_id": "e", "s": "1"}}
    )
    answer = tenant.topology()
    assert answer.status == 200
    assert answer.json == {
        "as_of_utc": at(3600),
        "tenant_key": tenant.name,
        "entities": [
            {
                "measurement": "link",
                "entity_id": "e",
                "observed_at": at(1),
                "tags": {"entity_id": "e", "s": "1"},
                "fields": {"snr_db": 9.0, "up": True, "note": "x"},
            }
        ],
    }


def test_g1_the_window_includes_its_start_and_not_its_end(tenant):
    tenant.write(*(record(at(second), entity=str(second)) for second in (9, 10, 15, 19.999, 20)))
    found = tenant.entities(as_of_utc=at(20), freshness_seconds=10)
    assert ids(found) == ["10", "15", "19.999"]


def test_g1_stepping_neither_loses_nor_repeats(tenant):
    tenant.write(*(record(at(second), entity=str(second)) for second in range(60)))
    seen = []
    for step in range(10, 70, 10):
        seen += ids(tenant.entities(as_of_utc=at(step), freshness_seconds=10))
    assert sorted(seen, key=int) == [str(second) for second in range(60)]


def test_g2_the_newest_sample_alone_speaks(tenant):
    tenant.write(record(at(1), a=1, b=1), record(at(2), a=2))
    tenant.write(record(at(0), c=3))
    (entity,) = tenant.entities()
    assert (entity["observed_at"], entity["fields"]) == (at(2), {"a": 2.0})


def test_n5_a_newest_sample_takes_earlier_rows_until_it_has_a_mebibyte(tenant):
    """F6: records of one instant merge. Each of these was stored, and stays what it was."""
    size = 400_000
    for number in range(1, 5):
        tenant.write(record(at(1), **{f"text_{number}": str(number) * size}))
    (entity,) = tenant.entities()
    assert {name: len(text) for name, text in entity["fields"].items()} == {
        "text_2": size,
        "text_3": size,
        "text_4": size,
    }
    tenant.write(record(at(1), snr_db=2.5), record(at(2), snr_db=3.5))
    assert tenant.entities()[0]["fields"] == {"snr_db": 3.5}
    assert set(tenant.entities(as_of_utc=at(2))[0]["fields"]) == {
        *("text_2", "text_3", "text_4"),
        "snr_db",
    }


def test_g2_the_past_is_seen_as_it_was(tenant):
    for second in range(5):
        tenant.write(record(at(second), number=second))
    for second in range(5):
        (entity,) = tenant.entities(as_of_utc=at(second + 0.5))
        assert entity["fields"] == {"number": second}


def test_g3_one_row_per_measurement_and_entity(tenant):
    def sent(second, measurement, **tags):
        return {**record(at(second), measurement=measurement, n=second), "tags": tags}

    tenant.write(
        sent(1, "link", entity_id="e", site="a"),
        sent(3, "link", entity_id="e", site="b"),
        sent(2, "link", entity_id="e", site="c"),
        sent(1, "weather", entity_id="e"),
    )
    found = [(e["measurement"], e["tags"], e["fields"]) for e in tenant.entities()]
    assert found == [
        ("link", {"entity_id": "e", "site": "b"}, {"n": 3.0}),
        ("weather", {"entity_id": "e"}, {"n": 1.0}),
    ]


def test_g4_rows_are_ordered_by_their_bytes(tenant):
    names = ["b", "a", "B", "ab", "\N{LATIN SMALL LETTER Z WITH CARON}", "\N{SATELLITE}", "10", "9"]
    measurements = ["weather", "link", "Zebra", "\uffee"]
    tenant.write(*(record(at(1), entity=n, measurement=m) for n in names for m in measurements))
    found = [(e["measurement"], e["entity_id"]) for e in tenant.entities()]
    pairs = [(m, n) for m in measurements for n in names]
    assert found == sorted(pairs, key=lambda pair: (pair[0].encode(), pair[1].encode()))


@pytest.mark.parametrize("name", SIX)
def test_g5_the_filter_takes_each_of_the_six(tenant, name):
    tenant.write(*(record(at(1), measurement=other) for other in (*SIX, "pool_interval")))
    assert [entity["measurement"] for entity in tenant.entities(measurement=name)] == [name]


@pytest.mark.parametrize(
    "name", ["", "Link", "LINK", "links", " link", "pool_interval", "link,weather", "nope", "\x00"]
)
def test_g5_g16_and_nothing_else(tenant, name):
    tenant.write(record(at(1), measurement="pool_interval"))
    answer = tenant.topology(measurement=name)
    assert refusal(answer) == (400, {"error": "invalid_input", "field": "measurement"})


def test_g6_g16_without_a_filter_every_measurement_is_there(tenant):
    names = sorted([*SIX, "pool_interval", "anything at all"])
    tenant.write(*(record(at(1), measurement=name) for name in names))
    assert [entity["measurement"] for entity in tenant.entities()] == names


@pytest.mark.parametrize("text", ["5", "5.5", "1e3", "1E+3", "+5", "6.048e5", "300.0"])
def test_g7_freshness_is_a_json_number_with_perhaps_a_plus(quiet, text):
    assert quiet.topology(freshness_seconds=text).status == 200


@pytest.mark.parametrize(
    "text", ["", " ", "nan", "NaN", "inf", "-inf", " 5", "5 ", "1_000", "0x10", "5s", ".5e3", "05"]
)
def test_g7_what_is_no_number(quiet, text):
    ((_, loc),) = faults(quiet.topology(freshness_seconds=text))
    assert loc == ["query", "freshness_seconds"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1", None),
        ("604800", None),
        ("0.999", "greater_than_equal"),
        ("0", "greater_than_equal"),
        ("-1", "greater_than_equal"),
        ("604800.001", "less_than_equal"),
        ("1e999", "less_than_equal"),
    ],
)
def test_g8_both_bounds_are_allowed(quiet, text, kind):
    answer = quiet.topology(freshness_seconds=text)
    if kind is None:
        assert answer.status == 200
    else:
        assert faults(answer) == [(kind, ["query", "freshness_seconds"])]


def test_g8_a_fraction_of_a_second_counts(tenant):
    tenant.write(record(at(10)))
    assert tenant.entities(as_of_utc=at(11.5), freshness_seconds=1.4) == []
    assert len(tenant.entities(as_of_utc=at(11.5), freshness_seconds=1.5)) == 1


def test_defaults_are_now_and_five_minutes(tenant):
    now_s = time.time()
    tenant.write(
        record(at(now_s - 240 - HOUR_S), entity="fresh"),
        record(at(now_s - 310 - HOUR_S), entity="stale"),
    )
    answer = tenant.get("/topology")
    assert ids(answer.json["entities"]) == ["fresh"]


def test_g9_any_instant_may_be_asked_for(tenant):
    tenant.write(record("2000-01-01T00:00:00Z", entity="first"))
    assert tenant.entities(as_of_utc="1999-12-31") == []
    assert ids(tenant.entities(as_of_utc="2000-01-01T00:00:01Z")) == ["first"]
    assert tenant.entities(as_of_utc="2200-01-01") == []


def test_g10_the_evaluation_instant_is_told(quiet):
    assert quiet.topology(as_of_utc="2026-01-01T01:00:00+01:00").json["as_of_utc"] == (
        "2026-01-01T00:00:00Z"
    )
    before = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
    as_of = quiet.get("/topology").json["as_of_utc"]
    assert as_of.endswith("Z")
    assert before <= as_of.rstrip("Z") <= time.strftime("%Y-%m-%dT%H:%M:%S~", time.gmtime())


@pytest.mark.parametrize("name", [None, "satellite", "ground_station", "link"])
def test_g11_g12_nothing_is_simulated_unasked(quiet, name):
    parameters = {} if name is None else {"measurement": name}
    answer = quiet.get("/topology", **parameters)
    assert answer.status == 200
    assert set(answer.json) == {"as_of_utc", "tenant_key", "entities"}
    assert answer.json["entities"] == []


@pytest.mark.parametrize("limited", ["tenant", "tuned"])
def test_g13_the_newest_is_found_however_much_lies_before_it(request, limited):
    """`tuned` has `limits.series_row_limit` of 1."""
    tenant = request.getfixturevalue(limited)
    for batch in range(5):
        tenant.write(*(record(at(batch + row / 1000), n=row) for row in range(1000)))
    (entity,) = tenant.entities()
    assert (entity["observed_at"], entity["fields"]) == (at(4.999), {"n": 999.0})
    (entity,) = tenant.entities(as_of_utc=at(2.5))
    assert (entity["observed_at"], entity["fields"]) == (at(2.499), {"n": 499.0})


def test_g14_the_tenant_key_is_the_slug(accounts, tenant):
    other_key = accounts.key(tenant.name)
    for key in (tenant.key, other_key):
        answer = tenant.get("/topology", key=key)
        assert answer.json["tenant_key"] == tenant.name
        assert key.encode() not in answer.body
