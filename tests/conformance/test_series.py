"""H: `GET /topology/series`."""

from __future__ import annotations

import itertools
import time

import pytest

from .api import DAY_S, HOUR_S, INTERVALS_S, at, faults, record, refusal

SIX = ["link", "satellite", "ground_station", "weather", "attenuation", "telemetry"]


def ago(seconds: float) -> str:
    return at(int(time.time()) - seconds - HOUR_S)


def test_the_answer_of_a_raw_read(tenant):  # H14
    tenant.write(record(at(1), a=1, up=True, s="x"), record(at(2), a=2, b=3))
    answer = tenant.series(["e", "nobody"])
    assert answer.status == 200
    assert answer.json == {
        "measurement": "link",
        "start": at(0),
        "end": at(3600),
        "interval": None,
        "agg": None,
        "series": [
            {
                "entity_id": "e",
                "times": [at(1), at(2)],
                "channels": {"a": [1.0, 2.0], "b": [None, 3.0]},
                "point_count": 2,
            },
            {"entity_id": "nobody", "times": [], "channels": {}, "point_count": 0},
        ],
        "truncated": False,
        "next_start": None,
    }


def test_the_answer_of_an_aggregated_read(tenant):
    tenant.write(record(at(1), a=1), record(at(2), a=3), record(at(61), b=5))
    answer = tenant.series(interval="1m")
    assert answer.json == {
        "measurement": "link",
        "start": at(0),
        "end": at(3600),
        "interval": "1m",
        "agg": "mean",
        "series": [
            {
                "entity_id": "e",
                "times": [at(0), at(60)],
                "channels": {"a": [2.0, None], "b": [None, 5.0]},
                "point_count": 2,
            }
        ],
        "truncated": False,
        "next_start": None,
    }


# H1: each fault as a change of a good request, in the order of the checks.
WRONG = {
    "schema": ({}, None),
    "characters": (
        {"entity_id": ["e", "a\x01b"]},
        {"error": "invalid_input", "field": "entity_id"},
    ),
    "measurement": ({"measurement": "pool_interval"}, {"error": "unknown_measurement"}),
    "agg": ({"agg": "mean"}, {"error": "agg_requires_interval"}),
    "range": ({"range": True}, {"error": "invalid_range"}),
    "horizon": ({"horizon": True}, {"error": "history_horizon_exceeded", "horizon_days": 30}),
    "required": ({"span": 2 * 3600}, {"error": "interval_required", "min_interval": "15s"}),
    "too fine": ({"span": 2 * DAY_S, "interval": "15s"}, {"error": "interval_too_fine"}),
}
IMPOSSIBLE = [
    {"agg", "too fine"},  # the one needs an interval, the other none
    {"required", "too fine"},
    {"range", "required"},  # an empty span is not long
    {"range", "too fine"},
]


def wrong_request(*names):
    """Parameters with all these faults at once, as (name, value) pairs."""
    chosen: dict = {"entity_id": ["e"], "measurement": "link", "span": 60}
    for name in names:
        chosen.update(WRONG[name][0])
    start_s = -(31 if "horizon" in chosen else 3) * DAY_S
    end_s = start_s if "range" in chosen else start_s + chosen["span"]
    parameters: dict = {"start": at(start_s), "end": at(end_s)}
    for name in ("entity_id", "measurement", "interval", "agg"):
        if name in chosen:
            parameters[name] = chosen[name]
    if "schema" in names:
        parameters["fields"] = ["a", "b"]
    return parameters


@pytest.mark.parametrize(
    "names",
    [
        *((name,) for name in WRONG),
        *(p for p in itertools.combinations(WRONG, 2) if set(p) not in IMPOSSIBLE),
        ("schema", "characters", "measurement", "agg", "range", "horizon"),
    ],
    ids="+".join,
)
def test_h1_the_first_check_that_fails_answers(quiet, names):
    answer = quiet.get("/topology/series", **wrong_request(*names))
    first = names[0]
    if first == "schema":
        assert faults(answer) == [("multiple_values", ["query", "fields"])]
        return
    expected = WRONG[first][1]
    assert answer.status == (400 if first == "characters" else 422)
    assert answer.json.items() >= expected.items()


