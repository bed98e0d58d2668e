"""D: instants in, instants out."""

from __future__ import annotations

import time

import pytest

from .api import DAY_S, at, faults, record, refusal

DAY = "2026-03-04"
SPELLINGS = {
    f"{DAY}T05:06:07Z": f"{DAY}T05:06:07Z",
    f"{DAY}t05:06:07z": f"{DAY}T05:06:07Z",
    f"{DAY} 05:06:07": f"{DAY}T05:06:07Z",
    f"{DAY}T05:06": f"{DAY}T05:06:00Z",
    f"{DAY}T05:06Z": f"{DAY}T05:06:00Z",
    DAY: f"{DAY}T00:00:00Z",
    f"{DAY}T05:06:07+01:30": f"{DAY}T03:36:07Z",
    f"{DAY}T05:06:07-0130": f"{DAY}T06:36:07Z",
    f"{DAY}T23:30:00-01:00": "2026-03-05T00:30:00Z",
    f"{DAY}T05:06:07.5Z": f"{DAY}T05:06:07.500Z",
    f"{DAY}T05:06:07,25Z": f"{DAY}T05:06:07.250Z",
    f"{DAY}T05:06:07.120000Z": f"{DAY}T05:06:07.120Z",
    f"{DAY}T05:06:07.1234Z": f"{DAY}T05:06:07.123400Z",
    f"{DAY}T05:06:07.123456789Z": f"{DAY}T05:06:07.123456789Z",
    f"{DAY}T05:06:07.9999999999Z": f"{DAY}T05:06:07.999999999Z",
    f"{DAY}T05:06:07.000000000Z": f"{DAY}T05:06:07Z",
    "2024-02-29T00:00:00Z": "2024-02-29T00:00:00Z",
    "2000-02-29T23:59:59.999999999Z": "2000-02-29T23:59:59.999999999Z",
}
NO_TIMES = [
    *("", "now", "yesterday", "1772600767", "1772600767000", "1e9", " 2026-03-04", "2026-03-04 "),
    *("20260304T050607Z", "2026-W10-3", "2026-063", "2026-3-4", "26-03-04", "+2026-03-04"),
    *(f"{DAY}T", f"{DAY}T05", f"{DAY}T05:06:", f"{DAY}T5:06:07", f"{DAY}T24:00:00Z"),
    *(f"{DAY}T23:59:60Z", f"{DAY}T05:60:00Z", f"{DAY}T05:06:07.Z", f"{DAY}T05:06:07+01"),
    *(f"{DAY}T05:06:07+24:00", f"{DAY}T05:06:07+01:60", f"{DAY}T05:06:07 Z", f"{DAY}T05:06:07UTC"),
    *("2026-02-29T00:00:00Z", "2026-13-01", "2026-00-01", "2026-01-00", "2026-04-31"),
    *("1900-02-29", "0000-01-01", f"{DAY}X05:06:07", f"{DAY}T05:06:07ZZ", f"{DAY}\n"),
    "\N{FULLWIDTH DIGIT TWO}026-03-04",
]


def test_d1_d3_d6_d7_what_is_written_comes_back_in_utc(tenant):
    tenant.write(*(record(text, entity=text) for text in SPELLINGS))
    found = {}
    for as_of in ("2000-03-01", "2024-03-01", "2026-03-06"):
        for entity in tenant.entities(as_of_utc=as_of, freshness_seconds=604_800):
            found[entity["entity_id"]] = entity["observed_at"]
    assert found == SPELLINGS


@pytest.mark.parametrize(("text", "instant"), SPELLINGS.items())
def test_d1_d3_parameters_have_the_same_grammar(quiet, text, instant):
    answer = quiet.topology(as_of_utc=text)
    assert (answer.status, answer.json["as_of_utc"]) == (200, instant)


@pytest.mark.parametrize("text", NO_TIMES)
def test_d2_d4_d5_what_is_no_time(quiet, text):
    for answer, loc in (
        (quiet.post([record(text)]), ["body", 0, "time"]),
        (quiet.topology(as_of_utc=text), ["query", "as_of_utc"]),
        (quiet.series(start=text), ["query", "start"]),
        (quiet.series(end=text), ["query", "end"]),
    ):
        assert faults(answer) == [("datetime_from_date_parsing", loc)]


@pytest.mark.parametrize("value", [1772600767, 1772600767000, 1.5, True, None, [], {}])
def test_d2_no_json_number_is_a_time(quiet, value):
    ((kind, loc),) = faults(quiet.post([record(value)]))
    assert (kind, loc) == ("datetime_type", ["body", 0, "time"])


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("2000-01-01T00:00:00Z", True),
        ("2000-01-01", True),
        ("1999-12-31T23:59:59.999999999Z", False),
        ("2000-01-01T00:00:00+14:00", False),
        ("1999-12-31T10:00:00-14:00", True),
        ("1999-12-31T23:59:59-00:01", True),
        ("1970-01-01", False),
        ("0001-01-01T00:00:00+23:59", False),
        ("1677-09-21T00:12:43Z", False),
    ],
)
def test_d8_d9_the_year_2000_is_the_earliest_and_is_compared_in_utc(tenant, text, accepted):
    answer = tenant.post([record(text), record(at(1))])
    assert answer.status == 202
    assert answer.json["rejected_indices"] == (None if accepted else [0])
    assert answer.json["accepted_count"] == (2 if accepted else 1)


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59.999999999-23:59", "2300-01-01"])
def test_d9_the_far_future_is_clamped(tenant, text):
    assert tenant.post([record(text)]).json["accepted_count"] == 1
    (entity,) = now(tenant)
    assert entity["entity_id"] == "e"


