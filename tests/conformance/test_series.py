"""H: `GET /topology/series`."""

from __future__ import annotations

import itertools
import time

import pytest

from .api import HOUR_S, at, faults, record, refusal

SIX = ["link", "satellite", "ground_station", "weather", "attenuation", "telemetry"]
DAY_S = 86_400
INTERVALS = {"15s": 15, "30s": 30, "1m": 60, "5m": 300, "15m": 900, "1h": 3600}


def ago(seconds: float) -> str:
    return at(int(time.time()) - seconds - HOUR_S)


def test_the_answer_of_a_raw_read(tenant):
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


@pytest.mark.parametrize(("interval", "seconds"), INTERVALS.items())
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


@pytest.mark.parametrize(
    ("span_s", "entities", "interval", "fits"),
    [
        (10_000 * 15, 1, "15s", True),
        (10_001 * 15, 1, "15s", False),
        (10_000 * 15 // 16, 16, "15s", True),
        (625 * 15 + 15, 16, "15s", False),
        (5_000 * 60, 2, "1m", True),
        (5_001 * 60, 2, "1m", False),
    ],
)
def test_h17_the_budget_is_entities_times_windows(quiet, span_s, entities, interval, fits):
    names = [f"e{n}" for n in range(entities)]
    span_s -= span_s % INTERVALS[interval]
    answer = quiet.series(names, start=at(-span_s), end=at(0), interval=interval)
    assert answer.status == (200 if fits else 422), answer.body
    if not fits:
        assert answer.json["error"] == "interval_too_fine"


@pytest.mark.parametrize(("shift", "fits"), [(0, True), (1, False)])
def test_h17_windows_that_are_touched_count_whole(quiet, shift, fits):
    answer = quiet.series(start=at(shift - 150_000), end=at(shift), interval="15s")
    assert answer.status == (200 if fits else 422)


def test_h17_collapsed_entities_count_once(quiet):
    answer = quiet.series(["e"] * 16, start=at(-150_000), end=at(0), interval="15s")
    assert answer.status == 200


@pytest.mark.parametrize(
    ("days", "entities", "interval", "smallest"),
    [
        (2, 1, "15s", "30s"),
        (4, 1, "15s", "1m"),
        (7, 1, "1m", "5m"),
        (29, 1, "30s", "5m"),
        (29, 2, "15s", "15m"),
        (29, 13, "1m", "1h"),
        (29, 15, "1h", None),
    ],
)
def test_h18_the_smallest_interval_that_fits_is_told(quiet, days, entities, interval, smallest):
    names = [f"e{n}" for n in range(entities)]
    span = {"start": at(-days * DAY_S), "end": at(0)}
    expected = {"error": "interval_too_fine", "min_interval": smallest}
    assert refusal(quiet.series(names, **span, interval=interval)) == (422, expected)
    assert refusal(quiet.series(names, **span)) == (
        422,
        {"error": "interval_required", "min_interval": smallest},
    )
    if smallest is not None:
        assert quiet.series(names, **span, interval=smallest).status == 200


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


def pages(tenant, entities, **parameters):
    """Every row of the pages that `next_start` leads through, and the number of pages."""
    rows = {entity: [] for entity in entities}
    start = parameters.pop("start", at(0))
    count = 0
    while start is not None:
        count += 1
        answer = tenant.series(entities, start=start, **parameters).json
        for one in answer["series"]:
            columns = one["channels"]
            for row, moment in enumerate(one["times"]):
                values = {name: column[row] for name, column in columns.items()}
                rows[one["entity_id"]].append((moment, values))
        assert answer["truncated"] is (answer["next_start"] is not None)
        assert answer["next_start"] is None or answer["next_start"] > start
        start = answer["next_start"]
    return rows, count


def test_h23_one_cut_for_all_entities_at_the_budget(tuned):
    """Budget 20: `a` has a row each second, `b` each other second; 20 rows end before second 14."""
    tuned.write(*(record(at(second), entity="a", n=second) for second in range(60)))
    tuned.write(*(record(at(second), entity="b", n=second) for second in range(0, 60, 2)))
    answer = tuned.series(["b", "a"]).json
    b, a = answer["series"]
    assert a["times"] == [at(second) for second in range(13)]
    assert b["times"] == [at(second) for second in range(0, 13, 2)]
    assert (answer["truncated"], answer["next_start"]) == (True, at(13))
    assert answer["end"] == at(3600)


def test_h23_pages_neither_lose_nor_repeat_a_row(tuned):
    entities = ["a", "b", "c"]
    expected = {entity: [] for entity in entities}
    batch = []
    for number in range(200):
        entity = entities[number * 7 % 3]
        moment = at(number * 13 % 97)
        batch.append(record(moment, entity=entity, n=number))
        expected[entity].append((moment, {"n": float(number)}))
    tuned.write(*batch)
    rows, count = pages(tuned, entities)
    assert count > 10
    for entity in entities:
        # Whole seconds sort as text; rows of one instant stay in write order.
        assert rows[entity] == sorted(expected[entity], key=lambda row: row[0])


def test_h23_an_instant_is_never_split(tuned):
    for second in range(4):
        tuned.write(*(record(at(second), n=n) for n in range(7)))
    answer = tuned.series().json
    assert answer["series"][0]["times"] == [at(0)] * 7 + [at(1)] * 7
    assert answer["next_start"] == at(2)


def test_h23_h26_a_budget_met_exactly_is_not_truncated(tuned):
    tuned.write(*(record(at(second)) for second in range(20)))
    answer = tuned.series().json
    assert answer["series"][0]["point_count"] == 20
    assert (answer["truncated"], answer["next_start"]) == (False, None)


def test_h23_no_row_of_an_unwanted_channel_counts(tuned):
    tuned.write(*(record(at(second), a=1) for second in range(100)), record(at(50), b=1))
    assert tuned.rows(fields="b") == [(at(50), {"b": 1.0})]


def test_h9_a_truncated_page_names_only_what_it_holds(tuned):
    tuned.write(*(record(at(second), a=1) for second in range(30)), record(at(29), b=1))
    (first,) = tuned.series().json["series"]
    assert set(first["channels"]) == {"a"}


def test_h25_one_instant_over_the_budget_still_makes_progress(tuned):
    tuned.write(*(record(at(5), n=n) for n in range(30)), record(at(6), n=99))
    answer = tuned.series().json
    assert answer["series"][0]["channels"] == {"n": [float(n) for n in range(20)]}
    assert answer["truncated"] is True
    assert answer["next_start"] == at(5).replace("Z", ".000000001Z")
    answer = tuned.series(start=answer["next_start"]).json
    assert answer["series"][0]["channels"] == {"n": [99.0]}
    assert answer["truncated"] is False


def test_h24_an_aggregated_read_within_the_budget_is_whole(tuned):
    tuned.write(*(record(at(second), n=1) for second in range(300)))
    answer = tuned.series(end=at(300), interval="15s").json
    assert answer["series"][0]["point_count"] == 20
    assert (answer["truncated"], answer["next_start"]) == (False, None)
    refused = tuned.series(end=at(301), interval="15s")
    assert refused.json == {"error": "interval_too_fine", "min_interval": "30s"}


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


@pytest.mark.parametrize("interval", INTERVALS)
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