def test_h2_what_is_missing_or_malformed_is_listed_together(quiet):
    answer = quiet.get("/topology/series", end="x", interval="2m", agg="sum", measurement="nope")
    assert faults(answer) == [
        ("missing", ["query", "entity_id"]),
        ("missing", ["query", "start"]),
        ("datetime_from_date_parsing", ["query", "end"]),
        ("literal_error", ["query", "interval"]),
        ("literal_error", ["query", "agg"]),
    ]


def test_h3_sixteen_entities_counted_before_they_collapse(quiet):
    assert quiet.series([f"e{n}" for n in range(16)]).status == 200
    assert quiet.series(["e"] * 16).status == 200
    for entities in ([f"e{n}" for n in range(17)], ["e"] * 17):
        assert faults(quiet.series(entities)) == [("too_long", ["query", "entity_id"])]


@pytest.mark.parametrize("entities", ["", ["e", ""]])
def test_h4_an_empty_entity(quiet, entities):
    ((kind, loc),) = faults(quiet.series(entities))
    assert (kind, loc[:2]) == ("string_too_short", ["query", "entity_id"])


def test_h5_a_comma_is_part_of_an_entity(tenant):
    tenant.write(record(at(1), entity="a,b", n=1), record(at(1), entity="a", n=2))
    assert tenant.rows("a,b") == [(at(1), {"n": 1.0})]


@pytest.mark.parametrize("name", ["", "Link", "pool_interval", "telemetry ", "nope", "\u00e9"])
def test_h6_a_measurement_outside_the_six_lists_them(quiet, name):
    status, body = refusal(quiet.series(measurement=name))
    assert (status, body["error"], set(body)) == (422, "unknown_measurement", {"error", "allowed"})
    assert sorted(body["allowed"]) == sorted(SIX)


@pytest.mark.parametrize("name", ["entity_id", "measurement", "fields"])
@pytest.mark.parametrize("character", ["\x00", "\x01", "\t", "\n", "\x1f", "\x7f"])
def test_h7_control_characters_are_refused(quiet, name, character):
    answer = quiet.series(**{"entity" if name == "entity_id" else name: f"link{character}"})
    assert refusal(answer) == (400, {"error": "invalid_input", "field": name})


@pytest.mark.parametrize(
    "text", ["a b", "\"'`", "\u0080", "\u2028", "\N{SATELLITE}", "a/b;c=*", "%"]
)
def test_h7_every_other_character_is_fine(tenant, text):
    tenant.write(record(at(1), entity=text, **{text: 4}))
    assert tenant.rows(text, fields=text) == [(at(1), {text: 4.0})]


@pytest.mark.parametrize(
    ("fields", "channels"),
    [
        (None, {"a", "b", " c"}),
        ("", {"a", "b", " c"}),
        (",,", {"a", "b", " c"}),
        ("a", {"a"}),
        ("a,,b,", {"a", "b"}),
        ("b,a,a", {"a", "b"}),
        (" c", {" c"}),
        ("c", set()),
        ("a,nope", {"a"}),
        ("flag,text", set()),
    ],
)
def test_h8_h9_h10_fields(tenant, fields, channels):
    tenant.write({**record(at(1), **{" c": 3}), "fields": {"a": 1, "b": 2, " c": 3}})
    tenant.write(record(at(2), flag=True, text="x"))
    (one,) = tenant.series(fields=fields).json["series"]
    assert set(one["channels"]) == channels
    assert one["times"] == ([at(1)] if channels else [])


def test_h9_a_channel_without_a_number_in_range_is_left_out(tenant):
    tenant.write(record(at(1), a=1), record(at(100), b=1), record(at(1), entity="f", b=1))
    answer = tenant.series(["e", "f"], end=at(50))
    assert [set(one["channels"]) for one in answer.json["series"]] == [{"a"}, {"b"}]