def now(tenant):
    answer = tenant.get("/topology")
    assert answer.status == 200
    return answer.json["entities"]


@pytest.mark.parametrize("text", ["0001-01-01", "9999-12-31T23:59:59Z", "1677-01-01", "2263-01-01"])
def test_d9_g9_bounds_of_a_query_saturate(tenant, text):
    tenant.write(record(at(1)))
    assert tenant.entities(as_of_utc=text) == []
    answer = tenant.series(start=text, end="9999-12-31T23:59:59Z")
    assert answer.status == 422
    late = text.startswith(("2263", "9999"))
    assert answer.json["error"] == ("invalid_range" if late else "history_horizon_exceeded")


def test_d10_one_instant_for_all_that_lies_in_the_future(tenant):
    before = time.time_ns()
    tenant.write(
        record("2100-01-01", entity="a"),
        record(at(1), entity="b"),
        record("9999-01-01", entity="c"),
        record("2200-01-01", entity="a", other=2.0),
    )
    found = {entity["entity_id"]: entity for entity in now(tenant)}
    assert set(found) == {"a", "c"}
    assert found["a"]["observed_at"] == found["c"]["observed_at"]
    assert found["a"]["fields"] == {"snr_db": 1.0, "other": 2.0}
    assert before < nanoseconds(found["a"]["observed_at"]) < time.time_ns()


def nanoseconds(text: str) -> int:
    whole, _, fraction = text.rstrip("Z").partition(".")
    seconds = time.mktime(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) - time.timezone
    return int(seconds) * 10**9 + int(fraction.ljust(9, "0"))


def test_d10_a_time_just_passed_is_not_clamped(tenant):
    past = at(0, base_s=int(time.time()) - 1)
    tenant.write(record(past))
    (entity,) = now(tenant)
    assert entity["observed_at"] == past


def test_d11_a_clamped_record_is_simply_accepted(tenant):
    acknowledged = tenant.write(record("2100-01-01"))
    assert acknowledged["rejected_indices"] is None


def test_d12_what_was_acknowledged_is_read_at_once(tenant):
    """A clamped record lies at the ingest instant, and the end of a read is exclusive."""
    for number in range(20):
        tenant.write(record("2100-01-01", number=number))
        assert now(tenant)[0]["fields"] == {"number": number}


@pytest.mark.parametrize("seconds", [600, 90 * DAY_S])
def test_d15_one_write_under_a_wrong_clock_hides_nothing(tenant, accounts, seconds):
    """Topology was empty and series refused until the time of the wrong clock had come."""
    wrong = at(seconds, base_s=int(time.time()))
    accounts.write_ahead(tenant, record(wrong, entity="wrong"), seconds=seconds + 1)
    before = at(0, base_s=int(time.time()) - 60)
    tenant.write(record(before, entity="right", number=1), record("2100-01-01", number=2))
    assert [entity["entity_id"] for entity in now(tenant)] == ["e", "right"]
    series = tenant.series("right", start=before, end=None)
    assert series.status == 200, series.body
    assert series.json["series"][0]["channels"] == {"number": [1.0]}
    within_horizon = at(0, base_s=int(time.time()) - 30 * DAY_S)
    assert tenant.series(start=within_horizon, end=None, interval="1h").status == 200
    after = at(seconds + 1, base_s=int(time.time()))
    (entity,) = tenant.entities(as_of_utc=after, freshness_seconds=300)
    assert (entity["entity_id"], entity["observed_at"]) == ("wrong", wrong)


def test_d13_any_age_since_2000_and_any_order(tenant):
    texts = ["2020-05-05T00:00:00Z", "2000-01-01T00:00:00Z", "2010-01-01T00:00:00Z"]
    for number, text in enumerate(texts):
        tenant.write(record(text, number=number))
    for number, text in enumerate(texts):
        as_of = text.replace("00:00:00", "00:00:01")
        (entity,) = tenant.entities(as_of_utc=as_of, freshness_seconds=1)
        assert (entity["observed_at"], entity["fields"]) == (text, {"number": number})
    refused = tenant.series(start=texts[0], end="2020-05-06")
    assert refusal(refused) == (422, {"error": "history_horizon_exceeded", "horizon_days": 30})


def test_d13_late_records_join_the_series_in_their_place(tenant):
    for second in (30, 10, 20, 0):
        tenant.write(record(at(second), number=second))
    assert [fields["number"] for _, fields in tenant.rows()] == [0, 10, 20, 30]