def test_h11_rows_are_the_union_of_instants(tenant):
    tenant.write(record(at(1), a=1), record(at(2), b=1), record(at(3), a=2), record(at(3), b=2))
    assert [fields for _, fields in tenant.rows()] == [
        {"a": 1.0, "b": None},
        {"a": None, "b": 1.0},
        {"a": 2.0, "b": 2.0},
    ]


def test_h12_h13_empty_windows_are_left_out(tenant):
    tenant.write(record(at(1), a=1), record(at(1801), a=2))
    assert tenant.rows(interval="1m") == [(at(0), {"a": 1.0}), (at(1800), {"a": 2.0})]
    (one,) = tenant.series("nobody", interval="1m").json["series"]
    assert one == {"entity_id": "nobody", "times": [], "channels": {}, "point_count": 0}


@pytest.mark.parametrize(("interval", "seconds"), INTERVALS_S.items())
def test_h15_windows_are_aligned_to_the_epoch_and_cut_by_the_range(tenant, interval, seconds):
    """Samples 1 s before and after every edge; the range begins and ends inside a window."""
    start, end = seconds / 2, 2 * seconds + seconds / 2
    instants = [0, start - 1, start, seconds - 1, seconds, 2 * seconds, end - 1, end]
    tenant.write(*(record(at(second), n=second) for second in instants))
    rows = tenant.rows(start=at(start), end=at(end), interval=interval, agg="max")
    assert rows == [
        (at(0), {"n": float(seconds - 1)}),
        (at(seconds), {"n": float(seconds)}),
        (at(2 * seconds), {"n": float(end - 1)}),
    ]


def test_h16_the_range_is_answered_as_asked_in_utc(quiet):
    hour = time.strftime("%Y-%m-%dT%H", time.gmtime(HOUR_S + 3600))
    answer = quiet.series(start=f"{hour}:10:01.5+01:00", end=f"{hour}:10:02+01:00", interval="1h")
    assert (answer.json["start"], answer.json["end"]) == (at(601.5), at(602))


def test_h16_end_is_now_where_it_is_not_given(tenant):
    tenant.write(record("2100-01-01", n=1))
    before = ago(1)
    answer = tenant.series(start=ago(60), end=None)
    assert answer.json["series"][0]["point_count"] == 1
    assert before[:19] <= answer.json["end"][:19] <= ago(0)[:19]


def test_h19_one_hour_exactly_may_be_read_raw(quiet):
    assert quiet.series(start=at(0), end=at(3600)).status == 200
    answer = quiet.series(start=at(0), end=at(3600.001))
    expected = {"error": "interval_required", "min_interval": "15s"}
    assert refusal(answer) == (422, expected)
    nanosecond = at(3600).replace("Z", ".000000001Z")
    assert quiet.series(start=at(0), end=nanosecond).status == 422


def test_h19_an_end_left_out_gives_a_minute_of_grace(quiet):
    assert quiet.series(start=ago(3600), end=None).status == 200
    assert quiet.series(start=ago(3600 + 30), end=None).status == 200
    answer = quiet.series(start=ago(3600 + 90), end=None)
    assert answer.json["error"] == "interval_required"


def test_h20_thirty_days_and_a_minute(quiet):
    assert quiet.series(start=ago(30 * DAY_S), interval="1h").status == 200
    assert quiet.series(start=ago(30 * DAY_S + 30), interval="1h").status == 200
    answer = quiet.series(start=ago(30 * DAY_S + 90), interval="1h")
    expected = {"error": "history_horizon_exceeded", "horizon_days": 30}
    assert refusal(answer) == (422, expected)
    assert b'"horizon_days":30}' in answer.body


@pytest.mark.parametrize("end", [0, -1, -3600])
def test_h21_end_must_be_after_start(quiet, end):
    assert refusal(quiet.series(start=at(0), end=at(end))) == (422, {"error": "invalid_range"})


def test_h21_a_start_after_now_without_an_end(quiet):
    answer = quiet.series(start=ago(-60), end=None)
    assert refusal(answer) == (422, {"error": "invalid_range"})


def test_h22_the_future_is_empty(tenant):
    tenant.write(record(at(1)))
    assert tenant.rows(start=ago(-100), end=ago(-200)) == []
    assert len(tenant.rows(start=at(0), end=ago(-DAY_S), interval="1h")) == 1


def test_aggregations(tenant):
    tenant.write(*(record(at(second), n=n) for second, n in ((1, 5), (2, -3), (3, 10), (0, 4))))
    expected = {"mean": 4.0, "min": -3.0, "max": 10.0, "last": 10.0}
    for agg, value in expected.items():
        assert tenant.rows(interval="1m", agg=agg) == [(at(0), {"n": value})]


def test_h27_last_is_the_greatest_time_and_then_the_last_written(tenant):
    tenant.write(record(at(5), n=1), record(at(5), n=2))
    tenant.write(record(at(5), n=3), record(at(4), n=4))
    assert tenant.rows(interval="1m", agg="last") == [(at(0), {"n": 3.0})]


def test_h28_a_mean_of_the_largest_numbers_is_finite(tenant):
    top = 1.7976931348623157e308
    tenant.write(*(record(at(second), n=top) for second in range(5)))
    ((_, fields),) = tenant.rows(interval="1m", agg="mean")
    assert fields["n"] == pytest.approx(top, rel=1e-15)
    tenant.write(*(record(at(60 + second), n=-top * (-1) ** second) for second in range(4)))
    assert tenant.rows(start=at(60), interval="1m", agg="mean") == [(at(60), {"n": 0.0})]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("interval", text) for text in ("2m", "15", "60s", "1M", "1H", "", "1d", " 1m")),
        *(("agg", text) for text in ("sum", "Mean", "", "count")),
    ],
)
def test_h29_unknown_words(quiet, name, value):
    parameters = {"interval": "1m", "agg": "mean", name: value}
    assert faults(quiet.series(**parameters)) == [("literal_error", ["query", name])]


@pytest.mark.parametrize("interval", INTERVALS_S)
def test_h30_an_interval_is_honoured_on_a_short_span(tenant, interval):
    tenant.write(record(at(1), n=1), record(at(2), n=3))
    assert tenant.rows(end=at(10), interval=interval) == [(at(0), {"n": 2.0})]


def test_h31_entities_come_in_the_order_of_the_request(quiet):
    answer = quiet.series(["c", "a", "c", "b", "a"])
    assert [one["entity_id"] for one in answer.json["series"]] == ["c", "a", "b"]


def test_h32_tag_sets_of_one_entity_are_one_series(tenant):
    def sent(second, site, **fields):
        return {**record(at(second), **fields), "tags": {"entity_id": "e", "site": site}}

    tenant.write(sent(1, "a", n=1), sent(2, "b", n=2), sent(3, "a", n=3), sent(2, "a", m=9))
    assert tenant.rows() == [
        (at(1), {"n": 1.0, "m": None}),
        (at(2), {"n": 2.0, "m": 9.0}),
        (at(3), {"n": 3.0, "m": None}),
    ]


def test_h33_telemetry_is_the_default_and_only_it_is_read(tenant):
    tenant.write(*(record(at(1), measurement=name, **{name: 1}) for name in SIX))
    answer = tenant.series(measurement=None).json
    assert answer["measurement"] == "telemetry"
    assert set(answer["series"][0]["channels"]) == {"telemetry"}
    for name in SIX:
        assert tenant.rows(measurement=name) == [(at(1), {name: 1.0})]


def test_the_range_includes_its_start_and_not_its_end(tenant):
    tenant.write(*(record(at(second), n=second) for second in (1, 2, 3)))
    assert [fields["n"] for _, fields in tenant.rows(start=at(1), end=at(3))] == [1, 2]
